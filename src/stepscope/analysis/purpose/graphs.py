"""What graphs of TensorFlow do without need, by the names of ops, the order in which they run, and what they make.

Operands are not recorded.  That an op takes the result of another shows in that it runs next, nearly each time; types
and sizes of results are those of the memory that an op takes.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from stepscope.analysis.purpose.computing import Computing, computing_of
from stepscope.analysis.purpose.sizes import Size, sizes_of
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Groups, Mask, distinct, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.scopes import forward_of_gradient, is_gradient, is_gradient_of_one, scope_of_other_call
from stepscope.vocabulary.traits import OpTrait, PurposeTrait

# Adding rows up into a table takes about as long for each as reading it.  As for compiled programs, few rows are 2 %.
_MOSTLY_ZEROS = 50.0
# A product with one-hot rows does as many multiplications for each number that it takes as there are classes.  With so
# few, a processor does them in the time in which it waits once for memory, some 100 ns, so that a look-up is no faster.
FEW_CLASSES = 128
_NEARLY_ALWAYS = 0.8  # of the runs: an executor may take a ready op of another branch first
_AS_LARGE = 0.25  # of the time that writing the table takes: an op that touches each of its numbers needs no less


@dataclass(frozen=True)
class Made:
    """What an op of a graph makes: the largest tensor that it takes memory for.

    Attributes:
        data_type: as TensorFlow numbers types; size: its sides.
    """

    data_type: int
    size: Size


def made_by_ops(trace: HostTrace) -> dict[str, Made]:
    """What ops make, by their names; nothing of those whose results take the place of an operand."""
    return trace.derived("made by ops", _find_made)


def _find_made(trace: HostTrace) -> dict[str, Made]:
    rows = events_of_kind(trace, EventKind.ALLOCATION)
    if not len(rows) or trace.framework != "tensorflow":
        return {}
    op_of = trace.stat_strings(stat_names.ALLOCATING_OP, rows=rows)
    shape_of = trace.stat_strings(stat_names.TENSOR_SHAPE, rows=rows)
    type_of = trace.stat_ints(stat_names.DATA_TYPE, rows=rows)
    different = Groups.of(op_of, shape_of, type_of).first
    different = different[np.lexsort((type_of[different], shape_of[different], op_of[different]))]
    sizes = {shape: sizes_of(trace.strings[shape]) for shape in distinct(shape_of[different]).tolist() if shape > 0}
    found: dict[str, Made] = {}
    different = different[(op_of[different] > 0) & (type_of[different] > 0)]
    columns = shape_of[different].tolist(), type_of[different].tolist()
    for name, shape, data_type in zip(trace.strings.texts(op_of[different]), *columns, strict=True):
        if size := sizes.get(shape):
            made = Made(data_type, size[0])
            known = found.get(name)
            found[name] = made if known is None or math.prod(made.size) > math.prod(known.size) else known
    return found


def names_of_type(trace: HostTrace, data_type: int) -> set[str]:
    """The names of ops that make arrays of a type, such as DOUBLE_TYPE."""
    return {name for name, made in made_by_ops(trace).items() if made.data_type == data_type and made.size}


def _list_made(trace: HostTrace, types: I64) -> list[Made]:
    """What the ops of some event types make, as far as it is known."""
    made = made_by_ops(trace)
    names = (name.rpartition(":")[0] for name in type_names(trace, distinct(types)))
    return [made[name] for name in names if name in made]


def graph_checks(trace: HostTrace) -> I64:
    """Ops that TensorFlow puts behind others to look for NaN in their results: rows of events."""
    work = computing_of(trace)
    found: I64 = work.rows[_is(trace, work, PurposeTrait.CHECKS_NUMBERS) & (trace.framework == "tensorflow")]
    return found


def _is(trace: HostTrace, work: Computing, trait: PurposeTrait | OpTrait) -> Mask:
    return has_trait(trace, trace.events.type[work.rows], trait)


def trained_types(trace: HostTrace, types: I64) -> I64:
    """The event types whose ops have a gradient: it is called after them, `gradient_tape/NAME/MatMul`."""
    names = type_names(trace, types)
    forward = {forward_of_gradient(name) for name in names if "gradient" in name} - {""}
    found: I64 = types[[at for at, name in enumerate(names) if forward and name.rpartition(":")[0] in forward]]
    return found


def graph_one_hots(trace: HostTrace) -> tuple[I64, tuple[int, int] | None]:
    """One-hot rows and the product that takes them, with its gradient: rows of events, and the rows' largest size.

    The product is the op that nearly each time runs next; that it takes them shows in its gradient, which has a row for
    each class.
    """
    work = computing_of(trace)
    makes = np.flatnonzero(_is(trace, work, PurposeTrait.MAKES_ONE_HOT))
    if not len(makes):
        return work.rows[:0], None
    types = trace.events.type[work.rows].astype(np.int64)
    wide = max(
        (made.size for made in _list_made(trace, types[makes]) if len(made.size) > 1), key=math.prod, default=None
    )
    if wide is None or wide[-1] < FEW_CLASSES:
        return work.rows[:0], None
    after = _usual(types, _next_on_thread(trace, work, makes))
    while len(after) and _only_hands_on(trace, work, after):
        after = _usual(types, _next_on_thread(trace, work, after))
    after = after[work.heavy[after]]
    products = {name.rpartition(":")[0] for name in type_names(trace, distinct(types[after]))}
    heavy = distinct(types[work.heavy])
    names = type_names(trace, heavy)
    gradients = heavy[np.array([forward_of_gradient(name) in products for name in names], np.bool_)]
    chosen = makes
    if any(made.size[:1] == wide[-1:] for made in _list_made(trace, gradients)):
        chosen = np.concatenate([makes, after, np.flatnonzero(np.isin(types, gradients))])
    return work.rows[distinct(chosen)], (math.prod(wide[:-1]), wide[-1])


def _usual(types: I64, places: I64) -> I64:
    """The places of the one op that nearly all of them are; none where they differ."""
    kinds, counts = np.unique(types[places], return_counts=True)
    if not len(kinds) or counts.max() < _NEARLY_ALWAYS * len(places):
        return places[:0]
    found: I64 = places[types[places] == kinds[counts.argmax()]]
    return found


def _only_hands_on(trace: HostTrace, work: Computing, places: I64) -> bool:
    moves = has_trait(trace, trace.events.type[work.rows[places]], OpTrait.MOVES_DATA | OpTrait.CONVERTS)
    return bool(moves.all())


def _next_on_thread(trace: HostTrace, work: Computing, places: I64) -> I64:
    """The op that runs after each on its thread, those without one left out: places in `work`, which is in order of
    threads and time."""
    outer = np.flatnonzero(work.outer)
    after = np.searchsorted(outer, places, side="right")
    known = after < len(outer)
    after, places = outer[after[known]], places[known]
    lines = trace.events.line[work.rows]
    found: I64 = after[lines[after] == lines[places]]
    return found


def passes_after_gradients(trace: HostTrace) -> I64:
    """Ops of a forward pass that a graph makes again through layers whose gradients the step has computed by then, with
    no gradient of its own, as for metrics of the updated model: rows of events.

    The second call of a model has the scopes of the first one but for a number.
    """
    work = computing_of(trace)
    if trace.framework != "tensorflow" or not work.heavy.any():
        return work.rows[:0]
    types = trace.events.type[work.rows].astype(np.int64)
    heavy = distinct(types[work.heavy])
    trained = {*trained_types(trace, distinct(types)).tolist()}
    names = dict(zip(heavy.tolist(), type_names(trace, heavy), strict=True))
    gradients: dict[str, list[int]] = {}
    for type_, name in names.items():
        if forward := forward_of_gradient(name):
            gradients.setdefault(forward, []).append(type_)
    again = set[str]()
    for type_, name in names.items():
        node = name.rpartition(":")[0]
        if type_ in trained or is_gradient(name):
            continue
        for forward, of_it in gradients.items():
            scope = scope_of_other_call(*_in_layers(node, forward))
            if scope and _starts_after(trace, work, types == type_, np.isin(types, of_it)):
                again.add(scope)
    every = distinct(types)
    chosen = [
        type_ for type_, name in zip(every.tolist(), type_names(trace, every), strict=True)
        if name.startswith(tuple(again)) and type_ not in trained and not is_gradient(name)
    ] if again else []  # fmt: skip
    found: I64 = work.rows[np.isin(types, chosen)]
    return found


def _in_layers(node: str, forward: str) -> tuple[str, str]:
    """Both names without the op's own: where TensorFlow joins ops, the node has the name of the last one."""
    return node.rpartition("/")[0] + "/", forward.rpartition("/")[0] + "/"


