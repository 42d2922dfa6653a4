"""The names in an XSpace file: interned texts, and each plane's way from a metadata id to what it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stepscope.formats.xspace import classify, schema
from stepscope.kernels import wire
from stepscope.model import PlaneKind, Strings

I64 = NDArray[np.int64]
Ranges = tuple[I64, I64]
NO_ROWS = np.empty(0, np.int64)


class Interner:
    """Equal bytes of the file, equal id.  Row 0 is the empty string."""

    def __init__(self, buf: NDArray[np.uint8]) -> None:
        self.buf = buf
        self._starts = np.zeros(1, np.int64)
        self._lengths = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, starts: I64, lengths: I64) -> NDArray[np.int32]:
        """Ids of byte ranges: int32 of shape (n,)."""
        room = len(self) + len(starts)
        slots = np.full(1 << max(4, (2 * room - 1).bit_length()), -1, np.int32)
        all_starts, all_lengths = np.zeros(room, np.int64), np.zeros(room, np.int64)
        known = np.empty(len(self), np.int32)
        count = wire.intern(self.buf, self._starts, self._lengths, known, slots, all_starts, all_lengths, 1)
        out = np.empty(len(starts), np.int32)
        count = wire.intern(self.buf, starts, lengths, out, slots, all_starts, all_lengths, count)
        self._starts, self._lengths = all_starts[:count].copy(), all_lengths[:count].copy()
        return out

    def table(self) -> Strings:
        """The texts so far, copied out of the file's bytes."""
        offsets = bases(self._lengths)
        blob = np.empty(int(offsets[-1]), np.uint8)
        wire.gather_bytes(self.buf, self._starts, self._lengths, offsets, blob)
        return Strings(blob, offsets)


@dataclass(frozen=True)
class Lookup:
    """A plane's metadata ids.  With empty `ids`, an id is its own index into `rows`; otherwise `ids` is sorted and its
    places are those of `rows`.  Absent ids have row -1."""

    rows: NDArray[np.int32]
    ids: I64

    @classmethod
    def of(cls, ids: I64, rows: NDArray[np.int32]) -> Lookup:
        """Builds the denser of the two forms; of equal ids the last wins, as in protobuf maps."""
        if not len(ids):
            return cls(np.empty(0, np.int32), NO_ROWS)
        if ids.min() >= 0 and ids.max() < 4 * len(ids) + 4096:
            dense = np.full(int(ids.max()) + 1, -1, np.int32)
            dense[ids] = rows
            return cls(dense, NO_ROWS)
        order = np.argsort(ids, kind="stable")
        last = np.append(ids[order][1:] != ids[order][:-1], True)
        return cls(rows[order][last], ids[order][last])


@dataclass
class Plane:
    """One plane while it is read: where its parts lie, and its names once they are known."""

    name_range: tuple[int, int]
    plane_id: int
    lines: Ranges
    event_metadata: Ranges
    stat_metadata: Ranges
    stats: Ranges
    name: str = ""
    kind: PlaneKind = PlaneKind.OTHER
    ordinal: int = -1
    first_type: int = 0
    first_line: int = 0
    types: I64 = field(default_factory=lambda: np.empty((0, wire.META_WIDTH), np.int64))
    type_lookup: Lookup = field(default_factory=lambda: Lookup.of(NO_ROWS, np.empty(0, np.int32)))
    stat_lookup: Lookup = field(default_factory=lambda: Lookup.of(NO_ROWS, np.empty(0, np.int32)))
    stat_flags: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))

    @property
    def n_lines(self) -> int:
        """Lines of this plane."""
        return len(self.lines[0])


@dataclass(frozen=True)
class Names:
    """What the metadata of all planes names: int32 columns over the event types, in the order of the planes."""

    type_name: NDArray[np.int32]
    type_display: NDArray[np.int32]
    plane_name: NDArray[np.int32]


def bases(counts: I64) -> I64:
    """Where each of several runs begins, and where the last ends: int64 of shape (n + 1,)."""
    out = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=out[1:])
    return out


def stat_columns(rows: int) -> tuple[NDArray[np.int32], NDArray[np.uint8], I64]:
    """Room for stats: name, tag, value."""
    return np.empty(rows, np.int32), np.empty(rows, np.uint8), np.empty(rows, np.int64)


def metadata_entries(buf: NDArray[np.uint8], ranges: Ranges) -> I64:
    """The entries of a metadata map: int64 of shape (entries, META_WIDTH)."""
    entries = np.zeros((len(ranges[0]), wire.META_WIDTH), np.int64)
    no_lookup = (np.empty(0, np.int32), NO_ROWS, np.empty(0, np.uint32))
    wire.walk_metadata(buf, *ranges, entries, False, NO_ROWS, *no_lookup, *stat_columns(0))
    return entries


def read_names(buf: NDArray[np.uint8], planes: Sequence[Plane], strings: Interner) -> Names:
    """Reads all metadata, interns its texts, and gives every plane its lookups.  `planes` must not be empty."""
    stat_entries = [metadata_entries(buf, plane.stat_metadata) for plane in planes]
    first_type = first_line = 0
    for plane in planes:
        begin, end = plane.name_range
        plane.name = buf[begin:end].tobytes().decode("utf-8", "replace")
        plane.kind, plane.ordinal = schema.plane_kind(plane.name)
        plane.types = metadata_entries(buf, plane.event_metadata)
        plane.first_type, plane.first_line = first_type, first_line
        first_type += len(plane.types)
        first_line += plane.n_lines
    types = np.concatenate([plane.types for plane in planes])
    texts = np.concatenate(stat_entries)
    name = strings.add(types[:, wire.META_NAME_AT], types[:, wire.META_NAME_LEN])
    display = strings.add(types[:, wire.META_SHORT_AT], types[:, wire.META_SHORT_LEN])
    text_rows = strings.add(texts[:, wire.META_NAME_AT], texts[:, wire.META_NAME_LEN])
    ranges = np.array([plane.name_range for plane in planes], np.int64)
    plane_name = strings.add(ranges[:, 0], ranges[:, 1] - ranges[:, 0])
    flags = classify.flags_of_strings(strings.table())
    at = 0
    for plane, entries in zip(planes, stat_entries, strict=True):
        rows = np.arange(plane.first_type, plane.first_type + len(plane.types), dtype=np.int32)
        plane.type_lookup = Lookup.of(plane.types[:, wire.META_ID], rows)
        plane.stat_lookup = Lookup.of(entries[:, wire.META_ID], text_rows[at : at + len(entries)])
        plane.stat_flags = flags[np.maximum(plane.stat_lookup.rows, 0)]
        at += len(entries)
    return Names(name, display, plane_name)
