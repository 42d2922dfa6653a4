"""The texts of an XSpace file, each stored once."""

from __future__ import annotations

import os
from array import array
from typing import Any

from stepscope.kernels import wire


class Interner:
    """Gives equal texts of the file equal ids.  Row 0 is the empty string.

    Attributes:
        seed: the seed of the texts' hash.
        table: the kernel's table, which assigns the ids.
    """

    def __init__(self, buf: memoryview) -> None:
        self.seed = int.from_bytes(os.urandom(8), "little")
        self.table = wire.Interner(buf, self.seed)

    @property
    def count(self) -> int:
        """How many texts there are."""
        return self.table.count

    def add(self, places: Any) -> array[int]:
        """Ids of texts, given by the positions of their lengths, int64 of shape (n,): int32 of shape (n,).  A position
        of 0 means no text: id 0."""
        ids = array("i", bytes(4 * len(places)))
        self.table.add(places, ids)
        return ids

    def find(self, text: str) -> int:
        """The id of a text, -1 if it has none."""
        return self.table.find(text.encode())

    def text(self, row: int) -> str:
        """The text with an id."""
        return self.table.text(row).decode("utf-8", "replace")

    def release_buffer(self) -> None:
        """Lets go of the file, after which nothing more can be added."""
        self.table.release_buffer()
