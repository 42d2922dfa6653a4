"""The type of a rule: a row of the table of advice, and how a row is evaluated on a run.

A row says what it is about in words, and has one function that finds it in a run.  The rest is the same for all: the
share decides, the replay says the gain, and the account names the culprit.

Below: what an action gives, in which order actions come, rules, and the list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from importlib import import_module
from typing import NamedTuple

from stepscope.analysis.account.account import AccountRow
from stepscope.analysis.account.account_text import cause_sentence, cause_words, describe_culprit
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Advice, Interval, Row, describe_speedup
from stepscope.analysis.facts.device_facts import Share
from stepscope.analysis.facts.host_facts import HostFacts
from stepscope.analysis.steps.verdict import LEAST_PERCENT
from stepscope.analysis.trace.remedies import PYTHON_CALLS, remedy
from stepscope.errors import UsageError
from stepscope.plugins import plugins_of
from stepscope.records import dataclass
from stepscope.vocabulary.accelerators import words_of_others

# ---- gains -----------------------------------------------------------------------------------------------------------
# The gain of a change: what the replay of the step's model says, or why it says nothing.

_COMMUNICATION = Cause.COMMUNICATION.name.lower()
_HALF = 0.5  # of what removing a part saves, at least, if it gets cheaper: judgement
_OF_LAUNCHING = ("graph", "waits", "optimizer")  # changes of how device work is launched


@dataclass(frozen=True)
class Gain:
    """A predicted step time.

    Attributes:
        now_ms: the step time now.
        then_ms: the step time after the change; None if nothing can be predicted.
        reasoning: how `then_ms` is computed.
        least_ms, most_ms: the range of `then_ms`; None to estimate it.
        part_ms: time of the part, as measured; None if that is the gain.
        change: the row of `facts.changes` that was replayed; empty if none was.
    """

    now_ms: float
    then_ms: float | None
    reasoning: str
    least_ms: float | None = None
    most_ms: float | None = None
    part_ms: float | None = None
    change: str = ""

    @property
    def speedup(self) -> float | None:
        """Step time now over step time then; None if nothing is left."""
        return round(self.now_ms / self.then_ms, 2) if self.then_ms else None

    def of_part(self, share: float) -> Gain:
        """The gain of an action on a share of the part, of which as much may go with it as does with the part."""
        if self.then_ms is None:
            return self
        then, most = (_now_less(self.now_ms, each, share) for each in (self.then_ms, self.most_ms or self.then_ms))
        return replace(self, then_ms=then, most_ms=most)

    def of_cheaper(self) -> Gain:
        """The gain if the part gets cheaper rather than goes, as half of it may stay: how much of it, no recording
        shows."""
        if self.then_ms is None:
            return self
        return replace(self, most_ms=max(self.most_ms or 0.0, _now_less(self.now_ms, self.then_ms, _HALF)))

    def advice(
        self,
        *,
        rule: str,
        kind: str,
        title: str,
        evidence: str,
        actions: tuple[str, ...],
        tool: str,
        confidence: float,
        rows: tuple[Row, ...] = (),
        intervals: tuple[Interval, ...] = (),
    ) -> Advice:
        """Advice with this gain."""
        return Advice(
            id=rule, kind=kind, title=title, evidence=evidence, actions=actions, tool=tool,
            confidence=confidence, rows=rows, intervals=intervals, predicted_speedup=self.speedup,
            step_time_ms=round(self.now_ms, 3), predicted_step_time_ms=_round(self.then_ms),
            least_step_time_ms=_round(self.least_ms), most_step_time_ms=_round(self.most_ms), part_ms=self.part_ms,
            reasoning=self.reasoning, change=self.change,
        )  # fmt: skip


def _now_less(now_ms: float, then_ms: float, share: float) -> float:
    """The step time if a share of what a change saves is saved."""
    return now_ms - share * (now_ms - then_ms)


def _round(ms: float | None) -> float | None:
    return None if ms is None else round(ms, 3)


def predict_change(context: Context, change: str, part_ms: float, what: str) -> Gain:
    """The gain of a change by the replay of the step's model; unknown if the model does not carry it.

    Args:
        change: its row among `facts.changes`.
        part_ms: time per step of the part that the change is about.
        what: the part, in words.
    """
    changes = context.changes
    why = "no steps were found, so none can be replayed" if changes is None else changes.why_not
    if changes is not None and change in _OF_LAUNCHING and not changes.are_launches_linked:
        why = "the trace does not link device work to its launches"
    if changes is None or why is not None:
        return predict_nothing(context, part_ms, why or "")
    found = changes.predicted.get(change)
    if found is None:
        return Gain(context.period_ms, context.period_ms, f"the step does not wait for {what}", part_ms=part_ms)
    if found.why_not is not None:
        return predict_nothing(context, part_ms, found.why_not)
    own_ps, other = _slowest_other(context, change)
    account = context.account
    is_mean = account is not None and account.gained_ps != account.step_ps
    scale = account.gained_ps / max(found.now_ps, 1) / MS if account is not None and is_mean else 1.0 / MS
    now, then = scale * found.now_ps, scale * min(max(found.then_ps, own_ps), found.now_ps)
    then_text = f"{'at most ' * found.is_most}{then:.2f} ms"
    step = "the mean of all steps" if is_mean else "the median step"
    text = f"{now:.2f} -> {then_text} in {step} without {what}; {'; '.join(found.reasons)}"
    if own_ps > found.then_ps:
        text += f"; {other} sets the pace then, whose own work takes so long"
    elif sum(host.rank is not None for host in context.hosts) > 1:
        text += "; the rank that sets the pace was replayed alone, with its waits for others as recorded"
    least, most = (scale * max(each, own_ps) for each in (found.least_ps, found.most_ps))
    return Gain(now, then, text, least, most, part_ms=part_ms, change=change)


def _slowest_other(context: Context, change: str) -> tuple[int, str]:
    """What a step of another rank takes after the change without its waits for others, the longest: ps and its name; 0
    where none is known."""
    found = [(0, "")]
    for host in context.hosts:
        if host.rank is None or host is context.pace or host.changes is None or host.account is None:
            continue
        predicted = host.changes.predicted.get(change)
        step_ps, spent = (
            (predicted.then_ps, predicted.causes)
            if predicted
            else (host.account.step_ps, {row.cause: row.ps for row in host.account.rows})
        )
        found.append((step_ps - spent.get(_COMMUNICATION, 0), host.rank.title))
    return max(found)


def predict_without(context: Context, removed_ms: float, what: str) -> Gain:
    """The gain if a part of the loop's thread goes that nothing else waits for: for rules of others, whose part is no
    row of the table of changes."""
    now, then = context.period_ms, max(context.period_ms - removed_ms, 0.0)
    return Gain(now, then, f"{now:.2f} ms per step, minus {removed_ms:.2f} ms of {what}: {then:.2f} ms")


def predict_nothing(context: Context, part_ms: float | None, why: str) -> Gain:
    """An unknown gain, of a part of each step.

    Args:
        why: what the recording lacks, in words that follow `because`.
    """
    return Gain(context.period_ms, None, f"not predictable from this recording, because {why}", part_ms=part_ms)


# ---- actions ---------------------------------------------------------------------------------------------------------
# The order of the actions within an advice, and what each can give.
#
#     Named    what the recording shows of the work, and what to do instead: "index whole batches"
#     str      what suits any work of the class: "do it once, before training"
#     Beside   the same work on other threads or processes: no more than the cores that are free
#     ForTraining   what only a program that trains can do: of a server or a test it is not said
#
# Named ones come first.  Work that moves to other threads or processes is still done: where the program keeps its cores
# busy already, workers take from the step what they save it.

_EVERY, _N = "every N steps", 20  # one in as many leaves 5 % of what it costs: less than steps differ
_WORTH_SAYING = 1.05  # times as fast: 3 % is the least gain that is advised, and starting workers costs as much again
_AS_GOOD = 0.9  # of what less work gives: then workers come first, as they need no change of the work itself
_CORE = 1.0  # what the loop's thread keeps busy while it makes its input


class Named(str):
    """An action on what the recording shows to be done, not on whatever has its class."""

    __slots__ = ()


class Beside(str):
    """An action after which the same work is done on other threads or processes, beside the step."""

    __slots__ = ()


class Once(str):
    """An action that keeps the result of work, which helps where that is the same each time."""

    __slots__ = ()


class ForTraining(str):
    """An action on the backward pass, the update or the batches of a program that trains."""

    __slots__ = ()


def most_beside(context: Context, waits_ms: float) -> float | None:
    """How many times as fast steps are at most once their input is made beside them; None where the number of cores is
    not known, or a device computes.

    All of the work is still done, so that no step takes less than it takes on all cores.  Where it was not recorded how
    many the program uses, its step takes all of them, and its input one.
    """
    cores, used = context.cores, context.pace.cores_used
    if not cores or context.has_device or not context.period_ms:
        return None
    if used is not None:
        return max(cores / max(used / context.quiet, _CORE / 2), 1.0)
    share = min(waits_ms / context.period_ms, 1.0)
    return 1.0 / (1.0 - share + share * _CORE / cores)


def order_actions(actions: Sequence[str]) -> tuple[str, ...]:
    """The actions, each once, those on work that was recorded first."""
    return tuple(sorted(dict.fromkeys(actions), key=lambda each: not isinstance(each, Named)))


def place_actions(
    context: Context, actions: Sequence[str], gain: Gain, waits_ms: float
) -> tuple[tuple[str, ...], Gain]:
    """The actions in their order, with the most that the first of a kind can give, and the gain of the first of them.

    Args:
        gain: without the input's time.
        waits_ms: that time, per step.
    """
    most, whole, actions = most_beside(context, waits_ms), gain.speedup, order_actions(actions)
    if most is None or whole is None or gain.then_ms is None or not any(isinstance(each, Beside) for each in actions):
        return actions, gain
    most = min(most, whole)
    cheaper = [each for each in actions if not isinstance(each, Beside)]
    beside = [
        f"{each}: at most {most:.2g}x on these {context.cores} cores" for each in actions if isinstance(each, Beside)
    ]
    is_named = any(isinstance(each, Named) for each in cheaper)
    if not cheaper or (most >= _AS_GOOD * whole and not is_named):
        least_ms = gain.now_ms / most
        return (*beside, *cheaper), replace(
            gain, then_ms=max(gain.then_ms, least_ms), most_ms=_at_least(gain, least_ms)
        )
    beside = beside if most >= _WORTH_SAYING else []
    said = cheaper[0] + (f": up to {gain.now_ms / gain.least_ms:.2g}x" if gain.least_ms else "")
    first = Named(said) if isinstance(cheaper[0], Named) else said
    return (first, *cheaper[1:], *beside), gain.of_cheaper()


def _at_least(gain: Gain, ms: float) -> float:
    return max(gain.most_ms or ms, ms)


def name_interval(advice: Advice, every: float = 1.0) -> Advice:
    """The advice with a number for N in "every N steps", and what each of these actions gives; that of the first action
    is the gain of the advice.

    Args:
        every: how many steps lie from one time to the next now.
    """
    rare = [_EVERY in action for action in advice.actions]
    if not any(rare):
        return advice
    number = round(_N * max(every, 1.0))
    actions = tuple(action.replace(_EVERY, f"every {number} steps") for action in advice.actions)
    now, then = advice.step_time_ms, advice.predicted_step_time_ms
    if not now or then is None:
        return replace(advice, actions=actions)
    ends = (then, advice.least_step_time_ms, advice.most_step_time_ms)
    left, least, most = (each if not each else round(each + (now - each) / _N, 6) for each in ends)
    seldom = replace(
        advice, predicted_step_time_ms=left, least_step_time_ms=least, most_step_time_ms=most,
        predicted_speedup=round(now / left, 2) if left else None,
        reasoning=f"{advice.reasoning}; with N = {number}, {left:.2f} ms",
    )  # fmt: skip
    gain = describe_speedup(seldom.predicted_speedup or 1.0, *(seldom.speedup_range or (None, None)))[0]
    said = (f"{each}: {gain}" if is_rare else each for each, is_rare in zip(actions[1:], rare[1:], strict=True))
    return replace(seldom if rare[0] else advice, actions=(actions[0], *said))


# ---- rules -----------------------------------------------------------------------------------------------------------

Actions = Mapping[str, tuple[str, ...]]
_MOST_ROWS = 3  # shown


def actions_for(framework: str, actions: Actions) -> tuple[str, ...]:
    """The actions for a framework; those under "" for any framework without its own."""
    return actions.get(framework, actions.get("", ()))


class Op(NamedTuple):
    """An op or kernel that a finding is about: calls and time per step."""

    name: str
    calls: float
    ps: float


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a rule finds in a run.

    Attributes:
        part_ms: time per step that it is about; None if that is not known.
        percent: the share that the threshold is compared with; None for the part's share of the step.
        least_percent: another threshold than the rule's, for this run.
        evidence: the measured facts; detail: what other tools add to them, read only once the finding counts.
        share: how much of the step it is, in words that go before the evidence unless the culprit's sentence says it.
        change: the row of `facts.changes` that is replayed; empty where none is.
        without: the part, in words that follow "replayed without".
        gain: the gain, where it is not that of a change.
        unknown: why nothing is predicted, in words that follow "because".
        parts: where the culprit is looked for, see `name_culprit`; op: the culprit where no line of the program is.
        culprit: what a person can edit, where the finding is about one.
        host: that the finding is about; None for the one that sets the pace.
        rows, intervals: where the evidence is found.
        id, kind, title, actions, tool, confidence: instead of the rule's.
        may_run_beside: its part is work that may run beside the step, which bounds what the first action gives.
        is_indication, state, late: see `Advice`.
    """

    part_ms: float | None = None
    percent: float | None = None
    least_percent: float | None = None
    evidence: str = ""
    detail: Callable[[Context], str] | None = None
    share: str = ""
    change: str = ""
    without: str = ""
    gain: Gain | None = None
    unknown: str = ""
    parts: tuple[str, ...] = ()
    op: Op | None = None
    culprit: Culprit | None = None
    host: HostFacts | None = None
    rows: tuple[Row, ...] = ()
    intervals: tuple[Interval, ...] = ()
    id: str = ""
    kind: str = ""
    title: str = ""
    actions: tuple[str, ...] | None = None
    tool: str = ""
    confidence: float | None = None
    may_run_beside: bool = False
    is_indication: bool = False
    state: str = ""
    late: str = ""


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        id: stable name; the advice's `id` starts with it.
        threshold_percent: the share of the step from which the rule applies: the least gain that is advised, but where
            no gain can be predicted, or what is counted is no share of the step.
        evaluate: a rule that makes its advice itself: returns it for a run and the threshold, or None.
        yields_to: classes of advice that explain the same time better.  If one of them predicts at least half the gain,
            this rule's advice is dropped.
        is_practice: the advice is good practice and names nothing that limits the run: a run with such advice alone is
            said to have no bottleneck.
        of_others: it is about what other threads than the loop's do, which no function of the loop says.
        find: for all other rules: what they find in a run, or None.
        kind, title, tool, confidence: of the advice, see `Advice`.
        actions: what to do, by framework; under "" for any other.
        reword: what the words become once the culprit is known.
    """

    id: str
    threshold_percent: float = LEAST_PERCENT
    evaluate: Callable[[Context, float], Advice | None] | None = None
    yields_to: tuple[str, ...] = ()
    is_practice: bool = False
    of_others: bool = False
    find: Callable[[Context], Finding | None] | None = None
    kind: str = ""
    title: str = ""
    actions: Actions = field(default_factory=dict)
    tool: str = ""
    confidence: float = 0.8
    reword: Callable[[Context, Advice], Advice] | None = None

    def __call__(self, context: Context) -> Advice | None:
        """The rule's advice on a run; None if it does not apply."""
        if self.evaluate is not None:
            return self.evaluate(context, self.threshold_percent)
        found = self.find(context) if self.find is not None else None
        if found is None:
            return None
        percent = context.percent(found.part_ms or 0.0) if found.percent is None else found.percent
        if percent < (self.threshold_percent if found.least_percent is None else found.least_percent):
            return None
        advice = _add_culprit(context, found, _advise(self, context, found))
        advice = replace(advice, is_indication=found.is_indication, state=found.state, late=found.late)
        return self.reword(context, advice) if self.reword is not None else advice


