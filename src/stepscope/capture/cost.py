"""What a capture costs: how long the steps inside it are, against those before it.

Steps are those that the program marks (`step`, or `Trace` with a `step_num`), or those that a schedule, a callback or
`stepscope run` counts; each is as long as its mark is or would be.  The median is compared, so that a step that wrote a
checkpoint does not count, and the first steps of a program are left out, for they compile.
"""

from __future__ import annotations

import statistics
from collections import deque

PLANE = "/stepscope:capture"
FEWEST = 3
_MOST_BEFORE = 20
_MOST_INSIDE = 1000
_COMPILING = 2

_compiled = 0  # steps that have been left out
_before: deque[int] = deque(maxlen=_MOST_BEFORE)
_inside: deque[int] = deque(maxlen=_MOST_INSIDE)


def note(duration_ns: int, recording: bool) -> None:
    """Takes a step that has ended."""
    global _compiled
    if not recording and _compiled < _COMPILING:
        _compiled += 1
        return
    (_inside if recording else _before).append(duration_ns)


def begin() -> None:
    """A capture begins: the steps that ended since the last one are those before it."""
    _inside.clear()


def facts() -> dict[str, int | float | str | bytes]:
    """What to keep in the profile: how many steps there were, their median in ms, and its quartiles for their spread.

    The steps before this capture are forgotten, since the next one may find the job in another state.
    """
    told: dict[str, int | float | str | bytes] = {}
    for name, steps in (("before", list(_before)), ("inside", list(_inside))):
        told[f"steps_{name}"] = len(steps)
        if len(steps) >= FEWEST:
            low, middle, high = (quartile / 1e6 for quartile in statistics.quantiles(steps, n=4))
            told |= {f"step_ms_{name}": middle, f"step_ms_{name}_low": low, f"step_ms_{name}_high": high}
    _before.clear()
    _inside.clear()
    return told
