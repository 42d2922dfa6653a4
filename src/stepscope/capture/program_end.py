"""Saves the captures when the program ends: at Python's own end, by SIGTERM, by `os._exit` or by `os.exec...`."""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Protocol

from stepscope.capture.out_of_memory import reserve_memory
from stepscope.capture.own_threads import await_files, is_main_thread
from stepscope.capture.patches import Observer, Undo, observe_attribute, replace_attribute, undo_all
from stepscope.capture.report import Suppressed, warn
from stepscope.capture.running import Capture
from stepscope.children import set_deadline
from stepscope.kernels.untraced import untraced

_HAND_OVER_S = 5.0  # how long the program's end waits for a recording that somebody takes in memory
END_PATIENCE_S = 600.0
"""How long Python's end waits for files that are being written: a capture of gigabytes takes minutes."""

_SIGTERM_PATIENCE_S = 20.0  # launchers kill a job 30 s after they asked it to end
_CONVERSION_PATIENCE_S = 15.0  # of those 20; what is not converted by then is kept as the framework wrote it
_HARD_END_PATIENCE_S = 15.0  # how long `os._exit` waits for files that are being written
_LOCK_PATIENCE_S = 1.0
_GIVE_UP_AT = 3


class Interrupts:
    """Ctrl-C while a profile is saved takes effect when it is saved: many press the keys twice to end a job."""

    def __init__(self) -> None:
        self._is_held = False

    @contextmanager
    def hold(self, at_end: bool = False) -> Iterator[None]:
        """On the main thread: SIGINT in the block is heard after it, the third one at once.

        Args:
            at_end: Python itself has ended the program, so there is nothing left to interrupt after the block.
        """
        is_main = is_main_thread()
        before = signal.getsignal(signal.SIGINT) if is_main and not self._is_held else None
        if not callable(before):
            yield
            return
        heard: list[int] = []

        def note(number: int, frame: FrameType | None) -> None:
            heard.append(number)
            if len(heard) == 1:
                warn("the profile is being saved, and the program ends after that; Ctrl-C twice more ends it now")
            elif len(heard) >= _GIVE_UP_AT:
                heard.clear()
                before(number, frame)

        self._is_held = True
        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            self._is_held = False
            if signal.getsignal(signal.SIGINT) is note:
                signal.signal(signal.SIGINT, before)
            if heard and not at_end:
                before(signal.SIGINT, None)


INTERRUPTS = Interrupts()

_TIMERS = [
    (getattr(signal, timer), getattr(signal, number))
    for timer, number in (("ITIMER_REAL", "SIGALRM"), ("ITIMER_VIRTUAL", "SIGVTALRM"), ("ITIMER_PROF", "SIGPROF"))
    if hasattr(signal, timer)
]


@contextmanager
def hold_timers(at_end: bool = False) -> Iterator[None]:
    """The program's timers stand still in the block, where time passes that is not the program's: a watchdog does not
    end it while its profile is saved, and a profiler of its own gets no signals for our work.

    Args:
        at_end: Python ends after the block.  While it does so a signal ends the process for which the program has had a
            function, so such a timer stays where it is.
    """
    if not is_main_thread():
        yield
        return
    held = [(timer, number, *signal.setitimer(timer, 0)) for timer, number in _TIMERS]
    try:
        yield
    finally:
        for timer, number, left, interval in held:
            is_over = at_end and callable(signal.getsignal(number))
            if left and not is_over and not signal.getitimer(timer)[0]:
                signal.setitimer(timer, left, interval)


REQUEST = getattr(signal, "SIGUSR2", None)
"""The signal that requests a capture; Windows has none."""


_taken: dict[int, Callable[[int, FrameType | None], object]] = {}  # signals that were the program's to use
_held_masks: dict[int, set[int]] = {}  # Python's number of a thread that forks -> the signals that it blocks itself


def take_signal(number: int | None, handler: Callable[[int, FrameType | None], object]) -> Callable[[], object] | None:
    """Takes a signal, unless the program uses it itself or this is not the main thread, which alone may take it.

    Returns:
        What gives it back; None if it was not taken.
    """
    is_main = is_main_thread()
    if number is None or not is_main or signal.getsignal(number) is not signal.SIG_DFL:
        return None
    signal.signal(number, handler)
    _taken[number] = handler

    def give_back() -> None:
        if is_main_thread() and signal.getsignal(number) is handler:
            signal.signal(number, signal.SIG_DFL)

    return give_back


def hold_taken_signals() -> None:
    """Before a fork: those that are taken reach the child after `release_taken_signals` only.

    Python, in a child, forgets every signal that it has been told of by then.  One that the child has no function for
    would have ended it, so a program that ends a child as soon as it has it would wait for that for ever.
    """
    taken = [number for number, handler in _taken.items() if signal.getsignal(number) == handler]
    if taken:
        _held_masks[_thread.get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, taken)


def release_taken_signals() -> None:
    """After a fork, in the parent and in the child."""
    before = _held_masks.pop(_thread.get_ident(), None)
    if before is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class RunningCapture(Protocol):
    """What a `Recorder` is to the end of the program."""

    lock: threading.RLock
    recording: Capture | None
    exporting: set[Capture]

    def end_capture(self, capture: Capture) -> object:
        """Ends a capture and writes it; raises nothing."""

    def keep_full_memory(self) -> object:
        """Adds what fills the memory to the last profile, if the program dies of that; raises nothing."""


