"""Work that a step does not need, as far as the recording shows: one table of kinds, each a fact by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from stepscope.analysis.account.functions import part_with_work
from stepscope.analysis.account.model import StepModel
from stepscope.analysis.account.selectors import Portion, work_launched_by
from stepscope.analysis.hlo.framework_ops import framework_ops_of_events
from stepscope.analysis.purpose.autograd import (
    backward_of_earlier_steps,
    checked_backward,
    repeated_backward,
)
from stepscope.analysis.purpose.branches import both_branches
from stepscope.analysis.purpose.cheaper_ways import (
    long_filters,
    part_of_order,
    rows_encoded_again,
    update_in_passes,
)
from stepscope.analysis.purpose.compiled import (
    compiled_measures,
    compiled_one_hots,
    compiled_passes,
    compiled_repeated,
    compiled_reported,
    compiled_table,
    compiled_unused,
    copied_arguments,
    program_work,
)
from stepscope.analysis.purpose.computing import computing_of
from stepscope.analysis.purpose.forward import forward_only_of
from stepscope.analysis.purpose.gradients import unused_gradients
from stepscope.analysis.purpose.graphs import (
    dense_gradient,
    graph_checks,
    graph_one_hots,
    passes_after_gradients,
    repeated_gradients,
)
from stepscope.analysis.purpose.jacobian import jacobian_of
from stepscope.analysis.purpose.loops import eager_rounds, independent_rounds
from stepscope.analysis.purpose.needless import loops_to_the_limit, multiplied_by_zero, same_in_every_step
from stepscope.analysis.purpose.operands import half_ops, one_hots, whole_table
from stepscope.analysis.purpose.padding import padding_of
from stepscope.analysis.purpose.pairs import pairs_of
from stepscope.analysis.purpose.parts import part_without_layers
from stepscope.analysis.purpose.products import compiled_empty, compiled_order, compiled_repeated_rows
from stepscope.analysis.purpose.setup import SetUp, part_of_set_up, set_up_of
from stepscope.analysis.purpose.tensors import (
    ADDED,
    FINDERS,
    TensorWork,
    feeds_training,
    products_of_larger_side,
    rows_that_generate,
    with_backward,
)
from stepscope.analysis.purpose.traced_parts import traced_part
from stepscope.analysis.purpose.transforms import KEPT, fast_length, largest_factor, slow_transforms
from stepscope.analysis.purpose.values import tensors_are_known
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.steps.verdict import LARGE_SHARE, LEAST_PERCENT
from stepscope.analysis.trace.eager import computing_eager_ops
from stepscope.analysis.trace.grouping import enclosing_events, is_device_work
from stepscope.analysis.trace.source_lines import line_that_asks
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I32, I64, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import FACTORS, INVERTS, ORDERS, op_alone
from stepscope.vocabulary.jax import compiled_functions, differentiated
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.python import place_of
from stepscope.vocabulary.tensorflow import eager_op
from stepscope.vocabulary.traits import PurposeTrait

(
    REPEATED, UNUSED, CHECKS, ONE_HOT, TABLE, MEASURES, AFTER, COPIED, ONE_BY_ONE, ORDERING, FACTORING,
    HALF, SET_UP,
) = (
    "repeated_backward", "unused_gradients", "checks", "one_hot", "whole_table", "measures", "after_update",
    "copied_arguments", "one_by_one", "ordering", "factoring", "half", "set_up",
)  # fmt: skip
DROPPED, JACOBIAN, INVERSE = "dropped_gradients", "jacobian", "inverse"
EARLIER, PART, BRANCHES = "earlier_steps", "part_without_layers", "both_branches"
PADDING, TRANSFORM = "padding", "slow_transform"
TIMES_ZERO, LIMIT = "times_zero", "loop_limit"
FILTER, PARTLY, ROWS_AGAIN, UPDATE = "long_filter", "partly_taken", "rows_encoded_again", "update_in_passes"
(
    PICKED, REPEATED_ROWS, PAIRS, ORDER, EMPTY, DEAD, EQUAL, CONSTANT, PREFIX, ENCODED,
) = FINDERS  # fmt: skip
LONGEST = ", the longest of each batch,"  # in the fact of a padding: each batch is filled up to that
_MOST_OF = 0.5  # of what is computed, by the word: ordering is a usual part of a step, decomposing is not
LEAST = LEAST_PERCENT / 100.0  # of the step: no advice is given on less


@dataclass(frozen=True)
class Excess:
    """Work that a step does not need.

    Attributes:
        rows: the events that do it, the outermost: rows of events.
        keeps: what is left of it after the change, as a share.
        fact: what was recorded, in words that follow "x % of each step".
        against: what would make it needed after all.
        is_part: more goes with it that the recording does not tell apart.
        made: what is made anew, where it is a stretch of the loop's thread rather than events.
        asked_by: the function to change, as its frames are named, where it is not the one that computes; else empty.
        kind: one of the keys of EXCESSES; ps: how long it takes in all whole steps, in elapsed time of threads and
            devices.  Both are set once it is known to take enough.
    """

    rows: I64
    keeps: float
    fact: str
    against: str
    is_part: bool = False
    made: SetUp | None = None
    asked_by: str = ""
    kind: str = ""
    ps: int = 0

    def part(self, model: StepModel) -> Portion:
        """What goes with it, in a model of the steps."""
        return part_with_work(model, self.rows) if self.made is None else part_of_set_up(model, self.made)


@dataclass(frozen=True)
class ExcessFact:
    """The same without its events: what one host knows of it, the time per step in ps, and what is made anew."""

    kind: str
    step_ps: int
    keeps: float
    fact: str
    against: str
    made: tuple[str, str] = ("", "")
    asked_by: str = ""


def excesses_of(trace: HostTrace) -> tuple[Excess, ...]:
    """What a host's steps do not need, the longest first; found once per trace."""
    return trace.derived("excess", _find_excesses)


