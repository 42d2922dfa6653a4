"""Why devices are idle, stream by stream, how long their queues are, and how work is launched.

A gap is the time between the end of one piece of work on a stream and the start of the next. It has one cause:

- host wait: the host had not started to launch the next work when the last one ended, so the stream was empty;
- kernel wait: the work was launched in time and starts less than 30 us after the last one, which a device needs from
  one kernel to the next;
- other: the work was launched in time and starts later, for instance because it waits for another stream.

A gap before work without a recorded launch is never a host wait. No gap precedes the first work of a stream. During a
gap of one stream another may be busy; a separate table shows the idle time of whole devices.

What the step waits for while a device idles is the cause of that moment in the account of the step, which Summary and
the critical path show too. A table splits the median step by cause, with the part in which each device idles.

The queue of a stream holds launched work that has not started. Launching blocks at about 1024 entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from stepscope.analysis.account.account_text import cause_words
from stepscope.analysis.account.causes import MEANING
from stepscope.analysis.account.devices import busy_by_device
from stepscope.analysis.account.every_step import EveryStep, every_step
from stepscope.analysis.ops import launches
from stepscope.analysis.ops.launches import StreamLaunches, launches_of_streams, stream_name
from stepscope.analysis.steps.device_steps import device_name
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.attribution import attribute
from stepscope.analysis.trace.grouping import COMPUTING
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace, LineKind
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
    make_row,
    percent,
    round_ms,
)
from stepscope.vocabulary.kernel_names import brief

NEXT_KERNEL_PS = 30_000_000
FULL_QUEUE = 1024
MOST_STREAMS = 256  # kept per host, those with most idle time
MOST_GAPS = 50  # listed in all, the longest
_LEAST_SAID_PERCENT = 0.05
_MOST_CAUSES = 3
_WORKING_LINES = (LineKind.STREAM, LineKind.DEVICE_OPS)
_ALL_IN_STEPS_PERCENT = 90.0  # from here on, steps get no sentence of their own

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
    Field("before", "text", "the work before the gap", role=Role.LABEL),
    Field("after", "text", "the work after the gap", role=Role.LABEL),
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


@dataclass(frozen=True)
class StreamIdle:
    """The gaps and the queue of one stream; times in ps, `queue_area` is queue length times time."""

    device: str
    stream: str
    busy_ps: int
    host_wait_ps: int
    kernel_wait_ps: int
    other_ps: int
    launched: int
    queue_area: float
    queue_max: int
    queue_span_ps: int
    empty_ps: int
    full_ps: int

    @property
    def idle_ps(self) -> int:
        """All gaps."""
        return self.host_wait_ps + self.kernel_wait_ps + self.other_ps


@dataclass(frozen=True)
class Gap:
    """Time without work on a stream, in ps; `cause` is one of `CAUSES`, `waits_for` one of the account's or None."""

    device: str
    stream: str
    start_ps: int
    duration_ps: int
    cause: str
    before: str
    after: str
    waits_for: str | None = None


@dataclass(frozen=True)
class DeviceCauses:
    """The median step by cause, in the order of Cause: all its time, and that in which the device idles, in ps."""

    device: str
    computes: bool
    causes_ps: list[int]
    idle_ps: list[int]


@dataclass(frozen=True)
class DeviceIdle:
    """One device: the time from first to last work and its busy part, in total and inside steps.

    `computes` is False if the device only copies.
    """

    device: str
    span_ps: int
    busy_ps: int
    step_ps: int
    step_busy_ps: int
    computes: bool


@dataclass(frozen=True)
class IdleOfHost:
    """The part of one host; at most `MOST_STREAMS` of its streams, `left_out` counts the others."""

    origin: Origin
    streams: list[StreamIdle]
    left_out: int
    gaps: list[Gap]
    devices: list[DeviceIdle]
    launches: list[StreamLaunches]
    causes: list[DeviceCauses]


_EMPTY = (
    "no device work, so nothing could be idle: if a device took part, record it with "
    "ProfilerOptions(device_tracer_level=1)"
)
_NO_CAUSES = "no steps with device work, so there is no account of what devices idle for"


