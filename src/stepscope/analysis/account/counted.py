"""The account held against what is counted without a model: a device that works is not waited for by nobody."""

from __future__ import annotations

from stepscope.analysis.account.account import account_without_culprits
from stepscope.analysis.account.causes import Cause
from stepscope.model import HostTrace
from stepscope.records import dataclass

# Causes that say that nothing computes: the host waits for an idle device, or a device has nothing to do.
_IDLE = tuple(cause.name.lower() for cause in (Cause.SYNC, Cause.DEVICE_GAP, Cause.UNKNOWN))


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
    if account is None or not account.step_ps or any(row.idle_ps is None for row in account.rows):
        return None
    wrong = sum(row.ps - (row.idle_ps or 0) for row in account.rows if row.cause in _IDLE)
    return Contradiction(wrong, account.step_ps)
