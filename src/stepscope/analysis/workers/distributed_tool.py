"""Ranks of one job: how each divides its time between computation and communication, and which waits for which.

Communication that happens while the same rank computes costs nothing; what is exposed does. A rank that reaches a
collective early waits inside it for the others, so that the same collective lasts longer there. The shortest of the
ranks' durations is what moving the data takes (transfer); what a rank needs beyond that is waiting. The rank for which
a collective is shortest came last, and the others' waiting is put to its account: the rank with the largest account
holds the others up. This needs no common clock.

The same collective on different ranks is told by its step, its process group, its operation, its size, and its place
among those; the same step by its number, and by its place among the steps of that number where a program counts from 0
again. Steps that the program did not number are laid side by side by the ranks' clocks, as in the overview. Where ranks
recorded different numbers of collectives of a size, none of these are compared, and that is said.

Bandwidth is that of the bus as NCCL's tests define it: data by transfer time, times 2 (n - 1) / n for an all-reduce
among n ranks, (n - 1) / n for all-gather, reduce-scatter and all-to-all, 1 for the rest. On a single rank the time
includes waiting, and the bandwidth is a lower bound.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import field
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.session_steps import (
    StepsOfHost,
    align,
    hosts_with_steps,
    steps_of_host,
    warn_of_missing_steps,
)
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.analysis.workers.collectives import Collectives, collective_rows, collectives_of
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Prose,
    Report,
    Role,
    Rows,
    Section,
    fields_named,
    number_text,
    percent,
    round_ms,
    round_us,
)

K = EventKind

WORTH_NAMING_PERCENT = 3.0  # of the ranks' time; less waiting is not a finding
_COMPUTES = (K.KERNEL, K.DEVICE_OP, K.GRAPH_LAUNCH)
_HOST_COMPUTES = (K.OP, K.BACKWARD)
_RANK_NUMBER = re.compile(r"[0-9]{1,9}")
_RANK_IN_NAME = re.compile(r"rank[-_. ]?([0-9]{1,9})", re.IGNORECASE)
_PARTS = ("compute", "communication", "overlap", "exposed", "other_work", "idle")

_RANK = Field("rank", "number", "the process's rank in its job; unknown if not recorded", "int", role=Role.ORDINAL)
_HOST = Field("host", "text", "the host, as its file names it", "str", role=Role.HOST)
_PART_FIELDS: tuple[Field, ...] = (
    Field("compute_ms", "ms", "time in which the rank computes, overlapped or not; without devices, time in ops"),
    Field("communication_ms", "ms", "time in which the rank takes part in collectives"),
    Field("overlap_ms", "ms", "communication overlapped with computation"),
    Field("exposed_ms", "ms", "exposed communication: the part without computation"),
    Field("other_work_ms", "ms", "time with only other device work, such as copies"),
    Field("idle_ms", "ms", "time without any of these"),
)
RANK_FIELDS: tuple[Field, ...] = (
    _RANK,
    _HOST,
    Field("span_ms", "ms", "time from the start of the first work to the end of the last; the parts divide it"),
    *_PART_FIELDS,
    Field("overlap_percent", "percent", "overlap as a share of communication"),
    Field("waiting_ms", "ms", "time in collectives beyond that of the last rank to arrive; needs several ranks"),
    Field("waiting_percent", "percent", "waiting as a share of the span"),
    Field("held_up_ms", "ms", "mean wait of the other ranks in collectives to which this rank came last"),
    Field("last_count", "count", "collectives to which it came last", "int"),
)
COLLECTIVE_FIELDS: tuple[Field, ...] = (
    Field("operation", "text", "its operation: all_reduce, all_gather, ...", "str", role=Role.LABEL),
    Field("ranks", "count", "participating ranks; unknown if not recorded", "int"),
    Field("group", "text", "the process group's name and ranks, if recorded", "str", role=Role.LABEL),
    Field("bytes", "bytes", "data of one such collective on one rank; unknown if not recorded", "int"),
    Field("count", "count", "runs, summed over ranks", "int"),
    Field("total_us", "us", "its time, summed over ranks"),
    Field("avg_us", "us", "its time per run and rank"),
    Field("transfer_us", "us", "the ranks' shortest duration, mean over runs; unknown unless ranks were compared"),
    Field("waiting_us", "us", "mean time beyond that, per run and rank"),
    Field("bus_gb_per_s", "GB/s", "bus bandwidth over the transfer time; with a single rank, over the whole time"),
    Field("last", "text", "the rank that came last most often", "str", role=Role.PLACE),
)
STEP_FIELDS: tuple[Field, ...] = (
    Field("step", "number", "the step's number", "int", role=Role.STEP),
    _RANK,
    _HOST,
    Field("duration_ms", "ms", "duration of the step on this rank"),
    *_PART_FIELDS,
    Field("waiting_ms", "ms", "time in the step's collectives beyond that of the last rank to arrive"),
)


@dataclass(frozen=True)
class Window:
    """The parts of a window; `parts_ps` in the order compute, communication, overlap, exposed, other_work, idle."""

    duration_ps: int
    parts_ps: list[int]


@dataclass(frozen=True)
class Partial:
    """The part of one rank; `rank` is -1 if unknown, `whole` is the time from first to last work."""

    origin: Origin
    stepping: StepsOfHost
    rank: int
    whole: Window
    steps: list[Window]
    collectives: Collectives


@dataclass(frozen=True, kw_only=True)
class DistributedReport(Report):
    """Ranks, their collectives and their steps; see the FIELDS tables of this module."""

    TOOL: ClassVar[str] = "distributed"

    findings: tuple[str, ...]
    slowest_rank: str | None
    rows: tuple[dict[str, Cell], ...]
    collectives: tuple[dict[str, Cell], ...]
    steps: tuple[dict[str, Cell], ...]

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {
            "findings": list(self.findings),
            "slowest_rank": self.slowest_rank,
            "rows": list(self.rows),
            "collectives": list(self.collectives),
            "steps": list(self.steps),
        }

    def sections(self) -> Sequence[Section]:
        """Findings, the ranks, the collectives, and every step on every rank."""
        return [
            Prose("findings", "Ranks compared", self.findings),
            Rows("rows", "Ranks", RANK_FIELDS, self.rows, "no rank did any work"),
            Rows("collectives", "Collectives", COLLECTIVE_FIELDS, self.collectives, _NO_COLLECTIVES),
            Rows("steps", "Steps by rank", STEP_FIELDS, self.steps, "no steps"),
        ]


_NO_COLLECTIVES = "no collectives: this process trains alone, or its communication was not recorded"


COMPARABLES = (
    Comparable(
        id="collectives",
        title="Collectives",
        keys=fields_named(COLLECTIVE_FIELDS, "operation", "ranks", "bytes"),
        measure=Field("total_us", "us", "time of the collective, summed over the recorded ranks"),
        rows=attrgetter("collectives"),
        count="count",
        is_total=True,
        empty="neither side has collectives",
    ),
)


# -- one rank ------------------------------------------------------------------------------------------------------


def partial(trace: HostTrace) -> Partial:
    """The part of one rank."""
    compute, communication, anything = _work(trace)
    steps = steps_of(trace)
    bounds = (int(anything.start[0]), int(anything.end[-1])) if len(anything.start) else (0, 0)
    begin, end = np.append(steps.start_ps, bounds[0]), np.append(steps.end_ps, bounds[1])
    both = compute | communication
    c, m, cm, w = (part.overlap_ps(begin, end) for part in (compute, communication, both, anything))
    parts = np.stack([c, m, c + m - cm, cm - c, w - cm, end - begin - w], axis=1).tolist()
    windows = [Window(*row) for row in zip((end - begin).tolist(), parts, strict=True)]
    return Partial(
        origin_of(trace), steps_of_host(trace), rank_of(trace), windows[-1], windows[:-1], collectives_of(trace)
    )


def _work(trace: HostTrace) -> tuple[Spans, Spans, Spans]:
    """When the rank computes, communicates, and does any work."""
    device, kind, collectives = is_device_work(trace), trace.events.kind, collective_rows(trace)
    if device.any():
        computes, all_work = np.flatnonzero(device & np.isin(kind, _COMPUTES)), np.flatnonzero(device)
    else:
        threads = is_thread_event(trace)
        computes = np.flatnonzero(threads & np.isin(kind, _HOST_COMPUTES))
        all_work = computes
    communication = spans_of(trace, collectives)
    return spans_of(trace, computes), communication, spans_of(trace, all_work) | communication


def rank_of(trace: HostTrace) -> int:
    """The rank recorded in the trace, else the one in the host's name, else -1."""
    stated = trace.stats_of_plane(0).get(stat_names.RANK[0]) if len(trace.planes) else None
    number = _RANK_NUMBER.fullmatch(str(stated))
    if number:
        return int(number[0])
    named = _RANK_IN_NAME.search(trace.host)
    return int(named[1]) if named else -1


