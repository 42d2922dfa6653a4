"""The account held against what is counted without a model: a device that works is not waited for by nobody."""

from __future__ import annotations

from stepscope.analysis.account.account import account_without_culprits
from stepscope.model import HostTrace
from stepscope.records import dataclass

# Percent of the step from which on the account and the counted busy time of devices contradict each other: the error
# of a replay that still foretells something, see `model.MOST_ERROR_PERCENT`.
CONTRADICTS = 10.0


@dataclass(frozen=True)
class Contradiction:
    """What an account says against what is counted, of the step that it is of.

    Attributes:
        ps: for how long the account says that nothing computes while a device works.
        step_ps: how long that step is.
    """

    ps: int
    step_ps: int

    @property
    def percent(self) -> float:
        """The share of the step."""
        return 100.0 * self.ps / self.step_ps if self.step_ps else 0.0


def contradiction_of(trace: HostTrace) -> Contradiction | None:
    """Where the account of a host's step contradicts the busy time of its devices; None without devices or account."""
    account = account_without_culprits(trace)
    if account is None or not account.step_ps or account.idle_ps is None:
        return None
    return Contradiction(account.contradicted_ps, account.step_ps)
