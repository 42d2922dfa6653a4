"""The memory of a large file, whose decoded parts go back to the system while the rest is still decoded."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope import kernels

# The memory of a smaller file is better kept for the tables of the analysis: giving back 834 MB and getting as much
# again took a second of the system's time, and the overview's peak stayed the same.
_LARGE_FILE_BYTES = 1 << 30
_WORTH_BYTES = 8 << 20  # per call of the system
_LARGE_PAGE_BYTES = 2 << 20


class Pages:
    """Gives back the pages of a file's bytes.

    Args:
        data: the bytes, which nobody else needs; None if others need them.  Only memory that was allocated for a large
            file is given back.
    """

    def __init__(self, data: object) -> None:
        self._memory: kernels.memory.Memory | None = None
        self._begin = self._end = 0
        if isinstance(data, memoryview) and len(data) >= _LARGE_FILE_BYTES:
            self._memory = data.obj if isinstance(data.obj, kernels.memory.Memory) else None

    def release(self, begins: Sequence[int], ends: Sequence[int]) -> None:
        """Gives back ranges of bytes that nobody reads again.

        Bytes between two ranges stay.  Ranges that follow on each other, in one call or in several, go back together.
        """
        if self._memory is None:
            return
        for begin, end in zip(begins, ends, strict=True):
            if begin != self._end:
                self._give_back(self._memory)
                self._begin = begin
            self._end = end
            if end - self._begin >= _WORTH_BYTES + _LARGE_PAGE_BYTES:
                self._give_back(self._memory)

    def _give_back(self, memory: kernels.memory.Memory) -> None:
        """Gives back the whole large pages of what was released, and keeps the rest for the next time."""
        begin = -(-self._begin // _LARGE_PAGE_BYTES) * _LARGE_PAGE_BYTES
        end = self._end // _LARGE_PAGE_BYTES * _LARGE_PAGE_BYTES
        if begin < end:
            memory.release(begin, end)
            self._begin = end

    def release_buffer(self) -> None:
        """Drops the reference to the memory."""
        self._memory = None
