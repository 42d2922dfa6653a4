"""`stepscope run`: profiles an unmodified script or module."""

from __future__ import annotations

import difflib
import os
import sys
from dataclasses import replace
from typing import Annotated, NoReturn

from stepscope.capture.auto.autostart import can_write, print_for_user
from stepscope.capture.auto.run import STDIN, ProgramToRun, can_follow
from stepscope.capture.auto.settings import Settings
from stepscope.capture.files import resolve_logdir
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.proving.options import ProveOptions
from stepscope.capture.watching.options import WatchOptions
from stepscope.cli import following
from stepscope.cli.following import Followed
from stepscope.cli.levels import DeviceLevel, HostLevel, PythonLevel
from stepscope.cli.options import argument, option
from stepscope.cli.words import ParsedNames
from stepscope.errors import UsageError

_RANKS = ("RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")
# A cause gets a culprit from five samples of the stacks, 10 ms apart where sampling is dear, else 4: a cause that takes
# a tenth has them here.
_LEAST_SECONDS = 0.5

Script = Annotated[str, argument(value="SCRIPT", help="The script; - reads it from stdin.")]
ScriptArguments = Annotated[list[str] | None, argument(value="ARGS", help="The arguments of the script.")]
Logdir = Annotated[str, option("--logdir", help="The folder for the profile.")]
_Prove = Annotated[bool, option("--prove", help="Afterwards measure what speeding up the slowest places would give.")]
_Steps = Annotated[
    int,
    option(
        "--steps", least=1, help="How many steps to capture; by default more if they take less than 0.5 s together."
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
    given: ParsedNames,
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
    program = ProgramToRun(script, tuple(arguments or ()), as_module, as_code)
    if prove:
        settings = replace(
            settings, prove=ProveOptions(program.name, stop_after=stop_after).to_text(), stop_after=False
        )
    run_program(program, settings, quiet or not _is_first_rank(), logdir)


def refuse_option(script: str, as_code: bool, given: ParsedNames) -> None:
    """Raises UsageError where an option that does not exist stands for the script."""
    if script.startswith("-") and script != STDIN and not as_code:
        near = difflib.get_close_matches(script.partition("=")[0], given.names, n=1)
        likely = f"did you mean {near[0]}?; " if near else ""
        raise UsageError(f"there is no option {script}", hint=f"{likely}options of the script go after its name")


def _add_watch(settings: Settings, options: str, given: ParsedNames) -> Settings:
    """The settings with a continuous watch, which captures by itself: the first steps only if the user asks for them.

    Raises:
        UsageError: an option of the watch is wrong.
    """
    WatchOptions.from_text(options or "1")
    return replace(settings, watch=options or "1", steps=settings.steps if "steps" in given.fields else 0)


def run_program(program: ProgramToRun, settings: Settings, quiet: bool, logdir: str) -> NoReturn:
    """Runs the program in place of this process; `logdir` is as the user wrote it."""
    text = ""
    for_answer = settings.stop_after or bool(settings.prove and ProveOptions.from_text(settings.prove).stop_after)
    if not can_follow():
        print_for_user("nothing is captured: with Python's options -E, -I and -S nothing can come before a program")
    elif not program.exists():
        pass  # Python says so, and there is nothing to record
    elif can_write(settings.logdir, goes_on=not for_answer):
        text = following.request(Followed(program.name, settings.to_environment(), quiet, logdir))
    elif for_answer:
        sys.exit(1)
    program.start(text)


def _is_first_rank() -> bool:
    return all(os.environ.get(name, "0") in ("", "0") for name in _RANKS)
