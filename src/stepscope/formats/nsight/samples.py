"""Samples of the processors in an export of Nsight Systems, as frames of the threads that ran.

A sample is a row of COMPOSITE_EVENTS; its stack, innermost frame first, rows of SAMPLING_CALLCHAINS.  A frame that
consecutive samples of a thread show at the same place of their stacks counts as running from one to the next, as far as
they lie no further apart than samples usually do: a thread that does not run is not sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from stepscope.formats.nsight.parts import Lane, TablePart
from stepscope.formats.nsight.tables import Tables
from stepscope.model import EventKind
from stepscope.model.arrays import I64, offsets_of, run_rows
from stepscope.records import dataclass
from stepscope.vocabulary.lines import IN_CALL, RUNS_PYTHON
from stepscope.vocabulary.native import frame_of, is_interpreter, is_of_program

_SAMPLES, _STACKS = "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS"
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 by the golden ratio, odd: spreads the numbers of equal stacks


@dataclass(frozen=True)
class _Samples:
    """Samples in order of threads and time.

    Attributes:
        thread, time_ns: int64 of shape (n,), when each was taken; start_ns, end_ns: from when to when it stands for it.
        frame: int64, rows of texts, the frames of all samples, outermost first; `offsets` of shape (n + 1,) cuts them.
    """

    thread: I64
    start_ns: I64
    time_ns: I64
    end_ns: I64
    frame: I64
    offsets: I64


def sampled_parts(tables: Tables, texts_of: Callable[[I64], I64], text: Callable[[int], str]) -> list[TablePart]:
    """The frames that samples show, when samples were taken and in which function of the program, and whether their
    threads ran Python or compiled code; none where nothing was sampled.

    Args:
        texts_of: the rows of texts by their ids; text: one of them.
    """
    found = _read(tables, texts_of, text)
    if found is None:
        return []
    thread, start, end, called = (np.concatenate(each) for each in zip(*_frames(found), strict=True))
    names = np.unique(found.frame)
    own = np.isin(found.frame, names[[is_of_program(text(row)) for row in names.tolist()]])
    last = np.maximum.reduceat(np.where(own, np.arange(len(own)), -1), found.offsets[:-1])
    inner = found.frame[found.offsets[1:] - 1]
    functions = np.where(last >= 0, found.frame[last], inner)
    inner, place = np.unique(inner, return_inverse=True)
    found_at = [RUNS_PYTHON if is_interpreter(text(row)) else IN_CALL for row in inner.tolist()]
    ran = np.array([tables.texts.add(each) for each in found_at], np.int64)[place.reshape(-1)]
    return [
        _part(thread, start, end, called, EventKind.PYTHON_CALL, Lane.STACK),
        _part(found.thread, found.time_ns, found.time_ns, functions, EventKind.OTHER, Lane.SAMPLE),
        _part(found.thread, found.start_ns, found.end_ns, ran, EventKind.OTHER, Lane.INTERPRETER),
    ]


def _part(thread: I64, start: I64, end: I64, name: I64, kind: EventKind, place: Lane) -> TablePart:
    kinds, traits = np.full(len(name), kind, np.uint8), np.zeros(len(name), np.uint8)
    return TablePart(start, end, name, kinds, traits, place, thread)


def _read(tables: Tables, texts_of: Callable[[I64], I64], text: Callable[[int], str]) -> _Samples | None:
    samples = tables.columns(_SAMPLES, ("id", "start", "globalTid"))
    stacks = tables.columns(_STACKS, ("id", "symbol", "module", "stackDepth"))
    if len(samples) < 3 or len(stacks) < 4 or not len(samples["id"]) or not len(stacks["id"]):
        return None
    pairs, place = np.unique(np.stack([stacks["symbol"], stacks["module"]]), axis=1, return_inverse=True)
    symbols, files = texts_of(pairs[0]).tolist(), texts_of(pairs[1]).tolist()
    names = [tables.texts.add(frame_of(text(one), text(other))) for one, other in zip(symbols, files, strict=True)]
    frame = np.array(names, np.int64)[place.reshape(-1)]
    order = np.lexsort((-stacks["stackDepth"], stacks["id"]))
    ids, frame = stacks["id"][order], frame[order]
    repeats = np.append(False, (ids[1:] == ids[:-1]) & (frame[1:] == frame[:-1]))  # unknown symbols, or recursion
    ids, frame = ids[(frame > 0) & ~repeats], frame[(frame > 0) & ~repeats]
    by_time = np.lexsort((samples["start"], samples["globalTid"]))
    sample, time, thread = (samples[name][by_time] for name in ("id", "start", "globalTid"))
    first, last = np.searchsorted(ids, sample), np.searchsorted(ids, sample, side="right")
    has = (last > first) & (time >= 0)
    first, last, time, thread = first[has], last[has], time[has], thread[has]
    if not len(time):
        return None
    frames = frame[run_rows(first, last - first)]
    return _Samples(thread, *_extents(thread, time), frames, offsets_of(last - first))


def _extents(thread: I64, time: I64) -> tuple[I64, I64, I64]:
    """From when to when each sample stands for what its thread did, around its own time: half of the way to its
    neighbours, but no further than samples usually lie apart."""
    gap, same = np.diff(time), np.diff(thread) == 0
    usual = int(np.median(gap[same])) if same.any() else 0
    half = np.where(same & (gap <= 2 * usual), gap // 2, usual // 2)
    before, after = np.append(usual // 2, half), np.append(half, usual // 2)
    return np.maximum(time - before, 0), time, time + after


def _frames(found: _Samples) -> Iterator[tuple[I64, I64, I64, I64]]:
    """Thread, start, end and name of the frames of each level of the stacks, outermost first."""
    depth = np.diff(found.offsets)
    above = np.zeros(len(depth), np.uint64)  # stands for all frames around
    touches = np.append(False, (np.diff(found.thread) == 0) & (found.start_ns[1:] <= found.end_ns[:-1] + 1))
    for level in range(int(depth.max(initial=0))):
        rows = np.flatnonzero(depth > level)
        name = found.frame[found.offsets[rows] + level]
        above[rows] = (above[rows] + name.astype(np.uint64)) * _MULTIPLIER
        goes_on = np.append(False, np.diff(rows) == 1) & touches[rows]
        goes_on[1:] &= above[rows[1:]] == above[rows[:-1]]
        begin = np.flatnonzero(~goes_on)
        last = np.append(begin[1:], len(rows)) - 1
        yield found.thread[rows[begin]], found.start_ns[rows[begin]], found.end_ns[rows[last]], name[begin]
