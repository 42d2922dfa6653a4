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
from dataclasses import replace
from typing import ClassVar

import numpy as np

from stepscope.analysis.trace.attribution import Attribution, attribute, event_name_rows
from stepscope.analysis.trace.graph_annotations import annotations_of
from stepscope.analysis.trace.grouping import forest, spread_labels
from stepscope.analysis.trace.module_calls import backward_modules, module_calls
from stepscope.analysis.trace.origin import Origin, framework_of, header, origin_of
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
    add_up,
    as_table,
    fields_named,
    make_rows,
    not_in_json,
    percent,
    round_us,
)
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


@dataclass(frozen=True)
class ModuleNode:
    """The calls of a module along one path; `parent` is the index of its caller, -1 for none.

    Times in ps; device times without inner modules.
    """

    parent: int
    name: str
    calls: int
    host_ps: int
    host_self_ps: int
    device_ps: int
    backward_ps: int
    kernels: int


@dataclass(frozen=True)
class Partial:
    """The part of one host; `unassigned_ps` is device time outside all modules."""

    origin: Origin
    nodes: list[ModuleNode]
    left_out: int
    unassigned_ps: int


_PARTS = (Part("Modules", tuple(field.name for field in FIELDS[3:])),)  # indentation shows the tree


def _indent_name(row: Row) -> Row:
    return row | {"module": "  " * int(str(row["depth"])) + str(row["module"])}


@dataclass(frozen=True, kw_only=True)
class ModulesReport(Report):
    """The modules, depth first; see FIELDS."""

    TOOL: ClassVar[str] = "modules"

    unassigned_device_us: float
    rows: Table = as_table("Modules", FIELDS, lambda report: _empty(report.framework), _PARTS, _indent_name)
    framework: str = not_in_json("")


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


def partial(trace: HostTrace) -> Partial:
    """The part of one host."""
    found = attribute(trace)
    nodes, free = _called_modules(trace, found)
    of_graphs, free = _annotated_modules(trace, found, free, len(nodes))
    nodes, left_out = _select_longest(nodes + of_graphs)
    return Partial(origin_of(trace), nodes, left_out, int(found.time_ps[free].sum()))


def _called_modules(trace: HostTrace, found: Attribution) -> tuple[list[ModuleNode], Mask]:
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
    whole = zip(parent.tolist(), names, *(column.tolist() for column in columns), strict=True)
    return [ModuleNode(*each) for each in whole], (forward < 0) & (backward < 0)


def _annotated_modules(trace: HostTrace, found: Attribution, free: Mask, first: int) -> tuple[list[ModuleNode], Mask]:
    """The modules that graphs annotate free work with, as nodes numbered from `first`, and what is still free."""
    known = annotations_of(trace)
    at = np.searchsorted(found.rows, known.rows)
    chosen = free[at] & (known.module > 0)
    at, is_backward = at[chosen], known.is_backward[chosen]
    modules, module = np.unique(known.module[chosen], return_inverse=True)
    sums = [
        np.bincount(module, weights, len(modules)).astype(np.int64).tolist()
        for weights in (found.time_ps[at] * ~is_backward, found.time_ps[at] * is_backward, ~is_backward)
    ]
    places: dict[tuple[str, ...], int] = {}
    nodes: list[ModuleNode] = []
    for name, device, backward, kernels in zip(trace.strings.texts(modules), *sums, strict=True):
        path = tuple(name.split("."))
        for depth in range(1, len(path) + 1):
            if path[:depth] not in places:
                places[path[:depth]] = first + len(nodes)
                nodes.append(ModuleNode(places.get(path[: depth - 1], -1), path[depth - 1], 0, 0, 0, 0, 0, 0))
        own = places[path] - first
        nodes[own] = replace(nodes[own], device_ps=device, backward_ps=backward, kernels=kernels)
    free = free.copy()
    free[at] = False
    return nodes, free


