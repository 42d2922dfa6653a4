"""A layer is computed, and nothing uses its output: it learns nothing, and the compiler removes it or it costs time."""

from __future__ import annotations

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.rule import Rule

_MOST_NAMED = 3


def _evaluate(context: Context, threshold: float) -> Advice | None:
    graphs = [graph for host in context.hosts for graph in host.graphs if graph.unused_layers]
    if not graphs:
        return None
    graph = max(graphs, key=lambda each: (len(each.unused_layers), each.nodes))
    layers = list(graph.unused_layers)
    return Advice(
        id="graph.unused-layers",
        kind="redundant_compute",
        title="Use the output of these layers, or remove them",
        evidence=f"no result of {graph.name} depends on {', '.join(layers[:_MOST_NAMED])}"
        f" ({graph.unused:,} of its {graph.nodes:,} nodes are unused): TensorFlow leaves them out, and they learn"
        " nothing",
        predicted_speedup=None,
        actions=(
            "connect the layer's output to the loss, or delete the layer and its weights",
            "if it is meant for inference only, call it there",
        ),
        tool="op-stats",
        confidence=0.9,
        rows=tuple(Row("op-stats", layer, 0.0) for layer in layers[:_MOST_NAMED]),
    )


RULE = Rule(id="graph.unused-layers", threshold_percent=0.0, evaluate=_evaluate, is_practice=True)
