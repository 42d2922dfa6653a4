"""Which engine a text means: `local`, `local=4`, `ray`, `ray=ADDRESS`, `dask`, `dask=ADDRESS`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from stepscope.errors import UsageError
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.engines.base import Engine

VARIABLE = "STEPSCOPE_ENGINE"
LOCAL, RAY, DASK = "local", "ray", "dask"
ENGINES = (LOCAL, RAY, DASK)


@dataclass(frozen=True)
class EngineChoice:
    """The engine to use.

    Attributes:
        name: one of ENGINES.
        address: of the cluster, or the number of local processes; empty for the engine's own choice.
    """

    name: str
    address: str = ""

    def __str__(self) -> str:
        return f"{self.name}={self.address}" if self.address else self.name


def parse_engine(text: str) -> EngineChoice:
    """The engine that a text means.  Raises UsageError with the list of engines."""
    name, _, address = text.strip().partition("=")
    if name not in ENGINES:
        hint = "engines: local, local=PROCESSES, ray, ray=ADDRESS, dask, dask=ADDRESS"
        raise UsageError(f"there is no engine named {text!r}", hint=hint)
    if name == LOCAL and address and not (address.isascii() and address.isdecimal() and int(address) > 0):
        raise UsageError(f"{address!r} is not a number of processes", hint="such as --engine local=4")
    return EngineChoice(name, address)


def engine_from(text: str | None) -> EngineChoice | None:
    """The engine of a text, else of STEPSCOPE_ENGINE; None if neither says anything.  Raises UsageError."""
    text = text or os.environ.get(VARIABLE, "").strip()
    return parse_engine(text) if text else None


def open_engine(choice: EngineChoice, most_processes: int, say: Callable[[str], None]) -> Engine:
    """The engine, started or connected to.

    Args:
        choice: which one.
        most_processes: how many processes of this machine fit into the memory budget.
        say: takes sentences about what may take long.

    Raises:
        EngineError: it is not installed or cannot be reached.
    """
    if choice.name == RAY:
        from stepscope.engines.ray_engine import RayEngine

        return RayEngine(choice.address, say)
    if choice.name == DASK:
        from stepscope.engines.dask_engine import DaskEngine

        return DaskEngine(choice.address, say)
    from stepscope.engines.local import LocalEngine
    from stepscope.formats.threads import usable_cores

    return LocalEngine(int(choice.address) if choice.address else min(usable_cores(), most_processes))
