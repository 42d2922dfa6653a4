"""A file for what Stepscope's own tracers record: memory does not grow, and a killed job keeps its record."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from stepscope.capture import handles
from stepscope.capture.report import report, warn
from stepscope.formats.spool import layout

_LOOK_NS = 5_000_000_000  # between two looks whether the file is still there; each call of the system lets others run
_COPY_BYTES = 1 << 20  # the file is written anew once this much of it is too old


class Spool:
    """A file to which records are appended.

    A write that fails ends the spool, which keeps its complete records.  The error is logged; the training job is not
    affected.

    Args:
        path: the file, which is made if it does not exist; None for a temporary file without a name.
        header: the first record, see `layout.session`.

    Attributes:
        size: of the file, in bytes.
        lost_events: events that could not be written.

    Raises:
        OSError: the first record cannot be written.
    """

    _doing = "flushing the capture"

    def __init__(self, path: Path | None, header: bytes) -> None:
        self._path = path
        self._lock = threading.Lock()
        # Without a buffer: a forked child would write its copy of that where the parent is about to write.
        self._file: BinaryIO = handles.open_temporary() if path is None else handles.open_file(path, "w+b")
        self.size = self.lost_events = 0
        self._fails = False
        self._tail: list[bytes] = []  # records for the end: they must survive even if the disk is full
        try:
            self._write(header)
        except OSError:
            self._file.close()
            raise

    def add(self, chunks: list[layout.Chunk]) -> None:
        """Appends chunks in one write: after each, a program whose threads compute has to wait for its turn."""
        if chunks and not self._append(b"".join(map(layout.chunk, chunks))):
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
            return b"".join((*self._read(0), *self._tail, layout.end(clock_ns)))

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
            try:
                if not self._is_open():
                    return False
                self._write(record)
            except OSError as error:
                self._fail(error)
                return False
            return True

    def _is_open(self) -> bool:
        return not (self._fails or self._file.closed)

    def _fail(self, error: OSError) -> None:
        if not self._fails:
            report(error, self._doing)
        self._fails = True

    def _write(self, record: bytes) -> None:
        if self._file.write(record) != len(record):  # the file's position is its end, except after this
            self._file.truncate(self.size)
            self._file.seek(self.size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path or ""))
        self.size += len(record)

    def _read(self, place: int) -> Iterator[bytes]:
        """The file from a place to its end, in pieces: one read returns at most 2 GiB."""
        self._file.seek(place)
        left = self.size - place
        while left > 0 and (piece := self._file.read(left)):
            left -= len(piece)
            yield piece


class RingSpool(Spool):
    """A spool that keeps the last seconds: what a job that is killed leaves behind.

    Each write is a segment, and the oldest segments are removed.  The file is always a spool that every command reads.
    It is replaced by a shorter one now and then, so that it takes at most about twice the space of what it keeps.  A
    write that fails is reported once, and tried again with the next records; a folder that disappears is made again.

    Args:
        path: the file.
        header: the first record.
        span_ns: how long a segment is kept.
        most_bytes: what the kept segments may occupy.
        clock: ns.

    Attributes:
        kept_bytes: what the kept segments occupy: the last bytes of the file.

    Raises:
        OSError: the file cannot be made.
    """

    _doing = "keeping the ring of the watch"

    def __init__(
        self, path: Path, header: bytes, span_ns: int, most_bytes: int, clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        super().__init__(path, header)
        self._place, self._header = path, header
        self._span_ns, self._most_bytes = span_ns, most_bytes
        self._clock = clock
        self._segments: deque[tuple[int, int]] = deque()  # when each was written, and its size
        self.kept_bytes = self._looked_ns = 0

    def add(self, chunks: list[layout.Chunk]) -> None:
        """Appends chunks as a segment, and forgets segments that are too old."""
        super().add(chunks)
        with self._lock:
            self._forget_old(self._clock())

    def content(self) -> bytes:
        """The header and the segments that are kept."""
        with self._lock:
            return self._content()

    def _content(self) -> bytes:
        return b"".join((self._header, *self._read(self.size - self.kept_bytes)))

    def _is_open(self) -> bool:
        """After a failure it writes into a new file if the old one is gone, without the past."""
        if self._fails and not self._place.exists():
            self._place.parent.mkdir(parents=True, exist_ok=True)
            self._file.close()
            self._file = handles.open_file(self._place, "w+b")
            self._segments.clear()
            self.size = self.kept_bytes = 0
            self._write(self._header)
        return not self._file.closed

    def _append(self, record: bytes) -> bool:
        if not super()._append(record):
            return False
        self._segments.append((self._clock(), len(record)))
        self.kept_bytes += len(record)
        if self._fails:
            self._fails = False
            warn("the ring of the watch is written again")
        return True

    def _forget_old(self, now_ns: int) -> None:
        while self._segments and (now_ns - self._segments[0][0] > self._span_ns or self.kept_bytes > self._most_bytes):
            self.kept_bytes -= self._segments.popleft()[1]
        old = self.size - len(self._header) - self.kept_bytes
        if old > max(self.kept_bytes, _COPY_BYTES) or self._is_gone(now_ns):
            self._copy_kept()

    def _is_gone(self, now_ns: int) -> bool:
        """Whether the file was removed, by a look now and then."""
        if now_ns - self._looked_ns < _LOOK_NS:
            return False
        self._looked_ns = now_ns
        return not self._place.exists()

    def _copy_kept(self) -> None:
        """Replaces the file by one with the kept segments only."""
        content = self._content()
        draft = self._place.with_name(f".{self._place.name}.{os.getpid()}")
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(content)
            file = handles.open_file(draft, "r+b")
            file.seek(len(content))
            draft.replace(self._place)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            self._fail(error)
            return
        self._file.close()
        self._file, self.size = file, len(content)
