"""The views whose rows are not events: steps and what they wait for, memory, counters, tracks, texts, hosts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from stepscope.analysis.account.causes import MEANING, Cause
from stepscope.analysis.account.every_step import CausesOfStep, causes_of_steps
from stepscope.analysis.account.evidence import Known
from stepscope.analysis.resources.allocations import UNKNOWN, Allocations, allocations_of
from stepscope.analysis.resources.counters import Counter, counters_of
from stepscope.analysis.resources.memory_usage import memory_in_use
from stepscope.analysis.steps.find_steps import HostSteps, steps_of, steps_of_events
from stepscope.model import HostTrace, LineKind
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.report import Role
from stepscope.sql.arrow import different_texts, numbers, string_rows, texts
from stepscope.sql.views import View, ViewColumn, flag, host_column, instant, number, real, text

# -- steps -------------------------------------------------------------------------------------------------------------


def _read_cause(cause: Cause) -> Callable[[HostTrace, HostSteps], pa.Array]:
    return lambda trace, _: numbers(np.array([step.causes_ps[cause] for step in causes_of_steps(trace)], np.int64))


STEPS = View(
    "steps",
    "The steps of each host. Where none were found, the whole capture counts as one.",
    (
        number("step", "", "its number", lambda _, steps: numbers(steps.number), Role.STEP),
        host_column(lambda _, steps: len(steps.number)),
        text("name", "what the program or the framework calls it", lambda _, steps: different_texts(steps.name)),
        instant("start_ps", "when it starts", lambda _, steps: numbers(steps.start_ps)),
        number("duration_ps", "ps", "how long, to the start of the next", lambda _, steps: numbers(steps.length_ps)),
        instant("end_ps", "when it ends", lambda _, steps: numbers(steps.until_ps)),
        *(
            number(f"{cause.name.lower()}_ps", "ps", f"time of it in which {meaning}", _read_cause(cause))
            for cause, meaning in MEANING.items()
        ),
        flag(
            "complete", "whether the capture holds it from its start to its end", lambda _, each: numbers(each.complete)
        ),
        text(
            "source",
            "how it was found: `markers`, `inferred` or `none`",
            lambda _, steps: different_texts([steps.source] * len(steps.number)),
            Role.TERM,
        ),
    ),
    prepare=steps_of,
    length=lambda _, steps: len(steps.number),
)


def _causes(trace: HostTrace) -> list[tuple[CausesOfStep, int]]:
    """Each step with each cause that takes some of its time."""
    return [(step, cause) for step in causes_of_steps(trace) for cause, ps in enumerate(step.causes_ps) if ps]


_Cause = tuple[CausesOfStep, int]


def _read_causes(read: Callable[[_Cause], int]) -> Callable[[HostTrace, list[_Cause]], pa.Array]:
    return lambda _, rows: numbers(np.array([read(row) for row in rows], np.int64))


def _known_column(known: Known, meaning: str) -> ViewColumn:
    return number(f"{known.name.lower()}_ps", "ps", meaning, _read_causes(lambda row: row[0].known_ps[row[1]][known]))


CAUSES = View(
    "causes",
    "What each step waited for: the account of its time. The rows of a step add up to its time, from its start to the "
    "start of the next.",
    (
        number("step", "", "the number of the step", _read_causes(lambda row: row[0].number), Role.STEP),
        host_column(lambda _, rows: len(rows)),
        text(
            "cause",
            "what the time is spent on",
            lambda _, rows: different_texts([Cause(cause).name.lower() for _, cause in rows]),
            Role.TERM,
        ),
        number("duration_ps", "ps", "how long", _read_causes(lambda row: row[0].causes_ps[row[1]])),
        real(
            "percent",
            "percent",
            "share of the step",
            lambda _, rows: numbers(np.array([100 * step.causes_ps[at] / step.step_ps for step, at in rows], float)),
        ),
        _known_column(Known.RECORDED, "the part of it in which an event of the thread or device says so"),
        _known_column(Known.INFERRED, "the part of it that something else that was recorded implies"),
        _known_column(Known.NOT_RECORDED, "the part of it of which nothing is known"),
        flag(
            "is_median",
            "whether it is the step that the overview's account is of",
            lambda _, rows: numbers(np.array([step.is_median for step, _ in rows], np.bool_)),
        ),
        flag(
            "complete",
            "whether the capture holds the step from its start to its end",
            lambda _, rows: numbers(np.array([step.complete for step, _ in rows], np.bool_)),
        ),
    ),
    prepare=lambda trace: trace.derived("sql causes", _causes),
    length=lambda _, rows: len(rows),
)


# -- memory ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Memories:
    """The allocation events of all memories of a host, memory after memory."""

    memories: list[Allocations]

    def join(self, read: Callable[[Allocations], I64], dtype: type[np.generic] = np.int64) -> I64:
        found: I64 = np.concatenate([np.empty(0, dtype), *(read(memory) for memory in self.memories)])
        return found

    def amounts(self, column: str) -> pa.Array:
        values = self.join(lambda memory: memory.columns[column].ints())
        return numbers(values, values != UNKNOWN)

    def place(self) -> I64:
        """The place of each event's memory in the list."""
        return np.repeat(np.arange(len(self.memories)), [len(memory) for memory in self.memories])


