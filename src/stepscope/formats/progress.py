"""Progress of reading a file.  Readers report it to the listener of their thread, and to its onlooker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

Listener = Callable[[int], None]


class Onlooker(Protocol):
    """Somebody who watches files being read, such as a progress line."""

    def start_file(self, nbytes: int | None) -> None:
        """A file of that size, if it is known, is about to be read."""

    def advance(self, nbytes: int) -> None:
        """As many more bytes of it are decoded; called on any thread."""


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_onlooker: ContextVar[Onlooker | None] = ContextVar("onlooker", default=None)


@contextmanager
def watched_by(onlooker: Onlooker) -> Iterator[None]:
    """A context in which `onlooker` hears of every file that this thread reads."""
    token = _onlooker.set(onlooker)
    try:
        yield
    finally:
        _onlooker.reset(token)


@contextmanager
def listening(listener: Listener, nbytes: int | None = None) -> Iterator[None]:
    """A context in which `listener` gets the number of bytes that were just decoded; in total about the file's size.

    Args:
        nbytes: the file's size, if it is known.
    """
    onlooker = _onlooker.get()
    if onlooker is not None:
        onlooker.start_file(nbytes)
    token = _listener.set(listener if onlooker is None else _report_to_both(listener, onlooker))
    try:
        yield
    finally:
        _listener.reset(token)


def _report_to_both(listener: Listener, onlooker: Onlooker) -> Listener:
    def advance_both(nbytes: int) -> None:
        listener(nbytes)
        onlooker.advance(nbytes)

    return advance_both


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
