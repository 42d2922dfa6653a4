"""Which op each piece of device work belongs to, and how that is known.

Sources, best first:

1. The work itself.  It may carry an XLA instruction, which leads to an op if the trace holds the program.  Else it may
   carry a framework op; collectives ignore that, since the call around their launch is more exact.
2. Its node in a recorded graph of kernels: what the program annotated it with, or the op that recorded it in a trace of
   the capture, which win over the op that launched the whole graph; the op of another run of the node.
3. The op around the host call that launched it, found by correlation id.
4. Without an op: the annotation, traced function or Python call around the launching call.
5. Work of a graph, of which nothing else is known: the graph stands for the op.

The rest is unattributed, and tools report how much that is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope import kernels
from stepscope.analysis.hlo.framework_ops import framework_ops_of_events
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.graph_annotations import annotations_of
from stepscope.analysis.trace.grouping import device_rows, forest, is_launched_before
from stepscope.model import EventKind, HostTrace, Kind, LineKind, stat_names
from stepscope.model.arrays import I32, I64, U8, Mask, distinct, number_pairs, places_of
from stepscope.records import dataclass
from stepscope.report import Field, percent, round_us
from stepscope.vocabulary.jax import argument_of
from stepscope.vocabulary.lookup import names_have
from stepscope.vocabulary.op_names import op_name
from stepscope.vocabulary.torch import annotated_op
from stepscope.vocabulary.traits import CallTrait

K = EventKind
OpName = tuple[str, str]  # name and type

WORTH_SAYING_PERCENT = 1.0
_TOO_LONG_PS = 1 << 56  # twenty hours: a longer measured duration of one piece of work is garbage


class HowKnown(Kind):
    """How the op of a piece of device work is known."""

    NONE = 0
    OWN = 1
    GRAPH = 2  # by its node in a graph
    CALL = 3
    AROUND = 4
    WHOLE_GRAPH = 5  # only the graph is known


_OP_LEVEL = 3
# What may stand for an op; a higher number is better.
_LEVELS: dict[EventKind, int] = {
    K.OP: _OP_LEVEL,
    K.BACKWARD: _OP_LEVEL,
    K.COLLECTIVE_CALL: _OP_LEVEL,
    K.CHECKPOINT: _OP_LEVEL,
    K.INPUT_WAIT: _OP_LEVEL,
    K.ITERATOR: _OP_LEVEL,
    K.TRACED_FUNCTION: 2,
    K.ANNOTATION: 2,
    K.EAGER_EXECUTE: 2,
    K.PYTHON_CALL: 1,
}


@dataclass(frozen=True)
class Attribution:
    """The device work of a trace and its ops.

    Attributes:
        rows: int64 of shape (n,), the events that are device work, ascending.
        time_ps: int64 of shape (n,), the duration of each, by the device's own clock if the trace holds it.  Other
            durations on a TPU are converted to the host's clock and are less exact.
        op: int32 of shape (n,), index into `ops`, -1 if unattributed.
        ops: name and type of each op.
        source: uint8 of shape (n,), see HowKnown.
        call: int64 of shape (n,), row of the host call that launched the work, or -1.
        run: int64 of shape (n,), row of the host op around that call, or -1.
        instruction: int64 of shape (n,), string row of the XLA instruction, or -1.
        early: bool of shape (n,), unattributed work with a lower correlation id than any recorded call; all False if
            little work is unattributed.
    """

    rows: I64
    time_ps: I64
    op: I32
    ops: tuple[OpName, ...]
    source: U8
    call: I64
    run: I64
    instruction: I64
    early: Mask


@dataclass(frozen=True)
class Shares:
    """Device time by how its op is known.

    Attributes:
        time_ps, pieces: time and number of pieces of work, both in the order of HowKnown.
        early_ps: time of unattributed work launched before the recording started, according to correlation ids.
    """

    time_ps: list[int]
    pieces: list[int]
    early_ps: int


def attribute(trace: HostTrace) -> Attribution:
    """The attribution of a trace, computed once per trace."""
    return trace.derived("attribution", _attribute)


def shares(trace: HostTrace, among: Mask | None = None) -> Shares:
    """Device time by source of its op; `among` is bool of shape (n,), all work if None."""
    found = attribute(trace)
    kept = slice(None) if among is None else among
    source, duration = found.source[kept], found.time_ps[kept]
    time = [int(duration[source == how].sum()) for how in HowKnown]
    early = duration[found.early[kept]]
    return Shares(time, np.bincount(source, minlength=len(HowKnown)).tolist(), int(early.sum()))


def event_name_rows(trace: HostTrace, rows: I64) -> I64:
    """String rows of the names of events: int64 of shape (n,)."""
    return trace.event_types.name[trace.events.type[rows]].astype(np.int64)


# -- the parts of an attribution -----------------------------------------------------------------------------------


class _OpTable:
    """Collects ops; equal name and type get the same index."""

    def __init__(self) -> None:
        self.places: dict[OpName, int] = {}

    def put(self, op: I32, at: I64, key: I64, other: I64, name_of: Callable[[int], OpName]) -> None:
        """Sets the ops of the pieces `at`.  Pieces of equal `key` and `other` share one, named by `name_of(piece)`."""
        number, first = number_pairs(key[at], other[at])
        named = [self.places.setdefault(name_of(piece), len(self.places)) for piece in at[first].tolist()]
        op[at] = np.array(named, np.int32)[number]


def _attribute(trace: HostTrace) -> Attribution:
    rows = device_rows(trace)
    table, links = _OpTable(), forest(trace)
    op, source = np.full(len(rows), -1, np.int32), np.zeros(len(rows), np.uint8)
    call = links.cause[rows].astype(np.int64)
    around = _nearest_op_events(trace, call)
    is_op = _is_op(trace, around)
    run = np.where(is_op, around, -1)
    instruction = trace.stat_strings(stat_names.HLO_OP, rows=rows)
    own = (instruction <= 0) & ~_is_collective_call(trace, run)
    _attribute_by_framework_op(trace, rows, own, table, op)
    _attribute_by_instruction(trace, rows, instruction, table, op)
    source[op >= 0] = HowKnown.OWN
    _attribute_by_capture(trace, rows, table, op, source)
    _attribute_by_annotation(trace, rows, table, op, source)
    _attribute_by_graph_node(trace, rows, table, op, source)

    def name_around(piece: int) -> OpName:
        event = int(around[piece])
        return op_name(trace.name_of(event), EventKind(trace.events.kind[event]))

    lost = np.flatnonzero((op < 0) & (around >= 0))
    names = event_name_rows(trace, np.maximum(around, 0))
    table.put(op, lost, names, trace.events.kind[np.maximum(around, 0)].astype(np.int64), name_around)
    source[lost] = np.where(is_op[lost], HowKnown.CALL, HowKnown.AROUND)
    _attribute_by_graph(trace, rows, call, table, op, source)
    time = _work_times(trace, rows)
    early = _is_early(trace, rows, time, source)
    return Attribution(rows, time, op, tuple(table.places), source, call, run, instruction, early)


def _work_times(trace: HostTrace, rows: I64) -> I64:
    shown = trace.events.duration_ps[rows]
    if not trace.has_stat(stat_names.DEVICE_DURATION_PS):
        return shown
    measured = trace.stat_ints(stat_names.DEVICE_DURATION_PS, rows=rows)
    return np.where((measured >= 0) & (measured < _TOO_LONG_PS), measured, shown)


def _is_early(trace: HostTrace, rows: I64, time: I64, source: U8) -> Mask:
    lost: Mask = source == HowKnown.NONE
    if int(time[lost].sum()) * 100 < int(time.sum()) * WORTH_SAYING_PERCENT:
        return np.zeros_like(lost)
    early: Mask = lost & is_launched_before(trace, trace.span_ps()[0])[rows]
    return early


def _level_table() -> U8:
    levels = np.zeros(256, np.uint8)
    for kind, level in _LEVELS.items():
        levels[kind] = level
    return levels


def ops_around(trace: HostTrace, calls: I64) -> I64:
    """The op around each call on the host: int64 of shape (n,), row or -1."""
    around = _nearest_op_events(trace, calls)
    return np.where(_is_op(trace, around), around, -1)


def _is_op(trace: HostTrace, events: I64) -> Mask:
    found: Mask = (events >= 0) & (_level_table()[trace.events.kind[np.maximum(events, 0)]] == _OP_LEVEL)
    return found


def _nearest_op_events(trace: HostTrace, calls: I64) -> I64:
    """The event around each call that may stand for its op: int64 of shape (n,), row or -1."""
    links, levels, out = forest(trace), _level_table(), np.empty(len(calls), np.int64)
    kernels.ops.climb(calls, links.parent, links.cause, trace.events.kind, levels, int(levels.max()), out)
    return out


def _is_collective_call(trace: HostTrace, run: I64) -> Mask:
    """Which ops are calls of a communication library.

    Such a call has an exact name, `nccl:all_reduce`.  The op that PyTorch writes to the work is `record_param_comms`,
    the same for every operation.
    """
    found: Mask = (run >= 0) & (trace.events.kind[np.maximum(run, 0)] == K.COLLECTIVE_CALL)
    return found


def _attribute_by_framework_op(trace: HostTrace, rows: I64, among: Mask, table: _OpTable, op: I32) -> None:
    """Sets ops by the framework op that the work carries.  On a TPU core the event's name is the op."""
    text = trace.stat_strings(stat_names.FRAMEWORK_OP, rows=rows)
    core = (trace.lines.kind == LineKind.DEVICE_OPS)[trace.events.line[rows]]
    text = np.where((text <= 0) & core, event_name_rows(trace, rows), text)
    kind = trace.events.kind[rows].astype(np.int64)
    kind = np.where(core, kind, int(K.KERNEL))  # copies and collectives of an op belong to it
    table.put(
        op, np.flatnonzero((text > 0) & among), text, kind,
        lambda piece: op_name(trace.strings[text[piece]], K.DEVICE_OP if core[piece] else K.OP),
    )  # fmt: skip


