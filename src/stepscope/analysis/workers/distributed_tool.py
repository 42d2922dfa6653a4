"""Ranks of one job: how each divides its time between computation and communication, and which waits for which.

Only exposed communication costs time: what happens while the same rank computes is free.  Who waits for whom, who is
late, and what equal work would give comes from a replay of all ranks together (`joint_replay`, `equal_work`): a
collective is done when its last rank has come and the data is moved, and so are a send and its receive.  This needs no
common clock.

The same collective on different ranks is recognised by its step, process group, operation, size, and its place
among those; the same step by its number, and by its place among the steps of that number where a program counts from 0
again.  Steps that the program did not number are aligned by the ranks' clocks, as in the overview.  Where ranks
recorded different numbers of collectives of a size, none of these are compared, and a warning says so.

The process groups are those that the trace names, each with what it is for.  Where ranks send to each other and
receive, they are stages of a pipeline; its bubble is the part of a step in which a rank has no work but that.

Bandwidth is that of the bus as NCCL's tests define it: data by transfer time, times 2 (n - 1) / n for an all-reduce
among n ranks, (n - 1) / n for all-gather, reduce-scatter and all-to-all, 1 for the rest.  On a single rank the time
includes waiting, and the bandwidth is a lower bound.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from operator import attrgetter, ne
from typing import Any, ClassVar

import numpy as np

from stepscope.analysis.account.account import StepAccount, account_of
from stepscope.analysis.account.account_text import cause_words
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.session_steps import StepsOfHost, hosts_with_steps, steps_of_host, warn_of_missing_steps
from stepscope.analysis.trace.collective_events import collective_rows
from stepscope.analysis.trace.columns import is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.analysis.workers import bandwidth, missing_calls
from stepscope.analysis.workers.answer import JobAnswer, answer_for, error_of, job_of
from stepscope.analysis.workers.clocks import WORTH_NAMING_CLOCK_PS, ClockOffset
from stepscope.analysis.workers.collectives import Collectives, collectives_of, rank_number, rank_title, world_size
from stepscope.analysis.workers.equal_work import Job
from stepscope.analysis.workers.job_report import CAUSE_FIELDS, HEAT_FIELDS, JOB_FIELDS, JOB_STEP_FIELDS, describe_job
from stepscope.analysis.workers.job_report import PART_FIELDS as SLOWDOWN_FIELDS
from stepscope.analysis.workers.joint_replay import RankModel
from stepscope.analysis.workers.layout import Layout
from stepscope.analysis.workers.matching import (
    Matched,
    StepKey,
    describe_other_steps,
    estimate_clocks,
    match_collectives,
    match_steps,
    name_groups,
)
from stepscope.analysis.workers.missing_calls import RecordedGroup, recorded_groups
from stepscope.analysis.workers.parallel_groups import (
    GROUP_FIELDS,
    PIPELINE_FIELDS,
    PipelineRank,
    PipelineTime,
    describe_pipelines,
    group_rows,
    pipeline_rows,
    pipeline_time,
)
from stepscope.analysis.workers.rank_graphs import PackedGraph, packed_graph_of
from stepscope.analysis.workers.slow_workers import slowest_alone
from stepscope.analysis.workers.stragglers import WORTH_NAMING
from stepscope.analysis.workers.waiting import RankWaits, find_waits
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, median
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Lines,
    Report,
    Role,
    Row,
    Table,
    as_figures,
    as_prose,
    as_table,
    duration_text,
    fields_named,
    not_in_json,
    number_text,
    percent,
    round_ms,
    round_us,
)
from stepscope.report.relation import Merged, Relation
from stepscope.vocabulary.collectives import OPERATIONS

K = EventKind

_COMPUTES = (K.KERNEL, K.DEVICE_OP, K.GRAPH_LAUNCH)
_HOST_COMPUTES = (K.OP, K.BACKWARD)

PARTS = ("compute", "communication", "overlap", "exposed", "other_work", "idle")
PART_FIELDS: tuple[Field, ...] = (
    Field("compute_ms", "ms", "time in which the rank computes, overlapped or not; without devices, time in ops"),
    Field("communication_ms", "ms", "time in which the rank takes part in collectives"),
    Field("overlap_ms", "ms", "communication overlapped with computation"),
    Field("exposed_ms", "ms", "exposed communication: the part without computation"),
    Field("other_work_ms", "ms", "time with only other device work, such as copies"),
    Field("idle_ms", "ms", "time without any of these"),
)
_RANK = Field("rank", "number", "the process's rank in its job; unknown if not recorded", "int", role=Role.ORDINAL)
_HOST = Field("host", "text", "the host, as its file names it", "str", role=Role.HOST)
RANK_FIELDS: tuple[Field, ...] = (
    _RANK,
    _HOST,
    Field("span_ms", "ms", "time from the start of the first work to the end of the last; the parts divide it"),
    *PART_FIELDS,
    Field("overlap_percent", "percent", "overlap as a share of communication"),
    Field("waiting_ms", "ms", "time in which it only waits for other ranks; needs several ranks"),
    Field("waiting_percent", "percent", "waiting as a share of the span"),
    Field("held_up_ms", "ms", "mean time for which each of the others only waits for this rank"),
    Field("last_count", "count", "collectives, sends and receives to which it came last", "int"),
    Field("stage", "number", "its stage of the pipeline, from 0; unknown without one", "int", role=Role.ORDINAL),
    Field("replica", "number", "its replica of the model, from 0; unknown without a replay", "int", role=Role.ORDINAL),
)
WAIT_FIELDS: tuple[Field, ...] = (
    _HOST,
    Field("for_host", "text", "the host of the rank that came last", "str", role=Role.PLACE),
    Field("waiting_ms", "ms", "time in which the rank only waits for that one"),
)
MOST_PAIRS = 4096  # of ranks: 64 of each with every other
CLOCK_FIELDS: tuple[Field, ...] = (
    _RANK,
    _HOST,
    Field("ahead_ms", "ms", "how far its clock is ahead of the median clock of all ranks; negative if it is behind"),
    Field("uncertainty_ms", "ms", "half of the interval in which that lies with 95 % certainty"),
    Field("collectives", "count", "collectives of all ranks that it is estimated from", "int"),
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
    *PART_FIELDS,
    Field("waiting_ms", "ms", "time of the step in which it only waits for other ranks"),
    Field("held_up_ms", "ms", "mean time of the step for which each of the others only waits for this rank"),
)


@dataclass(frozen=True)
class WorkParts:
    """The parts of a window; `parts_ps` in the order compute, communication, overlap, exposed, other_work, idle."""

    duration_ps: int
    parts_ps: list[int]


@dataclass(frozen=True)
class RankOfJob:
    """The part of one rank; `rank` is -1 if unknown, `whole` is the time from first to last work."""

    origin: Origin
    stepping: StepsOfHost
    rank: int
    whole: WorkParts
    steps: list[WorkParts]
    collectives: Collectives
    account: StepAccount | None
    pipeline: PipelineTime | None
    graph: PackedGraph | None
    world: int
    recorded: list[RecordedGroup] = field(default_factory=list)


_LEAST_SHOWN_PS = 5e6  # 0.005 ms: less is written as 0.00
_EQUAL = "equal work would gain little, or the ranks cannot be replayed together"
_NO_JOB = "no two ranks meet in a step that both recorded"
_ALL_CAME = "no collective hangs in dumps of PyTorch's flight recorder"
_NO_SIZES = "no collective whose size and number of ranks were recorded"
_NO_GROUPS = "no process groups were recorded: newer PyTorch versions record them with collectives"
_NO_PIPELINE = "no rank sends to another or receives from one, as stages of a pipeline do"
_NO_CLOCKS = "clocks are compared by collectives that end on several ranks together, and there are not enough of them"


def _if(table: str, least: int, text: str) -> Callable[[Any], str]:
    """The sentence for an empty table; none where another table has too few rows for it to matter."""
    return lambda report: text if len(getattr(report, table)) >= least else ""


@dataclass(frozen=True, kw_only=True)
class DistributedReport(Report):
    """Ranks, their collectives and their steps; see the FIELDS tables of this module."""

    TOOL: ClassVar[str] = "distributed"
    SCHEMA_VERSION: ClassVar[int] = 2

    findings: Lines = as_prose("Ranks compared")
    job: Row = as_figures("The job against equal work", JOB_FIELDS)
    causes: Table = as_table("Why the job is slower than with equal work", CAUSE_FIELDS, _if("rows", 2, _EQUAL))
    missing: Table = as_table("Missing ranks", missing_calls.FIELDS, lambda report: _ALL_CAME * report.has_dumps)
    parts: Table = as_table("Slowdown by part", SLOWDOWN_FIELDS, _if("rows", 2, _NO_JOB), id="job_parts")
    job_steps: Table = as_table("Slowdown by step", JOB_STEP_FIELDS, _if("rows", 2, _NO_JOB))
    heat: Table = as_table("Workers by step, stages by kind", HEAT_FIELDS, _if("rows", 2, _NO_JOB))
    rows: Table = as_table("Ranks", RANK_FIELDS, "no rank did any work")
    waits: Table = as_table("Who waits for whom", WAIT_FIELDS, _if("rows", 2, _NO_JOB))
    collectives: Table = as_table("Collectives", COLLECTIVE_FIELDS, lambda report: _no_collectives(report.world))
    bandwidth: Table = as_table("Bandwidth by size", bandwidth.FIELDS, _if("collectives", 1, _NO_SIZES))
    groups: Table = as_table("Process groups", GROUP_FIELDS, _if("collectives", 1, _NO_GROUPS))
    pipeline: Table = as_table("Pipeline bubbles", PIPELINE_FIELDS, _if("collectives", 1, _NO_PIPELINE))
    clocks: Table = as_table("Clocks of the ranks", CLOCK_FIELDS, _if("rows", 2, _NO_CLOCKS))
    steps: Table = as_table("Steps by rank", STEP_FIELDS, "no steps")
    has_dumps: bool = not_in_json()
    world: int = not_in_json()  # ranks of the job as the files state it; 0 if unknown

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object, with the figures of the job beside the tables."""
        values = super().body()
        return {**values.pop("job"), **values}


