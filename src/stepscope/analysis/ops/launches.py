"""How device work is launched: short kernels, launch latency from call to start, and gaps between pieces of work.

One call that launches many kernels, as that of a recorded graph, counts as one launch, and its delay is that of its
first kernel.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.device_steps import device_name
from stepscope.analysis.trace.attribution import attribute
from stepscope.analysis.trace.grouping import KERNELS
from stepscope.model import HostTrace, LineKind
from stepscope.model.arrays import I64, median
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role, Row, make_row, percent, round_us

SHORT_US = 10.0
LONG_DELAY_US = 100.0
_LEAST_FOR_P90 = 10  # launches: one of them is above it
MOST_STREAMS = 256  # kept per host, the busiest


@dataclass(frozen=True)
class StreamLaunches:
    """The launches of one stream; times in ps.

    Attributes:
        device, stream: the names of the device and the line.
        kernels, kernels_ps: kernels and collectives, and their time.
        short, short_ps: those that last less than SHORT_US.
        compared, cheap: kernels whose call launched nothing else and is known, and those of them shorter than the call.
        busy_ps, span_ps: time with work on the stream, and from its first to its last work.
        launches, calls_ps: calls whose work is on the stream, and their time on the host.
        delay_sum_ps, delay_median_ps, delay_p90_ps, delay_max_ps: from the begin of a call to that of its first work;
            the last three are None without launches.
        long_delays: launches delayed by more than LONG_DELAY_US.
        gaps, gaps_ps, gap_max_ps: times without work between two pieces of work.
        late_ps: the part of them in which the next work's call had not begun either; known_gaps_ps: gaps before work
            whose call is known.
    """

    device: str
    stream: str
    kernels: int
    kernels_ps: int
    short: int
    short_ps: int
    compared: int
    cheap: int
    busy_ps: int
    span_ps: int
    launches: int
    calls_ps: int
    delay_sum_ps: int
    delay_median_ps: float | None
    delay_p90_ps: float | None
    delay_max_ps: int | None
    long_delays: int
    gaps: int
    gaps_ps: int
    gap_max_ps: int
    known_gaps_ps: int
    late_ps: int


def launches_of_streams(trace: HostTrace) -> list[StreamLaunches]:
    """The launches of every stream that ran a kernel, busiest first, at most MOST_STREAMS."""
    found = attribute(trace)
    on_stream = (trace.lines.kind == LineKind.STREAM)[trace.events.line[found.rows]]
    rows, call = found.rows[on_stream], found.call[on_stream]
    # The first work of each call (one of those that start together), and the number of pieces per call.
    known = np.flatnonzero(call >= 0)
    latest_first = known[np.argsort(trace.events.start_ps[rows[known]], kind="stable")[::-1]]
    first = np.full(len(trace.events), -1, np.int64)
    first[call[latest_first]] = rows[latest_first]  # the last assignment wins: the first work
    pieces = np.bincount(call[known], minlength=len(trace.events))
    bounds = np.searchsorted(rows, np.append(trace.lines.event_begin, len(trace.events)))
    streams = []
    for line in trace.lines_of(LineKind.STREAM).tolist():
        here = slice(int(bounds[line]), int(np.searchsorted(rows, trace.lines.event_end[line])))
        if np.isin(trace.events.kind[rows[here]], KERNELS).any():
            streams.append(_stream(trace, line, rows[here], call[here], first, pieces))
    return sorted(streams, key=lambda stream: (-stream.busy_ps, stream.device, stream.stream))[:MOST_STREAMS]


def stream_name(trace: HostTrace, line: int) -> str:
    """A stream's name, or its number if it has none."""
    return trace.line_label(line) or str(trace.lines.line_id[line])


def _stream(trace: HostTrace, line: int, rows: I64, call: I64, first: I64, pieces: I64) -> StreamLaunches:
    events = trace.events
    start, duration = events.start_ps[rows], events.duration_ps[rows]
    known = call >= 0
    call_start, call_ps = events.start_ps[call], events.duration_ps[call]  # of the last event where unknown; unused
    kernel = np.isin(events.kind[rows], KERNELS)
    short = kernel & (duration < SHORT_US * 1e6)
    alone = kernel & known & (pieces[call] == 1)
    opening = known & (rows == first[call])
    delay = (start - call_start)[opening]
    delay = np.maximum(delay, 0)
    gap, late = _gaps(start, start + duration, np.where(known, call_start, np.iinfo(np.int64).min))
    ends = start + duration
    return StreamLaunches(
        device=device_name(trace, int(trace.lines.plane[line])),
        stream=stream_name(trace, line),
        kernels=int(kernel.sum()),
        kernels_ps=int(duration[kernel].sum()),
        short=int(short.sum()),
        short_ps=int(duration[short].sum()),
        compared=int(alone.sum()),
        cheap=int((alone & (duration < call_ps)).sum()),
        busy_ps=int(ends.max() - start.min() - gap.sum()),
        span_ps=int(ends.max() - start.min()),
        launches=len(delay),
        calls_ps=int(call_ps[opening].sum()),
        delay_sum_ps=int(delay.sum()),
        delay_median_ps=median(delay) if len(delay) else None,
        delay_p90_ps=float(np.percentile(delay, 90)) if len(delay) >= _LEAST_FOR_P90 else None,
        delay_max_ps=int(delay.max()) if len(delay) else None,
        long_delays=int((delay > LONG_DELAY_US * 1e6).sum()),
        gaps=int((gap > 0).sum()),
        gaps_ps=int(gap.sum()),
        gap_max_ps=int(gap.max(initial=0)),
        known_gaps_ps=int(gap[known[1:]].sum()),
        late_ps=int(late.sum()),
    )


