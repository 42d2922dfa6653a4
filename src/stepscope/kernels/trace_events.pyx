"""Loops over the events of a JSON trace once they are columns: matching ends, finding what is around, moving stats."""

from libc.stdint cimport int32_t, int64_t, uint8_t


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