def _events_of(memories: _Memories) -> I64:
    return memories.join(lambda memory: memory.event)


def _bytes_in_use(trace: HostTrace, memories: _Memories) -> pa.Array:
    values = memories.join(lambda memory: memory_in_use(trace, memory))
    return numbers(values, values != UNKNOWN)


def _step_of_memory(trace: HostTrace, memories: _Memories) -> pa.Array:
    steps, at = steps_of(trace), steps_of_events(trace, _events_of(memories))
    return numbers(np.append(steps.number, 0)[at], at >= 0)


MEMORY = View(
    "memory",
    "Allocations and deallocations, in the order of time of each memory.",
    (
        number("event", "row", "the event, as in `events`", lambda _, found: numbers(_events_of(found))),
        host_column(lambda _, found: len(_events_of(found))),
        text(
            "memory",
            "the memory, or its allocator",
            lambda _, found: texts(found.place().astype(np.int32), [memory.memory for memory in found.memories]),
            Role.PLACE,
        ),
        instant("time_ps", "when", lambda _, found: numbers(found.join(lambda memory: memory.time_ps))),
        flag(
            "is_allocation",
            "true for an allocation, false for a deallocation",
            lambda _, found: numbers(found.join(lambda memory: memory.is_allocation, np.bool_).astype(np.bool_)),
        ),
        number("requested_bytes", "bytes", "what the program asked for", lambda _, found: found.amounts("requested")),
        number(
            "allocated_bytes", "bytes", "what the allocator took for it", lambda _, found: found.amounts("allocated")
        ),
        number("in_use_bytes", "bytes", "the memory in use after the event", _bytes_in_use),
        number("address", "", "the address, to match both ends of a block", lambda _, found: found.amounts("address")),
        text(
            "op",
            "the op that the allocator names",
            lambda trace, found: string_rows(trace, found.join(lambda memory: memory.columns["op"].texts())),
            Role.NAME,
        ),
        number("step", "", "the number of the step; NULL outside steps", _step_of_memory, Role.STEP),
    ),
    prepare=lambda trace: trace.derived("sql memory", lambda host: _Memories(allocations_of(host))),
    length=lambda _, found: len(_events_of(found)),
)


# -- counters ----------------------------------------------------------------------------------------------------------


def _counter_texts(name: str) -> Callable[[HostTrace, tuple[Counter, ...]], pa.Array]:
    def compute(_: HostTrace, counters: tuple[Counter, ...]) -> pa.Array:
        lengths = [len(counter.time_ps) for counter in counters]
        place = np.repeat(np.arange(len(counters), dtype=np.int32), lengths)
        words = [getattr(counter, name) for counter in counters]
        known = np.array([bool(word) for word in words], np.bool_)
        return texts(place, words, known[place])

    return compute


