"""The details and links of one event, or of a scope of a program."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.find_steps import HostSteps, steps_of
from stepscope.analysis.timeline.index import index_of, is_drawn
from stepscope.analysis.timeline.projection import projection_of, scope_name, scope_place
from stepscope.analysis.trace.attribution import attribute
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I32, I64
from stepscope.model.trace import StatValue
from stepscope.records import dataclass
from stepscope.vocabulary.python import is_of_user, place_of
from stepscope.vocabulary.torch import MODULE_PREFIX

DEEPEST_STACK = 200
MOST_PARTNERS = 50
_LONGEST_NAME = 180
LONGEST_TEXT = 4000
"""The characters shown of a stat; a program in a stat may have megabytes."""


@dataclass(frozen=True)
class Spot:
    """An event's place: enough to name it and to go there.

    Attributes:
        event: row in the trace, or the number of a scope; `name`: its name; `kind`: its kind.
        line: row of its line; `lane`: the row of that line in which it is drawn.
        start_ps, duration_ps: its time.
    """

    event: int
    name: str
    kind: str
    line: int
    lane: int
    start_ps: int
    duration_ps: int


@dataclass(frozen=True)
class Details:
    """What an event's own line and stats say.

    Attributes:
        spot: the event.
        full_name: its name in full, which `spot.name` may shorten.
        self_ps: its time without that of the events directly inside it; None where the events of its line do not nest.
        around: the events that enclose it, the outermost first.
        around_hidden: the number of further, outer events that enclose it.
        layer: the innermost module around it; `place`: the line of the innermost function of the program around it,
            such as `model.py:41`; None where none was recorded.
        inside: the number of events inside it; `first_inside`: the first of them.
        previous, next: its neighbours in the row in which it is drawn.
        stats: name and value of every stat.
    """

    spot: Spot
    full_name: str
    self_ps: int | None
    around: tuple[Spot, ...]
    around_hidden: int
    layer: str | None
    place: str | None
    inside: int
    first_inside: Spot | None
    previous: Spot | None
    next: Spot | None
    stats: dict[str, StatValue]


@dataclass(frozen=True)
class Links:
    """How an event is linked to others.

    Attributes:
        step: the name of its step, None if it belongs to none; `step_number`: the step's number.
        op: the op to which its device work belongs; None if it is not device work or the op is unknown.
        cause: the call that launched it or handed it to its thread; None if not recorded.
        effects: the events that it caused, in order of time; `effects_hidden`: how many more there are.
    """

    step: str | None
    step_number: int | None
    op: str | None
    cause: Spot | None
    effects: tuple[Spot, ...]
    effects_hidden: int


def spot_of(trace: HostTrace, event: int, own_code: bool = False) -> Spot:
    """The place of an event or a scope; its lane is -1 where it is folded.

    Raises:
        UsageError: there is no such event.
    """
    if (place := scope_place(trace, event)) is not None:
        return _spot_of_scope(trace, place)
    return Spot(
        event=event,
        name=short_name(trace, int(trace.events.type[event])),
        kind=EventKind(trace.events.kind[event]).name.lower(),
        line=int(trace.events.line[event]),
        lane=int(index_of(trace, own_code).lane[event]),
        start_ps=int(trace.events.start_ps[event]),
        duration_ps=int(trace.events.duration_ps[event]),
    )


def _spot_of_scope(trace: HostTrace, place: int) -> Spot:
    found = projection_of(trace)
    return Spot(
        event=len(trace.events) + place,
        name=scope_name(trace, int(found.type[place])) or "",
        kind=EventKind.SCOPE.name.lower(),
        line=len(trace.lines) + int(found.line[place]),
        lane=int(found.index.lane[place]),
        start_ps=int(found.index.rows.start[place]),
        duration_ps=int(found.index.rows.duration[place]),
    )


def short_name(trace: HostTrace, event_type: int) -> str:
    """The name that slices of a type show; of a long name the start and the end."""
    types = trace.event_types
    name = trace.strings[types.display_name[event_type] or types.name[event_type]] or "(no name)"
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 41]}…{name[-40:]}"


def details_of(trace: HostTrace, event: int, own_code: bool = False) -> Details:
    """What an event's own line and stats say; quick.  Raises UsageError if there is no such event."""
    if (place := scope_place(trace, event)) is not None:
        return _details_of_scope(trace, place)
    spot = spot_of(trace, event, own_code)
    around = _events_around(trace, event)
    self_ps, inside = _find_inside(trace, spot_of(trace, event))
    before, after = _find_neighbours(trace, spot, own_code)
    layer, of_program = _find_place(trace, around[-DEEPEST_STACK:])
    return Details(
        spot=spot,
        full_name=trace.name_of(event)[:LONGEST_TEXT],
        self_ps=self_ps,
        around=tuple(spot_of(trace, row, own_code) for row in around[-DEEPEST_STACK:].tolist()),
        around_hidden=max(len(around) - DEEPEST_STACK, 0),
        layer=layer,
        place=of_program,
        inside=len(inside),
        first_inside=spot_of(trace, int(inside[0]), own_code) if len(inside) else None,
        previous=before,
        next=after,
        stats=trace.stats_of_event(event),
    )


