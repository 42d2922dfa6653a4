"""The options that set how much a capture records."""

from __future__ import annotations

import typer

from stepscope.capture.options import RANGES

_MEANING = {
    "host_tracer_level": "Host events: 0 none, 1 annotations, 2 also ops, 3 everything.",
    "device_tracer_level": "Work on accelerators: 0 off, 1 on.",
    "python_tracer_level": "Python calls: 0 off, 1 on.",
}


def level(name: str) -> typer.models.OptionInfo:
    """An option for a field of `ProfilerOptions`, with its range and meaning."""
    lowest, highest = RANGES[name]
    option: typer.models.OptionInfo = typer.Option(min=int(lowest), max=int(highest), help=_MEANING[name])
    return option
