"""What is exported of a trace, in either file format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from stepscope import kernels
from stepscope.analysis.resources.counters import Counter, counters_of
from stepscope.analysis.timeline.index import is_drawn
from stepscope.analysis.trace.grouping import forest
from stepscope.model import HostTrace, LineKind, PlaneKind
from stepscope.model.arrays import I32, I64, Mask
from stepscope.records import dataclass

FIRST_TRACK_ID = 1_000_000
"""Track numbers start here, so that none equals a process number: viewers take such a thread for the main one."""

LEAD_PS = 3600 * 10**12
"""With several hosts, the first starts an hour after the file's zero, since other hosts may have started earlier and
viewers drop what comes before zero.  Viewers start their display at the first event."""

MOST_APART_PS = 24 * LEAD_PS
"""Hosts of one session whose clocks differ by more than this have no common clock."""

FULL_NAME = "full_name"
"""The key under which events that are shown by a short name keep their full name."""


@dataclass(frozen=True)
class Process:
    """A plane of a host: its number in the file, and its name."""

    pid: int
    name: str


@dataclass(frozen=True)
class ExportTrack:
    """Events of a line that nest.  A line whose events overlap has several tracks."""

    process: Process
    tid: int
    name: str


@dataclass(frozen=True)
class Content:
    """What is exported of one host.

    Attributes:
        trace: the host's trace.
        shift_ps: what to add to this host's times to get times of the file.
        processes: the planes that are not empty.
        tracks: in order.
        rows: int64 of shape (n,): the events that have a position in time.
        track: int32 of shape (n,): the track of each event.
        order: int64 of shape (2 * n,): starts (2 * i) and ends (2 * i + 1), in their order on each track.
        cause, effect: int64 of shape (arrows,), into `rows`: which event caused which.
        counters: each with its process.
        left_out: number of records that are sums of many occurrences and have no position in time.
    """

    trace: HostTrace
    shift_ps: int
    processes: tuple[Process, ...]
    tracks: tuple[ExportTrack, ...]
    rows: I64
    track: I32
    order: I64
    cause: I64
    effect: I64
    counters: tuple[tuple[Process, Counter], ...]
    left_out: int

    def time_ps(self, times: I64) -> I64:
        """Times of this host on the clock of the file."""
        return times + self.shift_ps


def contents(traces: Iterable[HostTrace], hosts: int = 1) -> Iterator[Content]:
    """The content of each host.  Numbers are unique in the file, and the file uses the clock of the first host.

    Args:
        traces: one per host.
        hosts: how many there are; with several, there is room before the first for hosts that started earlier.
    """
    pid, tid, zero_ns, first_host = 1, FIRST_TRACK_ID, None, ""
    for at, trace in enumerate(traces):
        if at == 0:
            zero_ns, first_host = trace.start_unix_ns, trace.host
        shift_ps = _shift_ps(trace, zero_ns, LEAD_PS if hosts > 1 else 0)
        content = _host_content(trace, shift_ps, pid, tid, "" if trace.host == first_host else f" ({trace.host})")
        pid += len(trace.planes) + 1
        tid += len(content.tracks)
        yield content


def _shift_ps(trace: HostTrace, zero_ns: int | None, lead_ps: int) -> int:
    """What to add to a host's times, according to its clock, without moving anything before the file's zero."""
    earliest = -trace.span_ps()[0]
    if zero_ns is None or trace.start_unix_ns is None:
        return max(0, earliest)
    apart_ps = (trace.start_unix_ns - zero_ns) * 1000
    return max(lead_ps + apart_ps if abs(apart_ps) <= MOST_APART_PS else lead_ps, earliest)


def _host_content(trace: HostTrace, shift_ps: int, pid: int, tid: int, suffix: str) -> Content:
    drawn = is_drawn(trace)
    rows = np.flatnonzero(drawn)
    lane, order = np.empty(len(rows), np.int32), np.empty(2 * len(rows), np.int64)
    start, line = trace.events.start_ps[rows], trace.events.line[rows]
    end = start + trace.events.duration_ps[rows]
    kernels.tracks.nest(start, end, line, lane, np.empty(len(rows), np.int64), order)
    keys, track = np.unique(line.astype(np.int64) << 32 | lane, return_inverse=True)
    planes = [Process(pid + at, trace.plane_name(at) + suffix) for at in range(len(trace.planes))]
    tracks = tuple(_make_track(trace, planes, tid + at, int(key)) for at, key in enumerate(keys.tolist()))
    counters = tuple((_counter_process(trace, planes, pid, counter), counter) for counter in counters_of(trace))
    used = {one.process for one in tracks} | {process for process, _ in counters}
    cause, effect = _find_arrows(trace, rows, drawn)
    return Content(
        trace=trace,
        shift_ps=shift_ps,
        processes=tuple(sorted(used, key=lambda process: process.pid)),
        tracks=tracks,
        rows=rows,
        track=track.astype(np.int32),
        order=order,
        cause=cause,
        effect=effect,
        counters=counters,
        left_out=int((~drawn & ~np.isin(trace.events.line, trace.lines_of(LineKind.COUNTERS))).sum()),
    )


def _make_track(trace: HostTrace, planes: list[Process], tid: int, key: int) -> ExportTrack:
    line, lane = key >> 32, key & 0xFFFF_FFFF
    name = trace.line_name(line) + (f" ({lane + 1})" if lane else "")
    return ExportTrack(planes[int(trace.lines.plane[line])], tid, name)


def _counter_process(trace: HostTrace, planes: list[Process], pid: int, counter: Counter) -> Process:
    """The plane that a counter was recorded for; otherwise the host's plane."""
    for at, process in enumerate(planes):
        if counter.place and trace.plane_name(at) == counter.place:
            return process
    hosts = np.flatnonzero(trace.planes.kind == PlaneKind.HOST)
    return planes[int(hosts[0])] if len(hosts) else Process(pid + len(planes), trace.host)


def _find_arrows(trace: HostTrace, rows: I64, drawn: Mask) -> tuple[I64, I64]:
    cause = forest(trace).cause
    effect = np.flatnonzero((cause >= 0) & drawn)
    effect = effect[drawn[cause[effect]]]
    return np.searchsorted(rows, cause[effect]), np.searchsorted(rows, effect)


def display_names(trace: HostTrace) -> I32:
    """The string row of the name by which each event type is shown: int32 of shape (types,)."""
    types = trace.event_types
    return np.where(types.display_name > 0, types.display_name, types.name)
