"""Whose stats are whose, and stats as dense tables."""

from __future__ import annotations

from stepscope.kernels.compiling import compiled


@compiled
def owners(offsets, rows, out):  # type: ignore[no-untyped-def]
    """The owner of each of some stats.

    Args:
        offsets: int64 of shape (all owners + 1,), the stats of each owner.
        rows: int64 of shape (n,), stats in ascending order.
        out: int64 of shape (n,), filled in place.
    """
    owner = 0
    for place in range(len(rows)):
        while offsets[owner + 1] <= rows[place]:
            owner += 1
        out[place] = owner


@compiled
def gather(offsets, owners, name, tag, value, slot_of_name, out_value, out_tag):  # type: ignore[no-untyped-def]
    """Puts the wanted stats of some owners into a table; of a stat that an owner has twice the last counts.

    Args:
        offsets: int64 of shape (all owners + 1,), the stats of each owner.
        owners: int64 of shape (n,), the owners to look at.
        name, tag, value: int32, uint8 and int64 of shape (stats,).
        slot_of_name: int16 of shape (strings,), the table's row for a stat of that name, -1 if it is not wanted.
        out_value, out_tag: int64 and uint8 of shape (slots, n), filled in place; tag 0 means none.
    """
    for column in range(len(owners)):
        for stat in range(offsets[owners[column]], offsets[owners[column] + 1]):
            slot = slot_of_name[name[stat]]
            if slot >= 0:
                out_value[slot, column] = value[stat]
                out_tag[slot, column] = tag[stat]
