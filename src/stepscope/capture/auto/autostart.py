"""Watches a process: installs the finders, the signal handler, and the autopilot that they report to.

`import stepscope` does this if STEPSCOPE_LOGDIR is set, and so do `stepscope run` and `python -m stepscope.autostart`.

The watch extends to the Python processes that a program starts:

- A fork inherits everything.  It captures steps but never a time window, so workers that only load data write nothing.
- `multiprocessing` with fresh processes, and any `subprocess` that runs this Python or a script of it: its command
  stays as it is, and `startup/sitecustomize.py` comes before its program.  That is how launchers such as `torchrun`
  start their ranks.
- A process that is started in another way, or by another Python, is captured if it imports stepscope and its
  environment names a logdir.

Nothing is added to the Python installation, and what we add to the environment of a process is gone before its program
begins: neither the program nor what it starts sees it.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from stepscope.capture import files, job, program_end, report, workers
from stepscope.capture.auto.autopilot import Autopilot
from stepscope.capture.auto.ledger import Ledger
from stepscope.capture.auto.settings import Settings
from stepscope.capture.own_threads import register_at_fork
from stepscope.capture.patches import Undo
from stepscope.capture.program_end import REQUEST, take_signal
from stepscope.capture.startup.sitecustomize import STARTED, WAITS
from stepscope.capture.steps.finding import FINDING
from stepscope.capture.steps.step_loop import StepSource
from stepscope.errors import CaptureError
from stepscope.kernels.untraced import untraced

if TYPE_CHECKING:
    from stepscope.capture.proving.prover import Prover
    from stepscope.capture.watching.continuous import Watch

_FOLLOW = f"{WAITS}stepscope.capture.auto.autostart:arm_child"  # in a child, once it imports a framework


class LastingWatch:
    """Starts the continuous watch of `stepscope.watch` with the first step that is found, so that launchers and
    processes that only load data are not watched.

    Args:
        logdir: where its captures go.
        options: as the environment variable that asks for it; empty for no watch.
        show_line: called with a line for the user.

    Attributes:
        active: as for a `Listener`: until the watch has started, which then listens itself.
        watch: what has been started; None before.
    """

    def __init__(self, logdir: str, options: str, show_line: Callable[[str], object]) -> None:
        self._logdir = logdir
        self._options = options
        self._show_line = show_line
        self.forget_parent()

    def forget_parent(self) -> None:
        """After a fork: what was started belongs to the parent."""
        self.active = bool(self._options)
        self.watch: Watch | None = None

    def start_step(self, source: StepSource, number: int | None = None) -> None:
        """A step starts."""
        self._start()
        if self.watch is not None:
            self.watch.steps.start_step(source, number)

    def end_step(self, source: StepSource, another_follows: bool = True, number: int | None = None) -> None:
        """A step has ended."""
        self._start()
        if self.watch is not None:
            self.watch.steps.end_step(source, another_follows, number)

    def _start(self) -> None:
        from stepscope.capture.watching.options import options_from_environment
        from stepscope.capture.watching.process import WATCH, start_watch

        self.active = False
        if WATCH.running is None:  # otherwise the program watches itself
            self.watch = start_watch(self._logdir, options_from_environment({"STEPSCOPE_WATCH": self._options}))
        if self.watch is not None:
            self._show_line(f"watching; captures go to {self._logdir}")

    def trigger_by_signal(self) -> bool:
        """Keeps a capture because a signal asks for it; False if no watch runs."""
        if self.watch is None:
            return False
        self.watch.trigger_by_signal()
        return True

    def finish(self) -> None:
        """The program ends."""
        self.active = False
        if self.watch is not None:
            from stepscope.capture.watching.process import WATCH

            if WATCH.running is self.watch:
                WATCH.stop()


class Armed:
    """A process that is being watched.

    Args:
        settings: what to capture.
        show_line: called with a line for the user, now and then.
        parent: the ledger of the program that started this process; None if no watched program did.

    Attributes:
        autopilot: decides what to capture, and knows what has been captured.
        lasting: the continuous watch, if one is wanted.
        prover: measures what changes of the program would give, if that is wanted.
        takes_signal: True if the signal requests a capture; False if the program uses the signal itself.
        ledger: what the processes that this one starts have captured.
        conclude: called when the program has ended and its captures are saved.
        pid: of the watched process; a forked child has another one.
    """

    def __init__(self, settings: Settings, show_line: Callable[[str], object], parent: Ledger | None = None) -> None:
        self.ledger = parent or Ledger.create(settings.logdir)
        self.autopilot = Autopilot(settings, self._ask_main, show_line, self.ledger, is_child=parent is not None)
        self.lasting = LastingWatch(settings.logdir, settings.watch, show_line)
        self.prover = self._make_prover(settings) if settings.prove else None
        self._is_child = parent is not None
        self._logdir = settings.logdir
        self.pid = os.getpid()
        self.takes_signal = False
        self.conclude: Callable[[], object] = lambda: None
        self._undo: list[Undo] = []

    def install(self) -> None:
        """Watches imports, step marks and the signal from now on."""
        atexit.register(self._end)
        FINDING.on_import = self._expect_framework
        listeners = (self.autopilot, self.lasting if self.lasting.active else None, self.prover)
        self._undo += [FINDING.add(listener) for listener in listeners if listener is not None]
        give_back = take_signal(REQUEST, self._on_signal)
        self.takes_signal = give_back is not None
        self._undo += filter(None, [give_back])
        program_end.listen_for_hard_end(self.autopilot.save_before_hard_end)
        register_at_fork(after_in_child=self._forget_parent)

    def remove(self) -> None:
        """Leaves the process as it was."""
        atexit.unregister(self._end)
        self._remove_ledger()
        program_end.forget_hard_end(self.autopilot.save_before_hard_end)
        self.lasting.finish()
        if self.prover is not None:
            self.prover.finish()
        self.autopilot.active = False
        while self._undo:
            self._undo.pop()()

    def finish(self) -> None:
        """The program's code has finished; it may still have threads."""
        self.autopilot.finish()
        if self.prover is not None:
            self.prover.finish()

    def _end(self) -> None:
        """Python ends this process, and whatever the program has asked for at its end is done."""
        with program_end.hold_timers(at_end=True):
            untraced(self._conclude)
        program_end.keep_interrupted_status()

    def _conclude(self) -> None:
        self.finish()
        if os.getpid() == self.pid:
            self.conclude()
        self._remove_ledger()

    def _make_prover(self, settings: Settings) -> Prover:
        from stepscope.capture.proving.options import ProveOptions
        from stepscope.capture.proving.prover import Prover

        first = settings.skip + settings.steps
        options = ProveOptions.from_text(settings.prove)
        return Prover(
            options,
            first,
            self.autopilot.find_capture,
            settings.logdir,
            print_for_user,
            self.autopilot.run_on_main,
            settings.patience,
        )

    def _remove_ledger(self) -> None:
        """Removes the ledger in the process that made it; a child, forked or not, only writes to it."""
        if not self._is_child and os.getpid() == self.pid:
            self.ledger.remove()

    def serve_captures(self, program: str = "") -> None:
        """Starts a server for this process, unless it has one: the capture dialog and `stepscope capture` find it
        under the program's name; empty for that of the script that Python runs."""
        from stepscope.capture import server

        if server.start_for_job(self._logdir, program) is not None:
            self._undo.append(server.stop_for_job)

    def _expect_framework(self, name: str) -> None:
        """A framework is being imported: this process may train, unless it is a worker that loads data."""
        self.autopilot.expect_framework(name)
        processes = sys.modules.get("multiprocessing.process")  # a worker has it loaded
        if processes is None or processes.parent_process() is None:
            self.serve_captures()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """The signal is a request for a capture."""
        if not self.lasting.trigger_by_signal():
            self.autopilot.request()

    def _ask_main(self) -> bool:
        from stepscope.kernels.calls import call_on_main_thread

        return call_on_main_thread(self.autopilot.serve)

    def _forget_parent(self) -> None:
        job.LAUNCH.folder = self.ledger.folder
        FINDING.loop.forget()
        self.autopilot.forget_parent()
        self.lasting.forget_parent()