def _no_collectives(world: int) -> str:
    if world > 1:
        return (
            f"no collectives were recorded, though the job has {world} ranks: those of NCCL and RCCL are known by name"
        )
    return "no collectives: this process trains alone, or its communication was not recorded"


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


def partial(trace: HostTrace) -> RankOfJob:
    """The part of one rank."""
    compute, communication, anything, work = _work(trace)
    steps, collectives = steps_of(trace), collectives_of(trace)
    bounds = (int(anything.start[0]), int(anything.end[-1])) if len(anything.start) else (0, 0)
    begin, end = np.append(steps.start_ps, bounds[0]), np.append(steps.until_ps, bounds[1])
    both = compute | communication
    c, m, cm, w = (part.overlap_ps(begin, end) for part in (compute, communication, both, anything))
    parts = np.stack([c, m, c + m - cm, cm - c, w - cm, end - begin - w], axis=1).tolist()
    windows = [WorkParts(*row) for row in zip((end - begin).tolist(), parts, strict=True)]
    return RankOfJob(
        origin_of(trace),
        steps_of_host(trace),
        rank_number(trace),
        windows[-1],
        windows[:-1],
        collectives,
        account_of(trace),
        pipeline_time(trace, collectives, work, steps.start_ps, steps.until_ps),
        packed_graph_of(trace, with_work=True),
        world_size(trace),
        recorded_groups(trace),
    )


