"""Open files of Stepscope in the process of a program.

The system gives a file the lowest free number.  Ours lie far above, so the program gets the numbers that it gets
without us, and a daemon that closes all files that it did not open does not meet them below the usual bounds.  Were
ours low and closed so, the next file of the program would have the number, and we would write into it.
"""

from __future__ import annotations

import io
import os
import socket
from contextlib import suppress
from pathlib import Path

_ROOM = 128  # numbers above ours that are left, of those that the system allows
_MOST = 4096  # the system keeps a table as long as the highest number


def move_up(number: int) -> int:
    """An open file under another number, which is closed in a program that takes the place of this one; the old number
    is free again.  The same number where the system has none to give."""
    try:
        import fcntl

        least = min(os.sysconf("SC_OPEN_MAX") - _ROOM, _MOST)
        moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, least)
    except (ImportError, OSError, ValueError):
        return number
    os.close(number)
    return moved


def open_file(path: Path, mode: str) -> io.FileIO:
    """As `path.open(mode, buffering=0)` for bytes."""

    def open_above(name: str, flags: int) -> int:
        return move_up(os.open(name, flags, 0o666))

    return io.FileIO(path, mode.replace("b", ""), opener=open_above)


def open_temporary() -> io.FileIO:
    """A file without a name, which is gone when it is closed."""
    import tempfile

    with tempfile.TemporaryFile(buffering=0) as file:
        return io.FileIO(move_up(os.dup(file.fileno())), "r+")


def move_socket_up(opened: socket.socket) -> socket.socket:
    """The same socket under another number."""
    moved = socket.socket(opened.family, opened.type, opened.proto, move_up(opened.fileno()))
    with suppress(OSError):
        moved.settimeout(opened.gettimeout())
    opened.detach()
    return moved


def open_pipe() -> tuple[int, int]:
    """The two ends of a pipe, to read and to write, neither of which blocks.  (-1, -1) where the system has none."""
    try:
        ends = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    except (AttributeError, OSError):
        return -1, -1
    return move_up(ends[0]), move_up(ends[1])


def close_pipe(ends: tuple[int, int]) -> None:
    """Closes both ends, unless the program has closed them."""
    for end in ends:
        with suppress(OSError):
            os.close(end)
