"""What a recording can know of its steps: what it holds of the host and the devices, and what it lost of them.

    main    M0-L1-L2----w--i---M1-L1-L2----w--i---     of the second step the work of L1 and L2 was not recorded: what
    gpu         k1--k2--                               the device does there is not known, and so not what it waits for

Where the devices are not known, time of the host may hide behind theirs.  It does not where the host has just waited
for them, until it starts something again: from w to the next L1 they have nothing to do, so i is known to hold up the
step.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.causes import has_native_events
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.cycles import LEAST_STEPS
from stepscope.analysis.steps.find_steps import is_usual, steps_of
from stepscope.analysis.steps.own_tracers import usage_of_thread
from stepscope.analysis.steps.unmeasured import MOST_LOST, ends_before_steps, outlasts_steps
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.devices_told_of import calls_that_wait, is_device_plane, is_device_told_of
from stepscope.analysis.trace.environment import has_lost_framework
from stepscope.analysis.trace.grouping import device_rows, is_device_work
from stepscope.analysis.trace.lost_work import share_lost
from stepscope.analysis.trace.remedies import DEVICE_ACTIVITY, HOST_ACTIVITY, recorder_of, remedy
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace, PlaneKind
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.report import duration_text
from stepscope.vocabulary.lookup import has_trait, share_nameless
from stepscope.vocabulary.nsight import why_no_device
from stepscope.vocabulary.traits import CallTrait

K = EventKind

_NOT_UNDERSTOOD = 5.0  # percent of the time: rows of fewer are a tool's own, such as a monitor's
_UNKNOWN_ROWS = "unknown-rows"  # the code of the problem
# What starts work for a device, or for other threads.
_STARTS = (
    K.OP, K.BACKWARD, K.COLLECTIVE_CALL, K.TRACED_FUNCTION, K.EAGER_EXECUTE, K.FUNCTION_RUN, K.EXECUTOR, K.RUNTIME_CALL,
    K.COPY_HOST_TO_DEVICE_CALL,
)  # fmt: skip
_COMPUTES = (K.KERNEL, K.DEVICE_OP, K.GRAPH_LAUNCH, K.COLLECTIVE)
_STRANGE = (K.OTHER, K.ANNOTATION, K.STEP_MARK)  # of which only the names are known
_NAMED = 2  # ranges of an unknown maker
MS = 10**9  # picoseconds
_MOST_NAMELESS = 0.5  # of the events: of fewer without a name most time still has one
_NAMES = "record again with a profiler of this framework's version: the names of calls and kernels got lost"
_LINKS = (
    "let the loop wait for its last result in each step, or record the calls that launch work (host tracer level 2,"
    " ProfilerActivity.CUDA)"
)
_END_OF_LAUNCHES = "let the loop wait for its last result before the recording stops, and record fewer steps at once"


@dataclass(frozen=True)
class Blindness:
    """What a recording does not tell of the work in a step.

    Attributes:
        why: in words that follow `unknown:`.
        fix: how to record it.
        lost: the share of the launches in the usual steps whose work was not recorded.
        hides_causes: nothing tells one cause from another, so that none is certain.
        of_devices: it is all that devices do, and nothing of what the host does; of_host: the other way round.
    """

    why: str
    fix: str
    lost: float = 0.0
    hides_causes: bool = False
    of_devices: bool = False
    of_host: bool = False


def blindness_of(trace: HostTrace, step: int) -> Blindness | None:
    """Why the work in the steps is not known, above all in the one that stands for them; None where it was recorded.

    Args:
        step: the row of that step among those of the host.
    """
    if (nameless := share_nameless(trace)) > _MOST_NAMELESS:
        return Blindness(f"{100 * nameless:.0f} % of the events have no name", _NAMES, hides_causes=True)
    if trace.recorder == "chrome" and (longest := _strange_ranges(trace)):
        why = f"nobody known wrote this trace; its longest ranges: {longest}"
        return Blindness(why, remedy(HOST_ACTIVITY, "chrome"), hides_causes=True)
    known = why_no_device(trace.recorder_messages)
    how = known[1] if known is not None else remedy(DEVICE_ACTIVITY, recorder_of(trace))
    if is_device_work(trace).any():
        lost = _lost_kernels(trace, how)
        return lost or _find_outlasting(trace) or _lost_launches(trace, step) or _ended_early(trace)
    if known is not None:
        return Blindness(known[0], how)
    strange_ms = _not_understood_ps(trace) / 1e9
    if strange_ms:
        return Blindness(f"{strange_ms:,.1f} ms of rows are not understood, perhaps work of a device", how)
    if is_device_told_of(trace):
        return Blindness("what the devices do was not recorded", how, of_devices=True)
    lacks_host = trace.framework not in ("", "python") and not has_native_events(trace)
    if lacks_host and not _is_observed(trace) and not has_lost_framework(trace):
        why = "nothing of what the framework does was recorded"
        return Blindness(why, remedy(HOST_ACTIVITY, recorder_of(trace)), of_host=True)
    return None


def _strange_ranges(trace: HostTrace) -> str:
    """The names of the longest ranges and how long each lasts in all, where most of what was recorded is ranges of
    which only the names are known; else empty."""
    threads = is_thread_event(trace)
    rows = np.flatnonzero(is_any_kind(trace.events.kind, _STRANGE) & threads)
    if 2 * spans_of(trace, rows).total <= spans_of(trace, np.flatnonzero(threads)).total:
        return ""
    names, place = np.unique(trace.event_names(rows), return_inverse=True)
    total = np.array([spans_of(trace, rows[place == at]).total for at in range(len(names))])
    longest = np.argsort(-total, kind="stable")[:_NAMED]
    return ", ".join(f"`{trace.strings[names[at]]}` {duration_text(total[at] / MS)}" for at in longest)


def _lost_kernels(trace: HostTrace, how: str) -> Blindness | None:
    """Copies alone of a program that loads kernels: these were not recorded, nor their launches."""
    calls = events_of_kind(trace, K.RUNTIME_CALL)
    if not has_trait(trace, trace.events.type[calls], CallTrait.LOADS_KERNELS).any():
        return None
    if is_any_kind(trace.events.kind[device_rows(trace)], _COMPUTES).any():
        return None
    why = "the program loads kernels, and none of them was recorded"
    return Blindness(why, how, of_devices=True)


def _find_outlasting(trace: HostTrace) -> Blindness | None:
    """Work that outlasts the steps of the host, and of which nothing says which step it is for."""
    steps = steps_of(trace)
    if not outlasts_steps(trace, steps.start_ps, steps.end_ps):
        return None
    return Blindness("the devices work on after the steps of the host, and nothing says for which step", _LINKS)


def _is_observed(trace: HostTrace) -> bool:
    """Whether the processor time of the loop's thread was recorded, which tells work from waiting."""
    line = threads_of(trace).main
    return line >= 0 and usage_of_thread(trace, line) is not None


