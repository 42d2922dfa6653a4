"""What every report needs to know about a host's trace as a whole: its name and its problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stepscope.analysis.trace.remedies import first_recorder, recorder_of
from stepscope.model import HostTrace
from stepscope.records import dataclass


@dataclass(frozen=True)
class Origin:
    """Where a partial result comes from.

    Attributes:
        problems: what is wrong with the host's trace, and what was repaired, as sentences.
        partial: a part of the recording is missing.
        recorder: who recorded it, a key of the tables of remedies.
    """

    host: str
    problems: list[str]
    partial: bool
    recorder: str = ""


def origin_of(trace: HostTrace) -> Origin:
    """The origin of results computed from a trace."""
    repairs = [each for each in trace.repairs if not each.is_small]
    problems = [str(each) for each in (*trace.problems, *repairs)] + list(trace.recorder_messages)
    return Origin(trace.host, problems, trace.partial, recorder_of(trace))


def session_recorder(origins: Sequence[Origin]) -> str:
    """Who recorded the session: the first that a host knows, else empty."""
    return first_recorder(origin.recorder for origin in origins)


def header(origins: Sequence[Origin], warnings: Iterable[str] = ()) -> dict[str, Any]:
    """The fields that all reports share; each warning appears once."""
    problems = [problem for origin in origins for problem in origin.problems]
    return {
        "hosts": tuple(origin.host for origin in origins),
        "warnings": tuple(dict.fromkeys([*problems, *warnings])),
        "partial": any(origin.partial for origin in origins),
        "recorder": session_recorder(origins),
    }
