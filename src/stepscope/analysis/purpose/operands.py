"""Work that touches far more memory than it needs, by the sizes and types of operands that PyTorch recorded.

Each different text is read once.
"""

from __future__ import annotations

import math

import numpy as np

from stepscope.analysis.hlo.framework_ops import places_of_events
from stepscope.analysis.hlo.programs import programs_of
from stepscope.analysis.purpose.autograd import passes_of
from stepscope.analysis.purpose.computing import Computing, computing_of, inside_any
from stepscope.analysis.purpose.graphs import names_of_type
from stepscope.analysis.purpose.sizes import Size, computes_in_64_bits, names_of_types, sizes_of
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.trace.grouping import enclosing_events, forest, is_device_work
from stepscope.analysis.trace.program_facts import parameters_of
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, distinct, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.precision import inputs_are_16bit
from stepscope.vocabulary.tensorflow import DOUBLE_TYPE, HALF_TYPE, SINGLE_TYPE
from stepscope.vocabulary.torch import HALF
from stepscope.vocabulary.traits import OpTrait, PurposeTrait

_DOUBLE_ARRAY, _SINGLE_ARRAY = "f64[", "f32["
_HALF = 0.5  # of a table: an update of no more rows could leave most of it alone
_SMALLEST_TABLE = 1 << 18  # numbers: of 2,000 x 64 a sparse gradient and its update took as long as all rows (1.40 ms)
_NEXT_OPS = 3  # outermost ops after a one-hot that may take it: a conversion, perhaps a reshape, a product


def ops_in_64_bits(trace: HostTrace, ops: I64) -> Mask:
    """Whether each op computes with floats of 64 bits.

    By its operands, in PyTorch, or as it belongs to the training of parameters of that type; by what it takes memory
    for, in TensorFlow; or as its compiled program takes more arrays of that type than of 32 bits.
    """
    if wide_names := names_of_type(trace, DOUBLE_TYPE):
        types = used_rows(trace.events.type[ops], len(trace.event_types))
        wide_types = [name.rpartition(":")[0] in wide_names for name in type_names(trace, types)]
        return np.isin(trace.events.type[ops], types[np.array(wide_types, np.bool_)])
    if parameters_of(trace).are_double and not trace.has_stat(stat_names.INPUT_TYPES):
        work = computing_of(trace)
        return np.isin(ops, work.rows[work.learned | work.backward | work.updates])
    types = trace.stat_strings(stat_names.INPUT_TYPES, rows=ops)
    dims = trace.stat_strings(stat_names.INPUT_DIMS, rows=ops)
    texts, inverse = np.unique(np.stack([types, dims]), axis=1, return_inverse=True)
    wide = [
        kind > 0 and computes_in_64_bits(trace.strings[size] if size > 0 else "", trace.strings[kind])
        for kind, size in texts.T.tolist()
    ]
    found: Mask = np.array(wide, np.bool_)[inverse.reshape(-1)]
    if not trace.has_stat(stat_names.HLO_MODULE) or not len(ops):
        return found
    programs, place = programs_of(trace), places_of_events(trace, ops)
    for each in distinct(place[place >= 0]).tolist():
        arrays = [shape[: len(_DOUBLE_ARRAY)] for _, shape in programs.module(each).parameters if shape[-2:] != "[]"]
        found[place == each] |= arrays.count(_DOUBLE_ARRAY) > arrays.count(_SINGLE_ARRAY)
    return found


def computes_in_16_bits(trace: HostTrace) -> bool:
    """Whether most of what products and convolutions take of a host is of floats of 16 bits; False where no types were
    recorded."""
    work = computing_of(trace)
    chosen = has_trait(trace, trace.events.type[work.rows], OpTrait.MULTIPLIES) > 0
    if not chosen.any() or not trace.has_stat(stat_names.INPUT_TYPES) or is_device_work(trace).any():
        return False
    # With autocast, what converts the operands has those of 32 bits, and holds the product that takes the time.
    texts = trace.stat_strings(stat_names.INPUT_TYPES, rows=work.rows[chosen])
    types, inverse = np.unique(texts, return_inverse=True)
    narrow = [kind > 0 and inputs_are_16bit(names_of_types(trace.strings[kind])) for kind in types.tolist()]
    own_ps = work.own_ps[chosen]
    return 2 * int(own_ps[np.array(narrow, np.bool_)[inverse.ravel()]].sum()) > int(own_ps.sum())


