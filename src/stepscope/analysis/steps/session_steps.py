"""The steps of one host, and how the steps of several hosts are aligned.

Steps of different hosts are the same step if the program gave them the same number.  Without numbers, or where hosts
have none in common, the hosts' steps are shifted so that they overlap most on the wall clock; without clocks, they are
paired in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import repeat
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from stepscope.analysis.steps.batches import Batches, batches_of
from stepscope.analysis.steps.breakdown import Breakdown, breakdown
from stepscope.analysis.steps.find_steps import HostSteps, is_usual, steps_of
from stepscope.analysis.steps.host_steps import Loop
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.analysis.trace.origin import origin_of
from stepscope.errors import counted
from stepscope.model import HostTrace
from stepscope.model.arrays import Mask
from stepscope.records import dataclass
from stepscope.report import Cell, Field, duration_text, round_ms
from stepscope.vocabulary.serving import Batch

_LEAST_CERTAIN_FIRST = ("none", "inferred", "markers")
_DURATION, _COMPLETE, _USUAL = map(attrgetter, ("duration_ps", "complete", "usual"))
_MOST_SENTENCES = 3  # different ways to find steps that one sentence lists

STEP_TIME_FIELDS: tuple[Field, ...] = (
    Field(
        "mean",
        "ms",
        "mean of the usual steps, each from its start to the start of the next",
        label="Mean step",
    ),
    Field(
        "std",
        "ms",
        "sample standard deviation (n - 1) of step durations; unknown with fewer than two steps",
        label="±",
    ),
    Field("min", "ms", "shortest usual step", label="Shortest"),
    Field("max", "ms", "longest usual step", label="Longest"),
    Field(
        "count",
        "count",
        "usual steps: neither cut off by the capture nor warm-up; mean, median and account are of these",
        "int",
        label="Steps",
    ),
)


class StepRow(NamedTuple):
    """One step on one host, to the start of the next; times in ps, `start_ps` from the start of the session.

    A tuple, as there may be a hundred thousand: a frozen record takes five times as long to make.

    Attributes:
        usual: statistics count it: it is complete and no warm-up.
        gap_ps: the part of it after its mark and the work for it have ended.
        parts_ps: in the order of CATEGORIES.
        batch: what a model server's mark says that the step works on; None without such a mark.
        causes_ps: its account in the order of Cause; empty where none was made.
    """

    number: int
    name: str
    start_ps: int
    duration_ps: int
    complete: bool
    usual: bool
    gap_ps: int
    parts_ps: list[int]
    batch: Batch | None = None
    causes_ps: Sequence[int] = ()


@dataclass(frozen=True)
class StepsOfHost:
    """The steps of one host, and how reliable they are.

    Attributes:
        source, how, confidence, numbered, measured: see `stepscope.analysis.steps.find_steps.HostSteps`.
        start_unix_ns: wall-clock time of the start of the session, None if unknown.
        has_device: the host's trace has device work.
        on_thread: the steps are those of one thread.
        rows: the steps in order of time.
        problems: what is wrong with the host's trace, as sentences.
        partial: a part of the host's recording is missing.
        others: loops that are marked as well and are not these steps, the longest first.
        batches: how many batches a step is.
    """

    host: str
    source: str
    how: str
    confidence: float | None
    numbered: bool
    start_unix_ns: int | None
    has_device: bool
    on_thread: bool
    rows: list[StepRow]
    problems: list[str]
    partial: bool
    others: list[Loop] = field(default_factory=list)
    batches: Batches = field(default_factory=Batches)
    measured: bool = True


def breakdown_of(trace: HostTrace) -> Breakdown:
    """The breakdown of a host's steps, computed once per trace."""
    return trace.derived("breakdown", lambda host: breakdown(host, steps_of(host)))


def steps_of_host(trace: HostTrace, causes_ps: list[list[int]] | None = None) -> StepsOfHost:
    """The steps of one host.

    Args:
        causes_ps: the account of each, as in StepRow; None if they have none.
    """
    steps, parts = steps_of(trace), breakdown_of(trace)
    return StepsOfHost(
        host=trace.host,
        source=steps.source,
        how=steps.how,
        confidence=steps.confidence,
        numbered=steps.numbered,
        measured=steps.measured,
        start_unix_ns=trace.start_unix_ns,
        has_device=bool(is_device_work(trace).any()),
        on_thread=steps.line >= 0,
        rows=_step_rows(steps, is_usual(trace), parts, causes_ps),
        problems=origin_of(trace).problems,
        partial=trace.partial,
        others=list(steps.others),
        batches=batches_of(trace),
    )


