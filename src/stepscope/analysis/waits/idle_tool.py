"""Why devices are idle, stream by stream, how long their queues are, and how work is launched.

A gap is the time between the end of one piece of work on a stream and the start of the next. It has one cause:

- host wait: the host had not started to launch the next work when the last one ended, so the stream was empty;
- kernel wait: the work was launched in time and starts less than 30 us after the last one, which a device needs from
  one kernel to the next;
- other: the work was launched in time and starts later, for instance because it waits for another stream.

A gap before work without a recorded launch is never a host wait. No gap precedes the first work of a stream. During a
gap of one stream another may be busy; a separate table shows the idle time of whole devices. The longest gaps are
listed, those of streams that compute before those of streams that only copy or communicate.

What the step waits for while a device idles is the cause of that moment in the account of the step, which Summary and
the critical path show too. A table splits the median step by cause, with the part in which each device idles.

The queue of a stream holds launched work that has not started. Launching blocks at about 1024 entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from stepscope.analysis.account.causes import MEANING, TERMS, Cause
from stepscope.analysis.account.devices import busy_by_device
from stepscope.analysis.account.every_step import EveryStep, every_step
from stepscope.analysis.ops import launches
from stepscope.analysis.ops.launches import stream_name
from stepscope.analysis.steps.device_steps import device_name
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.verdict import LEAST_PERCENT
from stepscope.analysis.trace.attribution import Attribution, attribute
from stepscope.analysis.trace.grouping import COMPUTING
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.trace.remedies import DEVICE_ACTIVITY, remedy
from stepscope.analysis.trace.spans import Spans
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I64
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
    fields_named,
    percent,
    round_ms,
)
from stepscope.report.relation import Counted, Merged, Relation, merge_hosts
from stepscope.vocabulary.kernel_names import brief

NEXT_KERNEL_PS = 30_000_000
FULL_QUEUE = 1024
MOST_GAPS = 50  # listed in all, the longest
_MODEL = (EventKind.KERNEL, EventKind.DEVICE_OP, EventKind.GRAPH_LAUNCH)
_WORKING_LINES = (LineKind.STREAM, LineKind.DEVICE_OPS)

CAUSES = ("host wait", "kernel wait", "other")

_HOST = Field("host", "text", "the host whose device it is", role=Role.HOST)
_DEVICE = Field("device", "text", "the device", role=Role.PLACE)
CAUSE_FIELDS: tuple[Field, ...] = (
    _HOST,
    Field("device", "text", "the device; those that do nothing in the median step are left out", role=Role.PLACE),
    Field("cause", "text", "what the median step waits for: a cause of its account", role=Role.TERM),
    Field("ms", "ms", "time of the median step with that cause, as in the account"),
    Field("idle_ms", "ms", "the part of it in which the device has no work"),
    Field("idle_percent", "percent", "that part as a share of the device's idle time in the median step"),
    Field("meaning", "text", "when a moment has that cause", role=Role.MEANING),
)
STREAM_FIELDS: tuple[Field, ...] = (
    _HOST,
    _DEVICE,
    Field("stream", "text", "the stream, as the trace names it", role=Role.PLACE),
    Field("busy_ms", "ms", "time with work on the stream"),
    Field("idle_ms", "ms", "all gaps between the first and the last work of the stream"),
    Field("host_wait_ms", "ms", "gaps in which the host had not started to launch the next work"),
    Field("kernel_wait_ms", "ms", "gaps of less than 30 us before work that was launched in time"),
    Field("other_ms", "ms", "longer gaps before work that was launched in time"),
    Field("host_wait_percent", "percent", "host wait as a share of the stream's idle time"),
    Field("kernel_wait_percent", "percent", "kernel wait as a share of it"),
    Field("other_percent", "percent", "the rest of it"),
)
GAP_FIELDS: tuple[Field, ...] = (
    _HOST,
    _DEVICE,
    Field("stream", "text", "the stream", role=Role.PLACE),
    Field("start_ms", "ms", "start of the gap, from the start of the capture", role=Role.INSTANT),
    Field("duration_ms", "ms", "duration of the gap"),
    Field("cause", "text", "host wait, kernel wait or other, as the idle time of streams is split", role=Role.TERM),
    Field(
        "waits_for",
        "text",
        "what the step waits for during most of the gap: a cause of the account; unknown outside of steps",
        role=Role.TERM,
    ),
    Field("before", "text", "the work before the gap: its op, or its own name", role=Role.LABEL),
    Field("after", "text", "the work after the gap: its op, or its own name", role=Role.LABEL),
)
DEVICE_FIELDS: tuple[Field, ...] = (
    _HOST,
    _DEVICE,
    Field("span_ms", "ms", "time from the start of the device's first work to the end of its last"),
    Field("busy_ms", "ms", "time with work on any stream"),
    Field("idle_ms", "ms", "time without work on any stream"),
    Field("idle_percent", "percent", "idle time as a share of the span"),
    Field("computes", "", "whether it ran a kernel or an op; no if it only copied", "bool", label="Ran kernels"),
)
QUEUE_FIELDS: tuple[Field, ...] = (
    _HOST,
    _DEVICE,
    Field("stream", "text", "the stream", role=Role.PLACE),
    Field("launched", "count", "pieces of work with a recorded launch call", "int"),
    Field("queue_mean", "count", "launched pieces that have not started, averaged over time"),
    Field("queue_max", "count", "the most of them at once", "int"),
    Field("empty_percent", "percent", "time with nothing in the queue, from the first launch to the last start"),
    Field("full_percent", "percent", f"time with {FULL_QUEUE} or more in the queue, when launching blocks"),
)


STREAMS = Relation(
    ("host", "device", "stream", "queue_max"),
    (
        *("busy_ps", "idle_ps", "host_wait_ps", "kernel_wait_ps", "other_ps"),
        *("launched", "queue_area", "queue_span_ps", "empty_ps", "full_ps"),
    ),
    order=("-idle_ps",),
    most=256,
)
"""The gaps and the queue of each stream; `queue_area` is queue length times time."""
GAPS = Relation(
    ("host", "device", "stream", "start_ps", "cause", "before", "after", "waits_for", "computes"),
    ("duration_ps",),
    order=("-computes", "-duration_ps"),
)
"""`cause` is one of `CAUSES`, `waits_for` one of the account's or None; a stream that only copies or communicates does
not compute: it is empty while the device works."""
DEVICES = Relation(("host", "device", "computes"), ("span_ps", "busy_ps", "idle_ps"), order=())
"""The time from first to last work and its parts; one that only copies does not compute."""
WAITED = Relation(("host", "device", "cause", "computes"), ("ps", "idle_ps"), order=())
"""The median step by cause, a number of `Cause`: all its time, and that in which the device idles."""


@dataclass(frozen=True)
class IdleOfHost:
    """The part of one host."""

    origin: Origin
    streams: Counted
    gaps: Counted
    devices: Counted
    launches: Counted
    causes: Counted


RELATIONS = {"streams": STREAMS, "gaps": GAPS, "devices": DEVICES, "launches": launches.STREAMS, "causes": WAITED}


def _empty(report: Report) -> str:
    how = remedy(DEVICE_ACTIVITY, report.recorder)
    return f"no device work, so nothing could be idle: if a device took part, {how}"


_NO_CAUSES = "no steps with device work, so there is no account of what devices idle for"


@dataclass(frozen=True, kw_only=True)
class IdleReport(Report):
    """Idle time by cause, queues and launches; see the FIELDS tables of this module."""

    TOOL: ClassVar[str] = "idle"

    findings: Lines = as_prose("Idle time")
    causes: Table = as_table("What the median step waits for while devices idle", CAUSE_FIELDS, _NO_CAUSES)
    rows: Table = as_table("Idle time of streams by cause", STREAM_FIELDS, _empty)
    gaps: Table = as_table(f"Longest gaps, at most {MOST_GAPS}", GAP_FIELDS, "no gap on any stream")
    devices: Table = as_table("Idle time of devices", DEVICE_FIELDS, _empty)
    queues: Table = as_table("Queues", QUEUE_FIELDS, "no launches are recorded")
    launches: Row = as_figures("Launches", launches.FIELDS)


def _idle_by_reason(report: IdleReport) -> Iterator[dict[str, Cell]]:
    """The idle time of each stream, one row per cause."""
    for row in report.rows:
        stream = {"device": row["device"], "stream": row["stream"]}
        for cause in CAUSES:
            yield {**stream, "cause": cause, "idle_ms": row[f"{cause.replace(' ', '_')}_ms"]}


COMPARABLES = (
    Comparable(
        id="idle",
        title="Idle time of streams by cause",
        keys=(*fields_named(STREAM_FIELDS, "device", "stream"), *fields_named(GAP_FIELDS, "cause")),
        measure=Field("idle_ms", "ms", "idle time of the stream for this cause, over all hosts"),
        rows=_idle_by_reason,
        is_total=True,
        empty="neither side has device work",
    ),
)


def partial(trace: HostTrace) -> IdleOfHost:
    """The part of one host."""
    found = attribute(trace)
    line = trace.events.line[found.rows]
    streams, gaps, devices = [], [], []
    for plane in trace.device_planes():
        lines = [row for row in trace.lines_of(*_WORKING_LINES).tolist() if trace.lines.plane[row] == plane]
        place = {"host": trace.host, "device": device_name(trace, plane)}
        of_device = np.flatnonzero(np.isin(line, lines))
        if not len(of_device):
            continue
        devices.append(place | _device(trace, found.rows[of_device]))
        for row in lines:
            here = of_device[line[of_device] == row]
            if len(here):
                named = place | {"stream": stream_name(trace, row)}
                stream, longest = _stream(trace, found, here)
                streams.append(named | stream)
                computes = np.isin(trace.events.kind[found.rows[here]], _MODEL).any()
                gaps += [named | {"computes": bool(computes)} | gap for gap in longest]
    streams.sort(key=lambda stream: (stream["device"], stream["stream"]))
    gaps.sort(key=lambda gap: (-gap["computes"], -gap["duration_ps"], gap["start_ps"]))
    steps = every_step(trace) if devices and steps_of(trace).source != "none" else None
    return IdleOfHost(
        origin_of(trace),
        STREAMS.keep_named(streams),
        GAPS.keep_named(_explained(gaps[:MOST_GAPS], steps)),
        DEVICES.keep_named(devices),
        launches.launches_of_streams(trace),
        WAITED.keep_named([] if steps is None else [*_causes(trace, steps, devices)]),
    )


def _explained(gaps: Sequence[dict[str, Any]], steps: EveryStep | None) -> list[dict[str, Any]]:
    """The gaps with the cause that most of each has in the account of its step."""
    start, length = (np.array([gap[name] for gap in gaps], np.int64) for name in ("start_ps", "duration_ps"))
    longest = [None] * len(gaps) if steps is None else steps.longest_causes(start, start + length)
    return [gap | {"waits_for": cause} for gap, cause in zip(gaps, longest, strict=True)]


def _causes(trace: HostTrace, steps: EveryStep, devices: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The median step by cause for each device that does anything in it, those that it idles longest for first."""
    whole, computing = steps.causes_ps()[steps.median], {each["device"]: each["computes"] for each in devices}
    for plane, busy in busy_by_device(trace).items():
        idle = steps.causes_of_part(steps.length_ps - steps.part_within(busy))[steps.median]
        name = device_name(trace, plane)
        if int(idle.sum()) < int(whole.sum()):
            device = {"host": trace.host, "device": name, "computes": computing.get(name, False)}
            for cause in sorted(MEANING, key=lambda cause: (-idle[cause], -whole[cause])):
                if whole[cause]:
                    row = {"cause": int(cause), "ps": int(whole[cause]), "idle_ps": int(idle[cause])}
                    yield device | row


