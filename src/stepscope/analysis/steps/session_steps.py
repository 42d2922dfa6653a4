"""What one host says of its steps, and how the steps of several hosts are brought together.

Steps of different hosts are the same step if the program numbered them so.  Where it did not, the hosts' steps are
laid side by side with the shift that makes them overlap most on the wall clock; without a clock, one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepscope.analysis.steps.breakdown import CATEGORIES, Breakdown, breakdown
from stepscope.analysis.steps.find_steps import HostSteps, steps_of
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.analysis.trace.origin import origin_of
from stepscope.model import HostTrace
from stepscope.records import dataclass

_LEAST_CERTAIN_FIRST = ("none", "inferred", "markers")
_MOST_TOLD = 3  # ways in which hosts know their steps, in a sentence


@dataclass(frozen=True)
class StepRow:
    """One step on one host; times in ps from the host's session start, `parts_ps` in the order of CATEGORIES."""

    number: int
    name: str
    start_ps: int
    duration_ps: int
    complete: bool
    parts_ps: list[int]

    def part(self, category: str) -> int:
        """Time of one category in ps."""
        return self.parts_ps[CATEGORIES.index(category)]


@dataclass(frozen=True)
class StepsOfHost:
    """The steps of one host and how far they can be trusted.

    Attributes:
        source, how, confidence, numbered: see `stepscope.analysis.steps.find_steps.HostSteps`.
        start_unix_ns: wall-clock time of the session's start, None if unknown.
        has_device: the host's trace has device work.
        rows: the steps in order of time.
        between_ps: the time between the steps by category, all gaps together; zeros where steps overlap, empty where
            they are not those of one thread.
        problems: what is wrong with the host's trace, as sentences.
        partial: a part of the host's recording is missing.
    """

    host: str
    source: str
    how: str
    confidence: float | None
    numbered: bool
    start_unix_ns: int | None
    has_device: bool
    rows: list[StepRow]
    between_ps: dict[str, int]
    problems: list[str]
    partial: bool

    def rows_from_first_whole(self) -> list[StepRow]:
        """The steps from the first that the capture's edge does not cut; all if it cuts each of them."""
        return self.rows[next((at for at, row in enumerate(self.rows) if row.complete), 0) :]


def breakdown_of(trace: HostTrace) -> Breakdown:
    """The breakdown of a host's steps, computed once per trace."""
    return trace.derived("breakdown", lambda host: breakdown(host, steps_of(host)))


def steps_of_host(trace: HostTrace) -> StepsOfHost:
    """What one host says of its steps."""
    steps, parts = steps_of(trace), breakdown_of(trace)
    return StepsOfHost(
        host=trace.host,
        source=steps.source,
        how=steps.how,
        confidence=steps.confidence,
        numbered=steps.numbered,
        start_unix_ns=trace.start_unix_ns,
        has_device=bool(is_device_work(trace).any()),
        rows=_rows(steps, parts),
        between_ps=parts.between_categories_ps() if steps.line >= 0 else {},
        problems=origin_of(trace).problems,
        partial=trace.partial,
    )


def _rows(steps: HostSteps, parts: Breakdown) -> list[StepRow]:
    columns = [column.tolist() for column in parts.categories_ps().values()]
    return [
        StepRow(*row)
        for row in zip(
            steps.number.tolist(),
            steps.name,
            steps.start_ps.tolist(),
            (steps.end_ps - steps.start_ps).tolist(),
            steps.complete.tolist(),
            [list(values) for values in zip(*columns, strict=True)],
            strict=True,
        )
    ]


@dataclass(frozen=True)
class Aligned:
    """Steps of all hosts side by side.

    Attributes:
        hosts: the hosts that take part.
        steps: for each step, one row a host in the order of `hosts`; only steps that every host has.
        warnings: what could not be brought together, as sentences.
    """

    hosts: tuple[str, ...]
    steps: tuple[tuple[StepRow, ...], ...]
    warnings: tuple[str, ...]

    def taking(self, parts: Sequence[StepsOfHost]) -> list[StepsOfHost]:
        """Those of the hosts that take part."""
        return [part for part in parts if part.host in self.hosts]


def stepping(parts: Sequence[StepsOfHost]) -> list[StepsOfHost]:
    """The hosts that step.  Hosts without device work are left out where others have some: they coordinate, they do
    not step.  So are hosts on which no steps were found where others have steps."""
    taking = [part for part in parts if part.rows]
    taking = [part for part in taking if part.has_device] or taking
    return [part for part in taking if part.source != "none"] or taking


def no_steps_from(parts: Sequence[StepsOfHost], taking: Sequence[StepsOfHost]) -> list[str]:
    """A sentence that names the hosts that do not step, where there are any besides those that do."""
    left_out = [part.host for part in parts if all(part is not other for other in taking)]
    return [f"no steps from {', '.join(left_out)}"] if left_out and taking else []


