"""`stepscope run`: profiles an unmodified script or module."""

from __future__ import annotations

import difflib
import functools
import gc
import os
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

from stepscope.capture import ProfilerOptions, program_end
from stepscope.capture.auto.autostart import Armed, LastingWatch, arm, can_write, disarm, print_for_user
from stepscope.capture.auto.ledger import Entry
from stepscope.capture.auto.run import STDIN, Program, end_process
from stepscope.capture.auto.settings import Settings
from stepscope.capture.files import resolve_logdir
from stepscope.capture.out_of_memory import describe_end
from stepscope.capture.proving.options import ProveOptions
from stepscope.capture.watching.options import WatchOptions
from stepscope.cli import screen
from stepscope.cli.levels import DeviceLevel, HostLevel, PythonLevel
from stepscope.cli.options import argument, option
from stepscope.cli.words import Given
from stepscope.errors import UsageError, counted

_RANKS = ("RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")
_MOST_NAMED = 8
# A cause gets a culprit from five samples of the stacks, one each 10 ms: a cause that takes a fifth has them here.
_LEAST_SECONDS = 0.25

Script = Annotated[str, argument(value="SCRIPT", help="The script; - reads it from stdin.")]
ScriptArguments = Annotated[list[str] | None, argument(value="ARGS", help="The arguments of the script.")]
Logdir = Annotated[str, option("--logdir", help="The folder for the profile.")]
_Prove = Annotated[bool, option("--prove", help="Afterwards measure what speeding up the slowest places would give.")]
_Steps = Annotated[
    int,
    option(
        "--steps", least=1, help="How many steps to capture; by default more if they take less than 0.25 s together."
    ),
]
Skip = Annotated[int, option("--skip", least=0, help="How many steps to skip first.")]
_Seconds = Annotated[float, option("--seconds", least=0.001, help="How long to capture if no step is found.")]
_Patience = Annotated[
    float, option("--patience", least=0, help="Seconds to wait for steps once a framework is imported.")
]
_StopAfter = Annotated[bool, option("--stop-after", help="End the program after the capture.")]
_Watch = Annotated[bool, option("--watch", help="Watch the whole run, and capture when a step is unusual.")]
_WatchWith = Annotated[
    str, option("--watch-options", value="NAME=VALUE,...", help="Options of the watch, such as ring=60s.")
]
_StackSamples = Annotated[
    int, option("--stack-samples-hz", least=0, most=1000, help="Samples of the Python stacks per second; 0 for none.")
]
_Quiet = Annotated[bool, option("--quiet", "-q", help="Do not print the summary at the end.")]
AsModule = Annotated[bool, option("-m", help="SCRIPT is a module, as in python -m.")]
AsCode = Annotated[bool, option("-c", help="SCRIPT is the text of a program, as in python -c.")]


def run(
    given: Given,
    script: Script,
    arguments: ScriptArguments = None,
    logdir: Logdir = "stepscope-logs",
    steps: _Steps = Settings.steps,
    skip: Skip = Settings.skip,
    seconds: _Seconds = Settings.seconds,
    patience: _Patience = Settings.patience,
    stop_after: _StopAfter = False,
    watch: _Watch = False,
    watch_options: _WatchWith = "",
    prove: _Prove = False,
    host_tracer_level: HostLevel = ProfilerOptions.host_tracer_level,
    device_tracer_level: DeviceLevel = ProfilerOptions.device_tracer_level,
    python_tracer_level: PythonLevel = ProfilerOptions.python_tracer_level,
    stack_samples_hz: _StackSamples = ProfilerOptions.stack_samples_hz,
    quiet: _Quiet = False,
    as_module: AsModule = False,
    as_code: AsCode = False,
) -> None:
    """Profiles a script as it is, and says where its steps spend time.

    Stepscope finds the framework and the steps, skips the warm-up, and captures a few steps.  The script's output, exit
    status and tracebacks stay the same; Stepscope writes to stderr.
    """
    refuse_option(script, as_code, given)
    gc.enable()  # see `stepscope.cli.main.main`; the script must not notice
    screen.restore_streams()
    options = ProfilerOptions(
        host_tracer_level, python_tracer_level, device_tracer_level, stack_samples_hz=stack_samples_hz
    )
    # The program may change its folder.
    settings = Settings(
        resolve_logdir(logdir),
        steps,
        skip,
        seconds,
        patience,
        stop_after,
        options,
        least_seconds=0.0 if "steps" in given.fields else _LEAST_SECONDS,
    )
    if watch or watch_options:
        settings = _add_watch(settings, watch_options, given)
    program = Program(script, arguments or (), as_module, as_code)
    if prove:
        settings = replace(
            settings, prove=ProveOptions(program.name, stop_after=stop_after).to_text(), stop_after=False
        )
    run_program(program, settings, quiet or not _is_first_rank(), logdir)