@dataclass(frozen=True, kw_only=True)
class IdleReport(Report):
    """Idle time by cause, queues and launches; see the FIELDS tables of this module."""

    TOOL: ClassVar[str] = "idle"

    findings: Lines = as_prose("Idle time")
    causes: Table = as_table("What the median step waits for while devices idle", CAUSE_FIELDS, _NO_CAUSES)
    rows: Table = as_table("Idle time of streams by cause", STREAM_FIELDS, _EMPTY)
    gaps: Table = as_table(f"Longest gaps, at most {MOST_GAPS}", GAP_FIELDS, "no gap on any stream")
    devices: Table = as_table("Idle time of devices", DEVICE_FIELDS, _EMPTY)
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
        name = device_name(trace, plane)
        of_device = np.flatnonzero(np.isin(line, lines))
        if not len(of_device):
            continue
        devices.append(_device(trace, name, found.rows[of_device]))
        for row in lines:
            here = of_device[line[of_device] == row]
            if len(here):
                stream, longest = _stream(trace, name, row, found.rows[here], found.call[here])
                streams.append(stream)
                gaps += longest
    streams.sort(key=lambda stream: (-stream.idle_ps, stream.device, stream.stream))
    gaps.sort(key=lambda gap: (-gap.duration_ps, gap.start_ps))
    kept, left_out = streams[:MOST_STREAMS], max(len(streams) - MOST_STREAMS, 0)
    steps = every_step(trace) if devices and steps_of(trace).source != "none" else None
    longest = _explained(gaps[:MOST_GAPS], steps)
    causes = [] if steps is None else _causes(trace, steps, devices)
    return IdleOfHost(origin_of(trace), kept, left_out, longest, devices, launches_of_streams(trace), causes)


def _explained(gaps: Sequence[Gap], steps: EveryStep | None) -> list[Gap]:
    """The gaps with the cause that most of each has in the account of its step."""
    if steps is None:
        return list(gaps)
    start = np.array([gap.start_ps for gap in gaps], np.int64)
    length = np.array([gap.duration_ps for gap in gaps], np.int64)
    longest = steps.longest_causes(start, start + length)
    return [replace(gap, waits_for=cause) for gap, cause in zip(gaps, longest, strict=True)]


def _causes(trace: HostTrace, steps: EveryStep, devices: Sequence[DeviceIdle]) -> list[DeviceCauses]:
    """The median step by cause for each device that does anything in it."""
    whole, computing = steps.causes_ps()[steps.median].tolist(), {each.device: each.computes for each in devices}
    found = []
    for plane, busy in busy_by_device(trace).items():
        idle = steps.causes_of_part(steps.length_ps - steps.part_within(busy))[steps.median]
        name = device_name(trace, plane)
        if int(idle.sum()) < sum(whole):
            found.append(DeviceCauses(name, computing.get(name, False), whole, idle.tolist()))
    return found


def _device(trace: HostTrace, name: str, rows: I64) -> DeviceIdle:
    start = trace.events.start_ps[rows]
    end = start + trace.events.duration_ps[rows]
    span = Spans.union(start.min(keepdims=True), end.max(keepdims=True))
    busy, steps = Spans.union(start, end), _step_spans(trace)
    computes = bool(np.isin(trace.events.kind[rows], COMPUTING).any())
    return DeviceIdle(name, span.total, busy.total, (span & steps).total, (busy & steps).total, computes)


def _step_spans(trace: HostTrace) -> Spans:
    """The time of all steps; empty if the whole capture counts as one step."""
    steps = steps_of(trace)
    known = slice(None) if steps.source != "none" else slice(0)
    return Spans.union(steps.start_ps[known], steps.until_ps[known])


