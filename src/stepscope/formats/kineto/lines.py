"""Builds lines and planes, and assigns each event to a line.

Host work goes to the lines of its threads, device work to the lines of its streams.  The category decides which it is,
since host processes and devices share one range of numbers.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import field

import numpy as np

from stepscope.formats.kineto.classify import LineType, device_of
from stepscope.formats.kineto.document import Raw
from stepscope.formats.kineto.events import Kept, is_phase
from stepscope.formats.kineto.processes import Processes
from stepscope.formats.tables import Plane
from stepscope.formats.xspace import schema
from stepscope.model import EventKind, LineKind, PlaneKind, StatTag
from stepscope.model.arrays import I32, I64, distinct, number_pairs
from stepscope.records import dataclass

_WAIT_TID_BASE = 1_000_000  # the thread number of a wait is this plus its stream's number
_ALL_STREAMS = -1  # the stream of a wait for a whole device or context
_MOST_SMALL = 1 << 15  # lines whose numbers fit into two bytes, which are sorted without comparisons
_OF_RANK = 100_000_000  # what TraceLens (TraceFusion) adds to the numbers of each further rank that it merges
_MOST_ORDINAL = (1 << 31) - 1
_LINE_KIND = {
    LineType.THREAD: LineKind.THREAD,
    LineType.STREAM: LineKind.STREAM,
    LineType.SCOPE: LineKind.DERIVED,
    LineType.WAIT: LineKind.OTHER,
    LineType.OVERHEAD: LineKind.OVERHEAD,
    LineType.SPAN: LineKind.OTHER,
    LineType.COUNTER: LineKind.COUNTERS,
}
_ON_DEVICE = (LineType.STREAM, LineType.SCOPE, LineType.WAIT)
WORK_NAMES: dict[EventKind, str] = {
    EventKind.KERNEL: "Compute",
    EventKind.COLLECTIVE: "Collective",
    EventKind.COPY_HOST_TO_DEVICE: "MemcpyH2D",
    EventKind.COPY_DEVICE_TO_HOST: "MemcpyD2H",
    EventKind.COPY_DEVICE_TO_DEVICE: "MemcpyD2D",
    EventKind.COPY_PEER: "MemcpyP2P",
    EventKind.COPY_HOST_TO_HOST: "MemcpyH2H",
    EventKind.COPY_OTHER: "Memcpy",
    EventKind.MEMSET: "Memset",
}


@dataclass
class KinetoLine:
    """One line of the trace to build; `first` is its first event."""

    plane: Plane
    place: LineType
    name: str
    line_id: int
    kind: LineKind
    first: int
    main: bool = False

    def rank(self) -> tuple[int, bool, int, int]:
        """The sort key within a plane: main threads first, then by number."""
        return int(self.place), not self.main, self.line_id, self.first


@dataclass
class LineLayout:
    """Planes and lines in their final order, and the line of each event: int32 of shape (events,)."""

    planes: list[Plane] = field(default_factory=list)
    lines: list[KinetoLine] = field(default_factory=list)
    plane_row: list[int] = field(default_factory=list)
    line_of: I32 = field(default_factory=lambda: np.empty(0, np.int32))
    is_converted: bool = False


@dataclass(frozen=True)
class Labels:
    """Names from the trace's metadata: of processes by pid, of threads by (pid, tid); keys are text ids."""

    process: dict[int, str]
    thread: dict[tuple[int, int], str]

    @property
    def is_converted(self) -> bool:
        """True if the trace was converted from an XSpace: processes have the names of planes."""
        return any(schema.plane_kind(name)[0] != PlaneKind.OTHER for name in self.process.values())


def read_labels(raw: Raw) -> Labels:
    """Reads names from the metadata events.  The last of repeated names wins."""
    process: dict[int, str] = {}
    thread: dict[tuple[int, int], str] = {}
    texts = raw.texts
    key, kinds = texts.add("name"), {texts.add("process_name"): False, texts.add("thread_name"): True}
    rows = np.flatnonzero(is_phase(raw, "M"))
    rows = rows[np.isin(raw.name[rows], list(kinds))]
    for row in rows.tolist():
        begin, end = raw.stat_offsets[row : row + 2]
        found = np.flatnonzero((raw.stat_name[begin:end] == key) & (raw.stat_tag[begin:end] == StatTag.STRING))
        if not len(found):
            continue
        name, pid = texts[int(raw.stat_value[begin + found[-1]])], int(raw.pid[row])
        if kinds[int(raw.name[row])]:
            thread[pid, int(raw.tid[row])] = name
        else:
            process[pid] = name
    return Labels(process, thread)


def lay_out(raw: Raw, kept: Kept, labels: Labels, kineto: bool, processes: Processes) -> LineLayout:
    """Assigns events to lines and lines to planes."""
    pid, tid = kept.column(raw.pid), kept.column(raw.tid)
    counters = kept.place == LineType.COUNTER
    if counters.any():
        tid = np.where(counters, kept.column(raw.name), tid)
    code, first = number_pairs((kept.place.astype(np.int64) << 32) | pid, tid)
    one_host = kineto or bool(processes.framework) or bool((pid == pid[:1]).all())
    planes = _Planes(raw, labels, one_host, processes)
    lines = [_make_line(raw, kept, labels, planes, row, int(tid[row])) for row in first.tolist()]
    _name_streams(lines, code, kept)
    order = sorted(planes.found.values(), key=lambda plane: (plane.kind != PlaneKind.HOST, plane.kind, plane.ordinal))
    place = {id(plane): row for row, plane in enumerate(order)}
    ranked = sorted(range(len(lines)), key=lambda at: (place[id(lines[at].plane)], *lines[at].rank()))
    line_of = np.empty(len(lines), np.int32)
    line_of[ranked] = np.arange(len(lines), dtype=np.int32)
    ordered = [lines[at] for at in ranked]
    plane_row = [place[id(line.plane)] for line in ordered]
    return LineLayout(order, ordered, plane_row, line_of[code], labels.is_converted and not kineto)


