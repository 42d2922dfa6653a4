"""What a step waits for, moment by moment: the chain of events from the start to the end of the step.

The path is walked back from the end of the step. On a device it goes through the work that finished last; from there to
the work before it on the stream, if that was still running when the host launched this, else to the call that launched
it. On the host it goes through the innermost call of the thread; where the host waited for a device, to the work that
it waited for; where a thread does nothing that is recorded, to another thread that does. So every moment of the step is
given to exactly one thing, and the parts add up to the step: making a part shorter makes the step shorter, at most by
that part, until another path is the longest.

Work that starts more than 100 us after it was launched and its stream was free is taken to wait for what another stream
did last, since traces seldom tell which event it waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from stepscope import kernels
from stepscope.analysis.steps.find_steps import HostSteps, steps_of
from stepscope.analysis.steps.session_steps import StepsOfHost, hosts_with_steps, steps_of_host, warn_of_missing_steps
from stepscope.analysis.trace.attribution import event_name_rows
from stepscope.analysis.trace.blocking import blocking_calls
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.grouping import enclosing_events, forest, is_device_work
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.model import EventKind, HostTrace, Kind
from stepscope.model.arrays import I64, U8, number_pairs
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Prose,
    Report,
    Role,
    Row,
    Rows,
    Section,
    fields_named,
    percent,
    round_ms,
)
from stepscope.vocabulary.kernel_names import brief

K = EventKind

MOST_ROWS = 1000  # kept per host
LONG_DELAY_PS = 100_000_000


class Part(Kind):
    """The kinds of time on the path."""

    NONE = 0
    DEVICE_COMPUTE = 1
    DEVICE_COMMUNICATION = 2
    DEVICE_COPY = 3
    KERNEL_GAP = 4
    LAUNCH_DELAY = 5
    HOST_COMPUTE = 6
    KERNEL_LAUNCH = 7
    HOST_COMMUNICATION = 8
    INPUT = 9
    DEVICE_WAIT = 10
    COMPILATION = 11
    OTHER = 12


MEANING: dict[Part, str] = {
    Part.DEVICE_COMPUTE: "a device computes",
    Part.DEVICE_COMMUNICATION: "a device takes part in a collective",
    Part.DEVICE_COPY: "a device copies",
    Part.KERNEL_GAP: "a device is between two pieces of work, and the second is already launched",
    Part.LAUNCH_DELAY: "work is launched and its stream is empty, but it has not started",
    Part.HOST_COMPUTE: "the host runs ops or other framework work",
    Part.KERNEL_LAUNCH: "the host is in a call of the device's runtime",
    Part.HOST_COMMUNICATION: "the host is in a collective",
    Part.INPUT: "the host gets the next batch",
    Part.DEVICE_WAIT: "the host returns from waiting for a device that has finished",
    Part.COMPILATION: "the host compiles",
    Part.OTHER: "nothing recorded is running: Python code between calls, or another process",
}
_DEVICE_PARTS: dict[EventKind, Part] = {
    K.KERNEL: Part.DEVICE_COMPUTE, K.DEVICE_OP: Part.DEVICE_COMPUTE, K.GRAPH_LAUNCH: Part.DEVICE_COMPUTE,
    K.MEMSET: Part.DEVICE_COMPUTE, K.COLLECTIVE: Part.DEVICE_COMMUNICATION, K.COPY_HOST_TO_DEVICE: Part.DEVICE_COPY,
    K.COPY_DEVICE_TO_HOST: Part.DEVICE_COPY, K.COPY_DEVICE_TO_DEVICE: Part.DEVICE_COPY, K.COPY_PEER: Part.DEVICE_COPY,
    K.COPY_OTHER: Part.DEVICE_COPY, K.INFEED: Part.INPUT, K.OUTFEED: Part.DEVICE_COPY,
}  # fmt: skip
_HOST_PARTS: dict[EventKind, Part] = {
    K.OP: Part.HOST_COMPUTE, K.BACKWARD: Part.HOST_COMPUTE, K.EXECUTOR: Part.HOST_COMPUTE,
    K.CHECKPOINT: Part.HOST_COMPUTE, K.EAGER_EXECUTE: Part.HOST_COMPUTE, K.COPY_HOST_TO_HOST: Part.HOST_COMPUTE,
    K.RUNTIME_CALL: Part.KERNEL_LAUNCH, K.COPY_HOST_TO_DEVICE_CALL: Part.KERNEL_LAUNCH, K.SYNC: Part.DEVICE_WAIT,
    K.INPUT_WAIT: Part.INPUT, K.COLLECTIVE_CALL: Part.HOST_COMMUNICATION, K.COMPILE: Part.COMPILATION,
}  # fmt: skip

_NO_PATH = (
    "a path starts on a host thread that runs or launches work, and no such thread was recorded in the steps; record "
    "with host_tracer_level=2 or more"
)
_PARTS = tuple(MEANING)
_OF_KERNELS = (Part.DEVICE_COMPUTE.name.lower(), Part.DEVICE_COMMUNICATION.name.lower())
PART_FIELDS: tuple[Field, ...] = (
    Field("part", "text", "what the step waits for", "str", role=Role.TERM),
    Field("ms", "ms", "time on the path, mean per step"),
    Field("percent", "percent", "time on the path as a share of the step"),
    Field("meaning", "text", "what belongs to the part", "str", role=Role.MEANING),
)
ROW_FIELDS: tuple[Field, ...] = (
    Field("name", "text", "the kernel, op or call", "str", role=Role.NAME),
    Field("part", "text", "the part that its time on the path belongs to", "str", role=Role.TERM),
    Field("count", "count", "occurrences on the path", "int"),
    Field("ms", "ms", "its time on the path, mean per step"),
    Field("percent", "percent", "time on the path as a share of the step"),
    Field("delay_ms", "ms", "gaps and launch delays on the path right before it, mean per step"),
)
STEP_FIELDS: tuple[Field, ...] = (
    Field("step", "number", "the step's number", "int", role=Role.STEP),
    Field("host", "text", "the host", "str", role=Role.HOST),
    Field("duration_ms", "ms", "duration of the step; the following parts add up to it"),
    *(Field(f"{part.name.lower()}_ms", "ms", f"time on the path while {meaning}") for part, meaning in MEANING.items()),
)


@dataclass(frozen=True)
class PathRow:
    """Events of one name on the paths of all steps; times in ps."""

    name: str
    part: int
    count: int
    time_ps: int
    delay_ps: int


@dataclass(frozen=True)
class PathStep:
    """The path of one step: time by part, in the order of `Part`, and whether the step is complete."""

    number: int
    complete: bool
    parts_ps: list[int]


@dataclass(frozen=True)
class Partial:
    """The part of one host: all steps, and the paths of the complete steps, or of all if none is complete."""

    origin: Origin
    stepping: StepsOfHost
    steps: list[PathStep]
    rows: list[PathRow]
    left_out: int

    @property
    def has_complete(self) -> bool:
        """Whether a step was recorded as a whole."""
        return any(step.complete for step in self.steps)


@dataclass(frozen=True, kw_only=True)
class CriticalPathReport(Report):
    """The critical paths of the steps; see the FIELDS tables of this module.

    `whole_steps` are the steps that the means cover: the complete steps, or all if none is complete.
    """

    TOOL: ClassVar[str] = "critical-path"

    findings: tuple[str, ...]
    parts: tuple[dict[str, Cell], ...]
    rows: tuple[dict[str, Cell], ...]
    steps: tuple[dict[str, Cell], ...]
    whole_steps: tuple[dict[str, Cell], ...]

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {
            "findings": list(self.findings),
            "parts": list(self.parts),
            "rows": list(self.rows),
            "steps": list(self.steps),
        }

    def sections(self) -> Sequence[Section]:
        """Findings, parts, events on the path, and every step."""
        return [
            Prose("findings", "Critical path", self.findings),
            Rows("parts", "What steps wait for", PART_FIELDS, self.parts, _EMPTY),
            Rows("rows", "On the path", ROW_FIELDS, self.rows, _EMPTY, brief=_shorten_name),
            Rows("steps", "Paths by step", STEP_FIELDS, self.steps, _EMPTY),
        ]


def _shorten_name(row: Row) -> Row:
    return row | {"name": brief(str(row["name"]))} if row["part"] in _OF_KERNELS else row


_EMPTY = (
    "no work in any step: record with ProfilerOptions(host_tracer_level=2) and, on a GPU or TPU, device_tracer_level=1"
)


def _parts_with_samples(report: CriticalPathReport) -> Iterator[dict[str, Any]]:
    """The parts of the path, each with its time in every step that the means cover."""
    for row in report.parts:
        yield {**row, "samples": [step[f"{row['part']}_ms"] for step in report.whole_steps]}


COMPARABLES = (
    Comparable(
        id="critical_path",
        title="Critical path",
        keys=fields_named(PART_FIELDS, "part"),
        measure=Field("ms", "ms", "time of the part on the critical path of a step"),
        rows=_parts_with_samples,
        samples="samples",
        carried=fields_named(PART_FIELDS, "meaning"),
        empty="neither side has a critical path",
    ),
)


# -- one host ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Graph:
    """The events that may be on a path, in the order of the trace; see `kernels.critical.Path`."""

    rows: I64
    start: I64
    end: I64
    parent: I64
    cause: I64
    line: I64
    line_begin: I64
    line_end: I64
    part: U8
    host_lines: I64
    done: I64
    done_end: I64


def partial(trace: HostTrace) -> Partial:
    """The part of one host."""
    steps, graph = steps_of(trace), _graph(trace)
    time, delay, *aside = (np.zeros(len(graph.rows), np.int64) for _ in range(4))
    counts = steps.complete if steps.complete.any() else ~steps.complete
    path = kernels.critical.Path(
        graph.start, graph.end, graph.parent, graph.cause, graph.line, graph.line_begin, graph.line_end, graph.part,
        graph.host_lines, graph.done, graph.done_end,
        (Part.DEVICE_WAIT, Part.KERNEL_GAP, Part.LAUNCH_DELAY, Part.OTHER), LONG_DELAY_PS,
    )  # fmt: skip
    main, found = _main_line(steps, graph), []
    for at in range(len(steps.number)):
        out = np.zeros(len(Part), np.int64)
        begin, end = int(steps.start_ps[at]), int(steps.end_ps[at])
        path.walk(begin, end, main, out, *((time, delay) if counts[at] else aside))
        found.append(PathStep(int(steps.number[at]), bool(steps.complete[at]), out.tolist()))
    rows = _path_rows(trace, graph, time, delay)
    left_out = max(len(rows) - MOST_ROWS, 0)
    return Partial(origin_of(trace), steps_of_host(trace), found, rows[:MOST_ROWS], left_out)


def _parts(trace: HostTrace) -> U8:
    """The part of each event on a path, 0 for events that only enclose others."""
    device, kind = is_device_work(trace), trace.events.kind
    by_kind = np.zeros((2, 256), np.uint8)
    for row, parts in enumerate((_HOST_PARTS, _DEVICE_PARTS)):
        by_kind[row, list(parts)] = list(parts.values())
    threads = is_thread_event(trace)
    part = np.where(device, by_kind[1][kind], np.where(threads, by_kind[0][kind], 0)).astype(np.uint8)
    # Everything inside a wait for input is part of the wait.
    part[enclosing_events(trace, threads & (kind == K.INPUT_WAIT)) >= 0] = Part.INPUT
    waits = blocking_calls(trace)  # including copies and Python calls that block
    part[waits[part[waits] != Part.INPUT]] = Part.DEVICE_WAIT
    part[trace.events.duration_ps <= 0] = Part.NONE
    return part


def _graph(trace: HostTrace) -> _Graph:
    part, links, events = _parts(trace), forest(trace), trace.events
    rows = np.flatnonzero(part)
    place = np.full(len(events) + 1, -1, np.int64)
    place[rows] = np.arange(len(rows))
    around, level = np.empty(len(rows), np.int64), np.zeros(256, np.uint8)
    level[1] = 1
    # The nearest event above that may be on the path itself.
    none = np.full(len(events), -1, np.int32)
    kernels.ops.climb(
        links.parent[rows].astype(np.int64), links.parent, none, (part > 0).astype(np.uint8), level, 1, around
    )
    device = is_device_work(trace)[rows]
    done = np.flatnonzero(device)
    end = events.start_ps[rows] + events.duration_ps[rows]
    done = done[np.argsort(end[done], kind="stable")]
    line = events.line[rows].astype(np.int64)
    cause = np.where(device, place[links.cause[rows]], -1)
    return _Graph(
        rows, events.start_ps[rows], end, place[around], cause, line,
        np.searchsorted(rows, trace.lines.event_begin), np.searchsorted(rows, trace.lines.event_end), part[rows],
        np.unique(line[~device]), done, end[done],
    )  # fmt: skip


def _main_line(steps: HostSteps, graph: _Graph) -> int:
    """The thread of the step markers, else the thread with most work."""
    if steps.line >= 0 or not len(graph.host_lines):
        return max(steps.line, 0)
    return int(graph.host_lines[np.argmax((graph.line_end - graph.line_begin)[graph.host_lines])])


def _path_rows(trace: HostTrace, graph: _Graph, time: I64, delay: I64) -> list[PathRow]:
    """Events on any path by name, longest first."""
    on = np.flatnonzero(time + delay)
    group, first = number_pairs(event_name_rows(trace, graph.rows[on]), graph.part[on].astype(np.int64))
    total, before = (np.zeros(len(first), np.int64) for _ in range(2))
    np.add.at(total, group, time[on])
    np.add.at(before, group, delay[on])
    count = np.bincount(group, minlength=len(first))
    names = [trace.name_of(row) for row in graph.rows[on[first]].tolist()]
    columns = (graph.part[on[first]], count, total, before)
    found = [PathRow(*row) for row in zip(names, *(column.tolist() for column in columns), strict=True)]
    return sorted(found, key=lambda row: (-row.time_ps - row.delay_ps, row.name))


# -- all hosts -----------------------------------------------------------------------------------------------------


def merge(partials: Sequence[Partial]) -> CriticalPathReport:
    """The paths of all hosts with steps; figures are means over their complete steps."""
    hosts = [part.stepping for part in partials]
    taking = hosts_with_steps(hosts)
    own = [part for part in partials if any(part.stepping is host for host in taking)]
    telling = [part for part in own if part.has_complete] or own
    steps = [(part.origin.host, step) for part in own for step in part.steps]
    whole = [(host, step) for host, step in steps if step.complete] or steps
    sums = [sum(column) for column in zip(*(step.parts_ps for _, step in whole), strict=True)] or [0] * len(Part)
    parts = tuple(_part_row(part, sums, len(whole)) for part in sorted(_PARTS, key=lambda part: -sums[part]))
    return CriticalPathReport(
        **header(
            [part.origin for part in partials], [*warn_of_missing_steps(hosts, taking), *_warn_of_unlisted(telling)]
        ),
        findings=tuple(_findings(parts)),
        parts=parts if whole else (),
        rows=tuple(_path_row(row, len(whole), sum(sums)) for row in _merge_path_rows(telling)),
        steps=tuple(_step_row(host, step) for host, step in sorted(steps, key=lambda item: item[1].number)),
        whole_steps=tuple(_step_row(host, step) for host, step in whole),
    )


def _warn_of_unlisted(partials: Sequence[Partial]) -> list[str]:
    left_out = sum(part.left_out for part in partials)
    return [f"{left_out:,} names are not listed"] if left_out else []


def _merge_path_rows(partials: Sequence[Partial]) -> list[PathRow]:
    merged: dict[tuple[str, int], PathRow] = {}
    for row in (row for part in partials for row in part.rows):
        known = merged.get((row.name, row.part), PathRow(row.name, row.part, 0, 0, 0))
        merged[row.name, row.part] = PathRow(
            row.name, row.part, known.count + row.count, known.time_ps + row.time_ps, known.delay_ps + row.delay_ps
        )
    return sorted(merged.values(), key=lambda row: (-row.time_ps - row.delay_ps, row.name))


def _part_row(part: Part, sums: Sequence[int], steps: int) -> dict[str, Cell]:
    return {
        "part": part.name.lower(),
        "ms": round_ms(sums[part] / max(steps, 1)),
        "percent": percent(sums[part], sum(sums)),
        "meaning": MEANING[part],
    }


def _path_row(row: PathRow, steps: int, whole: int) -> dict[str, Cell]:
    return {
        "name": row.name,
        "part": Part(row.part).name.lower(),
        "count": row.count,
        "ms": round_ms(row.time_ps / steps),
        "percent": percent(row.time_ps, whole),
        "delay_ms": round_ms(row.delay_ps / steps),
    }


def _step_row(host: str, step: PathStep) -> dict[str, Cell]:
    parts: dict[str, Cell] = {f"{part.name.lower()}_ms": round_ms(step.parts_ps[part]) for part in _PARTS}
    return {"step": step.number, "host": host, "duration_ms": round_ms(sum(step.parts_ps)), **parts}


def _findings(parts: Sequence[dict[str, Cell]]) -> list[str]:
    largest = [part for part in parts if part["percent"]][:3]
    told = [f"for {part['percent']:.1f} % of each step {part['meaning']}" for part in largest]
    return [*told, _NO_PATH] if [part["part"] for part in largest] == [Part.OTHER.name.lower()] else told
