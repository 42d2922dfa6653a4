"""`stepscope whatif`: the step time with a part of it removed or made faster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.options import OutputFormat, stdout_if_dash
from stepscope.cli.show import show_report, working


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("whatif")(whatif)


def whatif(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A profile, a session folder, a logdir, or a parent.")],
    remove: Annotated[
        str,
        typer.Option(
            "--remove",
            metavar="CLASS|OP",
            help="A category of the step (input), a class of advice, or an op.",
        ),
    ],
    scale: Annotated[float, typer.Option("--scale", help="How much of its time stays: 0 removes it.")] = 0.0,
    run: Annotated[str | None, typer.Option("--run", help="The session to look at; the newest if not given.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="The host to look at; all hosts if not given.")] = None,
    form: Annotated[OutputFormat, typer.Option("--format", help="How to write the result.")] = OutputFormat.TABLE,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", callback=stdout_if_dash, help="The file to write; stdout if not given or -."),
    ] = None,
) -> None:
    """The step time if a part of the step were removed or faster, and why."""
    from stepscope.cli.tools import check_output, load_profile

    check_output(form, output)
    with working() as progress:
        report = load_profile(path, run, host, progress).whatif(remove, scale)
    show_report(report, form, output, None)
