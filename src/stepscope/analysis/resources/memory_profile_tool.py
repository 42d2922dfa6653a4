"""How full each memory is, when it peaks, and what fills it at the peak.

A memory is what one allocator manages: that of a GPU, of a TPU core, pinned host memory, or the host's own on a run
without a device. Where allocators record how much is in use, these figures are taken; where they do not (older
PyTorch), allocations are summed from the start of the capture, and a warning says so. Peak and breakdown come from
every allocation; the timeline shows at most 1000 moments per memory, the fullest of each group of neighbours.

The breakdown at the peak contains every recorded allocation that was alive then, from any step. The rest of the memory
in use was allocated before the capture started.

`purposes` says what the memory at the peak is for. Where the allocator does not record it, it follows from where an
allocation was made (in an update of the optimizer, in the backward pass, by what makes batches, elsewhere in a step)
and from when it was freed. What PyTorch allocates before a capture has no such record: record from the start, or let it
write a snapshot, whose stacks separate parameters from optimizer state.

Memory that every step leaves is found at the ends of the steps: the slope is the median over all pairs of steps, and
what stays are the allocations of several steps that are alive at the end of the last. The memory of the process on the
host is compared in the same way where Stepscope sampled it. Captures in the program, not over a network, count arrays.

The op of an allocation is what the allocator recorded. Where it recorded none it is the innermost op around the
allocation, or around what caused it; PyTorch's `aten::empty` gives way to the op that calls it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from stepscope.analysis.resources.allocations import allocations_of
from stepscope.analysis.resources.counted_memory import (
    KEPT,
    RefusedRequest,
    counted_arrays,
    kept_arrays,
    request_of,
)
from stepscope.analysis.resources.counters import line_counters
from stepscope.analysis.resources.memory_growth import Growth, Staying, growth_of_values
from stepscope.analysis.resources.memory_usage import (
    BREAKDOWN,
    MOST_POINTS,
    MemoryOfHost,
    Points,
    profile_memory,
    thin_out,
)
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.trace.remedies import ALLOCATIONS, remedy
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Part,
    Prose,
    Report,
    Role,
    Row,
    Rows,
    Section,
    Table,
    fields_named,
    make_row,
    make_rows,
    percent,
    round_ms,
    size_text,
)
from stepscope.report.relation import Merged
from stepscope.vocabulary.counters import is_process_memory

# ---- How the memory of the process grows from step to step, by the system's counter ----------------------------------


PROCESS = "process (resident)"
_GB = 1e9
_MATTERS = 0.05  # libraries take more pages now and then


def process_growth(trace: HostTrace) -> list[Growth]:
    """How the process's memory on the host grows; nothing where that was not sampled, or with too few steps."""
    wanted = [each for each in line_counters(trace) if is_process_memory(each.name)]
    found = [growth_of_values(steps_of(trace), PROCESS, each.time_ps, each.value * _GB, _MATTERS) for each in wanted]
    return [each for each in found if each is not None]


MOST_SENTENCES = 8
_SMALLER = "(smaller ones)"
_BLOCKS, _CURVE_WIDTH = " ▁▂▃▄▅▆▇█", 48
NOTHING = "no allocations were recorded"
_FEW_STEPS = "unknown: no memory was recorded over five steps or more"
_NOTHING_STAYS = "no allocation of several steps stays"
_NOT_FULL = "the program did not run out of memory"
_POINTS_OF_ALL, _LEAST_POINTS = 64 * MOST_POINTS, 50  # of the timelines of many hosts together; of each at least

