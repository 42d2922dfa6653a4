"""A bias is added right before batch normalization, which subtracts the mean and so removes every bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.report import amount
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.traits import LayerTrait

_ACTIONS: Actions = {
    "tensorflow": ("Conv2D(..., use_bias=False) for each convolution that a BatchNormalization follows",),
    "pytorch": ("nn.Conv2d(..., bias=False) for each convolution that a BatchNorm2d follows",),
    "jax": ("nn.Conv(..., use_bias=False) for each convolution that a BatchNorm follows",),
    "": ("leave the bias out of each convolution that a batch normalization follows",),
}


def _evaluate(context: Context, threshold: float) -> Advice | None:
    report = context.read("op-stats")
    rows: Sequence[Mapping[str, Any]] = report.rows if report else ()
    where = "device" if context.has_device else "host"
    here = [row for row in rows if row["where"] == where]
    biases = _with_trait(here, LayerTrait.ADDS_BIAS)
    norms = _with_trait(here, LayerTrait.NORMALIZES_BATCH)
    spent = sum(amount(row["total_self_us"]) for row in biases)
    whole = sum(amount(row["total_self_us"]) for row in here)
    if not norms or not whole or 100.0 * spent < threshold * whole:
        return None
    return Advice(
        id="compute.bias-before-norm",
        kind="redundant_compute",
        title="Leave out biases that batch normalization removes",
        evidence=f"adding biases takes {100.0 * spent / whole:.1f} % of the time of all ops on the {where}, in a model"
        f" with {len(norms)} batch normalizations: a bias right before one has no effect",
        predicted_speedup=None,
        actions=actions_for(context.framework, _ACTIONS),
        tool="op-stats",
        confidence=0.5,
        rows=tuple(
            Row("op-stats", str(row["name"]), round(amount(row["total_self_us"]) / 1000, 3)) for row in biases[:3]
        ),
    )


def _with_trait(rows: Sequence[Mapping[str, Any]], trait: LayerTrait) -> list[Mapping[str, Any]]:
    return [row for row in rows if name_has(f"{row['name']}:{row['type']}", trait)]


RULE = Rule(id="compute.bias-before-norm", threshold_percent=2.0, evaluate=_evaluate)