def _starts_after(trace: HostTrace, work: Computing, ops: Mask, others: Mask) -> bool:
    """Whether in nearly each step an op starts when others have ended."""
    steps, start = whole_steps(trace).label[work.rows], trace.events.start_ps[work.rows]
    ended = np.full(int(steps.max()) + 1, np.iinfo(np.int64).max)
    known = distinct(steps[others])
    ended[known] = 0
    np.maximum.at(ended, steps[others], (start + trace.events.duration_ps[work.rows])[others])
    later: Mask = start[ops] >= ended[steps[ops]]
    return bool(later.mean() >= _NEARLY_ALWAYS)


@dataclass(frozen=True)
class DenseGradient:
    """The gradient of a table that is written in full, and what an update does with it.

    Attributes:
        rows: rows of events.
        kept: the share of that time that the rows that are read need.
        times: how many times as long writing the table takes as reading its rows.
    """

    rows: I64
    kept: float
    times: float


def dense_gradient(trace: HostTrace) -> DenseGradient | None:
    """The gradient of a look-up that is written as a whole table, as the time shows that this takes beside reading the
    rows; with the later ops of its step that take about as long.

    Sums over segments in the model itself have a gradient of their own, and are left out.
    """
    work = computing_of(trace)
    types = trace.events.type[work.rows]
    reads = _is(trace, work, PurposeTrait.LOOKS_UP)
    sums = np.flatnonzero(_is(trace, work, PurposeTrait.SPREADS_ROWS) & ~work.backward)
    read_ps = int(work.own_ps[reads].sum())
    if not read_ps or work.own_ps[sums].sum() < _MOSTLY_ZEROS * read_ps:
        return None
    trained = trained_types(trace, distinct(types).astype(np.int64))
    sums = sums[~np.isin(types[sums], trained)]
    written_ps = int(work.own_ps[sums].sum())
    if written_ps < _MOSTLY_ZEROS * read_ps:
        return None
    steps = whole_steps(trace).label[work.rows]
    end = trace.events.start_ps[work.rows] + trace.events.duration_ps[work.rows]
    written = np.full(int(steps.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(written, steps[sums], end[sums])
    longest = np.zeros(len(written), np.int64)
    np.maximum.at(longest, steps[sums], work.own_ps[sums])
    later = trace.events.start_ps[work.rows] >= written[steps]
    large = work.own_ps >= _AS_LARGE * longest[steps]
    updates = later & large & (_is(trace, work, PurposeTrait.POINTWISE) | _is(trace, work, OpTrait.WRITES_VARIABLE))
    updates &= ~np.isin(types, trained) & ~_is(trace, work, OpTrait.OF_GRADIENT)
    chosen = np.append(sums, np.flatnonzero(updates))
    return DenseGradient(work.rows[distinct(chosen)], read_ps / written_ps, written_ps / read_ps)


@dataclass(frozen=True)
class RepeatedGradients:
    """Gradients that a graph computes several times for one forward op, as with a tape that is asked once for each
    loss.

    Attributes:
        rows: rows of events; kept: the share of their time that one pass takes; runs: how often, of the largest part;
        ops: of how many forward ops that multiply.
    """

    rows: I64
    kept: float
    runs: int
    ops: int


def repeated_gradients(trace: HostTrace) -> RepeatedGradients | None:
    """The gradients of a graph that has several nodes for the same one: `conv/Conv2DBackpropFilter`, `..Filter_1`.

    The gradient of a product has one node for each operand, of its size.  Each of them has to be there again: a part of
    the model through which a second loss only passes, as a generator's through the critic, has that of its input alone.
    """
    work = computing_of(trace)
    types = used_rows(trace.events.type[work.rows], len(trace.event_types))
    types = types[has_trait(trace, types, OpTrait.OF_GRADIENT)]
    heavy = {*types[has_trait(trace, types, OpTrait.MULTIPLIES)].tolist()}
    made, groups = made_by_ops(trace), dict[str, dict[tuple[str, Size], list[int]]]()
    for type_, name in zip(types.tolist(), type_names(trace, types), strict=True):
        forward, (node, _, op) = forward_of_gradient(name), name.rpartition(":")
        if forward and not is_gradient(forward) and (type_ in heavy or is_gradient_of_one(op)):
            size = made[node].size if node in made else ()
            groups.setdefault(forward, {}).setdefault((op, tuple(sorted(size))), []).append(type_)
    runs = np.ones(len(trace.event_types), np.int64)
    ops = 0
    for parts in groups.values():
        kinds = Counter(op for op, _ in parts)
        # Both gradients of a product may have one size.
        apart = [is_gradient_of_one(op) or kinds[op] > 1 for op, _ in parts]
        counts = zip(map(len, parts.values()), apart, strict=True)
        often = min(count if each else max(count // 2, 1) for count, each in counts)
        nodes = [type_ for part in parts.values() for type_ in part]
        runs[nodes] = often
        ops += often > 1 and not heavy.isdisjoint(nodes)
    again = runs[trace.events.type[work.rows]]
    chosen = again > 1
    if not ops:
        return None
    own = work.own_ps[chosen]
    kept = float((own / again[chosen]).sum() / max(own.sum(), 1))
    return RepeatedGradients(work.rows[chosen], kept, int(again.max()), ops)