_MEMORY = Field(
    "memory", "text", "the memory: the allocator's name, or the number of the device on its host", role=Role.PLACE
)
_HOST = Field("host", "text", "the host that recorded this row", role=Role.HOST)
MEMORY_FIELDS: tuple[Field, ...] = (
    Field("id", "text", "the memory: the allocator's name, or the number of the device on its host", role=Role.LABEL),
    _HOST,
    Field("allocations", "count", "allocations during the capture", "int"),
    Field("deallocations", "count", "deallocations during the capture", "int"),
    Field(
        "capacity_bytes",
        "bytes",
        "size of the memory: stack, heap and free memory at the peak, else what the file says of the device",
        "int",
    ),
    Field(
        *("peak_heap_bytes", "bytes", "the most heap in use since the program started; unknown if not recorded", "int"),
        label="Peak heap, since the start",
    ),
)
_STATE_FIELDS: tuple[Field, ...] = (
    Field("in_use_bytes", "bytes", "memory in use: stack and heap", "int"),
    Field("stack_bytes", "bytes", "memory reserved for the stack, on devices that have one", "int"),
    Field("heap_bytes", "bytes", "memory allocated on the heap", "int"),
    Field("free_bytes", "bytes", "free memory; for PyTorch the device's size minus the heap", "int"),
    Field("reserved_bytes", "bytes", "memory reserved by a caching allocator, in use or not (PyTorch)", "int"),
    Field("fragmentation_percent", "percent", "100 (1 - largest free chunk / free memory); unknown if not recorded"),
)
PEAK_FIELDS: tuple[Field, ...] = (
    _MEMORY,
    _HOST,
    Field(
        "time_ms",
        "ms",
        "time of the most memory in use during the capture, from the start of the host's session",
        role=Role.INSTANT,
        label="Peak at",
    ),
    Field("step", "number", "the step of the peak; empty between steps", "int", role=Role.STEP),
    replace(_STATE_FIELDS[0], label="Peak in this capture"),
    *(replace(field, label=f"{field.label} at the peak") for field in _STATE_FIELDS[1:]),
)
BREAKDOWN_FIELDS: tuple[Field, ...] = (
    Field(
        "op",
        "text",
        "the op that requested the memory; or the stack, or memory allocated before the capture",
        role=Role.NAME,
    ),
    Field("allocated_bytes", "bytes", "total memory allocated", "int"),
    Field("requested_bytes", "bytes", "total memory requested; unknown if not recorded", "int"),
    Field("occurrences", "count", "allocations alive at the peak", "int"),
    Field(
        "region",
        "text",
        "purpose: `temp`, `output` (activations, gradients), `persist`/`dynamic` (weights)",
        role=Role.TYPE,
    ),
    Field("dtype", "text", "element type of the tensors", role=Role.TYPE),
    Field("shape", "text", "shape of the tensors", role=Role.SHAPE),
    _MEMORY,
    _HOST,
)
PURPOSE_FIELDS: tuple[Field, ...] = (
    Field(
        "purpose",
        "text",
        "`parameters`, `gradients`, `optimizer_state`, `activations` (results of the forward pass), `input_batches`, "
        "`temporary` (freed in the op or the pass that made it, and the stack of programs), `compiled_programs` "
        "(results and temporary memory of JAX's programs), `before_the_capture` (or before its first step), "
        "`kept_over_steps` (made in a step, still there in the next), `unknown`",
        role=Role.TERM,
    ),
    Field("layer", "text", "the layer or module that allocated it; unknown if not recorded", role=Role.LABEL),
    Field("line", "text", "the line of the program; unknown unless stacks were recorded", role=Role.SOURCE),
    Field("allocated_bytes", "bytes", "memory that it holds at the peak", "int"),
    Field("percent", "percent", "its share of the memory in use at the peak"),
    Field("occurrences", "count", "allocations alive at the peak", "int"),
    _MEMORY,
    _HOST,
)
TIMELINE_FIELDS: tuple[Field, ...] = (
    _MEMORY,
    _HOST,
    Field("time_ms", "ms", "time of the event, from the start of the host's session", role=Role.INSTANT),
    Field("event", "text", "`allocation` or `deallocation`", role=Role.TYPE),
    Field("requested_bytes", "bytes", "memory requested, negative for deallocations; unknown if not recorded", "int"),
    Field("allocated_bytes", "bytes", "memory allocated, negative for deallocations", "int"),
    Field(
        "op", "text", "the op that requested the memory; for a deallocation, the memory that it frees", role=Role.NAME
    ),
    Field("step", "number", "the step that it belongs to, else the step at that time", "int", role=Role.STEP),
    Field("region", "text", "purpose: `temp`, `output`, `persist`, `dynamic`", role=Role.TYPE),
    Field("dtype", "text", "element type of the tensor", role=Role.TYPE),
    Field("shape", "text", "shape of the tensor", role=Role.SHAPE),
    *(replace(field, doc=f"{field.doc}, after the event") for field in _STATE_FIELDS),
)
GROWTH_FIELDS: tuple[Field, ...] = (
    _MEMORY,
    _HOST,
    Field("grows", "", "most steps end with more in use than the steps before, by 1 % or more in all", "bool"),
    Field("bytes_per_step", "bytes", "what a step leaves: the median slope over all pairs of steps"),
    Field("steps", "count", "steps that were compared: all but the first", "int"),
    Field("first_bytes", "bytes", "in use at the end of the first of these steps", "int"),
    Field("last_bytes", "bytes", "in use at the end of the last", "int"),
)
STAYING_FIELDS: tuple[Field, ...] = (
    Field("op", "text", "the op that requested the memory", role=Role.NAME),
    Field("place", "text", "the line of the program around it, where Python calls were recorded", role=Role.SOURCE),
    Field("bytes_per_step", "bytes", "what stays of each step"),
    Field("allocated_bytes", "bytes", "what stayed of all steps together", "int"),
    Field("allocations", "count", "allocations that stayed", "int"),
    Field("steps", "count", "steps in which one of them was made", "int"),
    *fields_named(BREAKDOWN_FIELDS, "region", "dtype", "shape"),
    _MEMORY,
    _HOST,
)