def _attribute_by_instruction(trace: HostTrace, rows: I64, instruction: I64, table: _OpTable, op: I32) -> None:
    """Sets ops by the XLA instruction, through its program if that is known."""
    at = np.flatnonzero(instruction > 0)
    if len(at):
        events, instruction = rows[at], instruction[at]
        number, first = number_pairs(instruction, trace.stat_ints(stat_names.PROGRAM_ID, rows=events))
        number, first = number_pairs(number, trace.stat_strings(stat_names.HLO_MODULE, rows=events))
        code, names = name_instructions(trace, events[first], instruction[first])
        places = np.array([table.places.setdefault(name, len(table.places)) for name in names], np.int32)
        op[at] = places[code][number]


def name_instructions(trace: HostTrace, events: I64, instructions: I64) -> tuple[I32, list[OpName]]:
    """The op of the XLA instruction of each event: int32 of shape (events,), and name and type of the different ops.

    Args:
        events: int64 of shape (n,), rows of events.
        instructions: int64 of shape (n,), string rows of their instructions.
    """
    op, texts = framework_ops_of_events(trace, events, instructions)
    arguments = [argument_of(text) for text in texts]
    has_own_name = np.array([not text or bool(argument) for text, argument in zip(texts, arguments, strict=True)])
    code, first = number_pairs(op, np.where(has_own_name[op], instructions, -1))
    return code, [
        _instruction_op(texts[each], arguments[each], trace.strings[int(instructions[at])])
        for at, each in zip(first.tolist(), op[first].tolist(), strict=True)
    ]