def _step_rows(steps: HostSteps, usual: Mask, spent: Breakdown, causes_ps: list[list[int]] | None) -> list[StepRow]:
    parts = np.stack([*spent.categories_ps().values()], axis=1)
    rows = zip(
        steps.number.tolist(),
        steps.name,
        steps.start_ps.tolist(),
        steps.length_ps.tolist(),
        steps.complete.tolist(),
        usual.tolist(),
        np.maximum(steps.until_ps - steps.end_ps, 0).tolist(),
        parts.tolist(),
        steps.batch or [None] * len(steps.number),
        [[]] * len(steps.number) if causes_ps is None else causes_ps,  # as it is read again
        strict=True,
    )
    return list(map(tuple.__new__, repeat(StepRow), rows))  # what `_make` does, without a call of Python's for each


@dataclass(frozen=True)
class Aligned:
    """Steps of all hosts side by side.

    Attributes:
        hosts: the participating hosts.
        steps: for each step, one row per host in the order of `hosts`; only steps that every host has.
        warnings: what could not be aligned, as sentences.
    """

    hosts: tuple[str, ...]
    steps: tuple[tuple[StepRow, ...], ...]
    warnings: tuple[str, ...]

    @cached_property
    def slowest_host(self) -> list[int]:
        """The place in `hosts` of the host on which each step is longest."""
        durations = [list(map(_DURATION, rows)) for rows in zip(*self.steps, strict=True)]
        found: list[int] = np.argmax(np.array(durations, np.int64), axis=0).tolist() if durations else []
        return found

    @cached_property
    def slowest(self) -> list[StepRow]:
        """Each step as recorded on its slowest host."""
        return [rows[at] for rows, at in zip(self.steps, self.slowest_host, strict=True)]

    def places_of(self, host: str | None) -> list[int]:
        """The place in `hosts` of a host, for each step; of the slowest one of each where that host takes no part."""
        return [self.hosts.index(host)] * len(self.steps) if host in self.hosts else self.slowest_host

    @cached_property
    def complete(self) -> list[bool]:
        """Which steps are complete on every host."""
        return _hold_on_every_host(self.steps, _COMPLETE)

    def participants(self, parts: Sequence[StepsOfHost]) -> list[StepsOfHost]:
        """The participating hosts among `parts`."""
        return [part for part in parts if part.host in self.hosts]


def _hold_on_every_host(steps: Sequence[tuple[StepRow, ...]], is_so: Callable[[StepRow], bool]) -> list[bool]:
    """Whether something is so of each step on every host."""
    return list(map(all, zip(*(map(is_so, rows) for rows in zip(*steps, strict=True)), strict=True)))


def hosts_with_steps(parts: Sequence[StepsOfHost]) -> list[StepsOfHost]:
    """The hosts that run steps.

    If some hosts have device work, hosts without it are left out, since they only coordinate.  If steps were found on
    some hosts, hosts without steps are left out.
    """
    taking = [part for part in parts if part.rows]
    taking = [part for part in taking if part.has_device] or taking
    return [part for part in taking if part.source != "none"] or taking


def warn_of_missing_steps(parts: Sequence[StepsOfHost], taking: Sequence[StepsOfHost]) -> list[str]:
    """A sentence naming the hosts without steps, if other hosts have steps."""
    left_out = [part.host for part in parts if all(part is not other for other in taking)]
    return [f"no steps from {', '.join(left_out)}"] if left_out and taking else []


def align(parts: Sequence[StepsOfHost]) -> Aligned:
    """Aligns the steps of all hosts that run steps."""
    taking = hosts_with_steps(parts)
    warnings = warn_of_missing_steps(parts, taking)
    if not taking:
        return Aligned((), (), ())
    steps, lost = _align_by_number(taking) if numbered_alike(taking) else _align_by_overlap(taking)
    if len(taking) > 1 and all(map(has_own_numbers, taking)) and not numbered_alike(taking):
        numbers = ", ".join(f"{part.host}: {_number_range(part)}" for part in taking[:_MOST_SENTENCES])
        warnings.append(f"the hosts share no step numbers ({numbers}): their steps are matched by time")
    if lost:
        steps_are = "1 step is" if lost == 1 else f"{lost} steps are"
        warnings.append(f"{steps_are} left out: not on every host")
    return Aligned(tuple(part.host for part in taking), steps, tuple(warnings))


