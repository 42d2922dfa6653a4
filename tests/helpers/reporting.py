"""What a tool says of drawn traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from stepscope.analysis.advice.context import Context
from stepscope.analysis.overview import overview_tool as overview
from stepscope.analysis.overview.overview_tool import OverviewReport
from stepscope.analysis.registry import TOOLS
from stepscope.model import HostTrace


def reporter(tool: Any) -> Callable[..., Any]:
    """A function from the traces of a session to a tool's report, by way of the form in which its parts are kept.

    Args:
        tool: the module with its `partial` and `merge`.
    """
    kind = next(each.partial_type for each in TOOLS if each.module == tool.__name__)

    def report(*traces: HostTrace) -> Any:
        parts = [tool.partial(trace) for trace in traces]
        kept = [msgspec.msgpack.decode(msgspec.msgpack.encode(part), type=kind) for part in parts]
        assert kept == parts
        return tool.merge(kept)

    return report


def table(found: Any, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of a report's main rows, or of other rows."""
    rows: Iterable[Mapping[str, Any]] = getattr(found, "rows", found)
    return [tuple(row[column] for column in columns) for row in rows]


def overview_of(*traces: HostTrace) -> OverviewReport:
    """The overview of a session of these hosts."""
    report = overview.merge([overview.partial(trace) for trace in traces])
    assert isinstance(report, OverviewReport)
    return report


def context_of(*hosts: HostTrace) -> Context:
    """What the rules of the advice see of a session."""
    return overview_of(*hosts).context