def _device(trace: HostTrace, rows: I64) -> dict[str, Any]:
    start = trace.events.start_ps[rows]
    end = start + trace.events.duration_ps[rows]
    span = Spans.union(start.min(keepdims=True), end.max(keepdims=True))
    busy = Spans.union(start, end)
    return {
        "computes": bool(np.isin(trace.events.kind[rows], COMPUTING).any()),
        "span_ps": span.total,
        "busy_ps": busy.total,
        "idle_ps": span.total - busy.total,
    }


def _stream(trace: HostTrace, found: Attribution, here: I64) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """One stream and its longest gaps; `here` are places in what was attributed."""
    rows, call = found.rows[here], found.call[here]

    def name_of(at: int) -> str:
        op = int(found.op[here[at]])
        return found.ops[op][0] if op >= 0 else brief(trace.name_of(int(rows[at])))

    start = trace.events.start_ps[rows]
    end = start + trace.events.duration_ps[rows]
    known = call >= 0
    called = trace.events.start_ps[np.maximum(call, 0)]
    free = np.maximum.accumulate(end)[:-1]
    gap = np.maximum(start[1:] - free, 0)
    host = known[1:] & (called[1:] > free)
    near = ~host & (gap < NEXT_KERNEL_PS)
    cause = np.where(host, 0, np.where(near, 1, 2))  # places in CAUSES
    idle = {
        "busy_ps": int(end.max() - start.min() - gap.sum()),
        "idle_ps": int(gap.sum()),
        **{f"{name.replace(' ', '_')}_ps": int(gap[cause == at].sum()) for at, name in enumerate(CAUSES)},
        **_queue(called[known], start[known]),
    }
    ended = np.maximum.accumulate(np.where(end[:-1] == free, np.arange(len(free)), 0))  # the place of what ends last
    longest = [at for at in np.argsort(-gap, kind="stable")[:MOST_GAPS].tolist() if gap[at] > 0]
    return idle, [
        {
            "start_ps": int(free[at]),
            "duration_ps": int(gap[at]),
            "cause": CAUSES[cause[at]],
            "before": name_of(int(ended[at])),
            "after": name_of(at + 1),
        }
        for at in longest
    ]


