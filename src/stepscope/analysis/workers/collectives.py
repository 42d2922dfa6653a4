"""The collective operations of one host: their name, duration, data size and process group.

What a collective is about stands with its kernel in newer PyTorch traces, and else with the host calls around the call
that launched it.  On a host without a device it is the communication library's own record that counts, not the call
that only hands the work to its thread.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of_events
from stepscope.analysis.trace.attribution import attribute
from stepscope.analysis.trace.collective_events import collective_rows
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.collectives import DIRECTIONS, algorithm_of, bytes_of_type, operation_of
from stepscope.vocabulary.patterns import Pattern

K = EventKind

_MOST_CLIMB = 32  # calls around a launch
_MOST_RANKS, _MOST_ELEMENTS = 1 << 31, 1 << 48  # more is garbage
_MOST_GROUPS = 1000  # of one host
_LONGEST_NAME, _LONGEST_RANKS = 200, 1000  # characters; the size of a larger group says enough
_RANK_NUMBER = Pattern(r"[0-9]{1,9}")
_RANK_IN_NAME = Pattern(r"rank[-_. ]?([0-9]{1,9})", re.IGNORECASE)
_NO_PURPOSE = frozenset({"undefined"})  # what PyTorch writes for a group that the program does not describe


@dataclass(frozen=True)
class DeclaredGroup:
    """A process group as the recording of a host describes it.

    Attributes:
        name: as the library numbers it.
        purpose: what the program calls it; empty if unknown.
        ranks: its ranks as a JSON list; empty if unknown.
        size: how many these are; 0 if unknown.
    """

    name: str
    purpose: str
    ranks: str
    size: int


@dataclass(frozen=True)
class Transfers:
    """Sends and receives of a rank, as columns.  A kernel that does several at once has several.

    Attributes:
        collective: places of the kernels among the collectives.
        sends: whether it sends, else it receives.
        peer: the rank at the other end as recorded, in the job or in the group; -1 if unknown.
        group: place of its process group.
    """

    collective: list[int]
    sends: list[bool]
    peer: list[int]
    group: list[int]


@dataclass(frozen=True)
class Collectives:
    """The collectives of one host, as columns in order of time.

    Attributes:
        names, groups: the different operations and process groups; the latter `name|ranks`, empty if unknown.
        purposes: what the program calls each of the groups; empty if unknown.
        algorithms: the different algorithms, as kernels' names state them; empty if unknown.
        name, group, algorithm: places in them.
        step: place of the step that each belongs to among the host's steps, -1 for none.
        start_ps, duration_ps: from the start of the host's session.
        bytes: data that a rank contributes or receives, whichever is more; 0 if unknown.
        size: ranks that take part; 0 if unknown.
        rank: the rank's number in its job, -1 if unknown.
        transfers: what is sent to one rank or received from one, in order of time.
        declared: the process groups that the host says it belongs to, whether or not they were used.
    """

    names: list[str]
    groups: list[str]
    purposes: list[str]
    algorithms: list[str]
    name: list[int]
    group: list[int]
    algorithm: list[int]
    step: list[int]
    start_ps: list[int]
    duration_ps: list[int]
    bytes: list[int]
    size: list[int]
    rank: int
    transfers: Transfers
    declared: list[DeclaredGroup]


def collectives_of(trace: HostTrace) -> Collectives:
    """The collectives of a host, found once per trace."""
    return trace.derived("collectives", _find_collectives)


def rows_in_order(trace: HostTrace) -> I64:
    """The events that the columns are of: int64 of shape (n,), in order of time."""
    rows = collective_rows(trace)
    return rows[np.argsort(trace.events.start_ps[rows], kind="stable")]


def _find_collectives(trace: HostTrace) -> Collectives:
    rows = rows_in_order(trace)
    declared = declared_groups(trace)
    facts = _Facts(trace, rows, declared)
    names, name = _numbered([operation_of(text) for text in facts.names()])
    transfers, of_transfers = _find_transfers(trace, facts, declared)
    asked = dict(zip(transfers.collective, of_transfers.groups(), strict=True))
    groups, group = _numbered(
        [own or asked.get(at, "") for at, own in enumerate(facts.groups())] + of_transfers.groups()
    )
    purposes = {at: text for at, text in zip(group, [*facts.purposes(), *of_transfers.purposes()], strict=True) if text}
    own = trace.strings.texts(trace.event_names(rows))
    algorithms, algorithm = _numbered([algorithm_of(text) for text in own])
    return Collectives(
        names=names,
        groups=groups,
        purposes=[purposes.get(at, "") for at in range(len(groups))],
        algorithms=algorithms,
        name=name,
        group=group[: len(rows)],
        algorithm=algorithm,
        step=steps_of_events(trace, rows).tolist(),
        start_ps=trace.events.start_ps[rows].tolist(),
        duration_ps=trace.events.duration_ps[rows].tolist(),
        bytes=facts.bytes([names[at] == "all_gather" for at in name]),
        size=facts.sizes(),
        rank=rank_number(trace),
        transfers=replace(transfers, group=group[len(rows) :]),
        declared=declared,
    )


def rank_number(trace: HostTrace) -> int:
    """The rank recorded in the trace, else the one in the host's name, else -1."""
    stated = trace.stats_of_plane(0).get(stat_names.RANK[0]) if len(trace.planes) else None
    number = _RANK_NUMBER.fullmatch(str(stated))
    if number:
        return int(number[0])
    named = _RANK_IN_NAME.search(trace.host)
    return int(named[1]) if named else -1