def _stream(trace: HostTrace, device: str, line: int, rows: I64, call: I64) -> tuple[StreamIdle, list[Gap]]:
    """One stream and its longest gaps."""
    start = trace.events.start_ps[rows]
    end = start + trace.events.duration_ps[rows]
    known = call >= 0
    called = trace.events.start_ps[np.maximum(call, 0)]
    free = np.maximum.accumulate(end)[:-1]
    gap = np.maximum(start[1:] - free, 0)
    host = known[1:] & (called[1:] > free)
    near = ~host & (gap < NEXT_KERNEL_PS)
    name = stream_name(trace, line)
    idle = StreamIdle(
        device,
        name,
        int(end.max() - start.min() - gap.sum()),
        int(gap[host].sum()),
        int(gap[near].sum()),
        int(gap[~host & ~near].sum()),
        *_queue(called[known], start[known]),
    )
    ended = np.maximum.accumulate(np.where(end[:-1] == free, np.arange(len(free)), 0))  # the place of what ends last
    cause = np.where(host, 0, np.where(near, 1, 2))  # places in CAUSES
    longest = [at for at in np.argsort(-gap, kind="stable")[:MOST_GAPS].tolist() if gap[at] > 0]
    work = [(brief(trace.name_of(int(rows[ended[at]]))), brief(trace.name_of(int(rows[at + 1])))) for at in longest]
    return idle, [
        Gap(device, name, int(free[at]), int(gap[at]), CAUSES[cause[at]], *around)
        for at, around in zip(longest, work, strict=True)
    ]


def _queue(called: I64, started: I64) -> tuple[int, float, int, int, int, int]:
    """Launches, queue length times time, the longest queue, the time from first launch to last start, and the parts of
    that time with an empty and with a full queue."""
    started = np.maximum(started, called)  # clocks that disagree must not make a queue negative
    moment = np.concatenate([called, started])
    step = np.repeat([1, -1], len(called))
    order = np.lexsort((step, moment))
    moment, length = moment[order], np.cumsum(step[order])
    if not len(moment):
        return 0, 0.0, 0, 0, 0, 0
    lasts = np.diff(moment)
    area = float((lasts * length[:-1].astype(np.float64)).sum())
    empty, full = lasts[length[:-1] == 0].sum(), lasts[length[:-1] >= FULL_QUEUE].sum()
    return len(called), area, int(length.max()), int(moment[-1] - moment[0]), int(empty), int(full)


def merge(partials: Sequence[IdleOfHost]) -> IdleReport:
    """The streams of all hosts, those with most idle time first."""
    streams = [(part.origin.host, stream) for part in partials for stream in part.streams]
    streams.sort(key=lambda item: -item[1].idle_ps)
    gaps = [(part.origin.host, gap) for part in partials for gap in part.gaps]
    gaps.sort(key=lambda item: -item[1].duration_ps)
    devices = [(part.origin.host, device) for part in partials for device in part.devices]
    launched = [stream for part in partials for stream in part.launches]
    return IdleReport(
        **header([part.origin for part in partials], _warn_of_unlisted(partials)),
        findings=(
            *_describe_causes([each for part in partials for each in part.causes]),
            *_findings([device for _, device in devices], [stream for _, stream in streams]),
        ),
        causes=tuple(
            row for part in partials for device in part.causes for row in _cause_rows(part.origin.host, device)
        ),
        rows=tuple(_stream_row(host, stream) for host, stream in streams),
        gaps=tuple(make_row(GAP_FIELDS, gap, host=host) for host, gap in gaps[:MOST_GAPS]),
        devices=tuple(_device_row(host, device) for host, device in devices),
        queues=tuple(_queue_row(host, stream) for host, stream in streams if stream.launched),
        launches=launches.figures(launched),
    )


def _warn_of_unlisted(partials: Sequence[IdleOfHost]) -> list[str]:
    left_out = sum(part.left_out for part in partials)
    few = "1 stream with little idle time is" if left_out == 1 else f"{left_out:,} streams with little idle time are"
    return [f"{few} not listed: only the device figures include it"] if left_out else []


