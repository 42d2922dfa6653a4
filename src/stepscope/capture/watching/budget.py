"""What a watch has cost, measured on the steps of the job, and when it may spend more."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.capture.watching import own_cost

_FIRST_GUESS_S = 0.25  # what a window costs, before one was measured


class Budget:
    """Measures what the windows of the framework's profiler cost, and spreads them so that they keep the budget.

    The cost of a window is what its steps, and those until its files are written, took longer than usual, together with
    the time that starting and ending it took.

    Args:
        percent: how much longer the job may take.
        clock: seconds.

    Attributes:
        spent_s: what all windows have cost.
        windows: how many have been measured.
    """

    def __init__(self, percent: float, clock: Callable[[], float]) -> None:
        self._share = (1 - own_cost.SHARE) * percent / 100
        self._clock = clock
        self._since = clock()
        self.spent_s = 0.0
        self.windows = 0

    @property
    def elapsed_s(self) -> float:
        """The seconds since the watch started."""
        return self._clock() - self._since

    @property
    def percent(self) -> float:
        """What the windows have cost of the time since the watch started."""
        return 100 * self.spent_s / max(self.elapsed_s, 1e-9)

    def note(self, cost_s: float) -> None:
        """A window has been measured."""
        self.spent_s += max(cost_s, 0.0)
        self.windows += 1

    def can_afford_window(self) -> bool:
        """Whether one more window of the usual cost keeps the budget."""
        return self._share > 0 and self.spent_s + self._expected_s() <= self._share * self.elapsed_s

    def _expected_s(self) -> float:
        return self.spent_s / self.windows if self.windows else _FIRST_GUESS_S
