"""The memory of a large file, of which what was decoded goes back to the system while the rest is still read."""

from __future__ import annotations

import mmap

import numpy as np

from stepscope.model.arrays import I64

_WORTH_BYTES = 8 << 20  # of one call of the system
_LARGE_PAGE_BYTES = 2 << 20


class Pages:
    """Gives back the pages of a file's bytes.

    Args:
        data: the bytes.  Nothing is given back unless they lie in memory that was mapped for them.
    """

    def __init__(self, data: object) -> None:
        memory = data.obj if isinstance(data, memoryview) else None
        self._memory = memory if isinstance(memory, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED") else None
        self._begin = self._end = 0

    def release(self, begins: I64, ends: I64) -> None:
        """Gives back ranges of bytes, int64 of shape (n,), of which nobody will read anything again.

        Only what follows on the last range as well as on each other goes back together: what stands between ranges
        stays.
        """
        if self._memory is None or not len(begins):
            return
        first = np.flatnonzero(np.append(True, begins[1:] != ends[:-1]))
        last = np.append(first[1:], len(begins)) - 1
        for begin, end in zip(begins[first].tolist(), ends[last].tolist(), strict=True):
            if begin != self._end:
                self._give_back(self._memory)
                self._begin = begin
            self._end = end
            if end - self._begin >= _WORTH_BYTES + _LARGE_PAGE_BYTES:
                self._give_back(self._memory)

    def _give_back(self, memory: mmap.mmap) -> None:
        """Gives back the whole large pages of what was released, and keeps the rest for the next time."""
        begin = -(-self._begin // _LARGE_PAGE_BYTES) * _LARGE_PAGE_BYTES
        end = self._end // _LARGE_PAGE_BYTES * _LARGE_PAGE_BYTES
        if begin < end:
            memory.madvise(mmap.MADV_DONTNEED, begin, end - begin)
            self._begin = end

    def release_buffer(self) -> None:
        """Lets go of the memory."""
        self._memory = None
