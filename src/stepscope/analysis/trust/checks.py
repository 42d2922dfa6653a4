"""What makes a recording doubtful: effects before their causes, records that are missing, and what recording cost.

Each check looks at one host's trace and says how many of how many events break a rule, what that makes doubtful, and
how to record without it; or that the trace has nothing that could break the rule.  The rules of causes and of ids are
those of PyTorch's own validator of traces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.counted import CONTRADICTS, contradiction_of
from stepscope.analysis.account.every_step import every_step
from stepscope.analysis.account.piece_causes import awaits_silent_device
from stepscope.analysis.account.stream_waits import awaited_work
from stepscope.analysis.steps.find_steps import holds_only_dispatch, observed_time, steps_of
from stepscope.analysis.steps.profiling_cost import profiling_cost
from stepscope.analysis.trace.attribution import HowKnown, shares
from stepscope.analysis.trace.columns import events_of_kind, is_thread_event, select_thread_events
from stepscope.analysis.trace.grouping import device_rows, forest, is_device_work
from stepscope.analysis.trace.lost_work import launches_of
from stepscope.analysis.trace.remedies import SEE_DEVICE
from stepscope.analysis.trace.user_ranges import user_ranges
from stepscope.analysis.workers.collectives import collectives_of, rows_in_order
from stepscope.errors import counted
from stepscope.model import EventKind, HostTrace, LineKind, Trait, stat_names
from stepscope.model.arrays import I64, distinct, number_pairs, places_of
from stepscope.records import dataclass
from stepscope.report import duration_text
from stepscope.vocabulary.lines import device_of_plane
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

K = EventKind

_WORTH_SAYING = 1.0  # percent: fewer events than these change no figure by as much as one that is shown
_LEAST_MOVED = 0.05  # percent of the step: times that are off by less change no figure that is shown
_LOST_TIME = 5.0  # percent of the device's time without an op from which on tables of ops mislead
_PS_PER_MS = 10**9


@dataclass(frozen=True)
class Doubt:
    """One reason for which a recording is doubtful.

    Attributes:
        check: stable identifier of the rule.
        count, of: how many of how many break it; `of` is None where there is no whole.
        percent: the share, of the events or of the time.
        found: what is, as a sentence without its end.
        doubtful: what may be wrong because of it.
        fix: what to do.
        is_grave: figures that verdict and advice rest on are wrong.
        of_step: the share of the step that is wrong then, at most, in percent.
        rule: what would hold otherwise, see CHECKS.
    """

    check: str
    count: int
    of: int | None
    percent: float | None
    found: str
    doubtful: str
    fix: str
    is_grave: bool = False
    of_step: float = 100.0
    rule: str = ""


UNTOLD: Final = "untold"
"""What a check finds in a recording that holds nothing that the rule is about."""

Found = Doubt | Literal["untold"] | None
"""What a check finds; None where the rule holds."""


def doubts_of(trace: HostTrace) -> list[Doubt]:
    """All that makes a recording doubtful, what is grave first; computed once per trace."""
    found = [replace(doubt, rule=rule) for rule, doubt in _find_doubts(trace).items() if isinstance(doubt, Doubt)]
    return sorted(found, key=lambda doubt: not doubt.is_grave)


def untold_rules(trace: HostTrace) -> list[str]:
    """The rules of which a recording tells nothing."""
    return [rule for rule, found in _find_doubts(trace).items() if found == UNTOLD]


def _find_doubts(trace: HostTrace) -> Mapping[str, Found]:
    """What each rule's check finds."""
    return trace.derived("doubts", lambda trace: {rule: check(trace) for check, rule in CHECKS.items()})


def _launches(count: int) -> str:
    return f"{count:,} launch{'' if count == 1 else 'es'}"


def _share(count: int, of: int) -> float:
    return round(100.0 * count / of, 4) if of else 0.0


