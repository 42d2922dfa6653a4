"""What the model or its set-up could leave out: biases, layers that nothing uses, a limit of threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Actions, Finding, Rule
from stepscope.report import amount
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.traits import InputTrait, LayerTrait

_BUSY = 90.0  # percent of all cores: other processes need them, too
_MOST_NAMED = 3  # shown

_NO_BIAS: Actions = {
    "tensorflow": ("Conv2D(..., use_bias=False) for each convolution that a BatchNormalization follows",),
    "pytorch": ("nn.Conv2d(..., bias=False) for each convolution that a BatchNorm2d follows",),
    "jax": ("nn.Conv(..., use_bias=False) for each convolution that a BatchNorm follows",),
    "": ("leave the bias out of each convolution that a batch normalization follows",),
}
_THREADS: Actions = {
    "tensorflow": (
        "leave out tf.config.threading.set_intra_op_parallelism_threads, or pass it the number of cores",
        "for ops that do not depend on each other: tf.config.threading.set_inter_op_parallelism_threads",
    ),
    "pytorch": ("leave out torch.set_num_threads, and unset OMP_NUM_THREADS, or give both the number of cores",),
    "": ("let one op use as many threads as there are cores",),
}
_UNUSED: Actions = {
    "": (
        "connect the layer's output to the loss, or delete the layer and its weights",
        "if it is meant for inference only, call it there",
    ),
}


def share_of_ops(
    context: Context, where: str, trait: LayerTrait | InputTrait
) -> tuple[Sequence[Mapping[str, Any]], float]:
    """The ops of a side with a trait, as rows of `op-stats`, and their percent of the time of all ops there."""
    report = context.read("op-stats")
    here = [row for row in (report.rows if report else ()) if row["side"] == where]
    chosen = [row for row in here if name_has(f"{row['name']}:{row['type']}", trait)]
    whole = sum(amount(row["total_self_us"]) for row in here)
    return chosen, 100.0 * sum(amount(row["total_self_us"]) for row in chosen) / whole if whole else 0.0


def op_rows(rows: Sequence[Mapping[str, Any]]) -> tuple[Row, ...]:
    """The first rows of `op-stats` as evidence."""
    return tuple(Row("op-stats", str(row["name"]), round(amount(row["total_self_us"]) / 1000, 3)) for row in rows[:3])


def _find_bias(context: Context) -> Finding | None:
    """Biases right before batch normalization, which subtracts the mean and so removes every bias."""
    where = "device" if context.has_device else "host"
    biases, percent = share_of_ops(context, where, LayerTrait.ADDS_BIAS)
    norms, _ = share_of_ops(context, where, LayerTrait.NORMALIZES_BATCH)
    if not norms:
        return None
    return Finding(
        percent=percent,
        evidence=f"adding biases takes {percent:.1f} % of the time of all ops on the {where}, in a model with"
        f" {len(norms)} batch normalizations: a bias right before one has no effect",
        unknown="it does not show which of the biases a batch normalization follows",
        rows=op_rows(biases),
    )


def _find_few_threads(context: Context) -> Finding | None:
    """Fewer threads for ops than the cores that the program may use, while the host computes."""
    cores, threads = context.cores, context.pace.op_threads.threads
    if context.has_device or not cores or not threads:
        return None
    computing, busy = (
        context.percent(context.work.per_step_ms(context.work.compute_ps)),
        context.counter("CPU machine %"),
    )
    if threads >= cores or busy is None or busy >= _BUSY:
        return None
    return Finding(
        percent=computing,
        evidence=f"ops compute for {min(computing, 100.0):.0f} % of each step with at most {threads} of {cores} cores"
        f" each, and the machine's cores are busy {busy:.0f} % of the time",
        unknown="no op in it runs on more threads",
    )


def _find_unused_layers(context: Context) -> Finding | None:
    """Layers whose output nothing uses: they learn nothing, and the compiler removes them or they cost time."""
    graphs = [graph for host in context.hosts for graph in host.graphs if graph.unused_layers]
    if not graphs:
        return None
    graph = max(graphs, key=lambda each: (len(each.unused_layers), each.nodes))
    layers = list(graph.unused_layers)[:_MOST_NAMED]
    return Finding(
        percent=100.0,
        evidence=f"no result of {graph.name} depends on {', '.join(layers)}"
        f" ({graph.unused:,} of its {graph.nodes:,} nodes are unused): TensorFlow leaves them out, and they learn"
        " nothing",
        unknown="what is left out takes no time in it",
        rows=tuple(Row("op-stats", layer, 0.0) for layer in layers),
    )


RULES = (
    Rule(
        "compute.bias-before-norm", 2.0, kind="redundant_compute", find=_find_bias, actions=_NO_BIAS, tool="op-stats",
        title="Leave out biases that batch normalization removes", confidence=0.5,
    ),
    Rule(
        "graph.unused-layers", 0.0, kind="redundant_compute", title="Use the output of these layers, or remove them",
        find=_find_unused_layers, actions=_UNUSED, tool="op-stats", confidence=0.9, is_practice=True,
    ),
    Rule(
        "threads.few", 50.0, kind="small_batch", title="Let each op use all cores", find=_find_few_threads,
        actions=_THREADS, tool="system", confidence=0.5, is_practice=True,
    ),
)  # fmt: skip