def step_warnings(partials: Sequence[StepsOfHost], aligned: Aligned) -> tuple[str, ...]:
    """What makes steps less reliable: damage, missing marks, and steps that not all hosts have.

    Each sentence appears once, not once per host.
    """
    taking = aligned.participants(partials) or partials
    found = [problem for part in partials for problem in part.problems]
    found += merge_sentences(
        {part.host: _describe_source(part) for part in taking if part.source != "markers"}, len(taking)
    )
    cut = aligned.complete.count(False)
    if cut:
        steps = "1 step is" if cut == 1 else f"{cut} steps are"
        all_cut = cut == len(aligned.steps)
        lost = "but kept in the statistics: no step is complete" if all_cut else "and left out of the statistics"
        found.append(f"{steps} cut by the edge of the capture {lost}")
    found += [text for host in taking if (text := host.batches.sentence())]
    return tuple(dict.fromkeys([*found, *_warn_of_loops(taking), *_warn_of_gaps(taking), *aligned.warnings]))


def batches_a_step(hosts: Sequence[StepsOfHost]) -> int:
    """How many batches the steps of a session are; 1 where its hosts do not agree."""
    found = {host.batches.a_step for host in hosts}
    return found.pop() if len(found) == 1 else 1


def _warn_of_loops(hosts: Sequence[StepsOfHost]) -> list[str]:
    """A sentence for each other loop that is marked, the longest ones."""
    found: dict[str, Loop] = {}
    for host in hosts:
        for loop in host.others:
            found.setdefault(loop.name, loop)
    said = [
        f"{loop.name!r} is a loop of its own and not these steps: {counted(loop.count, 'mark')}, median"
        f" {duration_text(round_ms(loop.median_ps))}, {duration_text(round_ms(loop.total_ps))} in all"
        for loop in list(found.values())[:_MOST_SENTENCES]
    ]
    return [*said, f"{len(found) - len(said)} more loops are marked"] if len(found) > len(said) else said


def _warn_of_gaps(hosts: Sequence[StepsOfHost]) -> list[str]:
    """A sentence where steps do not follow each other, so that the time between them is in none."""
    alone = [host for host in hosts if not host.others]
    apart = sum(map(_time_between, alone))
    if not apart:
        return []
    return [f"the steps do not follow each other: {duration_text(round_ms(apart))} between them count for no step"]


def _time_between(host: StepsOfHost) -> int:
    """The time between steps that do not follow each other, ps."""
    start = np.array([row.start_ps for row in host.rows], np.int64)
    end = start + np.array(list(map(_DURATION, host.rows)), np.int64)
    return int(np.maximum(start[1:] - end[:-1], 0).sum())


def _describe_source(part: StepsOfHost) -> str:
    is_sure = part.confidence is None or part.confidence >= 0.995  # which would read 1.00
    return part.how if is_sure else f"{part.how} (confidence {part.confidence:.2f})"


@dataclass(frozen=True)
class StepsFinding:
    """How the steps of a session were found.

    Attributes:
        source: the least certain source of any host.
        how: the hosts' sentences, the least certain first; with host names if they differ.
        confidence: the lowest of the hosts with inferred steps, None without such hosts.
        measured: the bounds of every host's steps measure how long they last.
    """

    source: str
    how: str
    confidence: float | None
    measured: bool


def finding_of(parts: Sequence[StepsOfHost]) -> StepsFinding:
    """How the steps of the hosts were found; `parts` holds at least one host."""
    by_trust = sorted(parts, key=lambda part: _LEAST_CERTAIN_FIRST.index(part.source))
    sentences = merge_sentences({part.host: part.how for part in by_trust}, len(parts))
    briefly = merge_sentences({part.host: part.how.partition(" on thread ")[0] for part in by_trust}, len(parts))
    if len(briefly) < len(sentences):  # their threads aside, hosts mark steps alike
        sentences = briefly
    more = [f"and {len(sentences) - _MOST_SENTENCES} more"] if len(sentences) > _MOST_SENTENCES else []
    confidences = [part.confidence for part in parts if part.confidence is not None]
    return StepsFinding(
        by_trust[0].source,
        "; ".join([*sentences[:_MOST_SENTENCES], *more]),
        min(confidences, default=None),
        all(part.measured for part in parts),
    )


