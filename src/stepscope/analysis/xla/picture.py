"""What the page draws of a program's graph: the expensive path, or what is around an instruction, with open fusions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np

from stepscope.analysis.hlo.module import Module
from stepscope.analysis.hlo.programs import programs_of
from stepscope.analysis.xla.graph import edges_among, expensive_path, search
from stepscope.analysis.xla.graph_viewer_tool import (
    GraphNode,
    draw_graph,
    find_program,
    nodes_of,
    seeds_of,
    times_of_program,
)
from stepscope.model import HostTrace
from stepscope.model.arrays import I64
from stepscope.records import dataclass

MOST_ON_PATH = 100
MOST_INSIDE = 150  # instructions of an open fusion
MOST_FOUND = 100


@dataclass(frozen=True)
class Edge:
    """A result that is taken; `skipped` instructions between the two are not drawn."""

    start: int
    end: int
    bytes: int
    skipped: int = 0


@dataclass(frozen=True)
class GraphPart:
    """Nodes and the edges between them; `cut` if there are more than are listed."""

    nodes: list[GraphNode]
    edges: list[Edge]
    cut: bool = False


@dataclass(frozen=True)
class ProgramSize:
    """A program as a list shows it: its label, the bytes of its serialized form, and the time of its ops."""

    label: str
    bytes: int
    self_ps: int


@dataclass(frozen=True)
class Picture:
    """A part of a program's graph.

    Attributes:
        program: its label.
        instructions: how many it holds.
        self_ps, path_ps: time of its ops, and of those on its longest path.
        centre: the instruction in the middle; -1 for the longest path.
        part: what is drawn.
        inside: what is inside the open nodes, by id.
    """

    program: str
    instructions: int
    self_ps: int
    path_ps: int
    centre: int
    part: GraphPart
    inside: dict[int, GraphPart]


def list_programs(trace: HostTrace) -> list[ProgramSize]:
    """All programs of a trace, those that took most time first; decodes only those that ran."""
    found = [
        ProgramSize(entry.label, entry.stop - entry.start, int(times_of_program(trace, place).self_ps.sum()))
        for place, entry in enumerate(programs_of(trace).entries)
    ]
    return sorted(found, key=lambda program: (-program.self_ps, program.label))


def draw_path(trace: HostTrace, program: str, opened: Collection[int] = ()) -> Picture:
    """The expensive path of a program: its instructions that take time, at most the MOST_ON_PATH longest.

    Args:
        program: label or module of a program; the one that took most time if empty.
        opened: ids of the nodes whose inside is wanted.

    Raises:
        UsageError: there is no such program.
    """
    place = find_program(trace, program)
    module = programs_of(trace).module(place)
    times = times_of_program(trace, place)
    self_ps = times.column(times.self_ps, len(module))
    path = expensive_path(module, self_ps)
    shown = _take_longest(path, self_ps)
    at = [path.index(row) for row in shown]
    edges = [
        Edge(path[one], path[other], int(module.shapes.nbytes[path[other - 1]]), other - one - 1)
        for one, other in pairwise(at)
    ]
    nodes = nodes_of(trace, place, shown, [0] * len(shown), set(path))
    part, path_ps = GraphPart(nodes, edges, len(shown) < len(path)), int(self_ps[path].sum())
    label, inside = programs_of(trace).entries[place].label, _insides(trace, place, opened)
    return Picture(label, len(module), int(self_ps.sum()), path_ps, -1, part, inside)


def draw_around(trace: HostTrace, program: str, node: str, hops: int, opened: Collection[int] = ()) -> Picture:
    """What is at most `hops` from an instruction; the slowest if `node` is empty.  Raises UsageError."""
    place = find_program(trace, program)
    seeds = seeds_of(programs_of(trace).module(place), node)
    found = draw_graph(trace, place, seeds, hops)
    part = GraphPart(found.nodes, [Edge(*edge) for edge in found.edges], found.cut)
    centre = found.nodes[0].id if found.nodes else -1  # the nearest come first
    return Picture(
        found.program, found.instructions, found.self_ps, found.path_ps, centre, part, _insides(trace, place, opened)
    )


def find_nodes(trace: HostTrace, program: str, text: str) -> list[GraphNode]:
    """The instructions that hold a text in name, opcode, target or framework op.  Raises UsageError."""
    place = find_program(trace, program)
    rows = search(programs_of(trace).module(place), text, MOST_FOUND)
    return nodes_of(trace, place, rows, [0] * len(rows), set())


def _take_longest(path: Sequence[int], self_ps: I64) -> list[int]:
    """The instructions of a path that take most time, in its order."""
    times = self_ps[list(path)]
    kept = np.sort(np.argsort(-times, kind="stable")[:MOST_ON_PATH])
    return [path[at] for at in kept.tolist() if times[at] > 0]


def _edges(module: Module, rows: Sequence[int]) -> list[Edge]:
    return [Edge(one, other, int(module.shapes.nbytes[one])) for one, other in edges_among(module, rows)]


def _insides(trace: HostTrace, place: int, opened: Collection[int]) -> dict[int, GraphPart]:
    """What is in each of some instructions that call a computation, by id."""
    module = programs_of(trace).module(place)
    return {row: _inside(trace, place, row) for row in opened if 0 <= row < len(module) and module.callees.linked(row)}


def _inside(trace: HostTrace, place: int, row: int) -> GraphPart:
    """What is in the computations that an instruction calls: of a fusion its body."""
    module = programs_of(trace).module(place)
    rows = module.rows_called(row)
    shown = rows[:MOST_INSIDE]
    return GraphPart(
        nodes_of(trace, place, shown, [0] * len(shown), set()), _edges(module, shown), len(shown) < len(rows)
    )
