"""The planes of an XSpace file without their lines: their kinds, metadata and stats."""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stepscope.formats.xspace import classify, schema
from stepscope.formats.xspace.damage import Damage
from stepscope.formats.xspace.names import NO_ROWS, Interner, Lookup
from stepscope.kernels import wire
from stepscope.model import PlaneKind, Stats
from stepscope.model.arrays import I32, I64, U8, distinct
from stepscope.records import dataclass

Bytes = U8
Ranges = tuple[I64, I64]
OwnedRanges = tuple[I64, I64, I64]  # the row of the message around each, ascending; start; end


@dataclass(frozen=True)
class Fields:
    """Fields of messages, in order.

    Attributes:
        columns: int64 of shape (fields, FIELD_WIDTH), see `stepscope.kernels.wire`.
        bad_at, bad_code: int64 of shape (messages,), where and why reading each failed; -1 where it did not.
    """

    columns: I64
    bad_at: I64
    bad_code: I64

    @classmethod
    def scan(cls, buf: Bytes, begins: I64, ends: I64) -> Fields:
        """Finds the fields of messages."""
        bad_at, bad_code = np.full(len(begins), -1), np.zeros(len(begins), np.int64)
        columns = np.asarray(wire.scan_fields(buf, begins, ends, bad_at, bad_code))
        return cls(columns, bad_at, bad_code)

    def messages(self, number: int) -> OwnedRanges:
        """The nested messages with this field number, including one that is cut off."""
        numbers = np.abs(self.columns[:, wire.FIELD_NUMBER])
        found = self.columns[(numbers == number) & (self.columns[:, wire.FIELD_STOP] >= 0)]
        return (
            found[:, wire.FIELD_MESSAGE].copy(),
            found[:, wire.FIELD_START].copy(),
            found[:, wire.FIELD_STOP].copy(),
        )

    def last(self, number: int, column: int) -> I64:
        """A column of each message's last complete field with this number: int64 of shape (messages,).

        A message without such a field gets 0.
        """
        found = self.columns[self.columns[:, wire.FIELD_NUMBER] == number]
        out = np.zeros(len(self.bad_at), np.int64)
        out[found[:, wire.FIELD_MESSAGE]] = found[:, column]
        return out


@dataclass(frozen=True)
class Metadata:
    """The valid entries of the metadata maps of all planes: those with a name that are the last with their id.

    Attributes:
        plane: int64 of shape (entries,), ascending.
        columns: int64 of shape (entries, META_WIDTH), see `stepscope.kernels.wire`.
        stats: their stats, whose owners are entries.
    """

    plane: I64
    columns: I64
    stats: OwnedRanges

    @classmethod
    def read(cls, buf: Bytes, owned: OwnedRanges, damage: Damage) -> Metadata:
        """Reads the entries of one kind."""
        owners, begins, ends = owned
        columns = np.zeros((len(begins), wire.META_WIDTH), np.int64)
        stats = np.asarray(wire.walk_metadata(buf, begins, ends, columns))
        damage.add(columns[:, wire.META_BAD_AT], columns[:, wire.META_BAD_CODE], ends)
        whole = np.flatnonzero((columns[:, wire.META_BAD_AT] < 0) | (columns[:, wire.META_NAME] > 0))
        rows = whole[_last_of_equal(owners[whole], columns[whole, wire.META_ID])]
        place = np.full(len(begins), -1)
        place[rows] = np.arange(len(rows))
        owner = place[stats[:, wire.STAT_ENTRY]]
        kept = owner >= 0
        ranges = stats[kept, wire.STAT_START], stats[kept, wire.STAT_STOP]
        return cls(owners[rows], columns[rows], (owner[kept], *ranges))

    def __len__(self) -> int:
        return len(self.plane)

    @property
    def ids(self) -> I64:
        """The metadata ids: int64 of shape (entries,)."""
        return self.columns[:, wire.META_ID]


def _last_of_equal(owners: I64, ids: I64) -> I64:
    """Rows of the last entry of each (owner, id), ascending: in a map, a later entry replaces an earlier one."""
    if not len(ids):
        return NO_ROWS
    order = np.lexsort((ids, owners))
    last = np.append((np.diff(ids[order]) != 0) | (np.diff(owners[order]) != 0), True)
    return np.sort(order[last])


@dataclass
class Plane:
    """One plane while it is read: its rows in the tables of all planes, and its lookups of ids."""

    name: str
    kind: PlaneKind
    ordinal: int
    lines: tuple[int, int]
    type_lookup: Lookup = field(default_factory=Lookup)
    stat_lookup: Lookup = field(default_factory=Lookup)
    stat_flags: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))

    def lookups(self) -> wire.Lookups:
        """The lookups of ids as the kernels need them."""
        types, stats = self.type_lookup, self.stat_lookup
        return wire.Lookups(types.rows, types.ids, stats.rows, stats.ids, self.stat_flags)


