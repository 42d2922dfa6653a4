"""A profile seen through some of its steps: `--steps 3-9` on the command line, the brush on the page.

`--steps all` keeps every step, and leaves out what ran before the first and after the last.

Kept are the events that belong to one of the steps, wherever they lie in time, and those that belong to no step as far
as they lie between the first step's begin and the last one's end.  Events of other steps are left out, so that what
single steps say adds up to what a range says.  The steps themselves and where their time goes are those of the whole
trace: steps that had to be inferred from all of it could not be inferred from a part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.steps.breakdown import breakdown
from stepscope.analysis.steps.find_steps import steps_of
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
    def of(steps: object) -> StepRange:
        """A range from itself, from what `parse` reads, or from the number of one step.  Raises UsageError."""
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
            raise UsageError(f"{text!r} is no range of steps", hint="write FIRST-LAST, such as 3-9, one number, or all")
        return StepRange(first, last)

    @property
    def is_all(self) -> bool:
        """True for all steps of the capture, whatever their numbers are."""
        return self == ALL_STEPS

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last

    def __str__(self) -> str:
        if self.is_all:
            return "the steps"
        return f"step {self.first}" if self.first == self.last else f"steps {self.first} to {self.last}"


ALL_STEPS = StepRange(0, _LARGEST)


def choose(parts: Sequence[StepsOfHost], wanted: StepRange) -> dict[str, tuple[int, ...]]:
    """For each host the rows of its steps that are wanted; hosts that take no part are left out.

    Hosts whose programs count differently are brought together as in the overview, and a step's number is the one that
    the overview shows: that of its slowest host.

    Raises:
        UsageError: there are no such steps; tells which there are.
    """
    aligned = align(parts)
    slowest = [max(rows, key=lambda row: row.duration_ps) for rows in aligned.steps]
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


def only_steps(trace: HostTrace, rows: Sequence[int]) -> HostTrace:
    """The trace of some of its steps.

    Args:
        trace: the whole.
        rows: the steps, as rows of `steps_of(trace)`, ascending; at least one.
    """
    steps, chosen = steps_of(trace), np.asarray(rows, np.int64)
    begin, end = int(steps.start_ps[chosen].min()), int(steps.end_ps[chosen].max())
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
    _hand_down(trace, part, chosen, place[steps.label[taken]], backlog)
    return part


def _hand_down(trace: HostTrace, part: HostTrace, chosen: I64, label: I32, backlog: I64) -> None:
    """Gives a part of a trace the steps of the whole and where their time goes."""
    steps, whole = steps_of(trace), breakdown_of(trace)
    kept = replace(
        steps,
        number=steps.number[chosen],
        name=tuple(steps.name[row] for row in chosen.tolist()),
        start_ps=steps.start_ps[chosen],
        end_ps=steps.end_ps[chosen],
        complete=steps.complete[chosen],
        label=label,
        backlog=backlog,
    )
    part.derived("steps", lambda _: kept)
    # What counts for a step may be the work of a step beside it, which is not here.  Between two steps that are no
    # neighbours lie others, and no gap.
    gaps = chosen[:-1][np.diff(chosen) == 1]
    parts = replace(breakdown(part, kept), per_step_ps=whole.per_step_ps[chosen], between_ps=whole.between_ps[gaps])
    part.derived("breakdown", lambda _: parts)
