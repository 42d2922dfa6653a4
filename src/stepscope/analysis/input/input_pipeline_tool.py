"""The tool `input-pipeline`: whether training waits for its input, how long, and where the input's time goes.

It has three parts: the verdict; the device side, which shows how long the devices wait for input in each step; and the
host side, which shows how the host provides it. The input ops are the calls of tf.data iterators, the host calls that
copy to a device, and the stages that an instrumented pipeline names. Without iterators, they include the calls of a
PyTorch DataLoader and the ops inside them. Where Stepscope recorded the worker processes of a loader, the host side
also says what they do: the time for a batch, the function that takes most of it, whether the loop waits for them, and
how many would keep up.

The verdict reads the account of the median step, as the overview does. A step lasts to the start of the next one, so a
batch that is fetched between the marks counts. Only exposed waits count. Host time that overlaps the step's computation
costs nothing, however long it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from stepscope.analysis.account.account import StepAccount, account_shown, account_without_culprits
from stepscope.analysis.account.account_text import CAUSE_FIELDS, cause_cells, input_percent, input_sentence
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.every_step import accounted_steps, every_step
from stepscope.analysis.input import tf_data_tool
from stepscope.analysis.input.input_ops import INPUT_OPS, MEANING, input_ops, work_by_category
from stepscope.analysis.input.loaders import Loader, add_loaders, loaders_of, wait_per_step
from stepscope.analysis.input.worker_processes import FIELDS as WORKER_FIELDS
from stepscope.analysis.input.worker_processes import (
    FUNCTION_FIELDS,
    QUEUE_FIELDS,
    WorkersOfHost,
    function_rows,
    least_cores,
    queue_figures,
    queue_sentence,
    slow_function,
    worker_rows,
    workers_of,
)
from stepscope.analysis.steps.device_steps import device_name
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.session_steps import (
    STEP_TIME_FIELDS,
    Aligned,
    StepRow,
    StepsOfHost,
    align,
    finding_of,
    step_time_statistics,
    step_warnings,
    usual_of,
)
from stepscope.analysis.steps.verdict import HIGHLY_INPUT_BOUND, MODERATELY_INPUT_BOUND
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import COMPUTING, device_rows
from stepscope.analysis.trace.host_copies import COPIES, host_copies
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Lines,
    Part,
    Report,
    Role,
    Row,
    Table,
    amount,
    as_figures,
    as_prose,
    as_table,
    fields_named,
    make_rows,
    not_in_json,
    percent,
    round_ms,
)
from stepscope.report.relation import Counted

# ---- How long each device waits for input in each step ---------------------------------------------------------------


_TAKES_INPUT = (EventKind.COPY_HOST_TO_DEVICE, EventKind.INFEED)


@dataclass(frozen=True)
class CoreWait:
    """One device, or the host if there is none, and its waiting time in ps in each step of the host."""

    core: str
    per_step_ps: list[int]


def core_waits(trace: HostTrace) -> list[CoreWait]:
    """The waiting time of every device that computed; of the host if none did.

    A device waits for input while the step waits for its next batch or data is copied to the device, and the device
    does nothing else.
    """
    work = device_rows(trace)
    kind, plane = trace.events.kind[work], trace.lines.plane[trace.events.line[work]]
    computing = np.bincount(plane[is_any_kind(kind, COMPUTING)])
    if not computing.any():
        account = every_step(trace)
        return [CoreWait("host", account.causes_ps()[:, Cause.INPUT].tolist() if account else [])]
    steps = steps_of(trace)
    waits = events_of_kind(trace, EventKind.INPUT_WAIT)
    waiting = spans_of(trace, waits[is_thread_event(trace)[waits] & (steps.label[waits] >= 0)])
    takes = is_any_kind(kind, _TAKES_INPUT)
    found = []
    for row in np.flatnonzero(computing).tolist():
        here = plane == row
        busy = spans_of(trace, work[here & ~takes])
        either = waiting | spans_of(trace, work[here])
        waited = either.overlap_ps(steps.start_ps, steps.until_ps) - busy.overlap_ps(steps.start_ps, steps.until_ps)
        found.append(CoreWait(device_name(trace, row), waited.tolist()))
    return found


SUMMARY_FIELDS: tuple[Field, ...] = (
    Field(
        "verdict", "text",
        "whether the step waits for input for 5 % or more; the overview says what limits the run", role=Role.TERM,
    ),
    Field(
        "level", "text",
        "highly from 20 %, moderately from 5 %, otherwise not; unknown without steps", role=Role.TERM,
    ),
    Field(
        "input_percent", "percent",
        "share of the median step, without contention, that goes into input and into copies to a device",
    ),
    Field("input_time_ms", "ms", "work of all input ops on all hosts over the whole capture, overlapped or not"),
    Field("largest", "text", "the category with the most input work", role=Role.TERM),
)  # fmt: skip
WAITING_FIELDS: tuple[Field, ...] = (
    Field("mean", "ms", "time that a device waits for input in a step, mean over steps and devices"),
    Field("std", "ms", "sample standard deviation (n - 1) over steps, of the mean over devices", label="±"),
    Field("min", "ms", "the shortest wait of any device in any step", label="Shortest"),
    Field("max", "ms", "the longest wait of any device in any step", label="Longest"),
    Field("cores", "count", "devices that waited or worked; hosts if there are no devices", "int", label="Devices"),
)
STEP_FIELDS: tuple[Field, ...] = (
    Field("step", "number", "the step's number", "int", role=Role.STEP),
    Field("name", "text", "the name of the step", role=Role.NAME),
    Field("duration_ms", "ms", "its duration on its slowest host"),
    Field("fetch_ms", "ms", "time in calls that wait for a batch, on the slowest host; see the loaders"),
    Field(
        "waiting_mean_ms", "ms",
        "time in which the device does nothing while the step waits for its batch or data is copied to the device, "
        "mean over devices",
    ),
    Field("waiting_min_ms", "ms", "the same for the device that waits least"),
    Field("waiting_max_ms", "ms", "the same for the device that waits most"),
    Field("waiting_most", "text", "the device that waits most, with its host", role=Role.PLACE),
    *CAUSE_FIELDS,
    Field(
        "complete",
        "",
        "no if the capture cuts the step off; statistics leave such steps out",
        "bool",
        role=Role.COMPLETE,
    ),
)  # fmt: skip
_STEP_PARTS = (
    Part(
        "Device side: the same in each step",
        (
            *("step", "name", "duration_ms", "fetch_ms"),
            *("waiting_mean_ms", "waiting_min_ms", "waiting_max_ms", "waiting_most"),
        ),
    ),
    Part("Account: what each step waits for", ("step", *(field.name for field in CAUSE_FIELDS), "complete")),
)
HOST_FIELDS: tuple[Field, ...] = (
    Field("category", "text", "the kind of input work", role=Role.TERM),
    Field("time_ms", "ms", "work of the ops of this category on all hosts; see work_ms"),
    Field("percent", "percent", "share of the work of all input ops"),
    Field("meaning", "text", "what belongs to the category", role=Role.MEANING),
)
LOADER_FIELDS: tuple[Field, ...] = (
    Field(
        "loader", "text",
        "the call in which the loop waits for its next batch; loaders below 1 % of the first are left out",
        role=Role.LABEL,
    ),
    Field("calls", "count", "calls on all hosts; the last one of an epoch may return no batch", "int"),
    Field("total_ms", "ms", "time in these calls"),
    Field("avg_ms", "ms", "time per call"),
    Field("max_ms", "ms", "the longest call"),
    Field(
        "step_percent", "percent",
        "time of these calls inside steps, as a share of the time of all steps; hosts without steps do not count",
    ),
    Field(
        "workers", "count",
        "processes that prepare the items; 0 if the calls do it themselves; otherwise known only if Python calls were "
        "recorded while the loader started",
        "int",
    ),
    Field("pinning", "text", "where batches are copied to pinned memory, if that was recorded", role=Role.TYPE),
    Field("pins", "count", "copies to pinned memory there", "int"),
    Field("pin_ms", "ms", "time of these copies"),
)  # fmt: skip
COPY_FIELDS: tuple[Field, ...] = (
    Field(
        "memory", "text", "the source memory on the host, pinned or pageable; unknown if not recorded", role=Role.PLACE
    ),
    Field("count", "count", "copies to all devices during the capture", "int"),
    Field("bytes", "bytes", "size of all copies; unknown if a copy does not record its size", "int"),
    Field("total_ms", "ms", "time of the copies, on all devices together", label="Total, all devices"),
    Field("gigabytes_per_s", "GB/s", "bytes per time; a gigabyte has 10^9 bytes", label="Rate"),
    Field(
        "exposed_ms", "ms", "time in which a device runs only such copies, all added up", label="Exposed, all devices"
    ),
    Field(
        "call_ms", "ms", "time in the host calls that start them; from pageable memory a call lasts as long as the copy"
    ),
)
OP_FIELDS: tuple[Field, ...] = (
    Field(
        "op", "text",
        "the input op; for tf.data iterators the long name without the numbers of opened inputs", role=Role.NAME,
    ),
    Field("count", "count", "runs during the capture", "int"),
    Field("total_ms", "ms", "total duration of its runs"),
    Field("total_percent", "percent", "`total_ms` as a share of the self time of all input ops; may exceed 100"),
    Field("self_ms", "ms", "duration without ops nested in it on the same thread"),
    Field("self_percent", "percent", "`self_ms` as a share of the self time of all input ops"),
    Field("category", "text", "its kind of input work; see the breakdown", role=Role.TERM),
    Field(
        "work_ms", "ms",
        "duration without waiting for other input ops on any thread; the breakdown sums these, so that no wait counts "
        "twice",
    ),
)  # fmt: skip

_ADVICE = {
    "read_on_demand": "read ahead and from several files at once: .interleave(open_file, "
    "num_parallel_calls=tf.data.AUTOTUNE) and .prefetch(tf.data.AUTOTUNE)",
    "read_in_advance": "tune reading ahead: interleave's cycle_length, the prefetch size, the reader's buffer_size; "
    "pack small files into larger ones",
    "preprocessing": "prepare in parallel with .map(fn, num_parallel_calls=tf.data.AUTOTUNE), or offline",
    "enqueue": "copy fewer, larger pieces to the device",
    "other": "find the op in the table below",
}
_TORCH_ADVICE = {
    "preprocessing": "prepare items in other processes while the step runs: DataLoader(num_workers=..., "
    "persistent_workers=True); the advice says how many",
    "enqueue": "use DataLoader(pin_memory=True) and .to(device, non_blocking=True)",
    "other": "use more worker processes, DataLoader(num_workers=...), or prepare more batches ahead, prefetch_factor",
}


@dataclass(frozen=True)
class InputOfHost:
    """The part of one host; `fetch_ps` is the time of each step in calls that wait for a batch."""

    steps: StepsOfHost
    account: StepAccount | None
    framework: str
    stages: tf_data_tool.PipelinesOfHost
    waits: list[CoreWait]
    fetch_ps: list[int]
    ops: Counted
    loaders: list[Loader]
    copies: Counted
    workers: WorkersOfHost


RELATIONS = {"ops": INPUT_OPS, "copies": COPIES}


def _host_rows(report: InputPipelineReport) -> Table:
    breakdown = report.host_breakdown_ms if report.rows else {}
    whole = sum(breakdown.values())
    return tuple(
        {"category": key, "time_ms": time, "percent": percent(time, whole), "meaning": MEANING[key]}
        for key, time in breakdown.items()
    )


_NO_WORKERS = (
    "no worker processes were recorded: `stepscope run` records all, other captures those that start after "
    "`stepscope.Profile` or a callback was made"
)
_NO_SAMPLES = "no function of the program was sampled in worker processes"
_WAITS = {  # the level in words
    "highly": "the steps wait long for input",
    "moderately": "the steps wait for input",
    "not": "the steps hardly wait for input",
}
_EMPTY = (
    "no input ops in the capture: the data is in memory, or the host was not recorded; record with "
    "ProfilerOptions(host_tracer_level=2); for PyTorch, record code that takes batches from a DataLoader"
)


@dataclass(frozen=True, kw_only=True)
class InputPipelineReport(Report):
    """The input pipeline of a session; the FIELDS tables of this module explain its parts."""

    TOOL: ClassVar[str] = "input-pipeline"
    SCHEMA_VERSION: ClassVar[int] = 3

    summary: Lines = as_prose("Summary")
    figures: Row = as_figures("Input", SUMMARY_FIELDS, id="input")
    steps_source: str
    step_time_ms: Row = as_figures("Device side: step time", STEP_TIME_FIELDS, id="step_time")
    waiting_ms: Row = as_figures("Device side: idle while a batch is awaited or copied", WAITING_FIELDS, id="waiting")
    steps: Table = as_table("Device side: the same in each step", STEP_FIELDS, "no steps", _STEP_PARTS)
    host_breakdown_ms: dict[str, float] = as_table(
        "Host side: where the input's time goes", HOST_FIELDS, "no input ops", id="host_breakdown", rows=_host_rows
    )
    loaders: Table = as_table("Host side: loaders", LOADER_FIELDS, "no calls that wait for a batch")
    queue: Row = as_figures("Host side: the queue of the worker processes", QUEUE_FIELDS)
    workers: Table = as_table("Host side: worker processes", WORKER_FIELDS, _NO_WORKERS)
    worker_functions: Table = as_table("Host side: functions of the worker processes", FUNCTION_FIELDS, _NO_SAMPLES)
    copies: Table = as_table("Copies to the devices", COPY_FIELDS, "nothing was copied to a device")
    rows: Table = as_table("Host side: input ops", OP_FIELDS, _EMPTY)
    queue_summary: str = not_in_json()

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object, with the figures beside the tables."""
        values = super().body()
        return {**values.pop("figures"), **values}


