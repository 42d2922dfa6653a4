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

from stepscope.capture.tracers.ticker import THREAD_PREFIX

STUCK_S = 30.0  # a step without a part that takes longer, and `STUCK_STEPS` usual ones, does not end
STUCK_STEPS = 20
END_S = 20.0  # for the program to end by itself; launchers wait for 30 s
_LOOK_S = 0.5


def watch_for_stuck_step(
    count_steps: Callable[[], int | None], limit_s: Callable[[], float], on_stuck: Callable[[int], object]
) -> threading.Event:
    """Notices on a thread of its own that a step without a part does not end, until the event that it returns is set.

    Args:
        count_steps: how many steps have ended; None while none runs without a part.
        limit_s: how long one may take.
        on_stuck: called with 1 when one takes longer, with 2 when it takes as long again, and so on.
    """
    ended = threading.Event()

    def watch() -> None:
        count, since, times = count_steps(), time.monotonic(), 0
        while not ended.wait(_LOOK_S):
            now = count_steps()
            if now != count and not (times and now is None):  # put back, the step that was stuck still runs
                count, since, times = now, time.monotonic(), 0
            elif count is not None and time.monotonic() - since > limit_s():
                times, since = times + 1, time.monotonic()
                on_stuck(times)

    threading.Thread(target=watch, name=f"{THREAD_PREFIX}stuck", daemon=True).start()
    return ended


def end_program() -> NoReturn:
    """Ends the program as `sys.exit(0)` does, and the process by a deadline whatever either waits for."""
    timer = threading.Timer(END_S, leave)
    timer.name, timer.daemon = f"{THREAD_PREFIX}end", True
    timer.start()
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
