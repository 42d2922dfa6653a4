"""Whose stats are whose, and stats as dense tables."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t


def owners(const int64_t[::1] offsets, const int64_t[::1] rows, int64_t[::1] out):
    """The owner of each of some stats.

    Args:
        offsets: int64 of shape (all owners + 1,), the stats of each owner.
        rows: int64 of shape (n,), stats in ascending order.
        out: int64 of shape (n,), filled in place.
    """
    cdef int64_t place, owner = 0
    with nogil:
        for place in range(rows.shape[0]):
            while offsets[owner + 1] <= rows[place]:
                owner += 1
            out[place] = owner


def gather(
    const int64_t[::1] offsets, const int64_t[::1] owners, const int32_t[::1] name, const uint8_t[::1] tag,
    const int64_t[::1] value, const int16_t[::1] slot_of_name, int64_t[:, ::1] out_value, uint8_t[:, ::1] out_tag,
):
    """Puts the wanted stats of some owners into a table; of a stat that an owner has twice the last counts.

    Args:
        offsets: int64 of shape (all owners + 1,), the stats of each owner.
        owners: int64 of shape (n,), the owners to look at.
        name, tag, value: int32, uint8 and int64 of shape (stats,).
        slot_of_name: int16 of shape (strings,), the table's row for a stat of that name, -1 if it is not wanted.
        out_value, out_tag: int64 and uint8 of shape (slots, n), filled in place; tag 0 means none.
    """
    cdef int64_t column, stat
    cdef int16_t slot
    with nogil:
        for column in range(owners.shape[0]):
            for stat in range(offsets[owners[column]], offsets[owners[column] + 1]):
                slot = slot_of_name[name[stat]]
                if slot >= 0:
                    out_value[slot, column] = value[stat]
                    out_tag[slot, column] = tag[stat]
