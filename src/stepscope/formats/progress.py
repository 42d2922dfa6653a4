"""How far the reading of a file is, told by readers to whoever listens in their thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[int], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """A context in which `listener` is called with bytes of the file as they are decoded; together about its size."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def advance(nbytes: int) -> None:
    """Tells that so many more bytes of the file are decoded."""
    listener = _listener.get()
    if listener is not None:
        listener(nbytes)


def told(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of a file, each told when it is taken; they may be taken in another thread."""
    listener = _listener.get()
    for piece in pieces:
        yield piece
        if listener is not None:
            listener(len(piece))