def _advise(rule: Rule, context: Context, found: Finding) -> Advice:
    actions = actions_for(context.framework, rule.actions) if found.actions is None else found.actions
    gain = _gain(context, found)
    if found.may_run_beside:
        actions, gain = place_actions(context, actions, gain, found.part_ms or 0.0)
    if context.infers:
        fitting = (each for each in actions if not isinstance(each, ForTraining))
        actions = tuple(type(each)(each.replace("before training", "ahead of time")) for each in fitting)
    return gain.advice(
        rule=found.id or rule.id,
        kind=found.kind or rule.kind,
        title=found.title or rule.title,
        evidence=found.evidence + (found.detail(context) if found.detail is not None else ""),
        actions=fit_actions(context.device_type, actions),
        tool=found.tool or rule.tool,
        confidence=rule.confidence if found.confidence is None else found.confidence,
        rows=found.rows,
        intervals=found.intervals,
    )


def _gain(context: Context, found: Finding) -> Gain:
    if found.gain is not None:
        return found.gain
    if found.change and not found.unknown:
        return predict_change(context, found.change, found.part_ms or 0.0, found.without)
    return replace(predict_nothing(context, found.part_ms, found.unknown), change=found.change)


def _add_culprit(context: Context, found: Finding, advice: Advice) -> Advice:
    """The advice with its culprit: the line of the program, else the op."""
    if found.culprit is not None:
        return replace(advice, culprit=found.culprit)
    if found.op is not None and not (found.parts and has_culprit(context, found.parts[0])):
        return name_op(context, advice, *found.op)
    if not found.parts and not found.share:
        return advice
    return name_culprit(context, advice, *found.parts, host=found.host, share=found.share)


