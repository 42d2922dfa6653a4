"""What a capture costs: the length of the steps inside it, compared with the steps before it.

Steps are those that the program marks (`step`, or `Trace` with a `step_num`), or those that a schedule, a callback or
`stepscope run` counts.  Medians are compared, so that a step that writes a checkpoint does not matter.  The first steps
of a program are left out because they compile.
"""

from __future__ import annotations

import statistics
from collections import deque

PLANE = "/stepscope:capture"
FEWEST = 3
_MOST_BEFORE = 20
_MOST_INSIDE = 1000
_COMPILING = 2

_compiled = 0  # how many steps have been left out
_before: deque[int] = deque(maxlen=_MOST_BEFORE)
_inside: deque[int] = deque(maxlen=_MOST_INSIDE)


def note(duration_ns: int, recording: bool) -> None:
    """Notes the length of a step.  `recording`: whether a capture was running."""
    global _compiled
    if not recording and _compiled < _COMPILING:
        _compiled += 1
        return
    (_inside if recording else _before).append(duration_ns)


def begin() -> None:
    """A capture starts: the steps that ended since the last one are those before it."""
    _inside.clear()


def facts() -> dict[str, int | float | str | bytes]:
    """The stats to keep in the profile: the number of steps, and the median and quartiles of their length in ms.

    The steps before this capture are then forgotten, since the job may be in another state at the next one.
    """
    stats: dict[str, int | float | str | bytes] = {}
    for name, steps in (("before", list(_before)), ("inside", list(_inside))):
        stats[f"steps_{name}"] = len(steps)
        if len(steps) >= FEWEST:
            low, middle, high = (quartile / 1e6 for quartile in statistics.quantiles(steps, n=4))
            stats |= {f"step_ms_{name}": middle, f"step_ms_{name}_low": low, f"step_ms_{name}_high": high}
    _before.clear()
    _inside.clear()
    return stats
