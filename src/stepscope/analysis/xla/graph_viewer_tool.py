"""The tool `graph-viewer`: the programs that ran as graphs, the path through each that takes longest, and what is
around its slowest instruction.

An edge leads from an instruction to one that takes its result. The longest path is the chain of instructions of the
entry computation that takes most time together: a program cannot be faster than it, however much runs side by side.
Nodes are the instructions within three hops of the slowest one, of each of the ten programs that take most time.

`stepscope hlo-graph` shows the surroundings of any instruction, searches, and writes Graphviz DOT or the program as
text: for each instruction its result, opcode, operands and what it calls.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import ClassVar, NamedTuple

import numpy as np

from stepscope.analysis.hlo.module import Module
from stepscope.analysis.hlo.programs import WHY_NONE, programs_of
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.xla.costs import program_costs
from stepscope.analysis.xla.graph import MOST_NODES, edges_among, expensive_path, neighbourhood, search
from stepscope.analysis.xla.op_time import find_instruction_rows, op_runs, op_time
from stepscope.analysis.xla.ops import category_of, number_or_none
from stepscope.errors import UsageError
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, sum_groups
from stepscope.records import dataclass
from stepscope.report import Field, Report, Role, Table, as_table, make_rows, percent, round_us

HOPS = 3
MOST_PROGRAMS = 10  # of which the report draws graphs; hlo-graph draws any
_MOST_NODES, _MOST_PATH = 60, 200

FIELDS: tuple[Field, ...] = (
    Field("program", "text", "the program and its number", role=Role.LABEL),
    Field("id", "number", "number of the node in its program", "int", role=Role.ORDINAL),
    Field("name", "text", "the instruction", role=Role.NAME),
    Field("category", "text", "the opcode; of fusions their kind", role=Role.TYPE),
    Field("shape", "text", "the shape of its result with layout", role=Role.SHAPE),
    Field("hops", "number", "how far from the node in the middle", "int", role=Role.ORDINAL),
    Field("occurrences", "count", "how often it ran", "int", label="Count"),
    Field("self_us", "us", "its time, all occurrences together"),
    Field("on_path", "", "whether it lies on the longest path", "bool"),
    Field("opens", "text", "the computation inside, of a fusion, loop or call", role=Role.LABEL),
    Field("framework_op", "text", "the op of the framework that it was made from", role=Role.LABEL),
    Field("source", "text", "the line of the program that asked for it", role=Role.SOURCE),
    Field("flops", "FLOP", "operations of one run"),
    Field("bytes", "bytes", "bytes that one run moves"),
)
EDGE_FIELDS: tuple[Field, ...] = (
    Field("program", "text", "the program and its number", role=Role.LABEL),
    Field("from_id", "number", "the node whose result is taken", "int", role=Role.ORDINAL),
    Field("to_id", "number", "the node that takes it", "int", role=Role.ORDINAL),
    Field("bytes", "bytes", "size of the result"),
)
PATH_FIELDS: tuple[Field, ...] = (
    Field("program", "text", "the program and its number", role=Role.LABEL),
    Field("place", "number", "place on the path", "int", role=Role.ORDINAL),
    Field("name", "text", "the instruction", role=Role.NAME),
    Field("category", "text", "the opcode; of fusions their kind", role=Role.TYPE),
    Field("self_us", "us", "its time, all occurrences together"),
    Field("percent", "percent", "share of the time of its program"),
)
PROGRAM_FIELDS: tuple[Field, ...] = (
    Field("program", "text", "the program and its number", role=Role.LABEL),
    Field("instructions", "count", "instructions, those inside fusions too", "int"),
    Field("computations", "count", "computations", "int"),
    Field("edges", "count", "results that are taken", "int"),
    Field("self_us", "us", "time of its ops"),
    Field("path_us", "us", "time of the ops on its longest path"),
    Field("path_percent", "percent", "share of the program's time that lies on that path"),
)


class GraphNode(NamedTuple):
    """One node; see FIELDS."""

    id: int
    name: str
    category: str
    shape: str
    hops: int
    occurrences: int
    self_ps: int
    on_path: bool
    opens: str
    framework_op: str
    source: str
    flops: float | None
    bytes: float | None


class ProgramGraph(NamedTuple):
    """A part of one program's graph; `path` holds name, category and time."""

    program: str
    instructions: int
    computations: int
    edge_count: int
    self_ps: int
    path_ps: int
    nodes: list[GraphNode]
    edges: list[tuple[int, int, int]]
    path: list[tuple[str, str, int]]
    cut: bool


