"""Steps of a loop of which the program names the phases, but not the step.

    main   |read|backbone---|head-|post|   |read|backbone---|head-|post|   |read|backbone---|head-|post|
    step   |-------------------------------|-------------------------------|---------------------------|

Ranges of several names that come once each, one after the other, are the phases of one step: the longest of them is no
step by itself, as the loop spends more time in the others.  A step begins with the phase before which most time passes
without any, since that is where a loop comes round.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.steps.host_steps import HostSteps
from stepscope.analysis.steps.marked_steps import label_work
from stepscope.analysis.steps.named_steps import RangeGroup, find_phases
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, median


def find_phase_steps(trace: HostTrace) -> HostSteps | None:
    """The steps between the first phases of a loop; None where the program names no phases."""
    phases, share = find_phases(trace)
    if not phases:
        return None
    first = _first_phase(trace, phases)
    line = int(trace.events.line[first.rows[0]])
    start = trace.events.start_ps[first.rows]
    ends = [trace.events.start_ps[each.rows] + trace.events.duration_ps[each.rows] for each in phases]
    end = np.append(start[1:], max(int(each[-1]) for each in ends))
    rounds = len(start) - 1  # seen from one phase to the next; what so many show of others is the rule of succession's
    label = np.full(len(trace.events), -1, np.int32)
    bounds = label_work(trace, label, line, start, end)
    complete = bounds.finished.copy()
    complete[-1] &= all(bool((each > start[-1]).any()) for each in ends)
    names = ", ".join(repr(each.name) for each in sorted(phases, key=lambda each: -each.total_ps)[:3])
    return HostSteps(
        source="inferred",
        how=f"no step marks found; {len(start)} steps were inferred from {len(phases)} ranges that come once in each,"
        f" such as {names}; a step begins with {first.name!r}",
        confidence=round((share * rounds + 1) / (rounds + 2), 3),
        number=np.arange(len(start)),
        name=tuple(str(row) for row in range(len(start))),
        start_ps=bounds.start_ps,
        end_ps=bounds.end_ps,
        complete=complete,
        label=label,
        line=line,
        backlog=bounds.backlog,
    )


def _first_phase(trace: HostTrace, phases: Sequence[RangeGroup]) -> RangeGroup:
    """The phase before which most time passes usually without any of them."""
    rows: I64 = np.concatenate([each.rows for each in phases])
    of_phase = np.repeat(np.arange(len(phases)), [len(each.rows) for each in phases])
    order = np.argsort(trace.events.start_ps[rows], kind="stable")
    start, until = trace.events.start_ps[rows[order]], trace.events.start_ps[rows[order]]
    until = np.maximum.accumulate(until + trace.events.duration_ps[rows[order]])
    gap, own = np.append(0, start[1:] - until[:-1]), of_phase[order]
    usual = [median(gap[1:][own[1:] == at]) for at in range(len(phases))]
    return phases[int(np.argmax(usual))]
