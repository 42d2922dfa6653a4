"""The texts in an XSpace file, each kept once, and the way from a metadata id to what it means."""

from __future__ import annotations

import os
from dataclasses import field

import numpy as np

from stepscope.kernels import wire
from stepscope.model import Strings
from stepscope.model.arrays import I32, I64, U8
from stepscope.records import dataclass

NO_ROWS = np.empty(0, np.int64)


class Interner:
    """Equal texts of the file, equal id.  Row 0 is the empty string.

    Attributes:
        seed: goes into the hash of the texts.
        table: what gives the ids.
    """

    def __init__(self, buf: U8) -> None:
        self.seed = int.from_bytes(os.urandom(8), "little")
        self.table = wire.Interner(buf, self.seed)

    def add(self, places: I64) -> I32:
        """Ids of texts, told by the positions of their lengths: int32 of shape (n,).  Place 0 is no text: id 0."""
        ids = np.empty(len(places), np.int32)
        self.table.add(np.ascontiguousarray(places), ids)
        return ids

    def strings(self) -> Strings:
        """The texts so far, copied out of the file's bytes."""
        blob, offsets = np.empty(self.table.size, np.uint8), np.empty(self.table.count + 1, np.int64)
        self.table.copy(blob, offsets)
        return Strings(blob, offsets)


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
