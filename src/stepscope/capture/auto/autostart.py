"""Arms a process: the finders, the signal, and the watcher that they serve.

`import stepscope` does it where STEPSCOPE_LOGDIR is set, and so do `stepscope run` and `python -m stepscope.autostart`.
"""

from __future__ import annotations

import atexit
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType, ModuleType

from stepscope.capture import files, hard_end, ranges, report
from stepscope.capture.auto import children
from stepscope.capture.auto.finders import FINDERS, Undo, finder
from stepscope.capture.auto.imports import ImportWatch
from stepscope.capture.auto.ledger import Ledger
from stepscope.capture.auto.settings import CHILD, Settings
from stepscope.capture.auto.watcher import Watcher
from stepscope.errors import CaptureError

SIGNAL = getattr(signal, "SIGUSR2", None)  # Windows has none

_armed: Armed | None = None


class Armed:
    """A process that is being watched.

    Args:
        settings: what to capture.
        tell: called with a line for the user, now and then.
        parent: where the program that started this process reads what it captured; None if nobody did.

    Attributes:
        watcher: what has been captured.
        takes_signal: True if the signal asks for a capture, since nobody else wanted it.
        ledger: what the processes that this one starts have captured.
        pid: of the process that was armed, which a forked child is not.
    """

    def __init__(self, settings: Settings, tell: Callable[[str], object], parent: Ledger | None = None) -> None:
        self.ledger = parent or Ledger.for_program(settings.logdir)
        self.watcher = Watcher(settings, self._ask_main, tell, self.ledger, is_child=parent is not None)
        self._is_child = parent is not None
        self.pid = os.getpid()
        self.takes_signal = False
        self._undo: list[Undo] = []

    def install(self) -> None:
        """Watches imports, step marks and the signal from now on."""
        wanted = {name: functools.partial(self._find_steps, name) for name in FINDERS}
        imports = ImportWatch(wanted, self.watcher.expect_framework)
        imports.install()
        self._undo += [imports.remove, ranges.watch_steps(self.watcher.mark_step)]
        self.takes_signal = self._take_signal()
        atexit.register(self._remove_ledger)
        atexit.register(self.watcher.finish)
        hard_end.listen(self.watcher.before_hard_end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_parent)

    def remove(self) -> None:
        """Leaves the process as it was."""
        atexit.unregister(self.watcher.finish)
        atexit.unregister(self._remove_ledger)
        self._remove_ledger()
        hard_end.forget(self.watcher.before_hard_end)
        self.watcher.active = False
        while self._undo:
            self._undo.pop()()

    def _remove_ledger(self) -> None:
        """At the end of the process that made it: a child, forked or not, only writes there."""
        if not self._is_child and os.getpid() == self.pid:
            self.ledger.remove()

    def _find_steps(self, name: str, module: ModuleType) -> None:
        self._undo.append(finder(name)(module, self.watcher))

    def _take_signal(self) -> bool:
        """Takes the signal, unless the program uses it itself or this is not the main thread, which alone may."""
        if SIGNAL is None or threading.current_thread() is not threading.main_thread():
            return False
        if signal.getsignal(SIGNAL) is not signal.SIG_DFL:
            return False
        signal.signal(SIGNAL, self._on_signal)
        self._undo.append(lambda: signal.signal(SIGNAL, signal.SIG_DFL))
        return True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """A signal that this process did not send itself is a request."""
        if self._asked:
            self._asked = False
            self.watcher.serve()
        else:
            self.watcher.request()

    _asked = False  # by a thread of this process

    def _ask_main(self) -> bool:
        if not self.takes_signal or SIGNAL is None or signal.getsignal(SIGNAL) != self._on_signal:
            return False
        self._asked = True
        signal.pthread_kill(threading.main_thread().ident or 0, SIGNAL)
        return True

    def _forget_parent(self) -> None:
        self.watcher.forget_parent()


def arm(settings: Settings, tell: Callable[[str], object], parent: Ledger | None = None) -> Armed | None:
    """Watches this process from now on; None if it is watched already.  Arguments as of `Armed`."""
    global _armed
    if _armed is not None:
        return None
    armed = Armed(settings, tell, parent)
    with report.Wall("arming Stepscope", strict=False):
        armed.install()
        children.inherit(settings, armed.ledger)
        _armed = armed
    return armed


def disarm() -> None:
    """Watches no longer, and leaves the process as it was."""
    global _armed
    armed, _armed = _armed, None
    if armed is not None:
        children.disinherit()
        armed.remove()


def arm_from_environment() -> None:
    """What `import stepscope` does where STEPSCOPE_LOGDIR is set, but for Stepscope's own command line."""
    if _is_own_command():
        return
    parent = Ledger.from_text(os.environ[CHILD]) if os.environ.get(CHILD) else None
    settings = Settings.from_environment()
    armed = settings and arm(settings, print_for_user, parent)
    if not settings or not armed:
        return
    armed.watcher.watch_from_here(at_once=False)
    if parent is not None or not can_write(settings.logdir):
        return
    if SIGNAL is not None:
        request = f"`kill -USR2 {os.getpid()}` asks for one" if armed.takes_signal else "SIGUSR2 is the program's own"
        print_for_user(f"captures go to {settings.logdir}; {request}")


def _is_own_command() -> bool:
    """True in `stepscope ...` and `python -m stepscope ...`, which import this package before they can say so."""
    started = (getattr(sys, "argv", None) or [""])[0]
    if started == "-m":  # as long as the module is being looked for
        return ("-m", "stepscope") in pairwise(sys.orig_argv)
    return Path(started).name.removesuffix(".exe") == "stepscope"


def can_write(logdir: str) -> bool:
    """False, once it is told, if no capture could be saved: better known before the training than after it."""
    try:
        files.require_writable(logdir)
    except CaptureError as error:
        print_for_user(str(error))
        return False
    return True


def print_for_user(line: str) -> None:
    """A line for whoever watches the job; its own output stays as it is.  Each line is one write, so that those of
    several ranks do not mix."""
    print(f"stepscope: {line}\n", end="", file=sys.stderr, flush=True)
