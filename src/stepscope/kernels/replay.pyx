"""Loops over a graph of work: an order in which it can be replayed, the replay, the walk back from an end, and times of
its nodes; and over a thread's events: when it does nothing that works."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from stepscope.kernels.growing cimport Growing, as_column, as_table, push, push_row
from stepscope.kernels.memory cimport free
from stepscope.kernels.searching cimport place_of


def sort(
    const int32_t[::1] previous, const int64_t[::1] into, const int32_t[::1] source, uint8_t[::1] state,
    int32_t[::1] stack, int32_t[::1] order, uint8_t[::1] bad,
):
    """An order in which every node comes after all that it waits for.

    Args:
        previous: int32 of shape (nodes,), the node before it on its line, or -1.
        into: int64 of shape (nodes + 1,), where the edges into each node are.
        source: int32 of shape (edges,), the node that each edge comes from.
        state: uint8 of shape (nodes,), zeros; scratch.
        stack: int32 of shape (nodes + 1,); scratch.
        order: int32 of shape (nodes,), receives the order.
        bad: uint8 of shape (edges,), zeros; receives 1 for edges that would close a circle, which are left out.
    """
    cdef int64_t first, edge, count = 0, depth
    cdef int32_t node, ask, before, here
    with nogil:
        for first in range(previous.shape[0]):
            if state[first]:
                continue
            depth = 1
            stack[0] = <int32_t>first
            state[first] = 1
            while depth > 0:
                node = stack[depth - 1]
                ask = -1
                before = previous[node]
                if before >= 0 and state[before] == 0:
                    ask = before
                else:
                    for edge in range(into[node], into[node + 1]):
                        here = source[edge]
                        if bad[edge] or state[here] == 2:
                            continue
                        if state[here] == 1:
                            bad[edge] = 1
                        else:
                            ask = here
                            break
                if ask >= 0:
                    state[ask] = 1
                    stack[depth] = ask
                    depth += 1
                else:
                    state[node] = 2
                    order[count] = node
                    count += 1
                    depth -= 1


def sort_edges(
    const int32_t[::1] source, const int32_t[::1] target, const int64_t[::1] lag, const uint8_t[::1] after_start,
    const int64_t[::1] start, const int64_t[::1] end, int64_t[::1] into, int64_t[::1] order,
):
    """Edges by their targets, without those whose source was not ready when the target started, as recorded: they would
    turn the record around.

    Args:
        source, target: int32 of shape (edges,); lag, after_start: as of `replay`.
        start, end: int64 of shape (nodes,), ps, as recorded.
        into: int64 of shape (nodes + 1,), zeros; receives where the edges into each node are.
        order: int64 of shape (edges,), receives the edges, which keep their order at each target.

    Returns:
        How many of them are left.
    """
    cdef int64_t edge, node, begin, count
    if not source.shape[0] == target.shape[0] == lag.shape[0] == after_start.shape[0] == order.shape[0]:
        raise IndexError("the columns are not of one length")
    with nogil:
        for edge in range(source.shape[0]):
            if _holds(edge, source, target, lag, after_start, start, end):
                into[target[edge] + 1] += 1
        count = 0
        for node in range(1, into.shape[0]):  # where those of the node before start
            begin = count
            count += into[node]
            into[node] = begin
        for edge in range(source.shape[0]):
            if _holds(edge, source, target, lag, after_start, start, end):
                order[into[target[edge] + 1]] = edge
                into[target[edge] + 1] += 1
    return count


cdef inline bint _holds(
    int64_t edge, const int32_t[::1] source, const int32_t[::1] target, const int64_t[::1] lag,
    const uint8_t[::1] after_start, const int64_t[::1] start, const int64_t[::1] end,
) noexcept nogil:
    cdef int64_t ready = start[source[edge]] if after_start[edge] else end[source[edge]]
    return ready + min(lag[edge], 0) <= start[target[edge]]


def replay(
    const int32_t[::1] order, const int32_t[::1] previous, const int64_t[::1] pause, const int64_t[::1] own,
    const int64_t[::1] into, const int32_t[::1] source, const int64_t[::1] lag, const uint8_t[::1] after_start,
    int64_t[::1] start, int64_t[::1] end,
):
    """When everything starts and ends if nothing waits for longer than it has to.

    Args:
        order: int32 of shape (nodes,), see `sort`.
        previous: int32 of shape (nodes,), the node before it on its line, or -1.
        pause: int64 of shape (nodes,), ps from the end of that one, or from 0, to the earliest start.
        own: int64 of shape (nodes,), ps, the length of each node.
        into, source: the edges into each node.
        lag: int64 of shape (edges,), ps from the end of the source, or from its start, to the earliest start.
        after_start: uint8 of shape (edges,), whether the lag counts from the source's start.
        start, end: int64 of shape (nodes,), receive the times in ps.
    """
    cdef int64_t at, edge, moment, ready
    cdef int32_t node, other
    with nogil:
        for at in range(order.shape[0]):
            node = order[at]
            moment = pause[node]
            if previous[node] >= 0:
                moment += end[previous[node]]
            for edge in range(into[node], into[node + 1]):
                other = source[edge]
                ready = lag[edge] + (start[other] if after_start[edge] else end[other])
                if ready > moment:
                    moment = ready
            start[node] = moment
            end[node] = moment + own[node]


def walk(
    const int64_t[::1] steps, const int32_t[::1] bounds, const int32_t[::1] previous, const int64_t[::1] into,
    const int32_t[::1] source, const uint8_t[::1] after_start, const int64_t[::1] start, const int64_t[::1] end,
):
    """Walks back through steps along whatever determined each start, and gives every moment one owner.

    Args:
        steps: the steps to walk through; bounds: the nodes that bound all steps, one more than there are steps.
        previous, into, source, after_start: the graph, see `replay`.
        start, end: int64 of shape (nodes,), when each node started and ended.

    Returns:
        int64 of shape (stretches, 4): the node that owns a stretch of time, or that the stretch comes before; -1 for
        time of the node itself, -2 for the pause after the one before it on its line, else the edge that it waited for;
        start and end of the stretch.  Where a way ends early, the time that it missed is a pause before the last bound.
    """
    cdef Growing found = Growing(NULL, 0, 0)
    cdef int64_t at
    try:
        with nogil:
            for at in range(steps.shape[0]):
                _walk_step(steps[at], bounds, previous, into, source, after_start, start, end, &found)
        return as_table(&found, 4)
    finally:
        free(found.items)


def spend(
    const int64_t[::1] steps, const int32_t[::1] bounds, const int32_t[::1] previous, const int64_t[::1] into,
    const int32_t[::1] source, const uint8_t[::1] after_start, const int64_t[::1] start, const int64_t[::1] end,
    const double[::1] whole, const uint8_t[::1] edge_cause, const int64_t[::1] unexplained, const uint8_t[::1] is_work,
    int gap, double[::1] spent, double[::1] share,
):
    """What the way back through steps is spent on: the causes of waiting, and the share of each node's own time.

    Args:
        steps, bounds, previous, into, source, after_start, start, end: as of `walk`.
        whole: float64 of shape (nodes,), ps, the own time of each node, of which the shares are.
        edge_cause: uint8 of shape (edges,), the cause of waiting for each edge.
        unexplained: int64 of shape (nodes,), ps; a longer pause before work has the cause `gap`, any other pause 0.
        is_work: uint8 of shape (nodes,), whether a node is work of a device.
        spent: float64 of shape (causes,), ps; what is waited is added to it.
        share: float64 of shape (nodes,); the part of its own time that each node has on the way is added to it.
    """
    cdef Growing found = Growing(NULL, 0, 0)
    cdef int64_t at, stretch, node, edge, length
    cdef int cause
    try:
        with nogil:
            for at in range(steps.shape[0]):
                found.size = 0
                _walk_step(steps[at], bounds, previous, into, source, after_start, start, end, &found)
                for stretch in range(0, found.size, 4):
                    node, edge = found.items[stretch], found.items[stretch + 1]
                    length = found.items[stretch + 3] - found.items[stretch + 2]
                    if edge != -1:
                        cause = 0
                        if edge >= 0:
                            cause = edge_cause[edge]
                        elif is_work[node] and length > unexplained[node]:
                            cause = gap
                        spent[cause] += length
                    elif whole[node] > 0:
                        share[node] += <double>length / whole[node]
    finally:
        free(found.items)


def pieces(
    const int32_t[::1] bounds, const int32_t[::1] previous, const int64_t[::1] into, const int32_t[::1] source,
    const uint8_t[::1] after_start, const int64_t[::1] start, const int64_t[::1] end, const int32_t[::1] line,
    const int32_t[::1] event, const uint8_t[::1] kind, int work, const int64_t[::1] since, const int64_t[::1] until,
    const int64_t[::1] first, const int64_t[::1] last, const int64_t[::1] begun, const int64_t[::1] extent,
    const int32_t[::1] parent, int main, const int64_t[::1] cuts, const int64_t[::1] cuts_of_others,
):
    """The way through all steps, with the own time of threads cut wherever the innermost event changes.

    Args:
        bounds, previous, into, source, after_start, start, end: as of `walk`.
        line, event, kind: int32, int32 and uint8 of shape (nodes,): the line, -1 for none, the event, and the kind, of
            which `work` is that of device work.
        since, until: int64 of shape (steps,), ps: what is outside of them is left out.
        first, last: int64 of shape (lines,), the rows of each line's events, sorted by start, at one start the longer
            first.
        begun, extent: int64 of shape (events,), ps; parent: int32 of shape (events,), row or -1.
        main: the line that is cut at `cuts` as well, int64 of shape (n,), ps, ascending; the others at those of others.

    Returns:
        Five of int64 of shape (pieces,), in order of time: start, end, node, edge and event of each piece, as of `walk`
        and -1 where no event is.
    """
    # near: the event that starts next on each line, and the last before it that lasts.
    cdef Growing way = Growing(NULL, 0, 0), near = Growing(NULL, 0, 0)
    cdef Growing[5] found
    cdef int64_t step, at, node, low, high, on, near_cut = 0, near_other = 0
    cdef int column
    if not (since.shape[0] == until.shape[0] == bounds.shape[0] - 1 and first.shape[0] == last.shape[0]):
        raise IndexError("the columns are not of one length")
    memset(found, 0, sizeof(found))
    try:
        with nogil:
            for at in range(first.shape[0]):
                push(&near, first[at])
                push(&near, -1)
            for step in range(bounds.shape[0] - 1):
                way.size = 0
                _walk_step(step, bounds, previous, into, source, after_start, start, end, &way)
                for at in range(way.size - 4, -4, -4):  # the way leads back
                    node = way.items[at]
                    low, high = max(way.items[at + 2], since[step]), min(way.items[at + 3], until[step])
                    if high <= low:
                        continue
                    on = line[node]
                    if way.items[at + 1] != -1 or kind[node] == work or on < 0:
                        push_row(found, way.items[at + 2], way.items[at + 3], node, way.items[at + 1], event[node])
                    elif on == main:
                        _put_own(
                            found, low, high, node, first[on], last[on], &near.items[2 * on], begun, extent, parent, cuts,
                            &near_cut,
                        )
                    else:
                        _put_own(
                            found, low, high, node, first[on], last[on], &near.items[2 * on], begun, extent, parent,
                            cuts_of_others, &near_other,
                        )
        return tuple([as_column(&found[column]) for column in range(5)])
    finally:
        free(way.items)
        free(near.items)
        for column in range(5):
            free(found[column].items)


cdef int _put_own(
    Growing* found, int64_t begin, int64_t stop, int64_t node, int64_t first, int64_t last, int64_t* near,
    const int64_t[::1] begun, const int64_t[::1] extent, const int32_t[::1] parent, const int64_t[::1] cuts,
    int64_t* near_cut,
) except -1 nogil:
    """Gives away the own time of a node, cut at events and at other times."""
    cdef int64_t following = place_of(begun, first, last, near[0], begin + 1), inner, until, over, around
    for inner in range(following - 1, near[0] - 1, -1):
        if extent[inner] > 0:
            near[1] = inner
            break
    near[0], inner = following, near[1]
    while begin < stop:
        while following < last and extent[following] <= 0:
            following += 1
        until, around = stop, -1
        if following < last:
            until, around = min(stop, begun[following]), parent[following]
        while begin < until:
            # What is around the next event lasts until then, whatever is recorded of its own end.
            over = until if inner < 0 or inner == around else min(until, begun[inner] + extent[inner])
            while near_cut[0] < cuts.shape[0] and cuts[near_cut[0]] < over:
                if cuts[near_cut[0]] > begin:
                    push_row(found, begin, cuts[near_cut[0]], node, -1, inner)
                    begin = cuts[near_cut[0]]
                near_cut[0] += 1
            if over > begin:
                push_row(found, begin, over, node, -1, inner)
                begin = over
            if begin < until:
                inner = parent[inner]
        if begin < stop:  # at one start the longer event comes first
            inner = following
            following += 1
    return 0


cdef inline int _push_four(Growing* into, int64_t one, int64_t two, int64_t three, int64_t four) except -1 nogil:
    push(into, one)
    push(into, two)
    push(into, three)
    push(into, four)
    return 0


cdef int _walk_step(
    int64_t step, const int32_t[::1] bounds, const int32_t[::1] previous, const int64_t[::1] into,
    const int32_t[::1] source, const uint8_t[::1] after_start, const int64_t[::1] start, const int64_t[::1] end,
    Growing* found,
) except -1 nogil:
    """The way through one step, with a pause for what the way misses."""
    cdef int64_t stretch, first = found.size, limit = end[bounds[step]], missed
    cdef int32_t last = bounds[step + 1]
    _walk(last, limit, previous, into, source, after_start, start, end, found)
    missed = end[last] - limit
    for stretch in range(first, found.size, 4):
        missed -= found.items[stretch + 3] - found.items[stretch + 2]
    if missed > 0:  # nothing is known of what came before
        _push_four(found, last, -2, limit, limit + missed)
    return 0


cdef int _walk(
    int32_t first, int64_t limit, const int32_t[::1] previous, const int64_t[::1] into, const int32_t[::1] source,
    const uint8_t[::1] after_start, const int64_t[::1] start, const int64_t[::1] end, Growing* found,
) except -1 nogil:
    cdef int64_t steps, edge, moment = end[first], low, ready, here
    cdef int32_t node = first, best, best_edge, other
    for steps in range(previous.shape[0] + 1):  # damaged times could lead in circles
        low = max(start[node], limit)
        if low < moment:
            _push_four(found, node, -1, low, moment)
            moment = low
        if moment <= limit:
            break
        best, best_edge, ready = previous[node], -2, limit
        if best >= 0:
            ready = end[best]
        for edge in range(into[node], into[node + 1]):
            other = source[edge]
            here = start[other] if after_start[edge] else end[other]
            if best < 0 or here > ready:
                best, best_edge, ready = other, <int32_t>edge, here
        ready = max(min(ready, moment), limit)
        if ready < moment:
            _push_four(found, node, best_edge, ready, moment)
            moment = ready
        if best < 0:
            break
        if best_edge >= 0 and after_start[best_edge]:  # what counted was its start: go on before it
            moment = min(moment, start[best])
        node = best
    return 0


cdef enum:
    # What is done with a piece of a line's time, see `Pieces`.
    _LIST_QUIET
    _CUT
    _SPEND
    _LABELS = 512  # more than two bytes are together


cdef struct Pieces:
    # What takes the pieces of a line's time, each with its innermost event; they come in order of time.
    int use
    Growing* found  # what is returned; of `cut` four columns, of `time_by_label` three
    int64_t shortest  # of `stretches`
    const uint8_t* works  # of `stretches`; NULL where no event works
    const int64_t* begin  # of `cut` and `time_by_label`, the stretches that pieces are taken from
    const int64_t* stop
    int64_t count
    int64_t at  # the first stretch that has not ended yet
    const int64_t* low  # of `cut`, where pieces are cut as well; of `time_by_label`, time whose cause is known otherwise
    int64_t known
    int64_t near  # the first of these that is not over yet
    const int64_t* high  # of `time_by_label`, as all that follows
    const uint8_t* cause
    const uint8_t* label
    int unlabelled, causes
    int64_t[_LABELS] spent  # in the stretch at hand
    int[_LABELS] used  # the labels that have some of it
    int uses


cdef int _take_piece(Pieces* to, int64_t begin, int64_t stop, int64_t event) except -1 nogil:
    cdef int64_t low, high
    if to.use == _LIST_QUIET:
        if stop - begin >= to.shortest and not (to.works != NULL and event >= 0 and to.works[event]):
            push(to.found, begin)
            push(to.found, stop)
            push(to.found, event)
        return 0
    while to.at < to.count and to.stop[to.at] <= begin:
        _end_stretch(to)
    while to.at < to.count and to.begin[to.at] < stop:
        low, high = max(begin, to.begin[to.at]), min(stop, to.stop[to.at])
        if to.use == _CUT:
            _cut_shared(to, low, high, event)
        else:
            _spend_shared(to, low, high, event)
        if to.stop[to.at] > stop:
            break
        _end_stretch(to)
    return 0


cdef int _end_stretch(Pieces* to) except -1 nogil:
    """Goes on to the next stretch, and gives away what was spent in the one at hand."""
    cdef int use
    for use in range(to.uses):
        push(&to.found[0], to.at)
        push(&to.found[1], to.used[use])
        push(&to.found[2], to.spent[to.used[use]])
        to.spent[to.used[use]] = 0
    to.uses = 0
    to.at += 1
    return 0


cdef int _cut_shared(Pieces* to, int64_t begin, int64_t stop, int64_t event) except -1 nogil:
    """Gives away what a piece shares with the stretch at hand."""
    while to.near < to.known and to.low[to.near] < stop:
        if to.low[to.near] > begin:
            _put_part(to, begin, to.low[to.near], event)
            begin = to.low[to.near]
        to.near += 1
    return _put_part(to, begin, stop, event)


cdef inline int _put_part(Pieces* to, int64_t begin, int64_t stop, int64_t event) except -1 nogil:
    push(&to.found[0], to.at)
    push(&to.found[1], begin)
    push(&to.found[2], stop)
    push(&to.found[3], event)
    return 0


cdef void _spend_shared(Pieces* to, int64_t begin, int64_t stop, int64_t event) noexcept nogil:
    """Adds what a piece shares with the stretch at hand to the label's time."""
    cdef int label = to.label[event] if event >= 0 and to.label[event] else to.unlabelled
    cdef int64_t until
    while begin < stop:
        while to.near < to.known and to.high[to.near] <= begin:
            to.near += 1
        if to.near == to.known or to.low[to.near] >= stop:
            _spend(to, label, stop - begin)
            break
        if to.low[to.near] > begin:
            _spend(to, label, to.low[to.near] - begin)
            begin = to.low[to.near]
        until = min(to.high[to.near], stop)
        _spend(to, label - label % to.causes + to.cause[to.near], until - begin)
        begin = until


