"""Deadlines for what may wait for ever because of a change, or because the program is ended in the middle of training.

A step may wait for what a part that is left out would have done.  A program that ends now may wait for threads and
processes that only the end of its loop would stop, or catch the exception that ends it; and while Python takes itself
down, native threads of a framework may wait for it.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from stepscope.capture.own_threads import OwnTimer, Recurring

STUCK_S = 30.0  # a step without a part that takes longer, and `STUCK_STEPS` usual ones, does not end
STUCK_STEPS = 20
SILENT_S = 600.0  # no step at all for so long: after this a collective of PyTorch gives up, too
END_S = 20.0  # for the program to end by itself; launchers wait for 30 s
_LOOK_S = 0.5


def watch_for_silence(
    count_steps: Callable[[], int], limit_s: Callable[[int], float], on_silence: Callable[[int], object]
) -> threading.Event:
    """Notices on a thread of its own that no step ends any more, until the event that it returns is set.

    Args:
        count_steps: how many steps have ended.
        limit_s: how long the next one may take; is told how often it has taken so long already.
        on_silence: called with 1 when one takes longer, with 2 when it takes longer again, and so on.
    """
    ended = threading.Event()
    count, since, times = count_steps(), time.monotonic(), 0

    def look() -> float | None:
        nonlocal count, since, times
        if ended.is_set():
            return None
        now = count_steps()
        if now != count:
            count, since, times = now, time.monotonic(), 0
        elif time.monotonic() - since > limit_s(times):
            times, since = times + 1, time.monotonic()
            on_silence(times)
        return _LOOK_S

    Recurring(look, _LOOK_S, "stepscope-silence").start()
    return ended


def has_children() -> bool:
    """Whether processes that this one has started still run, which may have the steps; True where nobody can say."""
    if not hasattr(os, "waitid"):
        return True
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def end_process_by_deadline() -> None:
    """Ends the process after a while, whatever it waits for then."""
    OwnTimer(END_S, leave, "stepscope-end").start()


def end_program() -> NoReturn:
    """Ends the program as `sys.exit(0)` does, and the process by a deadline whatever either waits for."""
    end_process_by_deadline()
    atexit.register(_leave_after_handlers, os.getpid())
    raise SystemExit(0)


def _leave_after_handlers(pid: int) -> None:
    """Runs the other handlers of Python's end, and then ends the process before Python takes itself down."""
    if os.getpid() == pid:
        atexit.unregister(_leave_after_handlers)
        atexit._run_exitfuncs()
        leave()


def leave() -> NoReturn:
    """Ends the process at once, with what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(0)
