"""A profile restricted to some of its steps: `--steps 3-9` on the command line, the brush on the page.

`--steps all` keeps every step, and drops what ran before the first and after the last.

Events of the chosen steps are kept, wherever they lie in time.  Events of no step are clipped to the time from the
start of the first chosen step to the end of the last.  Events of other steps are dropped, so that results of single
steps add up to those of a range.  The steps and their breakdown are those of the whole trace: inferred steps could not
be inferred again from a part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.steps.breakdown import breakdown
from stepscope.analysis.steps.find_steps import is_usual, steps_of
from stepscope.analysis.steps.session_steps import StepsOfHost, align, breakdown_of
from stepscope.errors import UsageError
from stepscope.model import HostTrace, take_events
from stepscope.model.arrays import I32, I64
from stepscope.records import dataclass

_ALL = "all"
_LARGEST = 10**18
_RANGE = re.compile(r"\s*(?P<first>\d{1,18})\s*(?:-\s*(?P<last>\d{1,18})\s*)?")


@dataclass(frozen=True)
class StepRange:
    """Step numbers from `first` to `last`, both included."""

    first: int
    last: int

    @staticmethod
    def coerce(steps: object) -> StepRange:
        """Converts a range, a text for `parse`, or one step number.  Raises UsageError."""
        return steps if isinstance(steps, StepRange) else StepRange.parse(str(steps))

    @staticmethod
    def parse(text: str) -> StepRange:
        """Reads `3-9`, `7` or `all`.  Raises UsageError."""
        if text.strip().lower() == _ALL:
            return ALL_STEPS
        found = _RANGE.fullmatch(text)
        first = int(found["first"]) if found else 0
        last = int(found["last"] or first) if found else -1
        if last < first:
            raise UsageError(
                f"{text!r} is not a range of steps", hint="write FIRST-LAST, such as 3-9, one number, or all"
            )
        return StepRange(first, last)

    @property
    def is_all(self) -> bool:
        """True for all steps of the capture, whatever their numbers."""
        return self == ALL_STEPS

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last

    def __str__(self) -> str:
        if self.is_all:
            return "the steps"
        return f"step {self.first}" if self.first == self.last else f"steps {self.first} to {self.last}"


ALL_STEPS = StepRange(0, _LARGEST)


def choose_steps(parts: Sequence[StepsOfHost], wanted: StepRange) -> dict[str, tuple[int, ...]]:
    """The rows of the wanted steps on each participating host.

    Hosts are aligned as in the overview, and a step has the number that the overview shows: that of its slowest host.

    Raises:
        UsageError: there are no such steps; the hint lists those that exist.
    """
    aligned = align(parts)
    slowest = aligned.slowest
    taken = [at for at, row in enumerate(slowest) if row.number in wanted]
    if not taken:
        numbers = [row.number for row in slowest]
        there_are = f"the steps are {min(numbers)} to {max(numbers)}" if numbers else "no steps were found"
        verb = "is" if wanted.first == wanted.last else "are"
        raise UsageError(f"there {verb} no {wanted}", hint=there_are)
    rows_of = {part.host: {id(row): at for at, row in enumerate(part.rows)} for part in parts}
    return {
        host: tuple(sorted(rows_of[host][id(aligned.steps[at][place])] for at in taken))
        for place, host in enumerate(aligned.hosts)
    }


def take_steps(trace: HostTrace, rows: Sequence[int]) -> HostTrace:
    """The part of a trace that belongs to some of its steps.

    Args:
        trace: the whole trace.
        rows: the steps, as rows of `steps_of(trace)`, ascending; at least one.
    """
    steps, chosen = steps_of(trace), np.asarray(rows, np.int64)
    begin, end = int(steps.start_ps[chosen].min()), int(steps.until_ps[chosen].max())
    place = np.full(len(steps.number) + 1, -1, np.int32)  # the last one for label -1
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    start = trace.events.start_ps
    stop = start + trace.events.duration_ps
    own = place[steps.label] >= 0
    beside = (steps.label < 0) & (start < end) & (stop >= begin)
    kept = np.flatnonzero(own | beside)
    low = np.where(own[kept], start[kept], np.maximum(start[kept], begin))
    high = np.where(own[kept], stop[kept], np.minimum(stop[kept], end))
    part, taken = take_events(trace, kept, low, np.maximum(high - low, 0))
    backlog = np.flatnonzero(np.isin(taken, steps.backlog)) if chosen[0] == 0 else np.empty(0, np.int64)
    _copy_steps(trace, part, chosen, place[steps.label[taken]], backlog)
    return part


def _copy_steps(trace: HostTrace, part: HostTrace, chosen: I64, label: I32, backlog: I64) -> None:
    """Gives a part of a trace the chosen steps of the whole, and their breakdown."""
    steps, whole = steps_of(trace), breakdown_of(trace)
    kept = replace(steps.take(chosen, label), backlog=backlog)
    part.derived("steps", lambda _: kept)
    part.derived("usual steps", lambda _: is_usual(trace)[chosen])
    # Work of an adjacent step may count for a step, but is missing in the part: copy the breakdown of the whole.
    parts = replace(breakdown(part, kept), per_step_ps=whole.per_step_ps[chosen])
    part.derived("breakdown", lambda _: parts)
