"""Profiles that people upload: in pieces, within a quota, and only what a format recognizes.

A piece is at most as long as any other request, so nothing large is kept before it was allowed.  Compressed files are
unpacked as their pieces come, only to count: a small file that would become gigabytes is refused with the piece that
shows it.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from stepscope.errors import BusyError
from stepscope.formats import store
from stepscope.formats.base import format_of
from stepscope.formats.kineto.text import UnpackedSize
from stepscope.formats.sniffing import sniff
from stepscope.records import dataclass
from stepscope.web.answers import Refused

QUOTA_VARIABLE = "STEPSCOPE_UPLOAD_QUOTA"
DEFAULT_QUOTA = 4 << 30
"""Bytes of all uploads of a logdir together."""

FOLDER = "uploads"
STAGING = ".stepscope-uploads"
MOST_OPEN = 4
"""Uploads of one person at the same time."""
MOST_OPEN_OF_ALL = 64
STALE_SECONDS = 60.0
"""After this time without a piece an upload has ended; a slow line brings one of 1 MiB in 10."""

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,150}", re.ASCII)


@dataclass
class Upload:
    """One upload that has not ended.

    Attributes:
        id: its id in addresses.
        person: who sends it; nobody else may go on with it or cancel it.
        name: the file's name.
        size: how many bytes it will have.
        path: where its bytes go for now.
        done: how many bytes are there.
        touched: when the last piece came, by `time.monotonic`.
        unpacked: how much it unpacks to.
        busy: held while a piece is added, by whoever adds it.
    """

    id: str
    person: str
    name: str
    size: int
    path: Path
    unpacked: UnpackedSize
    done: int = 0
    touched: float = 0.0
    busy: threading.Lock = field(default_factory=threading.Lock)


class Uploads:
    """The uploads into a logdir.  Safe to use from several threads.

    Args:
        logdir: a local folder; None if nothing can be uploaded.
        quota: bytes of all uploads together.
    """

    def __init__(self, logdir: str | None, quota: int | None = None) -> None:
        self._logdir = Path(logdir) if logdir is not None else None
        self._quota = _quota_from_environment() if quota is None else quota
        self._open: dict[str, Upload] = {}
        self._lock = threading.Lock()

    @property
    def is_available(self) -> bool:
        """Whether there is a folder for uploads that this process may write to, and no link leads out of it."""
        logdir = self._logdir
        if logdir is None or not logdir.is_dir() or not os.access(logdir, os.W_OK):
            return False
        places = (logdir / STAGING, logdir / FOLDER / "plugins" / "profile")
        return all(store.is_within(str(place), [os.path.realpath(logdir)]) for place in places)

    def begin(self, person: str, name: str, size: int) -> Upload:
        """Begins an upload.

        Raises Refused (400 for a name or size that cannot be, 409, 413 above the quota) or BusyError (429).
        """
        if self._logdir is None or not self.is_available:
            raise Refused(409, "there is no folder to upload to", "ask who runs this server")
        if not _NAME.fullmatch(name) or format_of(name) is None:
            raise Refused(400, "this is not the name of a profile", "such as host.xplane.pb or rank0.pt.trace.json.gz")
        with self._lock:
            self._drop_stale()
            own = [upload for upload in self._open.values() if upload.person == person]
            if len(own) >= MOST_OPEN or len(self._open) >= MOST_OPEN_OF_ALL:
                raise BusyError.for_seconds(int(STALE_SECONDS), "too many uploads are open")
            # What others have only announced blocks nobody.
            free = self._free_bytes() - sum(upload.size - upload.done for upload in own)
            if not 0 < size <= free:
                raise Refused(413, "the upload does not fit", f"{max(free, 0):,} bytes are free for uploads")
            number = secrets.token_hex(8)
            place = self._logdir / STAGING / number
            upload = Upload(number, person, name, size, place, UnpackedSize(size), touched=time.monotonic())
            self._open[number] = upload
        return upload

    def add(self, person: str, number: str, offset: int, piece: bytes) -> Upload:
        """Adds a piece.  Raises Refused: 404, 409 for a piece that does not follow the last, 413, 507 without space."""
        with self._lock:
            upload = self._find(person, number)
            if len(piece) > self._free_bytes():
                self._drop(upload)
                raise Refused(413, "the upload does not fit any more", "others have uploaded meanwhile")
        with upload.busy:
            self._find(person, number)  # it may have ended while another piece was added
            if offset != upload.done:
                raise Refused(409, f"the next piece starts at {upload.done:,}", "go on from there")
            try:
                self._append(upload, piece)
            except Refused:
                with self._lock:
                    self._drop(upload)
                raise
            upload.done, upload.touched = upload.done + len(piece), time.monotonic()
            return upload

    @staticmethod
    def _append(upload: Upload, piece: bytes) -> None:
        if upload.done + len(piece) > upload.size:
            raise Refused(413, "the file is longer than was said", "begin again")
        upload.unpacked.add(piece)
        if upload.unpacked.is_exceeded:
            limit = f"the file unpacks to more than {upload.unpacked.limit:,} bytes"
            raise Refused(413, limit, "no profile shrinks that much: record it again, or open it on your own machine")
        try:
            upload.path.parent.mkdir(mode=0o700, exist_ok=True)
            with upload.path.open("ab") as file:
                file.write(piece)
        except OSError as error:
            raise _refuse_write(error) from error

    def finish(self, person: str, number: str) -> Path:
        """Moves a whole upload to where the page finds it; returns its folder.  Raises Refused if it is no profile."""
        with self._lock:
            upload = self._find(person, number)
            if upload.done != upload.size:
                raise Refused(409, f"only {upload.done:,} of {upload.size:,} bytes came", "send the rest first")
            try:
                with upload.path.open("rb") as file:
                    found = sniff(file.read(64 << 10))
                claimed = format_of(upload.name)
                if found is None or claimed is None or found.name != claimed.name:
                    raise Refused(400, "the content is not what the name says", "upload the profile as it was recorded")
                return self._move(upload)
            except OSError as error:
                raise _refuse_write(error) from error
            finally:
                self._drop(upload)

    def cancel(self, person: str, number: str) -> None:
        """Forgets an upload.  Raises Refused (404)."""
        with self._lock:
            upload = self._find(person, number)
        with upload.busy, self._lock:
            self._drop(upload)

    def _move(self, upload: Upload) -> Path:
        assert self._logdir is not None
        run = time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime())
        folder = self._logdir / FOLDER / "plugins" / "profile" / f"{run}_{upload.id[:4]}"
        folder.mkdir(parents=True)
        upload.path.replace(folder / upload.name)
        return folder

    def _find(self, person: str, number: str) -> Upload:
        upload = self._open.get(number)
        if upload is None or upload.person != person:
            raise Refused(404, "there is no such upload", "it may have taken too long; begin again")
        return upload

    def _drop(self, upload: Upload) -> None:
        self._open.pop(upload.id, None)
        with suppress(OSError):
            upload.path.unlink(missing_ok=True)
        with suppress(OSError):
            upload.path.parent.rmdir()  # refused while another upload is there

    def _drop_stale(self) -> None:
        for upload in list(self._open.values()):
            if upload.touched < time.monotonic() - STALE_SECONDS:
                self._drop(upload)

    def _free_bytes(self) -> int:
        """What is left of the quota beside what was uploaded and what has come of open uploads."""
        assert self._logdir is not None
        found = sum(upload.done for upload in self._open.values())
        for folder, _, names in os.walk(self._logdir / FOLDER):
            for name in names:
                with suppress(OSError):
                    found += (Path(folder) / name).stat().st_size
        return self._quota - found

    def close(self) -> None:
        """Removes what has not ended."""
        with self._lock:
            for upload in list(self._open.values()):
                self._drop(upload)
            if self._logdir is not None and not self._open:
                with suppress(OSError):
                    (self._logdir / STAGING).rmdir()


def _refuse_write(error: OSError) -> Refused:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Refused(507, "there is no space left for uploads", "ask who runs this server")
    return Refused(409, "the upload cannot be written", "ask who runs this server")


def _quota_from_environment() -> int:
    text = os.environ.get(QUOTA_VARIABLE, "").strip()
    return int(text) if text.isascii() and text.isdecimal() else DEFAULT_QUOTA
