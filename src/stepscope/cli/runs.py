"""`stepscope runs`: all sessions of a logdir in one table."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from stepscope.cli.options import Format, Output, OutputFormat, Sort, Top, Where, argument, option
from stepscope.cli.show import show_report, working
from stepscope.cli.tools import check_output
from stepscope.runs import RECIPES, ask_runs, list_runs, read_recipe


def runs(
    logdir: Annotated[str, argument(value="LOGDIR", help="A logdir, or a parent of logdirs.")],
    figure: Annotated[
        list[str] | None,
        option("--figure", value="ID", help="Another column, named as in budgets of `gate`; repeatable."),
    ] = None,
    query: Annotated[
        str | None, option("--query", value="SQL", help="Instead ask each session this query, as `sql` does.")
    ] = None,
    recipe: Annotated[
        str | None, option("--recipe", value="NAME", help=f"A saved query: a file, or its name in ${RECIPES}.")
    ] = None,
    last: Annotated[int | None, option("--last", least=1, value="N", help="Only the newest N sessions.")] = None,
    form: Format = OutputFormat.TABLE,
    output: Output = None,
    top: Top = None,
    sort: Sort = None,
    where: Where = None,
) -> None:
    """Lists all sessions: step time, verdict, first advice, memory."""
    from stepscope.web.notes.note_store import read_labels

    check_output(form, output)
    asked = read_recipe(recipe) if recipe else query
    with working() as progress:
        listing = partial(list_runs, logdir, figure or (), labels_of=read_labels())
        ask = partial(ask_runs, logdir, asked) if asked else listing
        report: Any = ask(last=last, progress=progress)
    show_report(report.arranged(sort, where or ()), form, output, top)
