"""What changes give the median step of one host: the replay of its model with each, for the rules to choose from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.foretell import Foretold, foretell
from stepscope.analysis.account.graph import EdgeKind
from stepscope.analysis.account.interventions import Estimate, Intervention, Move, Overlap, ReplayAsGraph, Scale
from stepscope.analysis.account.model import StepModel, model_of
from stepscope.analysis.account.parts import Part, part_of_cause, part_of_events
from stepscope.analysis.facts.device_facts import update_calls, work_by_kind
from stepscope.analysis.facts.factors import (
    IN_16_BITS,
    WORKERS,
    estimate_attention,
    estimate_fused,
    estimate_update,
)
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

LONG_CALL_PS = 1_000_000_000  # launching takes a hundredth of it: such a call waits for something
_LEAST = 0.03  # of the step: no advice is given on less


@dataclass(frozen=True)
class Changes:
    """What each change gives the median step.

    Attributes:
        foretold: by the name of the change: a cause of the account for removing it, or a key of CHANGES.
        why_not: why nothing is foretold; None where the model carries.
        are_launches_linked: the trace links device work to the calls that launched it; else nothing is known of
            changes of how it is launched.
    """

    foretold: dict[str, Foretold]
    why_not: str | None
    are_launches_linked: bool


def changes_of(trace: HostTrace) -> Changes | None:
    """What changes give the median step of a host, made once per trace; None where no steps were found."""
    return trace.derived("changes", _changes)


def _changes(trace: HostTrace) -> Changes | None:
    model = model_of(trace)
    if model is None:
        return None
    if model.why_not is not None:
        return Changes({}, model.why_not, False)
    found = {name: foretell(model, changes) for name, changes in _worthwhile(model)}
    linked = bool((model.graph.edges.kind == EdgeKind.LAUNCH).any())
    return Changes({name: each for name, each in found.items() if each is not None}, None, linked)


def _worthwhile(model: StepModel) -> list[tuple[str, list[Intervention]]]:
    """The changes that may matter: of causes and parts that the steps spend more than a little on."""
    step_ps = float(model.graph.recorded_step_ps[model.steps].sum())
    own = model.shares.own_ps.sum_by_cause(np.isin(model.graph.step, model.steps))
    least = _LEAST * step_ps
    changes: list[tuple[str, list[Intervention]]] = []
    for cause in Cause:
        large = own[cause] >= least or model.spent_ps[cause] >= _LEAST * model.graph.recorded_step_ps[model.median]
        if cause != Cause.UNKNOWN and large:
            part = part_of_cause(model, cause)
            changes.append((cause.name.lower(), [Scale(part)]))
            if cause in _OTHERWISE:
                name, change = _OTHERWISE[cause]
                changes.append((name, [change(model, part)]))
    if is_device_work(model.trace).any():
        changes += [(name, [change]) for name, change in _change_events(model) if change.part.own_ps.sum() >= least]
        changes.append(("waits", _remove_waits(model)))
    return changes


# What else can be done about a cause than removing it.
_OTHERWISE: Mapping[Cause, tuple[str, Callable[..., Intervention]]] = {
    Cause.INPUT: ("workers", lambda model, part: Move(part, WORKERS)),
    Cause.LAUNCH: ("graph", lambda model, part: ReplayAsGraph(_drop_long_stretches(part))),
    Cause.COMMUNICATION: ("overlap", lambda model, part: Overlap(part)),
}


def _drop_long_stretches(part: Part) -> Part:
    """The part without what takes so long between two launches that it waits or computes: that stays however the work
    is launched."""
    blocked = part.own_ps.sum_by_node() >= LONG_CALL_PS
    return replace(part, own_ps=part.own_ps.select_nodes(~blocked))


def _remove_waits(model: StepModel) -> list[Intervention]:
    """No calls that wait for a device, and none that copy or wait for long."""
    rows = events_of_kind(model.trace, EventKind.RUNTIME_CALL)
    rows = rows[model.trace.events.duration_ps[rows] >= LONG_CALL_PS]
    rows = rows[has_trait(model.trace, model.trace.events.type[rows], CallTrait.MAY_BLOCK)]
    waits: list[Intervention] = [Scale(part_of_cause(model, Cause.SYNC))]
    return [*waits, Scale(part_of_events(model, rows))] if len(rows) else waits


def _change_events(model: StepModel) -> list[tuple[str, Intervention]]:
    """Changes of some device work, or of some calls."""
    found: list[tuple[str, Intervention]] = []
    for name, rows in work_by_kind(model.trace).items():
        if len(rows):
            found.append((name, Scale(part_of_events(model, rows), _factor(model.trace, name, rows))))
    for name, rows in (("driver_calls", _driver_calls(model.trace)), ("optimizer", update_calls(model.trace))):
        if len(rows):
            found.append((name, Scale(part_of_events(model, rows), _factor(model.trace, name, rows))))
    return found


def _factor(trace: HostTrace, name: str, rows: I64) -> Estimate | float:
    """What is left of the time of some events after a change; nothing where the change removes them."""
    if name == "wide_products":
        return IN_16_BITS
    estimate = _ESTIMATES.get(name)
    return estimate(trace, rows) if estimate is not None else 0.0


_ESTIMATES: Mapping[str, Callable[[HostTrace, I64], Estimate]] = {
    "elementwise": estimate_fused, "attention": estimate_attention, "optimizer": estimate_update,
}  # fmt: skip


def _driver_calls(trace: HostTrace) -> I64:
    rows = events_of_kind(trace, EventKind.RUNTIME_CALL)
    return rows[has_trait(trace, trace.events.type[rows], CallTrait.TAKES_MEMORY)]
