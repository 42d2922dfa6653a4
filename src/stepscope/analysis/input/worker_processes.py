"""What the worker processes of a loader do, where Stepscope recorded it: how long a batch takes, in which function, and
what that says of their number.

    worker 0   prepare 0-------|send|   wait   |prepare 2-------|
    worker 1        prepare 1-------|send|          |prepare 3-------|
    main       wait------------|step 0|step 1|wait------|step 2|        starved: the loop waits for its workers
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stepscope.analysis.account.worker_functions import (
    function_of_worker,
    functions_of_worker,
    is_preparing,
    waits_for_workers,
    worker_lines,
)
from stepscope.analysis.input.loaders import outer_waits
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.steps.verdict import MODERATELY_INPUT_BOUND
from stepscope.analysis.trace.program_facts import op_threads_of
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import HostTrace
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role, percent, round_ms
from stepscope.vocabulary.python import place_of

_IDLE = 50.0  # percent: workers that are busy for less are ahead of the loop

FIELDS: tuple[Field, ...] = (
    Field("worker", "text", "the process, with its number", role=Role.LABEL),
    Field("host", "text", "the host that it runs on", role=Role.HOST),
    Field("batches", "count", "the batches or tasks that it prepared while it was recorded", "int"),
    Field("prepare_ms", "ms", "mean time to prepare one: from taking it up to handing it over"),
    Field("max_ms", "ms", "the longest of them"),
    Field("send_ms", "ms", "mean time to hand one over to the queue"),
    Field("busy_percent", "percent", "share of the time that it prepares or sends; the rest it waits for work"),
    Field("function", "text", "the function that most of that time is in, by samples of the stack", role=Role.NAME),
    Field("place", "text", "file and line of the function", role=Role.SOURCE),
    Field("function_percent", "percent", "the function's share of the time to prepare"),
)
FUNCTION_FIELDS: tuple[Field, ...] = (
    Field(
        "function", "text", "a function of the program that workers run while they prepare, by samples of the stack",
        role=Role.NAME,
    ),
    Field("place", "text", "file and line of the function", role=Role.SOURCE),
    Field("batch_ms", "ms", "its time for a batch, with what it calls, mean over the batches of all workers"),
    Field("percent", "percent", "that as a share of the time to prepare a batch"),
)  # fmt: skip
_LEAST_LISTED = 1.0  # percent: of less there are too few samples
QUEUE_FIELDS: tuple[Field, ...] = (
    Field(
        "state", "text",
        "starved: the loop waits for its workers for 5 % of the time or more; ahead: it does not, and the workers wait "
        "for work for half of the time; else balanced; unknown if no workers were recorded", role=Role.TERM,
    ),
    Field("workers", "count", "worker processes that were recorded", "int"),
    Field("prepare_ms", "ms", "mean time of a worker for a batch, sending included"),
    Field("busy_percent", "percent", "share of the time that the workers are busy, mean over workers"),
    Field(
        "useful_workers", "count",
        "workers that would keep up with a loop that never waits; more gain nothing; each needs its own core", "int",
    ),
)  # fmt: skip
NO_QUEUE: dict[str, Cell] = {field.name: None for field in QUEUE_FIELDS}


@dataclass(frozen=True)
class WorkerFacts:
    """One worker process; times in ps.

    Attributes:
        batches: how many it prepared; prepare_ps, max_ps, send_ps: their summed and longest times.
        recorded_ps: how long it was recorded.
        function: the function that most of the preparing is in, with its file and line; empty if unknown.
        share: its share of that time, 0 to 1.
        functions: all functions of the program there, each with its place and its share.
    """

    name: str
    batches: int
    prepare_ps: int
    max_ps: int
    send_ps: int
    recorded_ps: int
    function: str
    place: str
    share: float
    functions: tuple[tuple[str, str, float], ...] = ()


@dataclass(frozen=True)
class WorkersOfHost:
    """The workers of one host, and the loop that they work for.

    Attributes:
        observed_ps: the observed time; waited_ps: for how much of it the loop waits for worker processes.
        batches: how many batches the loop took then.
        cores: how many the host has for the job; None if unknown.
    """

    workers: list[WorkerFacts]
    observed_ps: int
    waited_ps: int
    batches: int
    cores: int | None = None


def workers_of(trace: HostTrace) -> WorkersOfHost:
    """The worker processes of a host; none where they were not recorded."""
    workers = [found for line in worker_lines(trace) if (found := _worker(trace, line)) is not None]
    waits = outer_waits(trace) if workers else np.empty(0, np.int64)
    waits = waits[[waits_for_workers(trace.name_of(row)) for row in waits.tolist()]]
    seen = observed_time(trace) if workers and whole_steps(trace).source != "none" else None
    if seen is None:
        return WorkersOfHost(workers, 0, 0, 0)
    waiting = spans_of(trace, waits) & seen
    taken = int((seen.overlap_ps(trace.events.start_ps[waits], trace.events.start_ps[waits] + 1) > 0).sum())
    return WorkersOfHost(workers, seen.total, waiting.total, taken, op_threads_of(trace).cores)


def _worker(trace: HostTrace, line: int) -> WorkerFacts | None:
    rows: I64 = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    prepares = is_preparing(trace, rows)
    if not prepares.any():
        return None
    start, length = trace.events.start_ps[rows], trace.events.duration_ps[rows]
    found = function_of_worker(trace, line)
    name, place = _named(trace, found.frame) if found else ("", "")
    called = ((*_named(trace, each.frame), each.share) for each in functions_of_worker(trace, line))
    return WorkerFacts(
        name=trace.line_label(line),
        batches=int(prepares.sum()),
        prepare_ps=int(length[prepares].sum()),
        max_ps=int(length[prepares].max()),
        send_ps=int(length[~prepares].sum()),
        recorded_ps=int((start + length).max() - start.min()),
        function=name,
        place=place,
        share=found.share if found else 0.0,
        functions=tuple(called),
    )


def _named(trace: HostTrace, frame: int) -> tuple[str, str]:
    """A function, and its file and line; empty if unknown."""
    name, file, number = place_of(trace.name_of(frame))
    return name, f"{file}:{number}" if file else ""


def worker_rows(hosts: Sequence[tuple[str, WorkersOfHost]]) -> tuple[dict[str, Cell], ...]:
    """The rows of the table of workers; see FIELDS."""
    return tuple(_worker_row(host, worker) for host, found in hosts for worker in found.workers)


def _worker_row(host: str, worker: WorkerFacts) -> dict[str, Cell]:
    return {
        "worker": worker.name,
        "host": host,
        "batches": worker.batches,
        "prepare_ms": round_ms(worker.prepare_ps / worker.batches),
        "max_ms": round_ms(worker.max_ps),
        "send_ms": round_ms(worker.send_ps / worker.batches),
        "busy_percent": percent(worker.prepare_ps + worker.send_ps, worker.recorded_ps),
        "function": worker.function or None,
        "place": worker.place or None,
        "function_percent": round(100.0 * worker.share, 4) if worker.function else None,
    }


def function_rows(hosts: Sequence[WorkersOfHost]) -> tuple[dict[str, Cell], ...]:
    """The program's functions in all workers, the longest first; see FUNCTION_FIELDS."""
    workers = [worker for host in hosts for worker in host.workers]
    spent: dict[tuple[str, str], float] = {}
    for worker in workers:
        for function, place, share in worker.functions:
            spent[function, place] = spent.get((function, place), 0.0) + share * worker.prepare_ps
    batches, whole = sum(worker.batches for worker in workers), sum(worker.prepare_ps for worker in workers)
    return tuple(
        {
            "function": function,
            "place": place or None,
            "batch_ms": round_ms(round(ps / batches)),
            "percent": percent(ps, whole),
        }
        for (function, place), ps in sorted(spent.items(), key=lambda item: -item[1])
        if 100.0 * ps >= _LEAST_LISTED * whole
    )


