"""Shows a tool or the summary of a profile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from stepscope.cli import process
from stepscope.cli.options import (
    STDOUT,
    Format,
    HostName,
    MorePaths,
    Output,
    OutputFormat,
    ProfilePath,
    RunName,
    Sort,
    Steps,
    Top,
    Where,
    option,
)
from stepscope.cli.show import remote_address, show_lines, show_report, working
from stepscope.errors import OutputError, UsageError

if TYPE_CHECKING:
    from stepscope.api import LoadedProfile


def show_tool(
    tool: str,
    path: ProfilePath,
    more: MorePaths = None,
    run: RunName = None,
    host: HostName = None,
    steps: Steps = None,
    form: Format = OutputFormat.TABLE,
    output: Output = None,
    top: Top = None,
    sort: Sort = None,
    where: Where = None,
) -> None:
    """Writes the report of a tool to stdout or a file.  A kept report is enough if nothing is selected from it."""
    check_output(form, output)
    with working() as progress:
        profile = load_profile(path, run, host, progress, more or ())
        if steps is None and sort is None and top is None and not where:
            report = profile.report_to_show(tool)
        else:
            report = profile.report(tool, steps=steps).arranged(sort, where or ())
    show_report(report, form, output, top)


def show_summary(
    path: ProfilePath,
    more: MorePaths = None,
    run: RunName = None,
    host: HostName = None,
    steps: Steps = None,
    form: Annotated[
        OutputFormat, option("--format", help="table has the summary, the others the whole overview.")
    ] = OutputFormat.TABLE,
    output: Output = None,
    why: Annotated[bool, option("--why", help="Also show the evidence.")] = False,
) -> None:
    """Answers on one screen: verdict, step time, top ops, first advice."""
    check_output(form, output)
    with working() as progress:
        profile = load_profile(path, run, host, progress, more or ())
        report = profile.report("overview", steps=steps) if steps else profile.report_to_show("overview")
    if form == OutputFormat.TABLE:
        show_lines(
            report, output, "stdin" if path == STDOUT else profile.chosen, why, profile.written_ns if why else None
        )
    else:
        show_report(report, form, output, None)


def load_profile(
    path: str,
    run: str | None,
    host: str | None,
    progress: Callable[[str], None],
    more: Sequence[str] = (),
    beside: LoadedProfile | None = None,
) -> LoadedProfile:
    """Finds the profile that a command is about, with the hosts of `more` paths; one compared with another shares its
    memory."""
    from stepscope.api import load

    if path == STDOUT:
        from stepscope.cli.stdin import save_stdin

        path = str(save_stdin())
    return load([path, *more], run=run, host=host, progress=progress, shelf=beside.shelf if beside else process.shelf)


def check_output(form: OutputFormat, output: Path | None) -> None:
    """Raises UsageError or OutputError, before any work is done, if the result cannot be written."""
    if form == OutputFormat.PARQUET and output is None and sys.stdout.isatty():
        raise UsageError("Parquet cannot be shown in a terminal", hint="give --output FILE")
    if output is not None:
        check_folder(output)


def check_folder(output: Path) -> None:
    """Raises OutputError if the folder of a file does not exist; that of an object store is made when it is written."""
    if remote_address(output) is None and not output.parent.is_dir():
        raise OutputError("the folder does not exist", path=output.parent, hint="create it, or choose another --output")