def _work(trace: HostTrace) -> tuple[Spans, Spans, Spans, I64]:
    """When the rank computes, communicates, and does any work; and the rows of its work."""
    device, kind, collectives = is_device_work(trace), trace.events.kind, collective_rows(trace)
    if device.any():
        computes, all_work = np.flatnonzero(device & is_any_kind(kind, _COMPUTES)), np.flatnonzero(device)
    else:
        threads = is_thread_event(trace)
        computes = np.flatnonzero(threads & is_any_kind(kind, _HOST_COMPUTES))
        all_work = computes
    communication = spans_of(trace, collectives)
    return spans_of(trace, computes), communication, spans_of(trace, all_work) | communication, all_work


# -- all ranks -----------------------------------------------------------------------------------------------------


_KEYS = ("operation", "members", "bytes", "ranks")
COLLECTIVES = Relation(
    _KEYS, ("count", "total_ps", "compared", "transfer_ps", "waiting_ps", "occurrences"), order=("-total_ps",)
)
"""Collectives of one kind: `count` and `total_ps` are of single ranks; the others of collectives that were compared, of
which `compared` is the number, and `occurrences` that of the ranks in them."""
LAST = Relation((*_KEYS, "last"), ("waits",), order=("-waits",))
"""For how many collectives of a kind the others waited for a rank."""


