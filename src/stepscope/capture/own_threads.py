"""Threads of Stepscope in the process of a program: the program does not see them and never waits for them.

A thread of `threading` is in `threading.enumerate()`, and programs join all that are in it, count them, or wait until
only their own is left.  These threads are started below that, by `_thread` as it was before the program began: gevent
puts other functions there.  Nothing here may ask for `threading.current_thread()`: that would list the thread that
asks, and for ever.
"""

from __future__ import annotations

import atexit
import functools
import os
import signal
import sys
import threading
from _thread import allocate_lock, get_ident, get_native_id, start_new_thread
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic, sleep

from stepscope.capture import handles
from stepscope.kernels.stacks import Sampling
from stepscope.kernels.untraced import untraced
from stepscope.kernels.waiting import Waiter, lose_waiters, pause_waiters, resume_waiters

_names: dict[int, str] = {}  # Python's number of each that runs -> its name
_natives: dict[int, OwnThread] = {}  # the system's number -> the thread
_writing: set[OwnThread] = set()
_leaving: set[int] = set()  # the system's numbers of those that have no more to do, and may not be gone yet
_recurring: set[Recurring] = set()
_LAST_CALLS_S = 0.2
_WARNS_AT_FORK = sys.version_info >= (3, 12)
# Of waiting for a call that is under way: one that ends a capture takes most of a second on a busy machine.
_CALL_BEFORE_FORK_S = 2.0 if _WARNS_AT_FORK else 0.2
_WORK_BEFORE_FORK_S = 2.0  # of waiting for a thread that writes a profile, if nobody else has threads


def own_threads() -> dict[int, str]:
    """The threads of this kind that run: Python's number, and what each is called."""
    return dict(_names)


def names_of_own_threads() -> dict[int, str]:
    """As `own_threads`, and the dict changes as threads come and go."""
    return _names


def is_main_thread() -> bool:
    """Whether the caller runs on the main thread."""
    # The system is asked where it numbers them so: gevent has numbers of its own for what it puts in place of threads.
    on_main = get_native_id() == os.getpid()
    return on_main if sys.platform == "linux" else get_ident() == threading.main_thread().ident


def name_of_this_thread() -> str:
    """What the calling thread is called, also where `threading` does not know it."""
    known = threading._active.get(get_ident())  # type: ignore[attr-defined]
    return str(known.name) if known else _names.get(get_ident(), f"thread {get_native_id()}")


def forget_this_thread() -> None:
    """Takes the calling thread off the list of `threading`, if something it called has put it there."""
    listed = threading.get_ident()  # as `threading` numbers it, which is not so with gevent
    known = threading._active.get(listed)  # type: ignore[attr-defined]
    if isinstance(known, threading._DummyThread) and get_ident() in _names:
        threading._active.pop(listed, None)  # type: ignore[attr-defined]


def await_files(seconds: float) -> None:
    """At the program's end: waits for the threads that write what was recorded, for so long at most."""
    until = monotonic() + seconds
    for thread in list(_writing):
        thread.join(max(0.0, until - monotonic()))


def _tell(error: BaseException, name: str) -> None:
    """Says that a thread has failed, which is no matter of the program's hooks for exceptions."""
    with suppress(Exception):  # the program may have closed the stream
        sys.stderr.write(f"stepscope: the thread {name} ended by {type(error).__name__}: {error}\n")


