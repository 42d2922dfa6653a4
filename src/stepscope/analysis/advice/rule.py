"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice
from stepscope.records import dataclass


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        id: stable name; the advice's `id` begins with it.
        threshold_percent: the share of the step from which it speaks; `evaluate` reads it from here.
        evaluate: the rule itself: what it says of a run, None if it has nothing to say.
        yields_to: classes of advice that explain the same time better: where one of them predicts at least half as
            much, this rule's advice is left out.
    """

    id: str
    threshold_percent: float
    evaluate: Callable[[Context, float], Advice | None]
    yields_to: tuple[str, ...] = ()

    def __call__(self, context: Context) -> Advice | None:
        """What the rule says of a run."""
        return self.evaluate(context, self.threshold_percent)
