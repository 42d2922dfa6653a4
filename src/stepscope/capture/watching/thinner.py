"""Keeps the annotations of a program that makes very many of them within the budget of the watch."""

from __future__ import annotations

from collections import deque

from stepscope.capture import ranges
from stepscope.capture.tracers.base import Metadata, Span

_MOST_GAPS = 1000
_ENOUGH, _TOO_LITTLE = 0.0, -0.5  # of what annotations can save up of the budget


class Thinner:
    """Leaves the program's annotations out of the ring for a while where they are so many that the watch would exceed
    its budget.  Marks of steps are always recorded.

    Args:
        annotate: opens a range of the ring.

    Attributes:
        annotate: opens ranges, or leaves out those that mark no step.
    """

    def __init__(self, annotate: ranges.Opener) -> None:
        self._all = self.annotate = annotate
        self._since_ns = 0
        self._left_out: deque[tuple[int, int]] = deque(maxlen=_MOST_GAPS)

    def decide(self, left: float, now_ns: int) -> bool:
        """Whether annotations are recorded changes.

        Args:
            left: of the budget for records, as a part of what can be saved up.
        """
        if self._since_ns and left >= _ENOUGH:
            self._left_out.append((self._since_ns, now_ns))
            self._since_ns, self.annotate = 0, self._all
            return True
        if not self._since_ns and left <= _TOO_LITTLE:
            self._since_ns, self.annotate = now_ns, self._annotate_steps
            return True
        return False

    def left_out_s(self, now_ns: int, span_ns: int) -> float:
        """For how many of the last seconds annotations were left out."""
        gaps = [*self._left_out, *([(self._since_ns, now_ns)] if self._since_ns else [])]
        return sum(max(end - max(start, now_ns - span_ns), 0) for start, end in gaps) / 1e9

    def _annotate_steps(self, name: str, metadata: Metadata) -> Span:
        return self._all(name, metadata) if "step_num" in metadata else ranges.NOTHING