def merge(partials: Sequence[RankOfJob]) -> DistributedReport:
    """Compares all ranks."""
    ordered, doubtful = _one_of_each(sorted(partials, key=lambda part: (part.rank < 0, part.rank)))
    columns = name_groups([part.collectives for part in ordered])
    unnamed = _warn_of_unnamed_groups(ordered, columns)
    ordered = [replace(part, collectives=own) for part, own in zip(ordered, columns, strict=True)]
    hosts = [part.stepping for part in ordered]
    steps = match_steps(hosts)
    matched, uneven = match_collectives(hosts, columns, steps)
    collectives, last = _compare_collectives(ordered, [rows for _, rows in matched])
    taking = [at for at, part in enumerate(ordered) if part.graph is not None]
    job = job_of([RankModel(hosts[at], columns[at], graph) for at in taking if (graph := ordered[at].graph)])
    found = dict(zip(taking, find_waits(job), strict=True)) if job is not None else {}
    waits = [found.get(at) for at in range(len(ordered))]
    clocks = estimate_clocks(hosts, columns, [rows for _, rows in matched])
    names = [_rank_name(ordered[at]) for at in taking]
    answer = answer_for(job, [ordered[at].origin.host for at in taking]) if job is not None else None
    medians = _median_steps(ordered) if job is None and not len(collectives) else []
    worst = slowest_alone(medians) if answer is None or answer.straggler is None else taking[answer.straggler]
    pipeline = _pipeline_rows(ordered)
    missing = missing_calls.find_missing([(part.rank, part.recorded) for part in ordered])
    places = {at: (job.layout, place) for place, at in enumerate(taking)} if job is not None else {}
    figures, tables = describe_job(answer, names, [ordered[at].rank for at in taking])
    warnings = (*doubtful, *unnamed, *describe_other_steps(steps), *_warnings(ordered, uneven, job))
    return DistributedReport(
        **header([part.origin for part in partials], warnings),
        findings=(
            *missing_calls.describe_missing(missing),
            *_sentences(job, answer, names),
            *_describe_alone(ordered, medians),
            *(_culprit_text(ordered, worst) if worst is not None else ()),
            *(_describe_cost(ordered, collectives) if answer is None or answer.culprit is None else ()),
            *describe_pipelines(pipeline),
            *_clock_finding(ordered, clocks),
        ),
        **tables,
        job={
            **figures,
            "replay_error_percent": error_of(job) if job is not None else None,
            "slowest_rank": _rank_name(ordered[worst]) if worst is not None else None,
        },
        rows=tuple(_rank_row(part, waits[at], places.get(at)) for at, part in enumerate(ordered)),
        collectives=_collective_rows(collectives, last),
        bandwidth=tuple(bandwidth.bandwidth_rows(_transfers(ordered, [rows for _, rows in matched]))),
        groups=tuple(group_rows(columns)),
        pipeline=tuple(pipeline),
        clocks=tuple(_clock_rows(ordered, clocks)),
        steps=tuple(_step_rows(ordered, steps, waits)),
        waits=tuple(_wait_rows(ordered, taking, waits)),
        missing=tuple(missing),
        has_dumps=any(part.recorded for part in ordered),
        world=max((part.world for part in ordered), default=0),
    )


