"""What the memory at a peak is for: parameters, gradients, state of the optimizer, activations, input, or temporary.

An allocator records for whom it allocates in few frameworks.  Otherwise the purpose follows from where an allocation is
made and how long it lives:

- in an optimizer's update, and kept after it: state of the optimizer
- in the backward pass, and kept until the next update: a gradient
- freed before the op that made it ends, or in the pass that made it: temporary
- by what makes batches: input
- elsewhere in a step: an activation, which the forward pass keeps for the backward pass; one that the next step still
  finds is kept from step to step
- before the first step, and kept: what the program made at its start

JAX allocates the results and the temporary memory of a program at once; the program's own memory tells more.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stepscope.analysis.resources.allocations import UNKNOWN, Allocations, Lifetimes, find_op_around, op_names
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.call_sites import call_sites, site_text
from stepscope.analysis.trace.columns import events_of_kind, is_thread_event
from stepscope.analysis.trace.grouping import spread_labels
from stepscope.analysis.trace.module_calls import backward_modules, module_calls
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I32, I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.python import is_frame
from stepscope.vocabulary.scopes import is_gradient, is_of_optimizer, layer_of
from stepscope.vocabulary.torch import MODULE_PREFIX
from stepscope.vocabulary.traits import RangeTrait

PURPOSES = (
    "parameters", "gradients", "optimizer_state", "activations", "input_batches", "temporary", "compiled_programs",
    "before_the_capture", "unknown", "kept_over_steps",
)  # fmt: skip
PARAMETERS, GRADIENTS, OPTIMIZER, ACTIVATIONS, INPUT, TEMPORARY, PROGRAMS, BEFORE, UNCLEAR, KEPT = range(len(PURPOSES))
MOST_ROWS = 200
"""Of one memory; what has no row of its own is summed by purpose."""

# What allocators record: TensorFlow the region of an op's memory, a snapshot of PyTorch what its stack shows.
_REGIONS = {
    "persist": PARAMETERS, "dynamic": PARAMETERS, "temp": TEMPORARY, "parameters": PARAMETERS, "gradients": GRADIENTS,
    "optimizer_state": OPTIMIZER, "activations": ACTIVATIONS,
}  # fmt: skip
_MAKES_INPUT = (
    EventKind.INPUT_WAIT, EventKind.ITERATOR, EventKind.INPUT_CALLBACK, EventKind.INPUT_HANDOVER,
)  # fmt: skip
_COMPILES_WHOLE = ("jax",)  # a step is a program, whose memory is allocated at once
_FOREVER = np.iinfo(np.int64).max
_UPDATE, _BACKWARD, _INPUT = range(3)


@dataclass(frozen=True)
class Held:
    """Memory that one line of one layer holds at the peak for one purpose; None where the profile does not say."""

    purpose: str
    layer: str | None
    line: str | None
    allocated: int
    occurrences: int


@dataclass(frozen=True)
class _Places:
    """Where allocations are made: `around` is the innermost update, backward op or making of input, or -1."""

    around: I32
    freed_ps: I64
    op: I64
    op_end_ps: I64


def hold_at_peak(
    trace: HostTrace, memory: Allocations, lives: Lifetimes, allocated: I64, alive: I64, stack: int, before: int
) -> list[Held]:
    """What the memory at a peak is for, the most first.

    Args:
        trace: the trace.
        memory, lives: the events of the memory.
        allocated: int64 of shape (events of the memory,), bytes, UNKNOWN where not known.
        alive: int64 of shape (n,), which of them are alive at the peak.
        stack: bytes of the stack of programs.
        before: bytes in use that were allocated before the capture.
    """
    places = _find_places(trace, memory, lives, alive)
    purpose = _find_purposes(trace, memory, alive, places)
    layer, line = _find_layers(trace, memory.event[alive], places.op), call_sites(trace, memory.event[alive])
    keys, group = np.unique(np.stack([purpose, layer, line]), axis=1, return_inverse=True)
    size = np.bincount(group.ravel(), np.maximum(allocated[alive], 0), minlength=keys.shape[1])
    count = np.bincount(group.ravel(), minlength=keys.shape[1])
    found = [
        Held(PURPOSES[what], _layer_name(trace, of), _line_name(trace, at), int(size[row]), int(count[row]))
        for row, (what, of, at) in enumerate(keys.T.tolist())
    ]
    fixed = ((TEMPORARY, stack), (BEFORE, before))
    found += [Held(PURPOSES[what], None, None, held, 1) for what, held in fixed if held > 0]
    return shorten_held(found, MOST_ROWS)


def shorten_held(rows: Iterable[Held], most: int) -> list[Held]:
    """Rows of equal texts summed, the most memory first; those after `most` rows are summed by purpose."""
    ordered = _sum_rows((row.purpose, row.layer, row.line, row) for row in rows)
    if len(ordered) <= most:
        return ordered
    return ordered[:most] + _sum_rows((row.purpose, None, None, row) for row in ordered[most:])


def _sum_rows(rows: Iterable[tuple[str, str | None, str | None, Held]]) -> list[Held]:
    sums: dict[tuple[str, str | None, str | None], list[int]] = {}
    for purpose, layer, line, row in rows:
        total = sums.setdefault((purpose, layer, line), [0, 0])
        total[0] += row.allocated
        total[1] += row.occurrences
    found = [Held(*key, allocated, count) for key, (allocated, count) in sums.items()]
    return sorted(found, key=lambda row: (-row.allocated, row.purpose, row.layer or "", row.line or ""))


# -- where and how long ------------------------------------------------------------------------------------------


def _find_places(trace: HostTrace, memory: Allocations, lives: Lifetimes, alive: I64) -> _Places:
    events = memory.event[alive]
    ends = np.append(memory.time_ps, _FOREVER)[lives.end[alive]]
    inner = find_op_around(trace, events)
    end = trace.events.start_ps[np.maximum(inner, 0)] + trace.events.duration_ps[np.maximum(inner, 0)]
    return _Places(
        around=trace.derived("parts of training around", _find_parts)[events],
        freed_ps=ends,
        op=op_names(trace, events, memory.columns["op"][alive].texts()),
        op_end_ps=np.where(inner >= 0, end, -_FOREVER),
    )


def _find_parts(trace: HostTrace) -> I32:
    """The innermost update, backward op or making of input around each event: int32 of shape (events,), -1 for none."""
    label = np.full(len(trace.events), -1, np.int32)
    label[_updates(trace)] = _UPDATE
    label[events_of_kind(trace, EventKind.BACKWARD)] = _BACKWARD
    for kind in _MAKES_INPUT:
        label[events_of_kind(trace, kind)] = _INPUT
    return spread_labels(trace, label)


def _updates(trace: HostTrace) -> I64:
    named = events_of_kind(trace, EventKind.ANNOTATION)
    named = named[is_thread_event(trace)[named]]
    return named[has_trait(trace, trace.events.type[named], RangeTrait.UPDATES_MODEL)] if len(named) else named


# -- purposes ----------------------------------------------------------------------------------------------------


def _find_purposes(trace: HostTrace, memory: Allocations, alive: I64, places: _Places) -> I64:
    """int64 of shape (n,), places in PURPOSES."""
    made = memory.time_ps[alive]
    update, backward = _named_parts(trace, places)
    is_freed_at_once = places.freed_ps <= places.op_end_ps
    outlives = places.freed_ps > _next_update(trace, made)
    chosen = np.full(len(alive), PROGRAMS if trace.framework in _COMPILES_WHOLE else ACTIVATIONS, np.int64)
    chosen[_is_kept_over_steps(trace, memory.event[alive], places) & (chosen == ACTIVATIONS)] = KEPT
    chosen[(places.op < 0) & (places.around < 0)] = UNCLEAR
    chosen[_is_before_steps(trace, memory.event[alive], places)] = BEFORE
    chosen[places.around == _INPUT] = INPUT
    chosen[backward] = np.where(outlives, GRADIENTS, TEMPORARY)[backward]
    chosen[update] = np.where(places.freed_ps == _FOREVER, OPTIMIZER, TEMPORARY)[update]
    chosen[is_freed_at_once] = TEMPORARY
    _take_regions(trace, memory.columns["region"][alive].texts(), chosen)
    return chosen


def _is_before_steps(trace: HostTrace, events: I64, places: _Places) -> Mask:
    """Which allocations are made before the thread of the steps begins the first one, and last into it."""
    steps = steps_of(trace)
    if steps.line < 0 or not len(steps.start_ps):
        return np.zeros(len(events), np.bool_)
    first = int(steps.start_ps.min())
    return (trace.events.start_ps[events] < first) & (places.freed_ps > first) & (steps.label[events] < 0)


def _is_kept_over_steps(trace: HostTrace, events: I64, places: _Places) -> Mask:
    """Which allocations are made in a step, and found by the next one that is recorded."""
    steps = steps_of(trace)
    label = steps.label[events]
    until = np.append(steps.until_ps, _FOREVER)[label]
    has_next = np.append(np.arange(1, len(steps.until_ps) + 1) < len(steps.until_ps), False)[label]
    kept: Mask = (label >= 0) & (places.freed_ps > until) & has_next
    return kept


def _named_parts(trace: HostTrace, places: _Places) -> tuple[Mask, Mask]:
    """Which allocations are made in an update, and which in a backward pass: by what is around, else by the op's
    name."""
    update, backward = places.around == _UPDATE, places.around == _BACKWARD
    ops = distinct(places.op[places.around < 0])
    named = [(row, trace.strings[row]) for row in ops.tolist() if row >= 0]
    update |= np.isin(places.op, [row for row, name in named if is_of_optimizer(name)])
    backward |= np.isin(places.op, [row for row, name in named if is_gradient(name)])
    return update, backward & ~update


def _next_update(trace: HostTrace, made: I64) -> I64:
    """When the next update of the model starts after each moment; never before it without any update."""
    starts = np.sort(trace.events.start_ps[_updates(trace)])
    if not len(starts):
        return made
    return np.append(starts, _FOREVER - 1)[np.searchsorted(starts, made)]


def _take_regions(trace: HostTrace, regions: I64, chosen: I64) -> None:
    for row in distinct(regions).tolist():
        purpose = _REGIONS.get(trace.strings[row]) if row >= 0 else None
        if purpose is not None:
            chosen[regions == row] = purpose


# -- layers and lines --------------------------------------------------------------------------------------------


def _find_layers(trace: HostTrace, events: I64, op: I64) -> I64:
    """The module around each allocation, else the op whose name holds the layer, as string rows; -1 for neither.

    Names of ops are numbered on from the last string.
    """
    calls = module_calls(trace)
    if not len(calls):
        return np.where(op >= 0, op + len(trace.strings), UNKNOWN)
    inside = np.full(len(trace.events), -1, np.int32)
    inside[calls] = np.arange(len(calls), dtype=np.int32)
    spread_labels(trace, inside)
    call = inside[events]
    call = np.where(call >= 0, call, backward_modules(trace, inside)[events])
    names = trace.event_types.name[trace.events.type[calls]].astype(np.int64)
    return np.where(call >= 0, names[np.maximum(call, 0)], UNKNOWN)


def _layer_name(trace: HostTrace, row: int) -> str | None:
    if row < 0:
        return None
    if row >= len(trace.strings):
        name = trace.strings[row - len(trace.strings)]
        return None if is_frame(name) else layer_of(name) or None
    return trace.strings[row].removeprefix(MODULE_PREFIX)


def _line_name(trace: HostTrace, row: int) -> str | None:
    return (site_text(trace.strings[row]) or None) if row >= 0 else None