def _instruction_op(framework: str, argument: str, instruction: str) -> OpName:
    if argument:
        return argument, op_name(instruction, K.DEVICE_OP)[1]
    return op_name(framework or instruction, K.DEVICE_OP)


def _attribute_by_capture(trace: HostTrace, rows: I64, table: _OpTable, op: I32, source: U8) -> None:
    """Sets ops to those that recorded the work into its graph, where a trace of that was merged into this one."""
    text = trace.stat_strings(stat_names.CAPTURED_OP, rows=rows)
    at = np.flatnonzero(text > 0)
    table.put(op, at, text, np.zeros_like(text), lambda piece: op_name(trace.strings[text[piece]], K.OP))
    source[at] = HowKnown.GRAPH


def _attribute_by_annotation(trace: HostTrace, rows: I64, table: _OpTable, op: I32, source: U8) -> None:
    """Sets ops by what a program has annotated the nodes of its graphs with, which PyTorch writes to each replay."""
    known = annotations_of(trace)
    at = np.searchsorted(rows, known.rows)
    texts = [column.astype(np.int64) for column in (known.collective, known.module, known.region)]
    if not len(at):
        return
    place, first = number_pairs(texts[0], texts[1])
    place, first = number_pairs(place, texts[2])
    place, first = number_pairs(place, known.is_backward.astype(np.int64))
    trained = bool(known.is_backward.any())

    def name_of(row: int) -> OpName:
        collective, module, region = (trace.strings[column[row]] for column in texts)
        return annotated_op(collective, module, region, bool(known.is_backward[row]), trained)

    names = [table.places.setdefault(name_of(row), len(table.places)) for row in first.tolist()]
    op[at], source[at] = np.array(names, np.int32)[place], HowKnown.GRAPH


