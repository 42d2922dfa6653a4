"""What `stepscope run` does in the process of the program: follows it, and at its end says what was captured."""

from __future__ import annotations

import functools
import json
import os
import shlex
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from stepscope.capture import program_end
from stepscope.capture.auto.autostart import Armed, LastingWatch, arm, disarm, print_for_user
from stepscope.capture.auto.ledger import Captured
from stepscope.capture.auto.settings import Settings
from stepscope.capture.out_of_memory import describe_end
from stepscope.capture.report import print_text
from stepscope.errors import counted
from stepscope.kernels.untraced import untraced
from stepscope.records import dataclass

_MOST_NAMED = 8


@dataclass(frozen=True)
class Followed:
    """A program that is followed.

    Attributes:
        name: what its user calls it.
        settings: what to capture, as `Settings.to_environment` says it.
        quiet: whether nothing is said at its end.
        logdir: as its user wrote it.
    """

    name: str
    settings: dict[str, str]
    quiet: bool
    logdir: str


def request(followed: Followed) -> str:
    """What asks the process of a program to call `follow`, see `stepscope.capture.startup.sitecustomize`."""
    return f"{__name__}:follow\n{json.dumps(asdict(followed))}"


def follow(payload: str) -> None:
    """In the process of the program, before its first line."""
    followed = Followed(**json.loads(payload))
    settings = Settings.from_environment(followed.settings)
    armed = settings and arm(settings, lambda line: None)
    if not armed:
        return
    report_end = functools.partial(_print_hard_end, armed, followed)
    program_end.listen_for_hard_end(report_end)
    armed.conclude = functools.partial(_conclude, armed, followed, report_end)
    # Called when the program's code has finished, before Python waits for the program's threads.
    threading._register_atexit(functools.partial(_finish, armed))  # type: ignore[attr-defined]
    armed.serve_captures(followed.name)
    armed.autopilot.watch_from_here(at_once=True)


def _finish(armed: Armed) -> None:
    if os.getpid() == armed.pid:
        with program_end.hold_timers():
            untraced(armed.finish)
            untraced(armed.lasting.finish)


def _conclude(armed: Armed, followed: Followed, report_end: program_end.HardEndListener) -> None:
    """The program has ended."""
    children = armed.ledger.entries()
    armed.lasting.finish()
    armed.autopilot.remove_window()
    program_end.forget_hard_end(report_end)
    disarm()
    if not followed.quiet:
        with suppress(KeyboardInterrupt):  # it ends the summary, and the status stays that of the program
            _print_outcome(armed, followed.logdir, children, failed=hasattr(sys, "last_value"))


def _print_hard_end(armed: Armed, followed: Followed, how: str) -> None:
    """Prints one line before the process ends without Python's cleanup: there is no time for a summary.  A forked
    child inherits this and prints nothing."""
    if followed.quiet or os.getpid() != armed.pid:
        return
    if armed.autopilot.last is not None:
        print_for_user(f"{armed.autopilot.outcome}: {armed.autopilot.last}; more: stepscope summary {followed.logdir}")
    else:
        why = f"the program ended itself by {how} before a capture was complete"
        print_for_user(f"{why}; what is left: stepscope doctor {followed.logdir}")


def _print_outcome(armed: Armed, logdir: str, children: Sequence[Captured], failed: bool = False) -> None:
    """Prints what was captured and where its time went.

    A program that failed before it had steps is no training to give advice on.
    """
    autopilot = armed.autopilot
    _print_watch(armed.lasting, logdir)
    if children and not autopilot.has_steps:  # a launcher: its ranks do the work
        _print_children(children, logdir)
        return
    if autopilot.outcome:  # empty where the program ended before there was anything to watch
        print_for_user(autopilot.outcome)
    if where := autopilot.describe_steps():
        print_for_user(where)
    if autopilot.last is None:
        return
    if not failed or autopilot.has_steps:
        _show_summary(autopilot.last)
    elif sentence := describe_end(getattr(sys, "last_value", None)):
        print_for_user(sentence)
    print_for_user(f"the profile is {autopilot.last}; {_more(logdir)}")


def _more(logdir: str) -> str:
    """What to do next."""
    place = shlex.quote(logdir)
    return f"more: stepscope overview {place}; the page: stepscope open {place}"


def _print_watch(lasting: LastingWatch, logdir: str) -> None:
    """Prints what the watch of this process has noticed: the last triggers, and where to look."""
    if lasting.watch is None:
        return
    marks = list(lasting.watch.marks)
    for mark in marks[-_MOST_NAMED:]:
        print_for_user(mark.sentence)
    kept = len({mark.run for mark in marks if mark.run})
    counts = f"{counted(lasting.watch.steps.count, 'step')}, {counted(len(marks), 'trigger')}, {kept} kept"
    print_for_user(f"watched {counts}; more: stepscope over-time {logdir}")


def _print_children(children: Sequence[Captured], logdir: str) -> None:
    """Prints what the program's child processes captured: each outcome once, then the summary of their session."""
    for outcome, count in Counter(entry.outcome for entry in children).items():
        print_for_user(f"{outcome} (in {_count_processes(count)} that the program started)")
    profiles = [entry.profile for entry in children if entry.profile is not None]
    if not profiles:
        return
    session = profiles[-1].parent
    _show_summary(session)
    wrote = f"{_count_processes(len(profiles))} wrote {'a profile' if len(profiles) == 1 else 'profiles'}"
    others = len({path.parent for path in profiles}) - 1
    more = f", the last of {counted(others + 1, 'session')}" if others else ""
    print_for_user(f"{wrote}: {_host_names(profiles)}; the session is {session}{more}; {_more(logdir)}")


def _count_processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count:,} processes"


def _host_names(profiles: Sequence[Path]) -> str:
    names = sorted(path.name.removesuffix(".xplane.pb") for path in profiles)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _show_summary(path: Path | str) -> None:
    """Prints the ten lines, made by another process: this one still holds the program's memory and settings."""
    with suppress(OSError, ValueError, AttributeError):  # the program has closed or replaced the stream
        sys.stdout.flush()
    command = [sys.executable, "-m", "stepscope", "summary", str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print_text(done.stdout)
