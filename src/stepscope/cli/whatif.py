"""`stepscope whatif`: predicts the step time after changes, by replaying the recorded steps."""

from __future__ import annotations

from typing import Annotated

from stepscope.cli.options import Format, HostName, Output, OutputFormat, ProfilePath, RunName, Steps, option
from stepscope.cli.show import show_report, working
from stepscope.cli.tools import check_output, load_profile
from stepscope.errors import UsageError

_Parts = list[str] | None


def whatif(
    path: ProfilePath,
    remove: Annotated[
        _Parts,
        option(
            "--remove",
            value="PART",
            help="Remove a part: a cause (input), a category, a class of advice, an op, a function, or file.py:line.",
        ),
    ] = None,
    scale: Annotated[
        _Parts,
        option(
            "--scale",
            value="PART=F",
            help="Multiply a part's time: input=0.5 halves it. F alone applies to what --remove names.",
        ),
    ] = None,
    overlap: Annotated[_Parts, option("--overlap", value="PART", help="Run a part in parallel with the rest.")] = None,
    move: Annotated[_Parts, option("--move", value="PART", help="Move a part to worker processes.")] = None,
    to: Annotated[str, option("--to", value="workers=N", help="How many workers --move uses.")] = "workers=1",
    balance_ranks: Annotated[
        bool, option("--balance-ranks", help="Give every rank the same amount of work; allows no other change.")
    ] = False,
    balance: Annotated[
        str,
        option(
            "--balance",
            value="WHAT",
            help="Give ranks, stages or, with kind=forward, one kind of work equal shares; allows no other change.",
        ),
    ] = "",
    run: RunName = None,
    host: HostName = None,
    steps: Steps = None,
    form: Format = OutputFormat.TABLE,
    output: Output = None,
) -> None:
    """Predicts the step time after a change.

    The recorded steps are replayed with the change.  Options that take a PART may be repeated.
    """
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
            balance=balance,
            steps=steps,
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