def _warn_of_unnamed_groups(ordered: Sequence[RankOfJob], named: Sequence[Collectives]) -> list[str]:
    return [
        f"{_rank_name(part)} recorded no process groups: {count} collectives are in those of ranks that list it"
        for part, own in zip(ordered, named, strict=True)
        if (count := sum(map(ne, part.collectives.group, own.group)))
    ]


def _pipeline_rows(ordered: Sequence[RankOfJob]) -> list[Row]:
    return pipeline_rows([
        PipelineRank(part.rank, part.origin.host, [step.duration_ps for step in part.steps], part.pipeline)
        for part in ordered
        if part.pipeline is not None
    ])  # fmt: skip


def _median_steps(parts: Sequence[RankOfJob]) -> list[float]:
    """The median step of each rank in ps; 0 without steps."""
    lengths = [[row.duration_ps for row in part.stepping.rows if row.complete] for part in parts]
    return [median(each) if each else 0.0 for each in lengths]


def _describe_alone(parts: Sequence[RankOfJob], medians: Sequence[float]) -> Iterator[str]:
    """The slowest of ranks that meet in no collective, or that none is."""
    at, known = slowest_alone(medians), [ps for ps in medians if ps]
    if at is None and len(known) > 1:
        took = duration_text(round_ms(round(median(known))))
        yield (
            f"no rank is much slower than the others: their median steps take {took}; no collective was recorded, so"
            " who waits for whom is not known"
        )
    if at is not None:
        others = median([ps for place, ps in enumerate(medians) if ps and place != at])
        both = [duration_text(round_ms(round(ps))) for ps in (medians[at], others)]
        yield (
            "{} is the slowest: its median step takes {}, that of the others {}; no collective was recorded, so who"
            " waits for whom is not known".format(_rank_name(parts[at]), *both)
        )


def _sentences(job: Job | None, answer: JobAnswer | None, names: Sequence[str]) -> Iterable[str]:
    """The job in one sentence."""
    if answer is not None:
        yield answer.sentence(names)
    elif job is not None:
        yield f"the replay of all ranks is {error_of(job):.1f} % off, so the gain of equal work is unknown"


def _one_of_each(parts: Sequence[RankOfJob]) -> tuple[list[RankOfJob], list[str]]:
    """One part of each rank, and what is wrong with the others, as warnings."""
    kept: list[RankOfJob] = []
    doubtful = []
    for part in parts:
        twice = part.rank >= 0 and kept and kept[-1].rank == part.rank
        if twice and part.graph is not None and kept[-1].graph is not None:
            doubtful.append(f"rank {part.rank} appears twice: {part.origin.host} is left out")
        else:
            kept.append(part)
    sizes = Counter(part.world for part in kept if part.world)
    usual = sizes.most_common(1)[0][0] if sizes else 0
    doubtful += [
        f"{_rank_name(part)} is of a job of {part.world} ranks, the others of one of {usual}"
        for part in kept
        if part.world not in (0, usual)
    ]
    return kept, doubtful


def _rank_name(part: RankOfJob) -> str:
    return rank_title(part.rank, part.origin.host)


