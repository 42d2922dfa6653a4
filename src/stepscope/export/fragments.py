"""Lines of JSON from fragments: each distinct text is encoded once, and a kernel puts the lines together."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from stepscope import kernels
from stepscope.model.arrays import I32, I64, U8, offsets_of
from stepscope.records import dataclass


class Fragments:
    """The texts that lines are assembled from; number 0 is the empty one."""

    def __init__(self) -> None:
        self._texts = [b""]

    def add(self, texts: Iterable[bytes]) -> int:
        """Adds texts; returns the number of the first."""
        first = len(self._texts)
        self._texts += texts
        return first

    def table(self) -> Table:
        """The texts so far, for assembling lines."""
        sizes = np.fromiter(map(len, self._texts), np.int64, len(self._texts))
        return Table(np.frombuffer(b"".join(self._texts), np.uint8), offsets_of(sizes), sizes)


@dataclass(frozen=True)
class Table:
    """The texts in one blob: text `i` is `blob[bounds[i]:bounds[i + 1]]`."""

    blob: U8
    bounds: I64
    sizes: I64

    def lines(self, parts: I32, time: I64, length: I64, glue: I32, stats: StatText) -> bytes:
        """One line for each row of `parts`; see `kernels.tracks.render`."""
        return kernels.tracks.render(
            self.blob, self.bounds, parts, time, length, glue, stats.offsets, stats.key, stats.text, stats.value
        )


@dataclass(frozen=True)
class StatText:
    """Stats of some lines: the offsets of each line's stats, the fragments of key and value, or the value itself."""

    offsets: I64
    key: I32
    text: I32
    value: I64


def encode_json(text: str) -> bytes:
    """A text as JSON."""
    return msgspec.json.encode(text)


def no_stats(lines: int) -> StatText:
    """No stats for any of some lines."""
    none = np.empty(0, np.int32)
    return StatText(np.zeros(lines + 1, np.int64), none, none, np.empty(0, np.int64))