def _events_around(trace: HostTrace, event: int) -> I64:
    """The drawn events of its line that enclose an event, the outermost first."""
    start, first = trace.events.start_ps, int(trace.lines.event_begin[trace.events.line[event]])
    ends = start[first:event] + trace.events.duration_ps[first:event]
    around = (ends > start[event]) & (ends >= start[event] + trace.events.duration_ps[event])
    rows: I64 = first + np.flatnonzero(around & is_drawn(trace)[first:event])
    return rows


def _find_place(trace: HostTrace, around: I64) -> tuple[str | None, str | None]:
    """The layer and the line of the program that an event is for, by the events around it."""
    names = [trace.name_of(row) for row in around[::-1].tolist()]
    layer = next((name.removeprefix(MODULE_PREFIX) for name in names if name.startswith(MODULE_PREFIX)), None)
    _, file, line = place_of(next(filter(is_of_user, names), ""))
    return layer, None if file is None else f"{file}:{line}"


def _details_of_scope(trace: HostTrace, place: int) -> Details:
    """A scope among those of its stream; inside it is the work that runs there meanwhile."""
    found, spot = projection_of(trace), _spot_of_scope(trace, place)
    rows, lane = found.index.rows, found.index.lane
    start, end = spot.start_ps, spot.start_ps + spot.duration_ps
    same = np.flatnonzero(found.line == found.line[place])
    holds = (rows.start[same] <= start) & (rows.start[same] + rows.duration[same] >= end) & (lane[same] < spot.lane)
    around = tuple(_spot_of_scope(trace, at) for at in same[holds][np.argsort(lane[same[holds]])].tolist())
    beside = same[lane[same] == spot.lane]
    at = int(np.searchsorted(beside, place))
    work = _find_work(trace, int(found.stream[found.line[place]]), start, end)
    return Details(
        spot=spot,
        full_name="/".join(each.name for each in (*around, spot)),
        self_ps=None,
        around=around,
        around_hidden=0,
        layer=None,
        place=None,
        inside=len(work),
        first_inside=spot_of(trace, int(work[0])) if len(work) else None,
        previous=_spot_of_scope(trace, int(beside[at - 1])) if at else None,
        next=_spot_of_scope(trace, int(beside[at + 1])) if at + 1 < len(beside) else None,
        stats={},
    )


def _find_work(trace: HostTrace, stream: int, start_ps: int, end_ps: int) -> I64:
    """The events of a stream that lie in a window."""
    first, last = int(trace.lines.event_begin[stream]), int(trace.lines.event_end[stream])
    start = trace.events.start_ps[first:last]
    inside = (start >= start_ps) & (start + trace.events.duration_ps[first:last] <= end_ps)
    rows: I64 = first + np.flatnonzero(inside)
    return rows


