"""The type of a rule: a row of the table of advice, and how a row is evaluated on a run.

A row says what it is about in words, and has one function that finds it in a run.  The rest is the same for all: the
share decides, the replay says the gain, and the account names the culprit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

from stepscope.analysis.account.account import AccountRow
from stepscope.analysis.account.account_text import cause_sentence, cause_words, describe_culprit
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.advice.actions import ForTraining, place_actions
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import Gain, predict_change, predict_nothing
from stepscope.analysis.advice.items import Advice, Interval, Row
from stepscope.analysis.facts.device_facts import Share
from stepscope.analysis.facts.host_facts import HostFacts
from stepscope.analysis.steps.verdict import LEAST_PERCENT
from stepscope.analysis.trace.remedies import PYTHON_CALLS, remedy
from stepscope.records import dataclass
from stepscope.vocabulary.patterns import Pattern

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


# ---- what an accelerator can do --------------------------------------------------------------------------------------

_BEFORE_AMPERE = Pattern(
    r"(?i).*(?:\b(?:V100|P100|P40|P4|T4|T40|K80|K40|M40|M60|GTX|TITAN|RTX 20\d\d|Quadro RTX)\b"
    r"|V100|compute capability [3-7]\.)"
)


def has_bfloat16(device_type: str) -> bool:
    """Whether a device computes in bfloat16 and TensorFloat-32; true for an unknown one.

    >>> has_bfloat16("Tesla V100-SXM2-16GB"), has_bfloat16("NVIDIA GPU (Turing, compute capability 7.5)")
    (False, False)
    >>> has_bfloat16("NVIDIA H100 80GB HBM3"), has_bfloat16("")
    (True, True)
    """
    return _BEFORE_AMPERE.match(device_type) is None


# Compute capability 8.9 and up multiply in FP8, as do AMD's devices from MI300 on.
_BEFORE_FP8 = Pattern(
    r"(?i).*(?:\b(?:A[38]00|A100|A800|A10G?|A16|A2|A30|A40|RTX (?:A\d000|30\d\d)|MI[12]\d\d)\b"
    r"|compute capability 8\.[0-7]|gfx90)"
)
_OF_AMD = Pattern(r"(?i).*(?:\bAMD\b|Radeon|Instinct|\bMI\d{2,3}X?\b|\bgfx\d)")
_OF_OTHERS = Pattern(r"(?i).*(?:Ascend|\bNPU|\bTPU|\bXPU|Gaudi|\bHPU)")


def fit_actions(device_type: str, actions: tuple[str, ...]) -> tuple[str, ...]:
    """The actions that a device can follow: none that names a number format which it lacks, or what only devices of
    another maker have.

    >>> fit_actions("AMD Instinct MI300X", ("cuDNN's attention", "FP8")), fit_actions("NVIDIA A100-SXM4-80GB", ("FP8",))
    (('FP8',), ())
    """
    lacks = [*_FORMATS] * (not has_bfloat16(device_type))
    if lacks or _BEFORE_FP8.match(device_type):
        lacks.append("FP8")
    is_amd = _OF_AMD.match(device_type) is not None
    if is_amd or _OF_OTHERS.match(device_type):
        lacks += _OF_NVIDIA
    if device_type and not is_amd:
        lacks += _AMD_ALONE
    return tuple(action for action in actions if not any(name in action for name in lacks))


_FORMATS = ("bfloat16", "bf16", "TensorFloat-32", "tensorfloat32")
_OF_NVIDIA = ("cudnn", "cuDNN", "`ncu`")
_AMD_ALONE = ("MIOPEN", "`rocprof-compute`")


# ---- culprits in words -----------------------------------------------------------------------------------------------
# Names the culprit of an advice: what a person can edit, with how often it runs in a step and for how long.

_MOST_OF = 0.5  # of a part's time: a culprit with less is only the largest part of it
_LITTLE = 0.05  # of a part's time: such a culprit explains nothing
_OF_PYTHON = ("input", "python", "checkpoint")  # causes that a line of the program explains, not an op


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