def excess_facts_of(trace: HostTrace) -> tuple[ExcessFact, ...]:
    """The same for the rules of advice."""
    steps = max(len(whole_steps(trace).number), 1)
    return tuple(
        ExcessFact(
            each.kind, round(each.ps / steps), each.keeps, each.fact, each.against,
            (each.made.what, each.made.name) if each.made is not None else ("", ""), each.asked_by,
        )
        for each in excesses_of(trace)
    )  # fmt: skip


def _find_excesses(trace: HostTrace) -> tuple[Excess, ...]:
    if not len(computing_of(trace)) and not program_work(trace):
        return ()
    found = []
    for kind, find in EXCESSES.items():
        one = find(trace)
        if one is None or not (len(one.rows) or one.made):
            continue
        rows = _outermost(trace, one.rows)
        ps = _elapsed_ps(trace, rows) if one.made is None else one.made.spans.total
        if ps * (1.0 - one.keeps) >= LEAST * observed_time(trace).total:
            found.append(replace(one, kind=kind, rows=rows, ps=ps))
    return tuple(sorted(found, key=lambda each: -each.ps * (1.0 - each.keeps)))


def _outermost(trace: HostTrace, rows: I64) -> I64:
    among = np.zeros(len(trace.events), np.bool_)
    among[rows] = True
    rows = np.flatnonzero(among)
    found: I64 = rows[enclosing_events(trace, among)[rows] == rows]
    return found


def _elapsed_ps(trace: HostTrace, rows: I64) -> int:
    """How long the events last, or the device work that they are or launch where a device computes."""
    on_device = is_device_work(trace)
    if on_device.any():
        rows = np.append(work_launched_by(trace, rows), rows[on_device[rows]])
    return spans_of(trace, rows).total


def _per_step(trace: HostTrace, number: float) -> str:
    each = number / max(len(whole_steps(trace).number), 1)
    return f"{each:.0f}" if each >= 1 or not each else f"{each:.1f}"


_ONE_PASS = "one pass over the sum of the losses gives the same gradients"
_EACH_NEEDED = "the gradients of each loss are needed by themselves"


def _find_repeated(trace: HostTrace) -> Excess | None:
    if found := repeated_backward(trace):
        nodes = f"{found.nodes:.0f} ops of the forward pass have up to {found.runs} backward runs"
        fact = f"computes gradients again: {nodes} in a step, with no update between them; {_ONE_PASS}"
        return Excess(found.rows, 0.0, fact, _EACH_NEEDED)
    if again := repeated_gradients(trace):
        ops = f"{again.ops} product" if again.ops == 1 else f"{again.ops} products"
        fact = f"computes the gradients of {ops} of the forward pass up to {again.runs} times; {_ONE_PASS}"
        return Excess(again.rows, again.kept, fact, _EACH_NEEDED, asked_by=_frame(line_that_asks(trace, again.rows)))
    if compiled := compiled_passes(trace):
        passes, line = compiled
        (times, products), place = passes.figures, line.rpartition("/")[2]
        fact = (
            f"has {times} backward passes for {products} products of one forward pass, as that at {place}; {_ONE_PASS}"
        )
        return Excess(passes.rows, passes.kept, fact, _EACH_NEEDED)
    if programs := compiled_repeated(trace):
        fact = (
            f"computes one forward pass in {programs.figures[0]} programs, each with a backward pass of its own, of"
            " arrays of the same shapes"
        )
        against = "a parameter is updated between them, or they take different data"
        return Excess(programs.rows, programs.kept, fact, against)
    return None


