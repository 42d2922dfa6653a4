"""Sessions in memory that questions in SQL are asked about."""

from __future__ import annotations

from collections.abc import Mapping

from draw import Sort, draw

from stepscope.analysis.registry import tool_named
from stepscope.errors import UnreadableError
from stepscope.model import EventKind, HostTrace
from stepscope.report import Report
from stepscope.sql.database import Database
from stepscope.sql.limits import OWN_MEMORY_BYTES
from stepscope.sql.source import LocalSource

TRAINING = """
    host main   | M0------------M1------------
    host main   |  I- A----      I- A----
    host main   |     bL1L2         bL3L4
    gpu0 s      |       U1K2          U3K4-
    gpu0 c      |        N2--          N4--
"""
"""Two steps of 14 ms: a wait for input, then `forward` with an op that launches a copy, a kernel and a collective."""


class Drawn:
    """A session of some traces; one that is None cannot be read."""

    def __init__(self, **traces: HostTrace | None) -> None:
        self._traces = traces

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self._traces)

    def trace(self, host: str | None = None) -> HostTrace:
        found = self._traces[host or self.hosts[0]]
        if found is None:
            raise UnreadableError("the file is torn", host=host)
        return found

    def report(self, tool_name: str) -> Report:
        tool = tool_named(tool_name)
        return tool.merge([tool.partial(trace) for trace in self._traces.values() if trace is not None])


def training(host: str = "host") -> HostTrace:
    return draw(TRAINING, host=host)


_MEMORY = Sort(EventKind.ALLOCATION, "[memory]", "Bytes", {"Device Type": 1, "Device Id": 0, "Addr": 64})


def rich_training(host: str = "host") -> HostTrace:
    """The same with a second op, a wait that takes longer, an allocation and a copy."""
    return draw(
        """
        host main   | M0------------M1------------------
        host main   |  I- A----      I----- A-----
        host main   |     bL1L2b            bL3L4bb
        host other  |  Z7!           Z9!  c---
        gpu0 s      |       U1K2              U3K4---
        gpu0 c      |        N2--              N4--
        """,
        {"Z": _MEMORY},
        host=host,
    )


def open_database(sessions: Mapping[str, Drawn], memory_bytes: int = OWN_MEMORY_BYTES) -> Database:
    """The connection that answers questions about drawn sessions."""
    return Database({name: LocalSource(session) for name, session in sessions.items()}, memory_bytes)