def _compare_collectives(parts: Sequence[RankOfJob], matched: Sequence[Matched]) -> tuple[Merged, Merged]:
    """The collectives by kind, and by kind and the rank that came last.

    Args:
        matched: of each collective that is compared its index on each participating rank.
    """
    keys = [_kinds(part.collectives) for part in parts]
    rows: list[tuple[Any, ...]] = [
        (*key, 1, duration, 0, 0, 0, 0)
        for part, own in zip(parts, keys, strict=True)
        for key, duration in zip(own, part.collectives.duration_ps, strict=True)
    ]
    lasts: list[tuple[Any, ...]] = []
    for places in matched:
        durations = {rank: parts[rank].collectives.duration_ps[at] for rank, at in places.items()}
        last = min(durations, key=durations.__getitem__)
        transfer, key = durations[last], keys[last][places[last]]
        waited = sum(durations.values()) - transfer * len(durations)
        rows.append((*key, 0, 0, 1, transfer, waited, len(durations)))
        lasts.append((*key, _rank_name(parts[last]), int(waited > 0)))
    return COLLECTIVES.merge([COLLECTIVES.keep(rows)]), LAST.merge([LAST.keep(lasts)])


def _kinds(of: Collectives) -> list[tuple[str, str, int, int]]:
    return [
        (of.names[name], of.groups[group], size, count)
        for name, group, size, count in zip(of.name, of.group, of.bytes, of.size, strict=True)
    ]


# -- for the report ------------------------------------------------------------------------------------------------


def _work_cells(window: WorkParts) -> dict[str, Cell]:
    return {f"{name}_ms": round_ms(ps) for name, ps in zip(PARTS, window.parts_ps, strict=True)}


def _rank_row(part: RankOfJob, waits: RankWaits | None, place: tuple[Layout, int] | None) -> dict[str, Cell]:
    whole = part.whole
    layout, at = place or (None, 0)
    stage = int(layout.stage[at]) if layout is not None else -1
    return {
        "rank": part.rank if part.rank >= 0 else None,
        "host": part.origin.host,
        "span_ms": round_ms(whole.duration_ps),
        **_work_cells(whole),
        "overlap_percent": percent(whole.parts_ps[2], whole.parts_ps[1]),
        "waiting_ms": round_ms(waits.waiting.total()) if waits else None,
        "waiting_percent": percent(min(waits.waiting.total(), whole.duration_ps), whole.duration_ps) if waits else None,
        "held_up_ms": round_ms(waits.held_up.total()) if waits else None,
        "last_count": waits.last if waits else None,
        "stage": stage if stage >= 0 else None,
        "replica": int(layout.replica[at]) if layout is not None else None,
    }


def _wait_rows(
    parts: Sequence[RankOfJob], taking: Sequence[int], waits: Sequence[RankWaits | None]
) -> list[dict[str, Cell]]:
    """Every pair of which one rank waits for the other, those that wait longest first."""
    names = [part.origin.host for part in parts]
    known = [(name, own.waits_for) for name, own in zip(names, waits, strict=True) if own is not None]
    pairs = sorted(((ps, name, names[taking[last]]) for name, own in known for last, ps in own.items()), reverse=True)
    return [{"host": name, "for_host": last, "waiting_ms": round_ms(ps)} for ps, name, last in pairs[:MOST_PAIRS]]


def _step_rows(
    parts: Sequence[RankOfJob], steps: Sequence[Sequence[StepKey]], waits: Sequence[RankWaits | None]
) -> list[dict[str, Cell]]:
    rows = [
        (key, part, waited, step)
        for part, own, waited in zip(parts, steps, waits, strict=True)
        for key, step in zip(own, part.steps, strict=False)
    ]
    return [
        {
            "step": key[1],
            "rank": part.rank if part.rank >= 0 else None,
            "host": part.origin.host,
            "duration_ms": round_ms(step.duration_ps),
            **_work_cells(step),
            "waiting_ms": round_ms(waited.waiting[key]) if waited else None,
            "held_up_ms": round_ms(waited.held_up[key]) if waited else None,
        }
        for key, part, waited, step in sorted(rows, key=lambda row: row[0])
    ]


