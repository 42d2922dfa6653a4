"""`stepscope runs`: all sessions of a logdir in one table."""

from __future__ import annotations

from typing import Annotated

import typer

from stepscope.cli.commands import Format, Output, Sort, Top, Where
from stepscope.cli.options import OutputFormat
from stepscope.cli.show import show_report, working
from stepscope.cli.tools import check_output


def runs(
    logdir: Annotated[str, typer.Argument(metavar="LOGDIR", help="A logdir, or a folder above several.")],
    figure: Annotated[
        list[str] | None,
        typer.Option("--figure", metavar="ID", help="A further column, as `gate` names figures; repeatable."),
    ] = None,
    last: Annotated[int | None, typer.Option("--last", min=1, metavar="N", help="The newest N sessions only.")] = None,
    form: Format = OutputFormat.TABLE,
    output: Output = None,
    top: Top = None,
    sort: Sort = None,
    where: Where = None,
) -> None:
    """Lists all sessions: step time, verdict, first cause, first advice, MFU and memory of each."""
    from stepscope.runs import list_runs

    check_output(form, output)
    with working() as progress:
        report = list_runs(logdir, figure or (), last=last, progress=progress)
    show_report(report.arranged(sort, where or ()), form, output, top)
