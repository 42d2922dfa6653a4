"""What the devices of a host run in the steps, and what the host does while they are idle.

A device is idle between two pieces of its work.  What the loop's thread does in such a gap explains it.  A gap in which
the host returns from waiting for the device is the cost of that wait: the host could not launch anything earlier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stepscope.analysis.account.selectors import work_launched_by
from stepscope.analysis.purpose.computing import update_ranges
from stepscope.analysis.purpose.forward import recomputed_ops
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, select_thread_events
from stepscope.analysis.trace.grouping import device_rows, forest, is_device_work
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.analysis.workers.collectives import collectives_of
from stepscope.model import EventKind, HostTrace, Trait, stat_names
from stepscope.model.arrays import I64, Mask, distinct, median, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.kernel_names import brief
from stepscope.vocabulary.lookup import has_trait, names_have, type_names
from stepscope.vocabulary.traits import CallTrait, KernelTrait, OpTrait
from stepscope.vocabulary.xla import bytes_copied, instruction_name

K = EventKind

SHORT_COLLECTIVE_PS = 200_000_000  # on a device: a shorter one costs latency, not bandwidth
_PS_OF_A_BYTE = 1_000  # at 1 GB/s, less than 10-gigabit Ethernet moves
SHORT_KERNEL_PS = 20_000_000  # a launch costs the host about half as much
_MOST_NAMES, _MOST_GAPS = 5, 3  # shown
_RUNTIME = (K.RUNTIME_CALL, K.SYNC, K.COPY_HOST_TO_DEVICE_CALL)
_COMPUTES = (K.KERNEL, K.DEVICE_OP)


@dataclass(frozen=True)
class Share:
    """Work or calls of one name: count, total time, and the bounds of the longest; times in ps."""

    name: str
    calls: int
    total_ps: int
    start_ps: int
    end_ps: int


@dataclass(frozen=True)
class WorkOfKind:
    """Device work of one kind: how many pieces, their total time in ps, the largest by name, and the bytes that the
    largest copy of a compiled program moves, by its shape."""

    calls: int
    total_ps: int
    largest: list[Share]
    most_bytes: int = 0


@dataclass(frozen=True)
class Update:
    """The calls of an optimizer in whole steps: its name, the time in which one or more of them run in ps, and how much
    work they launch."""

    name: str
    total_ps: int
    launches: int


@dataclass(frozen=True)
class DeviceTimes:
    """The devices of one host in its steps, summed over the steps, in ps.

    Attributes:
        steps: number of steps.
        marked: False if the whole capture counts as one step.
        observed_ps: the observed time (`find_steps.observed_time`).
        busy_ps: time with work on a device.
        work_ps: sum of all work, which exceeds `busy_ps` if devices or streams work in parallel.
        kernels, short_kernels: number of kernels, and of those shorter than SHORT_KERNEL_PS.
        compiled: kernels that belong to a compiled program or a recorded graph.
        update: the calls that update the parameters; None if they are not named.
        kinds: the work of each kind in `work_by_kind`, and the largest of it.
        pageable: copies to a device from memory that is not pinned.
        exposed_pageable_ps: time in which a device does nothing but such copies.
        out_to_pageable: copies from a device to such memory; exposed_out_ps: the same of these.
        migrations: pages of unified memory that moved, and for how long; None if none did.
        collectives, collective_ps: number and median duration of collectives.
        exposed_collectives_ps: time in which a device does nothing but collectives.
        communicating: the largest collectives.
        collectives_wait: most of their time is more than what they move takes: they wait for other ranks.
        idle_ps: the part of `observed_ps` without work on any device.
        longest_gaps: start and end of the longest gaps.
        after_sync_ps, syncs: the part of `idle_ps` in gaps in which the host returns from waiting for the device, and
            the number of these waits.
        calls: calls of the device runtime, with the idle time of the devices during them, longest first.
    """

    steps: int
    marked: bool
    observed_ps: int
    busy_ps: int
    work_ps: int
    kernels: int
    short_kernels: int
    compiled: int
    update: Update | None
    kinds: dict[str, WorkOfKind]
    pageable: int
    exposed_pageable_ps: int
    out_to_pageable: int
    exposed_out_ps: int
    migrations: Share | None
    collectives: int
    collective_ps: int
    exposed_collectives_ps: int
    communicating: list[Share]
    collectives_wait: bool
    idle_ps: int
    longest_gaps: list[tuple[int, int]]
    after_sync_ps: int
    syncs: int
    calls: list[Share]

    def elapsed_ms(self, time_ps: int) -> float:
        """Elapsed time per step of some work: what overlaps on several streams or devices adds up to more."""
        shrunk = min(self.busy_ps / self.work_ps, 1.0) if self.work_ps else 1.0
        return self.per_step_ms(time_ps * shrunk)

    def per_step_ms(self, total_ps: float) -> float:
        """A time of all steps as that of one, in ms."""
        return total_ps / self.steps / 1e9


def device_facts_of(trace: HostTrace) -> DeviceTimes | None:
    """The devices of a host; None without steps, or without device work in them."""
    return trace.derived("device facts", _find_device_facts)


def _find_device_facts(trace: HostTrace) -> DeviceTimes | None:
    steps, device = whole_steps(trace), is_device_work(trace)
    if not len(steps.number) or not device.any():
        return None
    whole = observed_time(trace)
    rows = _work_in_steps(trace)
    if not len(rows):
        return None
    kind, length = trace.events.kind[rows], trace.events.duration_ps[rows]
    computes, talks = is_any_kind(kind, _COMPUTES), is_any_kind(kind, (K.COLLECTIVE,))
    pageable, out = _is_pageable_copy(trace, rows), _is_pageable_copy(trace, rows, out=True)
    migrated = rows[has_trait(trace, trace.events.type[rows], KernelTrait.MIGRATES)]
    busy = Spans.union(*_start_and_end(trace, rows)) & whole
    return DeviceTimes(
        steps=len(steps.number),
        marked=steps.source != "none",
        observed_ps=whole.total,
        busy_ps=busy.total,
        work_ps=int(length.sum()),
        kernels=int(computes.sum()),
        short_kernels=int((length[computes] < SHORT_KERNEL_PS).sum()),
        compiled=int((computes & _is_compiled(trace, rows)).sum()),
        update=_find_update(trace),
        kinds={name: _sum_of_kind(trace, each) for name, each in work_by_kind(trace).items() if len(each)},
        pageable=int(pageable.sum()),
        exposed_pageable_ps=_exposed_time(trace, rows, pageable, whole),
        out_to_pageable=int(out.sum()),
        exposed_out_ps=_exposed_time(trace, rows, out, whole),
        migrations=next(iter(_largest_shares(trace, migrated)), None),
        collectives=int(talks.sum()),
        collective_ps=int(median(length[talks])) if talks.any() else 0,
        exposed_collectives_ps=_exposed_time(trace, rows, talks, whole),
        communicating=_largest_shares(trace, rows[talks]),
        collectives_wait=bool(talks.any()) and _mostly_wait(trace),
        **_idle_facts(trace, whole - busy),
    )


def _mostly_wait(trace: HostTrace) -> bool:
    """Whether collectives last more than twice as long as what they move takes on a slow link, by the sizes that were
    recorded."""
    found = collectives_of(trace)
    sizes, times = np.array(found.bytes, np.int64), np.array(found.duration_ps, np.int64)
    known = sizes > 0
    needed_ps = np.minimum(SHORT_COLLECTIVE_PS + sizes * _PS_OF_A_BYTE, times)
    return 2 * int(times[known].sum()) > int(times.sum()) and 2 * int(needed_ps[known].sum()) < int(times[known].sum())


def _work_in_steps(trace: HostTrace) -> I64:
    """Device work that runs in whole steps: rows of events."""
    rows = device_rows(trace)
    in_steps = observed_time(trace).touches(*_start_and_end(trace, rows))
    return rows if in_steps.all() else rows[in_steps]


def work_by_kind(trace: HostTrace) -> dict[str, I64]:
    """Device work in whole steps that could be less, by kind: rows of events.

    The kinds: `layout` only reorders data, `device_copies` moves data within a device, `wide_products` are matrix
    products and convolutions in 32 bits or more, `elementwise` are kernels of single elementwise ops, `attention` is
    what ops launch that compute attention in several steps, `recomputed` what forward ops launch in a backward pass,
    `copies_in` come from the host, `pageable` those of them from memory that is not pinned, `offload` is what compiled
    programs copy from and to the host's memory.
    """
    return trace.derived("device work by kind", _find_work_by_kind)


def _find_work_by_kind(trace: HostTrace) -> dict[str, I64]:
    rows = _work_in_steps(trace)
    kind, types = trace.events.kind[rows], trace.events.type[rows]
    computes = is_any_kind(kind, _COMPUTES)
    layout = computes & has_trait(trace, types, KernelTrait.REORDERS)
    copying = has_trait(trace, types, KernelTrait.COPIES) & computes & ~layout
    copying |= is_any_kind(kind, (K.COPY_DEVICE_TO_DEVICE,))
    offload = is_any_kind(kind, (K.COPY_HOST_TO_DEVICE, K.COPY_DEVICE_TO_HOST))
    offload &= has_trait(trace, types, KernelTrait.COPIES)
    narrow = (trace.events.traits[rows] & np.uint8(Trait.COMPUTES_16BIT)) != 0
    wide = computes & ~narrow & ~layout & ~copying & has_trait(trace, types, KernelTrait.WIDE_PRODUCT)
    single = computes & ~layout & ~copying & has_trait(trace, types, KernelTrait.ELEMENTWISE)
    return {
        "layout": rows[layout],
        "device_copies": rows[copying],
        "wide_products": rows[wide],
        "elementwise": rows[single],
        "attention": _unfused_attention(trace),
        "recomputed": work_launched_by(trace, recomputed_ops(trace)),
        "copies_in": rows[is_any_kind(kind, (K.COPY_HOST_TO_DEVICE,)) & ~offload],
        "offload": rows[offload],
        "pageable": rows[_is_pageable_copy(trace, rows)],
    }


def _unfused_attention(trace: HostTrace) -> I64:
    """Device work launched by the batched products and softmaxes of attention, if there are at least two products for
    each softmax: a fused kernel leaves none of them."""
    ops = events_of_kind(trace, K.OP)
    ops = ops[whole_steps(trace).label[ops] >= 0]
    softmax, product = (
        has_trait(trace, trace.events.type[ops], trait) for trait in (OpTrait.SOFTMAX, OpTrait.BATCHED_PRODUCT)
    )
    if not softmax.any() or product.sum() < 2 * softmax.sum():
        return np.empty(0, np.int64)
    return work_launched_by(trace, ops[softmax | product])


def _find_update(trace: HostTrace) -> Update | None:
    rows = update_ranges(trace)
    if not len(rows):
        return None
    launched = work_launched_by(trace, rows)
    return Update(trace.name_of(int(rows[0])), spans_of(trace, rows).total, len(launched))


def _sum_of_kind(trace: HostTrace, rows: I64) -> WorkOfKind:
    names = type_names(trace, used_rows(trace.events.type[rows], len(trace.event_types)))
    return WorkOfKind(
        len(rows),
        int(trace.events.duration_ps[rows].sum()),
        _largest_shares(trace, rows),
        max(map(bytes_copied, names), default=0),
    )


def _start_and_end(trace: HostTrace, rows: I64) -> tuple[I64, I64]:
    start = trace.events.start_ps[rows]
    return start, start + trace.events.duration_ps[rows]


def _exposed_time(trace: HostTrace, rows: I64, chosen: Mask, whole: Spans) -> int:
    """Time in which the devices do only the chosen work."""
    if not chosen.any():
        return 0
    return (
        (Spans.union(*_start_and_end(trace, rows[chosen])) - Spans.union(*_start_and_end(trace, rows[~chosen]))) & whole
    ).total


# -- what runs on the devices --------------------------------------------------------------------------------------


def _is_pageable_copy(trace: HostTrace, rows: I64, out: bool = False) -> Mask:
    """Whether each event is a copy to a device, or from one, whose name or details show that the host's side is not
    pinned."""
    kind = K.COPY_DEVICE_TO_HOST if out else K.COPY_HOST_TO_DEVICE
    trait = KernelTrait.TO_PAGEABLE if out else KernelTrait.FROM_PAGEABLE
    copies = np.flatnonzero(is_any_kind(trace.events.kind[rows], (kind,)))
    texts, inverse = np.unique(trace.stat_strings(stat_names.COPY_DETAILS, rows=rows[copies]), return_inverse=True)
    details = names_have((trace.strings[text] for text in texts.tolist()), trait)
    found = np.zeros(len(rows), np.bool_)
    found[copies] = has_trait(trace, trace.events.type[rows[copies]], trait) | details[inverse]
    return found


def _is_compiled(trace: HostTrace, rows: I64) -> Mask:
    """Whether each event belongs to a compiled program or recorded graph, and so is not launched individually."""
    of_program = trace.stat_strings(stat_names.HLO_MODULE, rows=rows) > 0
    graph = trace.stat_ints(stat_names.GRAPH_NODE_ID, 0, rows=rows) > 0
    found: Mask = of_program | graph
    return found


def _largest_shares(trace: HostTrace, rows: I64) -> list[Share]:
    return _group_by_name(trace, rows, trace.events.duration_ps[rows])


def _group_by_name(trace: HostTrace, rows: I64, time_ps: I64) -> list[Share]:
    """The events grouped by name, largest total of `time_ps` first."""
    types = trace.events.type[rows]
    total, calls = np.bincount(types, weights=time_ps), np.bincount(types)
    merged: dict[str, list[int]] = {}
    for at in np.argsort(-total, kind="stable")[: 4 * _MOST_NAMES].tolist():  # several types may have one name
        if total[at]:
            merged.setdefault(brief(instruction_name(trace.strings[trace.event_types.name[at]])), []).append(at)
    found = [(name, of, int(total[of].sum())) for name, of in merged.items()]
    found.sort(key=lambda each: (-each[2], each[0]))
    return [
        Share(name, int(calls[of].sum()), time, *_longest_bounds(trace, rows[types == of[0]], time_ps[types == of[0]]))
        for name, of, time in found[:_MOST_NAMES]
    ]


def _longest_bounds(trace: HostTrace, rows: I64, time_ps: I64) -> tuple[int, int]:
    row = rows[int(np.argmax(time_ps))]
    start = int(trace.events.start_ps[row])
    return start, start + int(trace.events.duration_ps[row])


def _longest_gaps(length: I64) -> list[int]:
    """Rows of the longest gaps, longest first."""
    most = np.argpartition(length, -_MOST_GAPS)[-_MOST_GAPS:] if len(length) > _MOST_GAPS else np.arange(len(length))
    order: list[int] = most[np.lexsort((most, -length[most]))].tolist()
    return order


# -- what the host does meanwhile ----------------------------------------------------------------------------------


def _closes_capture(trace: HostTrace, calls: I64) -> Mask:
    """Which of some calls wait when nothing is launched any more in a capture without steps, as before one is stopped:
    bool of shape (calls,)."""
    launches = forest(trace).cause[device_rows(trace)]
    if whole_steps(trace).source != "none" or not (launches >= 0).any():
        return np.zeros(len(calls), np.bool_)
    last = trace.events.start_ps[launches[launches >= 0]].max()
    found: Mask = (trace.events.kind[calls] == K.SYNC) & (trace.events.start_ps[calls] > last)
    return found


def _idle_facts(trace: HostTrace, idle: Spans) -> dict[str, Any]:
    length = idle.end - idle.start
    calls = select_thread_events(trace, events_of_kind(trace, *_RUNTIME))
    calls = calls[~_closes_capture(trace, calls)]
    start, end = _start_and_end(trace, calls)
    waits = is_any_kind(trace.events.kind[calls], (K.SYNC,))
    # A call that waits for its own copy to the device fetches nothing.
    copies_in = distinct(forest(trace).cause[events_of_kind(trace, K.COPY_HOST_TO_DEVICE)])
    waits |= has_trait(trace, trace.events.type[calls], CallTrait.BLOCKING_COPY) & ~np.isin(calls, copies_in)
    begins = np.searchsorted(idle.start, end[waits], side="right") - 1  # the gap in which each wait may end
    meanwhile = idle.overlap_ps(start, end)
    hit = begins >= 0
    hit[hit] = idle.end[begins[hit]] > end[waits][hit]
    return {
        "idle_ps": idle.total,
        "after_sync_ps": int(length[distinct(begins[hit])].sum()),
        "syncs": int(hit.sum()),
        "calls": _group_by_name(trace, calls[meanwhile > 0], meanwhile[meanwhile > 0]),
        "longest_gaps": [(int(idle.start[at]), int(idle.end[at])) for at in _longest_gaps(length)],
    }
