"""The gain of a change: what the replay of the step's model says, or why it says nothing."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Advice, Interval, Row
from stepscope.records import dataclass

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
