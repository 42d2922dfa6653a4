"""Stores the kinds of events in a file, for traces whose names do not determine them.

Names determine the kinds of what TensorFlow and JAX record, but not of what PyTorch's profiler or Stepscope's own
tracer records: `aten::mm` or a user's range could be anything, and an XSpace file has no field for a kind.  So the
writer splits the event types by kind and gives each a stat with its kind and traits.  The reader takes them from there
and drops the stat.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.formats.xspace import schema
from stepscope.model import EventKind, Events, EventTypes, HostTrace, Stats, StatTag, Strings
from stepscope.model.arrays import I64, look_up

_KINDS_FROM_NAMES = frozenset({"tensorflow", "jax"})


def store_kinds(trace: HostTrace) -> HostTrace:
    """The trace with one kind per event type, stored as a stat of the type; unchanged if names determine the kinds."""
    if trace.framework in _KINDS_FROM_NAMES or not len(trace.events):
        return trace
    events, types = trace.events, trace.event_types
    key = (events.type.astype(np.int64) << 16) | (events.traits.astype(np.int64) << 8) | events.kind
    used, inverse = np.unique(key, return_inverse=True)
    unused = np.setdiff1d(np.arange(len(types)), events.type)
    row = np.concatenate([used >> 16, unused])
    strings, name = trace.strings.add_text(schema.KIND_STAT.encode())
    return replace(
        trace,
        strings=strings,
        events=replace(events, type=inverse.reshape(-1).astype(np.int32)),
        event_types=EventTypes(
            name=types.name[row],
            display_name=types.display_name[row],
            plane=types.plane[row],
            metadata_id=np.arange(1, len(row) + 1),
        ),
        type_stats=_add_stat(trace.type_stats, row, name, used & 0xFFFF),
    )


def restore_kinds(events: Events, stats: Stats, strings: Strings) -> Stats:
    """Gives events the kinds stored with their types, in place.  Returns the stats of the types without them."""
    name = strings.find(schema.KIND_STAT)
    rows = np.flatnonzero((stats.name == name) & (stats.tag == StatTag.INT)) if name > 0 else np.empty(0, np.int64)
    known = np.isin(stats.value[rows] & 0xFF, [int(kind) for kind in EventKind])
    rows = rows[known & (stats.value[rows] >> 16 == 0)]  # anything else is damage, or a kind of a newer version
    if not len(rows):
        return stats
    owners = np.searchsorted(stats.offsets, rows, side="right") - 1
    of_type = np.full(len(stats.offsets) - 1, -1, np.int64)
    of_type[owners] = stats.value[rows]
    of_event = look_up(of_type, events.type)
    at = np.flatnonzero(of_event >= 0)
    events.kind[at] = of_event[at] & 0xFF
    events.traits[at] = of_event[at] >> 8
    keep = np.ones(len(stats), np.bool_)
    keep[rows] = False
    offsets = np.concatenate([[0], np.cumsum(keep)])[stats.offsets]
    return Stats(stats.name[keep], stats.tag[keep], stats.value[keep], offsets)


def _add_stat(stats: Stats, owners: I64, name: int, values: I64) -> Stats:
    """The stats of the given owners, in their order, plus one more stat for each of the first `len(values)` owners."""
    taken = stats.take(owners)
    after = taken.offsets[1 : len(values) + 1]
    more = np.minimum(np.arange(len(taken.offsets)), len(values))
    return Stats(
        name=np.insert(taken.name, after, name),
        tag=np.insert(taken.tag, after, np.uint8(StatTag.INT)),
        value=np.insert(taken.value, after, values),
        offsets=taken.offsets + more,
    )