def _clock_step_ps(trace: HostTrace) -> int:
    """The step of the recording's clock, by which times of two of its records may differ for no reason."""
    return trace.derived("clock step", _find_clock_step)


def _find_clock_step(trace: HostTrace) -> int:
    events = trace.events
    return math.gcd(*map(kernels.columns.common_divisor, (events.start_ps, events.duration_ps))) or 1


# -- causes and effects ------------------------------------------------------------------------------------------------


def check_launches(trace: HostTrace) -> Found:
    """Work that starts before the call that launches it."""
    rows, call = _launched_work(trace)
    if not len(rows):
        return UNTOLD
    ahead = trace.events.start_ps[call] - trace.events.start_ps[rows]
    early = ahead > _clock_step_ps(trace)
    count, percent = int(early.sum()), _share(int(early.sum()), len(rows))
    of_step = _percent_moved(trace, ahead[early])
    if not count or of_step < _LEAST_MOVED:
        return None
    return Doubt(
        "starts_before_launch", count, len(rows), percent,
        f"the work of {_launches(count)} starts before the call, by up to"
        f" {duration_text(int(ahead.max()) / _PS_PER_MS)}: the clocks of host and device disagree",
        "launch latencies, gaps of the device, and waits for it",
        _newer_tracer(trace),
        percent >= _WORTH_SAYING and of_step >= _WORTH_SAYING,
        of_step,
    )  # fmt: skip


def check_lost_work(trace: HostTrace) -> Found:
    """Launches of kernels whose work was not recorded."""
    launches = launches_of(trace)
    calls, recorded, lost = launches.call, launches.recorded, launches.lost
    count, percent = int(lost.sum()), _share(int(lost.sum()), len(calls))
    if not recorded.any():  # of a device that was not recorded at all, nothing is lost
        return UNTOLD
    if not count:
        return None
    start, steps = trace.events.start_ps[calls], steps_of(trace)
    step = np.searchsorted(steps.start_ps, start, side="right") - 1
    whole = (step >= 0) & (start < steps.end_ps[step]) & steps.complete[step] if steps.complete.any() else start >= 0
    of_step = _share(int((lost & whole).sum()), int(whole.sum()))
    first, last = start[recorded].min(), start[recorded].max()
    where = "the first" if (start[lost] < first).all() else "the last" if (start[lost] > last).all() else ""
    ends_in = ""
    if where == "the last" and len(steps.number) > 1:
        ends_at = max(int(step[start == last][0]), 0) + 1
        ends_in = f": the record of the device ends in step {ends_at} of {len(steps.number)}"
    return Doubt(
        "lost_work", count, len(calls), percent,
        f"the work of {f'{where} ' if where else ''}{_launches(count)} was not recorded{ends_in}",
        "the time of devices, and steps in which they seem idle",
        "leave a step to warm the profiler up before the ones to record, and let the device finish before it stops",
        of_step >= _WORTH_SAYING,
        of_step,
    )  # fmt: skip


def check_silent_devices(trace: HostTrace) -> Found:
    """Launched work that waits though nothing that it is known to wait for runs."""
    found = every_step(trace)
    if found is None:
        return UNTOLD
    silent = awaits_silent_device(trace, found.graph, found.pieces, found.cause)
    percent = _share(int(found.length_ps[silent].sum()), int(found.length_ps.sum()))
    if percent < _WORTH_SAYING:
        return None if is_device_work(trace).any() else UNTOLD
    return Doubt(
        "launched_work_waits", len(distinct(found.pieces.node[silent].astype(np.int64))), None, percent,
        f"for {percent:.1f} % of the time launched work waits for a device that shows none",
        "what the device does then, and what a change gives",
        SEE_DEVICE,
        of_step=percent,
    )  # fmt: skip