def queue_figures(hosts: Sequence[WorkersOfHost]) -> dict[str, Cell]:
    """What the queue between workers and loop says, on the host that waits most; see QUEUE_FIELDS."""
    known = [host for host in hosts if host.workers]
    if not known:
        return NO_QUEUE
    host = max(known, key=_waited_percent)
    batches = sum(worker.batches for worker in host.workers)
    each_ps = sum(worker.prepare_ps + worker.send_ps for worker in host.workers) / batches
    busy = [100.0 * (worker.prepare_ps + worker.send_ps) / max(worker.recorded_ps, 1) for worker in host.workers]
    mean_busy = math.fsum(busy) / len(busy)
    stepped = host.observed_ps > 0 and host.batches > 0
    free_ps = (host.observed_ps - host.waited_ps) / host.batches if stepped else 0.0
    return {
        "state": _state(_waited_percent(host), mean_busy) if stepped else None,
        "workers": len(host.workers),
        "prepare_ms": round_ms(each_ps),
        "busy_percent": round(mean_busy, 4),
        "useful_workers": math.ceil(each_ps / free_ps) if free_ps > 0 else None,
    }


def _waited_percent(host: WorkersOfHost) -> float:
    return 100.0 * host.waited_ps / host.observed_ps if host.observed_ps else 0.0


def _state(waited_percent: float, busy_percent: float) -> str:
    if waited_percent >= MODERATELY_INPUT_BOUND:
        return "starved"
    return "ahead" if busy_percent < _IDLE else "balanced"


def slow_function(hosts: Sequence[WorkersOfHost]) -> tuple[str, float] | None:
    """The function, with its place, in which most workers spend most of their time, and its mean share in percent."""
    named = [worker for host in hosts for worker in host.workers if worker.function]
    found = [(f"{worker.place} {worker.function}".strip(), worker.share) for worker in named]
    if not found:
        return None
    names = [name for name, _ in found]
    name = max(names, key=names.count)
    shares = [share for each, share in found if each == name]
    return name, 100.0 * math.fsum(shares) / len(shares)


def least_cores(hosts: Sequence[WorkersOfHost]) -> int | None:
    """The cores of the host that has fewest; None if unknown."""
    return min((host.cores for host in hosts if host.cores is not None), default=None)


def queue_sentence(queue: dict[str, Cell], slow: tuple[str, float] | None, cores: int | None = None) -> str | None:
    """The same in words; None if no workers were recorded.

    Workers that compute need a core each, so that no number beyond the cores is recommended.
    """
    if not queue["workers"]:
        return None
    where = f", {slow[1]:.0f} % of it in {slow[0]}" if slow else ""
    says = {
        "starved": "the loop waits for them",
        "ahead": "they are ahead of the loop and wait for work most of the time",
        "balanced": "the loop hardly waits for them",
    }.get(str(queue["state"]), "")
    number = queue["useful_workers"]
    enough = f"{number} would keep up with it" if number else ""
    if isinstance(number, int) and cores is not None and number > cores:
        enough = f"{number} would keep up with it, more than the {cores} cores can run: make each batch cheaper"
    who = "1 worker process takes" if queue["workers"] == 1 else f"{queue['workers']} worker processes take"
    text = f"{who} {queue['prepare_ms']:.1f} ms for a batch{where}"
    return "; ".join(part for part in (text, says, enough) if part)
