"""How device work is launched: short kernels, launch latency from call to start, and gaps between pieces of work.

One call that launches many kernels, as that of a recorded graph, counts as one launch, and its delay is that of its
first kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stepscope.analysis.steps.device_steps import device_name
from stepscope.analysis.trace.attribution import attribute
from stepscope.analysis.trace.grouping import KERNELS
from stepscope.model import HostTrace, LineKind
from stepscope.model.arrays import I64, median
from stepscope.report import Cell, Field, Role, Table, percent, round_us
from stepscope.report.relation import Counted, Merged, Relation

SHORT_US = 10.0
LONG_DELAY_US = 100.0
_LEAST_FOR_P90 = 10  # launches: one of them is above it

STREAMS = Relation(
    ("host", "device", "stream", "delay_median_ps", "delay_p90_ps", "delay_max_ps"),
    (
        *("kernels", "kernels_ps", "short", "short_ps", "compared", "cheap", "busy_ps", "span_ps", "launches"),
        *("calls_ps", "delay_ps", "long_delays", "gaps", "gaps_ps", "longest_gap_ps", "known_gaps_ps", "late_ps"),
    ),
    order=(),
    most=256,
)
"""The launches of streams that ran a kernel, of each host the busiest first.

`kernels` counts collectives, too, and `short` those that last less than SHORT_US.  `compared` are kernels whose call
launched nothing else and is known, `cheap` those of them that are shorter than the call.  `launches` are calls whose
work is on the stream, `calls_ps` their time on the host, and `delay_ps` from the begin of a call to that of its first
work; what is known of single delays is None without launches.  `gaps` are times without work between two pieces of
work; `known_gaps_ps` are those before work whose call is known, `late_ps` the part of all in which that had not begun.
"""


def launches_of_streams(trace: HostTrace) -> Counted:
    """The launches of every stream that ran a kernel."""
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
    streams.sort(key=lambda stream: (-stream["busy_ps"], stream["device"], stream["stream"]))
    return STREAMS.keep_named(streams)


def stream_name(trace: HostTrace, line: int) -> str:
    """A stream's name, or its number if it has none."""
    return trace.line_label(line) or str(trace.lines.line_id[line])


def _stream(trace: HostTrace, line: int, rows: I64, call: I64, first: I64, pieces: I64) -> dict[str, Any]:
    """A row of STREAMS."""
    events = trace.events
    start, duration = events.start_ps[rows], events.duration_ps[rows]
    known = call >= 0
    call_start, call_ps = events.start_ps[call], events.duration_ps[call]  # of the last event where unknown; unused
    kernel = np.isin(events.kind[rows], KERNELS)
    short = kernel & (duration < SHORT_US * 1e6)
    alone = kernel & known & (pieces[call] == 1)
    opening = known & (rows == first[call])
    delay = np.maximum((start - call_start)[opening], 0)
    ends = start + duration
    gap, late = _gaps(start, ends, np.where(known, call_start, np.iinfo(np.int64).min))
    sums = {
        "kernels": kernel,
        "kernels_ps": duration[kernel],
        "short": short,
        "short_ps": duration[short],
        "compared": alone,
        "cheap": alone & (duration < call_ps),
        "calls_ps": call_ps[opening],
        "delay_ps": delay,
        "long_delays": delay > LONG_DELAY_US * 1e6,
        "gaps": gap > 0,
        "gaps_ps": gap,
        "known_gaps_ps": gap[known[1:]],
        "late_ps": late,
    }
    span = int(ends.max() - start.min())
    return {
        "host": trace.host,
        "device": device_name(trace, int(trace.lines.plane[line])),
        "stream": stream_name(trace, line),
        "delay_median_ps": median(delay) if len(delay) else None,
        "delay_p90_ps": float(np.percentile(delay, 90)) if len(delay) >= _LEAST_FOR_P90 else None,
        "delay_max_ps": int(delay.max()) if len(delay) else None,
        "busy_ps": span - int(gap.sum()),
        "span_ps": span,
        "launches": len(delay),
        "longest_gap_ps": int(gap.max(initial=0)),
        **{name: int(values.sum()) for name, values in sums.items()},
    }


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


def figures(streams: Merged) -> dict[str, Cell]:
    """All streams together, keyed as in FIELDS."""
    total = streams.total

    def mean_us(sum_name: str, count_name: str) -> float | None:
        return round_us(total(sum_name) / total(count_name)) if total(count_name) else None

    return {
        "kernels": total("kernels"),
        "short_kernels_percent": percent(total("short"), total("kernels")),
        "short_kernels_time_percent": percent(total("short_ps"), total("kernels_ps")),
        "cheaper_than_launch_percent": percent(total("cheap"), total("compared")),
        "launches": total("launches"),
        "launch_call_us": mean_us("calls_ps", "launches"),
        "launch_delay_us": mean_us("delay_ps", "launches"),
        "long_delays_percent": percent(total("long_delays"), total("launches")),
        "gaps": total("gaps"),
        "mean_gap_us": mean_us("gaps_ps", "gaps"),
        "time_in_gaps_percent": percent(total("gaps_ps"), total("span_ps")),
        "gaps_late_percent": percent(total("late_ps"), total("known_gaps_ps")),
    }


def table(streams: Merged) -> Table:
    """A row for each stream."""
    return streams.table(
        STREAM_FIELDS,
        busy_percent=streams.ratio("busy_ps", "span_ps"),
        short_percent=streams.ratio("short", "kernels"),
        gaps_late_percent=streams.ratio("late_ps", "known_gaps_ps"),
    )
