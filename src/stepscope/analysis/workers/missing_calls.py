"""Which rank did not come to which collective, by the calls that PyTorch's flight recorder numbered.

Collectives of a group have the same number on every rank.  A rank whose last number is below those of others has not
called the next one: the others wait for it.  Its last call shows where it was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from stepscope.errors import counted
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import distinct
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role
from stepscope.vocabulary.python import is_of_user

_MOST_CALLS = 2048  # kept of each group, the last ones: as many as the recorder keeps by default
_DONE = "completed"

FIELDS: tuple[Field, ...] = (
    Field("group", "text", "the process group", "str", role=Role.LABEL),
    Field("number", "count", "the number of the collective in its group", "int", role=Role.ORDINAL),
    Field("operation", "text", "what the ranks that arrived called", "str", role=Role.NAME),
    Field("rank", "count", "the rank", "int", role=Role.ORDINAL),
    Field("what", "text", "what it did", "str", role=Role.TEXT),
    Field("at", "text", "where its last call in this group is, by its stack", "str", role=Role.TEXT),
    Field("others_at", "text", "where a rank is that waits for it", "str", role=Role.TEXT),
)


@dataclass(frozen=True)
class Call:
    """One call: its number in the group, operation and size, state, and the place of its stack."""

    number: int
    operation: str
    state: str
    at: str


@dataclass(frozen=True)
class RecordedGroup:
    """The last calls of a rank in one group, in order of their numbers; `ranks` are its members, empty if unknown."""

    name: str
    ranks: list[int]
    calls: list[Call]


def recorded_groups(trace: HostTrace) -> list[RecordedGroup]:
    """What a flight recorder kept of a rank; empty for other traces."""
    if not trace.has_stat(stat_names.CALL_STATE):
        return []
    rows, numbers = trace.events_with_int(stat_names.COLLECTIVE_NUMBER, least=0)
    columns = [
        trace.stat_strings(names, rows=rows)
        for names in (
            stat_names.COLLECTIVE_NAME, stat_names.CALL_STATE, stat_names.CALL_STACK, stat_names.GROUP_RANKS,
        )
    ]  # fmt: skip
    line = trace.events.line[rows]
    found = []
    for each in distinct(line).tolist():
        here = np.flatnonzero(line == each)
        here = here[np.argsort(numbers[here], kind="stable")][-_MOST_CALLS:]
        texts = [[trace.strings[row] for row in column[here].tolist()] for column in columns]
        calls = [
            Call(number, operation, state, _place(stack))
            for number, operation, state, stack in zip(numbers[here].tolist(), *texts[:3], strict=True)
        ]
        found.append(RecordedGroup(trace.line_name(each), _members(texts[3][-1]), calls))
    return found


def _place(stack: str) -> str:
    """The innermost frame of the user's in a stack, else its innermost."""
    frames = [frame for frame in stack.split(";") if frame]
    return next(filter(is_of_user, frames), frames[0] if frames else "")


def _members(text: str) -> list[int]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return [each for each in found if isinstance(each, int)] if isinstance(found, list) else []


def find_missing(ranks: Sequence[tuple[int, Sequence[RecordedGroup]]]) -> list[dict[str, Cell]]:
    """The ranks that did not come to a collective, or came to another; a row for each."""
    by_group: dict[str, dict[int, RecordedGroup]] = {}
    for rank, groups in ranks:
        for group in groups:
            by_group.setdefault(group.name, {})[rank] = group
    return [row for name, groups in by_group.items() for row in _missing_of(name, groups)]


def _missing_of(name: str, groups: dict[int, RecordedGroup]) -> Iterator[dict[str, Cell]]:
    last = {rank: group.calls[-1] for rank, group in groups.items() if group.calls}
    members = sorted({rank for group in groups.values() for rank in group.ranks} | set(groups))
    behind = min((call.number for call in last.values()), default=-1)
    number = behind + 1 if any(call.number > behind for call in last.values()) else behind
    came = {rank: call for rank, group in groups.items() for call in group.calls if call.number == number}
    if not came or all(call.state == _DONE for call in came.values()):
        return
    usual, _ = Counter(call.operation for call in came.values()).most_common(1)[0]
    waits = next((call.at for call in came.values() if call.state != _DONE), "")
    for rank in members:
        own, latest = came.get(rank), last.get(rank)
        if rank not in groups:
            what = "left no dump"
        elif own is None:
            what = f"did not arrive; its last is {latest.operation} #{latest.number}" if latest else "did not come"
        elif own.operation != usual:
            what = f"arrived with {own.operation} instead"
        else:
            continue
        place = (own or latest).at if own or latest else ""  # type: ignore[union-attr]
        yield {
            "group": name, "number": number, "operation": usual, "rank": rank, "what": what, "at": place,
            "others_at": waits,
        }  # fmt: skip


def describe_missing(rows: Sequence[dict[str, Cell]]) -> list[str]:
    """The first of these as a sentence, and how many more there are."""
    if not rows:
        return []
    row = rows[0]
    at = f", at {row['at']}" if row["at"] else ""
    where = f"{row['operation']} #{row['number']} of {row['group']}"
    text = f"rank {row['rank']} {row['what']}{at}: the others wait in {where}"
    return [text, *([f"{counted(len(rows) - 1, 'more rank')} did not arrive either"] if len(rows) > 1 else [])]
