"""The lines of a file: what they say of themselves, how many events they hold, and where they can be cut."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free

from stepscope.kernels.growing cimport Growing, as_table, push
from stepscope.kernels.varint cimport read_varint
from stepscope.kernels.wire.fields cimport DELIMITED, VARINT, Field, is_group, read_field
from stepscope.kernels.wire.source cimport Source, Window

cpdef enum:
    # Columns of `scan_lines`' `header`, one row a line.  STOP: where the line cannot be read on, -1 if it can.
    LINE_ID
    LINE_NAME
    START_NS
    DURATION_PS
    DISPLAY_ID
    DISPLAY_NAME
    EVENTS_SEEN
    STOP_AT
    STOP_CODE
    HEADER_WIDTH

cpdef enum:
    # Columns of `scan_lines`' result, one row a cut: the line, the place, and how many events stand before it.
    CUT_LINE
    CUT_AT
    CUT_EVENTS
    CUT_WIDTH

def scan_lines(
    Source source, const int64_t[::1] begins, const int64_t[::1] ends, int64_t first, int64_t last, int64_t part_bytes,
    int64_t[:, ::1] header,
):
    """Reads the lines `first` to `last - 1` without looking into their events, and has their names in memory.

    Args:
        begins, ends: int64 of shape (lines,), the ranges of the lines in the source.
        part_bytes: lines that are longer are cut between events, about every so many bytes.
        header: int64 of shape (lines, HEADER_WIDTH), zeros; filled, see the columns above.  Names are told by their
            place; events that are damaged inside count as well.

    Returns:
        int64 of shape (cuts, CUT_WIDTH), see the CUT_ columns.
    """
    cdef Growing cuts = Growing(NULL, 0, 0)
    cdef Window window = Window(NULL, 0, 0, NULL)
    cdef int64_t line
    if not 0 <= first <= last <= begins.shape[0] or last > ends.shape[0] or last > header.shape[0]:
        raise IndexError("there are no such lines")
    if header.shape[1] != HEADER_WIDTH:
        raise IndexError("the header has other columns")
    try:
        with nogil:
            for line in range(first, last if source.size else first):
                if not 0 <= begins[line] <= ends[line] <= source.size:
                    with gil:
                        raise IndexError("a line lies outside the file")
                _scan_line(source, &window, begins[line], ends[line], line, part_bytes, &header[line, 0], &cuts)
        return as_table(&cuts, CUT_WIDTH)
    finally:
        free(window.room)


def plan_ranges(
    const int64_t[::1] begins, const int64_t[::1] ends, const int64_t[:, ::1] header, const int64_t[:, ::1] cuts
):
    """The parts of all lines, each of which is decoded by itself, in order.

    Args:
        begins, ends, header, cuts: those of `scan_lines`, of all lines.

    Returns:
        int64 of shape (ranges, RANGE_WIDTH), see the RANGE_ columns.
    """
    cdef Growing ranges = Growing(NULL, 0, 0)
    cdef int64_t line, cut = 0, base = 0, n = begins.shape[0]
    if not n == ends.shape[0] == header.shape[0] or header.shape[1] != HEADER_WIDTH or cuts.shape[1] != CUT_WIDTH:
        raise IndexError("the tables of the lines do not fit")
    for line in range(n):
        _put_range(&ranges, line, begins[line], base)
        while cut < cuts.shape[0] and cuts[cut, CUT_LINE] == line:
            _end_range(&ranges, cuts[cut, CUT_AT], base + cuts[cut, CUT_EVENTS])
            _put_range(&ranges, line, cuts[cut, CUT_AT], base + cuts[cut, CUT_EVENTS])
            cut += 1
        base += header[line, EVENTS_SEEN]
        _end_range(&ranges, header[line, STOP_AT] if header[line, STOP_AT] >= 0 else ends[line], base)
    return as_table(&ranges, RANGE_WIDTH)


cdef int _put_range(Growing* ranges, int64_t line, int64_t start, int64_t row) except -1:
    push(ranges, line)
    push(ranges, start)
    push(ranges, start)
    push(ranges, row)
    push(ranges, 0)
    return 0


cdef void _end_range(Growing* ranges, int64_t stop, int64_t next_row) noexcept:
    cdef int64_t* last = ranges.items + ranges.size - <int64_t>RANGE_WIDTH
    last[<int>RANGE_STOP] = stop
    last[<int>RANGE_ROOM] = next_row - last[<int>RANGE_ROW]


cdef int _scan_line(
    Source source, Window* window, int64_t at, int64_t end, int64_t line, int64_t part_bytes, int64_t* header,
    Growing* cuts,
) except -1 nogil:
    cdef int64_t cut = at, events = 0
    cdef const uint8_t* next
    cdef Field field
    header[STOP_AT] = -1
    while at < end:
        if at - cut >= part_bytes:
            push(cuts, line)
            push(cuts, at)
            push(cuts, events)
            cut = at
        source.look(window, at)
        next = _skip_event(window.base + at, window.base + end)
        if next != NULL:
            events += 1
        else:
            if is_group(window.base + at):
                source.fetch(at, end)
                window.base, window.start, window.stop = source.start, at, end
            next = read_field(window.base + at, window.base + end, &field)
            if next == NULL:
                header[STOP_AT], header[STOP_CODE] = at, field.error
                break
            events += field.number == 4 and field.wire == DELIMITED
            _note(&field, window.base, header)
            if field.wire == DELIMITED and field.number != 4:
                source.fetch(field.place - window.base, field.stop - window.base)
        at = next - window.base
    header[EVENTS_SEEN] = events
    return 0


cdef inline const uint8_t* _skip_event(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """What follows an event, or NULL if there is none; the other fields of a line are rare."""
    cdef uint64_t size = 0
    if at[0] != 0x22:
        return NULL
    at = read_varint(at + 1, end, &size)
    return at + size if at != NULL and size <= <uint64_t>(end - at) else NULL


cdef void _note(const Field* field, const uint8_t* base, int64_t* header) noexcept nogil:
    """Keeps what a field says of its line."""
    if field.wire == VARINT:
        if field.number == 1:
            header[LINE_ID] = field.value
        elif field.number == 3:
            header[START_NS] = field.value
        elif field.number == 9:
            header[DURATION_PS] = field.value
        elif field.number == 10:
            header[DISPLAY_ID] = field.value
    elif field.wire == DELIMITED:
        if field.number == 2:
            header[LINE_NAME] = field.place - base
        elif field.number == 11:
            header[DISPLAY_NAME] = field.place - base