def _queue(called: I64, started: I64) -> dict[str, int | float]:
    """What was launched, queue length times time, the longest queue, the time from first launch to last start, and the
    parts of that time with an empty and with a full queue."""
    started = np.maximum(started, called)  # clocks that disagree must not make a queue negative
    moment = np.concatenate([called, started])
    step = np.repeat([1, -1], len(called))
    order = np.lexsort((step, moment))
    moment, length = moment[order], np.cumsum(step[order])
    lasts, length = np.diff(moment), length[:-1]
    return {
        "launched": len(called),
        "queue_area": float((lasts * length.astype(np.float64)).sum()),
        "queue_max": int(length.max(initial=0)),
        "queue_span_ps": int(lasts.sum()),
        "empty_ps": int(lasts[length == 0].sum()),
        "full_ps": int(lasts[length >= FULL_QUEUE].sum()),
    }


def merge(partials: Sequence[IdleOfHost]) -> IdleReport:
    """The streams of all hosts, those with most idle time first."""
    found = merge_hosts(partials, RELATIONS)
    streams, devices, causes = found["streams"], found["devices"], found["causes"]
    launched = streams.take([at for at, count in enumerate(streams["launched"]) if count])
    return IdleReport(
        **header([part.origin for part in partials], _warn_of_unlisted(streams.left_out)),
        findings=(*(tuple(_describe_causes(causes)) or tuple(_describe_devices(devices))), *_describe_copies(devices)),
        causes=_cause_rows(causes),
        rows=streams.table(
            STREAM_FIELDS,
            **{
                f"{name}_percent": streams.ratio(f"{name}_ps", "idle_ps")
                for name in ("host_wait", "kernel_wait", "other")
            },
        ),
        gaps=found["gaps"].table(GAP_FIELDS)[:MOST_GAPS],
        devices=devices.table(DEVICE_FIELDS, idle_percent=devices.ratio("idle_ps", "span_ps")),
        queues=launched.table(
            QUEUE_FIELDS,
            queue_mean=[
                round(area / span, 4) if span else None
                for area, span in zip(launched["queue_area"], launched["queue_span_ps"], strict=True)
            ],
            empty_percent=launched.ratio("empty_ps", "queue_span_ps"),
            full_percent=launched.ratio("full_ps", "queue_span_ps"),
        ),
        launches=launches.figures(found["launches"]),
    )