FULL_FIELDS: tuple[Field, ...] = (
    Field("holder", "text", "the variable that holds it, where one does", role=Role.NAME),
    Field("place", "text", "the line that adds to the variable, or sets it", role=Role.SOURCE),
    Field("count", "count", "how many objects of this type and shape", "int"),
    Field("held_bytes", "bytes", "their bytes together; what views share counts once", "int"),
    Field("kind", "text", "parameters, gradients, state of the optimizer, arrays, or plain objects", role=Role.TYPE),
    *fields_named(BREAKDOWN_FIELDS, "dtype", "shape"),
    _HOST,
)

REQUEST_FIELDS: tuple[Field, ...] = (
    Field("place", "text", "the function and the line that asked", role=Role.SOURCE),
    Field("requested_bytes", "bytes", "what was asked for at once", "int", label="Asked for"),
    Field("used_bytes", "bytes", "what the program used then, as the system and the device count", "int"),
    Field("free_bytes", "bytes", "what was free then; unknown if not recorded", "int"),
    Field("is_too_large", "", "it is more than what was free and in use together", "bool"),
    _HOST,
)

# Limits of a memory's figures.
_DOUBTS: tuple[tuple[Callable[[MemoryOfHost], bool], str], ...] = (
    (
        lambda memory: memory.counts_from_start,
        "the profile contains no totals: memory in use counts from the start of the capture",
    ),
    (
        lambda memory: not memory.has_addresses,
        "the profile contains no addresses: deallocations are matched to allocations of equal size, which is a guess",
    ),
    (
        lambda memory: memory.surplus > 0,
        "allocations alive at the peak exceed the memory in use: some deallocations were not recorded",
    ),
)


@dataclass(frozen=True)
class MemoriesOfHost:
    """The part of one host."""

    origin: Origin
    memories: list[MemoryOfHost]
    process: list[Growth]
    kept: list[Staying]
    full: list[Row]
    request: RefusedRequest | None