def rank_title(rank: int, host: str) -> str:
    """What sentences call a rank; its host if its number is not known (-1)."""
    return f"rank {rank}" if rank >= 0 else host


def _find_transfers(trace: HostTrace, facts: _Facts, declared: Sequence[DeclaredGroup]) -> tuple[Transfers, _Facts]:
    """The sends and receives of a host, without their groups, and their facts.

    The library runs what a program asks for together in one kernel, with no word of it beside the kernel: what was
    asked for since the launch before, and launched nothing itself, is in the next kernel that the same thread launches.
    """
    stated = facts.stated_directions()
    direct = np.flatnonzero(stated)
    aside = _requests_without_launch(trace, facts.chain)
    launch = facts.chain[1] if len(facts.chain) > 1 else np.full(len(stated), -1, np.int64)
    place = _next_launch(trace, aside, np.where(stated == 0, launch, -1))
    place, event = np.append(direct, place), np.append(facts.rows[direct], aside)
    order = np.lexsort((trace.events.start_ps[event], place))
    order = order[place[order] >= 0]
    own = _Facts(trace, event[order], declared)
    sends = own.stated_directions() > 0
    peer = np.where(sends, own.ints(stat_names.SENDS_TO, -1), own.ints(stat_names.RECEIVES_FROM, -1))
    return Transfers(place[order].tolist(), sends.tolist(), peer.tolist(), []), own


def _requests_without_launch(trace: HostTrace, chain: Sequence[I64]) -> I64:
    """Sends and receives that a program asks for and that are around the launch of no collective: rows of events."""
    if not trace.has_stat(stat_names.COLLECTIVE_NAME):
        return np.empty(0, np.int64)
    stated = trace.stat_strings(stat_names.COLLECTIVE_NAME)
    ways = [row for row in distinct(stated[stated > 0]).tolist() if trace.strings[row] in DIRECTIONS]
    asked = np.isin(stated, ways) & is_thread_event(trace)
    for events in chain:
        asked[events[events >= 0]] = False
    return np.flatnonzero(asked)


def _next_launch(trace: HostTrace, rows: I64, launch: I64) -> I64:
    """The first collective that the thread of each event launches after it: int64 of shape (n,), -1 for none.

    Args:
        launch: int64 of shape (collectives,), the calls; -1 for those that do not count.
    """
    found = np.full(len(rows), -1, np.int64)
    lines = trace.events.line
    known = np.flatnonzero(launch >= 0)
    for line in distinct(lines[rows]).tolist():
        mine = known[lines[launch[known]] == line]
        mine = mine[np.argsort(trace.events.start_ps[launch[mine]], kind="stable")]
        here = np.flatnonzero(lines[rows] == line)
        at = np.searchsorted(trace.events.start_ps[launch[mine]], trace.events.start_ps[rows[here]])
        found[here] = np.append(mine, -1)[at]
    return found