def check_programs(trace: HostTrace) -> Found:
    """Steps that call programs of which nothing was recorded but the calls."""
    if not holds_only_dispatch(trace):
        return None if len(events_of_kind(trace, K.TRACED_FUNCTION)) else UNTOLD
    steps = len(steps_of(trace).number)
    return Doubt(
        "only_dispatch", steps, steps, 100.0,
        f"only the calls of {counted(steps, 'step')} were recorded, not what their programs compute: the step time is"
        " that of calling",
        "the step time, its causes, and all advice",
        "let the loop wait for its last result before the recording stops, such as with jax.block_until_ready, and"
        " record for longer",
        True,
    )  # fmt: skip


def check_stream_waits(trace: HostTrace) -> Found:
    """Streams that wait for an event that is recorded only later, or for one that is not known."""
    if not trace.has_stat(stat_names.WAITS_FOR_RECORD):
        return UNTOLD
    rows = np.flatnonzero((trace.lines.kind == LineKind.OTHER)[trace.events.line])
    awaited = trace.stat_ints(stat_names.WAITS_FOR_RECORD, rows=rows, missing=0)
    rows, awaited = rows[awaited > 0], awaited[awaited > 0]
    records = _calls_with(trace, CallTrait.RECORDS_EVENT)
    if not len(rows) or not len(records):
        return UNTOLD
    ids = trace.stat_ints(stat_names.CORRELATION_ID, rows=records)
    at = places_of(ids, awaited)
    waits = trace.stat_ints(stat_names.CORRELATION_ID, rows=rows)
    called = _starts_by_id(trace, waits)
    future = (at >= 0) & (called >= 0) & (trace.events.start_ps[records[at]] > called + _clock_step_ps(trace))
    count, percent = int(future.sum()), _share(int(future.sum()), len(rows))
    if not count:
        return None
    return Doubt(
        "waits_for_future", count, len(rows), percent,
        f"{counted(count, 'wait')} of a stream {'is' if count == 1 else 'are'} for an event that is recorded later",
        "which work waits for which, and so the critical path and what a change gives",
        "record with a newer PyTorch, or without enable_cuda_sync_events",
        percent >= _WORTH_SAYING,
    )  # fmt: skip


def check_syncs(trace: HostTrace) -> Found:
    """Waits of the host that end while the work that they wait for still runs."""
    work, call = _launched_work(trace)
    calls = select_thread_events(trace, events_of_kind(trace, K.SYNC))
    calls = calls[has_trait(trace, trace.events.type[calls], CallTrait.AWAITS_ALL)]
    if not len(calls) or not len(work) or len(distinct(trace.lines.plane[trace.events.line[work]])) > 1:
        return UNTOLD  # which of several devices a call waits for is not recorded
    until = awaited_work(trace, calls).until_ps
    events = trace.events
    order = np.argsort(events.start_ps[call], kind="stable")
    ends = np.maximum.accumulate((events.start_ps + events.duration_ps)[work][order])
    before = np.searchsorted(events.start_ps[call][order], until) - 1
    left = np.where(before >= 0, ends[np.maximum(before, 0)] - (events.start_ps + events.duration_ps)[calls], 0)
    early = left > _clock_step_ps(trace)
    count, percent = int(early.sum()), _share(int(early.sum()), len(calls))
    of_step = _percent_moved(trace, left[early])
    if not count or of_step < _LEAST_MOVED:
        return None
    return Doubt(
        "sync_ends_early", count, len(calls), percent,
        f"{counted(count, 'wait')} of the host for the device {'ends' if count == 1 else 'end'} up to"
        f" {duration_text(int(left.max()) / _PS_PER_MS)} before the work does: the clocks of host and device disagree",
        "waits for the device, and how much of them is the device's own time",
        _newer_tracer(trace),
        percent >= _WORTH_SAYING and of_step >= _WORTH_SAYING,
        of_step,
    )  # fmt: skip


def _percent_moved(trace: HostTrace, off_ps: I64) -> float:
    """How much of the recorded time may belong to something else, as some times are off: in percent."""
    return min(_share(int(off_ps.sum()), observed_time(trace).total), 100.0)


