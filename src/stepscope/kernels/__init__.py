"""The few sequential hot loops, in Cython, compiled when the package is built.

Submodules are imported on first use, since most commands need only a few of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepscope.kernels import (
        causes,
        columns,
        combine,
        intervals,
        memory,
        nesting,
        ops,
        pyramid,
        queues,
        ranks,
        replay,
        riegeli,
        selection,
        stacks,
        stats,
        trace_events,
        trace_json,
        tracks,
        wire,
    )  # fmt: skip

__all__ = [
    "causes",
    "columns",
    "combine",
    "intervals",
    "memory",
    "nesting",
    "ops",
    "pyramid",
    "queues",
    "ranks",
    "replay",
    "riegeli",
    "selection",
    "stacks",
    "stats",
    "trace_events",
    "trace_json",
    "tracks",
    "wire",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"stepscope.kernels.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