def declared_groups(trace: HostTrace) -> list[DeclaredGroup]:
    """The process groups that a recording of PyTorch describes; groups of more than a job can have are left out."""
    stated = trace.stats_of_plane(0).get(stat_names.GROUPS[0]) if len(trace.planes) else None
    try:
        entries = json.loads(stated) if isinstance(stated, str) else []
    except (ValueError, RecursionError):
        return []
    named = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    groups = (_declared_group(entry) for entry in named[:_MOST_GROUPS])
    return list({group.name: group for group in groups if group.name}.values())


def _declared_group(entry: dict[str, object]) -> DeclaredGroup:
    """One group of the list.  PyTorch leaves the ranks of a group of all ranks out, and newer versions say its size."""
    ranks = entry.get("ranks")
    known = isinstance(ranks, list) and ranks and all(isinstance(rank, int) for rank in ranks)
    members = json.dumps(ranks) if known else ""
    sizes = (entry.get("group_size"), entry.get("pg_size"), len(ranks) if isinstance(ranks, list) and known else 0)
    size = next((size for size in sizes if isinstance(size, int) and 0 < size <= _MOST_RANKS), 0)
    purpose = entry.get("pg_desc")
    return DeclaredGroup(
        name=str(entry.get("pg_name") or "")[:_LONGEST_NAME],
        purpose=purpose[:_LONGEST_NAME] if isinstance(purpose, str) and purpose not in _NO_PURPOSE else "",
        ranks=members if len(members) <= _LONGEST_RANKS else "",
        size=size,
    )


def _numbered(texts: list[str]) -> tuple[list[str], list[int]]:
    places: dict[str, int] = {}
    numbers = [places.setdefault(text, len(places)) for text in texts]
    return list(places), numbers


class _Facts:
    """Facts recorded with collectives, or with the calls around their launches.

    Attributes:
        rows: the events; chain: these and the calls around them, see `_calls_around`.
    """

    def __init__(self, trace: HostTrace, rows: I64, declared: Sequence[DeclaredGroup]) -> None:
        self._trace = trace
        self.rows = rows
        self._declared = {group.name: group for group in declared}
        self.chain = _calls_around(trace, rows)

    def _first(self, column: I64, missing: int) -> I64:
        """The value nearest to each collective."""
        found = np.full(len(self.rows), missing, np.int64)
        for events in reversed(self.chain):
            value = np.where(events >= 0, column[np.maximum(events, 0)], missing)
            found = np.where(value != missing, value, found)
        return found

    def _texts(self, names: tuple[str, ...]) -> I64:
        return (
            self._first(self._trace.stat_strings(names), -1) if self._trace.has_stat(names) else self._fill_missing(-1)
        )

    def ints(self, names: tuple[str, ...], missing: int) -> I64:
        known = self._trace.has_stat(names)
        return self._first(self._trace.stat_ints(names, missing), missing) if known else self._fill_missing(missing)

    def _fill_missing(self, missing: int) -> I64:
        return np.full(len(self.rows), missing, np.int64)

    def names(self) -> list[str]:
        """The best name of each collective: from its facts, from the call around it, or its own."""
        trace = self._trace
        own = trace.event_names(self.rows).astype(np.int64)
        kind = trace.events.kind
        for events in reversed(self.chain[1:]):
            calls = (events >= 0) & (kind[np.maximum(events, 0)] == K.COLLECTIVE_CALL)
            own = np.where(calls, trace.event_names(np.maximum(events, 0)), own)
        stated = self._texts(stat_names.COLLECTIVE_NAME)
        return [trace.strings[row] for row in np.where(stated > 0, stated, own).tolist()]

    def stated_directions(self) -> I64:
        """1 for what is stated to send to one rank, -1 for what receives from one, else 0: int64 of shape (n,)."""
        stated = self._texts(stat_names.COLLECTIVE_NAME).tolist()
        return np.array([DIRECTIONS.get(self._trace.strings[row], 0) if row > 0 else 0 for row in stated], np.int64)

    def groups(self) -> list[str]:
        """Name and ranks of each collective's process group."""
        text = self._trace.strings
        ranks = [text[row] if row > 0 else "" for row in self._texts(stat_names.GROUP_RANKS).tolist()]
        members = [own or group.ranks for own, group in zip(ranks, self._groups, strict=True)]
        return [f"{name}|{of}" if name or of else "" for name, of in zip(self._group_names, members, strict=True)]

    @cached_property
    def _group_names(self) -> list[str]:
        """The name of each collective's group; where the host belongs to one group alone, it is that."""
        rows = self._texts(stat_names.GROUP_NAME).tolist()
        only = next(iter(self._declared)) if len(self._declared) == 1 else ""
        return [self._trace.strings[row] if row > 0 else only for row in rows]

    @cached_property
    def _groups(self) -> list[DeclaredGroup]:
        """What is declared of each collective's group."""
        unknown = DeclaredGroup("", "", "", 0)
        return [self._declared.get(name, unknown) for name in self._group_names]

    def purposes(self) -> list[str]:
        """What the program calls each collective's process group, empty if unknown."""
        rows = self._texts(stat_names.GROUP_DESCRIPTION).tolist()
        texts = [self._trace.strings[row] if row > 0 else "" for row in rows]
        return [own or group.purpose for own, group in zip(texts, self._groups, strict=True)]

    def sizes(self) -> list[int]:
        """Number of participating ranks, 0 if unknown."""
        stated = self.ints(stat_names.GROUP_SIZE, 0).tolist()
        world = world_size(self._trace)
        return [own if own > 0 else group.size or world for own, group in zip(stated, self._groups, strict=True)]

    def bytes(self, gathers: Sequence[bool]) -> list[int]:
        """Bytes of each collective, 0 if unknown; `gathers` marks those whose input is one rank's share."""
        most = np.maximum(self.ints(stat_names.COLLECTIVE_IN, -1), self.ints(stat_names.COLLECTIVE_OUT, -1))
        types = self._texts(stat_names.COLLECTIVE_TYPE)
        dims, kinds = self._texts(stat_names.INPUT_DIMS), self._texts(stat_names.INPUT_TYPES)
        text = self._trace.strings
        return [
            count * size
            if 0 <= count < _MOST_ELEMENTS and (size := bytes_of_type(text[kind]))
            else _input_bytes(text[shape], text[of]) * (max(ranks, 1) if gathered else 1)
            for count, kind, shape, of, ranks, gathered in zip(
                most.tolist(), types.tolist(), dims.tolist(), kinds.tolist(), self.sizes(), gathers, strict=True
            )
        ]