COMPARABLES = (
    Comparable(
        id="input_ops",
        title="Input ops",
        keys=fields_named(OP_FIELDS, "op", "category"),
        measure=Field("self_ms", "ms", "self time of the input op"),
        count="count",
        is_total=True,
        empty="neither side has input ops",
    ),
)


def partial(trace: HostTrace) -> InputOfHost:
    """The part of one host."""
    return InputOfHost(
        steps=accounted_steps(trace),
        account=account_without_culprits(trace),
        framework=trace.framework,
        stages=tf_data_tool.partial(trace),
        waits=core_waits(trace),
        fetch_ps=wait_per_step(trace),
        ops=input_ops(trace),
        loaders=loaders_of(trace),
        copies=host_copies(trace),
        workers=workers_of(trace),
    )


def merge(partials: Sequence[InputOfHost]) -> InputPipelineReport:
    """The input pipeline of the session."""
    hosts = [part.steps for part in partials]
    aligned = align(hosts)
    waits = _device_waits(partials)
    fetch = {id(row): time for part in partials for row, time in zip(part.steps.rows, part.fetch_ps, strict=True)}
    causes = cause_cells([row.causes_ps for row in aligned.slowest])
    steps = tuple(
        _step_row(slowest, [wait for row in rows for wait in waits[id(row)]], fetch[id(slowest)], complete) | cells
        for slowest, rows, complete, cells in zip(aligned.slowest, aligned.steps, aligned.complete, causes, strict=True)
    )
    counted = usual_of(aligned.steps)
    whole = [steps[at] for at in counted]
    ops, copies = INPUT_OPS.merge([part.ops for part in partials]), COPIES.merge([part.copies for part in partials])
    self_ps = sum(ops["self_ps"])
    breakdown = {key: round_ms(time) for key, time in work_by_category(ops).items()}
    taking = aligned.participants(hosts)
    account = account_shown([part.account for part in partials if part.steps.host in aligned.hosts])
    places = aligned.places_of(account.host if account is not None else None)
    figures = _input_figures(breakdown, account)
    framework = next((part.framework for part in partials if part.framework), "")
    workers = [part.workers for part in partials]
    queue = queue_figures(workers)
    queued = queue_sentence(queue, slow_function(workers), least_cores(workers))
    summary = _summary(figures, breakdown, framework, tf_data_tool.merge([part.stages for part in partials]))
    return InputPipelineReport(
        hosts=tuple(part.host for part in hosts),
        warnings=(*step_warnings(hosts, aligned), *_missing_input_warnings(partials, bool(len(ops)))),
        partial=any(part.partial for part in hosts),
        figures=figures,
        summary=(_verdict_line(figures, account), *summary, *([queued] if queued else [])),
        steps_source=finding_of(taking or hosts).source,
        step_time_ms=step_time_statistics([aligned.steps[at][places[at]].duration_ps for at in counted]),
        waiting_ms=_waiting_statistics(whole, partials, aligned),
        steps=steps,
        host_breakdown_ms=breakdown,
        loaders=_loader_rows(partials, taking),
        queue=queue,
        queue_summary=queued or "",
        worker_functions=function_rows(workers),
        workers=worker_rows([(part.steps.host, part.workers) for part in partials]),
        copies=copies.table(COPY_FIELDS, gigabytes_per_s=[*map(_gigabytes_per_s, copies["bytes"], copies["total_ps"])]),
        rows=ops.table(
            OP_FIELDS, total_percent=ops.share("total_ps", self_ps), self_percent=ops.share("self_ps", self_ps)
        ),
    )


