"""Shows a tool or the summary of a profile: what the commands do once their arguments are read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.cli.options import OutputFormat, ToolRequest
from stepscope.cli.plain import STDIN, SUMMARY
from stepscope.cli.show import remote_address, show_report, show_summary, working
from stepscope.errors import OutputError, UsageError

if TYPE_CHECKING:
    from stepscope.api import LoadedProfile
    from stepscope.report import Report


def show(request: ToolRequest) -> None:
    """Writes the answer to a request to stdout or its file."""
    check_output(request.form, request.output)
    if request.tool == SUMMARY:
        _show_summary(request)
        return
    with working() as progress:
        report = _report(request, load_profile(request.path, request.run, request.host, progress, request.more))
    show_report(report, request.form, request.output, request.top)


def _show_summary(request: ToolRequest) -> None:
    with working() as progress:
        profile = load_profile(request.path, request.run, request.host, progress, request.more)
        report = (
            profile.report("overview", steps=request.steps) if request.steps else profile.report_to_show("overview")
        )
    if request.form == OutputFormat.TABLE:
        show_summary(report, request.output, "stdin" if request.path == STDIN else profile.chosen, request.why)
    else:
        show_report(report, request.form, request.output, None)


def _report(request: ToolRequest, profile: LoadedProfile) -> Report:
    """The report to show; a kept one is enough if the request selects nothing from it."""
    if request.steps is None and request.sort is None and request.top is None and not request.where:
        return profile.report_to_show(request.tool)
    return profile.report(request.tool, steps=request.steps).arranged(request.sort, request.where)


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

    if path == STDIN:
        from stepscope.cli.stdin import save_stdin

        path = str(save_stdin())
    return load([path, *more], run=run, host=host, progress=progress, shelf=beside.shelf if beside else None)


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