def world_size(trace: HostTrace) -> int:
    """Ranks of the whole job, 0 if unknown."""
    stated = trace.stats_of_plane(0).get(stat_names.WORLD_SIZE[0]) if len(trace.planes) else None
    return stated if isinstance(stated, int) and 0 < stated <= _MOST_RANKS else 0


def _calls_around(trace: HostTrace, rows: I64) -> list[I64]:
    """The collectives, the calls that launched them, and the calls enclosing those on the thread, level by level.

    Each is int64 of shape (n,), -1 if there is no further call.
    """
    found = attribute(trace)
    at = np.searchsorted(found.rows, rows)
    known = at < len(found.rows)
    at = np.minimum(at, max(len(found.rows) - 1, 0))
    here = np.where(known & (found.rows[at] == rows), found.call[at], rows) if len(found.rows) else rows
    chain, parent = [rows], forest(trace).parent
    for _ in range(_MOST_CLIMB):
        if not (here >= 0).any():
            break
        chain.append(here)
        here = np.where(here >= 0, parent[np.maximum(here, 0)], -1)
    return chain


@lru_cache(maxsize=4096)
def _input_bytes(dims: str, types: str) -> int:
    """Bytes of an op's input tensors, 0 if none is known.

    >>> _input_bytes("[[16,2]]", '["float"]')
    128
    """
    try:
        shapes, kinds = json.loads(dims), json.loads(types)
    except (ValueError, RecursionError):
        return 0
    if not isinstance(shapes, list) or not isinstance(kinds, list):
        return 0
    total = 0
    for shape, kind in zip(shapes, kinds, strict=False):
        size = (
            bytes_of_type(kind) if isinstance(kind, str) and kind not in ("Scalar", "ScalarList", "TensorList") else 0
        )
        if size and isinstance(shape, list) and shape and all(isinstance(extent, int) for extent in shape):
            total += size * math.prod(shape)
    return total if 0 <= total < _MOST_ELEMENTS else 0