def _warn_of_unlisted(left_out: int) -> list[str]:
    few = "1 stream with little idle time is" if left_out == 1 else f"{left_out:,} streams with little idle time are"
    return [f"{few} not listed: only the device figures include it"] if left_out else []


def _cause_rows(causes: Merged) -> Table:
    devices = [*zip(causes["host"], causes["device"], strict=True)]
    idle: Counter[tuple[str, str]] = Counter()
    for device, ps in zip(devices, causes["idle_ps"], strict=True):
        idle[device] += ps
    return causes.table(
        CAUSE_FIELDS,
        cause=[Cause(cause).name.lower() for cause in causes["cause"]],
        ms=[round_ms(ps) for ps in causes["ps"]],
        idle_percent=[percent(ps, idle[device]) for ps, device in zip(causes["idle_ps"], devices, strict=True)],
        meaning=[MEANING[cause] for cause in causes["cause"]],
    )


def _computing(rows: Merged) -> tuple[Merged, int]:
    """The rows of the devices that compute, or of all if none does, and how many devices that are."""
    kept = rows.take([at for at, computes in enumerate(rows["computes"]) if computes] or range(len(rows)))
    return kept, len({*zip(kept["host"], kept["device"], strict=True)})


def _describe_causes(causes: Merged) -> Iterator[str]:
    """How much of the median step devices idle, and what the step waits for meanwhile."""
    among, count = _computing(causes)
    idle = sum(among["idle_ps"])
    share = percent(idle, sum(among["ps"]))
    if share is None:
        return
    noun = "the device is" if count == 1 else f"{count} devices are"
    if share < LEAST_PERCENT:
        yield f"nothing to gain here: in the median step {noun} idle for {share:.1f} %"
        return
    spent: Counter[Cause] = Counter()
    for cause, ps in zip(among["cause"], among["idle_ps"], strict=True):
        spent[Cause(cause)] += ps
    most, ps = spent.most_common(1)[0]
    mostly = "mostly" if 2 * ps > idle else "most of all"
    terms = TERMS[most.name.lower()]
    yield f"in the median step {noun} idle for {share:.1f} %, {mostly} waiting for {terms.waited_for or terms.words}"


def _describe_devices(devices: Merged) -> Iterator[str]:
    """The same from their first to their last work, where no step says what counts."""
    among, count = _computing(devices)
    span = sum(among["span_ps"])
    idle = percent(sum(among["idle_ps"]), span)
    if idle is None:
        return
    noun = "device is" if count == 1 else f"{count} devices are"
    said = f"the {noun} idle for {idle:.1f} % of the time from first to last work"
    yield f"nothing to gain here: {said}" if idle < LEAST_PERCENT else said


def _describe_copies(devices: Merged) -> Iterator[str]:
    if others := len(devices) - _computing(devices)[1]:
        verb = "copies" if others == 1 else "copy"
        yield f"{others} more only {verb} data: this counts neither as busy nor as idle time here"
