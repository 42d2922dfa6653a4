"""`stepscope over-time`: a watched run over hours and days; `stepscope trigger`: asks a watch for a capture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from stepscope.cli.options import Format, Output, OutputFormat, Sort, Top, Where, argument, option
from stepscope.cli.show import show_report, working
from stepscope.cli.tools import check_output
from stepscope.errors import CaptureError, UsageError


def over_time(
    logdir: Annotated[str, argument(value="LOGDIR", help="The logdir of a watched job.")],
    run: Annotated[str | None, option("--run", value="NAME", help="The run to show (default: the newest).")] = None,
    captures: Annotated[
        int, option("--captures", least=0, help="How many of the latest captures to analyse; 0 for none.")
    ] = 12,
    form: Format = OutputFormat.TABLE,
    output: Output = None,
    top: Top = None,
    sort: Sort = None,
    where: Where = None,
) -> None:
    """Shows how a watched run changed over hours and days.

    Step time, utilisation, memory and its growth, triggers and captures.
    """
    from stepscope.overtime import examine_run

    check_output(form, output)
    with working() as progress:
        report = examine_run(logdir, run, captures, progress)
    show_report(report.arranged(sort, where or ()), form, output, top)


def trigger(
    logdir: Annotated[str, argument(value="LOGDIR", help="The logdir of a job that is watched.")],
    reason: Annotated[str, argument(value="REASON", help="The reason, kept with the capture.")] = "",
) -> None:
    """Asks the watch of a running job to keep a capture.

    Every watch that writes to LOGDIR reads the request within a second.
    """
    from stepscope.capture.files import translate_write_errors
    from stepscope.capture.watching.rank_coordination import has_running_watch, write_request

    if not Path(logdir).is_dir():
        raise UsageError(f"{logdir} is not a folder", hint="give the logdir of the job that is watched")
    if not has_running_watch(Path(logdir)):
        raise CaptureError(
            "no watch writes here: nothing of a ring was written in the last minute, so nothing was asked for",
            code="no-watch",
            path=logdir,
            hint="start the job with stepscope.watch or `stepscope run --watch`, and give its logdir",
        )
    with translate_write_errors(Path(logdir), "ask for the right to write there"):
        request = write_request(Path(logdir), reason or "a person asked for a capture")
    print(f"asked for {request.run}; open it with: stepscope summary {logdir} --run {request.run}")