def _device_waits(partials: Sequence[InputOfHost]) -> dict[int, list[tuple[int, str]]]:
    """Waiting time in ps of each device of a host in each of its steps, by the identity of the step's row."""
    return {
        id(row): [(core.per_step_ps[at], f"{part.steps.host} {core.core}") for core in part.waits]
        for part in partials
        for at, row in enumerate(part.steps.rows)
    }


def _step_row(slowest: StepRow, waits: Sequence[tuple[int, str]], fetch_ps: int, complete: bool) -> dict[str, Cell]:
    most, where = max(waits, key=lambda wait: wait[0], default=(None, None))
    return {
        "step": slowest.number,
        "name": slowest.name,
        "duration_ms": round_ms(slowest.duration_ps),
        "fetch_ms": round_ms(fetch_ps),
        "waiting_mean_ms": round_ms(sum(time for time, _ in waits) / len(waits)) if waits else None,
        "waiting_min_ms": round_ms(min(time for time, _ in waits)) if waits else None,
        "waiting_max_ms": None if most is None else round_ms(most),
        "waiting_most": where,
        "complete": complete,
    }


def _waiting_statistics(
    steps: Sequence[dict[str, Cell]], partials: Sequence[InputOfHost], aligned: Aligned
) -> dict[str, Cell]:
    cores = sum(len(part.waits) for part in partials if part.steps.host in aligned.hosts)
    known = [step for step in steps if step["waiting_mean_ms"] is not None]
    spread = step_time_statistics([round(1e9 * amount(step["waiting_mean_ms"])) for step in known])
    del spread["count"]
    if known:
        spread["min"] = min(amount(step["waiting_min_ms"]) for step in known)
        spread["max"] = max(amount(step["waiting_max_ms"]) for step in known)
    return spread | {"cores": cores}


