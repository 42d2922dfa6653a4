"""The tool `inference`: how long a model takes to answer, how large its batches are, and what differs in slow runs.

A run is a batch that a server marks (SGLang, vLLM, TensorFlow Serving), else a run of an XLA program, else a step. It
lasts until the work that it launched on devices is done; a program that runs on several devices has a run on each.
Percentiles are of nearest rank: `p99_ms` is the time that at most one in a hundred runs exceeds.

Slow runs are those at or above the 90th percentile, where there are ten runs or more. The table of differences shows
their mean beside that of the others; the factor with the largest difference in time is first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stepscope.analysis.hlo.programs import programs_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.attribution import attribute, event_name_rows
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.xla.op_time import OpTime, op_time
from stepscope.model import HostTrace, LineKind, stat_names
from stepscope.model.arrays import I32, I64, distinct, look_up, number_pairs, sum_groups
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Report,
    Role,
    Table,
    as_table,
    fields_named,
    make_rows,
    percent,
    round_ms,
)
from stepscope.vocabulary.serving import Batch, batch_of

# ---- Runs of a model, one after the other ----------------------------------------------------------------------------
# batches that a server handles, runs of XLA programs, or steps.


_SIZE, _PADDING = ("batch_size_after_padding",), ("padding_amount",)


@dataclass(frozen=True)
class Runs:
    """Runs of one kind, in order of time.

    Attributes:
        source: how they are known: `server`, `program` or `steps`.
        name: the kind of batch, the program, or `step`.
        start_ps, end_ps: int64 of shape (runs,); work on devices that a run launched belongs to it.
        requests, tokens, padding: int64 of shape (runs,), -1 where unknown.
        device_ps: int64 of shape (runs,), time of device work launched in it, -1 where unknown.
        queue_ps: int64 of shape (runs,), from its first launch to the start of its first work, -1 where unknown.
    """

    source: str
    name: str
    start_ps: I64
    end_ps: I64
    requests: I64
    tokens: I64
    padding: I64
    device_ps: I64
    queue_ps: I64


def find_runs(trace: HostTrace) -> list[Runs]:
    """The runs of a trace: those that a server marks, else those of XLA programs, else steps."""
    return _server_runs(trace) or _program_runs(trace) or _step_runs(trace)


# -- a server's batches ----------------------------------------------------------------------------------------------


def _server_runs(trace: HostTrace) -> list[Runs]:
    named = [batch_of(trace.strings[row]) for row in trace.event_types.name.tolist()]
    on_thread = look_up(trace.lines.kind == LineKind.THREAD, trace.events.line)
    marks = np.array([batch is not None for batch in named], np.bool_)
    rows = np.flatnonzero(look_up(marks, trace.events.type) & on_thread) if len(named) else np.zeros(0, np.int64)
    rows = _find_outermost(trace, rows)
    batches = [named[int(trace.events.type[row])] or Batch("") for row in rows.tolist()]
    found = []
    for kind in dict.fromkeys(batch.kind for batch in batches):
        here = np.array([at for at, batch in enumerate(batches) if batch.kind == kind])
        found.append(_build_marked_runs(trace, kind, rows[here], [batches[at] for at in here.tolist()]))
    return found


def _find_outermost(trace: HostTrace, rows: I64) -> I64:
    """Marks that lie in no other mark of their thread, in order of time: a server may mark the same batch twice."""
    order = rows[np.lexsort((-trace.events.duration_ps[rows], trace.events.start_ps[rows], trace.events.line[rows]))]
    kept, line, until = [], -1, 0
    for row in order.tolist():
        start, end = int(trace.events.start_ps[row]), int(trace.events.start_ps[row] + trace.events.duration_ps[row])
        if int(trace.events.line[row]) != line or start >= until:
            kept.append(row)
            line, until = int(trace.events.line[row]), end
    found = np.array(kept, np.int64)
    return found[np.argsort(trace.events.start_ps[found], kind="stable")]


def _build_marked_runs(trace: HostTrace, kind: str, rows: I64, batches: list[Batch]) -> Runs:
    start = trace.events.start_ps[rows]
    end = start + trace.events.duration_ps[rows]
    device, queue, last = _device_work(trace, rows, start, end)
    size, padding = (trace.stat_ints(names, rows=rows) for names in (_SIZE, _PADDING))
    requests = np.array([-1 if batch.requests is None else batch.requests for batch in batches], np.int64)
    requests = np.where((requests < 0) & (size >= 0), size - np.maximum(padding, 0), requests)
    tokens = np.array([-1 if batch.tokens is None else batch.tokens for batch in batches], np.int64)
    return Runs("server", kind, start, np.maximum(end, last), requests, tokens, padding, device, queue)


def _device_work(trace: HostTrace, rows: I64, start: I64, end: I64) -> tuple[I64, I64, I64]:
    """Time of the device work that each event launched, the wait of its first piece, and when its last one ends."""
    found = attribute(trace)
    device, queue, last = (np.full(len(rows), -1, np.int64) for _ in range(3))
    launched = found.call >= 0
    call, work, time = found.call[launched], found.rows[launched], found.time_ps[launched]
    line, called = trace.events.line[call], trace.events.start_ps[call]
    begin = trace.events.start_ps[work]
    for at, row in enumerate(rows.tolist()):
        mine = (line == trace.events.line[row]) & (called >= start[at]) & (called < end[at])
        if mine.any():
            device[at] = int(time[mine].sum())
            queue[at] = max(int(begin[mine].min() - called[mine].min()), 0)
            last[at] = int((begin[mine] + trace.events.duration_ps[work[mine]]).max())
    return device, queue, last


# -- runs of XLA programs --------------------------------------------------------------------------------------------


def _program_runs(trace: HostTrace) -> list[Runs]:
    modules = np.flatnonzero(look_up(trace.lines.kind == LineKind.MODULES, trace.events.line))
    if len(modules):
        return _runs_of_modules(trace, modules)
    done = op_time(trace)
    if not len(done.rows):
        return []
    return _runs_by_number(trace, done) if done.on_host else _runs_by_kernels(trace, done)


def _runs_of_modules(trace: HostTrace, rows: I64) -> list[Runs]:
    """The device records when its programs run."""
    name = event_name_rows(trace, rows)
    found = []
    for each in dict.fromkeys(name.tolist()):
        here = rows[name == each]
        here = here[np.argsort(trace.events.start_ps[here], kind="stable")]
        start, time = trace.events.start_ps[here], trace.events.duration_ps[here]
        found.append(_build_runs("program", trace.strings[each], start, start + time, time))
    return found


def _runs_by_number(trace: HostTrace, done: OpTime) -> list[Runs]:
    """Ops on threads of the host carry the number of their run."""
    number = trace.stat_ints(stat_names.XLA_RUN_ID, missing=0, rows=done.rows)
    program = done.program[done.op]
    run, first = number_pairs(program, number)
    return _split_by_program(trace, done, np.arange(len(done.rows)), run, program[first])


def _runs_by_kernels(trace: HostTrace, done: OpTime) -> list[Runs]:
    """Kernels carry no number of a run: the n-th kernel of each name belongs to the n-th run."""
    program = done.program
    plane = trace.lines.plane[trace.events.line[done.rows]].astype(np.int64)
    group, first = number_pairs(done.op, event_name_rows(trace, done.rows))
    group, first = number_pairs(group, plane)
    order = np.lexsort((trace.events.start_ps[done.rows], group))
    sizes = np.bincount(group, minlength=len(first))
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    owner = program[done.op[first]] * (1 << 16) + plane[first]
    usual = {key: int(np.median(sizes[owner == key])) for key in distinct(owner).tolist()}
    regular = np.array([sizes[at] == usual[key] for at, key in enumerate(owner.tolist())], np.bool_)
    chosen = order[regular[group[order]]]
    run, first_piece = number_pairs(owner[group[chosen]], place[regular[group[order]]])
    return _split_by_program(trace, done, chosen, run, program[done.op[chosen[first_piece]]])


def _split_by_program(trace: HostTrace, done: OpTime, chosen: I64, run: I32, program: I64) -> list[Runs]:
    """The runs that chosen pieces of the work belong to, by the program of each run."""
    start, end = np.full(len(program), np.iinfo(np.int64).max), np.zeros(len(program), np.int64)
    begin = trace.events.start_ps[done.rows[chosen]]
    np.minimum.at(start, run, begin)
    np.maximum.at(end, run, begin + trace.events.duration_ps[done.rows[chosen]])
    busy = sum_groups(run, done.self_ps[chosen], len(program))
    found = []
    places = programs_of(trace).find_all(done.programs)
    for each in distinct(program).tolist():
        here = np.flatnonzero(program == each)
        here = here[np.argsort(start[here], kind="stable")]
        place, module = places[each], done.programs[each][1]
        label = programs_of(trace).entries[place].label if place >= 0 else module
        found.append(_build_runs("program", label, start[here], end[here], busy[here]))
    return found


def _step_runs(trace: HostTrace) -> list[Runs]:
    steps = steps_of(trace)
    if steps.source == "none" or not len(steps.number):
        return []
    return [_build_runs("steps", "step", steps.start_ps, steps.until_ps, np.full(len(steps.number), -1, np.int64))]


def _build_runs(source: str, name: str, start: I64, end: I64, device: I64) -> Runs:
    unknown = np.full(len(start), -1, np.int64)
    return Runs(source, name, start, end, unknown, unknown, unknown, device, unknown)


MOST_RUNS = 20_000  # of a kind that are kept
_LISTED = 200
_LEAST_RUNS = 10
_SLOW = 90

FIELDS: tuple[Field, ...] = (
    Field("name", "text", "the kind of batch, the program, or `step`", role=Role.NAME),
    Field("source", "text", "how runs are known: `server`, `program` or `steps`", role=Role.TERM),
    Field("runs", "count", "how many there are", "int"),
    Field("mean_ms", "ms", "mean latency"),
    Field("p50_ms", "ms", "median"),
    Field("p90_ms", "ms", "nine of ten runs take no longer; unknown of fewer than 10"),
    Field("p99_ms", "ms", "99 of 100 runs take no longer; unknown of fewer than 100"),
    Field("max_ms", "ms", "the slowest run"),
    Field(
        "runs_per_s", "1/s", "runs by the time from the first one's start to the last one's end; unknown for one run"
    ),
    Field("mean_requests", "", "mean number of requests in a batch"),
    Field("max_requests", "count", "most requests in a batch", "int"),
    Field("tokens_per_s", "1/s", "tokens by the time of their runs"),
    Field("padding_percent", "percent", "share of batches that is padding"),
    Field("device_percent", "percent", "time of device work by the time of the runs; more than 100 on several devices"),
    Field("queue_ms", "ms", "mean wait of a run's first device work from its launch"),
)
DIFFERENCE_FIELDS: tuple[Field, ...] = (
    Field("name", "text", "the kind of run", role=Role.NAME),
    Field("factor", "text", "what is compared", role=Role.LABEL),
    Field("others", "", "mean of the other runs"),
    Field("slow", "", "mean of slow runs"),
    Field("ratio", "", "slow by others"),
)
RUN_FIELDS: tuple[Field, ...] = (
    Field("name", "text", "the kind of run", role=Role.NAME),
    Field("host", "text", "the host", role=Role.HOST),
    Field("start_ms", "ms", "when it starts", role=Role.INSTANT),
    Field("latency_ms", "ms", "how long it takes"),
    Field("requests", "count", "requests in it", "int"),
    Field("tokens", "count", "tokens in it", "int"),
    Field("device_ms", "ms", "time of its device work"),
)


class Run(NamedTuple):
    """One run; times in ps, unknown is None."""

    start_ps: int
    latency_ps: int
    requests: int | None
    tokens: int | None
    padding: int | None
    device_ps: int | None
    queue_ps: int | None


class RunsOfKind(NamedTuple):
    """The runs of one kind in order of time; `total` counts those that are not kept too."""

    source: str
    name: str
    total: int
    runs: list[Run]


@dataclass(frozen=True)
class RequestsOfHost:
    """What one host contributes."""

    origin: Origin
    kinds: list[RunsOfKind]


_EMPTY = (
    "no runs of a model: no server marked its batches, no XLA program ran, and no steps were found; mark the handling "
    "of a request with stepscope.step()"
)


_NO_REQUESTS = "no server marked its batches: mark the handling of a request with stepscope.step()"


@dataclass(frozen=True, kw_only=True)
class InferenceReport(Report):
    """Latencies of runs; see the FIELDS tables of this module for the meaning of its parts."""

    TOOL: ClassVar[str] = "inference"

    rows: Table = as_table("Latency", FIELDS, _EMPTY)
    differences: Table = as_table(
        "What differs in slow runs", DIFFERENCE_FIELDS, f"fewer than {_LEAST_RUNS} runs of a kind"
    )
    slowest: Table = as_table("The slowest runs", RUN_FIELDS, _EMPTY)

    def why_hidden(self) -> str | None:
        """Where no requests were recorded, a run is a step or a program, which have views of their own."""
        is_served = any(row["source"] == "server" for row in self.rows)
        return self.why_empty() or (None if is_served else _NO_REQUESTS)


COMPARABLES = (
    Comparable(
        id="run_latency",
        title="Latency",
        keys=fields_named(FIELDS, "name"),
        measure=Field("p50_ms", "ms", "median latency of the kind of run"),
        joined="largest",
        empty="neither side has runs to measure",
    ),
)


def partial(trace: HostTrace) -> RequestsOfHost:
    """What one host contributes."""
    return RequestsOfHost(origin_of(trace), [_kind(runs) for runs in find_runs(trace)])


def _kind(runs: Runs) -> RunsOfKind:
    columns = [runs.start_ps.tolist(), (runs.end_ps - runs.start_ps).tolist()]
    optional = (runs.requests, runs.tokens, runs.padding, runs.device_ps, runs.queue_ps)
    columns += [[None if value < 0 else value for value in column.tolist()] for column in optional]
    listed = [Run(*values) for values in zip(*columns, strict=True)]
    return RunsOfKind(runs.source, runs.name, len(listed), listed[:MOST_RUNS])


def merge(partials: Sequence[RequestsOfHost]) -> InferenceReport:
    """The runs of all hosts; those of equal name are of one kind."""
    kinds: dict[tuple[str, str], list[tuple[str, Run]]] = {}
    for part in partials:
        for kind in part.kinds:
            kinds.setdefault((kind.source, kind.name), []).extend((part.origin.host, run) for run in kind.runs)
    found = {key: runs for key, runs in kinds.items() if runs}
    order = sorted(found, key=lambda key: -sum(run.latency_ps for _, run in found[key]))
    left_out = sum(kind.total - len(kind.runs) for part in partials for kind in part.kinds)
    warnings = [] if found else [_EMPTY]
    if left_out:
        warnings.append(f"only the first {MOST_RUNS:,} runs of each kind are looked at; {left_out:,} are not")
    slowest = [(key[1], host, run) for key in order for host, run in found[key]]
    slowest.sort(key=lambda each: -each[2].latency_ps)
    return InferenceReport(
        **header([part.origin for part in partials], warnings),
        rows=tuple(_row(*key, [run for _, run in found[key]]) for key in order),
        differences=tuple(row for key in order for row in _differences(key[1], [run for _, run in found[key]])),
        slowest=make_rows(
            RUN_FIELDS,
            [run for _, _, run in slowest[:_LISTED]],
            name=[name for name, _, _ in slowest[:_LISTED]],
            host=[host for _, host, _ in slowest[:_LISTED]],
        ),
    )


def _carried(ascending: Sequence[int], share: float) -> float | None:
    """A percentile in ms, if the sample carries it: if at least one value is above it by its rank."""
    return round_ms(percentile(ascending, share)) if len(ascending) * (100 - share) >= 100 else None


def percentile(ascending: Sequence[int], share: float) -> int:
    """The value of nearest rank.

    >>> percentile([10, 20, 30, 40], 50), percentile([10, 20, 30, 40], 99)
    (20, 40)
    """
    rank = -(-len(ascending) * share // 100)
    return ascending[max(int(rank), 1) - 1]


def _row(source: str, name: str, runs: Sequence[Run]) -> dict[str, Cell]:
    latency = sorted(run.latency_ps for run in runs)
    total = sum(latency)
    span = max(run.start_ps + run.latency_ps for run in runs) - min(run.start_ps for run in runs)
    requests = [run.requests for run in runs if run.requests is not None]
    tokens = [run.tokens for run in runs if run.tokens is not None]
    padded = [(run.padding, run.requests or 0) for run in runs if run.padding is not None]
    device = [run.device_ps for run in runs if run.device_ps is not None]
    queue = [run.queue_ps for run in runs if run.queue_ps is not None]
    padding = sum(amount for amount, _ in padded)
    return {
        "name": name,
        "source": source,
        "runs": len(runs),
        "mean_ms": round_ms(total / len(runs)),
        "p50_ms": round_ms(percentile(latency, 50)),
        "p90_ms": _carried(latency, 90),
        "p99_ms": _carried(latency, 99),
        "max_ms": round_ms(latency[-1]),
        "runs_per_s": len(runs) / span * 1e12 if span > 0 and len(runs) > 1 else None,
        "mean_requests": sum(requests) / len(requests) if requests else None,
        "max_requests": max(requests) if requests else None,
        "tokens_per_s": sum(tokens) / total * 1e12 if tokens and total else None,
        "padding_percent": percent(padding, padding + sum(size for _, size in padded)) if padded else None,
        "device_percent": percent(sum(device), total) if device else None,
        "queue_ms": round_ms(sum(queue) / len(queue)) if queue else None,
    }


def _differences(name: str, runs: Sequence[Run]) -> list[dict[str, Cell]]:
    """What the slow runs have more of than the others, the largest difference in time first."""
    if len(runs) < _LEAST_RUNS:
        return []
    limit = percentile(sorted(run.latency_ps for run in runs), _SLOW)
    slow = [run for run in runs if run.latency_ps >= limit]
    others = [run for run in runs if run.latency_ps < limit]
    if not others:
        return []
    rows = [_difference(name, factor, others, slow, take) for factor, take in _FACTORS]
    rows = [row for row in rows if row["slow"] is not None and row["others"] is not None]
    in_time = [row for row in rows if str(row["factor"]).endswith("ms")]
    in_time.sort(key=lambda row: -abs(float(str(row["slow"])) - float(str(row["others"]))))
    return in_time + [row for row in rows if row not in in_time]


_FACTORS: tuple[tuple[str, Any], ...] = (
    ("latency, ms", lambda run: run.latency_ps / 1e9),
    ("device work, ms", lambda run: None if run.device_ps is None else run.device_ps / 1e9),
    ("without device work, ms", lambda run: _host_ms(run)),
    ("wait of the first device work, ms", lambda run: None if run.queue_ps is None else run.queue_ps / 1e9),
    ("requests", lambda run: run.requests),
    ("tokens", lambda run: run.tokens),
    ("padding", lambda run: run.padding),
)


def _host_ms(run: Run) -> float | None:
    return None if run.device_ps is None else max(run.latency_ps - run.device_ps, 0) / 1e9


def _difference(name: str, factor: str, others: Sequence[Run], slow: Sequence[Run], take: Any) -> dict[str, Cell]:
    means = [_mean([take(run) for run in group]) for group in (others, slow)]
    ratio = means[1] / means[0] if means[0] and means[1] is not None else None
    return {"name": name, "factor": factor, "others": means[0], "slow": means[1], "ratio": ratio}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
