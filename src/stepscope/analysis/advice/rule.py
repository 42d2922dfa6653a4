"""The type of a rule: a row of the table of advice, and how a row is evaluated on a run.

A row says what it is about in words, and has one function that finds it in a run.  The rest is the same for all: the
share decides, the replay says the gain, and the account names the culprit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.advice.actions import ForTraining
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import Gain, predict_change, predict_nothing
from stepscope.analysis.advice.hardware import fit_actions
from stepscope.analysis.advice.items import Advice, Interval, Row
from stepscope.analysis.advice.naming import has_culprit, name_culprit, name_op
from stepscope.analysis.facts.device_facts import Share
from stepscope.analysis.facts.host_facts import HostFacts
from stepscope.analysis.steps.verdict import LEAST_PERCENT
from stepscope.records import dataclass

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
        advice = _name(context, found, _advise(self, context, found))
        return self.reword(context, advice) if self.reword is not None else advice


def _advise(rule: Rule, context: Context, found: Finding) -> Advice:
    actions = actions_for(context.framework, rule.actions) if found.actions is None else found.actions
    if context.infers:
        fitting = (each for each in actions if not isinstance(each, ForTraining))
        actions = tuple(type(each)(each.replace("before training", "ahead of time")) for each in fitting)
    return _gain(context, found).advice(
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


def _name(context: Context, found: Finding, advice: Advice) -> Advice:
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
