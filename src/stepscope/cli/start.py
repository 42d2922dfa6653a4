"""`stepscope` as it is installed: a warm server of this user answers if there is one, else the command line runs here.

`stepscope.cli.warm` is the other side.  What is imported before the server was asked counts: `typing`, and what
`socket` adds to its core in C, would take half as long as the whole answer.

    question    one byte with the descriptors of stdin, stdout and stderr; its size; texts, each ended by a zero byte
    answer      MINE or NOT_MINE; then frames: the descriptor that it is for, a size, and bytes; at the end the status
"""

from __future__ import annotations

import os
import sys

from stepscope import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Mapping, Sequence

MINE, NOT_MINE = b"+", b"-"
HEAD = b"?"
SIZE = 8  # bytes of a size
END = 0  # the descriptor of the last frame, whose size is the exit status
MOST_BYTES = 1 << 24  # of a question: the system allows two megabytes of words and variables

# Until the server says whether the question is its own: it answers one after the other.
_PATIENCE_S = 0.5


def main() -> None:
    """Runs the command line, and exits."""
    try:
        status = ask(sys.argv[1:])
    except KeyboardInterrupt:
        status = 130
    if status is None:
        from stepscope.cli.main import main as run

        run()
    os._exit(status or 0)  # all is written, and this process holds nothing else


def ask(words: Sequence[str]) -> int | None:
    """Has a warm server run a command, and writes what that says; returns the exit status.

    None if no server does that.  Whatever goes wrong on the way to it is no error: the command runs here then.
    """
    path = socket_path()
    if not words or sys.stdout is None or sys.stderr is None:
        return None
    if path is None or not os.path.exists(path):  # noqa: PTH110 - pathlib takes as long as the answer
        return None
    try:
        frames = _fetch(path, words)
        return None if frames is None else _write(frames)
    except (OSError, ValueError):
        return None


def socket_path() -> str | None:
    """Where this user's server listens; None where users have no numbers."""
    if not hasattr(os, "getuid"):
        return None
    return f"{os.environ.get('TMPDIR') or '/tmp'}/stepscope-{os.getuid()}/warm.sock"


def settings(environment: Mapping[str, str]) -> str:
    """What has to be the same on both sides for the answers to be: the code, and the variables that it looks at."""
    looked_at = (f"{name}={value}" for name, value in environment.items() if name.startswith(("STEPSCOPE_", "PYTHON")))
    return "\n".join([__version__, __file__, sys.prefix, environment.get("TZ", ""), *sorted(looked_at)])


def is_own_user(peer: _socket.socket) -> bool:
    """Whether the process at the other end belongs to this user.  False where the system does not say that."""
    import _socket

    option = getattr(_socket, "SO_PEERCRED", None)  # pid, uid and gid, four bytes each
    if option is None:
        return False
    return int.from_bytes(peer.getsockopt(_socket.SOL_SOCKET, option, 12)[4:8], sys.byteorder) == os.getuid()


def receive(peer: _socket.socket, size: int) -> bytes:
    """Exactly so many bytes.  Raises OSError if there are no more."""
    parts = []
    while size:
        part = peer.recv(min(size, 1 << 20))
        if not part:
            raise ConnectionError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _fetch(path: str, words: Sequence[str]) -> list[tuple[int, bytes | int]] | None:
    """The frames of the answer; None if the server leaves the question to us.  Raises OSError."""
    import _socket

    server = _socket.socket(_socket.AF_UNIX)
    try:
        server.settimeout(_PATIENCE_S)
        server.connect(path)
        if not is_own_user(server):
            return None
        _send(server, _socket.SOL_SOCKET, _socket.SCM_RIGHTS, _pack_question(words))
        if receive(server, 1) != MINE:
            return None
        server.settimeout(None)
        frames: list[tuple[int, bytes | int]] = []
        while not frames or frames[-1][0] != END:
            to, size = receive(server, 1)[0], int.from_bytes(receive(server, SIZE), "little")
            frames.append((to, size if to == END else receive(server, size)))
        return frames
    finally:
        server.close()


def _pack_question(words: Sequence[str]) -> bytes:
    folder, encodings = os.getcwd(), (sys.stdout.encoding, sys.stderr.encoding)  # noqa: PTH109 - as above
    variables = (f"{name}={value}" for name, value in os.environ.items())
    texts = (settings(os.environ), folder, *encodings, str(len(words)), *words, *variables)
    return b"".join(os.fsencode(text) + b"\0" for text in texts)


def _send(server: _socket.socket, level: int, kind: int, question: bytes) -> None:
    """Sends a question, and our stdin, stdout and stderr in front of it."""
    files = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    server.sendmsg([HEAD], [(level, kind, files)])
    server.sendall(len(question).to_bytes(SIZE, "little") + question)


def _write(frames: list[tuple[int, bytes | int]]) -> int:
    """Writes all of an answer; returns the exit status.  Raises OSError: run here, the command says what is wrong."""
    for to, content in frames:
        if isinstance(content, int):
            return content
        while content:
            content = content[os.write(to, content) :]
    raise ValueError("an answer that never ends")
