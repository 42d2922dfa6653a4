"""The tree of tracks: devices with their steps, modules, ops and streams; host threads, grouped by pool; counters.

Each track and group has an id that stays the same for the same file, so that a link can name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from stepscope.analysis.resources.counters import counters_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.timeline.index import Index, index_of, is_drawn
from stepscope.analysis.trace.collective_events import collective_rows
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.analysis.trace.thread_labels import thread_label
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.vocabulary.lines import (
    device_label,
    holds_annotations,
    holds_graph_lines,
    holds_interpreter_samples,
    holds_ops,
    holds_sample_times,
    holds_scopes,
    holds_statements,
    holds_thread_usage,
    is_of_profiler,
    may_run_loop,
    split_pool,
    stream_parts,
)

LEAST_OF_A_POOL = 3
"""At least this many threads of one name make a group of their own."""

# The lines of a device in the order in which they are shown.  A line that repeats the work of streams at another level
# is recognized by its name, which its writer chose.
_RANKS: tuple[tuple[str, LineKind, Callable[[str], bool] | None], ...] = (
    ("steps", LineKind.STEPS, None),
    ("modules", LineKind.MODULES, None),
    ("ops", LineKind.DEVICE_OPS, None),
    ("ops", LineKind.DERIVED, holds_ops),
    ("scopes", LineKind.DERIVED, holds_scopes),
    ("stream", LineKind.STREAM, None),
    ("derived", LineKind.DERIVED, None),
    ("thread", LineKind.THREAD, None),
    ("other", LineKind.OTHER, None),
    ("overhead", LineKind.OVERHEAD, None),
)


@dataclass(frozen=True)
class Track:
    """A leaf of the tree.

    Attributes:
        id: `t` and the line's row, or `c` and the counter's number.
        name: its name; `detail`: what distinguishes it from others of that name.
        kind: "steps", "modules", "ops", "scopes", "stream", "derived", "thread", "overhead", "other" or "counter".
        line: row of the trace's lines, -1 for a counter.
        rows: the number of rows in which it is drawn; `events`: the number of its events, or of a counter's values.
        main: True for the thread that runs the training loop.
        is_profiler: True for a thread or line of a profiler itself; communicates: True where collectives, sends or
            receives run.
        events_at_first: how many of its events touch the part that is shown first.
        unit: of a counter's values: "bytes" or "".
        highest, lowest: extremes of a counter's values; None for other tracks.
    """

    id: str
    name: str
    detail: str
    kind: str
    line: int
    rows: int
    events: int
    main: bool = False
    is_profiler: bool = False
    communicates: bool = False
    events_at_first: int = 0
    unit: str = ""
    highest: float | None = None
    lowest: float | None = None


@dataclass(frozen=True)
class Group:
    """Tracks that belong together.

    Attributes:
        id: stable identifier.
        name, detail: its name, and more about it.
        kind: "device", "host", "pool", "counters" or "other".
        tracks, groups: what is in it, tracks first.
        empty: names of tracks that are left out because they hold no event.
        lanes: the most lanes that can be at work at once; see `stepscope.analysis.timeline.load`.
    """

    id: str
    name: str
    detail: str
    kind: str
    tracks: tuple[Track, ...]
    groups: tuple[Group, ...] = ()
    empty: tuple[str, ...] = ()
    lanes: int = 1

    def lines(self) -> list[int]:
        """The rows of all lines in it and in its groups."""
        own = [track.line for track in self.tracks if track.line >= 0]
        return own + [line for group in self.groups for line in group.lines()]


@dataclass(frozen=True)
class _Thread:
    line: int
    name: str
    stem: str
    number: str
    marks: int
    busy: int


def groups_of(trace: HostTrace, own_code: bool = False) -> tuple[Group, ...]:
    """The tree of a trace: devices first, then the host, then counters.  For `own_code` see `index_of`."""
    return trace.derived(f"timeline groups {own_code}", lambda host: _build_groups(host, own_code))


def group_named(trace: HostTrace, name: str) -> Group | None:
    """The group with an id; None if there is none."""
    return next((group for group in all_groups(groups_of(trace)) if group.id == name), None)


def activity_ps(trace: HostTrace) -> tuple[int, int]:
    """The part of the trace that fits first: all steps, and the device work around them, or events if there is none.

    Work that is further from the steps than half their length is left out, so steps take half of the picture or more.
    It is the whole span unless that part is much shorter: a recording may start long before the work does.  Without
    steps it is the whole span, for a wait before the work may be what the reader looks for.
    """
    return trace.derived("timeline activity", _activity_ps)


def _activity_ps(trace: HostTrace) -> tuple[int, int]:
    begin, end = trace.span_ps()
    steps = steps_of(trace)
    if steps.source == "none" or not len(steps.number):
        return begin, end
    device = is_device_work(trace)
    rows = np.flatnonzero(device if device.any() else is_drawn(trace))
    rows = rows[:: max(1, len(rows) // 100_000)]
    start = trace.events.start_ps[rows]
    stop = start + trace.events.duration_ps[rows]
    first, last = int(steps.start_ps.min()), int(steps.end_ps.max())
    reach = (last - first) // 2
    near = (stop >= first - reach) & (start <= last + reach)
    first, last = int(start[near].min(initial=first)), int(stop[near].max(initial=last))
    margin = 0.04 * (last - first)
    low, high = max(begin, int(first - margin)), min(end, int(last + margin))
    return (low, high) if 0 < high - low < 0.7 * (end - begin) else (begin, end)


def loaded_lines(trace: HostTrace, lines: Sequence[int]) -> I64:
    """The lines of a group that its load counts: its threads, or all lines if it has no threads."""
    rows = np.array(lines, np.int64)
    threads = rows[trace.lines.kind[rows] == LineKind.THREAD]
    return threads if len(threads) else rows


def all_groups(groups: Iterable[Group]) -> Iterable[Group]:
    """The groups and those within them, at any depth."""
    for group in groups:
        yield group
        yield from all_groups(group.groups)


def _build_groups(trace: HostTrace, own_code: bool) -> tuple[Group, ...]:
    index = index_of(trace, own_code)
    found = [_plane_group(trace, index, plane) for plane in _planes_in_order(trace)]
    counters = _counter_tracks(trace)
    if counters:
        found.append(Group("counters", "Counters", "", "counters", counters))
    return tuple(group for group in found if group.tracks or group.groups)


def _planes_in_order(trace: HostTrace) -> list[int]:
    """Devices by number, what was sampled of the program, hosts, then the rest."""

    def key(plane: int) -> tuple[int, int, int]:
        kind = PlaneKind(trace.planes.kind[plane])
        rank = 0 if kind.is_device else 1 if kind == PlaneKind.CUSTOM_DEVICE else 2 if kind == PlaneKind.HOST else 3
        return rank, int(trace.planes.ordinal[plane]), plane

    return sorted(range(len(trace.planes)), key=key)


def _plane_group(trace: HostTrace, index: Index, plane: int) -> Group:
    lines = np.flatnonzero((trace.lines.plane == plane) & (trace.lines.kind != LineKind.COUNTERS))
    full = [line for line in lines.tolist() if index.event_count(line)]
    empty = tuple(_line_name(trace, line) for line in lines.tolist() if not index.event_count(line))
    kind = PlaneKind(trace.planes.kind[plane])
    name, identity = trace.plane_name(plane), f"p{plane}"
    if kind == PlaneKind.HOST:
        return _host_group(trace, index, identity, name, full, empty)
    ranked = sorted(full, key=lambda line: (_line_rank(trace, line), line))
    tracks = tuple(_make_track(trace, index, line) for line in ranked)
    sort, lanes = ("device", 1) if kind.is_device else ("other", max(1, len(loaded_lines(trace, full))))
    return Group(identity, device_label(name), name, sort, tracks, empty=empty, lanes=lanes)


def _line_rank(trace: HostTrace, line: int) -> int:
    kind, name = trace.lines.kind[line], _line_name(trace, line)
    ranks = (at for at, (_, wanted, test) in enumerate(_RANKS) if kind == wanted and (test is None or test(name)))
    return next(ranks, len(_RANKS))


def _line_name(trace: HostTrace, line: int) -> str:
    return thread_label(trace, line) or f"line {int(trace.lines.line_id[line])}"


def _make_track(
    trace: HostTrace, index: Index, line: int, name: str | None = None, detail: str = "", main: bool = False
) -> Track:
    rank = _line_rank(trace, line)
    kind = _RANKS[rank][0] if rank < len(_RANKS) else "other"
    shown = name if name is not None else _line_name(trace, line)
    if name is None and (stream := stream_parts(shown)):
        shown, detail = f"Stream {stream[0]}", stream[1].replace(",", ", ")
    elif name is None and holds_annotations(shown):  # as those that are laid onto a stream here are called
        shown, detail = "Annotations", f"Stream {shown.removeprefix('Stream #').removesuffix(' annotations')}"
    plane = trace.plane_name(int(trace.lines.plane[line]))
    # which analyses read and no person does
    data = (holds_sample_times, holds_thread_usage, holds_interpreter_samples, holds_statements, holds_graph_lines)
    is_profiler = kind == "overhead" or is_of_profiler(_line_name(trace, line))
    is_profiler = is_profiler or any(holds(plane) for holds in data)
    rows, events = index.row_count(line), index.event_count(line)
    communicates = line in _communicating(trace)
    at_first = int(trace.derived("events at first", _count_events_at_first)[line])
    return Track(f"t{line}", shown, detail, kind, line, rows, events, main, is_profiler, communicates, at_first)


def _count_events_at_first(trace: HostTrace) -> I64:
    begin, end = activity_ps(trace)
    events = trace.events
    is_seen = (events.start_ps < end) & (events.start_ps + events.duration_ps > begin)
    return np.bincount(events.line[is_seen], minlength=len(trace.lines))


def _communicating(trace: HostTrace) -> frozenset[int]:
    return trace.derived("communicating", lambda each: frozenset(each.events.line[collective_rows(each)].tolist()))


# -- host threads ------------------------------------------------------------------------------------------------


def _host_group(
    trace: HostTrace, index: Index, identity: str, name: str, lines: Sequence[int], empty: tuple[str, ...]
) -> Group:
    threads = _list_threads(trace, index, lines)
    main = _main_line(threads)
    is_thread = trace.lines.kind == LineKind.THREAD
    threads.sort(key=lambda thread: (thread.line != main, not is_thread[thread.line], -thread.busy, thread.line))
    stems: dict[str, list[_Thread]] = {}
    for thread in threads:
        stems.setdefault(thread.stem if thread.line != main else "", []).append(thread)
    pools = {stem: members for stem, members in stems.items() if stem and len(members) >= LEAST_OF_A_POOL}
    single = [thread for thread in threads if thread.stem not in pools or thread.line == main]
    tracks = tuple(
        _make_track(trace, index, thread.line, thread.stem, thread.number, thread.line == main) for thread in single
    )
    groups = tuple(_pool_group(trace, index, identity, stem, members) for stem, members in pools.items())
    lanes = len(loaded_lines(trace, lines))
    return Group(identity, "Host threads", name, "host", tracks, groups, empty, lanes=max(1, lanes))


def _pool_group(trace: HostTrace, index: Index, host: str, stem: str, members: Sequence[_Thread]) -> Group:
    threads = tuple(_make_track(trace, index, thread.line, thread.stem, thread.number) for thread in members)
    identity = f"{host}.{min(thread.line for thread in members)}"
    return Group(identity, stem, f"{len(members)} threads", "pool", threads, lanes=len(members))


def _list_threads(trace: HostTrace, index: Index, lines: Sequence[int]) -> list[_Thread]:
    events = trace.events
    outer = index.lane == 0
    busy = np.bincount(events.line[outer], events.duration_ps[outer], minlength=len(trace.lines))
    marks = np.bincount(events.line[events.kind == EventKind.STEP_MARK], minlength=len(trace.lines))
    found = []
    for line in lines:
        name = _line_name(trace, line)
        stem, number = split_pool(name)
        found.append(_Thread(line, name, stem, number, int(marks[line]), int(busy[line])))
    return found


def _main_line(threads: Sequence[_Thread]) -> int:
    """The line of the thread that runs the training loop: the one with the step marks, else a Python thread."""
    if not threads:
        return -1
    best = max(threads, key=lambda thread: (thread.marks, may_run_loop(thread.name), thread.busy))
    return best.line if best.marks or may_run_loop(best.name) else -1


# -- counters ----------------------------------------------------------------------------------------------------


def _counter_tracks(trace: HostTrace) -> tuple[Track, ...]:
    return tuple(
        Track(
            f"c{number}", counter.name, device_label(counter.place), "counter", -1, 1, len(counter.time_ps),
            unit=counter.unit, highest=float(counter.value.max()), lowest=float(counter.value.min()),
        )
        for number, counter in enumerate(counters_of(trace))
    )  # fmt: skip
