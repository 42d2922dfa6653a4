"""A graph for other programs: Graphviz DOT, and a program's instructions as text."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.analysis.hlo.module import Module
from stepscope.analysis.xla.graph_viewer_tool import GraphNode, ProgramGraph
from stepscope.analysis.xla.text import instruction_text

_LONGEST_LABEL = 60


def dot(graph: ProgramGraph) -> str:
    """The graph in Graphviz's language: times on the nodes, the longest path in bold."""
    on_path = {node.id for node in graph.nodes if node.on_path}
    lines = [f"digraph {_quoted(graph.program)} {{", '  node [shape=box, fontname="sans-serif", fontsize=10];']
    lines += [f"  n{node.id} [label={_label(node)}{_look(node, graph.self_ps)}];" for node in graph.nodes]
    for one, other, _ in graph.edges:
        bold = " [penwidth=2]" if one in on_path and other in on_path else ""
        lines.append(f"  n{one} -> n{other}{bold};")
    return "\n".join([*lines, "}"]) + "\n"


def _label(node: GraphNode) -> str:
    parts = [node.name, node.category, node.shape[:_LONGEST_LABEL]]
    if node.self_ps:
        parts.append(f"{node.self_ps / 1e6:,.1f} us")
    return _quoted("\n".join(parts))


def _look(node: GraphNode, whole_ps: int) -> str:
    """Nodes that take a tenth of the program's time or more are filled."""
    filled = ', style=filled, fillcolor="#f4c7b5"' if node.self_ps * 10 >= whole_ps > 0 else ""
    return filled + (", penwidth=2" if node.on_path else "")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def program_text(module: Module) -> Iterator[str]:
    """A program's computations and instructions as XLA writes them, a line each."""
    yield f"HloModule {module.name}\n"
    for computation, name in enumerate(module.computation_names):
        entry = "ENTRY " if computation == module.entry else ""
        yield f"\n{entry}%{name} {{\n"
        for row in module.rows_of(computation):
            root = "ROOT " if row == module.roots[computation] else ""
            yield f"  {root}{instruction_text(module, row)}\n"
        yield "}\n"
