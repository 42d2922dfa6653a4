"""`stepscope runs`: all sessions of a logdir in one table."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from stepscope.cli.commands import Format, Output, Sort, Top, Where
from stepscope.cli.options import OutputFormat
from stepscope.cli.show import show_report, working
from stepscope.cli.tools import check_output
from stepscope.runs import RECIPES, ask_runs, list_runs, read_recipe


def runs(
    logdir: Annotated[str, typer.Argument(metavar="LOGDIR", help="A logdir, or a folder above several.")],
    figure: Annotated[
        list[str] | None,
        typer.Option("--figure", metavar="ID", help="A further column, as `gate` names figures; repeatable."),
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="SQL", help="Ask each session this instead, as `sql` does.")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option("--recipe", metavar="NAME", help=f"A saved query: a file, or its name in ${RECIPES}.")
    ] = None,
    last: Annotated[int | None, typer.Option("--last", min=1, metavar="N", help="The newest N sessions only.")] = None,
    form: Format = OutputFormat.TABLE,
    output: Output = None,
    top: Top = None,
    sort: Sort = None,
    where: Where = None,
) -> None:
    """Lists all sessions: step time, verdict, first cause, first advice, MFU and memory of each."""
    check_output(form, output)
    asked = read_recipe(recipe) if recipe else query
    with working() as progress:
        ask = partial(ask_runs, logdir, asked) if asked else partial(list_runs, logdir, figure or ())
        report: Any = ask(last=last, progress=progress)
    show_report(report.arranged(sort, where or ()), form, output, top)