cdef inline void _spend(Pieces* to, int label, int64_t ps) noexcept nogil:
    if to.spent[label] == 0:
        to.used[to.uses] = label
        to.uses += 1
    to.spent[label] += ps


cdef int64_t _cut_line(
    int64_t first, int64_t last, int64_t around, const int64_t[::1] start, const int64_t[::1] extent,
    const int32_t[::1] parent, int64_t moment, Pieces* to,
) except? -1 nogil:
    """Goes through a line from a time on and gives away each piece in which the innermost event stays the same.

    Args: as of `cut`.  Returns when the last piece ends.
    """
    cdef int64_t event, inner = around, above, until
    for event in range(first, last):
        if extent[event] <= 0:
            continue
        above = parent[event]
        while inner >= 0 and inner != above:
            until = min(start[inner] + extent[inner], start[event])
            if until > moment:
                _take_piece(to, moment, until, inner)
                moment = until
            inner = parent[inner]
        if start[event] > moment:
            _take_piece(to, moment, start[event], inner)
            moment = start[event]
        inner = event
    while inner >= 0:
        until = start[inner] + extent[inner]
        if until > moment:
            _take_piece(to, moment, until, inner)
            moment = until
        inner = parent[inner]
    return moment


def stretches(
    int64_t first, int64_t last, int64_t since, int64_t around, const int64_t[::1] start, const int64_t[::1] extent,
    const int32_t[::1] parent, uint8_t[::1] works, int64_t shortest,
):
    """The stretches of a line in which no event that works lasts, cut wherever another event starts or ends.

    Args:
        first, last: the rows of the line's events, sorted by start, at one start the longer first.
        since: ps, where the first stretch may start; around: the innermost event around that time, -1 where none is.
        start, extent: int64 of shape (events,), ps; parent: int32 of shape (events,), row or -1.
        works: uint8 of shape (events,), in place: what lies inside an event that works works as well; empty where none
            works.
        shortest: ps; shorter stretches are left out.

    Returns:
        int64 of shape (stretches, 3): the bounds of each, and the innermost event around it, -1 where none is.
    """
    cdef Growing found = Growing(NULL, 0, 0)
    cdef Pieces to
    cdef int64_t event
    try:
        memset(&to, 0, sizeof(Pieces))
        to.use, to.found, to.shortest = _LIST_QUIET, &found, shortest
        to.works = &works[0] if works.shape[0] else NULL
        with nogil:
            for event in range(first, last if works.shape[0] else first):
                if parent[event] >= 0 and works[parent[event]]:
                    works[event] = 1
            _cut_line(first, last, around, start, extent, parent, since, &to)
        return as_table(&found, 3)
    finally:
        free(found.items)


