"""An interned string table: equal bytes have equal ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from stepscope import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Strings:
    """Byte strings in one blob, each stored once.

    Row `i` is `blob[offsets[i]:offsets[i + 1]]`.  Row 0 is always the empty string, so 0 means "no name".  Text is
    decoded on demand.  Bytes that are not UTF-8 are replaced and never raise an error.

    Args:
        blob: uint8 of shape (n_bytes,).
        offsets: int64 of shape (n_strings + 1,), ascending, from 0 to n_bytes.
    """

    __slots__ = ("_found", "blob", "offsets")

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        if len(offsets) < 2 or offsets[1] != 0:
            raise ValueError("row 0 of a string table must be the empty string")
        self.blob = blob
        self.offsets = offsets
        self._found: dict[str | bytes, int] = {}

    @classmethod
    def build(cls, values: Iterable[bytes]) -> Strings:
        """Builds a table from distinct byte strings; the first must be empty."""
        rows = list(values)
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return cls(np.frombuffer(b"".join(rows), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(len(self)))

    def raw(self, row: int) -> bytes:
        """The bytes of one row; the empty string for -1."""
        if row < 0:
            return b""
        return self.blob[self.offsets[row] : self.offsets[row + 1]].tobytes()

    def __getitem__(self, row: int) -> str:
        return self.raw(row).decode("utf-8", "replace")

    def add_text(self, text: bytes) -> tuple[Strings, int]:
        """The table with a text added if it is not there yet, and the text's row."""
        strings, rows = self.add_texts([text])
        return strings, rows[0]

    def add_texts(self, texts: Iterable[bytes]) -> tuple[Strings, list[int]]:
        """The table with different texts added, those that are not there yet, and the row of each."""
        found = [(text, self._find(text)) for text in texts]
        new = {text: len(self) + at for at, text in enumerate(text for text, row in found if row < 0)}
        rows = [row if row >= 0 else new[text] for text, row in found]
        if not new:
            return self, rows
        blob = np.concatenate([self.blob, np.frombuffer(b"".join(new), np.uint8)])
        offsets = len(self.blob) + np.cumsum([len(text) for text in new], dtype=np.int64)
        return Strings(blob, np.concatenate([self.offsets, offsets])), rows

    def texts(self, rows: NDArray[np.integer]) -> list[str]:
        """The texts of many rows, empty for -1.  This is faster than one row at a time."""
        return kernels.ops.texts(self.blob, self.offsets, rows.astype(np.int64, copy=False))

    def find_types(self, rows: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Where texts of the form `scope/name:Type` have their colon and their last slash: int32 of the shape of `rows`
        each; the colon is -1 for a text of another form, the slash -1 without one."""
        colon, slash = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
        kernels.ops.find_types(self.blob, self.offsets, rows.astype(np.int64), colon, slash)
        return colon, slash

    def find(self, text: str | bytes) -> int:
        """The row that holds `text`, or -1.  It scans the lengths, not the text, and once for each text: an analysis
        asks for the same hundred names of stats and ops again and again."""
        row = self._found.get(text)
        if row is None:
            row = self._found[text] = self._find(text.encode() if isinstance(text, str) else text)
        return row

    def _find(self, wanted: bytes) -> int:
        if not wanted:
            return 0
        starts = self.offsets[:-1]
        rows = np.flatnonzero(self.offsets[1:] - starts == len(wanted))
        for at in dict.fromkeys((0, len(wanted) - 1, len(wanted) // 2)):
            if not len(rows):
                return -1
            rows = rows[self.blob[starts[rows] + at] == wanted[at]]
        return next((row for row in rows.tolist() if self.raw(row) == wanted), -1)
