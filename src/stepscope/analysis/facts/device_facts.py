"""What the devices of a host do in the steps: what they run, and what the host does while they stand idle.

A device stands idle between two pieces of its work.  What the loop's thread does in such a gap tells why.  A gap in
which the host comes back from waiting for the device is the price of that wait: the host could launch nothing before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stepscope.analysis.steps.find_steps import observed, whole_steps
from stepscope.analysis.trace.columns import of_kinds, on_threads
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.analysis.trace.spans import Spans
from stepscope.model import EventKind, HostTrace, Trait, stat_names
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.kernel_names import brief
from stepscope.vocabulary.lookup import has_trait, names_have
from stepscope.vocabulary.traits import CallTrait, KernelTrait
from stepscope.vocabulary.xla import instruction_name

K = EventKind

SHORT_KERNEL_PS = 20_000_000  # a launch costs the host about half as much
_MOST_NAMES = 5
_MOST_GAPS = 3
_RUNTIME = (K.RUNTIME_CALL, K.SYNC, K.COPY_HOST_TO_DEVICE_CALL)
_COMPUTES = (K.KERNEL, K.DEVICE_OP)


@dataclass(frozen=True)
class Share:
    """Work or calls of one name: how often, for how long altogether, and when the longest of them, in ps."""

    name: str
    calls: int
    total_ps: int
    start_ps: int
    end_ps: int


@dataclass(frozen=True)
class DeviceFacts:
    """The devices of one host in its steps, all steps together, in ps.

    Attributes:
        steps: how many; `marked` is False where the whole capture counts as one.
        observed_ps: the time that is looked at (`columns.observed`).
        busy_ps: time with work on a device.
        work_ps: all pieces of work added up, which is more where devices or streams work at a time.
        kernels: pieces of computation; `short_kernels` of them last less than SHORT_KERNEL_PS.
        compiled: those of them that belong to a compiled program or a recorded graph.
        layout_ps: time of kernels that only bring data into another order; `layout` lists the largest.
        copying_ps: the same of those that copy or join data, copies inside a device included; `copying` lists them.
        wide_products_ps: time of matrix products and convolutions in 32 bits or more; `wide_products` lists them.
        pageable: copies to a device out of memory that is not pinned; `exposed_pageable_ps` is the time in which they
            are all that a device does.
        collectives: pieces of communication; `collective_ps` their median length, `exposed_collectives_ps` the time in
            which they are all that a device does; `communicating` lists the largest.
        idle_ps: the part of `observed_ps` without work on any device.
        gaps: how many times without work there are; `longest_gap_ps` is the longest, `longest_gaps` are its begin and
            end and those of the next ones.
        after_sync_ps: the part of `idle_ps` in gaps during which the host comes back from waiting for the device;
            `syncs` counts these waits.
        calls: calls into the devices' runtime, with the time in which the devices stand idle meanwhile, longest first.
    """

    steps: int
    marked: bool
    observed_ps: int
    busy_ps: int
    work_ps: int
    kernels: int
    short_kernels: int
    compiled: int
    layout_ps: int
    layout: list[Share]
    copying_ps: int
    copying: list[Share]
    wide_products_ps: int
    wide_products: list[Share]
    pageable: int
    exposed_pageable_ps: int
    collectives: int
    collective_ps: int
    exposed_collectives_ps: int
    communicating: list[Share]
    idle_ps: int
    gaps: int
    longest_gap_ps: int
    longest_gaps: list[tuple[int, int]]
    after_sync_ps: int
    syncs: int
    calls: list[Share]


def device_facts_of(trace: HostTrace) -> DeviceFacts | None:
    """The devices of a host; None without steps or without work of a device in them."""
    return trace.derived("device facts", _find)


def _find(trace: HostTrace) -> DeviceFacts | None:
    steps, device = whole_steps(trace), is_device_work(trace)
    if not len(steps.number) or not device.any():
        return None
    whole = observed(trace)
    rows = np.flatnonzero(device)
    in_steps = whole.touches(*_times(trace, rows))
    rows = rows if in_steps.all() else rows[in_steps]
    if not len(rows):
        return None
    kind, length = trace.events.kind[rows], trace.events.duration_ps[rows]
    narrow = (trace.events.traits[rows] & np.uint8(Trait.COMPUTES_16BIT)) != 0
    computes, talks = of_kinds(kind, _COMPUTES), of_kinds(kind, (K.COLLECTIVE,))
    types = trace.events.type[rows]
    layout = computes & has_trait(trace, types, KernelTrait.REORDERS)
    copying, wide = has_trait(trace, types, KernelTrait.COPIES), has_trait(trace, types, KernelTrait.WIDE_PRODUCT)
    copying = (copying & computes & ~layout) | of_kinds(kind, (K.COPY_DEVICE_TO_DEVICE,))
    pageable = _from_pageable(trace, rows)
    wide &= computes & ~narrow & ~layout & ~copying
    busy = Spans.of(*_times(trace, rows)) & whole
    return DeviceFacts(
        steps=len(steps.number),
        marked=steps.source != "none",
        observed_ps=whole.total,
        busy_ps=busy.total,
        work_ps=int(length.sum()),
        kernels=int(computes.sum()),
        short_kernels=int((length[computes] < SHORT_KERNEL_PS).sum()),
        compiled=int((computes & _compiled(trace, rows)).sum()),
        layout_ps=int(length[layout].sum()),
        layout=_largest(trace, rows[layout]),
        copying_ps=int(length[copying].sum()),
        copying=_largest(trace, rows[copying]),
        wide_products_ps=int(length[wide].sum()),
        wide_products=_largest(trace, rows[wide]),
        pageable=int(pageable.sum()),
        exposed_pageable_ps=_exposed(trace, rows, pageable, whole),
        collectives=int(talks.sum()),
        collective_ps=int(np.median(length[talks])) if talks.any() else 0,
        exposed_collectives_ps=_exposed(trace, rows, talks, whole),
        communicating=_largest(trace, rows[talks]),
        **_idle(trace, whole - busy),
    )


def _times(trace: HostTrace, rows: I64) -> tuple[I64, I64]:
    start = trace.events.start_ps[rows]
    return start, start + trace.events.duration_ps[rows]


def _exposed(trace: HostTrace, rows: I64, chosen: Mask, whole: Spans) -> int:
    """Time in which some of the work is all that the devices do."""
    if not chosen.any():
        return 0
    return ((Spans.of(*_times(trace, rows[chosen])) - Spans.of(*_times(trace, rows[~chosen]))) & whole).total


# -- what runs on the devices --------------------------------------------------------------------------------------


def _from_pageable(trace: HostTrace, rows: I64) -> Mask:
    """Copies to a device whose name or details say that their source is not pinned."""
    copies = np.flatnonzero(of_kinds(trace.events.kind[rows], (K.COPY_HOST_TO_DEVICE,)))
    texts, inverse = np.unique(trace.stat_strings(stat_names.COPY_DETAILS, rows=rows[copies]), return_inverse=True)
    details = names_have((trace.strings[text] for text in texts.tolist()), KernelTrait.FROM_PAGEABLE)
    found = np.zeros(len(rows), np.bool_)
    found[copies] = has_trait(trace, trace.events.type[rows[copies]], KernelTrait.FROM_PAGEABLE) | details[inverse]
    return found


def _compiled(trace: HostTrace, rows: I64) -> Mask:
    """Work of a compiled program or of a recorded graph: nobody launches its pieces one by one."""
    of_program = trace.stat_strings(stat_names.HLO_MODULE, rows=rows) > 0
    graph = trace.stat_ints(stat_names.GRAPH_NODE_ID, 0, rows=rows) > 0
    found: Mask = of_program | graph
    return found


def _largest(trace: HostTrace, rows: I64) -> list[Share]:
    return _shares(trace, rows, trace.events.duration_ps[rows])


def _shares(trace: HostTrace, rows: I64, time_ps: I64) -> list[Share]:
    """Some events by name, those that take most of a time first."""
    types = trace.events.type[rows]
    total, calls = np.bincount(types, weights=time_ps), np.bincount(types)
    merged: dict[str, list[int]] = {}
    for at in np.argsort(-total, kind="stable")[: 4 * _MOST_NAMES].tolist():  # several types may have one name
        if total[at]:
            merged.setdefault(brief(instruction_name(trace.strings[trace.event_types.name[at]])), []).append(at)
    found = [(name, of, int(total[of].sum())) for name, of in merged.items()]
    found.sort(key=lambda each: (-each[2], each[0]))
    return [
        Share(name, int(calls[of].sum()), time, *_longest(trace, rows[types == of[0]], time_ps[types == of[0]]))
        for name, of, time in found[:_MOST_NAMES]
    ]


def _longest(trace: HostTrace, rows: I64, time_ps: I64) -> tuple[int, int]:
    row = rows[int(np.argmax(time_ps))]
    start = int(trace.events.start_ps[row])
    return start, start + int(trace.events.duration_ps[row])


def _longest_of(length: I64) -> list[int]:
    """Where the longest gaps are, longest first."""
    most = np.argpartition(length, -_MOST_GAPS)[-_MOST_GAPS:] if len(length) > _MOST_GAPS else np.arange(len(length))
    order: list[int] = most[np.lexsort((most, -length[most]))].tolist()
    return order


# -- what the host does meanwhile ----------------------------------------------------------------------------------


def _idle(trace: HostTrace, idle: Spans) -> dict[str, Any]:
    length = idle.end - idle.start
    calls = np.flatnonzero(on_threads(trace) & of_kinds(trace.events.kind, _RUNTIME))
    start, end = _times(trace, calls)
    waits = of_kinds(trace.events.kind[calls], (K.SYNC,))
    waits |= has_trait(trace, trace.events.type[calls], CallTrait.BLOCKING_COPY)
    begins = np.searchsorted(idle.start, end[waits], side="right") - 1  # the gap in which each wait may end
    meanwhile = idle.covered(start, end)
    hit = begins >= 0
    hit[hit] = idle.end[begins[hit]] > end[waits][hit]
    return {
        "idle_ps": idle.total,
        "gaps": len(length),
        "longest_gap_ps": int(length.max(initial=0)),
        "after_sync_ps": int(length[np.unique(begins[hit])].sum()),
        "syncs": int(hit.sum()),
        "calls": _shares(trace, calls[meanwhile > 0], meanwhile[meanwhile > 0]),
        "longest_gaps": [(int(idle.start[at]), int(idle.end[at])) for at in _longest_of(length)],
    }