class PlaneReader:
    """Reads the planes and interns their names.

    Attributes:
        planes: in the order of the file.
        plane_id: int64 of shape (planes,); plane_name: int32 of shape (planes,), string rows.
        lines: plane and range of each line.
        types: the event metadata.
        type_name, type_display: int32 of shape (types,), string rows.
    """

    def __init__(self, buf: Bytes, ranges: Ranges, strings: Interner, damage: Damage) -> None:
        self.buf = buf
        self.damage = damage
        fields = Fields.scan(buf, *ranges)
        damage.add(fields.bad_at, fields.bad_code, ranges[1])
        self.plane_id = fields.last(schema.PLANE_ID, wire.FIELD_START)
        self.plane_name = strings.add(fields.last(schema.PLANE_NAME, wire.FIELD_PLACE))
        self.lines = fields.messages(schema.PLANE_LINES)
        self._stats = fields.messages(schema.PLANE_STATS)
        self.types = Metadata.read(buf, fields.messages(schema.PLANE_EVENT_METADATA), damage)
        self.type_name = strings.add(self.types.columns[:, wire.META_NAME])
        self.type_display = strings.add(self.types.columns[:, wire.META_DISPLAY])
        texts = Metadata.read(buf, fields.messages(schema.PLANE_STAT_METADATA), damage)
        text_rows = strings.add(texts.columns[:, wire.META_NAME])
        self._interner = strings
        self.strings = strings.strings()
        self.planes = self._planes()
        self._put_lookups(texts, text_rows, ranges[1] - ranges[0])

    def _planes(self) -> list[Plane]:
        names = [self.strings[row] for row in self.plane_name.tolist()]
        lines = pairwise(self._bounds(self.lines[0]))
        return [Plane(name, *schema.plane_kind(name), rows) for name, rows in zip(names, lines, strict=True)]

    def _bounds(self, owners: I64) -> list[int]:
        """First row of each plane in a table that is sorted by plane, and the number of rows."""
        bounds: list[int] = np.searchsorted(owners, np.arange(len(self.plane_id) + 1)).tolist()
        return bounds

    def _put_lookups(self, texts: Metadata, text_rows: I32, sizes: I64) -> None:
        flags = classify.flags_of_strings(self.strings)
        type_rows = np.arange(len(self.types), dtype=np.int32)
        of_types, of_texts = self._bounds(self.types.plane), self._bounds(texts.plane)
        for row, plane in enumerate(self.planes):
            room = int(sizes[row]) // 16  # so that a lookup takes only a fraction of the plane's size in the file
            a, b = of_types[row : row + 2]
            if a < b:
                plane.type_lookup = Lookup.build(self.types.ids[a:b], type_rows[a:b], room)
            a, b = of_texts[row : row + 2]
            if a < b:
                plane.stat_lookup = Lookup.build(texts.ids[a:b], text_rows[a:b], room)
                plane.stat_flags = flags[np.maximum(plane.stat_lookup.rows, 0)]

    def plane_stats(self) -> Stats:
        """The stats of the planes."""
        return self._decode(self._stats, self._stats[0], len(self.planes))

    def type_stats(self, n_types: int) -> Stats:
        """The stats of the event types; types without metadata have none."""
        owners = self.types.stats[0]
        return self._decode(self.types.stats, self.types.plane[owners], n_types)

    def release_buffer(self) -> None:
        """Lets go of the file, after which nothing more can be decoded."""
        self.buf = self.buf[:0].copy()
        del self._interner

    def _decode(self, owned: OwnedRanges, plane: I64, n_owners: int) -> Stats:
        owners, begins, ends = owned
        bounds, stats = self._bounds(plane), wire.StatTable(self._interner.seed)
        for row in distinct(plane).tolist():
            here = slice(bounds[row], bounds[row + 1])
            self.damage.add_stats(*stats.decode(self.buf, begins[here], ends[here], self.planes[row].lookups()))
        stats.intern(self._interner.table)
        return Stats(*take_columns(stats), np.searchsorted(owners, np.arange(n_owners + 1)))


def take_columns(stats: wire.StatTable) -> tuple[I32, U8, I64]:
    """Name, tag and value of decoded stats whose texts have ids."""
    name, tag, value = stats.take()
    return np.asarray(name), np.asarray(tag), np.asarray(value)
