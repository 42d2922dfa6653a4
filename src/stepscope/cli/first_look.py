"""`stepscope doctor` and `stepscope demo`: whether this machine can record, and what it looks like."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from stepscope.cli.options import Format, Output, OutputFormat, argument, option
from stepscope.cli.show import show_lines, show_report, working
from stepscope.cli.tools import check_output, load_profile
from stepscope.errors import CaptureError, InputError, counted

if TYPE_CHECKING:
    from stepscope.doctor import DoctorReport

DEMO_ONCE = "DEMO_ONCE"
"""If this is set in the environment, the demo exits after its summary instead of serving the page."""


def doctor(
    logdir: Annotated[str | None, argument("LOGDIR", "A folder that should hold profiles.")] = None,
    form: Format = OutputFormat.TABLE,
    output: Output = None,
) -> None:
    """Says what is wrong with a logdir, or with this machine.

    With LOGDIR: which sessions are there, and why a page is empty.  Without: what would make a capture fail here.
    """
    from stepscope.doctor import examine_logdir, examine_machine

    check_output(form, output)
    with working() as progress:
        report = examine_machine() if logdir is None else examine_logdir(logdir, progress)
    show_report(report, form, output, None)
    if logdir is None:
        refuse_machine(report)
    else:
        refuse_missing(logdir)


def refuse_machine(report: DoctorReport) -> None:
    """Raises CaptureError if a capture would fail on this machine."""
    problems = [check.check for check in report.checks if check.state == "problem"]
    if problems:
        raise CaptureError(
            f"{counted(len(problems), 'problem')} would make a capture fail here: {', '.join(problems)}",
            code="machine",
            hint="see the report for what to do",
        )


def refuse_missing(logdir: str) -> None:
    """Raises InputError if there is nothing at a path: a script that checks a logdir should notice a wrong one."""
    from stepscope.formats.store import is_remote

    if not is_remote(logdir) and not Path(logdir).exists():
        raise InputError("there is no such file or folder", path=logdir, hint="check the path")


def demo(
    logdir: Annotated[
        Path | None, option("--logdir", help="The folder for the profile (default: a temporary one).")
    ] = None,
    framework: Annotated[
        str | None,
        option("--framework", help="jax, torch, tensorflow or numpy (default: the first that is installed)."),
    ] = None,
) -> None:
    """Trains a small model and shows its profile.

    In a terminal it also opens the page.
    """
    from stepscope.cli.serve import serve
    from stepscope.demo import check_framework, train

    check_framework(framework)
    gc.enable()  # training makes garbage; see `stepscope.cli.main.main`
    folder = logdir or Path(tempfile.mkdtemp(prefix="stepscope-demo-"))
    print(f"training a small model under the profiler, into {folder}", file=sys.stderr, flush=True)
    path = train(folder, framework)
    with working() as progress:
        report = load_profile(str(path), None, None, progress).overview()
    show_lines(report)
    print(f"\nthe profile is {path}\nmore: stepscope open {folder}; stepscope overview {folder}")
    if sys.stdout.isatty() and not os.environ.get(DEMO_ONCE):
        print()
        serve(str(folder))
