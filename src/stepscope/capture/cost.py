"""What a capture costs: the length of the steps inside it, compared with the steps before it.

Steps are those that the program marks (`step`, or `Trace` with a `step_num`), or those that a schedule, a callback or
`stepscope run` counts.  Medians are compared, so that a step that writes a checkpoint does not matter.  The first steps
of a program are left out because they compile.
"""

from __future__ import annotations

from collections import deque

PLANE = "/stepscope:capture"
SETTING = "setting:"  # before the name of an environment variable that the program runs with
SETTINGS = ("TF_GPU_THREAD_MODE", "TF_GPU_THREAD_COUNT", "TF_FORCE_GPU_ALLOW_GROWTH")
PAUSE = "pause_ms"  # how long the program stood still while the framework's profiler collected its events
RECORDED = "recorded"  # what was recorded, in words
PYTHON = "python_calls_ms"  # what recording Python calls added to the thread with most of them
AWAITED = "steps_awaited_s"  # of a time window: how long the steps of a loop were awaited before it, and none came
LEAST_CALL = "python_min_us"  # shorter Python calls were left out
FEWEST = 3
_MOST_BEFORE = 20
_MOST_INSIDE = 1000
_COMPILING = 2


class StepLengths:
    """The lengths of the steps of this process, in ns, before and inside its latest capture.

    Attributes:
        compiling: how many steps have been left out because they compile.
    """

    def __init__(self) -> None:
        self.compiling = 0
        self._before: deque[int] = deque(maxlen=_MOST_BEFORE)
        self._inside: deque[int] = deque(maxlen=_MOST_INSIDE)

    def note(self, duration_ns: int, recording: bool) -> None:
        """Notes the length of a step.  `recording`: whether a capture was running."""
        if not recording and self.compiling < _COMPILING:
            self.compiling += 1
            return
        (self._inside if recording else self._before).append(duration_ns)

    def note_unknown(self) -> None:
        """A step has ended whose start nobody saw: the first of a loop, which compiles."""
        self.compiling = min(self.compiling + 1, _COMPILING)

    def forget(self) -> None:
        """The steps until now were not those of the loop."""
        self.compiling = 0
        self._before.clear()
        self._inside.clear()

    def start_capture(self) -> None:
        """A capture starts: the steps that ended since the last one are those before it."""
        self._inside.clear()

    def facts(self) -> dict[str, int | float | str | bytes]:
        """The stats to keep in the profile: the number of steps, and the median and quartiles of their length in ms.

        The steps before this capture are then forgotten, since the job may be in another state at the next one.
        """
        stats: dict[str, int | float | str | bytes] = {}
        for name, steps in (("before", list(self._before)), ("inside", list(self._inside))):
            stats[f"steps_{name}"] = len(steps)
            if len(steps) >= FEWEST:
                import statistics

                low, middle, high = (quartile / 1e6 for quartile in statistics.quantiles(steps, n=4))
                stats |= {f"step_ms_{name}": middle, f"step_ms_{name}_low": low, f"step_ms_{name}_high": high}
        self._before.clear()
        self._inside.clear()
        return stats


LENGTHS = StepLengths()