COUNTERS = View(
    "counters",
    "Values over time: memory in use, power, what the program counted. A value holds until the next of its counter.",
    (
        instant(
            "time_ps",
            "when the value starts to hold",
            lambda _, counters: numbers(np.concatenate([np.empty(0, np.int64), *(one.time_ps for one in counters)])),
        ),
        host_column(lambda _, counters: sum(len(one.time_ps) for one in counters)),
        text("name", "what is counted", _counter_texts("name")),
        text("place", "the device or host that it was recorded for; NULL if the name says it", _counter_texts("place")),
        real(
            "value",
            "",
            "the value",
            lambda _, counters: numbers(np.concatenate([np.empty(0), *(one.value for one in counters)])),
        ),
        text("unit", "`bytes`, or NULL if it is not known", _counter_texts("unit"), Role.TERM),
    ),
    prepare=counters_of,
    length=lambda _, counters: sum(len(one.time_ps) for one in counters),
)


# -- tracks, texts and hosts -------------------------------------------------------------------------------------------


def _line_count(trace: HostTrace, _: None) -> int:
    return len(trace.lines)


TRACKS = View(
    "tracks",
    "The lines of the timeline: threads, streams and what was derived from them.",
    (
        number(
            "line", "row", "its number, unique in the session", lambda trace, _: numbers(np.arange(len(trace.lines)))
        ),
        host_column(_line_count),
        text(
            "track",
            "its name, as in `events`",
            lambda trace, _: different_texts([trace.line_label(line) for line in range(len(trace.lines))]),
            Role.PLACE,
        ),
        text(
            "process",
            "the host's threads or the device that it belongs to",
            lambda trace, _: different_texts([trace.plane_name(plane) for plane in trace.lines.plane.tolist()]),
            Role.PLACE,
        ),
        text(
            "kind",
            "what it holds: `thread`, `stream`, `device_ops`, ...",
            lambda trace, _: different_texts([LineKind(kind).name.lower() for kind in trace.lines.kind.tolist()]),
            Role.TERM,
        ),
        number(
            "events",
            "count",
            "how many events it holds",
            lambda trace, _: numbers(trace.lines.event_end - trace.lines.event_begin),
        ),
    ),
    prepare=lambda _: None,
    length=_line_count,
)


STRINGS = View(
    "strings",
    "Every text of a trace, once: names of events and of stats, and the texts that stats hold.",
    (
        number(
            "string",
            "row",
            "its number, unique in the session",
            lambda trace, _: numbers(np.arange(len(trace.strings))),
        ),
        host_column(lambda trace, _: len(trace.strings)),
        text("text", "the text", lambda trace, _: string_rows(trace, np.arange(len(trace.strings)))),
    ),
    prepare=lambda _: None,
    length=lambda trace, _: len(trace.strings),
)


def _one(read: Callable[[HostTrace], int | None]) -> Callable[[HostTrace, None], pa.Array]:
    def compute(trace: HostTrace, _: None) -> pa.Array:
        return pa.array([read(trace)], pa.int64())

    return compute


def _framework(trace: HostTrace, _: None) -> pa.Array:
    return different_texts([trace.framework or None])


_HOST_COLUMNS: tuple[ViewColumn, ...] = (
    host_column(lambda *_: 1),
    text("framework", "`tensorflow`, `jax`, `pytorch` or `python`; NULL if unknown", _framework, Role.TERM),
    number("events", "count", "how many events were recorded", _one(lambda trace: len(trace.events))),
    number("devices", "count", "how many devices it has", _one(lambda trace: len(trace.device_planes()))),
    instant("start_ps", "when its first event starts", _one(lambda trace: trace.span_ps()[0])),
    instant("end_ps", "when its last event ends", _one(lambda trace: trace.span_ps()[1])),
    number(
        "start_unix_ns",
        "ns",
        "the time of day at which its session started, in ns since 1970; NULL if unknown",
        _one(lambda trace: trace.start_unix_ns),
    ),
    flag(
        "partial",
        "whether a part of the recording is missing",
        lambda trace, _: numbers(np.array([trace.partial], np.bool_)),
    ),
)

HOSTS = View("hosts", "The hosts of the session.", _HOST_COLUMNS, prepare=lambda _: None, length=lambda *_: 1)
