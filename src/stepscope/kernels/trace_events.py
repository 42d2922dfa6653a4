"""Loops over the events of a JSON trace once they are columns: matching ends, finding what is around, moving stats."""
# mypy: disallow-untyped-decorators=False, disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from stepscope.kernels.compiling import compiled


@compiled
def match_pairs(group, opens, stack_next, stack_top, partner):
    """Matches beginnings with ends, the last open one first, each group by itself.

    Args:
        group: int32 of shape (n,), in the order of time.
        opens: bool of shape (n,): a beginning, else an end.
        stack_next: int64 of shape (n,), scratch.
        stack_top: int64 of shape (groups,), all -1.
        partner: int64 of shape (n,), receives the place of the other one, -1 if there is none.
    """
    for i in range(len(group)):
        partner[i] = -1
        top = stack_top[group[i]]
        if opens[i]:
            stack_next[i] = top
            stack_top[group[i]] = i
        elif top >= 0:
            partner[i] = top
            partner[top] = i
            stack_top[group[i]] = stack_next[top]


@compiled
def innermost(line, start, end, holds, stack, out):
    """For every event, the nearest event around it on its line that `holds`.

    Args:
        line, start, end: int64 of shape (n,), sorted by line, start, and falling end.
        holds: bool of shape (n,).
        stack: int64 of shape (n,), scratch.
        out: int64 of shape (n,), receives the place of that event, -1 if there is none.
    """
    depth = 0
    for i in range(len(line)):
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


@compiled
def gather_stats(
    order, more, offsets, name, tag, value, extra_offsets, extra, out_offsets, out_name, out_tag, out_value
):  # fmt: skip
    """Copies the stats of events in a new order: event i gets those of the rows `order[i]` and `more[i]` (-1 for none)
    and then the extra stats `extra_offsets[i]` to `extra_offsets[i + 1]`."""
    extra_name, extra_tag, extra_value = extra
    to = 0
    for i in range(len(order)):
        for source in (order[i], more[i]):
            if source < 0:
                continue
            for row in range(offsets[source], offsets[source + 1]):
                out_name[to] = name[row]
                out_tag[to] = tag[row]
                out_value[to] = value[row]
                to += 1
        for row in range(extra_offsets[i], extra_offsets[i + 1]):
            out_name[to] = extra_name[row]
            out_tag[to] = extra_tag[row]
            out_value[to] = extra_value[row]
            to += 1
        out_offsets[i + 1] = to