def _input_figures(breakdown: dict[str, float], account: StepAccount | None) -> dict[str, Cell]:
    waits = None if account is None else input_percent(account)
    level = None if waits is None else _level(waits)
    work = math.fsum(breakdown.values())
    return {
        "verdict": _VERDICT_OF_LEVEL.get(level or "", "unknown"),
        "level": level,
        "input_percent": None if waits is None else round(waits, 4),
        "input_time_ms": round(work, 6),
        "largest": max(breakdown, key=lambda key: breakdown[key]) if work else None,
    }


_VERDICT_OF_LEVEL = {"highly": "input_bound", "moderately": "input_bound", "not": "not_input_bound"}


def _level(share: float) -> str:
    if share >= HIGHLY_INPUT_BOUND:
        return "highly"
    return "moderately" if share >= MODERATELY_INPUT_BOUND else "not"


def _loader_rows(partials: Sequence[InputOfHost], taking: Sequence[StepsOfHost]) -> Table:
    whole = sum(row.duration_ps for host in taking for row in host.rows)
    stepping = {host.host for host in taking}
    loaders = (
        loader if part.steps.host in stepping else replace(loader, in_steps_ps=0)
        for part in partials
        for loader in part.loaders
    )
    return make_rows(
        LOADER_FIELDS,
        list(add_loaders(loaders)),
        loader=lambda loader: loader.name,
        avg_ms=lambda loader: round_ms(loader.total_ps / loader.calls),
        step_percent=lambda loader: percent(loader.in_steps_ps, whole),
        pins=lambda loader: loader.pins if loader.pinning else None,
        pin_ms=lambda loader: round_ms(loader.pin_ps) if loader.pinning else None,
    )


