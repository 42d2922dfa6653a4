"""The tool `inference`: how long a model takes to answer, how large its batches are, and what differs in slow runs.

A run is a batch that a server marks (SGLang, vLLM, TensorFlow Serving), else a run of an XLA program, else a step. It
lasts until the work that it launched on devices is done; a program that runs on several devices has a run on each.
Percentiles are of nearest rank: `p99_ms` is the time that at most one in a hundred runs exceeds.

Slow runs are those at or above the 90th percentile, where there are ten runs or more. The table of differences shows
their mean beside that of the others; the factor with the largest difference in time stands first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.xla.runs import Runs, find_runs
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import Cell, Comparable, Field, Report, Role, Table, as_table, fields_named, percent, round_ms

MOST_RUNS = 20_000  # of a kind that are kept
_LISTED = 200
_LEAST_RUNS = 10
_SLOW = 90

FIELDS: tuple[Field, ...] = (
    Field("name", "text", "the kind of batch, the program, or `step`", "str", role=Role.NAME),
    Field("source", "text", "how runs are known: `server`, `program` or `steps`", "str", role=Role.TERM),
    Field("runs", "count", "how many there are", "int"),
    Field("mean_ms", "ms", "mean latency"),
    Field("p50_ms", "ms", "median"),
    Field("p90_ms", "ms", "nine of ten runs take no longer"),
    Field("p99_ms", "ms", "99 of 100 runs take no longer"),
    Field("max_ms", "ms", "the slowest run"),
    Field("runs_per_s", "1/s", "runs by the time from the first one's start to the last one's end"),
    Field("mean_requests", "", "mean number of requests in a batch"),
    Field("max_requests", "count", "most requests in a batch", "int"),
    Field("tokens_per_s", "1/s", "tokens by the time of their runs"),
    Field("padding_percent", "percent", "share of batches that is padding"),
    Field("device_percent", "percent", "time of device work by the time of the runs; more than 100 on several devices"),
    Field("queue_ms", "ms", "mean wait of a run's first device work from its launch"),
)
DIFFERENCE_FIELDS: tuple[Field, ...] = (
    Field("name", "text", "the kind of run", "str", role=Role.NAME),
    Field("factor", "text", "what is compared", "str", role=Role.LABEL),
    Field("others", "", "mean of the other runs"),
    Field("slow", "", "mean of slow runs"),
    Field("ratio", "", "slow by others"),
)
RUN_FIELDS: tuple[Field, ...] = (
    Field("name", "text", "the kind of run", "str", role=Role.NAME),
    Field("host", "text", "the host", "str", role=Role.HOST),
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
class Partial:
    """What one host contributes."""

    origin: Origin
    kinds: list[RunsOfKind]


_EMPTY = (
    "no runs of a model: no server marked its batches, no XLA program ran, and no steps were found; mark the handling "
    "of a request with stepscope.step()"
)


@dataclass(frozen=True, kw_only=True)
class InferenceReport(Report):
    """Latencies of runs; see the FIELDS tables of this module for the meaning of its parts."""

    TOOL: ClassVar[str] = "inference"

    rows: Table = as_table("Latency", FIELDS, _EMPTY)
    differences: Table = as_table(
        "What differs in slow runs", DIFFERENCE_FIELDS, f"fewer than {_LEAST_RUNS} runs of a kind"
    )
    slowest: Table = as_table("The slowest runs", RUN_FIELDS, _EMPTY)


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


# -- one host ------------------------------------------------------------------------------------------------------


def partial(trace: HostTrace) -> Partial:
    """What one host contributes."""
    return Partial(origin_of(trace), [_kind(runs) for runs in find_runs(trace)])


def _kind(runs: Runs) -> RunsOfKind:
    columns = [runs.start_ps.tolist(), (runs.end_ps - runs.start_ps).tolist()]
    optional = (runs.requests, runs.tokens, runs.padding, runs.device_ps, runs.queue_ps)
    columns += [[None if value < 0 else value for value in column.tolist()] for column in optional]
    listed = [Run(*values) for values in zip(*columns, strict=True)]
    return RunsOfKind(runs.source, runs.name, len(listed), listed[:MOST_RUNS])


# -- all hosts -----------------------------------------------------------------------------------------------------


def merge(partials: Sequence[Partial]) -> InferenceReport:
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
        slowest=tuple(_run_row(*each) for each in slowest[:_LISTED]),
    )


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
        "p90_ms": round_ms(percentile(latency, 90)),
        "p99_ms": round_ms(percentile(latency, 99)),
        "max_ms": round_ms(latency[-1]),
        "runs_per_s": len(runs) / span * 1e12 if span > 0 else None,
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
    ("without device work, ms", lambda run: _rest(run)),
    ("wait of the first device work, ms", lambda run: None if run.queue_ps is None else run.queue_ps / 1e9),
    ("requests", lambda run: run.requests),
    ("tokens", lambda run: run.tokens),
    ("padding", lambda run: run.padding),
)


def _rest(run: Run) -> float | None:
    return None if run.device_ps is None else max(run.latency_ps - run.device_ps, 0) / 1e9


def _difference(name: str, factor: str, others: Sequence[Run], slow: Sequence[Run], take: Any) -> dict[str, Cell]:
    means = [_mean([take(run) for run in group]) for group in (others, slow)]
    ratio = means[1] / means[0] if means[0] and means[1] is not None else None
    return {"name": name, "factor": factor, "others": means[0], "slow": means[1], "ratio": ratio}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _run_row(name: str, host: str, run: Run) -> dict[str, Cell]:
    return {
        "name": name,
        "host": host,
        "start_ms": round_ms(run.start_ps),
        "latency_ms": round_ms(run.latency_ps),
        "requests": run.requests,
        "tokens": run.tokens,
        "device_ms": None if run.device_ps is None else round_ms(run.device_ps),
    }