@dataclass(frozen=True)
class GraphsOfHost:
    """What one host contributes."""

    origin: Origin
    graphs: list[ProgramGraph]


_EMPTY = f"no instructions of an XLA program that ran: {WHY_NONE}"


@dataclass(frozen=True, kw_only=True)
class GraphViewerReport(Report):
    """Parts of graphs; see the FIELDS tables of this module for the meaning of its parts."""

    TOOL: ClassVar[str] = "graph-viewer"

    rows: Table = as_table("Around the slowest instruction", FIELDS, _EMPTY)
    path: Table = as_table("Longest path", PATH_FIELDS, _EMPTY)
    programs: Table = as_table("Programs as graphs", PROGRAM_FIELDS, _EMPTY)
    edges: Table = as_table("Edges", EDGE_FIELDS, _EMPTY)


NOT_COMPARABLE = "it shows how a program is put together; hlo-stats compares the time of its instructions"


def partial(trace: HostTrace) -> GraphsOfHost:
    """What one host contributes: the surroundings of the slowest instruction of each program that ran."""
    programs, times = programs_of(trace), _program_times(trace)
    slowest = sorted(times, key=lambda place: -int(times[place].self_ps.sum()))[:MOST_PROGRAMS]
    graphs = [draw_graph(trace, place, [], HOPS, _MOST_NODES) for place in slowest if programs.entries]
    return GraphsOfHost(origin_of(trace), graphs)


def graph_around(trace: HostTrace, program: str = "", node: str = "", hops: int = HOPS, find: str = "") -> GraphsOfHost:
    """The surroundings of an instruction, or what a search finds.

    Args:
        program: label or module of a program; the one that took most time if empty.
        node: the instruction in the middle; the slowest if empty.
        hops: how far to go.
        find: a text instead of an instruction: all instructions that hold it, without what is around them.

    Raises:
        UsageError: there is no such program or instruction.
    """
    place = find_program(trace, program)
    module = programs_of(trace).module(place)
    if find:
        seeds, hops = search(module, find), 0
        if not seeds:
            raise UsageError(f"no instruction of {programs_of(trace).entries[place].label} holds {find!r}")
    else:
        seeds = seeds_of(module, node)
    return GraphsOfHost(origin_of(trace), [draw_graph(trace, place, seeds, hops)])


def find_program(trace: HostTrace, program: str) -> int:
    """The place of a program by label or module; of the slowest if the text is empty.  Raises UsageError."""
    programs, times = programs_of(trace), _program_times(trace)
    order = sorted(range(len(programs)), key=lambda at: -int(times[at].self_ps.sum()) if at in times else 0)
    fits = [at for at in order if program in ("", programs.entries[at].label, programs.entries[at].module)]
    if not fits:
        labels = ", ".join(programs.entries[at].label for at in order[:10])
        raise UsageError(
            f"there is no program {program!r}" if programs.entries else _EMPTY,
            hint=f"programs: {labels}" if labels else "",
        )
    return fits[0]


def seeds_of(module: Module, node: str) -> list[int]:
    """The instruction of a name, empty if no name is given.  Raises UsageError with instructions of similar names."""
    if not node:
        return []
    row = module.row_of(node.removeprefix("%"))
    if row < 0:
        near = [module.instruction_name(each) for each in search(module, node)[:5]]
        hint = f"did you mean {', '.join(near)}?" if near else "search with --find TEXT"
        raise UsageError(f"{module.name} has no instruction {node!r}", hint=hint)
    return [row]


@dataclass(frozen=True)
class Times:
    """The instructions of a program that ran.

    Attributes:
        rows: int64 of shape (n,), instructions.
        self_ps, runs: int64 of shape (n,), self time and number of runs of each.
    """

    rows: I64
    self_ps: I64
    runs: I64

    def column(self, values: I64, size: int) -> I64:
        """Values of these instructions as a column of all: int64 of shape (size,)."""
        out = np.zeros(size, np.int64)
        out[self.rows] = values
        return out


_NO_TIMES = Times(*(np.zeros(0, np.int64) for _ in range(3)))


def times_of_program(trace: HostTrace, place: int) -> Times:
    """The instructions of a program, by place, that ran."""
    return _program_times(trace).get(place, _NO_TIMES)


