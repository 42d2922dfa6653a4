"""Recognises a capture of first calls: the program traced and compiled in it, or libraries and devices started, and
hardly any later call followed.

Such a capture says what the start of a program costs.  It says nothing about the steps after it, so no advice about
"every step" can be based on it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.silence import silence_of
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.facts.compiles import compiles_of
from stepscope.analysis.steps.compiled import calls_of
from stepscope.analysis.steps.cycles import LEAST_STEPS
from stepscope.analysis.steps.find_steps import observed_time, steps_of
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.analysis.trace.captured_graphs import captures_of_graphs
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.devices_told_of import LONGEST_DISPATCH_PS, is_device_told_of
from stepscope.analysis.trace.environment import steps_awaited_s
from stepscope.analysis.trace.grouping import device_rows, enclosing_events, forest, nearest_above
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

K = EventKind
MS = 10**9  # picoseconds

# Calls that may start something up, or end it.
_CALLS = (
    K.OP, K.BACKWARD, K.RUNTIME_CALL, K.SYNC, K.COPY_HOST_TO_DEVICE_CALL, K.EAGER_EXECUTE, K.FUNCTION_RUN, K.EXECUTOR,
)  # fmt: skip

_MOST_OF = 50.0  # percent of the recording, by the word: then it is one of starting up
_SEVERAL = 3  # calls of a name: two others that are fast tell that the long one is no usual one


@dataclass(frozen=True)
class FirstCalls:
    """A capture that holds first calls only.

    Attributes:
        percent: share of the captured time, or of the only step, that they take.
        name: the function or program that was traced or compiled, or the call that takes longest; empty if unknown.
        is_step: a mark of the program surrounds it: it is one step, else the capture as a whole.
        later_calls: how many calls of that function were recorded that neither traced nor compiled it.
        longest_ms: of starting up, the time of the calls with that name; longest_calls: how many these are.
        op: the op that makes the longest of these calls; empty if none does, or it is not known.
        is_beside: something else takes longer, so that the capture holds more than them.
        starts_up: they start up libraries and devices, or end them; else they trace and compile.
        awaited_s: how long steps of a loop were awaited before the capture, where none came, nor in it, and nothing in
            it repeats; None elsewhere.  `percent` and `name` are then those of what compiles, if anything does.
        captures: the longest of them capture graphs, `longest_calls` of them.
        silent_ms: what comes before the first work of a device, of which nothing was recorded; 0 where that is little.
        is_silent: what was recorded of them is little beside that.
    """

    percent: float
    name: str
    is_step: bool
    later_calls: int = 0
    starts_up: bool = False
    longest_ms: float = 0.0
    longest_calls: int = 1
    op: str = ""
    is_beside: bool = False
    awaited_s: float | None = None
    silent_ms: float = 0.0
    is_silent: bool = False
    captures: bool = False


def first_calls_of(trace: HostTrace) -> FirstCalls | None:
    """The first calls if the capture holds nothing else; None otherwise.

    That is so if there is one step or none, a noticeable part of it compiles, and nothing is compiled again and again;
    or if most of the time in which devices wait for launches goes into calls that happen once, where no step was found;
    where there is one step, into calls of which several others were faster.  It is so as well if `stepscope run`
    awaited steps in vain, and nothing in the capture repeats: the program is still at what comes before its loop.
    """
    awaited = steps_awaited_s(trace) if steps_of(trace).source == "none" else None
    found = _compilations(trace, awaited is not None) or _start_up(trace)
    if awaited is None:
        return found
    return replace(found or FirstCalls(0.0, "", is_step=False), awaited_s=awaited, is_beside=False)


def _start_up(trace: HostTrace) -> FirstCalls | None:
    """Calls that take long once: those of which one takes most of the time of its name, as one that makes a context or
    chooses a kernel does; the first launch of each kernel, which loads its code (CUDA loads lazily), where it takes
    longer than all others of that kernel together; all that comes after the last work of a device, as unloading; and
    what a thread does while it captures graphs, which it replays later.
    Time in which a device works is a wait for it, as at the end or with a full queue, and does not count; nor do ops
    and waits where the work of devices was not recorded: they may take long for what those do."""
    account = account_of(trace)
    launch = next((row for row in account.rows if row.cause == "launch"), None) if account is not None else None
    if account is None or launch is None:
        return None
    if account.has_steps and np.count_nonzero(steps_of(trace).complete) > 1:
        return None
    work, events = device_rows(trace), trace.events
    if not len(work) and not is_device_told_of(trace):
        return None
    works = spans_of(trace, work)
    rows, own_ps = _calls_beside(trace, works)
    names, name = np.unique(events.type[rows], return_inverse=True)
    longest, of_name = np.zeros(len(names), np.int64), np.bincount(name, weights=own_ps, minlength=len(names))
    np.maximum.at(longest, name, own_ps)
    several = np.bincount(name, minlength=len(names)) >= (_SEVERAL if account.has_steps else 1)
    once = several[name] & (own_ps > LONGEST_DISPATCH_PS) & (own_ps == longest[name]) & (2 * own_ps > of_name[name])
    once |= several[name] & _load_code(trace, rows, own_ps)
    if not account.has_steps and len(work):
        once |= events.start_ps[rows] >= works.end[-1]
    spent = np.bincount(name[once], weights=own_ps[once], minlength=len(names))
    before_ps = 0 if account.has_steps else _silent_before_work(trace, rows, rows[once])
    prepares = None if account.has_steps else _prepares(trace, events_of_kind(trace, K.KERNEL))
    works_ps = 0 if prepares is None else int(events.duration_ps[prepares])
    captures, captured = captures_of_graphs(trace)
    captured_ps = (captured - spans_of(trace, rows[once]) - works).total
    share = min(account.percent(int(spent.sum()) + before_ps + works_ps + captured_ps), 100.0)
    first_row = account.rows[0]  # what is silent before the first work is starting up, too
    is_start = (
        first_row.cause == "unknown"
        and not account.is_silent
        and before_ps > 0
        and int(spent.sum()) + before_ps >= first_row.ps - before_ps
    ) or (first_row.cause == "device_compute" and 2 * works_ps > first_row.ps)
    is_start |= captured_ps > 0 and share > _MOST_OF
    if prepares is not None and is_start and works_ps > spent.max(initial=0):
        long_ms = works_ps / MS
        return FirstCalls(share, trace.name_of(prepares), account.has_steps, 0, True, long_ms)
    is_beside = launch is not first_row and not is_start
    if is_start and captured_ps > spent.max(initial=0):
        begin, long_ms = trace.name_of(int(captures[0])), captured_ps / MS
        return FirstCalls(share, begin, account.has_steps, 0, True, long_ms, len(captures), captures=True)
    if 2 * spent.sum() <= launch.ps or (is_beside and share < LARGE_SHARE):
        return None
    most = rows[once & (name == np.argmax(spent))]
    name_of_most, most_ms = trace.name_of(int(most[0])), float(spent.max()) / MS
    found = FirstCalls(
        share, name_of_most, account.has_steps, 0, True, most_ms, len(most), _op_of(trace, most), is_beside
    )
    if account.percent(before_ps) < LARGE_SHARE:
        return found
    return replace(found, silent_ms=before_ps / MS, is_silent=account.percent(int(spent.sum())) < LARGE_SHARE)


def _prepares(trace: HostTrace, kernels: I64) -> int | None:
    """The longest kernel that runs once, before those that run again and again, as one that makes the data: a row of an
    event; None where none is."""
    order = kernels[np.argsort(trace.events.start_ps[kernels], kind="stable")]
    _, first, count = np.unique(trace.events.type[order], return_index=True, return_counts=True)
    again = first[count >= LEAST_STEPS]
    alone = order[first[(count == 1) & (first < again.min(initial=len(order)))]]
    return int(alone[np.argmax(trace.events.duration_ps[alone])]) if len(alone) and len(again) else None


def _op_of(trace: HostTrace, calls: I64) -> str:
    """The innermost op around the longest of some calls, which a person knows of the program, as its runtime's calls
    have one name for all ops; empty without one."""
    longest = calls[np.argmax(trace.events.duration_ps[calls])]
    op = int(nearest_above(trace, np.array([longest]), is_any_kind(trace.events.kind, (K.OP, K.BACKWARD)))[0])
    return trace.name_of(op) if op >= 0 else ""


def _calls_beside(trace: HostTrace, works: Spans) -> tuple[I64, I64]:
    """The calls of threads that a step may wait for, rows of events, and for how long each runs itself, in ps.

    Args:
        works: when devices work: then a call waits for them, which is not its own time.
    """
    events, links, threads = trace.events, forest(trace), threads_of(trace)
    calls = is_any_kind(events.kind, _CALLS) & is_thread_event(trace)
    if not len(device_rows(trace)):
        calls &= events.kind == K.RUNTIME_CALL
    rows = np.flatnonzero(calls)
    rows = rows[~(threads.background | threads.serves_input)[events.line[rows]]]  # the step waits for none of these
    nested = links.parent >= 0
    within = np.bincount(links.parent[nested], weights=links.extent_ps[nested], minlength=len(events))
    own_ps = links.extent_ps[rows] - within[rows].astype(np.int64)
    own_ps -= works.overlap_ps(events.start_ps[rows], events.start_ps[rows] + own_ps)
    return rows, np.maximum(own_ps, 0)


def _silent_before_work(trace: HostTrace, calls: I64, once: I64) -> int:
    """For how long, but for calls that happen once, nothing says what the loop's thread does before a device works, or,
    where that was not recorded, before the first call that launches something, in ps."""
    launches = calls[has_trait(trace, trace.events.type[calls], CallTrait.LAUNCHES_KERNEL | CallTrait.LAUNCHES_GRAPH)]
    first = trace.events.start_ps[np.append(device_rows(trace), launches)]
    if not len(first):
        return 0
    before = Spans.union(np.array([0]), np.array([int(first.min())])) - spans_of(trace, once)
    return int((silence_of(trace) & before & observed_time(trace)).total)


def _load_code(trace: HostTrace, calls: I64, own_ps: I64) -> Mask:
    """Which calls are the first to launch a kernel, each by its name, and take longer than dispatching, and than all
    later launches of it: bool of shape (calls,).

    Args:
        calls: rows of events; own_ps: how long each takes without the calls inside it while no device works.
    """
    kernels = events_of_kind(trace, K.KERNEL)
    kernels = kernels[forest(trace).cause[kernels] >= 0]
    call, first = np.unique(forest(trace).cause[kernels], return_index=True)
    place = np.searchsorted(calls, call)
    here = np.flatnonzero(calls[np.minimum(place, len(calls) - 1)] == call) if len(calls) else place[:0]
    found = np.zeros(len(calls), np.bool_)
    if not len(here):
        return found
    place, start = place[here], trace.events.start_ps[call[here]]
    idle_ps = own_ps[place]
    name = np.unique(trace.events.type[kernels[first[here]]], return_inverse=True)[1]
    of_name, earliest = np.bincount(name, weights=idle_ps), np.full(name.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(earliest, name, start)
    loads = (start == earliest[name]) & (idle_ps > LONGEST_DISPATCH_PS) & (2 * idle_ps > of_name[name])
    found[place[loads]] = True
    return found


def _compilations(trace: HostTrace, before_loop: bool) -> FirstCalls | None:
    """What is compiled once, where that is a noticeable part of the only step.

    Args:
        before_loop: what is compiled more than once is for several shapes, such as those of parameters.
    """
    steps = steps_of(trace)
    facts = compiles_of(trace)
    if len(steps.number) != 1 or facts is None or (facts.repeated and not before_loop):
        return None
    compiling = events_of_kind(trace, EventKind.COMPILE)
    compiling = compiling[steps.label[compiling] >= 0]
    whole = int((steps.end_ps - steps.start_ps).sum())
    if not len(compiling) or whole <= 0:
        return None
    percent = 100.0 * int(spans_of(trace, compiling).overlap_ps(steps.start_ps, steps.end_ps).sum()) / whole
    if percent < LARGE_SHARE:
        return None
    name = facts.programs[0].name if facts.programs else ""
    later = _count_calls(trace, name) - facts.programs[0].times if name else 0
    return FirstCalls(percent, name, steps.source == "markers", max(later, 0))


def _count_calls(trace: HostTrace, program: str) -> int:
    """How often a traced function, or the function of a compiled program, was called."""
    calls = calls_of(trace, program)
    among = np.zeros(len(trace.events), np.bool_)
    among[calls] = True
    return len(distinct(enclosing_events(trace, among)[calls]))
