"""Queues of devices: their work one after the other, what ended just before some work starts, and when they ran out."""

from libc.stdint cimport int32_t, int64_t

from stepscope.kernels.growing cimport Growing, push
from stepscope.kernels.memory cimport free
from stepscope.kernels.searching cimport place_of


def line_up(
    const int32_t[::1] line, const int32_t[::1] plane, const int64_t[::1] called, int64_t zero, int64_t[::1] start,
    int64_t[::1] end, int64_t[::1] own, int64_t[::1] free_ps, int64_t[::1] previous,
):
    """Puts the work of each queue in a row, so that none overlaps the work before it, and none starts before its call.

    Args:
        line: int32 of shape (n,), queue after queue; plane: int32 of shape (lines,), the device of each.
        called: int64 of shape (n,), when the call that launched each began; that of no call, the work's own start.
        zero: ps, since when the first work of a queue could run.
        start: int64 of shape (n,), ps, in place: later for all work of a device by as much as any of it is before its
            call, and not before the work before it ends.
        end: int64 of shape (n,), in place: how long each takes, then when it and all work before it has ended.
        own: int64 of shape (n,), receives the time that no work before it takes.
        free_ps: int64 of shape (n,), receives since when the queue is free for it.
        previous: int64 of shape (n,), receives the place of the work before it, or -1.
    """
    cdef Growing early = Growing(NULL, 0, 0)
    cdef int64_t at, since, until, count = line.shape[0]
    if not (called.shape[0] == start.shape[0] == end.shape[0] == own.shape[0] == free_ps.shape[0] == count):
        raise IndexError("the columns are not of one length")
    if previous.shape[0] != count:
        raise IndexError("the columns are not of one length")
    try:
        with nogil:
            for at in range(count):
                while early.size <= plane[line[at]]:
                    push(&early, 0)
                if called[at] - start[at] > early.items[plane[line[at]]]:
                    early.items[plane[line[at]]] = called[at] - start[at]
            for at in range(count):
                since = start[at] + early.items[plane[line[at]]]
                until = since + end[at]
                previous[at], free_ps[at] = -1, zero
                if at > 0 and line[at] == line[at - 1]:
                    previous[at], free_ps[at] = at - 1, end[at - 1]
                    since = max(since, end[at - 1])
                own[at] = max(until - since, 0)
                start[at], end[at] = since, until if previous[at] < 0 else max(until, end[at - 1])
    finally:
        free(early.items)


def last_done(
    const int64_t[::1] by_end, const int64_t[::1] done, const int64_t[::1] start, const int64_t[::1] since,
    const int32_t[::1] line, const int32_t[::1] own, int64_t inexact, int most_back, int64_t[::1] out,
):
    """The work of another queue that ended last before some work started, where that explains the start: no more than
    half of the time since it could have started is left.

    Args:
        by_end: int64 of shape (m,), work by its end; done: int64 of shape (m,), ps, those ends, ascending.
        start, since, own: int64, int64 and int32 of shape (n,), of the work that is asked about: when it started, since
            when it could have, and its queue.
        line: int32 of shape (all work,), the queue of each.
        inexact: work may end after the start by that part of the time since it could have started.
        most_back: of the asked queue's own work at most so much is passed over.
        out: int64 of shape (n,), receives the work, -1 for none.
    """
    cdef int64_t at, back, near = 0, waited
    if not (start.shape[0] == since.shape[0] == own.shape[0] == out.shape[0] and by_end.shape[0] == done.shape[0]):
        raise IndexError("the columns are not of one length")
    with nogil:
        for at in range(start.shape[0]):
            waited = start[at] - since[at]
            near = place_of(done, 0, done.shape[0], near, start[at] + max(waited // inexact, 0) + 1)
            back = near - 1
            while back >= 0 and near - 1 - back < most_back and line[by_end[back]] == own[at]:
                back -= 1
            out[at] = -1
            if back >= 0 and line[by_end[back]] != own[at] and done[back] > since[at]:
                if start[at] - done[back] <= waited // 2:
                    out[at] = by_end[back]


def drained(
    const int32_t[::1] line, const int64_t[::1] start, const int64_t[::1] end, int64_t[::1] called,
    int64_t[::1] total, const int64_t[::1] since, const int64_t[::1] until, int64_t[::1] out_line, int64_t[::1] done,
    int64_t[::1] filled,
):
    """For each of some stretches of time the last queue that ran out of work in it.

    Args:
        line: int32 of shape (n,), queue after queue; start, end: int64 of shape (n,), ps, when the work runs, of which
            none overlaps.
        called: int64 of shape (n,), ps, when it was launched; scratch.
        total: int64 of shape (n + 1,); scratch.
        since, until: int64 of shape (m,), ps, the stretches.
        out_line: int64 of shape (m,), all -1; receives the queue.
        done: int64 of shape (m,), all the least number; receives when it had done what was launched before `until`.
        filled: int64 of shape (m,), zeros; receives for how long until then it worked in the stretch.
    """
    cdef int64_t at, first = 0, last
    if not (line.shape[0] == start.shape[0] == end.shape[0] == called.shape[0] == total.shape[0] - 1):
        raise IndexError("the columns of work are not of one length")
    if not (since.shape[0] == until.shape[0] == out_line.shape[0] == done.shape[0] == filled.shape[0]):
        raise IndexError("the columns of stretches are not of one length")
    with nogil:
        total[0] = 0
        for at in range(line.shape[0]):
            total[at + 1] = total[at] + end[at] - start[at]
            if at > 0 and line[at] == line[at - 1]:
                called[at] = max(called[at], called[at - 1])
        while first < line.shape[0]:
            last = first + 1
            while last < line.shape[0] and line[last] == line[first]:
                last += 1
            _drain(line[first], first, last, start, end, called, total, since, until, out_line, done, filled)
            first = last


cdef void _drain(
    int64_t queue, int64_t first, int64_t last, const int64_t[::1] start, const int64_t[::1] end,
    const int64_t[::1] called, const int64_t[::1] total, const int64_t[::1] since, const int64_t[::1] until,
    int64_t[::1] out_line, int64_t[::1] done, int64_t[::1] filled,
) noexcept nogil:
    """The stretches in which one queue ran out of work later than those before."""
    cdef int64_t at, launched = first, low = first
    for at in range(since.shape[0]):
        launched = place_of(called, first, last, launched, until[at])
        if launched == first:
            continue
        if end[launched - 1] > until[at] or end[launched - 1] <= max(since[at], done[at]):
            continue
        out_line[at], done[at] = queue, end[launched - 1]
        # Work of a queue does not overlap, so that what it did up to a time is a sum and a part of one piece.
        low = place_of(start, first, last, low, since[at])
        filled[at] = total[launched] - total[low]
        if low > first:
            filled[at] += max(end[low - 1] - since[at], 0)
