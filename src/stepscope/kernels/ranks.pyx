"""Loops over the graphs of ranks that meet in collectives: a graph contracted to its meetings, and the meetings of all
ranks replayed together."""

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t

cdef int64_t NEVER = INT64_MIN // 4  # of a lag: nothing waits for the edge


cdef struct Work:
    # What `contract` keeps while it goes through the nodes.  The start of the replay is source -1.
    int64_t most  # ways to a node
    int64_t window  # meetings before each one to which the least time is kept
    int32_t* source  # (nodes, most), the ways to the start of each node
    int64_t* weight
    uint8_t* count  # (nodes,)
    const int64_t* done  # (meetings,), when each ends if the rank replays alone
    int64_t* place  # (meetings,), the order in which they are met, from 0
    int64_t* between  # (meetings, window) by place, the least time from the end of an earlier one to that of a later
    int64_t* since_zero  # (meetings,) by place, the same from the start
    int32_t* offered  # (meetings + 1,), sources of the ways to the node at hand
    int64_t* longest  # (meetings + 1,), the longest way from each source, -1 first
    int64_t* stamp  # (meetings + 1,), the turn in which it was offered
    int64_t turn
    int64_t offers
    int64_t lost


cdef inline void _offer(Work* work, int32_t source, int64_t weight) noexcept nogil:
    """Adds a way to the node at hand, or makes the one from the same source longer."""
    if work.stamp[source + 1] != work.turn:
        work.stamp[source + 1] = work.turn
        work.longest[source + 1] = weight
        work.offered[work.offers] = source
        work.offers += 1
    elif weight > work.longest[source + 1]:
        work.longest[source + 1] = weight


cdef inline void _offer_all(Work* work, int64_t node, int64_t further) noexcept nogil:
    """Offers the ways to another node's start, made longer."""
    cdef int64_t at
    for at in range(node * work.most, node * work.most + work.count[node]):
        _offer(work, work.source[at], work.weight[at] + further)


cdef inline void _copy(Work* work, int64_t source, int64_t node, int64_t further) noexcept nogil:
    """Gives a node the ways to another one's start, made longer: those of a node that waits for nothing else."""
    cdef int64_t at
    for at in range(work.count[source]):
        work.source[node * work.most + at] = work.source[source * work.most + at]
        work.weight[node * work.most + at] = work.weight[source * work.most + at] + further
    work.count[node] = work.count[source]


cdef inline int64_t _place(Work* work, int32_t source) noexcept nogil:
    return -1 if source < 0 else work.place[source]


cdef inline int64_t _least_between(Work* work, int64_t later, int64_t earlier) noexcept nogil:
    """The least time from the end of one meeting to that of a later one; NEVER if it is not known."""
    if later < 0 or later <= earlier:
        return NEVER
    if earlier < 0:
        return work.since_zero[later]
    return NEVER if later - earlier > work.window else work.between[later * work.window + later - earlier - 1]


cdef inline void _latest_first(Work* work) noexcept nogil:
    """Sorts the offered sources by the order in which they are met, the latest first."""
    cdef int64_t at, to
    cdef int32_t source
    for at in range(1, work.offers):
        source, to = work.offered[at], at
        while to > 0 and _place(work, work.offered[to - 1]) < _place(work, source):
            work.offered[to] = work.offered[to - 1]
            to -= 1
        work.offered[to] = source


cdef inline bint _is_explained(Work* work, int64_t first, int64_t kept, int32_t source, int64_t weight) noexcept nogil:
    """Whether a way that is kept, from a later meeting, is as long whatever other ranks do."""
    cdef int64_t at, least
    for at in range(first, first + kept):
        least = _least_between(work, _place(work, work.source[at]), _place(work, source))
        if least > NEVER and least + work.weight[at] >= weight:
            return True
    return False


cdef inline int64_t _moment(Work* work, int32_t source, int64_t weight) noexcept nogil:
    return weight + (0 if source < 0 else work.done[source])


cdef inline void _replace_earliest(Work* work, int64_t first, int32_t source, int64_t weight) noexcept nogil:
    """Keeps a way for which there is no room, if another one comes earlier in the replay and so matters less."""
    cdef int64_t at, least = -1, earliest = _moment(work, source, weight)
    work.lost += 1
    for at in range(first, first + work.most):
        if _moment(work, work.source[at], work.weight[at]) < earliest:
            least, earliest = at, _moment(work, work.source[at], work.weight[at])
    if least < 0:
        return
    for at in range(least, first + work.most - 1):
        work.source[at], work.weight[at] = work.source[at + 1], work.weight[at + 1]
    work.source[first + work.most - 1], work.weight[first + work.most - 1] = source, weight


cdef inline void _keep_offers(Work* work, int64_t node) noexcept nogil:
    """Makes the offered ways those of a node, without what others explain."""
    cdef int64_t at, kept = 0, first = node * work.most, weight
    cdef int32_t source
    _latest_first(work)
    for at in range(work.offers):
        source = work.offered[at]
        weight = work.longest[source + 1]
        if _is_explained(work, first, kept, source, weight):
            continue
        if kept == work.most:
            _replace_earliest(work, first, source, weight)
            continue
        work.source[first + kept], work.weight[first + kept] = source, weight
        kept += 1
    work.count[node] = <uint8_t>kept


