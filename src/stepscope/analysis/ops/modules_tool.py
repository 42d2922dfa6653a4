"""The tree of a model's modules, with the time of each on the host and on the devices.

The tree is the call tree: a module is below the module that called it, and calls along the same path form one row.
Device time is the time of work launched while the module runs. Backward work belongs to the module whose forward pass
it differentiates, if the trace links the two; it has separate columns.

PyTorch records modules when it records Python calls: `torch.profiler.profile(with_stack=True)`. Work that CUDA graphs
replay belongs to the module that its node is annotated with, by the module's path in the model; it has no calls on the
host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from stepscope.analysis.trace.attribution import Attribution, attribute, event_name_rows
from stepscope.analysis.trace.graph_annotations import annotations_of
from stepscope.analysis.trace.grouping import forest, spread_labels
from stepscope.analysis.trace.module_calls import backward_modules, module_calls
from stepscope.analysis.trace.origin import Origin, header, origin_of, session_recorder
from stepscope.analysis.trace.remedies import MODULES, remedy
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, Mask, number_paths, sum_groups
from stepscope.records import dataclass
from stepscope.report import (
    Comparable,
    Field,
    Part,
    Report,
    Role,
    Row,
    Table,
    as_table,
    fields_named,
    percent,
    round_us,
)
from stepscope.report.relation import Counted, Merged, Relation
from stepscope.vocabulary.torch import MODULE_PREFIX

MOST_MODULES = 5000  # kept per host, those with most time

FIELDS: tuple[Field, ...] = (
    Field("id", "number", "the row's number; a module precedes those inside it", "int", role=Role.ORDINAL),
    Field(
        "parent", "number", "the row of the module that calls it; unknown for the outermost", "int", role=Role.ORDINAL
    ),
    Field("depth", "number", "number of enclosing modules", "int", role=Role.ORDINAL),
    Field("module", "text", "its class, with the profiler's number of the instance", role=Role.LABEL),
    Field("calls", "count", "calls along this path", "int"),
    Field("host_us", "us", "time on the host, with inner modules"),
    Field("host_self_us", "us", "time on the host, without inner modules"),
    Field("device_us", "us", "time of the device work launched in it, with inner modules"),
    Field("device_self_us", "us", "time of the device work launched in it, without inner modules"),
    Field("backward_us", "us", "device time of its backward pass, with inner modules"),
    Field("backward_self_us", "us", "device time of its backward pass, without inner modules"),
    Field("kernels", "count", "pieces of forward device work launched in it, with inner modules", "int"),
    Field("percent", "percent", "share of forward and backward device time; without devices, of host time"),
)


MODULES_BY_PATH = Relation(
    ("path", "depth"),
    ("calls", "host_ps", "host_self_ps", "device_ps", "backward_ps", "kernels"),
    order=("-host_ps", "depth", "path"),  # what is around a module lasts longer, or is less deep: it is kept too
    most=MOST_MODULES,
)
"""Modules by their names from the outermost on; device times and kernels without those of inner modules."""


@dataclass(frozen=True)
class ModulesOfHost:
    """The part of one host; `unassigned_ps` is device time outside all modules."""

    origin: Origin
    modules: Counted
    unassigned_ps: int


RELATIONS = {"modules": MODULES_BY_PATH}
_Path = tuple[str, ...]


_PARTS = (Part("Modules", tuple(field.name for field in FIELDS[3:])),)  # indentation shows the tree


def _indent_name(row: Row) -> Row:
    return row | {"module": "  " * int(str(row["depth"])) + str(row["module"])}


@dataclass(frozen=True, kw_only=True)
class ModulesReport(Report):
    """The modules, depth first; see FIELDS."""

    TOOL: ClassVar[str] = "modules"

    unassigned_device_us: float
    rows: Table = as_table("Modules", FIELDS, lambda report: _empty(report.recorder), _PARTS, _indent_name)


COMPARABLES = (
    Comparable(
        id="modules",
        title="Modules",
        keys=fields_named(FIELDS, "module"),
        measure=Field("device_us", "us", "device time of the module, with inner modules"),
        count="calls",
        is_total=True,
        empty="neither side has modules with device work",
    ),
)


def partial(trace: HostTrace) -> ModulesOfHost:
    """The part of one host."""
    found = attribute(trace)
    called, free = _called_modules(trace, found)
    annotated, free = _annotated_modules(trace, found, free)
    rows = [(path, len(path), *figures) for path, *figures in (*called, *annotated)]
    return ModulesOfHost(origin_of(trace), MODULES_BY_PATH.keep(rows), int(found.time_ps[free].sum()))


def _called_modules(trace: HostTrace, found: Attribution) -> tuple[list[tuple[Any, ...]], Mask]:
    """The modules that were called, and which device work belongs to none of them: bool of shape (n,)."""
    rows = module_calls(trace)
    if not len(rows):
        return [], np.ones(len(found.rows), np.bool_)
    inside = np.full(len(trace.events), -1, np.int32)
    inside[rows] = np.arange(len(rows))
    spread_labels(trace, inside)
    above = _enclosing_calls(trace, rows, inside)
    path, parent, first = number_paths(above, event_name_rows(trace, rows), np.full(len(rows), -1))
    size = len(first)
    duration = trace.events.duration_ps[rows]
    own = duration.copy()
    np.subtract.at(own, above[above >= 0], duration[above >= 0])
    forward = inside[found.rows]
    backward = np.where(forward < 0, backward_modules(trace, inside)[found.rows], -1)
    columns = (
        np.bincount(path, minlength=size), sum_groups(path, duration, size), sum_groups(path, np.maximum(own, 0), size),
        _device_sums(path, forward, found.time_ps, size), _device_sums(path, backward, found.time_ps, size),
        np.bincount(path[forward[forward >= 0]], minlength=size),
    )  # fmt: skip
    names = [trace.name_of(row).removeprefix(MODULE_PREFIX) for row in rows[first].tolist()]
    paths: list[_Path] = []
    for name, outer in zip(names, parent.tolist(), strict=True):
        paths.append((*(paths[outer] if outer >= 0 else ()), name))
    whole = zip(paths, *(column.tolist() for column in columns), strict=True)
    return [*whole], (forward < 0) & (backward < 0)


def _annotated_modules(trace: HostTrace, found: Attribution, free: Mask) -> tuple[list[tuple[Any, ...]], Mask]:
    """The modules that graphs annotate free work with, without calls, and what is still free."""
    known = annotations_of(trace)
    at = np.searchsorted(found.rows, known.rows)
    chosen = free[at] & (known.module > 0)
    at, is_backward = at[chosen], known.is_backward[chosen]
    modules, module = np.unique(known.module[chosen], return_inverse=True)
    sums = [
        np.bincount(module, weights, len(modules)).astype(np.int64).tolist()
        for weights in (found.time_ps[at] * ~is_backward, found.time_ps[at] * is_backward, ~is_backward)
    ]
    rows: dict[_Path, tuple[Any, ...]] = {}
    for name, *figures in zip(trace.strings.texts(modules), *sums, strict=True):
        path = tuple(name.split("."))
        for depth in range(1, len(path)):
            rows.setdefault(path[:depth], (path[:depth], 0, 0, 0, 0, 0, 0))
        rows[path] = (path, 0, 0, 0, *figures)
    free = free.copy()
    free[at] = False
    return [*rows.values()], free


def _enclosing_calls(trace: HostTrace, rows: I64, inside: I32) -> I64:
    """The index of the enclosing module call of each module call, -1 for none."""
    parent = forest(trace).parent[rows]
    return np.where(parent >= 0, inside[np.maximum(parent, 0)], -1).astype(np.int64)


def _device_sums(path: I64, call: I32, time: I64, size: int) -> I64:
    known = call >= 0
    return sum_groups(path[call[known]], time[known], size)


def merge(partials: Sequence[ModulesOfHost]) -> ModulesReport:
    """The modules of all hosts; equal paths are merged."""
    found = MODULES_BY_PATH.merge([part.modules for part in partials])
    recorder = session_recorder([part.origin for part in partials])
    warnings = [] if len(found) else [_empty(recorder)]
    warnings += [f"{found.left_out:,} modules are not listed"] if found.left_out else []
    return ModulesReport(
        **header([part.origin for part in partials], warnings),
        rows=_list_modules(found),
        unassigned_device_us=round_us(sum(part.unassigned_ps for part in partials)),
    )


def _empty(recorder: str) -> str:
    return f"no modules: {remedy(MODULES, recorder)}"


def _list_modules(found: Merged) -> Table:
    """The modules in depth-first order; siblings by time, the longest first, those of one kind by their numbers."""
    own = {path: at for at, path in enumerate(found["path"])}
    whole = {measure: _add_inner(found, measure) for measure in ("device_ps", "backward_ps", "kernels")}
    device = {path: whole["device_ps"][path] + whole["backward_ps"][path] for path in own}
    weight = device if any(device.values()) else dict(zip(own, found["host_ps"], strict=True))
    inside: dict[_Path, list[_Path]] = {}
    longest: dict[_Path, float] = {}
    for path in own:
        kind = _kind(path)[0]
        longest[kind] = max(longest.get(kind, 0), weight[path])
    for path in sorted(own, key=lambda path: (longest[_kind(path)[0]], *_kind(path))):  # popped from the end
        inside.setdefault(path[:-1], []).append(path)
    everything = sum(weight[path] for path in inside.get((), []))
    places: dict[_Path, int] = {}
    stack = list(inside.get((), []))
    while stack:
        path = stack.pop()
        places[path] = len(places)
        stack += inside.get(path, [])
    rows = found.take([own[path] for path in places])
    return rows.table(
        FIELDS,
        id=[*places.values()],
        parent=[places.get(path[:-1]) for path in places],
        depth=[len(path) - 1 for path in places],
        module=[path[-1] for path in places],
        device_us=[round_us(whole["device_ps"][path]) for path in places],
        device_self_us=[*map(round_us, rows["device_ps"])],
        backward_us=[round_us(whole["backward_ps"][path]) for path in places],
        backward_self_us=[*map(round_us, rows["backward_ps"])],
        kernels=[whole["kernels"][path] for path in places],
        percent=[percent(weight[path], everything) for path in places],
    )


def _kind(path: _Path) -> tuple[_Path, int]:
    """A module's path without its number, and that number, the higher the later.

    >>> _kind(("Model", "Layer_13"))
    (('Model', 'Layer_'), -13)
    """
    name = path[-1].rstrip("0123456789")
    return (*path[:-1], name), -int(path[-1][len(name) :] or 0)


def _add_inner(found: Merged, measure: str) -> dict[_Path, int]:
    """A measure of each module with that of the modules inside."""
    whole: dict[_Path, int] = dict(zip(found["path"], found[measure], strict=True))
    for path in sorted(whole, key=len, reverse=True):
        if path[:-1] in whole:
            whole[path[:-1]] += whole[path]
    return whole
