"""Whose stats are whose, and stats as dense tables."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t

from stepscope.kernels.growing cimport Growing, as_column, push
from stepscope.kernels.memory cimport free


cdef enum:
    _BLOCK = 16  # stats that are looked at together: the wanted ones are few, and most blocks hold none


def put(
    const int64_t[::1] offsets, const int32_t[::1] name, const uint8_t[::1] tag, const int64_t[::1] value,
    int32_t wanted, uint32_t tags, int64_t[::1] out,
):
    """Puts a stat of all owners into a column; of a stat that an owner has twice the last counts.

    Args:
        offsets: int64 of shape (owners + 1,), the stats of each owner; ascending, up to the number of stats at most.
        name, tag, value: int32, uint8 and int64 of shape (stats,), of these owners and others.
        wanted: the name; tags: the tags that count, a bit each.
        out: int64 of shape (owners,), changed in place where an owner has the stat.
    """
    _check(offsets, name, tag, value)
    if out.shape[0] != offsets.shape[0] - 1:
        raise IndexError("the column has not a place for each owner")
    if out.shape[0]:
        _visit(offsets, name, tag, value, wanted, tags, &out[0], 0, NULL, NULL)


def find(
    const int64_t[::1] offsets, const int32_t[::1] name, const uint8_t[::1] tag, const int64_t[::1] value,
    int32_t wanted, uint32_t tags, int64_t least,
):
    """The owners of a stat that is at least so much, and its values; arguments as of `put`.

    Returns:
        Two of int64 of shape (n,); the owners ascend.
    """
    cdef Growing owners = Growing(NULL, 0, 0), values = Growing(NULL, 0, 0)
    _check(offsets, name, tag, value)
    try:
        _visit(offsets, name, tag, value, wanted, tags, NULL, least, &owners, &values)
        return as_column(&owners), as_column(&values)
    finally:
        free(owners.items)
        free(values.items)


cdef int _visit(
    const int64_t[::1] offsets, const int32_t[::1] name, const uint8_t[::1] tag, const int64_t[::1] value,
    int32_t wanted, uint32_t tags, int64_t* out, int64_t least, Growing* owners, Growing* values,
) except -1:
    """Goes over the stats of a name in the order of their owners: into a column, or where that is NULL into two lists,
    of owners whose stat is at least so much."""
    cdef int64_t stat = offsets[0], count = offsets[offsets.shape[0] - 1], end, owner = 0, place
    cdef bint here
    with nogil:
        while stat < count:
            end = min(stat + _BLOCK, count)
            here = False
            for place in range(stat, end):
                here |= name[place] == wanted
            if here:
                for place in range(stat, end):
                    if name[place] == wanted and tag[place] < 32 and tags >> tag[place] & 1:
                        while offsets[owner + 1] <= place:
                            owner += 1
                        if out != NULL:
                            out[owner] = value[place]
                            continue
                        if owners.size and owners.items[owners.size - 1] == owner:
                            owners.size -= 1
                            values.size -= 1
                        if value[place] >= least:
                            push(owners, owner)
                            push(values, value[place])
            stat = end
    return 0


def put_some(
    const int64_t[::1] offsets, const int64_t[::1] owners, const int32_t[::1] name, const uint8_t[::1] tag,
    const int64_t[::1] value, int32_t wanted, uint32_t tags, int64_t[::1] out,
):
    """Puts a stat of some owners into a column, int64 of shape (n,).

    Args:
        owners: int64 of shape (n,), the owners to look at.
    """
    cdef int64_t at, owner, stat
    _check(offsets, name, tag, value)
    if out.shape[0] != owners.shape[0]:
        raise IndexError("the column has not a place for each owner")
    with nogil:
        for at in range(owners.shape[0]):
            owner = owners[at]
            if not 0 <= owner < offsets.shape[0] - 1:
                with gil:
                    raise IndexError("there is no such owner")
            for stat in range(offsets[owner], offsets[owner + 1]):
                if name[stat] == wanted and tag[stat] < 32 and tags >> tag[stat] & 1:
                    out[at] = value[stat]


cdef int _check(
    const int64_t[::1] offsets, const int32_t[::1] name, const uint8_t[::1] tag, const int64_t[::1] value
) except -1:
    if not offsets.shape[0] or not name.shape[0] == tag.shape[0] == value.shape[0] >= offsets[offsets.shape[0] - 1] >= offsets[0] >= 0:
        raise IndexError("the columns of stats are not of one length")
    return 0


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