def _find_earlier(trace: HostTrace) -> Excess | None:
    rows = backward_of_earlier_steps(trace)
    return Excess(
        rows, 0.0,
        f"goes back through forward ops of earlier steps, {_per_step(trace, len(rows))} of them, which had a backward"
        " pass in their own step: something keeps their graph, and more with each step",
        "a gradient through several steps is wanted",
        is_part=True,
    )  # fmt: skip


def _frame(line: str) -> str:
    """A line such as `train.py:9 step` as frames are named."""
    return f"${line}" if line else ""


def _frame_at(line: str) -> str:
    """The same of a line with the path of its file."""
    return _frame(line.rpartition("/")[2])


def _find_unused(trace: HostTrace) -> Excess | None:
    found = unused_gradients(trace)
    if found is None or found.is_dropped:
        return _find_unused_compiled(trace)
    sizes = f" (of size {', '.join(found.sizes[:3])})" if found.sizes else ""
    known = "no update works on parameters of that size" if found.sizes else "nothing resets them from step to step"
    if found.is_zeroed:
        known = "they are set to zero before the update"
    return Excess(
        found.rows, 0.0,
        f"computes gradients of {found.parameters:.0f} parameters{sizes} that no optimizer uses: {known}",
        "something else reads these gradients, or an optimizer that runs more rarely",
    )  # fmt: skip


def _find_dropped(trace: HostTrace) -> Excess | None:
    found = unused_gradients(trace)
    if found is None or not found.is_dropped:
        return None
    return Excess(
        found.rows, 0.0,
        f"goes back through a part of the model for gradients of {found.parameters:.0f} parameters, which begin anew"
        " before an update reads them",
        "the program reads these gradients itself",
    )  # fmt: skip


def _find_unused_compiled(trace: HostTrace) -> Excess | None:
    found = compiled_unused(trace)
    if found is None:
        return None
    compiled, shapes = found
    return Excess(
        compiled.rows, 0.0,
        f"computes {compiled.figures[0]} gradients ({', '.join(shapes[:3])}) that no program of the step takes, while"
        " others of the same program are taken",
        "the loop reads these gradients itself, or a program takes them in other steps",
    )  # fmt: skip


def _find_checks(trace: HostTrace) -> Excess | None:
    rows, against = checked_backward(trace), "a NaN is being looked for"
    if not len(rows):
        rows = graph_checks(trace)
        return Excess(rows, 0.0, f"checks {_per_step(trace, len(rows))} results of ops for NaN and infinity", against)
    checks = rows[has_trait(trace, trace.events.type[rows], PurposeTrait.CHECKS_NUMBERS)]
    return Excess(
        rows, 0.0,
        f"checks {_per_step(trace, len(checks))} results of the backward pass for NaN: anomaly detection is on, which"
        " also slows each forward op",
        against,
        is_part=True,
    )  # fmt: skip


def _find_one_hot(trace: HostTrace) -> Excess | None:
    found = None if trace.framework == "tensorflow" else one_hots(trace)
    rows, sizes = (found.rows, found.sizes) if found is not None else graph_one_hots(trace)
    if not len(rows) and (compiled := compiled_one_hots(trace)) is not None:
        rows, sizes = compiled.rows, (compiled.figures[0], compiled.figures[1])
    size = f" ({sizes[0]:,} numbers as {sizes[0]:,} x {sizes[1]:,})" if sizes else ""
    return Excess(
        rows, 0.0,
        f"writes classes out as one-hot rows{size} and reads them again; the numbers of the classes say the same",
        "rows have more than a single one, as with mixed labels",
    )  # fmt: skip


