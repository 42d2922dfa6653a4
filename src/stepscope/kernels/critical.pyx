"""The walk back along the chain of events that nothing in a step could have happened without."""

from libc.stdint cimport int64_t, uint8_t

cdef enum:
    # At one moment the walk changes its place a few times; more is a circle in damaged data.
    _MOST_TURNS = 16


cdef int64_t _first_after(const int64_t[::1] values, int64_t first, int64_t last, int64_t limit) except? -1 nogil:
    """The first place in `first:last` of ascending values that is above a limit, else `last`."""
    cdef int64_t middle
    while first < last:
        middle = (first + last) >> 1
        if values[middle] > limit:
            last = middle
        else:
            first = middle + 1
    return first


cdef class Path:
    """The events that may be on the path, how they hang together, and where the walk is.

    Args:
        start, end: int64 of shape (n,), ps, line by line, sorted by start.
        parent, cause: int64 of shape (n,), row among these or -1; line: int64 of shape (n,).
        line_begin, line_end: int64 of shape (lines,), the rows of each line.
        part: uint8 of shape (n,), what an event on the path counts as.
        host_lines: int64, the threads that may be on the path.
        done, done_end: int64, device work by its end, and these ends, ascending.
        parts: what waits for a device, gaps between kernels, launch delays and all else count as.
        long_delay: ps from which on work that was launched in time is taken to wait for another stream.
    """

    cdef const int64_t[::1] start, end, parent, cause, line, line_begin, line_end, host_lines, done, done_end
    cdef const uint8_t[::1] part
    cdef uint8_t wait, gap, launch, other
    cdef int64_t long_delay
    cdef int64_t begin, moment, at_line, at_work  # the row of the device work that the walk is at, or -1
    cdef int64_t[::1] out, time, delay

    def __init__(
        self, start, end, parent, cause, line, line_begin, line_end, part, host_lines, done, done_end, parts, long_delay
    ):
        self.start, self.end = start, end
        self.parent, self.cause, self.line = parent, cause, line
        self.line_begin, self.line_end = line_begin, line_end
        self.part, self.host_lines = part, host_lines
        self.done, self.done_end = done, done_end
        self.wait, self.gap, self.launch, self.other = parts
        self.long_delay = long_delay

    def walk(self, int64_t begin, int64_t end, int64_t main, out, time, delay):
        """Walks back from the end of a step to its begin and gives every moment to what the step waited for then.

        Args:
            begin, end: ps, of the step; main: the thread on which it ends.
            out: int64 of shape (parts,), receives the time of each.
            time, delay: int64 of shape (n,), receive the time of each event on the path, and that before it.
        """
        self.begin, self.moment, self.at_line = begin, end, main
        self.out, self.time, self.delay = out, time, delay
        with nogil:
            self._run()

    cdef int64_t _last_done(self, int64_t limit) except? -2 nogil:
        """The device work that ended last by a time, or -1."""
        cdef int64_t place = _first_after(self.done_end, 0, self.done_end.shape[0], limit) - 1
        return self.done[place] if place >= 0 else -1

    cdef int _run(self) except -1 nogil:
        cdef int64_t before = self.moment + 1, turns = 0
        self.at_work = self._last_done(self.moment)
        if self.at_work >= 0 and self.end[self.at_work] != self.moment:
            self.at_work = -1
        while self.moment > self.begin:
            turns = turns + 1 if self.moment == before else 0
            before = self.moment
            if turns > _MOST_TURNS or not (self._leave_work() if self.at_work >= 0 else self._leave_host()):
                break
        if self.moment > self.begin:
            self.out[self.other] += self.moment - self.begin
        return 0

    cdef int64_t _give(self, uint8_t part, int64_t until) except? -1 nogil:
        """Gives the time back to `until`, or to the begin of the step, to a part.  Returns how much that is."""
        cdef int64_t to = max(until, self.begin)
        cdef int64_t length = self.moment - to
        self.out[part] += length
        self.moment = to
        return length

    cdef int _leave_work(self) except -1 nogil:
        """From device work to what it waited for; 0 if the walk ends here."""
        cdef int64_t work = self.at_work, call, previous, ready, latest
        cdef bint queued
        if self.start[work] < self.moment:
            self.time[work] += self._give(self.part[work], self.start[work])
        if self.moment <= self.begin:
            return 0
        call, previous = self.cause[work], -1
        if work > self.line_begin[self.line[work]] and self.end[work - 1] <= self.moment:
            previous = work - 1
        queued = previous >= 0 and (call < 0 or self.end[previous] >= self.start[call])
        if call >= 0 or queued:
            # Since when the work could have run: it was launched, and what its stream had before was done.
            ready = self.end[previous] if queued else self.end[call]
            if call >= 0:
                ready = max(ready, self.end[call])
            latest = self._last_done(self.moment)
            if self.moment - ready > self.long_delay and latest >= 0 and self.end[latest] > ready:
                previous = latest  # of another stream
            elif not queued:
                self.delay[work] += self._give(self.launch, min(self.moment, self.end[call]))
                self.at_line = self.line[call]
                self.at_work = -1
                return 1
        if previous < 0:
            return 0
        self.delay[work] += self._give(self.gap, self.end[previous])
        self.at_work = previous
        return 1

    cdef int _leave_host(self) except -1 nogil:
        """From the innermost event of this thread, else of another one, else of none, to what was before it."""
        cdef int64_t found = -1, free = self.begin, free_line = self.at_line, k, here, row, ended, latest
        for k in range(-1, self.host_lines.shape[0]):
            here = self.at_line if k < 0 else self.host_lines[k]
            if k >= 0 and here == self.at_line:
                continue
            row = _first_after(self.start, self.line_begin[here], self.line_end[here], self.moment - 1) - 1
            if row < self.line_begin[here]:
                continue
            ended = -1
            while row >= 0 and self.end[row] < self.moment:
                ended = row
                row = self.parent[row]
            if row >= 0:
                found = row
                free = max(self.start[row], self.begin)
                if ended >= 0:
                    free = max(free, self.end[ended])
                self.at_line = here
                break
            if ended >= 0 and self.end[ended] > free:
                free = self.end[ended]
                free_line = here
        if found < 0:
            self._give(self.other, free)
            self.at_line = free_line
            return 1
        if self.part[found] == self.wait:
            latest = self._last_done(self.moment)
            if latest >= 0 and self.end[latest] > self.start[found]:
                self.time[found] += self._give(self.wait, self.end[latest])
                self.at_work = latest
                return 1
        self.time[found] += self._give(self.part[found], free)
        return 1