def _gigabytes_per_s(size: int | None, ps: int) -> float | None:
    return round(1e3 * size / ps, 3) if size is not None and ps else None


def _summary(
    figures: dict[str, Cell], breakdown: dict[str, float], framework: str, stages: tf_data_tool.TfDataReport
) -> Iterator[str]:
    level, largest = figures["level"], figures["largest"]
    if isinstance(largest, str) and largest != "other":
        share = percent(breakdown[largest], sum(breakdown.values())) or 0.0
        yield (
            f"most input work on the host is {largest.replace('_', ' ')}: {share:.1f} % of "
            f"{amount(figures['input_time_ms']):,.2f} ms"
        )
        if level in ("highly", "moderately"):
            by_category = _ADVICE | (_TORCH_ADVICE if framework == "pytorch" else {})
            yield f"what to do: {stages.bottleneck['suggestion'] if stages.bottleneck else by_category[largest]}"
    if stages.pipelines and level in ("highly", "moderately"):
        yield "to see which stage the steps wait for: stepscope tf-data"
    if level == "not":
        yield "to see what limits the steps instead: stepscope overview"


def _verdict_line(figures: dict[str, Cell], account: StepAccount | None) -> str:
    """The level, with the shares of the causes that count as input: each as the overview has it."""
    level = figures["level"]
    if level is None or account is None:
        return "unknown: the capture contains no steps that take time"
    return f"{_WAITS[str(level)]}: {input_sentence(account)}"


def _missing_input_warnings(partials: Sequence[InputOfHost], has_ops: bool) -> tuple[str, ...]:
    if not any(part.steps.rows for part in partials):
        return (
            "no steps in this capture: put `with stepscope.step(i):` around what repeats, a training step or a request",
        )
    if has_ops:
        return ()
    if all(part.framework == "pytorch" for part in partials):
        return (
            "no input ops in this capture: with ProfilerActivity.CPU, PyTorch's profiler records a DataLoader that the "
            "profiled loop iterates (`for batch in loader`)",
        )
    return (
        "no input ops in this capture: tf.data iterators are recorded with ProfilerOptions(host_tracer_level=2) if a "
        "batch is fetched during the capture; other loaders record no events",
    )