def _find_table(trace: HostTrace) -> Excess | None:
    against = "rows without a gradient have to change, too, as by momentum or weight decay"
    found = whole_table(trace)
    if found is None:
        return _find_table_compiled(trace, against)
    if found.table is not None and found.reads is None:
        table = f"a table ({found.table[0]:,} x {found.table[1]:,})"
        fact = f"writes the gradient of {table}, most of it zeros, and updates all rows: it reads few of them"
        return Excess(found.rows, found.kept, fact, against)
    if found.table is None:
        fact = (
            "writes the gradient of a whole table, most of it zeros: it reads few of the rows; the update of all rows"
            " comes on top"
        )
        return Excess(found.rows, found.kept, fact, against, is_part=True)
    return Excess(
        found.rows, found.kept,
        f"updates all {found.table[0]:,} rows of a table ({found.table[0]:,} x {found.table[1]:,}), of which the step"
        f" reads at most {found.reads:,.0f}",
        against,
    )  # fmt: skip


def _find_table_compiled(trace: HostTrace, against: str) -> Excess | None:
    compiled, dense = compiled_table(trace), dense_gradient(trace)
    if compiled is not None:
        rows, columns, reads = compiled.figures
        table = f"all {rows:,} rows of a table ({rows:,} x {columns:,})"
        fact = f"updates {table}, of which the step reads at most {reads:,}"
        return Excess(compiled.rows, compiled.kept, fact, against)
    if dense is None:
        return None
    fact = (
        "writes the gradient of a whole table and updates all of it: writing takes"
        f" {dense.times:.0f} times as long as reading the rows that the step needs"
    )
    return Excess(dense.rows, dense.kept, fact, against)


def _find_copied(trace: HostTrace) -> Excess | None:
    found = copied_arguments(trace)
    if found is None:
        return None
    return Excess(
        found.rows, found.kept,
        f"copies whole arguments of a compiled program (the largest has {found.figures[0] / 1e6:,.1f} MB), since it may"
        " not write into arrays that the caller keeps",
        "the old array is still used after the call",
    )  # fmt: skip


def _find_measures(trace: HostTrace) -> Excess | None:
    found = forward_only_of(trace)
    if found is None or not found.measures.any():
        return _find_measures_compiled(trace)
    if np.isin(computing_of(trace).rows[found.measures], rows_that_generate(trace)).any():
        return None  # what makes a sequence position by position samples the model
    feeds = feeds_training(trace)
    if feeds is not None and (feeds & found.measures & computing_of(trace).heavy).any():
        return None
    rows = computing_of(trace).rows[found.measures]
    return Excess(
        rows, 0.0,
        "runs the model for a metric: no backward pass follows, and the result is only compared with labels",
        "the metric is needed in every step and cannot be taken from the output that is trained on",
    )  # fmt: skip


def _find_measures_compiled(trace: HostTrace) -> Excess | None:
    found = compiled_measures(trace)
    if found is None:
        return _find_reported(trace)
    compiled, program = found
    return Excess(
        compiled.rows, compiled.kept,
        f"runs the model again in {program}, with products of the sizes that the training program has in its forward"
        " pass; no program takes the result",
        "it measures other data than the step trains on, as a validation does: then do it every N steps",
    )  # fmt: skip


def _find_reported(trace: HostTrace) -> Excess | None:
    found = compiled_reported(trace)
    if found is None:
        return None
    compiled, line = found
    return Excess(
        compiled.rows, compiled.kept,
        f"runs the model for {compiled.figures[0]} numbers that the program returns and no later step takes: neither"
        " update nor loss needs it",
        "these numbers are read in every step", asked_by=_frame_at(line),
    )  # fmt: skip


def _find_after_update(trace: HostTrace) -> Excess | None:
    found = forward_only_of(trace)
    if found is None:
        return _find_after_gradients(trace)
    rows = computing_of(trace).rows[found.late & ~found.measures]
    return Excess(
        rows, 0.0,
        "runs forward passes after the update of the step, which no backward pass follows",
        "a later step uses the result",
    )  # fmt: skip


def _find_after_gradients(trace: HostTrace) -> Excess | None:
    rows = passes_after_gradients(trace)
    return Excess(
        rows, 0.0,
        "runs the model again once its gradients are computed, with no gradient of its own, as for a metric",
        "a later step uses the result", asked_by=_frame(line_that_asks(trace, rows)) if len(rows) else "",
    )  # fmt: skip


def _find_one_by_one(trace: HostTrace) -> Excess | None:
    found = independent_rounds(trace)
    if found is None:
        return _find_eager_rounds(trace)
    return Excess(
        found.rows, 0.0,
        f"goes through {found.rounds:,.0f} rounds of a loop inside a compiled program, of small ops each; no round"
        " needs the one before",
        "all rounds at once do not fit into memory",
    )  # fmt: skip


