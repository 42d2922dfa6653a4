"""Writing events into the files of other viewers: tracks on which all events nest, and JSON text."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from stepscope.kernels.growing cimport Growing, push
from stepscope.kernels.jsontext cimport Scratch, json_integer, put_bytes, put_json_integer
from stepscope.kernels.memory cimport free


def nest(
    const int64_t[::1] start, const int64_t[::1] end, const int32_t[::1] line, int32_t[::1] lane, int64_t[::1] below,
    int64_t[::1] order,
):
    """Spreads the events of each line over lanes on which every two events nest or do not overlap.

    Args:
        start, end: int64 of shape (n,), ps; line: int32 of shape (n,); sorted by line and then by start, at one start
            the longer first.
        lane: int32 of shape (n,), receives the lane of each, from 0 in each line.
        below: int64 of shape (n,); scratch.
        order: int64 of shape (2 * n,), receives the begins (2 * i) and ends (2 * i + 1) of the events in the order in
            which a lane has them; lanes of a line are mixed, lines are not.
    """
    cdef Growing top = Growing(NULL, 0, 0)  # for each lane of the line its innermost open event, or -1
    cdef int64_t at, chosen, put = 0, here = -1
    try:
        with nogil:
            for at in range(start.shape[0]):
                if line[at] != here:
                    put = _close_all(&top, below, order, put)
                    here = line[at]
                for chosen in range(top.size):
                    while top.items[chosen] >= 0 and end[top.items[chosen]] <= start[at]:
                        put = _close(&top.items[chosen], below, order, put)
                    if top.items[chosen] < 0 or end[top.items[chosen]] >= end[at]:
                        break
                else:
                    chosen = top.size
                    push(&top, -1)
                below[at] = top.items[chosen]
                top.items[chosen] = at
                lane[at] = <int32_t>chosen
                order[put] = 2 * at
                put += 1
            _close_all(&top, below, order, put)
    finally:
        free(top.items)


cdef inline int64_t _close(int64_t* top, const int64_t[::1] below, int64_t[::1] order, int64_t put) except? -1 nogil:
    """Ends the innermost event of a lane.  Returns where the next entry of `order` goes."""
    order[put] = 2 * top[0] + 1
    top[0] = below[top[0]]
    return put + 1


cdef int64_t _close_all(Growing* top, const int64_t[::1] below, int64_t[::1] order, int64_t put) except? -1 nogil:
    """Ends all events of a line, lane by lane, and forgets its lanes."""
    cdef int64_t lane
    for lane in range(top.size):
        while top.items[lane] >= 0:
            put = _close(&top.items[lane], below, order, put)
    top.size = 0
    return put


# -- JSON text ----------------------------------------------------------------------------------------------------

cdef struct _Fragments:
    const uint8_t* blob
    const int64_t* bounds
    int64_t count


cdef inline int _put(Scratch* out, const void* data, int64_t count) except -1 nogil:
    if not put_bytes(out, data, count):
        with gil:
            raise MemoryError
    return 0


cdef inline int _copy(Scratch* out, const _Fragments* known, int64_t fragment) except -1 nogil:
    cdef int64_t begin
    if not 0 <= fragment < known.count:
        with gil:
            raise IndexError("there is no such fragment")
    begin = known.bounds[fragment]
    return _put(out, known.blob + begin, known.bounds[fragment + 1] - begin)


cdef int _put_us(Scratch* out, int64_t ps) except -1 nogil:
    """A time in us with as many digits as its ps need."""
    cdef uint64_t size = ~<uint64_t>ps + 1 if ps < 0 else <uint64_t>ps  # the smallest number has no opposite
    cdef uint64_t rest = size % 1_000_000, power = 100_000
    cdef char text[32]
    cdef int length = 0
    if ps < 0:
        text[0], length = b"-", 1
    length += json_integer(text + length, size // 1_000_000, True)
    if rest:
        text[length] = b"."
        length += 1
        while power:
            text[length] = <char>(48 + rest // power % 10)
            length += 1
            power //= 10
    return _put(out, text, length)


def render(
    const uint8_t[::1] blob, const int64_t[::1] bounds, const int32_t[:, ::1] parts, const int64_t[::1] time,
    const int64_t[::1] length, const int32_t[::1] glue, const int64_t[::1] stat_offsets, const int32_t[::1] stat_key,
    const int32_t[::1] stat_text, const int64_t[::1] stat_value,
):
    """Writes JSON objects of one make, from fragments of text and from numbers.

    An object is: fragment `parts[i, 0]`, its time in us with as many digits as a ps needs; unless its length is
    negative, fragment `parts[i, 1]` and the length; the other fragments; its stats with `glue[0]` between them, and
    before the first if the last fragment is not empty; then `glue[1]`.

    Args:
        blob: uint8, the text of all fragments; bounds: int64 of shape (fragments + 1,), where each begins.
        parts: int32 of shape (objects, n), fragments; number 0 is the empty one.
        time, length: int64 of shape (objects,), ps.
        glue: int32 of shape (2,), fragments.
        stat_offsets: int64 of shape (objects + 1,).
        stat_key: int32 of shape (stats,), fragments that hold a key and its colon.
        stat_text: int32, the fragment that is the value, or -1 where `stat_value`, int64, is.

    Returns:
        the text, bytes.
    """
    if not blob.shape[0]:
        return b""
    cdef Scratch text = Scratch(NULL, 0, 0)
    cdef _Fragments known = _Fragments(&blob[0], &bounds[0], bounds.shape[0] - 1)
    cdef int64_t i, part, stat, columns = parts.shape[1]
    cdef bint is_first
    try:
        with nogil:
            for i in range(parts.shape[0]):
                _copy(&text, &known, parts[i, 0])
                _put_us(&text, time[i])
                if length[i] >= 0:
                    _copy(&text, &known, parts[i, 1])
                    _put_us(&text, length[i])
                for part in range(2, columns):
                    _copy(&text, &known, parts[i, part])
                is_first = parts[i, columns - 1] == 0
                for stat in range(stat_offsets[i], stat_offsets[i + 1]):
                    if not is_first:
                        _copy(&text, &known, glue[0])
                    is_first = False
                    _copy(&text, &known, stat_key[stat])
                    if stat_text[stat] >= 0:
                        _copy(&text, &known, stat_text[stat])
                    elif not put_json_integer(&text, stat_value[stat], False):
                        with gil:
                            raise MemoryError
                _copy(&text, &known, glue[1])
        return text.data[:text.size]
    finally:
        free(text.data)