def half_ops(trace: HostTrace) -> I64:
    """Products and convolutions that a host computes in floats of 16 bits with a short exponent: rows of events.

    By their operands, in PyTorch; in TensorFlow by what these take memory for: it is known of some, so that where it is
    mostly of that type, all are.
    """
    work = computing_of(trace)
    rows = work.rows[work.heavy] if not is_device_work(trace).any() else work.rows[:0]
    if not len(rows):
        return rows
    if trace.has_stat(stat_names.INPUT_TYPES):
        types, inverse = np.unique(trace.stat_strings(stat_names.INPUT_TYPES, rows=rows), return_inverse=True)
        half = [kind > 0 and HALF in trace.strings[kind] for kind in types.tolist()]
        found: I64 = rows[np.array(half, np.bool_)[inverse.reshape(-1)]]
        return found
    types = used_rows(trace.events.type[rows], len(trace.event_types))
    nodes = {name.rpartition(":")[0] for name in type_names(trace, types)}
    in_half, in_single = (len(nodes & names_of_type(trace, each)) for each in (HALF_TYPE, SINGLE_TYPE))
    return rows if in_half > in_single else rows[:0]


@dataclass(frozen=True)
class OneHot:
    """Numbers of classes that are written out as rows of zeros with a single one.

    Attributes:
        rows: the ops that write them and those that take them: rows of events.
        sizes: the largest, (numbers, classes); None where sizes were not recorded.
    """

    rows: I64
    sizes: tuple[int, int] | None


def one_hots(trace: HostTrace) -> OneHot | None:
    """One-hot rows, their conversion to floats, and products that look up rows of a matrix with them, forward and
    backward."""
    work = computing_of(trace)
    outer = np.flatnonzero(work.outer & ~work.backward)
    makes = np.flatnonzero(has_trait(trace, trace.events.type[work.rows[outer]], PurposeTrait.MAKES_ONE_HOT))
    if not len(makes):
        return None
    known = _Sizes(trace, work)
    written = known.written_by(work.rows[outer[makes]])
    rows = distinct(np.append(work.rows[outer[makes]], _find_users(trace, work, outer, makes, known, written)))
    sizes = [known.sizes[each] for each in distinct(written[written >= 0]).tolist()]
    wide = max(sizes, key=math.prod, default=None)
    shown = None if wide is None else (math.prod(wide[:-1]), wide[-1])
    return OneHot(np.append(rows, _backward_of(trace, work, rows)), shown)


class _Sizes:
    """The sizes of operands of a host's ops, each different one with a number."""

    def __init__(self, trace: HostTrace, work: Computing) -> None:
        self._trace, self._work = trace, work
        self._text = trace.stat_strings(stat_names.INPUT_DIMS, rows=work.rows)
        self.sizes: list[Size] = []
        numbers: dict[Size, int] = {}
        self._first: dict[int, int] = {}
        self._largest: dict[int, int] = {}
        for row in distinct(self._text[self._text > 0]).tolist():
            sizes = sizes_of(trace.strings[row])
            for kept, size in (
                (self._first, sizes[:1]),
                (self._largest, sorted((size for size in sizes if len(size) > 1), key=math.prod)),
            ):
                if size:
                    kept[row] = numbers.setdefault(size[-1], len(numbers))
        self.sizes = list(numbers)

    def first_of(self, places: I64) -> I64:
        """The number of the first operand's size of some ops, given by their places; -1 for none."""
        return _look_up(self._first, self._text[places])

    def written_by(self, rows: I64) -> I64:
        """The number of the size that some ops write: the largest operand of the ops inside each; -1 for none."""
        parent = forest(self._trace).parent[self._work.rows]
        inside = np.flatnonzero(np.isin(parent, rows))
        size = _look_up(self._largest, self._text[inside])
        inside, size = inside[size >= 0], size[size >= 0]
        numbers = np.array([math.prod(each) for each in self.sizes], np.float64)
        order = np.argsort(numbers[size], kind="stable")
        found = np.full(len(rows), -1, np.int64)
        found[np.searchsorted(rows, parent[inside[order]])] = size[order]  # of several the largest stays
        return found