def cut(
    int64_t first, int64_t last, int64_t around, const int64_t[::1] start, const int64_t[::1] extent,
    const int32_t[::1] parent, const int64_t[::1] begin, const int64_t[::1] stop, const int64_t[::1] cuts,
):
    """Stretches of a line cut wherever its innermost event changes, and at some other times.

    Args:
        first, last: the rows of the line's events that start within the stretches, sorted by start, at one start the
            longer first; around: the innermost event where the first stretch starts, -1 where none is.
        start, extent: int64 of shape (events,), ps; parent: int32 of shape (events,), row or -1.
        begin, stop: int64 of shape (stretches,), ps, in order of time; they do not overlap.
        cuts: int64 of shape (n,), ps, ascending.

    Returns:
        Four of int64 of shape (parts,): the stretch, start, end and innermost event (-1 where none is) of each part.
    """
    cdef Growing[4] found
    cdef int column
    if begin.shape[0] != stop.shape[0]:
        raise IndexError("the columns of stretches are not of one length")
    memset(found, 0, sizeof(found))
    try:
        with nogil:
            _cut(first, last, around, start, extent, parent, begin, stop, cuts, found)
        return as_column(&found[0]), as_column(&found[1]), as_column(&found[2]), as_column(&found[3])
    finally:
        for column in range(4):
            free(found[column].items)