def _find_eager_rounds(trace: HostTrace) -> Excess | None:
    found = eager_rounds(trace)
    if found is None:
        return None
    name, file, _ = place_of(found.loop.frame)
    return Excess(
        found.rows, 0.0,
        f"goes, with its backward pass, through the rounds of the loop in line {found.loop.line} of {file}, which start"
        f" {found.starts:,.0f} short ops, mostly {found.op}; no round needs the one before",
        "all rounds at once do not fit into memory", asked_by=f"${file}:{found.loop.line} {name}",
    )  # fmt: skip


def _find_ordering(trace: HostTrace) -> Excess | None:
    """Where a few of the rows are taken, selecting these would do, which no recording shows."""
    found = None if part_of_order(trace) else _find_costly(trace, ORDERS, _MOST_OF)  # which says more
    return found and Excess(
        found[0], 0.0,
        f"puts arrays in order ({found[1]}); where only some of the rows are taken, selecting these takes a fraction of"
        " that",
        "the order of all rows is used",
    )  # fmt: skip


def _find_factoring(trace: HostTrace) -> Excess | None:
    """Of a decomposition, whether all of it is used is not recorded; one with a gradient is of what the steps change,
    and of a known tensor it is known whether it changes."""
    is_told = tensors_are_known(trace) or part_of_order(trace) is not None
    found = None if is_told else _find_costly(trace, FACTORS, LARGE_SHARE / 100.0)
    if found is None or _has_gradient(trace, found[0]):
        return None
    return Excess(
        found[0], 0.0,
        f"decomposes or inverts matrices ({found[1]}); where a part of the result is used, such as singular values or a"
        " solution, that part takes less",
        "all of it is used, and the matrices change in every step",
    )  # fmt: skip


def _find_inverse(trace: HostTrace) -> Excess | None:
    """An inverse that is written out and differentiated, so that it is another one in each step."""
    rows, _, op, names = trace.derived("what is computed by op", _ops_computed)
    chosen = np.isin(op, [at for at, name in enumerate(names) if INVERTS.fullmatch(name)])
    place, ops = framework_ops_of_events(trace, rows, trace.stat_strings(stat_names.HLO_OP, rows=rows))
    chosen |= np.array([any(map(INVERTS.fullmatch, compiled_functions(op))) for op in ops], np.bool_)[place]
    rows = rows[chosen]
    if not _has_gradient(trace, rows):
        return None
    whole = with_backward(trace, rows)  # which multiplies with the inverse, and may take longer than that
    if spans_of(trace, whole).total < LARGE_SHARE / 100.0 * observed_time(trace).total:
        return None
    return Excess(
        whole, 0.0,
        "computes the inverse of a matrix; a solution with it, and its determinant, need one factorization",
        "all numbers of the inverse are used by themselves", asked_by=_frame(line_that_asks(trace, rows)),
    )  # fmt: skip


def _has_gradient(trace: HostTrace, rows: I64) -> bool:
    """Whether a backward pass goes through some ops, as far as numbers of autograd or names of JAX say."""
    work, types = computing_of(trace), used_rows(trace.events.type[rows], len(trace.event_types))
    _, ops = framework_ops_of_events(trace, rows, trace.stat_strings(stat_names.HLO_OP, rows=rows))
    forward = {inside for name in (*type_names(trace, types), *ops) if (inside := differentiated(name))}
    known = trace.strings.blob.tobytes() if forward else b""
    learned = np.isin(rows, work.rows[work.learned]).any()
    return bool(learned) or any(f"transpose({inside}".encode() in known for inside in forward)


def _find_costly(trace: HostTrace, pattern: Pattern[str], least: float) -> tuple[I64, str] | None:
    """Ops of a kind, where they are a share of what is computed, and their names."""
    rows, own_ps, op, names = trace.derived("what is computed by op", _ops_computed)
    wanted = [at for at, name in enumerate(names) if pattern.fullmatch(name)]
    if not wanted:
        return None
    chosen = np.isin(op, wanted)
    if not chosen.any() or own_ps[chosen].sum() < least * own_ps.sum():
        return None
    return rows[chosen], ", ".join(sorted(names[at] for at in wanted))


