"""What a change would gain: the step time without a part, bounded by what then becomes critical."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepscope.analysis.advice.context import MS, Context, busy_ps
from stepscope.analysis.advice.items import Advice, Interval, Row
from stepscope.analysis.facts.loop_events import Activity
from stepscope.records import dataclass

_MOST_RECORDING = 0.75  # of a part: what it would take without its recording is never taken to be less than the rest
_MEASURABLE = 0.01  # of the step
_WORTH_SAYING = 0.05  # of the step
_SEEN = 0.005  # what less of a part rounds to 0 %
_NOISE = 0.07  # of the computation: by so much its time varies without a cause
# What recording one event costs: PyTorch's with shapes and memory, the others' with their metadata.
_EVENT_PS = {"pytorch": 750_000, "tensorflow": 900_000}
_LEAST_EVENT_PS = 250_000
# A recorded Python call costs at least this much.  Where there are few, Python itself still runs 1.5 times as long,
# since CPython (up to 3.11) checks for a recorder after every instruction.
_PYTHON_CALL_PS = 450_000
_OF_PYTHON = 1 - 1 / 1.5


@dataclass(frozen=True)
class Gain:
    """A predicted step time.

    Attributes:
        now_ms: the step time now, without what the recording of the removed part cost.
        then_ms: the step time after the change.
        reasoning: how `then_ms` comes about.
        eased: the share of its time that what stays takes when nothing competes with it.
    """

    now_ms: float
    then_ms: float
    reasoning: str
    eased: float = 1.0

    @property
    def speedup(self) -> float | None:
        """Now over then; None if nothing is left."""
        return round(self.now_ms / self.then_ms, 2) if self.then_ms > 0 else None

    @property
    def percent(self) -> float:
        """How much of the step would go."""
        return 100.0 * (self.now_ms - self.then_ms) / self.now_ms if self.now_ms > 0 else 0.0

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
            evidence += f"; undisturbed, the rest of the step would take about {100 * (1 - self.eased):.0f} % less time"
        return Advice(
            id=rule, kind=kind, title=title, evidence=evidence, actions=actions, tool=tool, confidence=confidence,
            rows=rows, intervals=intervals, predicted_speedup=self.speedup, step_time_ms=round(self.now_ms, 3),
            predicted_step_time_ms=round(self.then_ms, 3), reasoning=self.reasoning,
        )  # fmt: skip


@dataclass(frozen=True)
class Bound:
    """What keeps a step from becoming shorter than `ms`."""

    ms: float
    why: str


def recording_ms(context: Context, *activities: Activity) -> float:
    """What recording cost in a step, in some activities of the loop's thread or in all of it.

    Measured with `bench.bottlenecks`: see docs/advice.md.
    """
    loop = context.loop
    if loop is None:
        return 0.0
    names = [activity.name.lower() for activity in activities] or list(loop.recorded)
    found = [loop.recorded[name] for name in names if name in loop.recorded]
    events = sum(each.events for each in found) * _event_ps(context)
    python = sum(max(each.python_calls * _PYTHON_CALL_PS, each.python_ps * _OF_PYTHON) for each in found)
    return context.per_step(events + python) / MS + (0.0 if activities else _helpers_ms(context))


def events_ms(context: Context, events: float) -> float:
    """What recording so many events, of all steps together, cost in a step."""
    return context.per_step(events * _event_ps(context)) / MS


def recorded_ops_ms(context: Context) -> float:
    """What recording made the computation of a step longer, on threads of the host: an op records itself before it
    begins and after it ends, so only the ops inside it make it longer."""
    here = (Activity.OP, Activity.SYNC) if context.framework == "pytorch" else (Activity.OP,)
    outside = events_ms(context, context.work.ops if context.work else 0)
    return max(recording_ms(context, *here) - outside, 0.0) + _helpers_ms(context)


def _helpers_ms(context: Context) -> float:
    return events_ms(context, context.loop.helper_events if context.loop else 0) * on_critical_path(context)


def _event_ps(context: Context) -> int:
    return _EVENT_PS.get(context.framework, _LEAST_EVENT_PS)


def on_critical_path(context: Context) -> float:
    """As `WorkFacts.critical_path_share`; 1 where nothing is known of the work."""
    return context.work.critical_path_share if context.work is not None else 1.0


def calm(context: Context) -> float:
    """The share of the time of what stays that it takes when nothing competes with it.

    Ops are compared with the best quarter of the steps.  By `_NOISE` their time varies in any run.
    """
    work = context.work
    if work is None or context.has_device or not work.compute_ps:
        return 1.0
    return 1.0 - max(work.contention_ps / work.compute_ps - _NOISE, 0.0)


def _eased(context: Context, left_ms: float, competes_ms: float, crowded: float | None) -> float:
    """The share of its time that what stays takes without what competes with it.  That can take no more from the rest
    than it runs itself: what the ops lose beyond that, other programs on the machine take."""
    most = min(competes_ms / left_ms, 1.0) if left_ms > 0 else 0.0
    return max(eased_by(context, crowded), 1.0 - most)


def eased_by(context: Context, crowded: float | None) -> float:
    """As `calm`, and where there is a second estimate, between the two."""
    return calm(context) if crowded is None else math.sqrt(calm(context) * crowded)


def most_recording_ms(recorded_ms: float, part_ms: float) -> float:
    """What recording cost in a part of a step: never so much that hardly anything would be left of the part."""
    return min(recorded_ms, _MOST_RECORDING * part_ms)


def with_only(context: Context, left_ms: float, what: str, recorded_ms: float | None = None) -> Gain:
    """A step of which only so much is left.

    Args:
        left_ms: what is left, without what recording it cost.
        what: what was removed, in words.
        recorded_ms: what recording cost in the step; None to take it from its events.
    """
    period = context.period_ms
    recorded = recording_ms(context) if recorded_ms is None else recorded_ms
    recording = _worth(most_recording_ms(recorded, period), period)
    critical = max(Bound(left_ms, ""), _others(context, ()), key=lambda bound: bound.ms)
    now = period - recording
    then = min(critical.ms, now)
    return Gain(now, then, _reasoning(period, now - then, what, critical, stays=recording, then=then))


def without(
    context: Context,
    removed_ms: float,
    what: str,
    bounds: Sequence[Bound] = (),
    parts: Sequence[Activity] = (),
    competes_ms: float = 0.0,
    recorded_ms: float = 0.0,
    computes: bool = False,
    crowded: float | None = None,
) -> Gain:
    """The step without a part of its critical path.

    Args:
        removed_ms: how long the part takes on the critical path of a step.
        what: the part, in words.
        bounds: what may become critical then.
        parts: the activities that the part consists of; what recording them cost goes with them.
        competes_ms: how long in a step the part, or what makes it, takes cores, memory or caches from what stays, which
            is faster without it.
        recorded_ms: what recording cost threads that the part waits for.
        computes: the part is computation itself, or `bounds` say how much of that stays.
        crowded: the share of its time that what stays would take by the number of cores, where that is known: a second
            estimate beside what the best steps show.
    """
    period = context.period_ms
    left = max(period - removed_ms, 0.0)
    eased = _eased(context, left, competes_ms, crowded)
    hidden = Bound(0.0 if computes else _elsewhere_ms(context) * eased, "the computation on other threads")
    critical = max((Bound(left * eased, ""), _others(context, parts), hidden, *bounds), key=lambda bound: bound.ms)
    critical = Bound(min(critical.ms, period), critical.why)
    inside = recording_ms(context, *parts) if parts else 0.0
    gone = _worth(most_recording_ms(inside + recorded_ms, removed_ms), period)
    # With a device the host records while the device works on, so what stays is not longer by it.
    rest = 0.0 if context.has_device else max(recording_ms(context) - inside, 0.0)
    stays = _worth(most_recording_ms(rest, left), period)
    now = period - gone - stays
    critical = Bound(critical.ms * (1 - stays / left) if left else critical.ms, critical.why)
    then = min(critical.ms, now)
    reasoning = _reasoning(period, removed_ms, what, critical, eased=eased, gone=gone, stays=stays, then=then)
    return Gain(now, then, reasoning, eased)


def _elsewhere_ms(context: Context) -> float:
    """Time of a step in which threads other than the loop's compute.  Whatever the loop does meanwhile hides it, but
    the step takes it all the same when the loop does less."""
    work = context.work
    if context.has_device or context.loop is None or work is None:
        return 0.0
    here = context.part_ms(Activity.OP) + work.taken_in_ps / max(work.steps, 1) / MS
    return max(context.compute_ms - recorded_ops_ms(context) - here, 0.0)


def _worth(recording: float, period: float) -> float:
    """What recording cost; nothing where it is less than anyone could measure."""
    return recording if recording >= _MEASURABLE * period else 0.0


def _others(context: Context, parts: Sequence[Activity]) -> Bound:
    """The other workers, who do not get faster by it: their work without the same activities.  With devices the loops
    of the hosts do not tell how long a worker works."""
    if context.has_device:
        return Bound(0.0, "")
    rest = [
        (
            host.host,
            (busy_ps(loop) - sum(loop.activity_ps.get(part.name.lower(), 0) for part in parts) / loop.steps) / MS,
        )
        for host in context.hosts
        if host is not context.pace and (loop := host.loop) is not None
    ]
    host, time = max(rest, key=lambda each: each[1], default=("", 0.0))
    return Bound(time, f"the work of {host}")


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
    """How the step time after the change comes about, with figures that add up.  What recording cost is part of what
    was removed (`gone`) and of what stays."""
    text = f"{period:.2f} ms a step, less {removed:.2f} ms of {what}"
    if gone:
        text += f" (recording cost {gone:.2f} ms of that)"
    if critical.why:
        text += f"; then {critical.why} takes {critical.ms:.2f} ms"
        return f"{text}{' without recording' if stays else ''}: {then:.2f} ms"
    if stays:
        text += f", less {stays:.2f} ms that recording cost{' besides' if gone else ''}"
    if 1 - eased >= _SEEN:
        text += f"; the rest takes {100 * (1 - eased):.0f} % less time when nothing competes with it"
    return f"{text}: {then:.2f} ms"
