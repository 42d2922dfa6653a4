"""From all that the rules say to what is said first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.registry import rules as all_rules
from stepscope.analysis.advice.rule import Advice, Row, Rule

LEAST_PERCENT = 3.0  # what takes less of a step is no bottleneck
_EXPLAINS = 0.5  # of the gain that a better explanation has to predict


@dataclass(frozen=True)
class Advised:
    """Advice, largest predicted gain first, and warnings about rules that failed."""

    items: tuple[Advice, ...]
    warnings: tuple[str, ...]


def advise(context: Context, rules: Iterable[Rule] | None = None) -> Advised:
    """All advice that applies.  A rule that raises is named in a warning, and the others still answer."""
    chosen, warnings = (tuple(rules), ()) if rules is not None else all_rules()
    said: list[tuple[Rule, Advice]] = []
    failed = []
    for rule in chosen:
        try:
            advice = rule(context)
        except Exception as error:  # a third party's rule may raise anything
            failed.append(f"the rule {rule.id!r} failed and was left out: {type(error).__name__}: {error}")
            continue
        if advice is not None and _matters(advice):
            said.append((rule, advice))
    kept = [advice for rule, advice in said if not _is_explained(rule, advice, said)]
    kept.sort(key=lambda advice: (-_gain_ms(advice), -advice.confidence))
    if not kept and context.verdict != "unknown":
        kept = [_nothing(context)]
    return Advised(tuple(kept), (*warnings, *failed))


def _gain_ms(advice: Advice) -> float:
    if advice.step_time_ms is None or advice.predicted_step_time_ms is None:
        return 0.0
    return advice.step_time_ms - advice.predicted_step_time_ms


def _matters(advice: Advice) -> bool:
    """Whether the gain is large enough; advice of unknown gain has its own threshold."""
    if advice.step_time_ms is None or advice.predicted_step_time_ms is None:
        return True
    return 100.0 * _gain_ms(advice) >= LEAST_PERCENT * advice.step_time_ms


def _is_explained(rule: Rule, advice: Advice, said: list[tuple[Rule, Advice]]) -> bool:
    return any(
        other is not rule and found.kind in rule.yields_to and _gain_ms(found) >= _EXPLAINS * _gain_ms(advice)
        for other, found in said
    )


def _nothing(context: Context) -> Advice:
    """What bounds a run in which nothing stands out."""
    top = next((op for op in context.top_ops if op["self_percent"] is not None), None)
    largest = f"; the largest op is {top['name']} with {top['self_percent']:.1f} % of the op time" if top else ""
    rows = (Row("op-stats", str(top["name"]), 0.0),) if top else ()
    return Advice(
        id="none",
        kind="none",
        title="Nothing stands out",
        evidence=f"{context.verdict_text}{largest}",
        predicted_speedup=None,
        actions=("make the computation itself cheaper, or use more or faster hardware",),
        tool="op-stats",
        confidence=0.8,
        step_time_ms=round(context.period_ms, 3),
        reasoning="no part of the step that could be removed exceeds its threshold",
        rows=rows,
    )