def _ops_computed(trace: HostTrace) -> tuple[I64, I64, I32, list[str]]:
    """What is computed: rows of events, their own times in ps, their ops, and the names of these."""
    work, eager = computing_of(trace), computing_eager_ops(trace)
    eager = eager[whole_steps(trace).label[eager] >= 0]
    others = [eager] if len(work) else [eager, *(each.rows for each in program_work(trace))]
    rows, own_ps = work.rows, work.own_ps
    if any(map(len, others)):
        rows = np.concatenate([rows, *others])
        own_ps = np.append(own_ps, trace.events.duration_ps[rows[len(work) :]])
    types = used_rows(trace.events.type[rows], len(trace.event_types))
    number, of_type = dict[str, int](), np.zeros(len(trace.event_types), np.int32)
    names = (eager_op(name) or op_alone(name) for name in type_names(trace, types))
    of_type[types] = [number.setdefault(name, len(number)) for name in names]
    return rows, own_ps, of_type[trace.events.type[rows]], [*number]


def _find_pairs(trace: HostTrace) -> Excess | None:
    pairs = pairs_of(trace)
    if pairs is None:
        return _find_in_tensors(PAIRS, "the pairs themselves are needed", trace)
    of = f"{pairs.of[0]} and {pairs.of[1]}" if pairs.of[0] != pairs.of[1] else f"two {pairs.of[0]}"
    squares = "sums of squares are |x|^2 - 2 x.y + |y|^2"
    same = squares if pairs.is_difference else "sums over their common axis are one product of matrices"
    return Excess(
        pairs.rows, 0.0, f"writes and sums an array of all pairs, {pairs.shape} of {of}; {same}",
        "something else than their sums, or sums of squares, is needed of the pairs",
    )  # fmt: skip


def _find_padding(trace: HostTrace) -> Excess | None:
    found = padding_of(trace)
    if found is None:
        return None
    rows = f"rows of {found.mean:.0f} on average, at most {found.longest:,}"
    own = LONGEST if found.is_to_longest else ""
    return Excess(
        found.rows, found.kept,
        f"computes batches that are filled up to {found.length:,}{own} from {rows}: {100 * found.kept:.0f} % of that"
        f" {'is of rows' if found.is_to_longest else 'is what the longest row of a batch needs'}",
        "the model or a compiled program needs one length", asked_by=found.filled_by,
    )  # fmt: skip


def _find_jacobian(trace: HostTrace) -> Excess | None:
    found = jacobian_of(trace)
    if found is None:
        return None
    place, _, function = found.asked_by.rpartition("/")[2].partition(" ")
    taken = f", of which {function} ({place}) takes a product or a sum" if found.is_summed else ""
    fact = f"computes a whole Jacobian, {found.size} passes instead of one{taken}"
    against = "all of it is used, as for a determinant"
    asked_by = found.asked_by or line_that_asks(trace, found.rows)
    return Excess(found.rows, 1.0 / found.size, fact, against, asked_by=_frame(asked_by))


def _find_half(trace: HostTrace) -> Excess | None:
    return Excess(
        half_ops(trace), 0.0,
        "multiplies or convolves float16 on the host's processor, which most processors emulate: float32 is several"
        " times as fast there",
        "the processor has instructions for float16 (avx512_fp16, amx_fp16)",
    )  # fmt: skip


_MADE_ANEW = {
    "loader": (
        "starts its loader again, which draws the order of the whole data set for one batch",
        "the loader has one batch per epoch: then keep that batch",
    ),
    "pipeline": ("builds a pipeline of tf.data again, with an iterator of its own", "each step has other data sets"),
    "fit": ("is a call of `{name}` for one batch, which builds a pipeline, an iterator and its callbacks anew", ""),
    "optimizer": ("makes an optimizer again, which also forgets what it has learned of earlier steps", ""),
    "module": ("makes layers of the model again, with new weights", "the model changes its form from step to step"),
    "threads": ("starts threads or processes again", "they end because something else needs the cores"),
    "walk": (
        "is Python that takes a module apart into its arrays, or puts it together, around compiled calls, as nnx.jit"
        " does",
        "",
    ),
}


def _find_transform(trace: HostTrace) -> Excess | None:
    found = slow_transforms(trace)
    if found is None:
        return None
    length, line = found.lengths[0], line_that_asks(trace, found.rows)
    return Excess(
        found.rows, KEPT,
        f"computes Fourier transforms of {length:,} numbers, which has the prime factor {largest_factor(length):,}:"
        f" of {fast_length(length):,} they take less than half of the time",
        "the length may not change, as where the frequencies themselves are the result", asked_by=_frame(line),
    )  # fmt: skip


