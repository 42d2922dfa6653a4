"""Queues of devices: the loops against the same by numpy, on any work."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stepscope.kernels import queues

Column = NDArray[np.int64]
NONE = np.iinfo(np.int64).min
# Of each piece of work its queue, start, length, and how long before its start it was launched.
_work = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 9), st.integers(-3, 9)), max_size=25)
_stretches = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), max_size=8)


def columns(work: list[tuple[int, int, int, int]]) -> tuple[NDArray[np.int32], Column, Column, Column]:
    """Queue, start, length and launch, queue after queue."""
    table = np.array(sorted(work), np.int64).reshape(-1, 4)
    line, start, length, ahead = (table[:, at].copy() for at in range(4))
    return line.astype(np.int32), start, length, start - ahead


def lined_up(work: list[tuple[int, int, int, int]], plane: list[int]) -> tuple[Column, ...]:
    """Line, launch, start, end, own time, since when the queue is free, and the work before."""
    line, start, length, called = columns(work)
    own, free, previous = (np.empty(len(line), np.int64) for _ in range(3))
    queues.line_up(line, np.array(plane, np.int32), called, -5, start, length, own, free, previous)
    return line, called, start, length, own, free, previous


@given(_work, st.lists(st.integers(0, 1), min_size=4, max_size=4))
def test_work_of_a_queue_is_put_in_a_row_after_its_calls(work, plane):
    line, start, length, called = columns(work)
    device = np.array(plane, np.int64)[line]
    for each in (0, 1):
        here = device == each
        start[here] += max(0, (called - start)[here].max(initial=0))
    expected, last, reached = [], -1, -5
    bounds = zip(line.tolist(), start.tolist(), (start + length).tolist(), strict=True)
    for at, (queue, since, until) in enumerate(bounds):
        first = queue != last
        free = -5 if first else reached
        begin = since if first else max(since, free)
        reached = until if first else max(until, reached)
        expected.append((begin, reached, max(until - begin, 0), free, -1 if first else at - 1))
        last = queue

    assert list(zip(*(column.tolist() for column in lined_up(work, plane)[2:]), strict=True)) == expected


@given(_work, st.integers(1, 3))
def test_what_ended_last_before_a_start_is_of_another_queue_and_explains_it(work, most_back):
    line, _, start, end, _, free, _ = lined_up(work, [0] * 4)
    by_end = np.argsort(end, kind="stable")
    found = np.empty(len(line), np.int64)
    queues.last_done(by_end, end[by_end], start, free, line, line, 4, most_back, found)

    expected = []
    for at, (moment, since) in enumerate(zip(start.tolist(), free.tolist(), strict=True)):
        ended = [each for each in by_end.tolist() if end[each] <= moment + max((moment - since) // 4, 0)]
        for _ in range(most_back):
            if ended and line[ended[-1]] == line[at]:
                ended.pop()
        good = ended and line[ended[-1]] != line[at] and since < end[ended[-1]] >= moment - (moment - since) // 2
        expected.append(ended[-1] if good else -1)
    assert found.tolist() == expected


@given(_work, _stretches)
def test_the_queue_that_ran_out_of_work_last_is_found_with_what_it_did(work, stretches):
    line, called, start, end, *_ = lined_up(work, [0] * 4)
    since = np.array([each[0] for each in stretches], np.int64)
    until = since + np.array([each[1] for each in stretches], np.int64)
    queue, done, filled = np.full(len(since), -1), np.full(len(since), NONE), np.zeros(len(since), np.int64)
    total = np.empty(len(line) + 1, np.int64)
    queues.drained(line, start, end, called.copy(), total, since, until, queue, done, filled)

    expected = []
    for low, high in zip(since.tolist(), until.tolist(), strict=True):
        best = -1, NONE, 0
        for each in sorted(set(line.tolist())):
            mine = np.flatnonzero(line == each)
            launched = mine[np.maximum.accumulate(called[mine]) < high]
            if len(launched) and max(low, best[1]) < end[launched[-1]] <= high:
                inside = np.minimum(end[launched], high) - np.maximum(start[launched], low)
                best = each, int(end[launched[-1]]), int(np.maximum(inside, 0).sum())
        expected.append(best)
    assert list(zip(queue.tolist(), done.tolist(), filled.tolist(), strict=True)) == expected
