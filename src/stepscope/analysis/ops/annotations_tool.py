"""The ranges that the program and its libraries named: how often each ran, and how long.

`record_function("forward")`, `TraceAnnotation("load batch")`, `Trace("train")`, `stepscope.annotate("save")` and step
marks are ranges of the program. Those that a library names itself, such as `Optimizer.step#Adam.step` of PyTorch or
`## forward ##` of TorchRec, have `is_library`. `total_ms` is the time from their starts to their ends; `self_ms` leaves
out other named ranges inside; `device_ms` is the work of devices that was launched inside. Where a program marks no
steps, the range that repeats around most of its work counts as its step (`is_step`).

TensorFlow and JAX record a range like their own work, under its name alone. There a range is listed if its name is
written in lower case (`load_batch`, `train/forward`), since the runtimes write theirs otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.grouping import forest, is_device_work, self_times
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.analysis.trace.thread_labels import thread_label
from stepscope.analysis.trace.user_ranges import framework_ranges, ranges_and_steps
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.report import (
    Comparable,
    Field,
    Report,
    Role,
    Table,
    as_table,
    fields_named,
    percent,
    round_ms,
)
from stepscope.report.relation import Counted, Relation
from stepscope.vocabulary.ranges import numbered_part

MOST_ROWS = 500  # kept per host, the longest
_NUMBER = re.compile(r"#?\d+$")  # of a step, at the end of its mark
_BLOCK = re.compile(r"(?<=\w\.)\d+(?!\w)")  # in `blocks.3.mlp`

FIELDS: tuple[Field, ...] = (
    Field(
        "name",
        "text",
        "the range, as the program named it; a step mark without its number, the blocks of a model as one, `blocks.*`",
        role=Role.NAME,
    ),
    Field("host", "text", "the host", role=Role.HOST),
    Field("total_ms", "ms", "total time, from start to end"),
    Field("step_percent", "percent", "its time inside steps, as a share of the time of all steps"),
    Field("occurrences", "count", "how often it ran", "int"),
    Field("avg_ms", "ms", "mean duration", label="Mean"),
    Field("device_ms", "ms", "device work that was launched inside; work that overlaps counts once"),
    Field("self_ms", "ms", "the same without other named ranges inside"),
    Field("min_ms", "ms", "shortest duration", label="Shortest"),
    Field("max_ms", "ms", "longest duration", label="Longest"),
    Field("thread", "text", "the thread that ran it", role=Role.PLACE),
    Field("is_step", "yes or no", "whether these ranges mark the steps", "bool", label="Step"),
    Field("is_library", "yes or no", "whether a framework or a library named it, not the program", "bool"),
)
_EMPTY = "no ranges: name them with stepscope.annotate, torch.profiler.record_function or jax.profiler.TraceAnnotation"

_ONLY_STEPS = "the program names its steps, and nothing inside them"


RANGES = Relation(
    ("host", "name", "thread", "is_step", "is_library", "steps_ps"),
    ("occurrences", "total_ps", "self_ps", "min_ps", "max_ps", "device_ps", "in_steps_ps"),
    order=("-total_ps", "host", "name", "thread"),
    most=MOST_ROWS,
)
"""The ranges of one name on one thread; `steps_ps` is the time of all steps of the host."""


@dataclass(frozen=True)
class RangesOfHost:
    """The part of one host."""

    origin: Origin
    ranges: Counted


RELATIONS = {"ranges": RANGES}


@dataclass(frozen=True, kw_only=True)
class AnnotationsReport(Report):
    """The ranges that the program named, the longest first; see FIELDS."""

    TOOL: ClassVar[str] = "annotations"

    rows: Table = as_table("Ranges of the program", FIELDS, _EMPTY)

    def why_hidden(self) -> str | None:
        """Steps alone have a chart of their own."""
        return self.why_empty() or (None if any(not row["is_step"] for row in self.rows) else _ONLY_STEPS)


COMPARABLES = (
    Comparable(
        id="annotations",
        title="Ranges of the program",
        keys=fields_named(FIELDS, "name"),
        measure=Field("avg_ms", "ms", "mean duration of the range, over all hosts and threads"),
        joined="mean",
        weight="occurrences",
        empty="neither side names ranges",
    ),
)


def partial(trace: HostTrace) -> RangesOfHost:
    """The part of one host."""
    steps = steps_of(trace)
    inside = Spans.union(steps.start_ps, steps.until_ps)
    ranges = [(*group, False) for group in _groups(trace, ranges_and_steps(trace))]
    ranges += [(*group, True) for group in _groups(trace, framework_ranges(trace))]
    return RangesOfHost(origin_of(trace), RANGES.keep([_measure(trace, *each, inside) for each in ranges]))


def _groups(trace: HostTrace, rows: I64) -> Iterator[tuple[str, I64]]:
    """The ranges of each name on each thread, in order of time."""
    by_key: dict[tuple[str, int], list[int]] = {}
    for row, line in zip(rows.tolist(), trace.events.line[rows].tolist(), strict=True):
        by_key.setdefault((_plain_name(trace, row), line), []).append(row)
    for (name, _), own in by_key.items():
        is_one = len({trace.name_of(row) for row in own}) == 1 and trace.events.kind[own[0]] != EventKind.STEP_MARK
        yield trace.name_of(own[0]) if is_one else name, np.array(own, np.int64)


def _plain_name(trace: HostTrace, row: int) -> str:
    name = trace.name_of(row)
    if trace.events.kind[row] == EventKind.STEP_MARK:
        return _NUMBER.sub("", name) or name
    return _BLOCK.sub("*", name, count=1) if numbered_part(name) else name


def _measure(trace: HostTrace, name: str, rows: I64, is_library: bool, steps: Spans) -> tuple[Any, ...]:
    """A row of RANGES."""
    duration, line = trace.events.duration_ps[rows], int(trace.events.line[rows[0]])
    whole = spans_of(trace, rows)
    is_step = bool(trace.events.kind[rows[0]] == EventKind.STEP_MARK)
    keys = (trace.host, name, thread_label(trace, line), is_step, is_library, steps.total)
    own = trace.derived("own time of ranges", _own_times)[rows]
    times = (int(each) for each in (duration.sum(), own.sum(), duration.min(), duration.max()))
    return (*keys, len(rows), *times, _device_ps(trace, line, whole), (whole & steps).total)


def _own_times(trace: HostTrace) -> I64:
    """The duration of each range without the named ranges inside: int64 of shape (events,)."""
    is_range = np.zeros(len(trace.events), np.bool_)
    is_range[ranges_and_steps(trace)] = True
    is_range[framework_ranges(trace)] = True
    return self_times(trace, is_range)


def _device_ps(trace: HostTrace, line: int, ranges: Spans) -> int:
    """The time of the device work that calls of a thread launch inside some ranges."""
    launched = trace.derived("launched work", _launched_work)
    cause = forest(trace).cause[launched]
    mine = trace.events.line[cause] == line
    at = np.searchsorted(ranges.start, trace.events.start_ps[cause], side="right") - 1
    inside = mine & (at >= 0) & (trace.events.start_ps[cause] < np.append(ranges.end, 0)[at])
    return spans_of(trace, launched[inside]).total


def _launched_work(trace: HostTrace) -> I64:
    """Device work of which the launching call was recorded."""
    return np.flatnonzero(is_device_work(trace) & (forest(trace).cause >= 0))


def merge(partials: Sequence[RangesOfHost]) -> AnnotationsReport:
    """The ranges of all hosts, the longest first."""
    found = RANGES.merge([part.ranges for part in partials])
    lost = [f"{found.left_out:,} shorter ranges are not listed"] if found.left_out else []
    in_steps = zip(found["in_steps_ps"], found["steps_ps"], strict=True)
    return AnnotationsReport(
        **header([part.origin for part in partials], lost),
        rows=found.table(
            FIELDS,
            avg_ms=[round_ms(ps / count) for ps, count in zip(found["total_ps"], found["occurrences"], strict=True)],
            step_percent=[percent(ps, steps_ps) for ps, steps_ps in in_steps],
        ),
    )
