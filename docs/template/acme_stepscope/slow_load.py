"""A rule of advice: loading takes too large a part of the step."""

from __future__ import annotations

from stepscope.analysis.advice import Advice, Context, Rule
from stepscope.analysis.advice.rule import predict_without


def evaluate(context: Context, threshold: float) -> Advice | None:
    """Advises Acme's cache where steps wait for their input."""
    percent = context.percent(context.cause_ms("input"))
    if percent < threshold:
        return None
    waiting_ms = context.step_ms * percent / 100
    return predict_without(context, waiting_ms, "loading").advice(
        rule="acme.slow-load",
        kind="input_preprocessing",
        title="Turn on Acme's cache",
        evidence=f"{percent:.0f} % of each step is spent waiting for input",
        actions=("acme.configure(cache=True)",),
        tool="input-pipeline",
        confidence=0.9,
    )


RULE = Rule(id="acme.slow-load", threshold_percent=5.0, evaluate=evaluate)
