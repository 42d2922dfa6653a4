"""What ended a job: a collective that some rank did not come to, or memory that ran out.

That is the answer, before any share of time: a job that stands still has no step that could be shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PureWindowsPath

from stepscope.analysis.resources.counted_memory import RefusedRequest, counted_arrays, kept_arrays, request_of
from stepscope.analysis.trace.event_kinds import count_kinds
from stepscope.analysis.workers.collectives import rank_number
from stepscope.analysis.workers.missing_calls import RecordedGroup, describe_missing, find_missing, recorded_groups
from stepscope.model import EventKind, HostTrace
from stepscope.records import dataclass
from stepscope.report import Cell
from stepscope.vocabulary.python import place_of

_FAILED = "the program ended with "  # as captures write it
_NO_MEMORY = "out of memory"  # as the readers of snapshots, and captures that a crash ended, write it
_MOST_HOLDERS = 20  # a table that is still read; the bar has colours for fewer
_OF_MEMORY = (EventKind.ALLOCATION, EventKind.DEALLOCATION)


@dataclass(frozen=True)
class Holder:
    """A part of what filled the memory when it ran out.

    Attributes:
        kind: what it is for, such as parameters, or what it is, such as arrays with their graph.
        name: the variable or the layer that holds it; None if unknown.
        place: the line that adds to it or allocated it; None if unknown.
        count: its arrays or allocations.
        nbytes: their bytes together.
        per_step: the bytes that each step adds; None if steps add none, or if that is unknown.
    """

    kind: str
    name: str | None
    place: str | None
    count: int
    nbytes: int
    per_step: float | None


@dataclass(frozen=True)
class EndFacts:
    """What one host shows of the end of its job.

    Attributes:
        rank: its number, -1 if unknown.
        groups: its last collectives, of a flight recorder's dump.
        crash: what ended the program, a sentence; empty if nothing says that anything did.
        holders: what filled the memory that ran out, or that a snapshot shows; the most first, empty if unknown.
        is_snapshot: nothing but allocations was recorded.
        failure: the exception that ended the program, with its line and text; empty if that is not known.
        request: what was asked for when memory ran out; None if unknown.
    """

    rank: int
    groups: list[RecordedGroup]
    crash: str
    holders: Sequence[Holder] = ()
    is_snapshot: bool = False
    request: RefusedRequest | None = None
    failure: str = ""

    @property
    def asks_too_much(self) -> RefusedRequest | None:
        """The request that no memory of the program's would have made room for; None if it is another."""
        return self.request if self.request is not None and self.request.is_too_large else None


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
    is_snapshot = bool(0 < len(trace.events) == count_kinds(trace)[list(_OF_MEMORY)].sum())
    failures = (text.removeprefix(_FAILED) for text in trace.recorder_messages if text.startswith(_FAILED))
    failure = "" if crash else next(failures, "")
    if not groups and not crash and not is_snapshot and not failure:
        return None
    holders = _find_holders(trace) if crash or is_snapshot else ()
    return EndFacts(
        rank_number(trace), groups, crash, holders, is_snapshot, request_of(trace) if crash else None, failure
    )


def kept_first(holders: Sequence[Holder]) -> Holder | None:
    """What holds most, where the program keeps more of it with each step and its variable and line are known."""
    first = holders[0] if holders else None
    known = first is not None and None not in (first.name, first.place, first.per_step)
    return first if known else None


def _find_holders(trace: HostTrace) -> list[Holder]:
    """What filled the memory: as the program counted its arrays then, else what was allocated at the peak."""
    grows = {(each.op, each.place): each.per_step for each in kept_arrays(trace)[1]}
    found = [
        Holder(what or "arrays", name, place, count, size, grows.get((name, place)) if name else None)
        for name, place, count, size, what, *_ in counted_arrays(trace, "full:")
    ]
    return (found or _find_allocated(trace))[:_MOST_HOLDERS]


def _find_allocated(trace: HostTrace) -> list[Holder]:
    """What the fullest memory held at its peak, by purpose, layer and line."""
    from stepscope.analysis.resources.allocations import allocations_of
    from stepscope.analysis.resources.memory_usage import profile_memory  # few jobs end so

    memories = [profile_memory(trace, each) for each in allocations_of(trace)]
    fullest = max(memories, key=lambda memory: sum(each.allocated for each in memory.held), default=None)
    if fullest is None:
        return []
    grows = {each.place: each.per_step for each in fullest.staying if each.place}
    return [
        Holder(
            each.purpose, each.layer, _place(each.line), each.occurrences, each.allocated, grows.get(each.line or "")
        )
        for each in fullest.held
    ]  # fmt: skip


def _place(line: str | None) -> str | None:
    """`model.py:33` of `/srv/model.py(33): forward`, as counted arrays have it."""
    _, file, number = place_of(line or "")
    return line if file is None else f"{PureWindowsPath(file).name}:{number}"  # either slash


def find_hang(ends: Sequence[EndFacts]) -> Hang | None:
    """The collective in which ranks wait for one that did not come; None if all came."""
    rows = find_missing([(end.rank, end.groups) for end in ends if end.groups])
    return Hang(rows, describe_missing(rows)) if rows else None