def op_of(share: Share, steps: int) -> Op:
    """Device work or a call of one name as the culprit of a finding."""
    return Op(share.name, share.calls / steps, share.total_ps / steps)


def rows_of(tool: str, shares: Sequence[Share], steps: int) -> tuple[Row, ...]:
    """The largest work or calls by name as rows of a tool."""
    return tuple(Row(tool, each.name, round(each.total_ps / steps / MS, 3)) for each in shares[:_MOST_ROWS])


def fit_actions(device_type: str, actions: tuple[str, ...]) -> tuple[str, ...]:
    """The actions that a device can follow: none that names a number format which it lacks, or what only devices of
    another maker have."""
    lacks = words_of_others(device_type)
    return tuple(action for action in actions if not any(name in action for name in lacks))


# ---- culprits in words -----------------------------------------------------------------------------------------------
# Names the culprit of an advice: what a person can edit, with how often it runs in a step and for how long.

_MOST_OF = 0.5  # of a part's time: a culprit with less is only the largest part of it
_LITTLE = 0.05  # of a part's time: such a culprit explains nothing
_OF_PYTHON = ("input", "python", "checkpoint", "unknown")  # causes that a line of the program explains, not an op


def name_culprit(
    context: Context, advice: Advice, *parts: str, host: HostFacts | None = None, share: str = ""
) -> Advice:
    """The advice with the culprit of what it is about.

    Args:
        parts: keys of `HostFacts.culprits`; the first of them that takes a considerable part of the step counts.
        host: that the advice is about; None for the one that sets the pace.
        share: how much of the step the advice is about, in words that begin its evidence where the sentence on the
            culprit does not say so already.
    """
    facts = host or context.pace
    row = _find_part(facts, parts)
    if facts.account is None or row is None or row.culprit is None:
        advice = replace(advice, evidence=_join(": ", share, advice.evidence))
        return replace(advice, actions=(*advice.actions, *_recording_action(context, advice, None, parts)))
    is_most, of_account = row.culprit.ps >= _MOST_OF * row.ps, row in facts.account.rows
    if is_most and (share or of_account):
        percent, account = context.percent(row.culprit.ps / MS / context.quiet), facts.account.representative_step
        counted = f"{percent:.1f} % of {account.each_step} is {cause_words(row.cause)}: "
        counted += describe_culprit(row.culprit)
        sentence = cause_sentence(facts.account, row) if of_account else counted
        evidence = _join("; ", sentence, advice.evidence)
    else:
        part = "most of it is" if is_most else "the largest part is"
        evidence = f"{_join(': ', share, advice.evidence)}; {part} {describe_culprit(row.culprit)}"
    actions = (*advice.actions, *_recording_action(context, advice, row.culprit, (row.cause,)))
    return replace(advice, culprit=row.culprit, evidence=evidence, actions=actions)


