"""The texts of an XSpace file, each stored once, and the lookup of metadata ids."""

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
    """Gives equal texts of the file equal ids.  Row 0 is the empty string.

    Attributes:
        seed: the seed of the texts' hash.
        table: the kernel's table, which assigns the ids.
    """

    def __init__(self, buf: U8) -> None:
        self.seed = int.from_bytes(os.urandom(8), "little")
        self.table = wire.Interner(buf, self.seed)

    def add(self, places: I64) -> I32:
        """Ids of texts, given by the positions of their lengths: int32 of shape (n,).  0 means no text: id 0."""
        ids = np.empty(len(places), np.int32)
        self.table.add(np.ascontiguousarray(places), ids)
        return ids

    def strings(self) -> Strings:
        """The texts so far, copied from the file's bytes."""
        blob, offsets = np.empty(self.table.size, np.uint8), np.empty(self.table.count + 1, np.int64)
        self.table.copy(blob, offsets)
        return Strings(blob, offsets)


@dataclass(frozen=True)
class Lookup:
    """The rows of a plane's metadata ids.

    If `ids` is empty, an id is its own index into `rows`.  Otherwise `ids` is sorted and parallel to `rows`.  Missing
    ids have row -1.
    """

    rows: I32 = field(default_factory=lambda: np.empty(0, np.int32))
    ids: I64 = field(default_factory=lambda: NO_ROWS)

    @classmethod
    def build(cls, ids: I64, rows: I32, room: int) -> Lookup:
        """Builds the indexed form if it needs no more than about `room` rows, otherwise the sorted one.

        The ids must be distinct.
        """
        if ids.min() >= 0 and ids.max() < 4 * len(ids) + room:
            dense = np.full(int(ids.max()) + 1, -1, np.int32)
            dense[ids] = rows
            return cls(dense)
        order = np.argsort(ids)
        return cls(rows[order], ids[order])
