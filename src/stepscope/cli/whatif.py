"""`stepscope whatif`: predicts the step time after changes, by replaying the recorded steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.options import PATH_HELP, OutputFormat, stdout_if_dash
from stepscope.cli.show import show_report, working
from stepscope.errors import UsageError

_Parts = list[str] | None


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("whatif")(whatif)


def whatif(
    path: Annotated[str, typer.Argument(metavar="PATH", help=PATH_HELP)],
    remove: Annotated[
        _Parts,
        typer.Option(
            "--remove",
            metavar="PART",
            help="Remove a part: a cause (input), a category, a class of advice, an op, a function, or file.py:line.",
        ),
    ] = None,
    scale: Annotated[
        _Parts,
        typer.Option(
            "--scale",
            metavar="PART=F",
            help="Scale a part: 0.5 halves its time. F alone is for what --remove names.",
        ),
    ] = None,
    overlap: Annotated[
        _Parts, typer.Option("--overlap", metavar="PART", help="Run a part beside everything else.")
    ] = None,
    move: Annotated[_Parts, typer.Option("--move", metavar="PART", help="Move a part to other workers.")] = None,
    to: Annotated[str, typer.Option("--to", metavar="workers=N", help="How many workers --move uses.")] = "workers=1",
    balance_ranks: Annotated[
        bool, typer.Option("--balance-ranks", help="Give every rank the same amount of work; without other changes.")
    ] = False,
    run: Annotated[str | None, typer.Option("--run", help="The session to read (default: the newest).")] = None,
    host: Annotated[str | None, typer.Option("--host", help="The host to read (default: all hosts).")] = None,
    form: Annotated[OutputFormat, typer.Option("--format", help="The format of the result.")] = OutputFormat.TABLE,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", callback=stdout_if_dash, help="The file to write (default or -: stdout)."),
    ] = None,
) -> None:
    """Predicts the step time after one or more changes, and explains why. Every option may be given several times."""
    from stepscope.cli.tools import check_output, load_profile

    check_output(form, output)
    whole, scales = _read_scales(scale or [])
    workers = _read_workers(to)
    with working() as progress:
        report = load_profile(path, run, host, progress).whatif(
            remove or [],
            scale=whole,
            scales=scales,
            overlap=overlap or [],
            move=dict.fromkeys(move or [], workers),
            balance_ranks=balance_ranks,
        )
    show_report(report, form, output, None)


def _read_scales(texts: list[str]) -> tuple[float, dict[str, float]]:
    """The factor for what --remove names, and those with a part of their own; names may hold `=` themselves."""
    whole, scales = 0.0, {}
    for text in texts:
        part, _, number = text.rpartition("=")
        try:
            factor = float(number)
        except ValueError:
            raise UsageError(f"--scale {text} has no factor", hint="for example --scale OP=0.5") from None
        if part:
            scales[part] = factor
        else:
            whole = factor
    return whole, scales


def _read_workers(text: str) -> float:
    name, _, number = text.rpartition("=")
    if name not in ("", "workers") or not number.isdigit():
        raise UsageError(f"--to {text} is not a number of workers", hint="for example --to workers=4")
    return float(number)