# -- all ranks -----------------------------------------------------------------------------------------------------

_Step = tuple[int, int]  # equal for the same step of different ranks; ascending in the order of the steps
_NO_STEP: _Step = (-1, -1)


@dataclass
class _Account:
    """The comparison's figures of one rank; `waiting_ps` by step."""

    waiting_ps: Counter[_Step] = field(default_factory=Counter)
    held_up_ps: float = 0.0
    last: int = 0


@dataclass
class _Group:
    """Collectives of one kind on all ranks: operation, process group, bytes, number of ranks."""

    count: int = 0
    total_ps: int = 0
    compared: int = 0
    transfer_ps: int = 0
    waiting_ps: int = 0
    occurrences: int = 0
    last: Counter[str] = field(default_factory=Counter)


_Key = tuple[str, str, int, int]


def merge(partials: Sequence[Partial]) -> DistributedReport:
    """Compares all ranks."""
    ordered = sorted(partials, key=lambda part: (part.rank < 0, part.rank))
    accounts = [_Account() for _ in ordered]
    groups: dict[_Key, _Group] = {}
    for part in ordered:
        _count_collectives(part, groups)
    steps = _match_steps(ordered)
    uneven = _compare(ordered, steps, accounts, groups)
    compared = any(group.compared for group in groups.values())
    slowest, findings = _findings(ordered, accounts, compared)
    return DistributedReport(
        **header([part.origin for part in partials], _warnings(ordered, uneven)),
        findings=tuple(findings),
        slowest_rank=slowest,
        rows=tuple(_rank_row(part, account, compared) for part, account in zip(ordered, accounts, strict=True)),
        collectives=tuple(_collective_rows(groups)),
        steps=tuple(_step_rows(ordered, steps, accounts, compared)),
    )