def _join(between: str, first: str, second: str) -> str:
    second = second.removeprefix("; ")
    return f"{first}{between}{second}" if first and second else first or second


def has_culprit(context: Context, part: str) -> bool:
    """Whether a part is followed to a line of the program, or to an op that explains more than a little of it."""
    return _find_part(context.pace, (part,)) is not None


def name_op(context: Context, advice: Advice, name: str, calls: float, ps: float) -> Advice:
    """The advice with an op or kernel as its culprit.

    Args:
        calls, ps: per step.
    """
    culprit = Culprit(name, None, None, name, None, max(round(calls), 1), round(ps), None)
    if not context.period_ms or not ps:
        return replace(advice, culprit=culprit)
    share = f"{context.percent(ps / MS):.1f} % of each step is {describe_culprit(culprit)}"
    return replace(advice, culprit=culprit, evidence=f"{share}; {advice.evidence}")


def _find_part(facts: HostFacts, parts: tuple[str, ...]) -> AccountRow | None:
    """The first of the parts that was counted and has a culprit that explains more than a little of it."""
    rows = [facts.culprits[part] for part in parts if part in facts.culprits]
    return next((row for row in rows if row.culprit is not None and row.culprit.ps >= _LITTLE * row.ps), None)


def _recording_action(
    context: Context, advice: Advice, culprit: Culprit | None, causes: tuple[str, ...]
) -> tuple[str, ...]:
    """What to record to see the line, where the cause is Python that was not recorded."""
    of_python = any(cause in _OF_PYTHON for cause in causes)
    of_dataset = "input" in causes and context.pace.feed.has_iterators
    if context.python_recorded or (culprit and culprit.file) or not of_python or of_dataset:
        return ()
    what = "what within that line takes it" if culprit and culprit.where else "the line"
    text = f"to see {what}, {remedy(PYTHON_CALLS, context.recorder)}"
    return () if any("with_stack" in action or "python_tracer" in action for action in advice.actions) else (text,)