class OwnThread:
    """A thread as that of `threading`, which the program does not see.

    Args:
        target: what it calls.  What that raises is told on stderr.
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
        self._running = allocate_lock()
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
        # A thread starts with the signals blocked that its starter blocks: they are for the program's threads.
        masks = hasattr(signal, "pthread_sigmask")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()) if masks else None
        try:
            start_new_thread(untraced, (self._run,))
        except BaseException:
            self._pid = 0
            _writing.discard(self)
            self._running.release()
            raise
        finally:
            if before is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def is_alive(self) -> bool:
        """True from its start to its end; a fork of the process has none of its threads."""
        return self._pid == os.getpid() and self._running.locked()

    def is_this(self) -> bool:
        """Whether it is the calling thread."""
        return self.ident == get_ident()

    def join(self, seconds: float) -> None:
        """Waits for its end, for so long at most."""
        if self.is_alive() and not self.is_this() and self._running.acquire(timeout=seconds):
            self._running.release()

    def _run(self) -> None:
        self.ident, native = get_ident(), get_native_id()
        _names[self.ident], _natives[native] = self.name, self
        try:
            self._target(*self._args)
        except SystemExit:
            pass
        except BaseException as error:
            _tell(error, self.name)
        finally:
            with suppress(Exception):  # the interpreter may be at its end
                forget_this_thread()
            _names.pop(self.ident, None)
            _leaving.add(native)
            _natives.pop(native, None)
            _writing.discard(self)
            self._running.release()


class Recurring:
    """Calls a function again and again on a thread that is none of Python's while it waits: it is in no dump of
    `faulthandler` and in no list of a debugger then, and it does not live while the program forks.  Other systems than
    Linux have a thread as above.

    Args:
        call: returns the seconds until its next call, below 0 for no limit; None for no more.  What it raises
            is told on stderr, and ends this.
        seconds: until the first call.
        name: as for a thread.
        files: a call is also due when one of these open files can be read.  Closing one ends this.
        quick: called in place of `call` where the thread is none of Python's.
    """

    def __init__(
        self,
        call: Callable[[], float | None],
        seconds: float,
        name: str = "",
        files: Sequence[int] = (),
        quick: Sampling | None = None,
    ) -> None:
        self._call, self._seconds, self._name, self._files, self._quick = call, seconds, name, files, quick
        self._ident: int | None = None
        self._pid = 0
        self._ended = allocate_lock()
        self._stopped = allocate_lock()
        self._due = threading.Event()
        self._pipe = -1, -1
        self._waiter: Waiter | None = None

    def start(self) -> None:
        """Starts.

        Raises:
            RuntimeError: as of `OwnThread.start`.
        """
        self._pid = os.getpid()
        self._ended.acquire()
        self._stopped.acquire()
        try:
            if sys.platform == "linux":
                self._pipe = handles.open_pipe() if self._files else (-1, -1)
                run = self._run if self._quick is None else self._quick.bind(self._run)
                self._waiter = Waiter(run, self._seconds, self._files, self._pipe)
            else:
                OwnThread(self._loop, name=self._name).start()
        except BaseException:
            self._close_pipe()
            self._ended.release()
            raise
        _recurring.add(self)

    def stop(self) -> None:
        """There are no more calls; one that runs goes on.  Other systems than Linux have to be woken by a file."""
        if self._pid != os.getpid():
            return
        with suppress(RuntimeError):  # it was stopped before
            self._stopped.release()
        self._due.set()
        if self._waiter is not None:
            self._waiter.stop()

    def wake(self) -> None:
        """A call is due now."""
        if self._pid != os.getpid():
            return
        self._due.set()
        if self._waiter is not None:
            self._waiter.wake()

    def forget(self) -> None:
        """In a forked child, which has nothing but copies of the open files."""
        self._close_pipe()

    def join(self, seconds: float) -> bool:
        """Waits until no call runs, for so long at most; whether none does.  A call does not wait for itself."""
        if self._pid != os.getpid():
            return True
        if self._ident == get_ident():
            return False
        if not self._ended.acquire(timeout=seconds):
            return False
        self._ended.release()
        return True

    def _run(self, goes_on: bool) -> float | None:
        self._ident = get_ident()
        _names[self._ident] = self._name
        wait = None
        try:
            wait = self._call() if goes_on else None
        except Exception as error:
            _tell(error, self._name)
        finally:
            with suppress(Exception):
                forget_this_thread()
            _names.pop(self._ident, None)
            self._ident = None
            if wait is None:
                _recurring.discard(self)
                self._close_pipe()
                self._ended.release()
        return wait

    def _close_pipe(self) -> None:
        pipe, self._pipe = self._pipe, (-1, -1)
        handles.close_pipe(pipe)

    def _loop(self) -> None:
        """The same where the system has no such threads."""
        wait: float | None = self._seconds
        while wait is not None:
            wait = self._run(self._is_due(wait))

    def _is_due(self, seconds: float) -> bool:
        if not self._files:
            self._due.wait(threading.TIMEOUT_MAX if seconds < 0 else min(seconds, threading.TIMEOUT_MAX))
            self._due.clear()
            return self._stopped.locked()
        import select

        try:
            select.select(self._files, [], [], None if seconds < 0 else seconds)
        except (OSError, ValueError):  # the program has closed one
            return False
        return self._stopped.locked()


class OwnTimer:
    """Calls a function after a time, on a thread of its own, unless it is cancelled.

    Args:
        seconds: the time.
        call: the function.
        name: as for a thread.
    """

    def __init__(self, seconds: float, call: Callable[[], object], name: str = "") -> None:
        self._call = call
        self._recurring = Recurring(self._call_once, seconds, name)

    def start(self) -> None:
        """Starts waiting.  Raises RuntimeError as `OwnThread.start` does."""
        self._recurring.start()

    def cancel(self) -> None:
        """Does not call the function, unless it has begun."""
        self._recurring.stop()

    def _call_once(self) -> None:
        self._call()


def _stop_all() -> None:
    """The interpreter ends, and no thread may ask for it any more."""
    for each in list(_recurring):
        each.stop()
    until = monotonic() + _LAST_CALLS_S
    while _recurring and monotonic() < until:
        sleep(_LAST_CALLS_S / 100)


def _before_fork() -> None:
    """No thread of ours lives while the program forks, if that can be: see `stepscope.kernels.waiting`."""
    pause_waiters(_CALL_BEFORE_FORK_S, sys._getframe(1))
    if _WARNS_AT_FORK and (_writing or _leaving) and sys.platform == "linux":
        until = monotonic() + _WORK_BEFORE_FORK_S
        while _are_alone() and (_writing or _leaving) and monotonic() < until:
            sleep(_LAST_CALLS_S / 1000)


def _are_alone() -> bool:
    """Whether this thread and ours are all that the process has: otherwise Python warns without us, too."""
    try:
        tasks = {int(name) for name in os.listdir("/proc/self/task")}  # noqa: PTH208
    except OSError:
        return False
    _leaving.intersection_update(tasks)
    beginning = sum(thread.ident is None for thread in list(_writing))  # which nobody knows the numbers of
    return len(tasks - {os.getpid(), get_native_id(), *_natives, *_leaving}) <= beginning


def _after_fork_in_parent() -> None:
    resume_waiters(is_main_thread())


def _after_fork_in_child() -> None:
    lose_waiters()
    for each in list(_recurring):
        each.forget()
    for known in (_names, _natives, _writing, _leaving, _recurring):
        known.clear()


def register_at_fork(
    before: Callable[[], object] | None = None,
    after_in_parent: Callable[[], object] | None = None,
    after_in_child: Callable[[], object] | None = None,
) -> None:
    """As `os.register_at_fork`, where there is a fork, and no tool of the program sees the calls."""
    if not hasattr(os, "register_at_fork"):
        return
    given = {"before": before, "after_in_parent": after_in_parent, "after_in_child": after_in_child}
    os.register_at_fork(**{when: functools.partial(untraced, call) for when, call in given.items() if call})


# Registered when this is imported, so it is called after whatever still needs these threads at the program's end.
atexit.register(_stop_all)
register_at_fork(_before_fork, _after_fork_in_parent, _after_fork_in_child)