def _newer_tracer(trace: HostTrace) -> str:
    """What to update where the clocks of host and device disagree: it belongs to the device's maker."""
    calls = _calls_with(trace, CallTrait.LAUNCHES_KERNEL | CallTrait.LAUNCHES_GRAPH)
    if len(calls) and trace.name_of(int(calls[0])).startswith("hip"):
        return "update ROCm and its tracer"
    if any(device_of_plane(trace.plane_name(plane)).startswith("NPU") for plane in trace.device_planes()):
        return "update the driver and CANN"
    return "update the driver and CUPTI"


# -- what records hold -------------------------------------------------------------------------------------------------


def check_collectives(trace: HostTrace) -> Found:
    """Collectives of PyTorch of which neither they nor the calls around their launches say what they exchange."""
    if trace.framework != "pytorch":
        return UNTOLD
    rows = rows_in_order(trace)
    rows = rows[is_device_work(trace)[rows]]
    silent = trace.stat_strings(stat_names.COLLECTIVE_NAME, rows=rows) < 0
    if silent.any():  # older versions describe the op that asks for a collective, not its kernel
        silent &= np.array(collectives_of(trace).bytes) == 0
    count, percent = int(silent.sum()), _share(int(silent.sum()), len(rows))
    if not count:
        return None if len(rows) else UNTOLD
    in_graph = int((trace.stat_ints(stat_names.GRAPH_NODE_ID, rows=rows[silent]) > 0).sum())
    launched = 2 * int((forest(trace).cause[rows[silent]] >= 0).sum()) > count
    missing = "shapes (record_shapes=True)" if launched else "the host as well (ProfilerActivity.CPU)"
    fix = f"record {missing}, with PyTorch 2.3 or later"
    if 2 * in_graph > count:
        fix = f"annotate the graphs: {_ANNOTATE}"
    return Doubt(
        "collectives_without_details", count, len(rows), percent,
        f"{counted(count, 'collective')} {'has' if count == 1 else 'have'} no recorded"
        f" {'size' if launched else 'operation or size'}",
        "bandwidth" + ("" if launched else ", and which collectives of other ranks belong to them"),
        fix,
    )  # fmt: skip


def check_backward_ids(trace: HostTrace) -> Found:
    """Backward ops of different names that name the same forward op."""
    rows = events_of_kind(trace, K.BACKWARD)
    number = trace.stat_ints(stat_names.SEQUENCE_NUMBER, rows=rows)
    rows, number = rows[number >= 0], number[number >= 0]
    if not len(rows):
        return UNTOLD
    thread = trace.stat_ints(("Fwd thread id",), rows=rows)
    key, _ = number_pairs(number, thread)
    _, first = number_pairs(key, trace.event_names(rows))
    shared = np.bincount(key[first]) > 1
    count, percent = int(shared.sum()), _share(int(shared.sum()), len(shared))
    if not count:
        return None
    return Doubt(
        "shared_backward_ids", count, len(shared), percent,
        f"{counted(count, 'forward op')} {'is' if count == 1 else 'are'} named by several backward ops",
        "which forward op and module backward time belongs to",
        "record fewer steps, or one process at a time: the numbers of ops are used again",
    )  # fmt: skip


_ANNOTATE = (
    "torch.cuda.graph(..., enable_annotations=True), mark_kernels, and export_chrome_trace(...,"
    " cuda_graph_annotations=torch.cuda.graph_annotations.get_kernel_annotations())"
)
_FIX_BY_FRAMEWORK = {
    "pytorch": f"annotate the graphs: {_ANNOTATE}; on ROCm, traces of their capture help as well",
    "": "record while the graphs are captured too, with the host's activity",
}


