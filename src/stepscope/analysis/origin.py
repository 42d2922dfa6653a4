"""What every host says of its trace as a whole, whichever tool asks: its name and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stepscope.model import HostTrace


@dataclass(frozen=True)
class Origin:
    """Where a partial result comes from: the host, what is wrong with its trace, and whether a part is missing."""

    host: str
    problems: list[str]
    partial: bool


def origin_of(trace: HostTrace) -> Origin:
    """The origin of what is computed from a trace."""
    return Origin(
        trace.host, [str(problem) for problem in trace.problems] + list(trace.recorder_messages), trace.partial
    )


def header(origins: Sequence[Origin], warnings: Iterable[str] = ()) -> dict[str, Any]:
    """The fields that all reports share; every warning once."""
    problems = [problem for origin in origins for problem in origin.problems]
    return {
        "hosts": tuple(origin.host for origin in origins),
        "warnings": tuple(dict.fromkeys([*problems, *warnings])),
        "partial": any(origin.partial for origin in origins),
    }
