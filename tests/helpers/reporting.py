"""What a tool says of drawn traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from stepscope.model import HostTrace


def reporter(tool: Any) -> Callable[..., Any]:
    """A function from the traces of a session to a tool's report, by way of the form in which its parts are kept.

    Args:
        tool: the module with its `partial`, `Partial` and `merge`.
    """

    def report(*traces: HostTrace) -> Any:
        parts = [tool.partial(trace) for trace in traces]
        kept = [msgspec.msgpack.decode(msgspec.msgpack.encode(part), type=tool.Partial) for part in parts]
        assert kept == parts
        return tool.merge(kept)

    return report


def table(rows: Iterable[Mapping[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of rows."""
    return [tuple(row[column] for column in columns) for row in rows]
