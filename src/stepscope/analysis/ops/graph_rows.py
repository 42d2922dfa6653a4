"""The graphs that the program traced, as rows of `op-stats`: how many nodes of which types, and which nobody uses."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.trace.program_facts import TracedGraph
from stepscope.report import Field, Role, Table, make_rows

_MOST_TYPES = 5

GRAPH_FIELDS: tuple[Field, ...] = (
    Field("graph", "text", "the function that TensorFlow traced (`tf.function`)", "str", role=Role.TERM),
    Field("nodes", "count", "nodes of its graph before TensorFlow optimizes it", "int"),
    Field("op_types", "text", "the most frequent types of nodes, with their numbers", "str", role=Role.TEXT),
    Field("unused_nodes", "count", "nodes on which no result and no effect of the function depends", "int"),
    Field(
        "unused_layers",
        "text",
        "scopes of unused nodes that multiply or convolve: layers whose output nothing uses",
        "str",
        role=Role.TERM,
    ),
)


def graph_rows(graphs: Sequence[TracedGraph]) -> Table:
    """A row for each graph, the largest first; of those of one name on several hosts the largest."""
    largest: dict[str, TracedGraph] = {}
    for graph in sorted(graphs, key=lambda each: (-each.nodes, each.name)):
        largest.setdefault(graph.name, graph)
    return make_rows(
        GRAPH_FIELDS,
        [*largest.values()],
        graph=[*largest],
        op_types=_list_types,
        unused_nodes=lambda graph: graph.unused,
        unused_layers=lambda graph: ", ".join(graph.unused_layers),
    )


def _list_types(graph: TracedGraph) -> str:
    types = sorted(graph.types.items(), key=lambda item: (-item[1], item[0]))[:_MOST_TYPES]
    return ", ".join(f"{count} {name}" for name, count in types)
