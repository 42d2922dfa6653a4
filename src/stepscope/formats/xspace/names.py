"""The texts in an XSpace file, each kept once, and the way from a metadata id to what it means."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from stepscope.kernels import wire
from stepscope.model import Strings
from stepscope.model.arrays import I32, I64, U8, offsets_of
from stepscope.records import dataclass

NO_ROWS = np.empty(0, np.int64)
_FIRST_ROOM = 1 << 10  # texts
_SLOTS_PER_TEXT = 4  # keeps the chains of a full table short


class Interner:
    """Equal texts of the file, equal id.  Row 0 is the empty string."""

    def __init__(self, buf: U8) -> None:
        self.buf = buf
        self._count = 1
        self._texts = np.zeros((_FIRST_ROOM, wire.TEXT_WIDTH), np.int64)
        self._slots = np.full(_SLOTS_PER_TEXT * _FIRST_ROOM, -1, np.int32)

    def add(self, places: I64) -> I32:
        """Ids of texts, told by the positions of their lengths: int32 of shape (n,).  Place 0 is no text: id 0."""
        ids = places.copy()
        self.replace(np.full(len(places), wire.INLINE, np.uint8), ids)
        return ids.astype(np.int32)

    def replace(self, tag: U8, value: I64) -> None:
        """Gives stats whose text stands in the file the id of that text; see `wire.intern`."""
        done = 0
        while True:
            done, self._count = wire.intern(self.buf, tag, value, done, self._slots, self._texts, self._count)
            if done == len(tag):
                return
            self._grow()

    def strings(self) -> Strings:
        """The texts so far, copied out of the file's bytes."""
        known = self._texts[: self._count]
        starts, lengths = known[:, wire.TEXT_START].copy(), known[:, wire.TEXT_LENGTH].copy()
        offsets = offsets_of(lengths)
        blob = np.empty(int(offsets[-1]), np.uint8)
        wire.gather_bytes(self.buf, starts, lengths, offsets, blob)
        return Strings(blob, offsets)

    def _grow(self) -> None:
        known = self._texts
        self._texts = np.zeros((2 * len(known), wire.TEXT_WIDTH), np.int64)
        self._texts[: len(known)] = known
        self._slots = np.full(_SLOTS_PER_TEXT * len(self._texts), -1, np.int32)
        wire.rehash(known, self._slots)


@dataclass(frozen=True)
class Lookup:
    """A plane's metadata ids.  With empty `ids`, an id is its own index into `rows`; otherwise `ids` is sorted and its
    places are those of `rows`.  Absent ids have row -1."""

    rows: I32 = field(default_factory=lambda: np.empty(0, np.int32))
    ids: I64 = field(default_factory=lambda: NO_ROWS)

    @classmethod
    def of(cls, ids: I64, rows: I32, room: int) -> Lookup:
        """Builds the faster of the two forms that needs no more than about `room` rows.  The ids are distinct."""
        if ids.min() >= 0 and ids.max() < 4 * len(ids) + room:
            dense = np.full(int(ids.max()) + 1, -1, np.int32)
            dense[ids] = rows
            return cls(dense)
        order = np.argsort(ids)
        return cls(rows[order], ids[order])
