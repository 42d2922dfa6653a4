"""What questions may use; known without the engine."""

from __future__ import annotations

from stepscope.records import dataclass

AT_ONCE = 4
"""Questions that are answered at the same time, each in a process of its own."""

EACH = 2
"""Those of one person, so that two people have to do it together to keep a third one waiting."""
OWN_MEMORY_BYTES = 4 << 30
"""What joins and sorts of a question may use on its asker's own machine by default."""


@dataclass(frozen=True)
class Limits:
    """What a question may use.

    Attributes:
        memory_bytes: for joins and sorts; the columns of the traces do not count.
        seconds: how long the process may work; the time of this process does not count.
        rows: the most rows of the answer; None for all.
        answer_bytes: the largest answer; None for any.
    """

    memory_bytes: int = 2 << 30
    seconds: float = 30.0
    rows: int | None = 10_000
    answer_bytes: int | None = 32 << 20