@dataclass(frozen=True, kw_only=True)
class MemoryProfileReport(Report):
    """How full each memory of each host is.

    Attributes:
        memories: one per memory and host: the keys of MEMORY_FIELDS, and `peak`, `timeline`, `breakdown` and
            `purposes`.
        rows: the breakdowns of all memories, fullest memory first; keys as in BREAKDOWN_FIELDS.
        growth: how each memory, and the process, grows from step to step; keys as in GROWTH_FIELDS.
        staying: the allocations that every few steps leave; keys as in STAYING_FIELDS.
        full: what the program held when it ran out of memory; keys as in FULL_FIELDS.
        requests: what was asked for then; keys as in REQUEST_FIELDS.
    """

    TOOL: ClassVar[str] = "memory-profile"

    memories: tuple[dict[str, Any], ...]
    rows: tuple[dict[str, Cell], ...]
    growth: tuple[dict[str, Cell], ...] = ()
    staying: tuple[dict[str, Cell], ...] = ()
    full: tuple[dict[str, Cell], ...] = ()
    requests: tuple[dict[str, Cell], ...] = ()

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        tables = {"growth": list(self.growth), "staying": list(self.staying), "full": list(self.full)}
        tables["requests"] = list(self.requests)
        return {"memories": list(self.memories), **tables}

    def sections(self) -> Sequence[Section]:
        """The peaks in sentences, the memories, their peaks, breakdowns and timelines."""
        curves = tuple(self._curves())
        return [
            Prose("peaks", "Peaks", self._sentences()),
            Prose("curves", "Memory in use over time", curves),
            _make_table("memories", "Memories", MEMORY_FIELDS, self.memories),
            _make_table("peak", "Peak of each memory", PEAK_FIELDS, self._flatten_memories("peak")),
            _make_table("breakdown", "Breakdown at the peak", BREAKDOWN_FIELDS, self.rows),
            _make_table("purposes", "What the peak is for", PURPOSE_FIELDS, self._flatten_memories("purposes")),
            Rows("growth", "Growth from step to step", GROWTH_FIELDS, self.growth, _FEW_STEPS),
            Rows("staying", "What stays from step to step", STAYING_FIELDS, self.staying, _NOTHING_STAYS),
            Rows("requests", "Asked for when memory ran out", REQUEST_FIELDS, self.requests, _NOT_FULL),
            Rows("full", "What filled the memory", FULL_FIELDS, self.full, _NOT_FULL),
            _make_table("timeline", "Timeline", TIMELINE_FIELDS, self._flatten_memories("timeline")),
        ]

    def arranged(self, sort: str | None = None, where: Sequence[str] = ()) -> Report:
        """The same report with its breakdowns filtered and sorted, including those within the memories."""
        found = super().arranged(sort, where)
        if found is self or not isinstance(found, MemoryProfileReport):
            return found
        kept: dict[tuple[Cell, Cell], list[dict[str, Cell]]] = defaultdict(list)
        for row in found.rows:
            kept[row["memory"], row["host"]].append({key: row[key] for key in row if key not in ("memory", "host")})
        memories = [{**memory, "breakdown": kept[memory["id"], memory["host"]]} for memory in self.memories]
        return replace(found, memories=tuple(memories))

    def head(self, rows: int) -> MemoryProfileReport:
        """The same report with at most `rows` rows in each breakdown."""
        memories = tuple({**memory, "breakdown": memory["breakdown"][:rows]} for memory in self.memories)
        return replace(self, memories=memories, rows=self.rows[:rows])

    def main_table(self) -> Rows:
        """What was alive at the peak of each memory."""
        return Rows("breakdown", "Breakdown at the peak", BREAKDOWN_FIELDS, self.rows, NOTHING)

    def why_empty(self) -> str | None:
        """Why there is nothing to show; None if there are memories, even without breakdowns, or arrays that were
        counted.

        The warnings say how to record allocations.
        """
        if self.memories or self.staying or self.full:
            return None
        return next((warning for warning in self.warnings if warning.startswith(NOTHING)), NOTHING)

    def _flatten_memories(self, name: str) -> Iterable[dict[str, Cell]]:
        for memory in self.memories:
            for row in memory[name] if isinstance(memory[name], list) else [memory[name]]:
                yield {"memory": memory["id"], "host": memory["host"], **row}

    def _sentences(self) -> tuple[str, ...]:
        if not self.memories:
            return (*self._growth_sentences(), NOTHING)
        fullest = sorted(self.memories, key=_fullness_order)
        lines = [_memory_sentence(memory, self._several()) for memory in fullest[:MOST_SENTENCES]]
        hidden = len(fullest) - len(lines)
        more = [f"... and {hidden} memories with less in use"] if hidden else []
        return (*self._growth_sentences(), *lines, *more)

    def _growth_sentences(self) -> list[str]:
        """The memories that grow, and what makes them grow."""
        growing = [row for row in self.growth if row["grows"]]
        return [_growth_sentence(row, self.staying) for row in growing[:MOST_SENTENCES]]

    def _several(self) -> bool:
        return len({memory["host"] for memory in self.memories}) > 1

    def _curves(self) -> Iterable[str]:
        shown = [memory for memory in sorted(self.memories, key=_fullness_order) if memory["peak"]["in_use_bytes"]]
        named = [(_memory_title(memory, self._several()), memory) for memory in shown[:MOST_SENTENCES]]
        width = max((len(name) for name, _ in named), default=0)
        for name, memory in named:
            full = size_text(memory["peak"]["in_use_bytes"])
            yield f"{name:{width}}  {_draw_curve(memory['timeline'])}  of {full}"


