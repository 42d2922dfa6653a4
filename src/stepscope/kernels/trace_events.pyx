"""Loops over the rows of a trace once they are columns: which are events, when they are, matching ends, finding what is
around, moving stats."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from stepscope.kernels.trace_json.layout cimport HAS_DURATION, HAS_PID, HAS_TID, HAS_TIME, NEGATIVE

cpdef enum:
    # What the phase of a row makes it.
    NO_EVENT
    WHOLE
    BEGIN
    END
    MARK
    COUNTER
    LOOSE_BEGIN  # of an asynchronous event
    UNSAID  # no phase: whole if there is a duration

cpdef enum:
    # How many rows have which defect, and the first time: places of `counts`.
    NOT_AN_EVENT
    UNTIMED
    FAR
    LONG
    NEGATIVE_LENGTH
    WITHOUT_LENGTH
    WITHOUT_THREAD
    FIRST_US
    FIRST_PS
    COUNTS

cdef enum:
    PS_PER_US = 1000000


cdef inline int _role_of(uint8_t phase, uint8_t flags, const uint8_t[::1] roles) noexcept nogil:
    """What a row is, by its phase or, without one, by whether it has a duration."""
    cdef int role = roles[phase]
    return (WHOLE if flags & HAS_DURATION else NO_EVENT) if role == UNSAID else role


def find_events(
    const uint8_t[::1] phase, const uint8_t[::1] flags, const int64_t[::1] us, const int32_t[::1] frac_ps,
    const int32_t[::1] of_row, const uint8_t[::1] is_kept, const uint8_t[::1] roles, double middle_us, double far_us,
    int64_t[::1] rows, int64_t[::1] counts,
):
    """Finds the rows that are events with a plausible time, ends included.

    Args:
        phase, flags, us, frac_ps, of_row: the columns of the rows; `of_row` is a row of `is_kept`.
        roles: uint8 of shape (256,), what each phase makes a row.
        middle_us, far_us: a time further than this from the middle is damage; so is 0, where the middle is not near it.
        rows: int64 with room for all rows, receives those that are events.
        counts: int64 of shape (COUNTS,), zeros, receives how many have neither a phase nor a duration, no time, or one
            that is far, and the first time.

    Returns:
        how many events there are.
    """
    cdef int64_t row, count = 0
    cdef int64_t time, first_us = 0, first_ps = 0
    cdef bint zero_is_far = not -far_us / 1000 < middle_us < far_us / 1000
    cdef int role
    with nogil:
        for row in range(phase.shape[0]):
            role = _role_of(phase[row], flags[row], roles)
            if role == NO_EVENT:
                counts[NOT_AN_EVENT] += phase[row] == 0
                continue
            if not is_kept[of_row[row]]:
                continue
            if not flags[row] & HAS_TIME:
                counts[UNTIMED] += 1
                continue
            time = us[row]
            if not -far_us < <double>time - middle_us < far_us or (time == 0 and zero_is_far):
                counts[FAR] += 1
                continue
            if count == 0 or time < first_us or (time == first_us and frac_ps[row] < first_ps):
                first_us, first_ps = time, frac_ps[row]
            rows[count] = row
            count += 1
        counts[FIRST_US], counts[FIRST_PS] = first_us, first_ps
    return count


def convert_events(
    const int64_t[::1] rows, const uint8_t[::1] phase, const uint8_t[::1] flags, const int64_t[::1] us,
    const int32_t[::1] frac_ps, const int64_t[::1] duration_us, const int32_t[::1] duration_frac_ps,
    const uint8_t[::1] roles, int64_t zero_us, int64_t zero_ps, int64_t longest_us, int64_t[::1] start_ps,
    int64_t[::1] duration_ps, uint8_t[::1] role_of, int64_t[::1] counts,
):
    """Starts and durations of events on a clock that starts at the zero.

    Args:
        rows: int64 of shape (events,), what `find_events` found.
        longest_us: a longer duration is damage and becomes 0.
        start_ps, duration_ps: int64 of shape (events,); role_of: uint8 of shape (events,); receive the results.
        counts: int64 of shape (COUNTS,), receives how many events are too long, last less than nothing, have no duration
            where they should, and no process or thread.
    """
    cdef int64_t event, row
    cdef int role
    cdef bint is_whole, has_thread
    with nogil:
        for event in range(rows.shape[0]):
            row = rows[event]
            role = _role_of(phase[row], flags[row], roles)
            role_of[event] = <uint8_t>role
            start_ps[event] = (us[row] - zero_us) * PS_PER_US + frac_ps[row] - zero_ps
            duration_ps[event] = 0
            counts[NEGATIVE_LENGTH] += (flags[row] & NEGATIVE) != 0
            has_thread = flags[row] & HAS_PID and flags[row] & HAS_TID
            counts[WITHOUT_THREAD] += role != END and role != COUNTER and not has_thread
            if duration_us[row] > longest_us:
                counts[LONG] += 1
            elif flags[row] & HAS_DURATION and role != BEGIN and role != LOOSE_BEGIN and role != END:
                duration_ps[event] = duration_us[row] * PS_PER_US + duration_frac_ps[row]
            counts[WITHOUT_LENGTH] += role == WHOLE and not flags[row] & HAS_DURATION


def match_pairs(
    const int32_t[::1] group, const uint8_t[::1] opens, int64_t[::1] stack_next, int64_t[::1] stack_top,
    int64_t[::1] partner,
):
    """Matches beginnings with ends, the last open one first, each group by itself.

    Args:
        group: int32 of shape (n,), in the order of time.
        opens: bool of shape (n,): a beginning, else an end.
        stack_next: int64 of shape (n,), scratch.
        stack_top: int64 of shape (groups,), all -1.
        partner: int64 of shape (n,), receives the place of the other one, -1 if there is none.
    """
    cdef int64_t i, top
    with nogil:
        for i in range(group.shape[0]):
            partner[i] = -1
            top = stack_top[group[i]]
            if opens[i]:
                stack_next[i] = top
                stack_top[group[i]] = i
            elif top >= 0:
                partner[i] = top
                partner[top] = i
                stack_top[group[i]] = stack_next[top]


def innermost(
    const int64_t[::1] line, const int64_t[::1] start, const int64_t[::1] end, const uint8_t[::1] holds,
    int64_t[::1] stack, int64_t[::1] out,
):
    """For every event, the nearest event around it on its line that `holds`.

    Args:
        line, start, end: int64 of shape (n,), sorted by line, start, and falling end.
        holds: bool of shape (n,).
        stack: int64 of shape (n,), scratch.
        out: int64 of shape (n,), receives the place of that event, -1 if there is none.
    """
    cdef int64_t i, k, depth = 0
    with nogil:
        for i in range(line.shape[0]):
            while depth > 0 and (line[stack[depth - 1]] != line[i] or end[stack[depth - 1]] <= start[i]):
                depth -= 1
            out[i] = -1
            for k in range(depth - 1, -1, -1):  # an event may run over the end of the one around it
                if end[stack[k]] >= end[i]:
                    out[i] = stack[k]
                    break
            if holds[i]:
                stack[depth] = i
                depth += 1


def gather_stats(
    int64_t first, int64_t last, const int64_t[::1] order, const int64_t[::1] more, const int64_t[::1] offsets,
    const int32_t[::1] name, const uint8_t[::1] tag, const int64_t[::1] value, const int32_t[::1] names,
    const int64_t[::1] extra_offsets, extra, const int64_t[::1] out_offsets, int32_t[::1] out_name,
    uint8_t[::1] out_tag, int64_t[::1] out_value,
):
    """Copies the stats of events in a new order: event i gets those of the rows `order[i]` and `more[i]` (-1 for none)
    and then the extra stats `extra_offsets[i]` to `extra_offsets[i + 1]`; `extra` is their name, tag and value.

    Args:
        first, last: the run of events to do; threads may do several runs at a time.
        names: int32 of shape (texts,), what to call a stat that has this name; extra stats keep theirs.
        out_offsets: int64 of shape (events + 1,), where the stats of each event go.
    """
    cdef const int32_t[::1] extra_name = extra[0]
    cdef const uint8_t[::1] extra_tag = extra[1]
    cdef const int64_t[::1] extra_value = extra[2]
    cdef int64_t i, turn, source, row, to
    with nogil:
        for i in range(first, last):
            to = out_offsets[i]
            for turn in range(2):
                source = more[i] if turn else order[i]
                if source < 0:
                    continue
                for row in range(offsets[source], offsets[source + 1]):
                    out_name[to] = names[name[row]]
                    out_tag[to] = tag[row]
                    out_value[to] = value[row]
                    to += 1
            for row in range(extra_offsets[i], extra_offsets[i + 1]):
                out_name[to] = extra_name[row]
                out_tag[to] = extra_tag[row]
                out_value[to] = extra_value[row]
                to += 1