cdef int _cut(
    int64_t first, int64_t last, int64_t around, const int64_t[::1] start, const int64_t[::1] extent,
    const int32_t[::1] parent, const int64_t[::1] begin, const int64_t[::1] stop, const int64_t[::1] cuts,
    Growing* found,
) except -1 nogil:
    """Puts the parts into columns, if there are any."""
    cdef Pieces to
    cdef int64_t moment, count = begin.shape[0]
    memset(&to, 0, sizeof(Pieces))
    if count > 0:
        to.use, to.found, to.begin, to.stop, to.count = _CUT, found, &begin[0], &stop[0], count
        to.known = cuts.shape[0]
        if to.known:
            to.low = &cuts[0]
        moment = _cut_line(first, last, around, start, extent, parent, begin[0], &to)
        if stop[count - 1] > moment:
            _take_piece(&to, moment, stop[count - 1], -1)
    return 0


def time_by_label(
    int64_t first, int64_t last, const int64_t[::1] start, const int64_t[::1] extent, const int32_t[::1] parent,
    const uint8_t[::1] label, const int64_t[::1] begin, const int64_t[::1] stop, int unlabelled,
    const int64_t[::1] low, const int64_t[::1] high, const uint8_t[::1] cause, int causes,
):
    """How long some stretches of a line run under each label: the label of a moment is that of the innermost event.

    Args:
        first, last: the rows of the line's events, sorted by start, at one start the longer first.
        start, extent: int64 of shape (events,), ps; parent: int32 of shape (events,), row or -1.
        label: uint8 of shape (events,).
        begin, stop: int64 of shape (stretches,), ps, in order of time; they do not overlap.
        unlabelled: the label, below 256, of time without an event, and of events with the label 0.
        low, high: int64 of shape (n,), ps, in order of time without overlap: time whose cause is known otherwise.
        cause: uint8 of shape (n,), that cause, which takes the place of the label's own: the rest of it by `causes`.

    Returns:
        Three of int64 of shape (n,): a stretch, a label, and the time, which is not 0; stretch after stretch.
    """
    cdef Growing[3] found
    cdef Pieces to
    cdef int64_t moment, count = begin.shape[0]
    cdef int column
    if count != stop.shape[0] or not low.shape[0] == high.shape[0] == cause.shape[0]:
        raise IndexError("the columns are not of one length")
    if not (0 <= unlabelled < 256 and causes > 0):
        raise IndexError("there is no such label")
    memset(found, 0, sizeof(found))
    try:
        if count > 0:
            memset(&to, 0, sizeof(Pieces))
            to.use, to.found, to.begin, to.stop, to.count = _SPEND, found, &begin[0], &stop[0], count
            to.label, to.unlabelled, to.causes, to.known = &label[0], unlabelled, causes, low.shape[0]
            if to.known:
                to.low, to.high, to.cause = &low[0], &high[0], &cause[0]
            with nogil:
                moment = begin[0] if last <= first else min(begin[0], start[first])
                moment = _cut_line(first, last, -1, start, extent, parent, moment, &to)
                if stop[count - 1] > moment:
                    _take_piece(&to, moment, stop[count - 1], -1)
                _end_stretch(&to)
        return as_column(&found[0]), as_column(&found[1]), as_column(&found[2])
    finally:
        for column in range(3):
            free(found[column].items)


