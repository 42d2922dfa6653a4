"""What ended a job: a collective that some rank did not come to, or memory that ran out.

That is the answer, before any share of time: a job that stands still has no step that could be shorter.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.workers.collectives import rank_number
from stepscope.analysis.workers.missing_calls import RecordedGroup, describe_missing, find_missing, recorded_groups
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import Cell

_NO_MEMORY = "out of memory"  # as the readers of snapshots, and captures that a crash ended, write it


@dataclass(frozen=True)
class EndFacts:
    """What one host shows of the end of its job.

    Attributes:
        rank: its number, -1 if unknown.
        groups: its last collectives, of a flight recorder's dump.
        crash: what ended the program, a sentence; empty if nothing says that anything did.
    """

    rank: int
    groups: list[RecordedGroup]
    crash: str


@dataclass(frozen=True)
class Hang:
    """Ranks that wait for others in a collective.

    Attributes:
        rows: the ranks that did not come, see `missing_calls.FIELDS`.
        sentences: the same in words.
    """

    rows: Sequence[dict[str, Cell]]
    sentences: Sequence[str]


def end_of(trace: HostTrace) -> EndFacts | None:
    """What a host shows of the end of its job; None if it shows nothing of it."""
    groups = recorded_groups(trace)
    crash = next((text for text in trace.recorder_messages if _NO_MEMORY in text.lower()), "")
    return EndFacts(rank_number(trace), groups, crash) if groups or crash else None


def find_hang(ends: Sequence[EndFacts]) -> Hang | None:
    """The collective in which ranks wait for one that did not come; None if all came."""
    rows = find_missing([(end.rank, end.groups) for end in ends if end.groups])
    return Hang(rows, describe_missing(rows)) if rows else None