def _name(part: Partial) -> str:
    return f"rank {part.rank}" if part.rank >= 0 else part.origin.host


def _match_steps(parts: Sequence[Partial]) -> list[list[_Step]]:
    """For each rank, the keys of its steps; empty for a rank without steps if others have some."""
    hosts = [part.stepping for part in parts]
    taking = hosts_with_steps(hosts)
    if not all(host.numbered for host in taking):
        return _match_by_clock(hosts)
    return [_number_steps(host) if any(host is each for each in taking) else [] for host in hosts]


def _number_steps(host: StepsOfHost) -> list[_Step]:
    """The key of each step: how many earlier steps have its number, and the number."""
    seen: Counter[int] = Counter()
    steps = []
    for row in host.rows:
        steps.append((seen[row.number], row.number))
        seen[row.number] += 1
    return steps


def _match_by_clock(hosts: Sequence[StepsOfHost]) -> list[list[_Step]]:
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


def _keys(part: Partial) -> list[_Key]:
    of = part.collectives
    return [
        (of.names[name], of.groups[group], size, count)
        for name, group, size, count in zip(of.name, of.group, of.bytes, of.size, strict=True)
    ]


def _count_collectives(part: Partial, groups: dict[_Key, _Group]) -> None:
    for key, duration in zip(_keys(part), part.collectives.duration_ps, strict=True):
        group = groups.setdefault(key, _Group())
        group.count += 1
        group.total_ps += duration