def check_attribution(trace: HostTrace) -> Found:
    """Time of devices that nothing links to an op, where there may be ops: Nsight records programs that have none."""
    if trace.recorder == "nsight" and not trace.framework:
        return UNTOLD
    found = shares(trace)
    graphs, lost = found.time_ps[HowKnown.WHOLE_GRAPH], found.time_ps[HowKnown.NONE] - found.early_ps
    total = sum(found.time_ps)
    if not total:
        return UNTOLD
    percent = round(100.0 * (graphs + lost) / total, 4)
    if percent < _LOST_TIME:
        return None
    count = found.pieces[HowKnown.WHOLE_GRAPH] + found.pieces[HowKnown.NONE]
    fix = "record the host too, from before the work is launched"
    if len(events_of_kind(trace, K.OP)):
        fix = "record from before the work is launched; if it was, the profiler of that device does not link it to ops"
    return Doubt(
        "device_time_without_op", count, sum(found.pieces), percent,
        f"{percent:.3g} % of the device's time belongs to no op"
        + (", as CUDA graphs replay it" if graphs > lost else ""),
        "tables of ops, modules and layers",
        _FIX_BY_FRAMEWORK.get(trace.framework, _FIX_BY_FRAMEWORK[""]) if graphs > lost else fix,
        graphs <= lost,
        _percent_without_call(trace),
    )  # fmt: skip


def _percent_without_call(trace: HostTrace) -> float:
    """The share of the devices' time of which no call is known that launched it: what it waited for is not known, while
    work that a call outside of any op launched is placed as well as any other."""
    work = device_rows(trace)
    unknown, length = forest(trace).cause[work] < 0, trace.events.duration_ps[work]
    return _share(int(length[unknown].sum()), int(length.sum()))


# -- the recording itself ----------------------------------------------------------------------------------------------


def check_threads(trace: HostTrace) -> Found:
    """Calls of a thread of which one starts within another and ends after it, which no thread can do."""
    events = trace.events
    counts = is_thread_event(trace) & ((events.traits & np.uint8(Trait.ASYNC)) == 0) & (events.duration_ps > 0)
    # A range is begun by one call and ended by another: it may outlast the call that began it.
    counts[events_of_kind(trace, K.OVERHEAD, K.STEP_MARK, K.ANNOTATION)] = False
    counts[user_ranges(trace)] = False
    count, of = kernels.intervals.count_crossings(
        events.start_ps, events.duration_ps, events.line, counts, _clock_step_ps(trace)
    )
    percent = _share(count, of)
    if percent < _WORTH_SAYING:
        return None if of else UNTOLD
    return Doubt(
        "calls_overlap", count, of, percent,
        f"{counted(count, 'call')} of a thread {'ends' if count == 1 else 'end'} after the call around"
        f" {'it' if count == 1 else 'them'}: the host's clock jumped, or threads share a number",
        "self times, and which calls are nested",
        "record again; on a virtual machine set a stable clock source",
    )  # fmt: skip


def check_step_edges(trace: HostTrace) -> Found:
    """Steps that the recording cuts."""
    steps = steps_of(trace)
    count, of = int((~steps.complete).sum()), len(steps.complete)
    if not count:
        return UNTOLD if steps.source == "none" else None
    all_cut = count == of
    are = "step is" if count == 1 else "steps are"
    return Doubt(
        "steps_cut", count, of, _share(count, of),
        f"{count} {are} cut by the edge of the capture"
        + (", and no step is complete" if all_cut else " and left out of the statistics"),
        "the step time" if all_cut else "nothing else",
        "record a step more than you need",
        all_cut,
    )  # fmt: skip


def check_cost(trace: HostTrace) -> Found:
    """Steps that recording made much longer."""
    cost = profiling_cost(trace)
    if cost is None or not cost.disturbs:
        return UNTOLD if cost is None or cost.limits is None else None
    times = cost.ms_inside / cost.ms_before
    return Doubt(
        "slowed_by_recording", cost.steps_inside, None, cost.percent,
        f"recording disturbed the job: a step takes {times:.2g} times as long as before the capture"
        f" ({duration_text(cost.ms_before)})",
        "shares of the step, which are those of the disturbed steps: short ops and Python seem longer than they are",
        "record less: a lower python_tracer_level or host_tracer_level, no memory or stacks",
        True,
        round(100.0 * (1.0 - 1.0 / times), 4),
    )  # fmt: skip