def _gaps(start: I64, end: I64, call_start: I64) -> tuple[I64, I64]:
    """The gap before each piece but the first, and the part of the gap before that piece's call."""
    free = np.maximum.accumulate(end)[:-1]
    return np.maximum(start[1:] - free, 0), np.clip(call_start[1:], free, np.maximum(start[1:], free)) - free


# -- for reports ---------------------------------------------------------------------------------------------------

STREAM_FIELDS: tuple[Field, ...] = (
    Field("host", "text", "the host whose device it is", role=Role.HOST),
    Field("device", "text", "the device", role=Role.PLACE),
    Field("stream", "text", "the stream, as the trace names it", role=Role.PLACE),
    Field("kernels", "count", "kernels and collectives that ran on the stream", "int"),
    Field("busy_percent", "percent", "share of the time from the stream's first to its last work in which it has work"),
    Field("short_percent", "percent", f"share of kernels shorter than {SHORT_US:g} us, by number"),
    Field("delay_median_us", "us", "median launch latency: from the start of a launch call to that of its first work"),
    Field("delay_p90_us", "us", "90th percentile of the launch latency; unknown of fewer than 10"),
    Field("delay_max_us", "us", "the longest launch latency"),
    Field("gaps", "count", "times without work between two pieces of work", "int"),
    Field("gaps_us", "us", "total time of the gaps"),
    Field("longest_gap_us", "us", "the longest gap"),
    Field(
        "gaps_late_percent",
        "percent",
        "share of the gaps in which the host had not started to launch the next work; gaps with a known launch only",
    ),
)
FIELDS: tuple[Field, ...] = (
    Field("kernels", "count", "kernels and collectives that ran, over all streams", "int"),
    Field("short_kernels_percent", "percent", f"share of kernels shorter than {SHORT_US:g} us, by number"),
    Field(
        "short_kernels_time_percent", "percent", "share of kernel time in these kernels", label="Time in short kernels"
    ),
    Field(
        "cheaper_than_launch_percent",
        "percent",
        "share of kernels shorter than the host call that launched only them, by number",
        label="Shorter than a launch",
    ),
    Field("launches", "count", "host calls that launched device work; a recorded graph counts once", "int"),
    Field("launch_call_us", "us", "mean time of such a call on the host", label="Mean launch call"),
    Field(
        "launch_delay_us",
        "us",
        "mean launch latency: from the start of a call to that of its first work",
        label="Mean launch delay",
    ),
    Field(
        "long_delays_percent", "percent", f"share of launches with more than {LONG_DELAY_US:g} us latency, by number"
    ),
    Field("gaps", "count", "times without work between two pieces of work of a stream", "int"),
    Field("mean_gap_us", "us", "mean duration of a gap"),
    Field(
        "time_in_gaps_percent", "percent", "gaps as a share of the time from first to last work, summed over streams"
    ),
    Field(
        "gaps_late_percent",
        "percent",
        "share of the gaps in which the host had not started to launch the next work; gaps with a known launch only",
        label="Gaps by late launches",
    ),
)


def figures(streams: list[StreamLaunches]) -> dict[str, Cell]:
    """All streams together, keyed as in FIELDS."""

    def total(name: str) -> int:
        return sum(getattr(stream, name) for stream in streams)

    def mean_us(sum_name: str, count_name: str) -> float | None:
        return round_us(total(sum_name) / total(count_name)) if total(count_name) else None

    return {
        "kernels": total("kernels"),
        "short_kernels_percent": percent(total("short"), total("kernels")),
        "short_kernels_time_percent": percent(total("short_ps"), total("kernels_ps")),
        "cheaper_than_launch_percent": percent(total("cheap"), total("compared")),
        "launches": total("launches"),
        "launch_call_us": mean_us("calls_ps", "launches"),
        "launch_delay_us": mean_us("delay_sum_ps", "launches"),
        "long_delays_percent": percent(total("long_delays"), total("launches")),
        "gaps": total("gaps"),
        "mean_gap_us": mean_us("gaps_ps", "gaps"),
        "time_in_gaps_percent": percent(total("gaps_ps"), total("span_ps")),
        "gaps_late_percent": percent(total("late_ps"), total("known_gaps_ps")),
    }


def stream_row(host: str, stream: StreamLaunches) -> Row:
    """One stream, keyed as in STREAM_FIELDS."""
    return make_row(
        STREAM_FIELDS,
        stream,
        host=host,
        busy_percent=percent(stream.busy_ps, stream.span_ps),
        short_percent=percent(stream.short, stream.kernels),
        longest_gap_us=round_us(stream.gap_max_ps),
        gaps_late_percent=percent(stream.late_ps, stream.known_gaps_ps),
    )