def _compare(
    parts: Sequence[Partial],
    steps: Sequence[Sequence[_Step]],
    accounts: Sequence[_Account],
    groups: dict[_Key, _Group],
) -> int:
    """Compares the same collectives on different ranks; returns how many could not be compared."""
    places: dict[tuple[_Step, str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank, part in enumerate(parts):
        of, own = part.collectives, steps[rank]
        if part.steps and not own:
            continue
        for at, (row, name, group) in enumerate(zip(of.step, of.name, of.group, strict=True)):
            step = own[row] if row >= 0 else _NO_STEP
            places[step, of.names[name], of.groups[group]][rank].append(at)
    uneven = 0
    for (step, _, _), found in places.items():
        if len(found) < 2:
            continue
        for same in _by_bytes(parts, found):
            if len(same) < len(found) or len({len(rows) for rows in same.values()}) > 1:
                uneven += max(map(len, same.values()))
                continue
            for rows in zip(*same.values(), strict=True):
                _compare_collective(parts, accounts, groups, step, dict(zip(same, rows, strict=True)))
    return uneven


def _by_bytes(parts: Sequence[Partial], found: dict[int, list[int]]) -> Iterable[dict[int, list[int]]]:
    """The collectives of each rank, split by their sizes: what moves different amounts of data is not the same."""
    split: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank, rows in found.items():
        for at in rows:
            split[parts[rank].collectives.bytes[at]][rank].append(at)
    return split.values()


def _compare_collective(
    parts: Sequence[Partial],
    accounts: Sequence[_Account],
    groups: dict[_Key, _Group],
    step: _Step,
    rows: dict[int, int],
) -> None:
    """Compares one collective; `rows` is its index on each participating rank."""
    durations = {rank: parts[rank].collectives.duration_ps[at] for rank, at in rows.items()}
    last = min(durations, key=durations.__getitem__)
    transfer = durations[last]
    waits = {rank: duration - transfer for rank, duration in durations.items()}
    for rank, wait in waits.items():
        accounts[rank].waiting_ps[step] += wait
    waited = sum(waits.values())
    accounts[last].held_up_ps += waited / (len(waits) - 1)
    accounts[last].last += waited > 0  # if all took equally long, none came last
    of, at = parts[last].collectives, rows[last]
    group = groups[of.names[of.name[at]], of.groups[of.group[at]], of.bytes[at], of.size[at]]
    group.compared += 1
    group.occurrences += len(rows)
    group.transfer_ps += transfer
    group.waiting_ps += waited
    group.last[_name(parts[last])] += waited > 0


# -- for the report ------------------------------------------------------------------------------------------------


def _parts(window: Window) -> dict[str, Cell]:
    return {f"{name}_ms": round_ms(ps) for name, ps in zip(_PARTS, window.parts_ps, strict=True)}


def _rank_row(part: Partial, account: _Account, compared: bool) -> dict[str, Cell]:
    whole, waiting = part.whole, sum(account.waiting_ps.values())
    return {
        "rank": part.rank if part.rank >= 0 else None,
        "host": part.origin.host,
        "span_ms": round_ms(whole.duration_ps),
        **_parts(whole),
        "overlap_percent": percent(whole.parts_ps[2], whole.parts_ps[1]),
        "waiting_ms": round_ms(waiting) if compared else None,
        "waiting_percent": percent(waiting, whole.duration_ps) if compared else None,
        "held_up_ms": round_ms(account.held_up_ps) if compared else None,
        "last_count": account.last if compared else None,
    }


def _step_rows(
    parts: Sequence[Partial], steps: Sequence[Sequence[_Step]], accounts: Sequence[_Account], compared: bool
) -> list[dict[str, Cell]]:
    rows = [
        (key, part, account, step)
        for part, own, account in zip(parts, steps, accounts, strict=True)
        for key, step in zip(own, part.steps, strict=False)
    ]
    return [
        {
            "step": key[1],
            "rank": part.rank if part.rank >= 0 else None,
            "host": part.origin.host,
            "duration_ms": round_ms(step.duration_ps),
            **_parts(step),
            "waiting_ms": round_ms(account.waiting_ps[key]) if compared else None,
        }
        for key, part, account, step in sorted(rows, key=lambda row: row[0])
    ]


def _collective_rows(groups: dict[_Key, _Group]) -> Iterable[dict[str, Cell]]:
    for (name, members, size, ranks), group in sorted(groups.items(), key=lambda item: -item[1].total_ps):
        mean_ps = group.total_ps / group.count
        transfer = group.transfer_ps / group.compared if group.compared else None
        yield {
            "operation": name,
            "ranks": ranks or None,
            "group": members.replace("|", " ").strip() or None,
            "bytes": size or None,
            "count": group.count,
            "total_us": round_us(group.total_ps),
            "avg_us": round_us(mean_ps),
            "transfer_us": None if transfer is None else round_us(transfer),
            "waiting_us": round_us(group.waiting_ps / group.occurrences) if group.occurrences else None,
            "bus_gb_per_s": _bandwidth(name, size, ranks, mean_ps if transfer is None else transfer),
            "last": max(group.last, key=group.last.__getitem__) if group.last.total() else None,
        }


def _bandwidth(name: str, size: int, ranks: int, time_ps: float) -> float | None:
    if not size or ranks < 2 or time_ps <= 0:
        return None
    share = (ranks - 1) / ranks
    factor = {"all_reduce": 2 * share, "all_gather": share, "reduce_scatter": share, "all_to_all": share}.get(name, 1.0)
    return round(size * factor / time_ps * 1e3, 6)


def _findings(parts: Sequence[Partial], accounts: Sequence[_Account], compared: bool) -> tuple[str | None, list[str]]:
    """The straggler, if there is one, and the findings as sentences."""
    told = [_cost_text(part) for part in parts if part.whole.parts_ps[1]]
    if not compared:
        return None, told
    worst = max(range(len(parts)), key=lambda rank: accounts[rank].held_up_ps)
    held_up = accounts[worst].held_up_ps
    share = percent(held_up, max(part.whole.duration_ps for part in parts)) or 0.0
    if share < WORTH_NAMING_PERCENT:
        return None, [f"no rank is a straggler: ranks wait {share:.1f} % of the time for each other", *told]
    whole = sum(account.held_up_ps for account in accounts)
    name = _name(parts[worst])
    said = (
        f"{name} is the straggler: it comes last to {accounts[worst].last} collectives, in which each of the others "
        f"waits {number_text(held_up / 1e9)} ms in total ({share:.1f} % of the time, "
        f"{100 * held_up / whole:.0f} % of all waiting)"
    )
    return name, [said, *told]


def _cost_text(part: Partial) -> str:
    whole = part.whole
    exposed = percent(whole.parts_ps[3], whole.duration_ps) or 0.0
    overlap = percent(whole.parts_ps[2], whole.parts_ps[1]) or 0.0
    return (
        f"{_name(part)}: exposed communication takes {exposed:.1f} % of the time; {overlap:.1f} % of all communication "
        "is overlapped"
    )


def _warnings(parts: Sequence[Partial], uneven: int) -> Iterable[str]:
    hosts = [part.stepping for part in parts]
    yield from warn_of_missing_steps(hosts, hosts_with_steps(hosts))
    if uneven:
        yield f"{uneven} collectives differ between ranks, as if some were not recorded; they are not compared"
    world = max((size for part in parts for size in part.collectives.size), default=0)
    if 0 < len(parts) < world:
        present = "ranks is" if len(parts) == 1 else "ranks are"
        covered = "is unknown" if len(parts) == 1 else f"covers these {len(parts)}"
        yield f"only {len(parts)} of {world} {present} present: waiting between ranks {covered}"
