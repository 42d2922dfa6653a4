"""A temporary folder that belongs to the process that made it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path

from stepscope.capture.handles import move_up

try:
    import fcntl

    _HAS_LOCKS = True
except ImportError:  # Windows
    _HAS_LOCKS = False

PREFIX = "stepscope-scratch-"
_FRESH_S = 60.0  # a folder may not be locked yet
_MOST_ENTRIES = 20_000
_held: dict[str, tuple[int, int | None]] = {}  # folder -> the process that made it, and its lock


class ScratchFolder:
    """A temporary folder.  It is removed by `remove`, when nothing refers to it any more, or at the end of the program.

    A forked child never removes it.  With `tempfile.TemporaryDirectory`, a child that ends, or that forgets its
    parent's capture, would remove the parent's folder; and the first object of that kind in a process decides when the
    program's own are removed at its end.

    A process that is killed leaves its folder behind.  The next process that is done with a folder of its own removes
    it: nobody holds its lock any more, in whatever container its owner was.

    Attributes:
        path: where it is.
    """

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix=PREFIX)
        _held[self.path] = (os.getpid(), _lock(Path(self.path)))

    def remove(self) -> None:
        """Removes the folder with its content, as far as possible.  May be called more than once."""
        _remove(self.path)

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter little is left
            self.remove()


class Sweep:
    """Removes the folders that killed processes have left.

    Attributes:
        is_due: until this process has done it once.
    """

    def __init__(self) -> None:
        self.is_due = True

    def run_once(self, now: float | None = None) -> None:
        """Looks through the folder of temporary files, once in a process."""
        if self.is_due and _HAS_LOCKS:
            self.is_due = False
            with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
                for entry in islice(entries, _MOST_ENTRIES):
                    if entry.name.startswith(PREFIX):
                        _remove_if_left(Path(entry.path), time.time() if now is None else now)


SWEEP = Sweep()


def _remove_all() -> None:
    for path in list(_held):
        _remove(path)


# Registered when this is imported, before whatever uses folders at the end of the program, and so called after that.
atexit.register(_remove_all)


def _remove(path: str) -> None:
    maker, handle = _held.pop(path, (0, None))
    if os.getpid() != maker:
        return
    shutil.rmtree(path, ignore_errors=True)
    if handle is not None:
        with suppress(OSError):
            os.close(handle)
    SWEEP.run_once()


def _lock(folder: Path) -> int | None:
    """Locks a folder until this process ends; its descriptor, or None if that is impossible."""
    if not _HAS_LOCKS:
        return None
    try:
        handle = move_up(os.open(folder, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return None
    with suppress(OSError):  # the file system has no locks, so that nobody can sweep it either
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


def _remove_if_left(folder: Path, now: float) -> None:
    """Removes a folder of this user that nobody has locked."""
    with suppress(OSError):
        facts = folder.lstat()
        if facts.st_uid != os.getuid() or now - facts.st_mtime < _FRESH_S:
            return
        handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)