class ThisProcess:
    """What follows this process.

    Attributes:
        armed: None before `arm` and after `disarm`.
    """

    armed: Armed | None = None


def arm(settings: Settings, show_line: Callable[[str], object], parent: Ledger | None = None) -> Armed | None:
    """Watches this process from now on; returns None if it is watched already.  The arguments are those of `Armed`."""
    if ThisProcess.armed is not None:
        return None
    armed = Armed(settings, show_line, parent)
    with report.NeverRaise("watching the program", strict=False):
        armed.install()
        workers.install()
        _inherit(settings, armed.ledger)
        if STARTED.is_followed:
            report.Saying.follow()
        ThisProcess.armed = armed
    return armed


def disarm() -> None:
    """Ends the watch, and leaves the process as it was."""
    armed, ThisProcess.armed = ThisProcess.armed, None
    if armed is not None:
        STARTED.forget()
        armed.remove()


def arm_on_import() -> None:
    """As `arm_from_environment`, unless Python has been told to follow this process before it ran the program."""
    if not STARTED.is_followed:
        arm_from_environment()


def arm_program(_: str) -> None:
    """In a program that `python -m stepscope.autostart` runs, before its first line."""
    arm_from_environment()


def arm_child(payload: str) -> None:
    """In a process that a watched program has started, before its first line or its first framework."""
    if _is_own_command():
        return
    settings, ledger = _read_payload(payload)
    armed = settings and arm(settings, print_for_user, ledger)
    if armed:
        armed.autopilot.watch_from_here(at_once=False)