def _look_up(numbers: dict[int, int], texts: I64) -> I64:
    unique, inverse = np.unique(texts, return_inverse=True)
    return np.array([numbers.get(each, -1) for each in unique.tolist()], np.int64)[inverse]


def _find_users(trace: HostTrace, work: Computing, outer: I64, makes: I64, known: _Sizes, written: I64) -> I64:
    """The next ops that convert the rows or multiply with them: rows of events.  Without sizes, a conversion that
    follows at once.

    Args:
        outer: places of outermost ops; makes: which of them write the rows; written: the size that each writes.
    """
    found, going = [outer[:0]], np.ones(len(makes), np.bool_)
    lines = trace.events.line[work.rows]
    for step in range(1, _NEXT_OPS + 1):
        going &= makes + step < len(outer)
        place = outer[np.minimum(makes + step, len(outer) - 1)]
        types = trace.events.type[work.rows[place]]
        going &= lines[place] == lines[outer[makes]]
        takes = going & ((written < 0) | (known.first_of(place) == written))
        converts = takes & has_trait(trace, types, OpTrait.CONVERTS)
        multiplies = takes & (written >= 0) & has_trait(trace, types, OpTrait.MULTIPLIES)
        found.append(work.rows[place[converts | multiplies]])
        going &= ~multiplies & ((written >= 0) | converts)
    return np.concatenate(found)


def _backward_of(trace: HostTrace, work: Computing, forward: I64) -> I64:
    """The runs of autograd's nodes of some forward products: rows of events."""
    passes = passes_of(trace)
    chosen = inside_any(trace, work.rows, forward)
    numbers = distinct(work.number[chosen & work.learned & work.heavy])
    found: I64 = passes.rows[(passes.number >= 0) & np.isin(passes.number, numbers)]
    return found


@dataclass(frozen=True)
class WholeTable:
    """Work on all rows of a table of which a step reads a few.

    Attributes:
        rows: the ops that write the gradient of the whole table, and those that update it: rows of events.
        kept: the share of their time that is needed.
        table: its size, (rows, columns); reads: how many rows a step reads at most, the mean.  None where sizes of
            operands were not recorded: that few are read, the time tells that filling its gradient with zeros takes,
            and without its size the rows are those of the gradient alone.
    """

    rows: I64
    kept: float
    table: tuple[int, int] | None = None
    reads: float | None = None


def whole_table(trace: HostTrace) -> WholeTable | None:
    """The table whose update takes longest although a step reads less than half of its rows; None without one.

    A table that other forward ops multiply with, as a model's output does with its embedding, needs all of its
    gradient.
    """
    work = computing_of(trace)
    types = trace.events.type[work.rows]
    reads = np.flatnonzero(work.outer & work.learned & has_trait(trace, types, PurposeTrait.LOOKS_UP))
    if not len(reads):
        return None
    if not trace.has_stat(stat_names.INPUT_DIMS):
        return _mostly_zeros(trace, work)
    text = trace.stat_strings(stat_names.INPUT_DIMS, rows=work.rows)
    sizes = {row: sizes_of(trace.strings[row]) for row in distinct(text[text > 0]).tolist()}
    steps = max(len(whole_steps(trace).number), 1)
    wanted: dict[Size, float] = {}
    for row in text[reads].tolist():
        table, *others = sizes.get(row, ())[:2] or ((),)
        if len(table) == 2 and others:
            wanted[table] = wanted.get(table, 0.0) + math.prod(others[0]) / steps
    few = {
        table: number
        for table, number in wanted.items()
        if number < _HALF * table[0] and math.prod(table) >= _SMALLEST_TABLE
    }
    found = [_update_of(trace, work, table, number, text, sizes) for table, number in few.items()]
    known = [each for each in found if each is not None]
    return max(known, key=lambda each: int(trace.events.duration_ps[each.rows].sum()), default=None)