def _not_understood_ps(trace: HostTrace) -> int:
    """For how long rows last that may be work of a device and are of no known kind; 0 if that is little of the time."""
    told = any(problem.code == _UNKNOWN_ROWS for problem in trace.problems)
    strange = [
        is_device_plane(trace, plane) if kind == PlaneKind.CUSTOM_DEVICE else told
        for plane, kind in enumerate(trace.planes.kind.tolist())
    ]
    strange_kinds = np.isin(trace.planes.kind, (PlaneKind.CUSTOM_DEVICE, PlaneKind.OTHER)) & np.array(strange, np.bool_)
    if not strange_kinds.any():
        return 0
    rows = np.flatnonzero(strange_kinds[trace.lines.plane[trace.events.line]] & (trace.events.kind == K.OTHER))
    first, last = trace.span_ps()
    found = spans_of(trace, rows).total
    return found if 100 * found > _NOT_UNDERSTOOD * (last - first) else 0


def _lost_launches(trace: HostTrace, step: int) -> Blindness | None:
    """Launches whose work was not recorded, if they are so many in the step that what they do may limit it, or if too
    few steps are whole to stand for the others."""
    steps = steps_of(trace)
    start, end = _usual(trace)
    lost = share_lost(trace, start, end) if len(start) else 0.0
    of_step = 100 * share_lost(trace, steps.start_ps[[step]], steps.until_ps[[step]])
    if of_step <= LARGE_SHARE and (lost <= MOST_LOST or _count_whole(trace, start, end) >= LEAST_STEPS):
        return None
    share = max(100 * lost, of_step)
    lost = lost if len(start) else of_step / 100
    return Blindness(f"{share:.0f} % of what was launched was not recorded", _END_OF_LAUNCHES, lost)


def _count_whole(trace: HostTrace, start: I64, end: I64) -> int:
    lost = (share_lost(trace, start[[at]], end[[at]]) for at in range(len(start)))
    return sum(100 * each <= LARGE_SHARE for each in lost)


def _ended_early(trace: HostTrace) -> Blindness | None:
    """A record of the devices that ends while the steps go on."""
    start, end = _usual(trace)
    work = device_rows(trace)
    last = int((trace.events.start_ps[work] + trace.events.duration_ps[work]).max())
    without = 100 * float((end - start)[start >= last].sum()) / max(int((end - start).sum()), 1) if len(start) else 0.0
    steps = steps_of(trace)
    is_covered = without <= LARGE_SHARE or (start >= last).all()
    if is_covered and not ends_before_steps(trace, steps.start_ps, steps.end_ps):
        return None
    return Blindness("the record of the devices ends before the steps do", _END_OF_LAUNCHES, without / 100)


def _usual(trace: HostTrace) -> tuple[I64, I64]:
    steps = steps_of(trace)
    if not len(steps.number) or steps.source == "none":
        return np.empty(0, np.int64), np.empty(0, np.int64)
    usual = np.flatnonzero(is_usual(trace))
    return steps.start_ps[usual], steps.until_ps[usual]


def exposed_spans(trace: HostTrace) -> Spans:
    """When devices have nothing to do for certain, whether or not their work was recorded: from where the loop's thread
    has waited for them to the next start of work by any thread."""
    line, events = threads_of(trace).main, trace.events
    waits = calls_that_wait(trace)
    waits = waits[events.line[waits] == line]
    since = np.sort(events.start_ps[waits] + events.duration_ps[waits])
    starts = is_any_kind(events.kind, _STARTS) & is_thread_event(trace)
    starts[waits] = False
    begun = np.sort(events.start_ps[starts])
    if not len(begun):  # starts were not recorded at all, so none tells when the devices work again
        return Spans.union(begun, begun)
    last = max(trace.span_ps()[1], int(since[-1]) if len(since) else 0)
    return Spans.union(since, np.append(begun, last)[np.searchsorted(begun, since)])
