"""A part of what is trained that computes no layer and yet takes most of the step, such as a loss or a normalization.

    y = model(x)             # layers: products with weights, and rows of tables
    loss = structure(y, t)   # 80 % of the step with its backward pass

That part is a choice of the program: the model learns the same with a cheaper one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepscope.analysis.account.asked_by import AskedOps, asked_ops_of
from stepscope.analysis.account.functions import functions_of_loop
from stepscope.analysis.account.statements import statements_of_loop
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.purpose.autograd import passes_of
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.steps.stack_samples import sampled_frames
from stepscope.analysis.trace.forward_ops import forward_events
from stepscope.analysis.trace.grouping import nested_on
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, distinct, number_pairs
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import FACTORS, op_alone
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.python import is_of_user, place_of, runs_layer, statement_of
from stepscope.vocabulary.traits import OpTrait, PurposeTrait

_MOST_OF = 0.5  # of the step, by the word
_NEARLY_ALL = 0.8  # of the part: who holds this much of it is where to look; as for functions in `facts.lines`
_EDGE = 0.05  # of the part: samples tell its edges only roughly; judgement


@dataclass(frozen=True)
class PartWithoutLayers:
    """Such a part.

    Attributes:
        frame: the function, or the line of it, as frames are named; rows: its ops and their backward work, the
            outermost: rows of events; ops: what it is in words, the longest first.
    """

    frame: str
    rows: I64
    ops: str


def part_without_layers(trace: HostTrace) -> PartWithoutLayers | None:
    """The part that takes most of the steps; None without one, or where nothing shows which ops take weights."""
    return trace.derived("part without layers", _find_part)


def _find_part(trace: HostTrace) -> PartWithoutLayers | None:
    line = threads_of(trace).main
    if line < 0 or not passes_of(trace).adds.any():
        return None
    ops = asked_ops_of(trace, line)
    of_layers, whole = _is_of_layers(trace, ops), observed_time(trace).total
    backward = spans_of(trace, ops.rows[ops.is_backward])
    found = []
    for order, place in enumerate(_places(trace, line)):
        inside = ops.asked_in(place.certain)
        ps = int(ops.ps[inside].sum())
        if ps < _MOST_OF * whole or not (inside & ops.is_backward).any():
            continue
        if (place.certain & backward).total >= _MOST_OF * backward.total:
            continue  # it starts the backward pass
        if ops.ps[inside & of_layers].sum() <= _EDGE * ps and place.of_layers < _MOST_OF:
            found.append((ps, place.certain.total, order, place.frame, inside))
    if not found:
        return None
    most = max(ps for ps, *_ in found)
    *_, frame, inside = min((each for each in found if each[0] >= _NEARLY_ALL * most), key=lambda each: each[1:3])
    return PartWithoutLayers(frame, ops.rows[inside], _say_ops(trace, ops, inside))


def _is_of_layers(trace: HostTrace, ops: AskedOps) -> Mask:
    """Which ops compute a layer: products with a weight, and rows of a table, by what runs right before autograd adds
    to the gradient of a parameter; and all ops of the same kind and sizes, with their backward work."""
    passes = passes_of(trace)
    last = np.maximum.accumulate(np.where(passes.number >= 0, np.arange(len(passes)), -1))[passes.adds]
    asked = forward_events(trace, passes.rows[distinct(last[last >= 0])])
    types = trace.events.type[asked]
    names = type_names(trace, types.astype(np.int64))
    works = has_trait(trace, types, OpTrait.MULTIPLIES) | has_trait(trace, types, PurposeTrait.LOOKS_UP)
    works &= ~np.array([FACTORS.fullmatch(op_alone(name)) is not None for name in names], np.bool_)
    start = trace.events.start_ps
    around = np.maximum(np.searchsorted(start[ops.rows], start[asked[works]], side="right") - 1, 0)
    texts = trace.stat_strings(stat_names.INPUT_DIMS, rows=ops.rows).astype(np.int64)
    alike, _ = number_pairs(trace.events.type[ops.rows].astype(np.int64), texts)
    computes = np.isin(alike, alike[around]) & ~ops.is_backward
    found: Mask = computes[np.maximum(np.searchsorted(start[ops.rows], ops.moment, side="right") - 1, 0)]
    return found


@dataclass(frozen=True)
class _Place:
    """A function of the program, or a line of it: when it runs, and the share of its samples in a library's layer,
    which may be a frozen one."""

    frame: str
    certain: Spans
    of_layers: float


def _places(trace: HostTrace, line: int) -> Iterator[_Place]:
    layers = _layers_within(trace, line)
    for function in functions_of_loop(trace):
        frame = trace.name_of(function.frame)
        yield _Place(frame, function.certain, _share_shown(layers.get(frame), function.samples))
    for each in statements_of_loop(trace, line):
        frame = statement_of(trace.name_of(each.row)).frame
        name = f"${each.statement.place} {place_of(frame)[0]}"
        yield _Place(name, each.certain, _share_shown(layers.get(frame), each.samples))


def _share_shown(spans: Spans | None, samples: I64) -> float:
    return 0.0 if spans is None or not len(samples) else float((spans.overlap_ps(samples, samples + 1) > 0).mean())


def _layers_within(trace: HostTrace, line: int) -> dict[str, Spans]:
    """When samples show a library's layer within each function of the program, by the name of its frames."""
    rows, types = sampled_frames(trace, line), trace.events.type
    names = {each: trace.name_of(int(rows[types[rows] == each][0])) for each in distinct(types[rows]).tolist()}
    layers = [each for each, name in names.items() if runs_layer(place_of(name)[0]) and not is_of_user(name)]
    found: dict[int, list[I64]] = {}
    parent, inner = nested_on(trace, distinct(trace.events.line[rows])), rows[np.isin(types[rows], layers)]
    above = parent[inner]
    while (above >= 0).any():
        for each in distinct(types[above[above >= 0]]).tolist():
            found.setdefault(each, []).append(inner[(above >= 0) & (types[np.maximum(above, 0)] == each)])
        above = np.where(above >= 0, parent[np.maximum(above, 0)], -1)
    return {names[each]: spans_of(trace, np.concatenate(parts)) for each, parts in found.items() if each in names}


def _say_ops(trace: HostTrace, ops: AskedOps, inside: Mask) -> str:
    """`40 aten::conv2d (4.1 ms), 8 aten::mul (0.2 ms)`: what takes most of it per step, with its backward work."""
    steps, names = max(len(whole_steps(trace).number), 1), trace.event_names(ops.asked[inside])
    kinds, place = np.unique(names, return_inverse=True)
    ps = np.bincount(place.ravel(), ops.ps[inside], len(kinds))
    calls = np.bincount(place.ravel(), ~ops.is_backward[inside], len(kinds))
    order = np.argsort(-ps)[:3]
    return ", ".join(
        f"{calls[at] / steps:,.0f} {trace.strings[int(kinds[at])]} ({ps[at] / steps / 1e9:.2g} ms)" for at in order
    )