def _mostly_zeros(trace: HostTrace, work: Computing) -> WholeTable | None:
    """Gradients of tables that are filled with zeros for most of the time that writing them takes."""
    types = trace.events.type[work.rows]
    spreads = work.backward & has_trait(trace, types, PurposeTrait.SPREADS_ROWS)
    inside = _within(trace, work, spreads)
    fills = inside & has_trait(trace, types, OpTrait.MOVES_DATA)
    whole_ps, filling_ps = int(work.own_ps[inside].sum()), int(work.own_ps[fills].sum())
    if filling_ps <= _HALF * whole_ps:
        return None
    kept, parameters = 1.0 - filling_ps / whole_ps, parameters_of(trace)
    if not parameters.are_one_table:
        return WholeTable(work.rows[spreads], kept)
    rows, columns = parameters.largest
    return WholeTable(work.rows[spreads | work.updates], kept, (rows, columns))


def _update_of(
    trace: HostTrace,
    work: Computing,
    table: Size,
    reads: float,
    text: I64,
    sizes: dict[int, tuple[Size, ...]],
) -> WholeTable | None:
    holding = np.isin(text, [row for row, each in sizes.items() if table in each or table[::-1] in each])
    first = np.isin(text, [row for row, each in sizes.items() if _is_of_table(each, table)])
    looks_up = has_trait(trace, trace.events.type[work.rows], PurposeTrait.LOOKS_UP)
    if (holding & work.learned & ~looks_up & ~_within(trace, work, looks_up)).any():
        return None  # other forward ops take it, too
    types = trace.events.type[work.rows]
    spreads = work.backward & has_trait(trace, types, PurposeTrait.SPREADS_ROWS)
    updates = work.updates & first
    if not updates.any() or not spreads.any():
        return None
    # Several tables may have gradients: those whose ops write a tensor of this size.
    spreads &= _within(trace, work, spreads & _writes(trace, work, first))
    # Of a table that is read twice the gradients are added up, all rows of them; and a node gives its own back.
    chosen = updates | spreads | (work.backward & first)
    rows = work.rows[chosen & ~_within(trace, work, chosen, itself=False)]
    rows = distinct(np.append(rows, _nodes_around(trace, work.rows[spreads])))
    return WholeTable(rows, min(reads / table[0], 1.0), (int(table[0]), int(table[1])), reads)


def _nodes_around(trace: HostTrace, rows: I64) -> I64:
    """The runs of autograd's nodes that some ops lie in: rows of events."""
    nodes = np.zeros(len(trace.events), np.bool_)
    nodes[passes_of(trace).rows] = True
    found = enclosing_events(trace, nodes)[rows]
    return distinct(found[found >= 0].astype(np.int64))


def _is_of_table(sizes: tuple[Size, ...], table: Size) -> bool:
    """Whether an op works on a table: its first operand, of a list of tensors most of it."""
    of_table = sum(math.prod(size) for size in sizes if size == table)
    return sizes[:1] == (table,) and of_table >= _HALF * sum(map(math.prod, sizes))


def _within(trace: HostTrace, work: Computing, chosen: Mask, itself: bool = True) -> Mask:
    """Which ops lie inside one of the chosen ops: bool of shape (ops,)."""
    if itself:
        return inside_any(trace, work.rows, work.rows[chosen])
    parent = forest(trace).parent[work.rows].astype(np.int64)
    return (parent >= 0) & inside_any(trace, np.maximum(parent, 0), work.rows[chosen])


def _writes(trace: HostTrace, work: Computing, first: Mask) -> Mask:
    """Which ops hold one whose first operand is of a size: bool of shape (ops,)."""
    above = work.rows[first]
    found = np.zeros(len(trace.events), np.bool_)
    parent = forest(trace).parent
    while len(above):
        found[above] = True
        above = distinct(parent[above].astype(np.int64))
        above = above[above >= 0]
        above = above[~found[above]]
    out: Mask = found[work.rows]
    return out
