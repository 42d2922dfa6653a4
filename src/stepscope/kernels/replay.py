"""Loops over a graph of work: an order in which it can be replayed, the replay, and the walk back from an end."""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled


@compiled
def sort(previous, into, source, state, stack, order, bad):  # type: ignore[no-untyped-def]
    """An order in which every node comes after all that it waits for.

    Args:
        previous: int32 of shape (nodes,), the node before it on its line, or -1.
        into: int64 of shape (nodes + 1,), where the edges into each node are.
        source: int32 of shape (edges,), the node that each edge comes from.
        state: uint8 of shape (nodes,), zeros; scratch.
        stack: int32 of shape (nodes + 1,); scratch.
        order: int32 of shape (nodes,), receives the order.
        bad: bool of shape (edges,), receives True for edges that would close a circle, which are left out.

    Returns:
        how many edges are left out.
    """
    count = 0
    dropped = 0
    for first in range(len(previous)):
        if state[first] == 2:
            continue
        depth = 1
        stack[0] = first
        state[first] = 1
        while depth > 0:
            node = stack[depth - 1]
            ask = np.int64(-1)
            before = previous[node]
            if before >= 0 and state[before] == 0:
                ask = before
            else:
                for edge in range(into[node], into[node + 1]):
                    if bad[edge]:
                        continue
                    here = source[edge]
                    if state[here] == 1:
                        bad[edge] = True
                        dropped += 1
                    elif state[here] == 0:
                        ask = here
                        break
            if ask >= 0:
                state[ask] = 1
                stack[depth] = ask
                depth += 1
                continue
            state[node] = 2
            order[count] = node
            count += 1
            depth -= 1
    return dropped


@compiled
def replay(order, previous, pause, own, into, source, lag, after_start, start, end):  # type: ignore[no-untyped-def]
    """When everything starts and ends if nothing waits for longer than it has to.

    Args:
        order: int32 of shape (nodes,), see `sort`.
        previous: int32 of shape (nodes,), the node before it on its line, or -1.
        pause: int64 of shape (nodes,), ps from the end of that one, or from 0, to the earliest start.
        own: int64 of shape (nodes,), ps, the length of each node.
        into, source: the edges into each node.
        lag: int64 of shape (edges,), ps from the end of the source, or from its start, to the earliest start.
        after_start: bool of shape (edges,), whether the lag counts from the source's start.
        start, end: int64 of shape (nodes,), receive the times in ps.
    """
    for at in range(len(order)):
        node = order[at]
        before = previous[node]
        moment = pause[node]
        if before >= 0:
            moment += end[before]
        for edge in range(into[node], into[node + 1]):
            from_node = source[edge]
            ready = lag[edge] + (start[from_node] if after_start[edge] else end[from_node])
            if ready > moment:
                moment = ready
        start[node] = moment
        end[node] = moment + own[node]


@compiled
def walk(first, limit, previous, into, source, after_start, start, end, node_out, edge_out, from_out, to_out):  # type: ignore[no-untyped-def]
    """Walks back from a node to a time along whatever determined each start, and gives every moment one owner.

    Args:
        first: the node at whose end the walk starts; limit: ps, where it ends.
        previous, into, source, after_start: the graph, see `replay`; edges that do not hold are not among them.
        start, end: int64 of shape (nodes,), when each node started and ended.
        node_out: int32, receives the node that owns a stretch of time, or that the stretch comes before.
        edge_out: int32, receives -1 for time of the node itself, -2 for the pause after the one before it on its line,
            else the edge that it waited for.
        from_out, to_out: int64, receive the stretch.

    Returns:
        how many stretches there are.
    """
    count = 0
    node = first
    moment = end[first]
    steps = 0
    while moment > limit and steps < 2 * len(start) and count + 2 <= len(node_out):
        steps += 1
        low = max(start[node], limit)
        if low < moment:
            node_out[count] = node
            edge_out[count] = -1
            from_out[count] = low
            to_out[count] = moment
            count += 1
            moment = low
        if moment <= limit:
            break
        best = np.int64(-1)
        best_edge = np.int64(-2)
        ready = np.int64(limit)
        before = previous[node]
        if before >= 0:
            best = before
            ready = end[before]
        for edge in range(into[node], into[node + 1]):
            other = source[edge]
            here = start[other] if after_start[edge] else end[other]
            if best < 0 or here > ready:
                best = other
                best_edge = np.int64(edge)
                ready = here
        ready = np.int64(max(min(ready, moment), limit))
        if ready < moment:
            node_out[count] = node
            edge_out[count] = best_edge
            from_out[count] = ready
            to_out[count] = moment
            count += 1
            moment = ready
        if best < 0:
            break
        if best_edge >= 0 and after_start[best_edge]:
            # The start of the source is what counted; go on before it.
            moment = min(moment, start[best])
        node = best
    return count


@compiled
def stretches(first, last, since, around, start, extent, parent, works, shortest, from_out, to_out, event_out):  # type: ignore[no-untyped-def]
    """The stretches of a line in which no event that works lasts, cut wherever another event starts or ends.

    Args:
        first, last: the rows of the line's events, sorted by start, at one start the longer first.
        since: ps, where the first stretch may start; around: the innermost event around that time, -1 where none is.
        start, extent: int64 of shape (events,), ps; parent: int32 of shape (events,), row or -1.
        works: bool of shape (events,), in place: what lies inside an event that works works as well.
        shortest: ps; shorter stretches are left out.
        from_out, to_out, event_out: int64 of shape (2 * (last - first) + depth,), receive the bounds of each stretch
            and the innermost event around it, -1 where none is; depth is how many events are around `since`.

    Returns:
        how many there are.
    """
    count = 0
    inner = np.int64(around)
    moment = np.int64(since)
    for event in range(first, last):
        above = np.int64(parent[event])
        if above >= 0 and works[above]:
            works[event] = True
        if extent[event] <= 0:
            continue
        begin = start[event]
        while inner >= 0 and inner != above:
            stop = min(start[inner] + extent[inner], begin)
            if stop - moment >= shortest and not works[inner]:
                from_out[count] = moment
                to_out[count] = stop
                event_out[count] = inner
                count += 1
            moment = max(moment, stop)
            inner = np.int64(parent[inner])
        if begin - moment >= shortest and not (inner >= 0 and works[inner]):
            from_out[count] = moment
            to_out[count] = begin
            event_out[count] = inner
            count += 1
        moment = max(moment, begin)
        inner = np.int64(event)
    while inner >= 0:
        stop = start[inner] + extent[inner]
        if stop - moment >= shortest and not works[inner]:
            from_out[count] = moment
            to_out[count] = stop
            event_out[count] = inner
            count += 1
        moment = max(moment, stop)
        inner = np.int64(parent[inner])
    return count
