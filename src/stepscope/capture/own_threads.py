"""Threads of Stepscope in the process of a program: the program does not see them and never waits for them.

A thread of `threading` is in `threading.enumerate()`, and programs join all that are in it, count them, or wait until
only their own is left.  These threads are started below that, by `_thread`.  Nothing here may ask for
`threading.current_thread()`: that would list the thread that asks, and for ever.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

_names: dict[int, str] = {}  # Python's number of each that runs -> its name
_writing: set[OwnThread] = set()


def own_threads() -> dict[int, str]:
    """The threads of this kind that run: Python's number, and what each is called."""
    return dict(_names)


def is_main_thread() -> bool:
    """Whether the caller runs on the main thread."""
    return _thread.get_ident() == threading.main_thread().ident


def name_of_this_thread() -> str:
    """What the calling thread is called, also where `threading` does not know it."""
    known = threading._active.get(_thread.get_ident())  # type: ignore[attr-defined]
    return str(known.name) if known else _names.get(_thread.get_ident(), f"thread {threading.get_native_id()}")


def forget_this_thread() -> None:
    """Takes the calling thread off the list of `threading`, if something it called has put it there."""
    known = threading._active.get(_thread.get_ident())  # type: ignore[attr-defined]
    if isinstance(known, threading._DummyThread) and _thread.get_ident() in _names:
        threading._active.pop(_thread.get_ident(), None)  # type: ignore[attr-defined]


def await_files(seconds: float) -> None:
    """At the program's end: waits for the threads that write what was recorded, for so long at most."""
    until = time.monotonic() + seconds
    for thread in list(_writing):
        thread.join(max(0.0, until - time.monotonic()))


class OwnThread:
    """A thread as that of `threading`, which the program does not see.

    Args:
        target: what it calls.  What that raises is told like any exception that nobody can handle.
        args: what that is called with.
        name: for our own recordings, which leave it out.
        writes: the program's end waits for it, see `await_files`.

    Attributes:
        ident: Python's number of it; None until it has begun.
    """

    def __init__(
        self, target: Callable[..., object], args: tuple[object, ...] = (), name: str = "", writes: bool = False
    ) -> None:
        self._target, self._args, self._writes = target, args, writes
        self.name = name
        self.ident: int | None = None
        self._running = _thread.allocate_lock()
        self._pid = 0

    def start(self) -> None:
        """Starts it.

        Raises:
            RuntimeError: no thread can be started: at the interpreter's end, or at the system's limit.
        """
        self._running.acquire()
        self._pid = os.getpid()
        if self._writes:
            _writing.add(self)
        try:
            _thread.start_new_thread(self._run, ())
        except BaseException:
            self._pid = 0
            _writing.discard(self)
            self._running.release()
            raise

    def is_alive(self) -> bool:
        """True from its start to its end; a fork of the process has none of its threads."""
        return self._pid == os.getpid() and self._running.locked()

    def is_this(self) -> bool:
        """Whether it is the calling thread."""
        return self.ident == _thread.get_ident()

    def join(self, seconds: float) -> None:
        """Waits for its end, for so long at most."""
        if self.is_alive() and not self.is_this() and self._running.acquire(timeout=seconds):
            self._running.release()

    def _run(self) -> None:
        self.ident = _thread.get_ident()
        _names[self.ident] = self.name
        try:
            self._target(*self._args)
        except SystemExit:
            pass
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            with suppress(Exception):  # the interpreter may be at its end
                forget_this_thread()
            _names.pop(self.ident, None)
            _writing.discard(self)
            self._running.release()


class OwnTimer:
    """Calls a function after a time, on a thread of its own, unless it is cancelled.

    Args:
        seconds: the time.
        call: the function.
        name: as for a thread.
    """

    def __init__(self, seconds: float, call: Callable[[], object], name: str = "") -> None:
        self._seconds, self._call = min(seconds, threading.TIMEOUT_MAX), call
        self._cancelled = _thread.allocate_lock()
        self._cancelled.acquire()
        self._thread = OwnThread(self._wait, name=name)

    def start(self) -> None:
        """Starts waiting.  Raises RuntimeError as `OwnThread.start` does."""
        self._thread.start()

    def cancel(self) -> None:
        """Does not call the function, unless it has begun."""
        with suppress(RuntimeError):  # it was cancelled before
            self._cancelled.release()

    def _wait(self) -> None:
        if not self._cancelled.acquire(timeout=self._seconds):
            self._call()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_names.clear)
    os.register_at_fork(after_in_child=_writing.clear)
