"""The options that say how much a capture records."""

from __future__ import annotations

import typer

from stepscope.capture.options import RANGES

_MEANING = {
    "host_tracer_level": "Of the host: 0 nothing, 1 annotations, 2 also ops, 3 everything.",
    "device_tracer_level": "1 records what runs on accelerators, 0 does not.",
    "python_tracer_level": "1 records Python calls, 0 does not.",
}


def level(name: str) -> typer.models.OptionInfo:
    """An option of the range and the meaning that the field of `ProfilerOptions` has."""
    lowest, highest = RANGES[name]
    option: typer.models.OptionInfo = typer.Option(min=int(lowest), max=int(highest), help=_MEANING[name])
    return option