def _program_times(trace: HostTrace) -> dict[int, Times]:
    return trace.derived("xla times of instructions", _find_times)


def _find_times(trace: HostTrace) -> dict[int, Times]:
    done, programs = op_time(trace), programs_of(trace)
    self_ps = sum_groups(done.op, done.self_ps, len(done))
    runs = op_runs(trace, done)
    places = programs.find_all(done.programs)
    programs.read(places)
    found: dict[int, Times] = {}
    for program, place in enumerate(places):
        if place >= 0:
            ops = np.flatnonzero(done.program == program)
            rows = find_instruction_rows(programs, done, place, ops)
            known = rows >= 0
            found[place] = Times(rows[known], self_ps[ops[known]], runs[ops[known]])
    return found


def draw_graph(trace: HostTrace, place: int, seeds: list[int], hops: int, most: int = MOST_NODES) -> ProgramGraph:
    """What is at most `hops` from some instructions of a program; from its slowest if there are none."""
    programs, times = programs_of(trace), times_of_program(trace, place)
    module = programs.module(place)
    self_ps = times.column(times.self_ps, len(module))
    path = expensive_path(module, self_ps)
    if not seeds and len(module):
        seeds = [int(np.argmax(self_ps)) if self_ps.any() else int(max(module.roots[module.entry], 0))]
    around = neighbourhood(module, seeds, hops, most)
    return ProgramGraph(
        programs.entries[place].label,
        len(module),
        len(module.computation_names),
        int((module.operands.rows >= 0).sum()),
        int(self_ps.sum()),
        int(self_ps[path].sum()),
        nodes_of(trace, place, around.rows, around.hops, set(path)),
        [(one, other, int(module.shapes.nbytes[one])) for one, other in edges_among(module, around.rows)],
        [(module.instruction_name(row), category_of(module, row), int(self_ps[row])) for row in path[:_MOST_PATH]],
        around.cut,
    )


def nodes_of(trace: HostTrace, place: int, rows: Sequence[int], hops: Sequence[int], path: Set[int]) -> list[GraphNode]:
    """Instructions as nodes.

    Args:
        place: of the program.
        rows, hops: the instructions, and how far each is from the middle.
        path: the instructions on the longest path.
    """
    programs, times = programs_of(trace), times_of_program(trace, place)
    module, costs = programs.module(place), program_costs(programs, place)
    self_ps, runs = (times.column(values, len(module)) for values in (times.self_ps, times.runs))
    sources = module.sources.read(list(rows)) if rows else []
    return [
        GraphNode(
            row, module.instruction_name(row), category_of(module, row), module.shapes.text(row, layout=True), hop,
            int(runs[row]), int(self_ps[row]), row in path,
            next((module.computation_names[each] for each in module.callees.linked(row)), ""),
            source.op_name, source.line, number_or_none(costs.flops[row]), number_or_none(costs.nbytes[row]),
        )
        for row, hop, source in zip(rows, hops, sources, strict=True)
    ]  # fmt: skip


def merge(partials: Sequence[GraphsOfHost]) -> GraphViewerReport:
    """The graphs of all hosts; a program that several have is shown once."""
    found: dict[str, ProgramGraph] = {}
    for graph in (graph for part in partials for graph in part.graphs):
        found.setdefault(graph.program, graph)
    graphs = sorted(found.values(), key=lambda graph: (-graph.self_ps, graph.program))
    warnings = [] if graphs else [_EMPTY]
    warnings += [f"only the nearest {len(graph.nodes)} nodes of {graph.program}" for graph in graphs if graph.cut]
    return GraphViewerReport(
        **header([part.origin for part in partials], warnings[:3]),
        rows=tuple(row for graph in graphs for row in make_rows(FIELDS, graph.nodes, program=graph.program)),
        edges=tuple(
            {"program": graph.program, "from_id": one, "to_id": other, "bytes": size}
            for graph in graphs
            for one, other, size in graph.edges
        ),
        path=tuple(
            {
                "program": graph.program, "place": place, "name": name, "category": category, "self_us": round_us(ps),
                "percent": percent(ps, graph.self_ps),
            }
            for graph in graphs
            for place, (name, category, ps) in enumerate(graph.path, 1)
        ),
        programs=make_rows(
            PROGRAM_FIELDS,
            graphs,
            edges=lambda graph: graph.edge_count,
            path_percent=lambda graph: percent(graph.path_ps, graph.self_ps),
        ),
    )  # fmt: skip
