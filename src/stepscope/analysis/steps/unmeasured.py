"""Steps of a loop that waits for nothing, of which the work on devices is not known: their bounds measure no step.

main    M0-L1-L2-M1-L1-L2-M2-L1-L2-      the loop starts work far ahead of the device; its marks are as long as
gpu         k1----k2----?                starting takes, and where the record of the device ends, or nothing links
its work to the marks, nothing says how long a step lasts
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.devices_told_of import calls_that_wait, is_device_silent
from stepscope.analysis.trace.grouping import device_rows, forest
from stepscope.analysis.trace.lost_work import share_lost
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, median

MOST_LOST = 1 / 3  # of the launches in the steps: what is known of the others speaks for these
_MOST = 0.8  # of the steps; a loop may read a result every few steps only


def why_unmeasured(trace: HostTrace, start_ps: I64, end_ps: I64) -> str | None:
    """Why the bounds of some steps are no measure of how long these last, in words that follow `they are`; None where
    they are, as the loop waits in them or the work is known.

    Args:
        start_ps, end_ps: int64 of shape (steps,), ascending.
    """
    if is_device_silent(trace):
        why = "as long as the host takes to start work that was not recorded"
    elif share_lost(trace, start_ps, end_ps) > MOST_LOST or _ends_before(trace, start_ps, end_ps):
        why = "as long as the host takes to start work of which most was not recorded"
    elif outlasts_steps(trace, start_ps, end_ps):
        why = "as long as the host takes to start work, and nothing says which work is of which step"
    else:
        return None
    return None if _waits(trace, start_ps, end_ps) else why


def outlasts_steps(trace: HostTrace, start_ps: I64, end_ps: I64) -> bool:
    """Whether devices work on after the last step for longer than a step lasts, with work that nothing links to a
    call, while the loop has waited for none of it.

    Args:
        start_ps, end_ps: int64 of shape (steps,), ascending.
    """
    if len(start_ps) < 2:
        return False
    work = device_rows(trace)
    later = work[(trace.events.start_ps[work] >= end_ps[-1]) & (forest(trace).cause[work] < 0)]
    longer = len(later) > 0 and spans_of(trace, later).total > median(end_ps - start_ps)
    return longer and not _waits(trace, start_ps, end_ps)


def ends_before_steps(trace: HostTrace, start_ps: I64, end_ps: I64) -> bool:
    """Whether the record of the devices ends before most steps begin, of a loop that waits for none of their work.

    Args:
        start_ps, end_ps: int64 of shape (steps,), ascending.
    """
    return _ends_before(trace, start_ps, end_ps) and not _waits(trace, start_ps, end_ps)


def _ends_before(trace: HostTrace, start_ps: I64, end_ps: I64) -> bool:
    """Whether the record of the devices ends before so many steps begin that much of their time is without it."""
    work = device_rows(trace)
    if not len(work) or len(start_ps) < 2:
        return False
    last = int((trace.events.start_ps[work] + trace.events.duration_ps[work]).max())
    without = int((end_ps - start_ps)[start_ps >= last].sum())
    return without > MOST_LOST * int((end_ps - start_ps).sum())


def _waits(trace: HostTrace, start_ps: I64, end_ps: I64) -> bool:
    """Whether the loop waits for devices in nearly every step."""
    waits = calls_that_wait(trace)
    ends = np.sort(trace.events.start_ps[waits] + trace.events.duration_ps[waits])
    held = np.searchsorted(ends, end_ps, side="right") > np.searchsorted(ends, start_ps, side="right")
    return bool(held.mean() >= _MOST)