def _make_table(key: str, title: str, fields: tuple[Field, ...], rows: Iterable[dict[str, Any]]) -> Rows:
    """A table.  Screens show only the heap of memories without a stack."""
    listed = tuple({field.name: row[field.name] for field in fields} for row in rows)
    is_heap_alone = bool(listed) and not any(row.get("stack_bytes") for row in listed)
    silent = {"stack_bytes", "in_use_bytes"} if is_heap_alone else set()
    shown = tuple(field.name for field in fields if field.name not in silent)
    return Rows(key, title, fields, listed, NOTHING, (Part(title, shown),))


def _draw_curve(timeline: Sequence[dict[str, Any]]) -> str:
    """The most memory in use in each of some equal parts of the time; without events the last value holds."""
    begin, end = timeline[0]["time_ms"], timeline[-1]["time_ms"]
    bins: list[list[int]] = [[] for _ in range(_CURVE_WIDTH)]
    for point in timeline:
        share = (point["time_ms"] - begin) / (end - begin) if end > begin else 0.0
        bins[min(int(share * _CURVE_WIDTH), _CURVE_WIDTH - 1)].append(point["in_use_bytes"] or 0)
    levels, last = [], 0
    for inside in bins:
        levels.append(max(inside, default=last))
        last = inside[-1] if inside else last
    full = max(levels) or 1
    return "".join(_BLOCKS[-(-level * (len(_BLOCKS) - 1) // full)] for level in levels)


def _fullness_order(memory: dict[str, Any]) -> tuple[int, str, str]:
    return -(memory["peak"]["in_use_bytes"] or 0), memory["id"], memory["host"]


def _memory_title(memory: dict[str, Any], several: bool) -> str:
    """The memory, with its host if there are several hosts."""
    return f"{memory['id']} of {memory['host']}" if several else str(memory["id"])


def _memory_sentence(memory: dict[str, Any], several: bool) -> str:
    peak, name = memory["peak"], _memory_title(memory, several)
    if peak["in_use_bytes"] is None:
        count = memory["allocations"]
        return f"{name}: {count:,} allocation{'' if count == 1 else 's'} of unknown size"
    share = percent(peak["in_use_bytes"], memory["capacity_bytes"] or 0)
    capacity = f" of {size_text(memory['capacity_bytes'])} ({share:.1f} %)" if share is not None else ""
    step = f" in step {peak['step']}" if peak["step"] is not None else ""
    rows = sorted(memory["breakdown"], key=lambda row: -row["allocated_bytes"])[:3]
    largest = ", ".join(
        f"{size_text(row['allocated_bytes'])} {_end_of_path(row['op'] or 'by an unknown op')}" for row in rows
    )
    return f"{name}: {size_text(peak['in_use_bytes'])}{capacity} at {peak['time_ms']:,.3f} ms{step}: {largest}"


def _round_bytes(value: Cell) -> int:
    return round(value) if isinstance(value, int | float) else 0


def _growth_sentence(row: dict[str, Cell], staying: Sequence[dict[str, Cell]]) -> str:
    own = next((each for each in staying if (each["memory"], each["host"]) == (row["memory"], row["host"])), None)
    slope, first, last = (_round_bytes(row[name]) for name in ("bytes_per_step", "first_bytes", "last_bytes"))
    text = f"{row['memory']} grows by {size_text(slope)} per step over {row['steps']} steps"
    text += "" if row["last_bytes"] is None else f", from {size_text(first)} to {size_text(last)}"
    if own is None:
        return text
    where = f" in {own['place']}" if own["place"] else ""
    stays = size_text(_round_bytes(own["bytes_per_step"]))
    of = _end_of_path(str(own["op"] or "an unknown op"))
    of = f"in `{of}`" if own["memory"] == KEPT else f"of {of}"
    return f"{text}: {stays} per step stays {of}{where}"


def _end_of_path(op: str) -> str:
    """The end of an op's path, which says more than its start."""
    return op if len(op) <= 40 else "…" + op[-39:]


def _list_peaks(report: MemoryProfileReport) -> Iterator[dict[str, Cell]]:
    """How much of each memory is in use at its peak."""
    for memory in report.memories:
        yield {"memory": memory["id"], "in_use_bytes": memory["peak"]["in_use_bytes"]}


COMPARABLES = (
    Comparable(
        id="memories",
        title="Memories at their peak",
        keys=(_MEMORY,),
        measure=Field("in_use_bytes", "bytes", "memory in use at the peak, over all hosts", "int"),
        rows=_list_peaks,
        empty="neither side recorded allocations",
    ),
)


def partial(trace: HostTrace) -> MemoriesOfHost:
    """The part of one host."""
    growth, kept = kept_arrays(trace)
    return MemoriesOfHost(
        origin=origin_of(trace),
        memories=[profile_memory(trace, memory) for memory in allocations_of(trace)],
        process=[*process_growth(trace), *growth],
        kept=kept,
        full=[
            dict(zip((field.name for field in FULL_FIELDS), (*row, trace.host), strict=True))
            for row in counted_arrays(trace, "full:")
        ],
        request=request_of(trace),
    )


def merge(partials: Sequence[MemoriesOfHost]) -> MemoryProfileReport:
    """The memories of all hosts; those of different hosts are never summed."""
    owned = [(part.origin.host, memory) for part in partials for memory in part.memories]
    most = min(MOST_POINTS, max(_LEAST_POINTS, _POINTS_OF_ALL // max(len(owned), 1)))
    memories = tuple(_memory_json(host, memory, most) for host, memory in owned)
    return MemoryProfileReport(
        **header([part.origin for part in partials], _find_warnings(partials)),
        memories=memories,
        rows=tuple(
            {**row, "memory": memory["id"], "host": memory["host"]}
            for memory in sorted(memories, key=_fullness_order)
            for row in memory["breakdown"]
        ),
        growth=tuple(
            make_row(GROWTH_FIELDS, growth, host=host, bytes_per_step=round(growth.slope, 3))
            for host, growth in _list_growth(partials)
        ),
        staying=(
            *(_staying_cells(host, memory.id, row) for host, memory in owned for row in memory.staying),
            *(_staying_cells(part.origin.host, KEPT, row) for part in partials for row in part.kept),
        ),
        full=tuple(row for part in partials for row in part.full),
        requests=tuple(_request_cells(part.origin.host, part.request) for part in partials if part.request),
    )


def _list_growth(partials: Sequence[MemoriesOfHost]) -> list[tuple[str, Growth]]:
    """Every memory's growth with its host: what grows first, by the slope."""
    found = [(part.origin.host, memory.growth) for part in partials for memory in part.memories if memory.growth]
    found += [(part.origin.host, growth) for part in partials for growth in part.process]
    return sorted(found, key=lambda each: (not each[1].grows, -each[1].slope, each[0], each[1].memory))


def _staying_cells(host: str, memory: str, row: Staying) -> Row:
    own = {"bytes_per_step": round(row.per_step, 3), "dtype": row.data_type}
    return make_row(STAYING_FIELDS, row, memory=memory, host=host, **own)


def _request_cells(host: str, request: RefusedRequest) -> Row:
    own = {"requested_bytes": request.nbytes, "used_bytes": request.used, "free_bytes": request.free}
    return make_row(REQUEST_FIELDS, request, host=host, **own)


def _memory_json(host: str, memory: MemoryOfHost, most: int) -> dict[str, Any]:
    timeline = memory.timeline
    level = np.array([timeline.in_use_at(row) or 0 for row in range(len(timeline.time_ps))], np.int64)
    return {
        "id": memory.id,
        "host": host,
        "allocations": memory.allocations,
        "deallocations": memory.deallocations,
        "capacity_bytes": memory.capacity,
        "peak_heap_bytes": memory.peak_heap,
        "peak": _peak_cells(memory.peak),
        "timeline": _timeline_cells(timeline, thin_out(level, most).tolist()),
        "breakdown": _breakdown_rows(BREAKDOWN.merge([memory.breakdown])),
        "purposes": list(_purpose_rows(memory)),
    }


def _breakdown_rows(alive: Merged) -> list[Row]:
    fields = BREAKDOWN_FIELDS[:-2]  # all but the memory and its host
    rows = [*alive.table(fields)]
    if alive.left_out:
        rows.append(dict.fromkeys(field.name for field in fields) | alive.rest | {"op": _SMALLER})
    return rows


def _purpose_rows(memory: MemoryOfHost) -> Table:
    in_use = (memory.peak.in_use_at(0) or 0) if memory.peak.time_ps else 0
    fields = PURPOSE_FIELDS[:-2]  # all but the memory and its host
    return make_rows(fields, memory.held, percent=lambda row: percent(row.allocated, in_use))


def _peak_cells(peak: Points) -> dict[str, Cell]:
    if not peak.time_ps:
        return dict.fromkeys((field.name for field in PEAK_FIELDS[2:]), None)
    state = {name: column[0] for name, column in _state_columns(peak, [0]).items()}
    return {"time_ms": round_ms(peak.time_ps[0]), "step": peak.step[0], **state}


def _timeline_cells(points: Points, rows: list[int]) -> list[dict[str, Cell]]:
    def texts(column: list[int | None]) -> list[Cell]:
        return [None if at is None else points.texts[at] for at in (column[row] for row in rows)]

    columns = {
        "time_ms": [round_ms(points.time_ps[row]) for row in rows],
        "event": ["allocation" if points.is_allocation[row] else "deallocation" for row in rows],
        "requested_bytes": [points.requested[row] for row in rows],
        "allocated_bytes": [points.allocated[row] for row in rows],
        "op": texts(points.op),
        "step": [points.step[row] for row in rows],
        "region": texts(points.region),
        "dtype": texts(points.data_type),
        "shape": texts(points.shape),
        **_state_columns(points, rows),
    }
    names = list(columns)
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _state_columns(points: Points, rows: list[int]) -> dict[str, list[Cell]]:
    fragmentation = [points.fragmentation[row] for row in rows]
    return {
        "in_use_bytes": [points.in_use_at(row) for row in rows],
        "stack_bytes": [points.stack[row] for row in rows],
        "heap_bytes": [points.heap[row] for row in rows],
        "free_bytes": [points.free[row] for row in rows],
        "reserved_bytes": [points.pool[row] for row in rows],
        "fragmentation_percent": [None if share is None else round(100.0 * share, 4) for share in fragmentation],
    }


def _find_warnings(partials: Sequence[MemoriesOfHost]) -> list[str]:
    without = [part for part in partials if not part.memories]
    found = []
    for recorder in dict.fromkeys(part.origin.recorder for part in without):
        hosts = ", ".join(part.origin.host for part in without if part.origin.recorder == recorder)
        found.append(f"{NOTHING} on {hosts}: {remedy(ALLOCATIONS, recorder)}")
    for is_doubtful, sentence in _DOUBTS:
        memories = dict.fromkeys(memory.id for part in partials for memory in part.memories if is_doubtful(memory))
        found += [f"{', '.join(memories)}: {sentence}"] if memories else []
    return found
