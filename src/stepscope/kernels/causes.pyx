"""What pieces of a step are spent on: their own time by the event that is innermost, and their waiting by what it is for."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from stepscope.kernels.searching cimport place_of


def of_waiting(
    const int32_t[::1] node, const int32_t[::1] edge, const int64_t[::1] length, const uint8_t[::1] edge_kind,
    const uint8_t[::1] of_edge, const uint8_t[::1] doubted, const int32_t[::1] line, const uint8_t[::1] kind, int work,
    const int64_t[::1] unexplained, const uint8_t[::1] serves, int served, int gap, uint8_t[::1] out,
):
    """The causes of stretches in which nodes wait for an edge, or pause.

    Args:
        node, edge: int32 of shape (n,): what starts after the stretch; what it waits for, -2 for a pause.  Other
            stretches, with -1, are left as they are.
        length: int64 of shape (n,), ps.
        edge_kind: uint8 of shape (edges,).
        of_edge, doubted: uint8 of shape (256,), the cause of waiting for each kind of edge, and whether that is none
            where a part of the wait is unexplained.
        line, kind, unexplained: int32, uint8 and int64 of shape (nodes,); of the kinds `work` is that of device work.
        serves: uint8 of shape (lines,), threads for which everything waits for the cause `served`.
        gap: the cause of a pause before work that is longer than what is unexplained of it; that of others is 0.
        out: uint8 of shape (n,), receives the causes.
    """
    cdef int64_t at, what
    cdef int32_t of
    if not (node.shape[0] == edge.shape[0] == length.shape[0] == out.shape[0]):
        raise IndexError("the columns are not of one length")
    with nogil:
        for at in range(node.shape[0]):
            of, what = node[at], edge[at]
            if what >= 0:
                out[at] = of_edge[edge_kind[what]]
                if doubted[edge_kind[what]] and unexplained[of] > 0:
                    out[at] = 0
                elif out[at] and line[of] >= 0 and serves[line[of]]:
                    out[at] = served
            elif what == -2:
                out[at] = gap if kind[of] == work and length[at] > unexplained[of] else 0


def of_own_time(
    const int32_t[::1] node, const int32_t[::1] edge, const int64_t[::1] event, const int32_t[::1] line,
    const uint8_t[::1] kind, int work, const uint8_t[::1] event_kind, const uint8_t[::1] of_work,
    const uint8_t[::1] of_event, const uint8_t[::1] unrecorded, const uint8_t[::1] serves, int served, uint8_t[::1] out,
):
    """The causes of pieces that are a node's own time, which have -1 in place of an edge.

    Args:
        node, edge, line, kind, work, serves, served, out: as of `of_waiting`.
        event: int64 of shape (n,), the innermost event, -1 for none.
        event_kind: uint8 of shape (events,), kinds; of_work: uint8 of shape (256,), the cause of device work of each.
        of_event: uint8 of shape (events,), the cause of time in which each is the innermost of a thread.
        unrecorded: uint8 of shape (lines,), the cause of a thread's time without any.
    """
    cdef int64_t at
    cdef int32_t on
    if not (node.shape[0] == edge.shape[0] == event.shape[0] == out.shape[0]):
        raise IndexError("the columns are not of one length")
    with nogil:
        for at in range(node.shape[0]):
            if edge[at] != -1:
                continue
            on = line[node[at]]
            if kind[node[at]] == work:
                out[at] = of_work[event_kind[event[at]]]
            elif on >= 0 and serves[on]:
                out[at] = served
            elif event[at] >= 0:
                out[at] = of_event[event[at]]
            else:
                out[at] = unrecorded[on] if on >= 0 else 0


def of_stretches(
    const int64_t[::1] low, const int64_t[::1] high, const uint8_t[::1] cause, const uint8_t[::1] of_main,
    const int64_t[::1] start, const int64_t[::1] end, const uint8_t[::1] is_main, uint8_t[::1] out,
):
    """The causes of the stretches around some time.

    Args:
        low, high: int64 of shape (n,), ps, stretches in order of time without overlap; cause: uint8 of shape (n,).
        of_main: uint8 of shape (n,), stretches that hold for the main thread's own time alone.
        start, end: int64 of shape (m,), ps; is_main: uint8 of shape (m,), whether that time is its own.
        out: uint8 of shape (m,), receives the cause where a stretch is around that holds.
    """
    cdef int64_t at, near = 0
    if not (low.shape[0] == high.shape[0] == cause.shape[0] == of_main.shape[0]):
        raise IndexError("the columns of stretches are not of one length")
    if not (start.shape[0] == end.shape[0] == is_main.shape[0] == out.shape[0]):
        raise IndexError("the columns are not of one length")
    with nogil:
        for at in range(start.shape[0]):
            near = place_of(low, 0, low.shape[0], near, start[at] + 1)
            if near > 0 and end[at] <= high[near - 1] and (is_main[at] or not of_main[near - 1]):
                out[at] = cause[near - 1]