def _find_cheaper_way(find: Callable[[HostTrace], TensorWork | None], against: str, trace: HostTrace) -> Excess | None:
    """Ops of which another way costs a fraction, where they are a large share of the steps."""
    found = find(trace)
    if (
        found is None
        or _elapsed_ps(trace, _outermost(trace, found.rows)) < LARGE_SHARE / 100.0 * observed_time(trace).total
    ):
        return None
    return Excess(found.rows, found.kept, found.what, against, asked_by=_frame(line_that_asks(trace, found.rows)))


def _find_set_up(trace: HostTrace) -> Excess | None:
    made = set_up_of(trace)
    if made is None:
        return None
    fact, against = _MADE_ANEW[made.what]
    steps = len(whole_steps(trace).number)
    seen = f" (recorded in {made.steps} of {steps} steps)" if made.is_certain else (
        f" (samples show it in {made.steps} of {steps} steps)"
    )  # fmt: skip
    rows = np.empty(0, np.int64)
    return Excess(rows, 0.0, fact.format(name=made.name) + seen, against, is_part=True, made=made)


def _find_part(trace: HostTrace) -> Excess | None:
    found = part_without_layers(trace)
    if found is None:
        return _find_traced_part(trace)
    name, _, _ = place_of(found.frame)
    return Excess(
        found.rows, 0.0,
        f"is {name} with its backward pass, in which no layer is computed: {found.ops}",
        "what it computes is needed as it is", asked_by=found.frame,
    )  # fmt: skip


def _find_branches(trace: HostTrace) -> Excess | None:
    found = both_branches(trace)
    if found is None or _elapsed_ps(trace, found.rows) < LARGE_SHARE / 100.0 * observed_time(trace).total:
        return None
    return Excess(
        found.rows, 0.0,
        "computes branches for all rows of a batch, and selects from their results: under jax.vmap a condition computes"
        " both of its branches",
        "most rows need the branch that takes long", asked_by=_frame_at(found.line),
    )  # fmt: skip


def _find_times_zero(trace: HostTrace) -> Excess | None:
    found = multiplied_by_zero(trace)
    if found is None:
        return None
    (count,) = found.work.figures
    products = "a product" if count == 1 else f"{count} products"
    return Excess(
        found.work.rows, 0.0,
        f"computes what only {products} with zero {'takes' if count == 1 else 'take'}, as gradients of parameters"
        " that a mask of zeros freezes: XLA leaves such products as they are",
        "infinity and NaN in it are looked for", asked_by=_frame_at(found.line),
    )  # fmt: skip


def _find_limit(trace: HostTrace) -> Excess | None:
    found = loops_to_the_limit(trace)
    if found is None or _elapsed_ps(trace, found.work.rows) < LARGE_SHARE / 100.0 * observed_time(trace).total:
        return None
    return Excess(
        found.work.rows, 0.0,
        f"is a loop of a compiled program that runs to its limit of {found.work.figures[0]:,} rounds each time: the"
        " other condition that it has never ends it",
        "all of these rounds are needed", asked_by=_frame_at(found.line),
    )  # fmt: skip


def _find_repeated_rows(trace: HostTrace) -> Excess | None:
    found = compiled_repeated_rows(trace)
    if found is None:
        return _find_in_tensors(REPEATED_ROWS, _AGAINST_IN_TENSORS[REPEATED_ROWS], trace)
    work, line = found
    spread, given = work.figures
    return Excess(
        work.rows, work.kept,
        f"multiplies {spread:,} rows, which are {given:,} rows repeated, with weights, and gives equal rows",
        _AGAINST_IN_TENSORS[REPEATED_ROWS], asked_by=_frame_at(line),
    )  # fmt: skip


def _find_constant(trace: HostTrace) -> Excess | None:
    found = same_in_every_step(trace)
    if found is None:
        return _find_in_tensors(CONSTANT, _AGAINST_IN_TENSORS[CONSTANT], trace)
    made = "arrays that the program keeps as they are while steps run" if found.work.figures[1] else "constants alone"
    against = "the program is given other arrays from time to time" if found.work.figures[1] else "memory is short"
    return Excess(
        found.work.rows, 0.0,
        f"computes in a compiled program what is the same in every step: it is made of {made}",
        against, asked_by=_frame_at(found.line),
    )  # fmt: skip


