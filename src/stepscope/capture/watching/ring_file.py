"""A spool on disk that keeps the last seconds: what a job that is killed leaves behind."""

from __future__ import annotations

import errno
import os
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from stepscope.capture.report import report, warn
from stepscope.formats.spool import layout

_LOOK_NS = 5_000_000_000  # between two looks whether the file is still there; each call of the system lets others run
_COPY_BYTES = 1 << 20  # the file is written anew once this much of it is too old


class RingFile:
    """A spool whose oldest records are removed.

    The file is always a spool that every command reads.  It is replaced by a shorter one now and then, so that it takes
    at most about twice the space of what it keeps.  A write that fails is reported once, and tried again with the next
    records; a folder that disappears is made again.  For one thread at a time.

    Args:
        path: the file.
        header: what the spool starts with.
        span_ns: how long a record is kept.
        most_bytes: what the kept records may occupy.

    Attributes:
        lost_events: events that could not be written.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path, header: bytes, span_ns: int, most_bytes: int) -> None:
        self._path = path
        self._header = header
        self._span_ns = span_ns
        self._most_bytes = most_bytes
        self._records: deque[tuple[int, int, int]] = deque()  # of each write: when, its place, its size
        self._file: BinaryIO = path.open("w+b", buffering=0)
        self._size = self._looked_ns = 0
        self._fails = False
        self.lost_events = 0
        self._write(header)

    @property
    def kept_bytes(self) -> int:
        """What the kept records occupy."""
        return sum(size for _, _, size in self._records)

    def add(self, chunks: list[layout.Chunk], now_ns: int) -> None:
        """Appends chunks, in one write, and forgets those that are too old."""
        if chunks:
            self._append(b"".join(map(layout.chunk, chunks)), now_ns, sum(len(chunk.name) for chunk in chunks))
        self._forget_old(now_ns)

    def content(self) -> bytes:
        """The header and the records that are kept."""
        return b"".join((self._header, *(self._read(place, size) for _, place, size in self._records)))

    def remove(self) -> None:
        """Closes the file and removes it."""
        self._file.close()
        with suppress(OSError):
            self._path.unlink()

    def abandon(self) -> None:
        """Closes the file and leaves it on the disk."""
        self._file.close()

    def _append(self, record: bytes, now_ns: int, events: int) -> None:
        try:
            if self._fails:
                self._restart()
            place = self._size
            self._write(record)
        except (OSError, ValueError) as error:  # ValueError: the file could not be opened again
            self.lost_events += events
            if not self._fails:
                self._fails = True
                report(error if isinstance(error, OSError) else OSError(str(error)), "keeping the ring of the watch")
        else:
            self._records.append((now_ns, place, len(record)))
            if self._fails:
                self._fails = False
                warn("the ring of the watch is written again")

    def _write(self, data: bytes) -> None:
        if self._file.write(data) != len(data):  # its position is its end, except after this
            self._file.truncate(self._size)
            self._file.seek(self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        self._size += len(data)

    def _read(self, place: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, place)

    def _forget_old(self, now_ns: int) -> None:
        kept = self.kept_bytes
        while self._records and (now_ns - self._records[0][0] > self._span_ns or kept > self._most_bytes):
            kept -= self._records.popleft()[2]
        old = self._size - len(self._header) - kept
        if old > max(kept, _COPY_BYTES) or self._is_gone(now_ns):
            self._copy_kept()

    def _is_gone(self, now_ns: int) -> bool:
        """Whether the file was removed, by a look now and then."""
        if now_ns - self._looked_ns < _LOOK_NS:
            return False
        self._looked_ns = now_ns
        return not self._path.exists()

    def _copy_kept(self) -> None:
        """Replaces the file by one with the kept records only."""
        content, records = self.content(), self._moved_records()
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(content)
            file = draft.open("r+b", buffering=0)
            file.seek(len(content))
            draft.replace(self._path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            self._fails or report(error, "keeping the ring of the watch")
            self._fails = True
            return
        self._file.close()
        self._file, self._size, self._records = file, len(content), records

    def _moved_records(self) -> deque[tuple[int, int, int]]:
        moved: deque[tuple[int, int, int]] = deque()
        place = len(self._header)
        for added_ns, _, size in self._records:
            moved.append((added_ns, place, size))
            place += size
        return moved

    def _restart(self) -> None:
        """Writes again after a failure: into a new file if the old one is gone, without the past if there is no room
        for it."""
        if self._path.exists():
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file.close()
        self._file = self._path.open("w+b", buffering=0)
        self._size, self._records = 0, deque()
        self._write(self._header)