cdef inline void _meet(Work* work, int64_t node, int32_t meeting, int64_t place) noexcept nogil:
    """Notes the least times to a meeting that a node starts."""
    cdef int64_t at, back, by, least
    work.place[meeting] = place
    for back in range(-1, min(work.window, place)):
        by = NEVER
        for at in range(node * work.most, node * work.most + work.count[node]):
            least = 0
            if _place(work, work.source[at]) != (-1 if back < 0 else place - 1 - back):
                least = _least_between(work, _place(work, work.source[at]), -1 if back < 0 else place - 1 - back)
            if least > NEVER and least + work.weight[at] > by:
                by = least + work.weight[at]
        if back < 0:
            work.since_zero[place] = by
        else:
            work.between[place * work.window + back] = by


def contract(
    const int32_t[::1] order, const int32_t[::1] previous, const int64_t[::1] pause, const int64_t[::1] own,
    const int64_t[::1] into, const int32_t[::1] source, const int64_t[::1] lag, const uint8_t[::1] after_start,
    const int32_t[::1] starts, const int32_t[::1] ends, const int64_t[::1] done, int32_t[:, ::1] way_source,
    int64_t[:, ::1] way_weight, uint8_t[::1] way_count, int64_t[:, ::1] between, int64_t[:, ::1] scratch,
    int32_t[::1] offered,
):
    """The longest ways to every node, from the start of the replay and from meetings, that pass no other meeting.

    A way is left out where one through another meeting is as long whatever other ranks do: no meeting ends before this
    rank has come.

    Args:
        order, previous, pause, own, into, source, lag, after_start: the graph, see `replay`.
        starts, ends: int32 of shape (nodes,), the meeting that a node starts or ends, or -1.
        done: int64 of shape (meetings + 1,), when each ends in a replay of the graph, in ps.  Of too many ways to a node
            those stay that are the latest then.
        way_source, way_weight: int32 and int64 of shape (nodes, most), receive the source of each way, -1 for the start
            of the replay, and its length in ps.
        way_count: uint8 of shape (nodes,), receives how many there are.
        between: int64 of shape (meetings + 1, window), receives by place the least time from the end of an earlier
            meeting to the start of each, the nearest one first; NEVER, the least number over 4, where nothing is known.
            The wider, the more ways are left out.
        scratch: int64 zeros of shape (4, meetings + 1): the first row receives the place of each meeting in the order
            in which they are met, the second by place the least time from the start of the replay.
        offered: int32 of shape (meetings + 1,), scratch.

    Returns:
        how many ways had no room.
    """
    cdef int64_t at, edge, places = 0
    cdef int32_t node, other
    cdef Work work
    if order.shape[0] == 0:
        return 0
    work = Work(
        way_source.shape[1], between.shape[1], &way_source[0, 0], &way_weight[0, 0], &way_count[0], &done[0],
        &scratch[0, 0], &between[0, 0], &scratch[1, 0], &offered[0], &scratch[2, 0], &scratch[3, 0], 0, 0, 0,
    )
    with nogil:
        for at in range(order.shape[0]):
            node = order[at]
            other = previous[node]
            work.turn, work.offers = at + 1, 0
            if into[node] == into[node + 1] and other >= 0 and ends[other] < 0:
                _copy(&work, other, node, own[other] + pause[node])
                if starts[node] >= 0:
                    _meet(&work, node, starts[node], places)
                    places += 1
                continue
            if other < 0:
                if pause[node] > NEVER:
                    _offer(&work, -1, pause[node])
            elif ends[other] >= 0:
                _offer(&work, ends[other], pause[node])
            else:
                _offer_all(&work, other, own[other] + pause[node])
            for edge in range(into[node], into[node + 1]):
                other = source[edge]
                if lag[edge] <= NEVER:
                    continue
                if after_start[edge]:
                    _offer_all(&work, other, lag[edge])
                elif ends[other] >= 0:
                    _offer(&work, ends[other], lag[edge])
                else:
                    _offer_all(&work, other, own[other] + lag[edge])
            _keep_offers(&work, node)
            if starts[node] >= 0:
                _meet(&work, node, starts[node], places)
                places += 1
    return work.lost


def meet(
    const int32_t[::1] order, const int64_t[::1] first, const int32_t[::1] row, const int64_t[::1] into,
    const int32_t[::1] source, const int64_t[::1] weight, const int64_t[::1] length, int64_t[::1] arrival,
    int64_t[::1] done,
):
    """Replays the meetings of all ranks: each is done so long after each of its ranks has come.

    Args:
        order: int32 of shape (meetings,), every meeting after all that it waits for.
        first: int64 of shape (meetings + 1,), where the rows of each meeting are; row: int32 of shape (n,), its
            arrivals, one a rank.
        into: int64 of shape (rows + 1,), where the ways to each arrival are.
        source, weight: int32 and int64 of shape (ways,), the meeting that each comes from, -1 for none, and its length
            in ps.
        length: int64 of shape (n,), ps, how long after each arrival a meeting is done at the earliest.
        arrival: int64 of shape (rows,), receives the times in ps; done: int64 of shape (meetings,).
    """
    cdef int64_t at, place, way, moment, here, latest
    cdef int32_t meeting, each
    with nogil:
        for at in range(order.shape[0]):
            meeting = order[at]
            latest = NEVER
            for place in range(first[meeting], first[meeting + 1]):
                each = row[place]
                moment = NEVER
                for way in range(into[each], into[each + 1]):
                    here = weight[way] + (0 if source[way] < 0 else done[source[way]])
                    if here > moment:
                        moment = here
                arrival[each] = moment
                latest = max(latest, moment + length[place])
            done[meeting] = latest