def arm_from_environment() -> None:
    """Watches this process if STEPSCOPE_LOGDIR is set, unless it is Stepscope's own command line."""
    if _is_own_command():
        return
    settings = Settings.from_environment()
    armed = settings and arm(settings, print_for_user)
    if not settings or not armed:
        return
    armed.autopilot.watch_from_here(at_once=False)
    if not can_write(settings.logdir):
        return
    if REQUEST is not None:
        request = f"`kill -USR2 {os.getpid()}` requests one" if armed.takes_signal else "SIGUSR2 is the program's own"
        print_for_user(f"captures go to {settings.logdir}; {request}")


def _is_own_command() -> bool:
    """True in `stepscope ...` and `python -m stepscope ...`, which import this package before they parse arguments."""
    started = (getattr(sys, "argv", None) or [""])[0]
    if started == "-m":  # while Python looks for the module
        return ("-m", "stepscope") in pairwise(sys.orig_argv)
    return Path(started).name.removesuffix(".exe") == "stepscope"


def can_write(logdir: str, goes_on: bool = True) -> bool:
    """Checks whether a capture could be saved, and tells the user if not: before the training, not after it.

    Args:
        goes_on: whether the program runs without a capture then.
    """
    try:
        files.require_writable(logdir, goes_on)
    except CaptureError as error:
        print_for_user(str(error))
        return False
    return True


def print_for_user(line: str) -> None:
    """Prints a line for the user to stderr."""
    report.print_line(line)


def _inherit(settings: Settings, ledger: Ledger) -> None:
    """Captures processes that start from now on as well; they list in the ledger what they captured."""
    job.LAUNCH.name = job.LAUNCH.name or ledger.to_text()
    folder = workers.shared_folder()
    payload = json.dumps(
        {
            "settings": settings.to_environment(),
            "ledger": ledger.to_text(),
            "job": job.LAUNCH.name,
            "workers": str(folder) if folder else "",
        }
    )
    STARTED.follow(f"{_FOLLOW}\n{payload}")


def _read_payload(payload: str) -> tuple[Settings | None, Ledger]:
    """What `_inherit` of the process that started this one left for it."""
    said = json.loads(payload)
    job.LAUNCH.name = said["job"]
    workers.share_folder(said["workers"])
    ledger = Ledger.from_text(said["ledger"])
    job.LAUNCH.folder = ledger.folder
    settings = Settings.from_environment({**os.environ, **said["settings"]})
    return settings and settings.derive_for_child(), ledger