def _attribute_by_graph_node(trace: HostTrace, rows: I64, table: _OpTable, op: I32, source: U8) -> None:
    """Sets ops by graph node: an op known from one event of a node holds for all events of the node."""
    if not trace.has_stat(stat_names.GRAPH_NODE_ID):
        return
    node = trace.stat_ints(stat_names.GRAPH_NODE_ID, 0)
    original = trace.stat_ints(stat_names.GRAPH_ORIGINAL_NODE_ID, 0)
    known = _ops_by_device_node(node, original, rows, op) | _ops_by_host_node(trace, node, table)
    if known:
        ids = np.array(sorted(known), np.int64)
        ops = np.array([known[key] for key in ids.tolist()], np.int32)
        for column in (original, node):  # its own id wins
            lost = np.flatnonzero((source == HowKnown.NONE) & (column[rows] != 0))
            place = places_of(ids, column[rows[lost]])
            op[lost[place >= 0]] = ops[place[place >= 0]]
        source[(source == HowKnown.NONE) & (op >= 0)] = HowKnown.GRAPH


def _attribute_by_graph(trace: HostTrace, rows: I64, call: I64, table: _OpTable, op: I32, source: U8) -> None:
    """Sets the op of work from a launched graph to the graph, where its recorded ops are unknown."""
    graph = trace.stat_ints(stat_names.GRAPH_ID, 0, rows=rows)
    names = event_name_rows(trace, np.maximum(call, 0))
    different = distinct(names)
    launches = different[names_have(trace.strings.texts(different), CallTrait.LAUNCHES_GRAPH)]
    lost = np.flatnonzero((source == HowKnown.NONE) & ((graph > 0) | ((call >= 0) & np.isin(names, launches))))

    def name_of(piece: int) -> OpName:
        return f"graph {graph[piece]}" if graph[piece] > 0 else "graph", "graph launch"

    table.put(op, lost, graph, np.zeros(len(rows), np.int64), name_of)
    source[lost] = HowKnown.WHOLE_GRAPH


def _ops_by_device_node(node: I64, original: I64, rows: I64, op: I32) -> dict[int, int]:
    known: dict[int, int] = {}
    for column in (original, node):
        at = np.flatnonzero((op >= 0) & (column[rows] != 0))
        _, first = number_pairs(column[rows[at]], op[at])
        known |= zip(column[rows[at[first]]].tolist(), op[at[first]].tolist(), strict=True)
    return known


def _ops_by_host_node(trace: HostTrace, node: I64, table: _OpTable) -> dict[int, int]:
    """Ops around the host calls that recorded graph nodes."""
    threads = is_thread_event(trace)
    calls = np.flatnonzero(threads & (node != 0))
    known: dict[int, int] = {}
    for call, event in zip(calls.tolist(), ops_around(trace, calls).tolist(), strict=True):
        if event >= 0:
            name = op_name(trace.name_of(event), EventKind(trace.events.kind[event]))
            known[int(node[call])] = table.places.setdefault(name, len(table.places))
    return known


# -- for reports ---------------------------------------------------------------------------------------------------

FIELDS: tuple[Field, ...] = (
    Field(
        "device_time_us",
        "us",
        "total time of the device work in this table, summed over devices and streams",
        label="Device time, all streams",
    ),
    Field(
        "own_percent",
        "percent",
        "share of that time in work that names its XLA instruction or framework op itself",
        label="From the kernel",
    ),
    Field(
        "graph_percent",
        "percent",
        "work of a recorded graph of kernels whose op is known from its node: annotated, or that of its capture",
        label="From its graph node",
    ),
    Field(
        "call_percent",
        "percent",
        "work whose op is the one that encloses the launching host call",
        label="From the launching call",
    ),
    Field(
        "around_percent",
        "percent",
        "work without an op, named by the annotation, traced function or Python call that encloses its launch",
        label="From the enclosing call",
    ),
    Field(
        "whole_graph_percent",
        "percent",
        "work of a recorded graph of kernels of which only the graph is known, which stands for the op",
        label="Only its graph",
    ),
    Field("unattributed_percent", "percent", "work that nothing in the trace links to an op", label="Unknown"),
)
_NAME_OF_SOURCE = ("unattributed", "own", "graph", "call", "around", "whole_graph")


def figures(parts: list[Shares]) -> dict[str, float | None]:
    """The shares over all hosts, keyed as in FIELDS."""
    time = [sum(part.time_ps[how] for part in parts) for how in HowKnown]
    total = sum(time)
    found: dict[str, float | None] = {"device_time_us": round_us(total)}
    return found | {f"{name}_percent": percent(time[how], total) for how, name in enumerate(_NAME_OF_SOURCE)}
