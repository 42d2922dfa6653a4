"""Partials put together while they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepscope.engines.host_work import decode_partials
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.analysis.registry import Tool


CONDENSE_EVERY = 64
"""Hosts; each time costs a look at every partial."""


@dataclass(frozen=True)
class Piece:
    """The condensed partials of neighbouring hosts.

    Attributes:
        hosts: how many hosts these were, with those that failed.
        content: the partials, as a list or as its msgpack.
    """

    hosts: int
    content: bytes | list[Any]


class Fold:
    """The condensed partials of a session's first hosts; what comes early waits as bytes until its turn.

    Hosts are always put together in the order of the session, so the result does not depend on which task ended first.
    The workers have condensed the partials of their tasks already: this is the root of a tree.
    """

    def __init__(self, tool: Tool) -> None:
        self.partials: list[Any] = []
        self._tool = tool
        self._next = self._fresh = 0
        self._early: dict[int, Piece] = {}

    def add(self, first: int, piece: Piece) -> None:
        """Adds the hosts from place `first` on."""
        self._early[first] = piece
        while self._next in self._early:
            due = self._early.pop(self._next)
            self._next += due.hosts
            self._append(due.content)

    def _append(self, content: bytes | list[Any]) -> None:
        partials = decode_partials(self._tool, content) if isinstance(content, bytes) else content
        if partials is None:
            raise ValueError(f"a worker answered with something that is not a partial result of {self._tool.name}")
        self.partials += partials
        self._fresh += len(partials)
        if self._fresh >= CONDENSE_EVERY:
            self.partials, self._fresh = self._tool.combine_hosts(self.partials), 0
