"""The options that set how much a capture records."""

from __future__ import annotations

from typing import Annotated

from stepscope.capture.options import RANGES
from stepscope.cli.options import Option, option

_MEANING = {
    "host_tracer_level": "Host events: 0 none, 1 annotations, 2 also ops, 3 everything.",
    "device_tracer_level": "Work on accelerators: 0 off, 1 on.",
    "python_tracer_level": "Python calls: 0 off, 1 on.",
}


def _level(name: str) -> Option:
    """The option for a field of `ProfilerOptions`, with its range."""
    least, most = RANGES[name]
    return option(f"--{name.replace('_', '-')}", help=_MEANING[name], least=int(least), most=int(most))


HostLevel = Annotated[int, _level("host_tracer_level")]
DeviceLevel = Annotated[int, _level("device_tracer_level")]
PythonLevel = Annotated[int, _level("python_tracer_level")]