def _stream_row(host: str, stream: StreamIdle) -> Row:
    causes = {"host_wait": stream.host_wait_ps, "kernel_wait": stream.kernel_wait_ps, "other": stream.other_ps}
    shares = {f"{cause}_percent": percent(ps, stream.idle_ps) for cause, ps in causes.items()}
    return make_row(STREAM_FIELDS, stream, host=host, **shares)


def _cause_rows(host: str, device: DeviceCauses) -> Iterator[dict[str, Cell]]:
    """The causes of the median step, those that the device idles longest for first."""
    whole = sum(device.idle_ps)
    for cause in sorted(MEANING, key=lambda cause: (-device.idle_ps[cause], -device.causes_ps[cause])):
        if device.causes_ps[cause]:
            yield {
                "host": host,
                "device": device.device,
                "cause": cause.name.lower(),
                "ms": round_ms(device.causes_ps[cause]),
                "idle_ms": round_ms(device.idle_ps[cause]),
                "idle_percent": percent(device.idle_ps[cause], whole),
                "meaning": MEANING[cause],
            }


def _describe_causes(devices: Sequence[DeviceCauses]) -> Iterator[str]:
    """How much of the median step devices idle, and what the step waits for meanwhile."""
    among = [device for device in devices if device.computes] or devices
    whole, idle = (sum(sum(getattr(device, name)) for device in among) for name in ("causes_ps", "idle_ps"))
    share = percent(idle, whole)
    if share is None or share < _LEAST_SAID_PERCENT:
        return
    causes = [(cause, percent(sum(device.idle_ps[cause] for device in among), idle)) for cause in MEANING]
    said = sorted(((part, cause) for cause, part in causes if part and part >= _LEAST_SAID_PERCENT), reverse=True)
    noun = "the device is" if len(among) == 1 else f"{len(among)} devices are"
    parts = ", ".join(f"{cause_words(cause.name.lower())} {part:.1f} %" for part, cause in said[:_MOST_CAUSES])
    yield f"in the median step {noun} idle for {share:.1f} %; of that time the step waits for: {parts}"


def _device_row(host: str, device: DeviceIdle) -> Row:
    idle = device.span_ps - device.busy_ps
    return make_row(
        DEVICE_FIELDS, device, host=host, idle_ms=round_ms(idle), idle_percent=percent(idle, device.span_ps)
    )


def _queue_row(host: str, stream: StreamIdle) -> Row:
    span = stream.queue_span_ps
    return make_row(
        QUEUE_FIELDS,
        stream,
        host=host,
        queue_mean=round(stream.queue_area / span, 4) if span else None,
        empty_percent=percent(stream.empty_ps, span),
        full_percent=percent(stream.full_ps, span),
    )


def _describe_steps(devices: Sequence[DeviceIdle], span_ps: int) -> Iterable[str]:
    """The idle share inside steps, if much of the time is outside steps."""
    steps, busy = (sum(getattr(device, name) for device in devices) for name in ("step_ps", "step_busy_ps"))
    share, idle = percent(steps, span_ps), percent(steps - busy, steps)
    if share is not None and idle is not None and share < _ALL_IN_STEPS_PERCENT:
        yield f"inside steps ({share:.1f} % of that time) it is {idle:.1f} %: only this makes steps longer"


def _describe_copying(among: Sequence[DeviceIdle], devices: Sequence[DeviceIdle]) -> Iterable[str]:
    """The sentence on devices that do not count, if there are any."""
    if others := len(devices) - len(among):
        verb = "copies" if others == 1 else "copy"
        yield f"{others} more only {verb} data: this counts neither as busy nor as idle time here"


def _findings(devices: Sequence[DeviceIdle], streams: Sequence[StreamIdle]) -> Iterable[str]:
    among = [device for device in devices if device.computes] or devices
    span, busy = (sum(getattr(device, name) for device in among) for name in ("span_ps", "busy_ps"))
    idle = percent(span - busy, span)
    if idle is None:
        return
    noun = "device is" if len(among) == 1 else f"{len(among)} devices are"
    yield f"the {noun} idle for {idle:.1f} % of the time from first to last work"
    yield from _describe_steps(among, span)
    yield from _describe_copying(among, devices)