def merge_sentences(sentences: Mapping[str, str], of_hosts: int) -> list[str]:
    """Each distinct sentence once, prefixed with the names of its hosts unless all `of_hosts` hosts share it."""
    hosts: dict[str, list[str]] = {}
    for host, sentence in sentences.items():
        hosts.setdefault(sentence, []).append(host)
    return [
        sentence if len(names) == of_hosts else f"{', '.join(names)}: {sentence}" for sentence, names in hosts.items()
    ]


def has_own_numbers(part: StepsOfHost) -> bool:
    """Whether the program numbered the steps uniquely; two phases that both count from 0 do not qualify."""
    return part.numbered and len({row.number for row in part.rows}) == len(part.rows)


def numbered_alike(parts: Sequence[StepsOfHost]) -> bool:
    """Whether all of several hosts number their steps, and some numbers occur on every host."""
    if len(parts) < 2 or not all(map(has_own_numbers, parts)):
        return False
    return bool(set.intersection(*({row.number for row in part.rows} for part in parts)))


def _number_range(part: StepsOfHost) -> str:
    first, last = part.rows[0].number, part.rows[-1].number
    return str(first) if first == last else f"{first}-{last}"


def _align_by_number(parts: Sequence[StepsOfHost]) -> tuple[tuple[tuple[StepRow, ...], ...], int]:
    by_number = [{row.number: row for row in part.rows} for part in parts]
    common = set(by_number[0]).intersection(*by_number[1:])
    seen = set().union(*by_number)
    numbers = sorted(common, key=lambda number: by_number[0][number].start_ps)
    return tuple(tuple(rows[number] for rows in by_number) for number in numbers), len(seen - common)


def _align_by_overlap(parts: Sequence[StepsOfHost]) -> tuple[tuple[tuple[StepRow, ...], ...], int]:
    """Shifts each host's steps against those of the host with the fewest steps, and keeps the steps all hosts have."""
    chief = min(parts, key=lambda part: len(part.rows))
    shifts = [0 if part is chief else _best_shift(chief, part) for part in parts]
    first = max(0, *(-shift for shift in shifts))
    last = max(first, min(len(part.rows) - shift for part, shift in zip(parts, shifts, strict=True)))
    kept = [part.rows[first + shift : last + shift] for part, shift in zip(parts, shifts, strict=True)]
    steps = tuple(zip(*kept, strict=True))
    return steps, max(len(part.rows) for part in parts) - len(steps)


def _best_shift(chief: StepsOfHost, part: StepsOfHost) -> int:
    """The shift k that pairs step i + k of `part` with step i of `chief` for most overlap in time; 0 without clocks."""
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


def usual_of(steps: Sequence[tuple[StepRow, ...]]) -> list[int]:
    """The places of the aligned steps that statistics count: those that are usual on every host.

    Without any, those that are complete on every host; without these, all.
    """
    for is_so in (_USUAL, _COMPLETE):
        counts = _hold_on_every_host(steps, is_so)
        if any(counts):
            return [at for at, counted in enumerate(counts) if counted]
    return list(range(len(steps)))


def step_time_statistics(durations_ps: Sequence[int]) -> dict[str, Cell]:
    """Mean, deviation, minimum and maximum of step durations, in ms; unknown without steps."""
    if not durations_ps:
        return {"mean": None, "std": None, "min": None, "max": None, "count": 0}
    mean = math.fsum(durations_ps) / len(durations_ps)
    return {
        "mean": round_ms(mean),
        "std": round_ms(float(np.std(durations_ps, ddof=1))) if len(durations_ps) > 1 else None,
        "min": round_ms(min(durations_ps)),
        "max": round_ms(max(durations_ps)),
        "count": len(durations_ps),
    }


def gap_percent(hosts: Sequence[StepsOfHost]) -> float | None:
    """The time between marks, after all but the last step, in percent of the time of these steps: the mean over the
    hosts whose steps are those of one thread; None without such hosts."""
    several = [host.rows[:-1] for host in hosts if len(host.rows) >= 2 and host.on_thread]
    shares = [100.0 * sum([row.gap_ps for row in rows]) / max(sum(map(_DURATION, rows)), 1) for rows in several]
    return round(sum(shares) / len(shares), 4) if shares else None
