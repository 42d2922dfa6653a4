"""The same steps and collectives on different ranks, and what they say about the ranks' clocks.

A step is recognised by its number, and by its place among the steps of that number; where a program numbers none, by
the clocks.  A collective is recognised by its step, process group, operation, size, and its place among those.  A send
is recognised by its step, process group, both ranks, and its place among those: the library keeps their order.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from stepscope.analysis.steps.session_steps import StepsOfHost, align, hosts_with_steps
from stepscope.analysis.workers.clocks import ENDS_TOGETHER, ClockOffset, clock_offsets
from stepscope.analysis.workers.collectives import Collectives
from stepscope.records import dataclass
from stepscope.vocabulary.collectives import PIPELINE_OPERATION

StepKey = tuple[int, int]
"""Equal for the same step of different ranks; ascending in the order of the steps."""

Matched = dict[int, int]
"""The place of one collective among those of each rank that took part."""

_NO_STEP: StepKey = (-1, -1)
_MOST_NAMED = 10


def match_steps(hosts: Sequence[StepsOfHost]) -> list[list[StepKey]]:
    """For each rank, the keys of its steps; empty for a rank without steps if others have some."""
    taking = hosts_with_steps(hosts)
    if not all(host.numbered for host in taking):
        return _match_by_clock(hosts)
    return [_number_steps(host) if any(host is each for each in taking) else [] for host in hosts]


def describe_other_steps(steps: Sequence[Sequence[StepKey]]) -> list[str]:
    """The steps that some ranks lack though others recorded them, in a sentence; none if there are none."""
    ranks = sum(map(bool, steps))
    times = Counter(key for own in steps for key in own)
    some = [f"step {key[1]} by {times[key]} of {ranks} ranks" for key in sorted(times) if times[key] < ranks]
    listed = ", ".join(some[:_MOST_NAMED]) + (f" and {len(some) - _MOST_NAMED} more" if some[_MOST_NAMED:] else "")
    return [f"not all ranks recorded the same steps: {listed}; the other ones are compared"] if some else []


def _number_steps(host: StepsOfHost) -> list[StepKey]:
    """The key of each step: how many earlier steps have its number, and the number."""
    seen: Counter[int] = Counter()
    steps = []
    for row in host.rows:
        steps.append((seen[row.number], row.number))
        seen[row.number] += 1
    return steps


def _match_by_clock(hosts: Sequence[StepsOfHost]) -> list[list[StepKey]]:
    """The index of each step among the steps of all hosts, counted from the first step on any host."""
    aligned = align(hosts)
    together = dict(zip(aligned.hosts, zip(*aligned.steps, strict=True), strict=False))
    first = {
        host.host: next((at for at, row in enumerate(host.rows) if row is together[host.host][0]), 0)
        for host in hosts
        if host.host in together
    }
    before = max(first.values(), default=0)
    return [
        [(0, at - first.get(host.host, 0) + before) for at in range(len(host.rows) * (host.host in aligned.hosts))]
        for host in hosts
    ]


def match_collectives(
    hosts: Sequence[StepsOfHost], collectives: Sequence[Collectives], steps: Sequence[Sequence[StepKey]]
) -> tuple[list[tuple[StepKey, Matched]], int]:
    """The same collectives on different ranks with their steps, and how many could not be matched.

    Args:
        hosts, collectives, steps: of each rank its steps, its collectives, and the keys of its steps.
    """
    places: dict[tuple[StepKey, str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank, of in enumerate(collectives):
        own = steps[rank]
        if hosts[rank].rows and not own:
            continue
        directed = set(of.transfers.collective)
        for at, (row, name, group) in enumerate(zip(of.step, of.name, of.group, strict=True)):
            if at in directed or _joins_several(of, at):
                continue
            step = own[row] if row >= 0 else _NO_STEP
            places[step, of.names[name], of.groups[group]][rank].append(at)
    matched: list[tuple[StepKey, Matched]] = []
    uneven = 0
    for (step, _, _), found in places.items():
        if len(found) < 2:
            continue
        for same in _split_by_size(collectives, found):
            if len(same) < len(found) or len({len(rows) for rows in same.values()}) > 1:
                uneven += max(map(len, same.values()))
                continue
            for rows in zip(*same.values(), strict=True):
                matched.append((step, dict(zip(same, rows, strict=True))))
    return matched, uneven


def _joins_several(of: Collectives, at: int) -> bool:
    """Whether it is a send or a receive of no recorded direction in a group of more than two: its partner is not
    known."""
    return of.names[of.name[at]] == PIPELINE_OPERATION and len(members_of(of.groups[of.group[at]])) != 2


def members_of(group: str) -> list[int]:
    """The ranks of a process group as collectives name it, `name|[ranks]`; empty if unknown or not all listed.

    >>> members_of("5|[0, 2]"), members_of("world|")
    ([0, 2], [])
    """
    try:
        ranks = json.loads(group.partition("|")[2])
    except ValueError:
        return []
    return ranks if isinstance(ranks, list) and all(isinstance(rank, int) for rank in ranks) else []


def name_groups(ranks: Sequence[Collectives]) -> list[Collectives]:
    """The collectives of ranks; those that recorded no group are in one of another rank, the only one that lists this
    rank and has the same operation with the same size."""
    listed: dict[tuple[int, str, int], dict[str, str]] = defaultdict(dict)
    for of in ranks:
        for name, group, size in set(zip(of.name, of.group, of.bytes, strict=True)):
            for member in members_of(of.groups[group]):
                listed[member, of.names[name], size][of.groups[group]] = of.purposes[group]
    return [_name_own_groups(of, listed) for of in ranks]


def _name_own_groups(of: Collectives, listed: dict[tuple[int, str, int], dict[str, str]]) -> Collectives:
    if "" not in of.groups:
        return of
    columns = [*zip(of.name, of.group, of.bytes, strict=True)]
    groups, purposes, place = [*of.groups], [*of.purposes], {row: row[1] for row in columns}
    for name, group, size in sorted(place):
        found = listed.get((of.rank, of.names[name], size), {})
        if not of.groups[group] and len(found) == 1:
            place[name, group, size] = len(groups)
            groups.extend(found)
            purposes.extend(found.values())
    own = [place[row] for row in columns]
    asked = zip(of.transfers.collective, of.transfers.group, strict=True)
    transfers = replace(of.transfers, group=[own[at] if not of.groups[group] else group for at, group in asked])
    return replace(of, groups=groups, purposes=purposes, group=own, transfers=transfers)


Pair = tuple[tuple[int, int], tuple[int, int]]
"""A send and its receive, each as the place of its rank and that of its kernel among the rank's collectives."""


