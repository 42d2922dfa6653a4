"""The walk back along the chain of events that nothing in a step could have happened without."""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled

# At one moment the walk changes its place a few times; more is a circle in damaged data.
_MOST_TURNS = 16


@compiled(inline="always")
def _first_after(values, first, last, limit):  # type: ignore[no-untyped-def]
    """The first place in `first:last` of ascending values that is above a limit, else `last`.

    numpy's search says the same, but code with a part of numba's library in it needs what that part imports, when it is
    loaded: 155 modules.
    """
    low = first
    high = last
    while low < high:
        middle = (low + high) >> 1
        if values[middle] > limit:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def walk(  # type: ignore[no-untyped-def]
    window, main, start, end, parent, cause, line, line_begin, line_end, sort, host_lines, done, done_end, sorts,
    long_delay, out, time, delay
):  # fmt: skip
    """Walks back from the end of a step to its begin and gives every moment to what the step waited for then.

    Args:
        window: int64 of (begin, end) of the step; main: the thread on which the step ends.
        start, end: int64 of shape (n,), ps, of the events that may be on the path, line by line, sorted by start.
        parent, cause: int64 of shape (n,), row among these or -1; line: int64 of shape (n,).
        line_begin, line_end: int64 of shape (lines,), the rows of each line.
        sort: uint8 of shape (n,), what an event on the path counts as.
        host_lines: int64, the threads that may be on the path.
        done, done_end: int64, device work by its end, and these ends, ascending.
        sorts: int64 of four: the sort of waits for a device, of gaps between kernels, of launch delays, of all else.
        long_delay: ps from which on work that was launched in time is taken to wait for another stream.
        out: int64 of shape (sorts,), receives the time of each.
        time, delay: int64 of shape (n,), receive the time of each event on the path, and that before it.
    """
    sync, gap, launch, other = sorts[0], sorts[1], sorts[2], sorts[3]
    begin, moment = window[0], window[1]
    at_line = main
    at_work = np.int64(-1)
    last = _first_after(done_end, 0, len(done_end), moment) - 1
    if last >= 0 and done_end[last] == moment:
        at_work = done[last]
    turns = 0
    before = moment + 1
    while moment > begin:
        turns = turns + 1 if moment == before else 0
        before = moment
        if turns > _MOST_TURNS:
            break
        if at_work >= 0:
            work = at_work
            to = max(start[work], begin)
            if to < moment:
                out[sort[work]] += moment - to
                time[work] += moment - to
                moment = to
            if moment <= begin:
                break
            call = cause[work]
            previous = work - 1 if work > line_begin[line[work]] and end[work - 1] <= moment else np.int64(-1)
            queued = previous >= 0 and (call < 0 or end[previous] >= start[call])
            if call >= 0 or queued:
                # Since when the work could have run: it was launched, and what its stream had before was done.
                ready = end[previous] if queued else end[call]
                if call >= 0:
                    ready = max(ready, end[call])
                latest = _first_after(done_end, 0, len(done_end), moment) - 1
                if moment - ready > long_delay and latest >= 0 and done_end[latest] > ready:
                    previous = done[latest]  # of another stream
                elif not queued:
                    to = max(min(moment, end[call]), begin)
                    out[launch] += moment - to
                    delay[work] += moment - to
                    moment = to
                    at_line = line[call]
                    at_work = np.int64(-1)
                    continue
            if previous < 0:
                break
            to = max(end[previous], begin)
            out[gap] += moment - to
            delay[work] += moment - to
            moment = to
            at_work = previous
            continue
        # On the host: the innermost event of this thread, else of another one, else of none.
        found = np.int64(-1)
        free = begin
        free_line = at_line
        for k in range(-1, len(host_lines)):
            here = at_line if k < 0 else host_lines[k]
            if k >= 0 and here == at_line:
                continue
            first = line_begin[here]
            row = _first_after(start, first, line_end[here], moment - 1) - 1
            if row < first:
                continue
            ended = np.int64(-1)
            while row >= 0 and end[row] < moment:
                ended = row
                row = parent[row]
            if row >= 0:
                found = row
                free = max(start[row], begin)
                if ended >= 0:
                    free = max(free, end[ended])
                at_line = here
                break
            if ended >= 0 and end[ended] > free:
                free = end[ended]
                free_line = here
        if found < 0:
            out[other] += moment - free
            moment = free
            at_line = free_line
            continue
        if sort[found] == sync:
            latest = _first_after(done_end, 0, len(done_end), moment) - 1
            if latest >= 0 and done_end[latest] > start[found]:
                to = max(done_end[latest], begin)
                out[sync] += moment - to
                time[found] += moment - to
                moment = to
                at_work = done[latest]
                continue
        out[sort[found]] += moment - free
        time[found] += moment - free
        moment = free
    if moment > begin:
        out[other] += moment - begin