def _collective_rows(found: Merged, last: Merged) -> Table:
    came_last: dict[tuple[Any, ...], str] = {}
    for *key, rank, waits in zip(*(last[name] for name in (*LAST.keys, "waits")), strict=True):
        if waits:
            came_last.setdefault(tuple(key), rank)
    kinds = [*zip(*(found[name] for name in _KEYS), strict=True)]
    mean_ps = [ps / count for ps, count in zip(found["total_ps"], found["count"], strict=True)]
    transfer_ps = _by(found, "transfer_ps", "compared")
    waiting_ps = _by(found, "waiting_ps", "occurrences")
    return found.table(
        COLLECTIVE_FIELDS,
        ranks=[ranks or None for ranks in found["ranks"]],
        group=[members.replace("|", " ").strip() or None for members in found["members"]],
        bytes=[size or None for size in found["bytes"]],
        avg_us=[*map(round_us, mean_ps)],
        transfer_us=[None if ps is None else round_us(ps) for ps in transfer_ps],
        waiting_us=[None if ps is None else round_us(ps) for ps in waiting_ps],
        bus_gb_per_s=[
            bandwidth.bus_bandwidth(name, size, ranks, mean if transfer is None else transfer)
            for (name, _, size, ranks), mean, transfer in zip(kinds, mean_ps, transfer_ps, strict=True)
        ],
        last=[came_last.get(kind) for kind in kinds],
    )


def _by(found: Merged, measure: str, count: str) -> list[float | None]:
    return [ps / number if number else None for ps, number in zip(found[measure], found[count], strict=True)]


def _transfers(parts: Sequence[RankOfJob], matched: Sequence[Matched]) -> Iterable[bandwidth.Transfer]:
    """The collectives with their transfer times; without several ranks, with all of their time."""
    if len(parts) == 1:
        matched = [{0: at} for at in range(len(parts[0].collectives.name))]
    for rows in matched:
        rank, at = next(iter(rows.items()))
        of = parts[rank].collectives
        time_ps = min(parts[each].collectives.duration_ps[place] for each, place in rows.items())
        operation, algorithm = of.names[of.name[at]], of.algorithms[of.algorithm[at]]
        yield bandwidth.Transfer(operation, algorithm, of.bytes[at], of.size[at], time_ps)


def _clock_rows(parts: Sequence[RankOfJob], clocks: Sequence[ClockOffset | None]) -> Iterable[dict[str, Cell]]:
    for part, clock in zip(parts, clocks, strict=True):
        if clock is not None:
            yield {
                "rank": part.rank if part.rank >= 0 else None,
                "host": part.origin.host,
                "ahead_ms": round_ms(clock.offset_ps),
                "uncertainty_ms": round_ms(clock.uncertainty_ps),
                "collectives": clock.collectives,
            }


def _clock_finding(parts: Sequence[RankOfJob], clocks: Sequence[ClockOffset | None]) -> Iterable[str]:
    """How far the clocks are apart, if that is more than its uncertainty and worth knowing."""
    known = [(clock, part) for clock, part in zip(clocks, parts, strict=True) if clock is not None]
    if not known:
        return
    (first, behind), (last, ahead) = (choose(known, key=lambda item: item[0].offset_ps) for choose in (min, max))
    apart, unsure = last.offset_ps - first.offset_ps, last.uncertainty_ps + first.uncertainty_ps
    if apart > max(WORTH_NAMING_CLOCK_PS, unsure):
        within = f" (± {number_text(unsure / 1e9)})" if unsure >= _LEAST_SHOWN_PS else ""  # none is sure to 0.00 ms
        yield (
            f"clocks differ by up to {number_text(apart / 1e9)} ms{within}: that of "
            f"{_rank_name(ahead)} is furthest ahead, that of {_rank_name(behind)} furthest behind; waiting is measured"
            " without clocks"
        )