def sort_times(
    const int64_t[::1] nodes, const uint8_t[::1] cause, const int64_t[::1] ps, int64_t[::1] offsets, int32_t[::1] out,
    double[::1] out_ps,
):
    """The times of nodes by cause, in their order, without those that are 0.

    Args:
        nodes, cause, ps: int64, uint8 and int64 of shape (n,).
        offsets: int64 of shape (257,), zeros; receives where those of each cause begin.
        out, out_ps: int32 and float64 of shape (n,), receive nodes and times.
    """
    cdef int64_t at
    cdef int64_t[256] place
    cdef int each
    if not (nodes.shape[0] == cause.shape[0] == ps.shape[0] == out.shape[0] == out_ps.shape[0]):
        raise IndexError("the columns are not of one length")
    if offsets.shape[0] != 257:
        raise IndexError("there is no room for the causes")
    with nogil:
        for at in range(nodes.shape[0]):
            offsets[cause[at] + 1] += ps[at] != 0
        for each in range(256):
            place[each] = offsets[each]
            offsets[each + 1] += offsets[each]
        for at in range(nodes.shape[0]):
            if ps[at] != 0:
                out[place[cause[at]]] = <int32_t>nodes[at]
                out_ps[place[cause[at]]] = <double>ps[at]
                place[cause[at]] += 1