@dataclass(frozen=True)
class MatchedTransfers:
    """Sends with their receives.

    Attributes:
        pairs: in no order; steps: the step of each.
        uneven: how many could not be matched though both ranks are here; unknown: how many do not say with whom.
    """

    pairs: list[Pair]
    steps: list[StepKey]
    uneven: int
    unknown: int


def match_transfers(collectives: Sequence[Collectives], steps: Sequence[Sequence[StepKey]]) -> MatchedTransfers:
    """Matches what each rank sends with what another one receives.

    Args:
        steps: the keys of the steps of each rank.
    """
    ends: dict[tuple[StepKey, str, int, int], tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {}
    unknown = 0
    for place, of in enumerate(collectives):
        columns = zip(of.transfers.collective, of.transfers.sends, of.transfers.peer, of.transfers.group, strict=True)
        members = [members_of(group) for group in of.groups]
        for at, sends, stated, group in columns:
            peer = _resolve_peer(stated, of.rank, members[group])
            row = of.step[at]
            if peer < 0:
                unknown += 1
            elif row < len(steps[place]):
                step = steps[place][row] if row >= 0 else _NO_STEP
                key = (step, of.groups[group], *((of.rank, peer) if sends else (peer, of.rank)))
                ends.setdefault(key, ([], []))[0 if sends else 1].append((place, at))
    present, found = {of.rank for of in collectives}, MatchedTransfers([], [], 0, unknown)
    uneven = 0
    for (step, _, source, target), (sent, received) in ends.items():
        if len(sent) == len(received):
            found.pairs.extend(zip(sent, received, strict=True))
            found.steps.extend([step] * len(sent))
        elif source in present and target in present:
            uneven += max(len(sent), len(received))
    return replace(found, uneven=uneven)


def _resolve_peer(stated: int, own: int, members: Sequence[int]) -> int:
    """The rank at the other end in the job; -1 if unknown.

    PyTorch states the place in the group, others the rank in the job; a group of two leaves no doubt.
    """
    others = [rank for rank in members if rank != own]
    if own < 0:
        return -1
    if len(members) == 2 and len(others) == 1:
        return others[0]
    if stated < 0 or stated in others or not members:
        return stated
    return members[stated] if stated < len(members) and members[stated] != own else -1


def _split_by_size(collectives: Sequence[Collectives], found: dict[int, list[int]]) -> Iterable[dict[int, list[int]]]:
    """The collectives of each rank, split by their sizes: what moves different amounts of data is not the same."""
    split: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank, rows in found.items():
        for at in rows:
            split[collectives[rank].bytes[at]][rank].append(at)
    return split.values()


def estimate_clocks(
    hosts: Sequence[StepsOfHost], collectives: Sequence[Collectives], matched: Sequence[Matched]
) -> list[ClockOffset | None]:
    """How far each rank's clock is ahead, from matched collectives; None where it is not known."""
    ends = []
    for rows in matched:
        rank, at = next(iter(rows.items()))
        if collectives[rank].names[collectives[rank].name[at]] in ENDS_TOGETHER:
            own = ((each, collectives[each], place) for each, place in rows.items())
            ends.append({each: of.start_ps[place] + of.duration_ps[place] for each, of, place in own})
    return clock_offsets([host.start_unix_ns for host in hosts], ends)


def correct_clocks(
    hosts: Sequence[StepsOfHost], collectives: Sequence[Collectives]
) -> tuple[list[StepsOfHost], float | None]:
    """The steps of all hosts by clocks that are set right where they are known to be wrong.

    Returns:
        The steps, in the same order, and how far the clocks were apart in ps; None if none is known to be wrong.
    """
    matched, _ = match_collectives(hosts, collectives, match_steps(hosts))
    clocks = estimate_clocks(hosts, collectives, [rows for _, rows in matched])
    ahead = [clock.offset_ps if clock and clock.is_wrong else 0.0 for clock in clocks]
    corrected = [
        host
        if host.start_unix_ns is None or not by
        else replace(host, start_unix_ns=host.start_unix_ns - round(by / 1000))
        for host, by in zip(hosts, ahead, strict=True)
    ]
    return corrected, max(ahead, default=0.0) - min(ahead, default=0.0) or None