# ---- the list of rules -----------------------------------------------------------------------------------------------
# The list of rules: those of this package, registered ones, and those of other packages.
#
# Rules that share words or exclude one another share a file.  A file is loaded and its rules are asked only where a run
# has what all of them are about: so an answer visits the files that it is made in, and a rule needs no guards.

GROUP = "stepscope.rules"
# Imported before the package gives its name to the function `rules`.
_FOLDER = import_module("stepscope.analysis.advice.rules").__name__

FILES = (
    "lines", "recompilation", "waiting", "transfer", "checkpoint", "python_overhead", "dispatch", "device_idle",
    "straggler", "communication", "redundant_compute", "set_up", "memory", "device_work", "input_work", "model",
)  # fmt: skip
"""The files in `rules/`, in the order in which rules are asked; `Context.subjects` says which a run can be about."""

_registered: dict[str, Rule] = {}


def own_rules(context: Context | None = None) -> tuple[Rule, ...]:
    """The rules of this package: all, or those of the files that can apply to a run."""
    files = [name for name in FILES if context is None or name in context.subjects]
    return tuple(rule for name in files for rule in import_module(f"{_FOLDER}.{name}").RULES)


def rules(context: Context | None = None) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """All rules, or those that can apply to a run, and a warning for each entry point without one."""
    added = plugins_of(GROUP, Rule)
    return (*own_rules(context), *added.found, *_registered.values()), added.warnings


def register(rule: Rule) -> Rule:
    """Adds a rule for the rest of the process.  It replaces a registered rule with the same id.

    Raises:
        UsageError: it is not a rule, or its id is taken by a rule of this package.
    """
    if not isinstance(rule, Rule):
        raise UsageError(f"{rule!r} is not a rule", hint="pass a stepscope.analysis.advice.Rule")
    if any(rule.id == known.id for known in own_rules()):
        raise UsageError(f"the rule id {rule.id!r} is taken", hint="choose another id")
    _registered[rule.id] = rule
    return rule
