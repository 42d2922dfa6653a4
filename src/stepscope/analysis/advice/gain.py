"""Predicts the gain of a change: the step time without a part, bounded by what becomes critical then."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Advice, Interval, Row
from stepscope.analysis.facts.loop_events import Activity
from stepscope.records import dataclass

_MOST_RECORDING = 0.75  # of a part: at least the rest of it is assumed to be its own time
_MEASURABLE = 0.01  # of the step
_WORTH_SAYING = 0.05  # of the step
_SEEN = 0.005  # a smaller share rounds to 0 %
_NOISE = 0.07  # of the computation: its time varies this much without a cause
# Cost of recording one event: with shapes and memory for PyTorch, with metadata for the others.
_EVENT_PS = {"pytorch": 750_000, "tensorflow": 900_000}
_LEAST_EVENT_PS = 250_000
# A recorded Python call costs at least this much.  Even with few calls, Python runs 1.5 times as long while recorded:
# CPython (up to 3.11) checks for a recorder after every instruction.
_PYTHON_CALL_PS = 450_000
_OF_PYTHON = 1 - 1 / 1.5


_OF_LAUNCHING = ("graph", "waits", "optimizer")  # changes of how device work is launched


@dataclass(frozen=True)
class Gain:
    """A predicted step time.

    Attributes:
        now_ms: the step time now, without the cost of recording the removed part.
        then_ms: the step time after the change; None if nothing can be foretold.
        reasoning: how `then_ms` is computed.
        eased: time of the remaining work without contention, as a share of its time now.
        least_ms, most_ms: the range of `then_ms`; None to estimate it.
        part_ms: time of the part, as measured; None if that is the gain.
    """

    now_ms: float
    then_ms: float | None
    reasoning: str
    eased: float = 1.0
    least_ms: float | None = None
    most_ms: float | None = None
    part_ms: float | None = None

    @property
    def speedup(self) -> float | None:
        """Step time now over step time then; None if nothing is left."""
        return round(self.now_ms / self.then_ms, 2) if self.then_ms else None

    @property
    def percent(self) -> float:
        """Percent of the step that the change saves."""
        return (
            100.0 * (self.now_ms - self.then_ms) / self.now_ms if self.now_ms > 0 and self.then_ms is not None else 0.0
        )

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
        if self.eased <= 1 - _WORTH_SAYING:
            evidence += f"; the rest would also take about {100 * (1 - self.eased):.0f} % less time without contention"
        return Advice(
            id=rule, kind=kind, title=title, evidence=evidence, actions=actions, tool=tool, confidence=confidence,
            rows=rows, intervals=intervals, predicted_speedup=self.speedup, step_time_ms=round(self.now_ms, 3),
            predicted_step_time_ms=_round(self.then_ms), least_step_time_ms=_round(self.least_ms),
            most_step_time_ms=_round(self.most_ms), part_ms=_round(self.part_ms), reasoning=self.reasoning,
        )  # fmt: skip


def _round(ms: float | None) -> float | None:
    return None if ms is None else round(ms, 3)


@dataclass(frozen=True)
class Bound:
    """A lower bound of the step time, and what sets it."""

    ms: float
    why: str


def recording_ms(context: Context, *activities: Activity) -> float:
    """Cost of recording per step, in some activities of the loop's thread or in all of them.

    The costs per event were measured with `bench.bottlenecks`: see docs/advice.md.
    """
    loop = context.loop
    if loop is None:
        return 0.0
    names = [activity.name.lower() for activity in activities] or list(loop.recorded)
    found = [loop.recorded[name] for name in names if name in loop.recorded]
    events = sum(each.events for each in found) * _event_ps(context)
    python = sum(max(each.python_calls * _PYTHON_CALL_PS, each.python_ps * _OF_PYTHON) for each in found)
    return context.per_step(events + python) / MS + (0.0 if activities else _helper_recording_ms(context))


def events_ms(context: Context, events: float) -> float:
    """Cost per step of recording this many events in all steps together."""
    return context.per_step(events * _event_ps(context)) / MS


def recorded_ops_ms(context: Context) -> float:
    """Time that recording adds to a step's computation on the host's threads.

    An op is recorded before it starts and after it ends, so only the ops inside it make it longer.
    """
    here = (Activity.OP, Activity.SYNC) if context.framework == "pytorch" else (Activity.OP,)
    outside = events_ms(context, context.work.ops if context.work else 0)
    return max(recording_ms(context, *here) - outside, 0.0) + _helper_recording_ms(context)


def _helper_recording_ms(context: Context) -> float:
    return events_ms(context, context.loop.helper_events if context.loop else 0) * critical_path_share(context)


def _event_ps(context: Context) -> int:
    return _EVENT_PS.get(context.framework, _LEAST_EVENT_PS)


def critical_path_share(context: Context) -> float:
    """As `WorkFacts.on_critical_path`; 1 if the work is unknown."""
    return context.work.critical_path_share if context.work is not None else 1.0


def uncontended_share(context: Context) -> float:
    """Time of the ops without contention, as a share of their time now.

    Ops are compared with the best quarter of the steps.  Their time varies by `_NOISE` in any run.
    """
    work = context.work
    if work is None or context.has_device or not work.compute_ps:
        return 1.0
    return 1.0 - max(work.contention_ps / work.compute_ps - _NOISE, 0.0)


def _share_after_removal(context: Context, left_ms: float, competes_ms: float) -> float:
    """Time of the remaining work once the removed part no longer competes with it, as a share of its time now.

    The removed part costs the rest at most its own run time.  The ops lose anything beyond that to other programs.
    """
    most = min(competes_ms / left_ms, 1.0) if left_ms > 0 else 0.0
    return max(uncontended_share(context), 1.0 - most)


def most_recording_ms(recorded_ms: float, part_ms: float) -> float:
    """Cost of recording in a part of a step, limited so that enough of the part is left."""
    return min(recorded_ms, _MOST_RECORDING * part_ms)


def predict_with_only(context: Context, left_ms: float, what: str, recorded_ms: float | None = None) -> Gain:
    """The gain if only `left_ms` of the step remains.

    Args:
        left_ms: what remains, without the cost of recording it.
        what: what was removed, in words.
        recorded_ms: cost of recording in the step; None to estimate it from the events.
    """
    period = context.period_ms
    recorded = recording_ms(context) if recorded_ms is None else recorded_ms
    recording = _drop_immeasurable(most_recording_ms(recorded, period), period)
    critical = max(Bound(left_ms, ""), _other_workers_bound(context, ()), key=lambda bound: bound.ms)
    now = period - recording
    then = min(critical.ms, now)
    return Gain(now, then, _reasoning(period, now - then, what, critical, stays=recording, then=then))


def predict_without(
    context: Context,
    removed_ms: float,
    what: str,
    bounds: Sequence[Bound] = (),
    parts: Sequence[Activity] = (),
    competes_ms: float = 0.0,
    recorded_ms: float = 0.0,
    computes: bool = False,
    change: str = "",
) -> Gain:
    """The gain if a part of the step's critical path is removed.

    With a device it is that of a change in the replay, see `replayed`.

    Args:
        change: its name among `facts.changes`; empty if no change is like it.
        removed_ms: time of the part on the critical path, per step.
        what: the part, in words.
        bounds: what may become critical then.
        parts: the activities that make up the part; their recording cost is removed with them.
        competes_ms: time per step in which the part, or the work behind it, competes with the rest for cores, memory or
            caches.  The rest is faster without it.
        recorded_ms: cost of recording on the threads that the part waits for.
        computes: the part is computation itself, or `bounds` say how much computation remains.
    """
    if change and context.has_device:
        return replayed(context, change, removed_ms, what)
    period = context.period_ms
    left = max(period - removed_ms, 0.0)
    eased = _share_after_removal(context, left, competes_ms)
    hidden = Bound(0.0 if computes else _other_threads_ms(context) * eased, "the computation on other threads")
    critical = max(
        (Bound(left * eased, ""), _other_workers_bound(context, parts), hidden, *bounds), key=lambda bound: bound.ms
    )
    critical = Bound(min(critical.ms, period), critical.why)
    inside = recording_ms(context, *parts) if parts else 0.0
    gone = _drop_immeasurable(most_recording_ms(inside + recorded_ms, removed_ms), period)
    # With a device, recording on the host overlaps device work, so it does not lengthen the rest.
    rest = 0.0 if context.has_device else max(recording_ms(context) - inside, 0.0)
    stays = _drop_immeasurable(most_recording_ms(rest, left), period)
    now = period - gone - stays
    critical = Bound(critical.ms * (1 - stays / left) if left else critical.ms, critical.why)
    then = min(critical.ms, now)
    reasoning = _reasoning(period, removed_ms, what, critical, eased=eased, gone=gone, stays=stays, then=then)
    return Gain(now, then, reasoning, eased)


def replayed(context: Context, change: str, part_ms: float, what: str) -> Gain:
    """The gain of a change by the replay of the step's model; unknown if the model does not carry it.

    Args:
        change: its name among `facts.changes`.
        part_ms: time per step of the part that the change is about.
        what: the part, in words.
    """
    changes = context.changes
    why = "no steps were found, so none can be replayed" if changes is None else changes.why_not
    if changes is not None and change in _OF_LAUNCHING and not changes.are_launches_linked:
        why = "the trace does not link device work to its launches"
    if changes is None or why is not None:
        return Gain(context.period_ms, None, f"no gain is foretold: {why}", part_ms=part_ms)
    found = changes.foretold.get(change)
    if found is None:
        return Gain(context.period_ms, context.period_ms, f"the step does not wait for {what}", part_ms=part_ms)
    now, then = found.now_ps / MS, min(found.then_ps, found.now_ps) / MS
    text = f"{now:.2f} ms in the median step, replayed without {what}: {then:.2f} ms; {'; '.join(found.reasons)}"
    return Gain(now, then, text, least_ms=found.least_ps / MS, most_ms=found.most_ps / MS, part_ms=part_ms)


def _other_threads_ms(context: Context) -> float:
    """Time per step in which threads other than the loop's compute.

    The loop's own work overlaps it now.  The step still needs this time when the loop does less.
    """
    work = context.work
    if context.has_device or context.loop is None or work is None:
        return 0.0
    here = context.part_ms(Activity.OP) + work.taken_in_ps / max(work.steps, 1) / MS
    return max(context.compute_ms - recorded_ops_ms(context) - here, 0.0)


def _drop_immeasurable(recording: float, period: float) -> float:
    """The cost of recording; 0 if it is too small to measure."""
    return recording if recording >= _MEASURABLE * period else 0.0


def _other_workers_bound(context: Context, parts: Sequence[Activity]) -> Bound:
    """The bound set by the other workers, which the change does not speed up: their work without the same activities.

    There is none with devices: there the replay of the host that sets the pace says what a change gives.
    """
    if context.has_device:
        return Bound(0.0, "")
    rest = [
        Bound(other.own_ms - other.part_ms(*parts), f"the work of {host.host}")
        for host in context.hosts
        if host is not context.pace
        for other in [context.of_host(host)]
    ]
    return max(rest, key=lambda bound: bound.ms, default=Bound(0.0, ""))


def _reasoning(
    period: float,
    removed: float,
    what: str,
    critical: Bound,
    *,
    then: float,
    stays: float,
    gone: float = 0.0,
    eased: float = 1.0,
) -> str:
    """How the step time after the change is computed, with figures that add up.

    The cost of recording is part of what was removed (`gone`) and of what stays (`stays`).
    """
    text = f"{period:.2f} ms per step, minus {removed:.2f} ms of {what}"
    if gone:
        text += f" ({gone:.2f} ms of that is recording cost)"
    if critical.why:
        text += f"; then {critical.why} takes {critical.ms:.2f} ms"
        return f"{text}{' without recording cost' if stays else ''}: {then:.2f} ms"
    if stays:
        text += f", minus {stays:.2f} ms of {'further ' if gone else ''}recording cost"
    if 1 - eased >= _SEEN:
        text += f"; the rest takes {100 * (1 - eased):.0f} % less time without contention"
    return f"{text}: {then:.2f} ms"