_LOSSES = {"truncated", "damaged", "schema", "lost-packets", "too-many-lines"}
_CLOCKS = {"impossible-times", "unknown-clock"}


def check_losses(trace: HostTrace) -> Found:
    """Parts of the recording that are missing."""
    lost = [problem for problem in trace.problems if problem.code in _LOSSES]
    said = [text for text in trace.recorder_messages if "drop" in text.lower() or "lost" in text.lower()]
    if not lost and not said:
        return None
    first = lost[0].reason if lost else said[0]
    return Doubt(
        "events_lost", len(lost) + len(said), None, None,
        f"a part of the recording is missing: {first}",
        "all totals, and steps near the gap",
        (lost[0].hint if lost else None) or "record for a shorter time, or less",
        trace.partial or bool(said),
    )  # fmt: skip


def check_clocks(trace: HostTrace) -> Found:
    """Times that cannot be, or that are on a clock which nothing relates to the others."""
    found = [problem for problem in trace.problems if problem.code in _CLOCKS]
    if not found:
        return None
    return Doubt(
        "wrong_times", len(found), None, None, found[0].reason, "when these happened, and steps that they lie in",
        found[0].hint or "record again; on a virtual machine set a stable clock source",
        trace.partial,
    )  # fmt: skip


def check_account(trace: HostTrace) -> Found:
    """An account that contradicts what is counted: work of devices and ops, waits for input, the stated stop."""
    found = contradiction_of(trace)
    if found is None or found.percent < CONTRADICTS:
        return UNTOLD if found is None else None
    return Doubt(
        "account_contradicts_devices", 1, None, found.percent,
        f"for {found.percent:.1f} % of the step {found.said}",
        "the causes of that time, and what a change of them gives",
        "record launches, waits and streams as well, so that it is known what waits for what",
        found.percent >= 2 * CONTRADICTS,
        found.percent,
    )  # fmt: skip


CHECKS: dict[Callable[[HostTrace], Found], str] = {
    check_losses: "nothing was dropped",
    check_account: "the account agrees with what is counted",
    check_clocks: "all times are on one clock",
    check_cost: "recording did not slow the steps much",
    check_launches: "work starts after its launch",
    check_syncs: "waits end after their work",
    check_stream_waits: "streams wait for known events",
    check_lost_work: "every launched kernel is there",
    check_silent_devices: "launched work waits for recorded work",
    check_programs: "called programs are there",
    check_threads: "calls of a thread nest",
    check_attribution: "device work belongs to ops",
    check_collectives: "collectives name operation and size",
    check_backward_ids: "backward ops name their forward op",
    check_step_edges: "steps are whole",
}
"""Each check, and what holds where it finds nothing."""


# -- help --------------------------------------------------------------------------------------------------------------


def _launched_work(trace: HostTrace) -> tuple[I64, I64]:
    """Device work and the calls that launched it: rows of events."""
    call = forest(trace).cause[device_rows(trace)].astype(np.int64)
    known = call >= 0
    known[known] = is_thread_event(trace)[call[known]]
    return device_rows(trace)[known], call[known]


def _calls_with(trace: HostTrace, traits: CallTrait) -> I64:
    calls = events_of_kind(trace, K.RUNTIME_CALL)
    return calls[has_trait(trace, trace.events.type[calls], traits)] if len(calls) else calls


def _starts_by_id(trace: HostTrace, ids: I64) -> I64:
    """When the host called what has each correlation id: int64 of shape (n,), ps; -1 for none."""
    calls = _calls_with(trace, CallTrait.STREAM_WAITS)
    known = trace.stat_ints(stat_names.CORRELATION_ID, rows=calls)
    return np.append(trace.events.start_ps[calls], -1)[places_of(known, ids)]
