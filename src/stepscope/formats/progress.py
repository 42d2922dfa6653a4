"""Progress of reading a file.  Readers report it to the listener of their thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[int], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """A context in which `listener` gets the number of bytes that were just decoded; in total about the file's size."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def advance(nbytes: int) -> None:
    """Reports that `nbytes` more bytes of the file are decoded."""
    listener = _listener.get()
    if listener is not None:
        listener(nbytes)


def report_pieces(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of a file.  Each is reported when it is consumed, which may happen on another thread."""
    listener = _listener.get()
    for piece in pieces:
        yield piece
        if listener is not None:
            listener(len(piece))