def _find_inside(trace: HostTrace, spot: Spot) -> tuple[int | None, I64]:
    """An event's own time, and the events inside it.

    The events inside it follow it on its line.  Those one lane below it are directly inside, because no two events of a
    lane overlap.
    """
    events, stop = trace.events, spot.start_ps + spot.duration_ps
    first, last = spot.event + 1, int(trace.lines.event_end[spot.line])
    after = first + int(np.searchsorted(events.start_ps[first:last], stop, side="left"))
    ends = events.start_ps[first:after] + events.duration_ps[first:after]
    inside: I64 = first + np.flatnonzero(ends <= stop)
    if len(inside) < after - first:
        return None, inside
    below = index_of(trace).lane[inside] == spot.lane + 1
    return spot.duration_ps - int(events.duration_ps[inside[below]].sum()), inside


def _find_neighbours(trace: HostTrace, spot: Spot, own_code: bool) -> tuple[Spot | None, Spot | None]:
    """The events before and after an event in its row; none for an event that is not drawn."""
    index = index_of(trace, own_code)
    if spot.lane < 0:
        return None, None
    row = int(index.first_row[spot.line]) + spot.lane
    first, last = (int(bound) for bound in index.rows.begin[row : row + 2])
    at = first + int(np.searchsorted(index.rows.order[first:last], spot.event))
    before = spot_of(trace, int(index.rows.order[at - 1]), own_code) if at > first else None
    after = spot_of(trace, int(index.rows.order[at + 1]), own_code) if at + 1 < last else None
    return before, after


def links_of(trace: HostTrace, event: int, own_code: bool = False) -> Links:
    """How an event is linked to others.  The first call computes the links of the whole trace, which takes a while.

    A scope is in the step of its first piece of work, and has no other link.
    """
    place = scope_place(trace, event)
    row = event if place is None else int(projection_of(trace).event[place])
    steps, label = steps_of(trace), int(steps_of(trace).label[row])
    if place is not None:
        return Links(*_step_at(steps, label), None, None, (), 0)
    cause = int(forest(trace).cause[event])
    effects = _find_effects(trace, event)
    name, number = _step_at(steps, label)
    return Links(
        step=name,
        step_number=number,
        op=_op_name(trace, event),
        cause=spot_of(trace, cause, own_code) if cause >= 0 else None,
        effects=tuple(spot_of(trace, row, own_code) for row in effects[:MOST_PARTNERS].tolist()),
        effects_hidden=max(0, len(effects) - MOST_PARTNERS),
    )


def _step_at(steps: HostSteps, label: int) -> tuple[str | None, int | None]:
    """The name and number of a step by its place; None without one."""
    return (steps.name[label], int(steps.number[label])) if label >= 0 else (None, None)


def _op_name(trace: HostTrace, event: int) -> str | None:
    found = attribute(trace)
    at = int(np.searchsorted(found.rows, event))
    if at == len(found.rows) or found.rows[at] != event or found.op[at] < 0:
        return None
    name: str = found.ops[found.op[at]][0]
    return name


def _find_effects(trace: HostTrace, event: int) -> I64:
    events, causes = trace.derived("timeline effects", _sort_by_cause)
    low, high = np.searchsorted(causes, [event, event + 1])
    rows = events[low:high].astype(np.int64)
    return rows[np.argsort(trace.events.start_ps[rows], kind="stable")]


def _sort_by_cause(trace: HostTrace) -> tuple[I32, I32]:
    """The events with a cause, sorted by cause, and their causes."""
    cause = forest(trace).cause
    events = np.flatnonzero(cause >= 0).astype(np.int32)
    events = events[np.argsort(cause[events], kind="stable")]
    return events, cause[events]