class _Planes:
    """Creates planes on first use."""

    def __init__(self, raw: Raw, labels: Labels, one_host: bool, processes: Processes) -> None:
        self.found: dict[str, Plane] = {}
        self._strange = processes.strange
        self._texts = raw.texts
        self._labels = labels
        self._one_host = one_host

    def gpu_plane(self, ordinal: int, device: str = "GPU") -> Plane:
        return self._get_plane(f"/device:{device}:{ordinal}", PlaneKind.GPU, ordinal)

    def process_plane(self, pid: int) -> Plane:
        """The plane of a process: its own if it is named like a plane, otherwise the host's."""
        name = self._labels.process.get(pid, "")
        kind, ordinal = schema.plane_kind(name)
        if kind != PlaneKind.OTHER:
            return self._get_plane(name, kind, ordinal)
        if pid in self._strange:
            return self._get_plane(f"{name or 'process'} [{self._texts[pid]}]", PlaneKind.OTHER)
        if self._one_host:
            return self._get_plane(schema.HOST_PLANE, PlaneKind.HOST)
        return self._get_plane(f"{name or 'process'} [{self._texts[pid]}]", PlaneKind.HOST)

    def _get_plane(self, name: str, kind: PlaneKind, ordinal: int = -1) -> Plane:
        return self.found.setdefault(name, Plane(name, kind, ordinal))


def _make_line(raw: Raw, kept: Kept, labels: Labels, planes: _Planes, first: int, tid: int) -> KinetoLine:
    """The line whose first event is `first`."""
    row, place = int(kept.row[first]), LineType(int(kept.place[first]))
    pid = int(raw.pid[row])
    pid_text, tid_text = raw.texts[pid], raw.texts[tid]
    number = _number(tid_text)
    if place in _ON_DEVICE:
        drawn_aside = place == LineType.WAIT and number >= _WAIT_TID_BASE + _ALL_STREAMS
        stream = number - _WAIT_TID_BASE if drawn_aside else number
        name = f"Stream #{stream}" + {LineType.SCOPE: " annotations", LineType.WAIT: " waits"}.get(place, "")
        if place == LineType.WAIT and stream == _ALL_STREAMS:
            name = "waits for all streams"
        device = device_of(raw.texts[int(raw.cat[row])])
        gpu = planes.gpu_plane(min(max(_number(pid_text), 0) % _OF_RANK, _MOST_ORDINAL), device)
        return KinetoLine(gpu, place, name, stream, _LINE_KIND[place], first)
    counters = re.fullmatch(r"GPU (\d{1,9}) Counters", pid_text) if place == LineType.COUNTER else None
    plane = planes.gpu_plane(int(counters[1])) if counters else planes.process_plane(pid)
    if place == LineType.THREAD:
        name = labels.thread.get((pid, tid)) or (f"thread {tid_text}" if tid_text else "unknown thread")
        kind = LineKind.THREAD if plane.kind == PlaneKind.HOST else schema.line_kind(plane.kind, name, number)
        return KinetoLine(plane, place, name, number, kind, first, main=pid_text == tid_text)
    name = "profiler overhead" if place == LineType.OVERHEAD else tid_text
    return KinetoLine(plane, place, name, number, _LINE_KIND[place], first)


def _number(text: str) -> int:
    """The number at the end of a process, thread or stream name; a hash of the name if there is none."""
    digits = re.search(r"-?\d{1,18}$", text)
    return int(digits[0]) if digits else zlib.crc32(text.encode()) if text else 0


def _name_streams(lines: list[KinetoLine], code: I32, kept: Kept) -> None:
    """Adds the kinds of work on each stream to its name, in place."""
    streams = kept.place == LineType.STREAM
    pairs = distinct(code[streams].astype(np.int64) << 8 | kept.kind[streams])
    work: dict[int, list[str]] = {}
    for pair in pairs.tolist():
        name = WORK_NAMES.get(EventKind(pair & 255))
        if name:
            work.setdefault(pair >> 8, []).append(name)
    for at, line in enumerate(lines):
        if line.place == LineType.STREAM and at in work:
            line.name += f"({','.join(work[at])})"


def time_order(layout: LineLayout, kept: Kept) -> I64:
    """The order of events in the tables: by line, start, and descending duration.

    Most lines are in the order of time in their file: only the others are sorted by it, each by itself, since the
    events of a line are a few ascending runs.
    """
    small = len(layout.lines) <= _MOST_SMALL
    order = np.argsort(layout.line_of.astype(np.int16) if small else layout.line_of, kind="stable")
    line, start = layout.line_of[order], kept.start_ps[order]
    back = (start[1:] < start[:-1]) & (line[1:] == line[:-1])
    numbers = distinct(line[:-1][back])
    bounds = (np.searchsorted(line, numbers, side=side).tolist() for side in ("left", "right"))
    for begin, end in zip(*bounds, strict=True):
        order[begin:end] = order[begin:end][np.argsort(start[begin:end], kind="stable")]
    start, duration = kept.start_ps[order], kept.duration_ps[order]
    tied = (start[1:] == start[:-1]) & (line[1:] == line[:-1])
    if (tied & (duration[1:] > duration[:-1])).any():
        places = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
        order[places] = order[places][np.lexsort((-duration[places], start[places], line[places]))]
    return order
