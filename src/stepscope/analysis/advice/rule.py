"""The type of a rule."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice
from stepscope.records import dataclass


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        id: stable name; the advice's `id` starts with it.
        threshold_percent: the share of the step from which the rule applies; passed to `evaluate`.
        evaluate: the rule itself: returns its advice on a run, or None.
        yields_to: classes of advice that explain the same time better.  If one of them predicts at least half the gain,
            this rule's advice is dropped.
        is_practice: the advice is good practice and names nothing that limits the run: a run with such advice alone is
            said to have no bottleneck.
    """

    id: str
    threshold_percent: float
    evaluate: Callable[[Context, float], Advice | None]
    yields_to: tuple[str, ...] = ()
    is_practice: bool = False

    def __call__(self, context: Context) -> Advice | None:
        """The rule's advice on a run; None if it does not apply."""
        return self.evaluate(context, self.threshold_percent)