class ProgramEnd:
    """Watches for the end of the program while a capture records."""

    def __init__(self, captures: RunningCapture) -> None:
        self._captures = captures
        self._main_is_busy = False  # the main thread ends or writes a capture: no signal handler can wait for that
        self._sigterm_waits = False  # until the main thread is done

    def watch(self) -> None:
        """A capture records from now on."""
        reserve_memory()
        atexit.unregister(self._save_all)
        atexit.register(self._save_all)
        take_signal(signal.SIGTERM, self._on_sigterm)
        listen_for_hard_end(self.save_before_hard_end)

    def forget_parent(self) -> None:
        """After a fork: the captures belong to the parent, and so does whatever its main thread was doing."""
        self._main_is_busy = self._sigterm_waits = False
        atexit.unregister(self._save_all)
        # A pool ends its workers by SIGTERM.  A handler in Python is called late by one that waits in C, or never.
        if is_main_thread() and signal.getsignal(signal.SIGTERM) == self._on_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    @contextmanager
    def delay_signals(self) -> Iterator[None]:
        """On the main thread: a job that is asked to end inside the block ends after it, with its profile written."""
        if self._main_is_busy or not is_main_thread():
            yield
            return
        self._main_is_busy = True
        try:
            with INTERRUPTS.hold(), hold_timers():
                yield
        finally:
            self._main_is_busy = False
            if self._sigterm_waits:
                self._save_and_end()

    def save_before_hard_end(self, how: str) -> None:
        """Saves what can be saved in a moment, before the process ends without Python's own end.

        Files that are being written are waited for, with a limit.  A running capture is ended if only Stepscope's own
        tracers record.  A framework's profiler may wait for a device, and that may be why the program ends like this.

        Args:
            how: what ends the process, such as "os._exit".
        """
        if self._main_is_busy and is_main_thread():
            return  # this is a signal handler: what it would wait for goes on only after it
        set_deadline(_CONVERSION_PATIENCE_S)
        capture = self._captures.recording
        if capture is not None and self._captures.lock.acquire(timeout=_LOCK_PATIENCE_S):
            try:
                capture.cut_short(how) if capture.needs_framework else self._captures.end_capture(capture)
            finally:
                self._captures.lock.release()
        self._await_exports(_HARD_END_PATIENCE_S)

    def _save_all(self) -> None:
        """At Python's end.  Its threads have ended, unless Ctrl-C ended the wait for one that writes a profile."""
        untraced(self._save_all_unseen)
        keep_interrupted_status()

    def _save_all_unseen(self) -> None:
        with INTERRUPTS.hold(at_end=True), hold_timers():
            self._save_running()
            for capture in list(self._captures.exporting):
                capture.finished.wait(END_PATIENCE_S if capture.target is not None else _HAND_OVER_S)
            await_files(END_PATIENCE_S)
            self._captures.keep_full_memory()

    def _save_running(self) -> None:
        capture = self._captures.recording
        if capture is None:
            return
        self._captures.end_capture(capture)
        if capture.target is None:
            capture.finished.wait(_HAND_OVER_S)

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        set_deadline(_CONVERSION_PATIENCE_S)
        if self._main_is_busy:
            self._sigterm_waits = True
        else:
            self._save_and_end()

    def _save_and_end(self) -> None:
        try:
            self._save_running()
            self._await_exports(_SIGTERM_PATIENCE_S)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)  # the job ends as if nobody had listened

    def _await_exports(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for capture in list(self._captures.exporting):
            capture.finished.wait(max(0.0, deadline - time.monotonic()))


def keep_interrupted_status() -> None:
    """After Ctrl-C Python ends by SIGINT, as shells expect, but with 1 where code was run from a text meanwhile, as
    `namedtuple` does in modules that saving imports: it remembers only how the last such run ended."""
    if getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1"):
        with suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")


# -- ends that run no `atexit` handlers: `os._exit`, and `os.exec...`, which starts another program instead -----------
# A listener may delay such an end by some seconds at most, and only if a profile would be lost.

HardEndListener = Callable[[str], object]

_FUNCTIONS = {"_exit": "os._exit", "execv": "os.exec", "execve": "os.exec"}
# Python 3.11 calls a function in C past its pointer from the first time on, if a loop ran in the same code before.
_SEES_CALLS = sys.version_info >= (3, 12)
_listeners: list[HardEndListener] = []
_undo: list[Undo] = []


def listen_for_hard_end(listener: HardEndListener) -> None:
    """Calls a function before such an end, after all earlier listeners, with the name of the function that ends it."""
    if listener in _listeners:
        return
    _listeners.append(listener)
    if not _undo:
        found = {name: shown for name, shown in _FUNCTIONS.items() if hasattr(os, name)}
        _undo.extend(_observe(name, shown) for name, shown in found.items())


def _observe(name: str, shown: str) -> Undo:
    original = getattr(os, name)
    undo = observe_attribute(os, name, _HardEnd(shown), called_from_c=_SEES_CALLS)
    observed = getattr(os, name)
    if observed is original:
        return undo
    # `pickle` takes a function only if it is the one that its module has.
    return undo_all(replace_attribute(sys.modules[original.__module__], name, lambda _: observed), undo)


def forget_hard_end(listener: HardEndListener) -> None:
    """Stops calling it; without a listener the functions are the original ones again."""
    if listener in _listeners:
        _listeners.remove(listener)
    while _undo and not _listeners:
        _undo.pop()()


class _HardEnd(Observer):
    """Sees the calls of a function that ends the program."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def before(self, function: object, args: tuple[Any, ...]) -> None:
        """The program ends."""
        for listener in list(_listeners):
            with Suppressed():
                listener(self._shown)