def align(parts: Sequence[StepsOfHost]) -> Aligned:
    """Brings the steps of those hosts together that step."""
    taking = stepping(parts)
    warnings = no_steps_from(parts, taking)
    if not taking:
        return Aligned((), (), ())
    by_number = len(taking) > 1 and all(has_own_numbers(part) for part in taking)
    steps, lost = (_by_number if by_number else _by_overlap)(taking)
    if lost:
        steps_are = "1 step is" if lost == 1 else f"{lost} steps are"
        warnings.append(f"{steps_are} not on every host and left out")
    return Aligned(tuple(part.host for part in taking), steps, tuple(warnings))


@dataclass(frozen=True)
class Finding:
    """How the steps of a session were found.

    Attributes:
        source: the least certain of the hosts' sources, since a step is one of every host.
        how: the hosts' sentences, the least certain first; with their names where the hosts differ.
        confidence: the lowest of the hosts whose steps are inferred, None if none are.
    """

    source: str
    how: str
    confidence: float | None


def finding_of(parts: Sequence[StepsOfHost]) -> Finding:
    """How the steps of some hosts were found; at least one host."""
    by_trust = sorted(parts, key=lambda part: _LEAST_CERTAIN_FIRST.index(part.source))
    told = told_by_host({part.host: part.how for part in by_trust}, len(parts))
    more = [f"and {len(told) - _MOST_TOLD} more such"] if len(told) > _MOST_TOLD else []
    confidences = [part.confidence for part in parts if part.confidence is not None]
    return Finding(by_trust[0].source, "; ".join([*told[:_MOST_TOLD], *more]), min(confidences, default=None))


def told_by_host(sentences: Mapping[str, str], of_hosts: int) -> list[str]:
    """What some of so many hosts say, each sentence once: with the names of those who say it, unless all say it."""
    hosts: dict[str, list[str]] = {}
    for host, sentence in sentences.items():
        hosts.setdefault(sentence, []).append(host)
    return [
        sentence if len(names) == of_hosts else f"{', '.join(names)}: {sentence}" for sentence, names in hosts.items()
    ]


def has_own_numbers(part: StepsOfHost) -> bool:
    """Whether the program numbered the steps, each differently: two phases that both count from 0 are no numbering."""
    return part.numbered and len({row.number for row in part.rows}) == len(part.rows)


def _by_number(parts: Sequence[StepsOfHost]) -> tuple[tuple[tuple[StepRow, ...], ...], int]:
    by_number = [{row.number: row for row in part.rows} for part in parts]
    common = set(by_number[0]).intersection(*by_number[1:])
    seen = set().union(*by_number)
    numbers = sorted(common, key=lambda number: by_number[0][number].start_ps)
    return tuple(tuple(rows[number] for rows in by_number) for number in numbers), len(seen - common)


def _by_overlap(parts: Sequence[StepsOfHost]) -> tuple[tuple[tuple[StepRow, ...], ...], int]:
    """Shifts each host's steps against those of the host with the fewest, then keeps what all have."""
    chief = min(parts, key=lambda part: len(part.rows))
    shifts = [0 if part is chief else _best_shift(chief, part) for part in parts]
    first = max(0, *(-shift for shift in shifts))
    last = min(len(part.rows) - shift for part, shift in zip(parts, shifts, strict=True))
    steps = tuple(
        tuple(part.rows[at + shift] for part, shift in zip(parts, shifts, strict=True)) for at in range(first, last)
    )
    return steps, max(len(part.rows) for part in parts) - len(steps)


def _best_shift(chief: StepsOfHost, part: StepsOfHost) -> int:
    """The shift k that lays step i + k of `part` beside step i of `chief` with most overlap in time, 0 without
    clocks."""
    if chief.start_unix_ns is None or part.start_unix_ns is None:
        return 0
    ahead_ps = (part.start_unix_ns - chief.start_unix_ns) * 1000
    overlap: dict[int, int] = {}
    at = 0
    for i, row in enumerate(chief.rows):
        begin, end = row.start_ps - ahead_ps, row.start_ps - ahead_ps + row.duration_ps
        while at < len(part.rows) and part.rows[at].start_ps + part.rows[at].duration_ps <= begin:
            at += 1
        for j in range(at, len(part.rows)):
            other = part.rows[j]
            if other.start_ps >= end:
                break
            shared = min(end, other.start_ps + other.duration_ps) - max(begin, other.start_ps)
            overlap[j - i] = overlap.get(j - i, 0) + shared
    return max(overlap, key=lambda shift: (overlap[shift], -abs(shift))) if overlap else 0


def between_shares(hosts: Sequence[StepsOfHost]) -> dict[str, float]:
    """Percent of the time from the first step to the last that lies between steps, by category, mean over the hosts
    whose steps leave gaps to speak of; empty without such hosts.  Of single steps it is their time and that of the gaps
    between neighbours."""
    several = [host for host in hosts if len(host.rows) >= 2 and host.between_ps]
    shares = dict.fromkeys(CATEGORIES, 0.0) if several else {}
    for host in several:
        whole = sum(row.duration_ps for row in host.rows) + sum(host.between_ps.values())
        for key, time in host.between_ps.items():
            shares[key] += 100.0 * time / whole / len(several) if whole > 0 else 0.0
    return shares