def _find_traced_part(trace: HostTrace) -> Excess | None:
    found = traced_part(trace, _MOST_OF)
    if found is None:
        return None
    name, file = found.line.function, found.line.file.rpartition("/")[2]
    return Excess(
        found.rows, 0.0,
        f"is {name} at {file}:{found.line.line} with its backward pass, in which no layer is computed: {found.ops}",
        "what it computes is needed as it is", asked_by=f"${file}:{found.line.line} {name}",
    )  # fmt: skip


def _find_order(trace: HostTrace) -> Excess | None:
    compiled = compiled_order(trace)
    if compiled is None:
        squares = products_of_larger_side(trace)
        if squares is not None:
            return Excess(squares.rows, squares.kept, squares.what, _AGAINST_IN_TENSORS[ORDER])
        return _find_in_tensors(ORDER, _AGAINST_IN_TENSORS[ORDER], trace)
    rows, columns, inner, taken, is_added = compiled.figures
    added = ADDED if is_added else ""
    fact = (
        f"multiplies [{rows},{inner}] by [{inner},{columns}]{added}, then with {taken:,} rows; multiplying these with"
        f" one after the other takes {100 * compiled.kept:.0f} % of that"
    )
    return Excess(compiled.rows, compiled.kept, fact, _AGAINST_IN_TENSORS[ORDER], is_part=bool(is_added))


def _find_empty(trace: HostTrace) -> Excess | None:
    compiled = compiled_empty(trace)
    if compiled is None:
        return _find_in_tensors(EMPTY, _AGAINST_IN_TENSORS[EMPTY], trace)
    return Excess(compiled[0].rows, compiled[0].kept, compiled[1], _AGAINST_IN_TENSORS[EMPTY])


def _find_in_tensors(kind: str, against: str, trace: HostTrace) -> Excess | None:
    found = FINDERS[kind](trace)
    return None if found is None else Excess(found.rows, found.kept, found.what, against, found.is_part)


_AGAINST_IN_TENSORS: Mapping[str, str] = {
    PICKED: "the rest is used elsewhere, or statistics are taken over all of it",
    REPEATED_ROWS: "the rows are changed, as by noise, before the product",
    ORDER: "the first product is used by itself, too",
    EMPTY: "it is made new from time to time",
    DEAD: "the program reads its values itself",
    ENCODED: "what these layers take changes with each position",
    PREFIX: "a position depends on later ones, as without a causal mask",
    EQUAL: "something outside of PyTorch, as numpy, writes these tensors in between",
    CONSTANT: "something outside of PyTorch, as numpy, writes these tensors, or they are only the same for some steps",
}

EXCESSES: Mapping[str, Callable[[HostTrace], Excess | None]] = {
    REPEATED: _find_repeated,
    EARLIER: _find_earlier,
    UNUSED: _find_unused,
    DROPPED: _find_dropped,
    CHECKS: _find_checks,
    ONE_HOT: _find_one_hot,
    TABLE: _find_table,
    MEASURES: _find_measures,
    AFTER: _find_after_update,
    COPIED: _find_copied,
    ONE_BY_ONE: _find_one_by_one,
    ORDERING: _find_ordering,
    INVERSE: _find_inverse,
    FACTORING: _find_factoring,
    PAIRS: _find_pairs,
    JACOBIAN: _find_jacobian,
    HALF: _find_half,
    PADDING: _find_padding,
    TRANSFORM: _find_transform,
    FILTER: partial(_find_cheaper_way, long_filters, "the filter is short where it is not zero"),
    PARTLY: partial(_find_cheaper_way, part_of_order, "the rest of the result is used elsewhere"),
    ROWS_AGAIN: partial(_find_cheaper_way, rows_encoded_again, "the rows or the layers change, or memory is short"),
    UPDATE: partial(_find_cheaper_way, update_in_passes, "the update needs what single ops do in between"),
    SET_UP: _find_set_up,
    BRANCHES: _find_branches,
    TIMES_ZERO: _find_times_zero,
    LIMIT: _find_limit,
    PART: _find_part,
    **{kind: partial(_find_in_tensors, kind, against) for kind, against in _AGAINST_IN_TENSORS.items()},
    ORDER: _find_order,
    EMPTY: _find_empty,
    CONSTANT: _find_constant,
    REPEATED_ROWS: _find_repeated_rows,
}
"""How each kind is found: its events, what of them is kept, the fact, and what speaks against it."""
