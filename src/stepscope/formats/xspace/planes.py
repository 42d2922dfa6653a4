"""The planes of an XSpace file without their lines: their names, metadata and stats, and the way from ids to rows.

The tables are those of the kernels, as nothing here needs numpy.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from stepscope.formats.xspace import schema
from stepscope.formats.xspace.names import Interner
from stepscope.formats.xspace.stat_flags import flags_of_texts
from stepscope.kernels import wire
from stepscope.records import dataclass

Table = Any  # of a kernel: int64, of the shape that its documentation names
Ranges = tuple[Table, Table]
OwnedRanges = tuple[Table, Table, Table]  # the row of the message around each, ascending; start; end
StatColumns = tuple[Any, Any, Any]  # name, tag and value
_BYTES_A_NUMBER = 8


def zeros(count: int) -> array[int]:
    """int64 of shape (count,), zeros."""
    return array("q", bytes(_BYTES_A_NUMBER * count))


@dataclass(frozen=True)
class Failures:
    """Where reading of some messages failed.

    Attributes:
        at: int64 of shape (messages,), the place in the file, or -1 for a message without damage.
        codes: the reason; ends: where each message ends.
    """

    at: Table
    codes: Table
    ends: Table


@dataclass(frozen=True)
class LostStats:
    """Stats of planes or types that could not be read: how many, where the first starts and what is wrong with it."""

    count: int
    first: int
    code: int


@dataclass(frozen=True)
class PlaneFields:
    """Fields of messages, in order.

    Attributes:
        columns: int64 of shape (fields, FIELD_WIDTH), see `stepscope.kernels.wire`.
        failures: where reading of the messages failed.
    """

    columns: Table
    failures: Failures

    @classmethod
    def scan(cls, source: wire.Source, begins: Table, ends: Table, left: int) -> PlaneFields:
        """Finds the fields of messages; the content of those with one number is left in the file."""
        bad_at, codes = array("q", [-1]) * len(begins), zeros(len(begins))
        columns = wire.scan_fields(source, begins, ends, left, bad_at, codes)
        return cls(columns, Failures(bad_at, codes, ends))

    def messages(self, number: int) -> OwnedRanges:
        """The nested messages with this field number, including one that is cut off."""
        return wire.nested_messages(self.columns, number)

    def last(self, number: int, column: int) -> array[int]:
        """A column of each message's last complete field with this number: int64 of shape (messages,).

        A message without such a field gets 0.
        """
        found = zeros(len(self.failures.at))
        wire.last_fields(self.columns, number, column, found)
        return found


@dataclass(frozen=True)
class Metadata:
    """The valid entries of the metadata maps of all planes: those with a name that are the last with their id.

    Attributes:
        plane: int64 of shape (entries,), ascending.
        columns: int64 of shape (entries, META_WIDTH), see `stepscope.kernels.wire`.
        stats: int64 of shape (stats, STAT_WIDTH), whose owners are entries.
        failures: where reading of any entry failed.
    """

    plane: Table
    columns: Table
    stats: Table
    failures: Failures

    @classmethod
    def read(cls, buf: memoryview, owned: OwnedRanges) -> Metadata:
        """Reads the entries of one kind."""
        owners, begins, ends = owned
        columns = wire.zero_table(len(begins), wire.META_WIDTH)
        stats = wire.walk_metadata(buf, begins, ends, columns)
        chosen = wire.last_entries(owners, columns)
        failures = Failures(columns[:, wire.META_BAD_AT], columns[:, wire.META_BAD_CODE], ends)
        kept, of_kept = wire.take_entries(columns, chosen), wire.take_stats(stats, chosen)
        return cls(chosen[:, wire.CHOSEN_OWNER], kept, of_kept, failures)

    def __len__(self) -> int:
        return len(self.plane)


class PlaneReader:
    """Reads the planes and interns their names.

    Attributes:
        names: of the planes, in the order of the file.
        plane_id: int64 of shape (planes,); plane_name: int32 of shape (planes,), string rows.
        lines: plane and range of each line.
        types: the event metadata.
        type_name, type_display: int32 of shape (types,), string rows.
        failures: where reading of messages failed; lost_stats: the stats that could not be read.
    """

    def __init__(self, source: wire.Source, ranges: Ranges, strings: Interner, left_out: Iterable[str] = ()) -> None:
        self._buf = buf = source.view()
        self._strings = strings
        fields = PlaneFields.scan(source, *ranges, schema.PLANE_LINES)
        self.plane_id = fields.last(schema.PLANE_ID, wire.FIELD_START)
        self.plane_name = strings.add(fields.last(schema.PLANE_NAME, wire.FIELD_PLACE))
        self.lines = fields.messages(schema.PLANE_LINES)
        self.plane_stat_ranges = fields.messages(schema.PLANE_STATS)
        self.types = Metadata.read(buf, fields.messages(schema.PLANE_EVENT_METADATA))
        self.type_name = strings.add(self.types.columns[:, wire.META_NAME])
        self.type_display = strings.add(self.types.columns[:, wire.META_DISPLAY])
        texts = Metadata.read(buf, fields.messages(schema.PLANE_STAT_METADATA))
        self.failures = [fields.failures, self.types.failures, texts.failures]
        self.lost_stats: list[LostStats] = []
        self.names = [strings.text(row) for row in self.plane_name]
        self._lookups = self._make_lookups(texts, strings, ranges, left_out)

    def _make_lookups(
        self, texts: Metadata, strings: Interner, ranges: Ranges, left_out: Iterable[str]
    ) -> list[wire.Lookups]:
        text_rows = strings.add(texts.columns[:, wire.META_NAME])
        flags = flags_of_texts(strings, left_out)
        of_types, of_texts = self._bounds(self.types.plane), self._bounds(texts.plane)
        made = []
        for row, (begin, end) in enumerate(zip(*ranges, strict=True)):
            room = (end - begin) // 16  # so that a lookup takes only a fraction of the plane's size in the file
            types, names = (of_types[row], of_types[row + 1]), (of_texts[row], of_texts[row + 1])
            made.append(wire.Lookups(self.types.columns, *types, texts.columns, *names, text_rows, flags, room))
        return made

    def _bounds(self, owners: Sequence[int]) -> list[int]:
        """First row of each plane in a table that is sorted by plane, and the number of rows."""
        return [bisect_left(owners, row) for row in range(len(self.plane_id) + 1)]

    def lines_of_planes(self) -> list[tuple[int, int, wire.Lookups]]:
        """The first line of each plane, one past its last, and the way from its ids to rows."""
        lines = pairwise(self._bounds(self.lines[0]))
        return [(*rows, lookups) for rows, lookups in zip(lines, self._lookups, strict=True)]

    def plane_stats(self) -> StatColumns:
        """The stats of the planes, whose owners are those of `plane_stat_ranges`."""
        owners, begins, ends = self.plane_stat_ranges
        return self._decode(begins, ends, self._bounds(owners))

    def type_stats(self) -> StatColumns:
        """The stats of the event types, whose owners are those of `types.stats`."""
        stats = self.types.stats
        bounds = [bisect_left(stats[:, wire.STAT_ENTRY], entry) for entry in self._bounds(self.types.plane)]
        return self._decode(stats[:, wire.STAT_START], stats[:, wire.STAT_STOP], bounds)

    def release_buffer(self) -> None:
        """Lets go of the file, after which nothing more can be decoded."""
        del self._buf, self._strings

    def _decode(self, begins: Table, ends: Table, bounds: Sequence[int]) -> StatColumns:
        """Stats that are messages by themselves; `bounds` are the first one of each plane, and their number."""
        stats = wire.StatTable(self._strings.seed)
        for (first, stop), lookups in zip(pairwise(bounds), self._lookups, strict=True):
            if first < stop:
                lost = LostStats(*stats.decode(self._buf, begins[first:stop], ends[first:stop], lookups))
                self.lost_stats.append(lost)
        stats.intern(self._strings.table)
        return stats.take()