def add_times(const int32_t[::1] nodes, const double[::1] ps, double[::1] total):
    """Adds the time of each node to its total.

    Args:
        nodes: int32 of shape (n,); ps: float64 of shape (n,); total: float64 of shape (all nodes,), changed in place.
    """
    cdef int64_t at
    _check_times(nodes, ps, total)
    with nogil:
        for at in range(nodes.shape[0]):
            total[nodes[at]] += ps[at]


def sum_weighted(const int32_t[::1] nodes, const double[::1] ps, const double[::1] weight):
    """The sum of all times, each multiplied by the weight of its node; arguments as of `add_times`."""
    cdef int64_t at
    cdef double total = 0.0
    _check_times(nodes, ps, weight)
    with nogil:
        for at in range(nodes.shape[0]):
            total += ps[at] * weight[nodes[at]]
    return total


cdef int _check_times(const int32_t[::1] nodes, const double[::1] ps, const double[::1] of_nodes) except -1:
    """As the nodes ascend, the first and the last of them bound the others."""
    cdef int64_t count = nodes.shape[0]
    if count != ps.shape[0] or (count > 0 and not (0 <= nodes[0] and nodes[count - 1] < of_nodes.shape[0])):
        raise IndexError("the columns are not of one length, or there is no such node")
    return 0