def refuse_option(script: str, as_code: bool, given: Given) -> None:
    """Raises UsageError where an option that does not exist stands for the script."""
    if script.startswith("-") and script != STDIN and not as_code:
        near = difflib.get_close_matches(script.partition("=")[0], given.names, n=1)
        likely = f"did you mean {near[0]}?; " if near else ""
        raise UsageError(f"there is no option {script}", hint=f"{likely}options of the script go after its name")


def _add_watch(settings: Settings, options: str, given: Given) -> Settings:
    """The settings with a continuous watch, which captures by itself: the first steps only if the user asks for them.

    Raises:
        UsageError: an option of the watch is wrong.
    """
    WatchOptions.from_text(options or "1")
    return replace(settings, watch=options or "1", steps=settings.steps if "steps" in given.fields else 0)


def run_program(program: Program, settings: Settings, quiet: bool, logdir: str) -> NoReturn:
    """Runs the program; `logdir` is as the user wrote it."""
    armed = arm(settings, lambda line: None) if can_write(settings.logdir) else None
    if armed is None:
        end_process(program.run())
    report_end = functools.partial(_print_hard_end, armed, logdir, quiet)
    program_end.listen_for_hard_end(report_end)
    armed.serve_captures(program.name)
    armed.autopilot.watch_from_here(at_once=True)
    status = program.run(functools.partial(_finish, armed))
    children = armed.ledger.entries()
    armed.lasting.finish()
    armed.autopilot.remove_window()
    program_end.forget_hard_end(report_end)
    disarm()
    if not quiet:
        with suppress(KeyboardInterrupt):  # it ends the summary, and the status stays that of the program
            _print_outcome(armed, logdir, children, failed=status != 0)
    end_process(status)


def _finish(armed: Armed) -> None:
    """The program's code has finished."""
    armed.autopilot.finish()
    if armed.prover is not None:
        armed.prover.finish()


def _print_hard_end(armed: Armed, logdir: str, quiet: bool, how: str) -> None:
    """Prints one line before the process ends without Python's cleanup: there is no time for a summary.  A forked
    child inherits this and prints nothing."""
    if quiet or os.getpid() != armed.pid:
        return
    if armed.autopilot.last is not None:
        print_for_user(f"{armed.autopilot.outcome}: {armed.autopilot.last}; more: stepscope summary {logdir}")
    else:
        why = f"the program ended itself by {how} before a capture was complete"
        print_for_user(f"{why}; what is left: stepscope doctor {logdir}")


def _is_first_rank() -> bool:
    return all(os.environ.get(name, "0") in ("", "0") for name in _RANKS)


def _print_outcome(armed: Armed, logdir: str, children: Sequence[Entry], failed: bool = False) -> None:
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


def _print_children(children: Sequence[Entry], logdir: str) -> None:
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
    sys.stdout.flush()
    command = [sys.executable, "-m", "stepscope", "summary", str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="", file=sys.stderr, flush=True)
