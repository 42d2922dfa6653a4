"""A file for what Stepscope's own tracers record: memory does not grow, and a killed job keeps its record."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from stepscope.capture.report import report
from stepscope.formats.spool import layout


class Spool:
    """A file to which records are appended.

    A write that fails ends the spool, which keeps its complete records.  The error is logged; the training job is not
    affected.

    Args:
        path: the file, which is made if it does not exist; None for a temporary file without a name.

    Raises:
        OSError: the first record cannot be written.
    """

    def __init__(self, path: Path | None, *, host: str, framework: str, clock_ns: int, unix_ns: int) -> None:
        self._path = path
        self._lock = threading.Lock()
        # Without a buffer: a forked child would write its copy of that where the parent is about to write.
        self._file: BinaryIO = tempfile.TemporaryFile(buffering=0) if path is None else path.open("w+b", buffering=0)  # noqa: SIM115
        self.size = 0
        self.lost_events = 0
        self._failed = False
        self._tail: list[bytes] = []  # records for the end: they must survive even if the disk is full
        try:
            self._write(layout.session(host, framework, clock_ns, unix_ns))
        except OSError:
            self._file.close()
            raise

    def add(self, chunks: list[layout.Chunk]) -> None:
        """Appends chunks in one write: after each, a program whose threads compute has to wait for its turn."""
        if not self._append(b"".join(map(layout.chunk, chunks))):
            self.lost_events += sum(len(chunk.name) for chunk in chunks)

    def note(self, text: str) -> None:
        """Adds a sentence for the reader of the profile, at its end."""
        self._tail.append(layout.note(text))

    def cut(self, by: str) -> None:
        """Records at once what ends the program during the capture."""
        self._append(layout.cut(by))

    def facts(self, plane: str, stats: dict[str, layout.StatValue]) -> None:
        """Adds stats of a plane, at the end."""
        self._tail.append(layout.facts(plane, stats))

    def finish(self, clock_ns: int) -> bytes:
        """Everything that was appended, followed by the end record.  The file stays until `remove`."""
        if self.lost_events:
            self.note(f"{self.lost_events:,} events of Stepscope's own tracers were lost because the disk was full")
        with self._lock:
            self._file.seek(0)
            return b"".join((*self._pieces(), *self._tail, layout.end(clock_ns)))

    def _pieces(self) -> Iterator[bytes]:
        """What was appended, in pieces: one read returns at most 2 GiB."""
        left = self.size
        while left > 0 and (piece := self._file.read(left)):
            left -= len(piece)
            yield piece

    def remove(self) -> None:
        """Closes the file and removes it.  May be called more than once."""
        with self._lock:
            self._file.close()
            if self._path is not None:
                with suppress(OSError):
                    self._path.unlink()

    def abandon(self) -> None:
        """Closes the file and leaves it on the disk: in a forked child it belongs to the parent."""
        self._file.close()

    def _append(self, record: bytes) -> bool:
        with self._lock:
            if self._failed or self._file.closed:
                return False
            try:
                self._write(record)
            except OSError as error:
                self._failed = True
                report(error, "flushing the capture")
                with suppress(OSError):
                    self._file.truncate(self.size)
                return False
            return True

    def _write(self, record: bytes) -> None:
        self._file.seek(self.size)
        if self._file.write(record) != len(record):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path or ""))
        self.size += len(record)
