"""`stepscope whatif`: predicts the step time with a part of it removed or made faster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.options import PATH_HELP, OutputFormat, stdout_if_dash
from stepscope.cli.show import show_report, working


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("whatif")(whatif)


def whatif(
    path: Annotated[str, typer.Argument(metavar="PATH", help=PATH_HELP)],
    remove: Annotated[
        str,
        typer.Option(
            "--remove",
            metavar="CLASS|OP",
            help="A category of the step breakdown (input), a class of advice, or an op.",
        ),
    ],
    scale: Annotated[float, typer.Option("--scale", help="The share of its time that stays; 0 removes it.")] = 0.0,
    run: Annotated[str | None, typer.Option("--run", help="The session to read (default: the newest).")] = None,
    host: Annotated[str | None, typer.Option("--host", help="The host to read (default: all hosts).")] = None,
    form: Annotated[OutputFormat, typer.Option("--format", help="The format of the result.")] = OutputFormat.TABLE,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", callback=stdout_if_dash, help="The file to write (default or -: stdout)."),
    ] = None,
) -> None:
    """Predicts the step time with a part of the step removed or made faster, and explains why."""
    from stepscope.cli.tools import check_output, load_profile

    check_output(form, output)
    with working() as progress:
        report = load_profile(path, run, host, progress).whatif(remove, scale)
    show_report(report, form, output, None)