def _enclosing_calls(trace: HostTrace, rows: I64, inside: I32) -> I64:
    """The index of the enclosing module call of each module call, -1 for none."""
    parent = forest(trace).parent[rows]
    return np.where(parent >= 0, inside[np.maximum(parent, 0)], -1).astype(np.int64)


def _device_sums(path: I64, call: I32, time: I64, size: int) -> I64:
    known = call >= 0
    return sum_groups(path[call[known]], time[known], size)


def _select_longest(nodes: list[ModuleNode]) -> tuple[list[ModuleNode], int]:
    """The nodes with most time and all their ancestors, and the number of nodes left out."""
    if len(nodes) <= MOST_MODULES:
        return nodes, 0
    kept: set[int] = set()
    for at in sorted(range(len(nodes)), key=lambda at: -nodes[at].host_ps):
        chain = []
        while at >= 0 and at not in kept:
            chain.append(at)
            at = nodes[at].parent
        if len(kept) + len(chain) > MOST_MODULES:
            break
        kept.update(chain)
    place = {at: number for number, at in enumerate(sorted(kept))}
    found = [replace(nodes[at], parent=place.get(nodes[at].parent, -1)) for at in sorted(kept)]
    return found, len(nodes) - len(kept)


_Path = tuple[str, ...]


_OF_DEVICES = ("device_ps", "backward_ps", "kernels")
_FIGURES = ("calls", "host_ps", "host_self_ps", *_OF_DEVICES)


def merge(partials: Sequence[Partial]) -> ModulesReport:
    """The modules of all hosts; equal paths are merged."""
    own = _sum_paths(partials)
    whole = dict(own)
    for path in sorted(own, key=len, reverse=True):
        if path[:-1] in whole:
            whole[path[:-1]] = add_up((whole[path[:-1]], whole[path]), _OF_DEVICES)
    left_out = sum(part.left_out for part in partials)
    framework = framework_of([part.origin for part in partials])
    warnings = [] if own else [_empty(framework)]
    warnings += [f"{left_out:,} modules are not listed"] if left_out else []
    return ModulesReport(
        **header([part.origin for part in partials], warnings),
        rows=_module_rows(own, whole),
        unassigned_device_us=round_us(sum(part.unassigned_ps for part in partials)),
        framework=framework,
    )


def _empty(framework: str) -> str:
    return f"no modules: {remedy(MODULES, framework)}"


def _sum_paths(partials: Sequence[Partial]) -> dict[_Path, ModuleNode]:
    """The modules of all hosts by their paths."""
    sums: dict[_Path, ModuleNode] = {}
    for part in partials:
        paths: list[_Path] = []
        for node in part.nodes:
            path = (*(paths[node.parent] if node.parent >= 0 else ()), node.name)
            paths.append(path)
            sums[path] = add_up((sums[path], node), _FIGURES) if path in sums else node
    return sums


def _module_rows(own: dict[_Path, ModuleNode], whole: dict[_Path, ModuleNode]) -> Table:
    """Rows in depth-first order; siblings by time, longest first."""
    on_device = any(part.device_ps + part.backward_ps for part in own.values())

    def weight(path: _Path) -> int:
        return whole[path].device_ps + whole[path].backward_ps if on_device else own[path].host_ps

    inside: dict[_Path, list[_Path]] = {}
    for path in sorted(own, key=weight):  # popped from the end: the longest first
        inside.setdefault(path[:-1], []).append(path)
    everything = sum(weight(path) for path in inside.get((), []))
    places: dict[_Path, int] = {}
    stack = list(inside.get((), []))
    while stack:
        path = stack.pop()
        places[path] = len(places)
        stack += inside.get(path, [])
    return make_rows(
        FIELDS,
        [whole[path] for path in places],
        id=[*places.values()],
        parent=[places.get(path[:-1]) for path in places],
        depth=[len(path) - 1 for path in places],
        module=[path[-1] for path in places],
        device_self_us=[round_us(own[path].device_ps) for path in places],
        backward_self_us=[round_us(own[path].backward_ps) for path in places],
        percent=[percent(weight(path), everything) for path in places],
    )