def _culprit_text(parts: Sequence[RankOfJob], worst: int) -> list[str]:
    """What the straggler spends more time on than the others in its median step, and what most of that is."""
    own = parts[worst].account
    others = [part.account for at, part in enumerate(parts) if at != worst and part.account is not None]
    if own is None or not others:
        return []
    of_others = [{row.cause: row.ps for row in account.rows} for account in others]
    more = {row.cause: row.ps - statistics.median(each.get(row.cause, 0) for each in of_others) for row in own.rows}
    more.pop(Cause.COMMUNICATION.name.lower(), None)
    cause = max(more, key=more.__getitem__, default="")
    if not cause or more[cause] < WORTH_NAMING * own.step_ps:
        return [f"what makes {_rank_name(parts[worst])} late was not recorded"]
    culprit = next(row.culprit for row in own.rows if row.cause == cause)
    name = f", most of it {culprit.name}" if culprit and culprit.name else ""
    return [
        f"in its median step {_rank_name(parts[worst])} spends {duration_text(more[cause] / 1e9)} more than the others"
        f" on {cause_words(cause)}{name}"
    ]


def _describe_cost(parts: Sequence[RankOfJob], collectives: Merged) -> Iterable[str]:
    """What communication costs the ranks, as their accounts say it, and how much of that is waiting for each other,
    where no rank is named that the others wait for in it."""
    shares = sorted(_communicating(part) for part in parts if part.whole.parts_ps[1])
    if not shares:
        return
    each = "of the median step" if any(part.stepping.source != "none" for part in parts) else "of the capture"
    least, most = (f"{share:.1f}" for share in (shares[0], shares[-1]))
    of = f"{least} to {most} % {each}, by rank" if least != most else f"{most} % {each}"
    yield f"communication takes {of}"
    waiting, usual = collectives.total("waiting_ps"), collectives.total("occurrences")
    shared = zip(collectives["transfer_ps"], collectives["occurrences"], collectives["compared"], strict=True)
    transfer = sum(ps * occurrences / compared for ps, occurrences, compared in shared if compared)
    if waiting > transfer:
        alone, whole = (duration_text(ps / usual / 1e9) for ps in (transfer, transfer + waiting))
        yield f"most of it is waiting for the rank that comes last: of {whole} a collective the transfer takes {alone}"


def _communicating(part: RankOfJob) -> float:
    """The share of communication in the account of a rank, in percent; without one that of exposed communication."""
    if part.account is None:
        return percent(part.whole.parts_ps[3], part.whole.duration_ps) or 0.0
    communication = Cause.COMMUNICATION.name.lower()
    return percent(sum(row.ps for row in part.account.rows if row.cause == communication), part.account.step_ps) or 0.0


def _warnings(parts: Sequence[RankOfJob], uneven: int, job: Job | None) -> Iterable[str]:
    hosts = [part.stepping for part in parts]
    yield from warn_of_missing_steps(hosts, hosts_with_steps(hosts))
    unknown = Counter(of.names[at] for of in (part.collectives for part in parts) for at in of.name)
    for name in sorted({*unknown} - OPERATIONS):
        yield f"{unknown[name]} collectives are of an unknown operation, {name}: ranks are compared, bandwidth is not"
    if job is not None:
        uneven = max(uneven, job.graph.uneven - job.graph.crossed)
        if job.graph.unknown:
            yield f"{job.graph.unknown} sends and receives do not say with whom; they keep their recorded lengths"
    if uneven:
        yield f"{uneven} collectives differ between ranks, as if some were not recorded; they are not compared"
    world = max((size for part in parts for size in part.collectives.size), default=0)
    if 0 < len(parts) < world:
        present = "ranks is" if len(parts) == 1 else "ranks are"
        covered = "is unknown" if len(parts) == 1 else f"covers these {len(parts)}, and for others stays as recorded"
        yield f"only {len(parts)} of {world} {present} present: waiting between ranks {covered}"
