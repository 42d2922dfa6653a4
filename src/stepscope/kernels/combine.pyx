"""What three properties of events say together, where their combinations are few."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t


def seen(const uint16_t[::1] flags, uint8_t[::1] found):
    """Marks which flags there are.  `found`: uint8 of shape (65536,), 1 is put for each."""
    cdef int64_t at
    if found.shape[0] <= 0xFFFF:
        raise IndexError("there is no room for all flags")
    with nogil:
        for at in range(flags.shape[0]):
            found[flags[at]] = 1


def combine(
    const int32_t[::1] event_type, const int32_t[::1] line, const uint16_t[::1] flags, const int32_t[::1] of_type,
    const int32_t[::1] of_line, const int32_t[::1] of_flags, int32_t[::1] cell, uint8_t[::1] found,
):
    """The combination of each event: the sum of three numbers.

    Args:
        event_type, line, flags: int32, int32 and uint16 of shape (events,).
        of_type, of_line, of_flags: int32, what each of these adds; `of_flags` of shape (65536,).
        cell: int32 of shape (events,), filled; found: uint8 of shape (combinations,), 1 is put for each.
    """
    cdef int64_t at, types = of_type.shape[0], lines = of_line.shape[0], cells = found.shape[0]
    cdef int32_t sum
    if not event_type.shape[0] == line.shape[0] == flags.shape[0] == cell.shape[0] or of_flags.shape[0] <= 0xFFFF:
        raise IndexError("the columns of events are not of one length")
    with nogil:
        for at in range(cell.shape[0]):
            if not (0 <= event_type[at] < types and 0 <= line[at] < lines):
                with gil:
                    raise IndexError("there is no such type or line")
            sum = of_type[event_type[at]] + of_line[line[at]] + of_flags[flags[at]]
            if not 0 <= sum < cells:
                with gil:
                    raise IndexError("there is no such combination")
            cell[at] = sum
            found[sum] = 1


def apply(
    const int32_t[::1] cell, const int32_t[::1] event_type, const uint8_t[::1] kind_of_cell,
    const uint8_t[::1] traits_of_cell, const uint8_t[::1] traits_of_type, uint8_t[::1] kind, uint8_t[::1] traits,
):
    """Kind and traits of each event: of its combination, and the traits of its type as well.

    Args:
        cell, event_type: int32 of shape (events,), as `combine` took and gave them.
        kind_of_cell, traits_of_cell: uint8 of shape (combinations,); traits_of_type: uint8 of shape (types,).
        kind, traits: uint8 of shape (events,), filled.
    """
    cdef int64_t at, cells = kind_of_cell.shape[0], types = traits_of_type.shape[0]
    if not cell.shape[0] == event_type.shape[0] == kind.shape[0] == traits.shape[0] or traits_of_cell.shape[0] != cells:
        raise IndexError("the columns of events are not of one length")
    with nogil:
        for at in range(cell.shape[0]):
            if not (0 <= cell[at] < cells and 0 <= event_type[at] < types):
                with gil:
                    raise IndexError("there is no such type or combination")
            kind[at] = kind_of_cell[cell[at]]
            traits[at] = traits_of_cell[cell[at]] | traits_of_type[event_type[at]]
