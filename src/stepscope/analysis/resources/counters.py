"""Counters: values over time, from counter lines and from what allocators recorded."""

from __future__ import annotations

import numpy as np

from stepscope.model import HostTrace, LineKind, StatTag
from stepscope.model.arrays import F64, I32, I64, U8, distinct
from stepscope.records import dataclass

PROCESS_PERCENT = "CPU process %"  # what a capture by Stepscope calls it, 100 for each core


@dataclass(frozen=True)
class Counter:
    """One quantity over time.  A value holds until the next one.

    Attributes:
        name: what is counted; `place`: the device or host for which it was recorded, empty if the name says it.
        unit: "bytes", or "" if it has no known unit.
        time_ps: int64 of shape (n,), ascending, n > 0; `value`: float64 of shape (n,), finite.
    """

    name: str
    place: str
    unit: str
    time_ps: I64
    value: F64


@dataclass(frozen=True)
class CounterWindow:
    """A counter in a window of time: one row per cell that has a value.

    Attributes:
        cell: int32 of shape (n,), the cell's number; -1 for the value before the window.
        lowest, highest, last: float64 of shape (n,), of the values in the cell.
        count: int32 of shape (n,), the number of values in the cell.
    """

    cell: I32
    lowest: F64
    highest: F64
    last: F64
    count: I32


def counters_of(trace: HostTrace) -> tuple[Counter, ...]:
    """All counters of a trace."""
    return trace.derived("timeline counters", lambda host: (*_memory_counters(host), *line_counters(host)))


def _memory_counters(trace: HostTrace) -> list[Counter]:
    # Here, since most pages ask only for `line_counters`.
    from stepscope.analysis.resources.allocations import UNKNOWN, allocations_of
    from stepscope.analysis.resources.memory_usage import memory_in_use

    found = []
    for memory in allocations_of(trace):
        in_use = memory_in_use(trace, memory)
        known = in_use != UNKNOWN
        if known.any():
            time, value = memory.time_ps[known], in_use[known].astype(np.float64)
            found.append(Counter(f"Memory in use: {memory.memory}", "", "bytes", time, value))
    return found


def cores_used(trace: HostTrace) -> float | None:
    """How many cores the process kept busy: the mean of what a capture sampled; None where it sampled nothing."""
    found = [counter.value for counter in line_counters(trace) if counter.name == PROCESS_PERCENT]
    return float(found[0].mean()) / 100 if found else None


def line_counters(trace: HostTrace) -> list[Counter]:
    """The counters that have lines of their own, without those of allocators."""
    return trace.derived("counters of lines", _line_counters)


def _line_counters(trace: HostTrace) -> list[Counter]:
    found = []
    for line in trace.lines_of(LineKind.COUNTERS).tolist():
        place = trace.plane_name(int(trace.lines.plane[line]))
        events = np.arange(trace.lines.event_begin[line], trace.lines.event_end[line])
        names = trace.event_types.name[trace.events.type[events]]
        for event_name in distinct(names).tolist():
            rows = events[names == event_name]
            title = trace.strings[event_name] or trace.strings[trace.lines.name[line]]
            for stat, time, value in _stat_series(trace, rows):
                own = title if stat in ("", "value", "counter_value", title) else f"{title}: {stat}"
                found.append(Counter(own, place, "bytes" if "bytes" in own.lower() else "", time, value))
    return found


def _stat_series(trace: HostTrace, events: I64) -> list[tuple[str, I64, F64]]:
    """The numeric stats of some events of a line: name, times and values of each."""
    stats = trace.all_event_stats
    rows, offsets = stats.owned_rows(events)
    owner = np.repeat(events, np.diff(offsets))
    found = []
    for name in distinct(stats.name[rows]).tolist():
        here = stats.name[rows] == name
        values = _stat_numbers(stats.tag[rows[here]], stats.value[rows[here]])
        known = np.isfinite(values)
        if known.any():
            found.append((trace.strings[name], trace.events.start_ps[owner[here][known]], values[known]))
    return found


def _stat_numbers(tag: U8, value: I64) -> F64:
    """The stats as numbers; NaN where a stat is not a number."""
    out = np.full(len(tag), np.nan)
    for wanted, dtype in ((StatTag.DOUBLE, np.float64), (StatTag.UINT, np.uint64), (StatTag.INT, np.int64)):
        here = tag == wanted
        out[here] = value[here].view(dtype)
    return out


def counter_window(counter: Counter, begin_ps: int, cells: int, level: int) -> CounterWindow:
    """A counter in `cells` cells of 2^level ps, from `begin_ps`."""
    first, stop = np.searchsorted(counter.time_ps, [begin_ps, begin_ps + (cells << level)])
    cell = ((counter.time_ps[first:stop] - begin_ps) >> level).astype(np.int32)
    value = counter.value[first:stop]
    begins = np.flatnonzero(np.diff(cell, prepend=-1))
    lowest, highest = (how.reduceat(value, begins) if len(begins) else value for how in (np.minimum, np.maximum))
    last = value[np.append(begins[1:], len(value)) - 1] if len(begins) else value
    count = np.diff(np.append(begins, len(value))).astype(np.int32)
    before = counter.value[first - 1 : first]  # the value that holds when the window starts
    return CounterWindow(
        np.concatenate([np.full(len(before), -1, np.int32), cell[begins]]),
        np.concatenate([before, lowest]),
        np.concatenate([before, highest]),
        np.concatenate([before, last]),
        np.concatenate([np.zeros(len(before), np.int32), count]),
    )
