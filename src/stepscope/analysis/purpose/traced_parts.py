"""Parts of compiled programs and graphs that compute no layer and yet take most of the step, by where they were traced.

    z = memory * (1 - here) + here * h      # 70 % of the step, with its backward pass: no weight is multiplied here
    loss = jnp.mean(jnp.abs(z @ w - y))     # a product: a layer, or what stands for one

Samples of the loop's thread show the call of the program alone.  Its instructions tell the line that they were traced
at and, in JAX, the functions around that; of a gradient that of its forward op.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepscope.analysis.hlo.sources import InstructionSource, is_user_frame
from stepscope.analysis.purpose.compiled import ProgramWork, product_sources, program_work, rows_of
from stepscope.analysis.purpose.computing import computing_of
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.trace.source_lines import SourceLine, source_lines
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import HostTrace
from stepscope.model.arrays import F64, I64, Groups, Mask, distinct, number_rows, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import FACTORS, op_alone
from stepscope.vocabulary.custom_calls import FREE, kind_of_call
from stepscope.vocabulary.jax import is_backward, is_layer, op_at_end
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.python import runs_layer
from stepscope.vocabulary.traits import OpTrait, PurposeTrait

_BOTH_WAYS = 0.1  # of a part: what is trained runs forward and backward, one of them rarely for less; judgement
_HOLDS_OTHERS = ("while", "conditional", "call")  # their time is that of the instructions that they run


@dataclass(frozen=True)
class TracedPart:
    """A line or a function of the program, with what it asked a compiled program or a graph for.

    Attributes:
        line: where; of a function that of its longest line.
        share: of the steps, 0 to 1.
        rows: what computes it, rows of events; ops: what that is in words, the longest first.
    """

    line: SourceLine
    share: float
    rows: I64
    ops: str


@dataclass(frozen=True)
class _Traced:
    """What compiled programs and graphs compute in the steps; columns of one length.

    Attributes:
        rows: int64, rows of events; own_ps: float64, the own time of each, as a share of the steps.
        backward: bool; layer: bool, it multiplies or takes rows of a table, or is a library's layer.
        line: int64, a number of `lines`, -1 for none; op: int64, a number of `ops`, which are names of ops.
        around: for each function of the program which of them it asked for, ascending rows of the columns.
    """

    rows: I64
    own_ps: F64
    backward: Mask
    layer: Mask
    line: I64
    lines: list[SourceLine]
    op: I64
    ops: list[str]
    around: list[I64]


def traced_part(trace: HostTrace, least: float) -> TracedPart | None:
    """The smallest part without a layer that is trained and takes at least a share of the steps, 0 to 1; None without
    one."""
    traced = _of_programs(trace) if program_work(trace) else _of_graphs(trace)
    if traced is None:
        return None
    best: tuple[float, int] | None = None
    found = None
    for at, members in _places(traced):
        share = float(traced.own_ps[members].sum())
        back = float(traced.own_ps[members][traced.backward[members]].sum())
        if share < least or traced.layer[members].any() or not _BOTH_WAYS <= back / share <= 1.0 - _BOTH_WAYS:
            continue
        if any(_decomposes(traced.ops[each]) for each in used_rows(traced.op[members], len(traced.ops)).tolist()):
            continue  # which may be the model itself, and is told for what it is where it need not be
        if best is None or (-share, len(members)) < best:
            best = -share, len(members)
            found = TracedPart(traced.lines[at], share, traced.rows[members], _say_ops(trace, traced, members))
    return found


def _decomposes(op: str) -> bool:
    return op == "triangular_solve" or FACTORS.fullmatch(op) is not None


def _places(traced: _Traced) -> Iterator[tuple[int, I64]]:
    """Each function and line with what it asked for: a number of `lines`, and rows of the columns."""
    for chosen in traced.around:
        lines = traced.line[chosen]
        ps = np.bincount(lines[lines >= 0], traced.own_ps[chosen][lines >= 0], len(traced.lines))
        if (lines >= 0).any():
            yield int(ps.argmax()), chosen
    for at in range(len(traced.lines)):
        yield at, np.flatnonzero(traced.line == at)


def _shares(trace: HostTrace, rows: I64, own_ps: I64) -> F64:
    """Own times as shares of the steps: several threads may compute at once."""
    whole = max(observed_time(trace).total, 1) * max(int(own_ps.sum()), 1)
    ordered = np.sort(rows)  # work is by what it is, and what ascends is united in one pass
    return own_ps.astype(np.float64) * (spans_of(trace, ordered).total / whole)


def _of_programs(trace: HostTrace) -> _Traced:
    work = computing_of(trace)
    own = np.zeros(len(trace.events), np.int64)
    own[work.rows] = work.own_ps
    parts = [_of_program(each) for each in program_work(trace)]
    rows = np.concatenate([each[0] for each in parts])
    sources = [source for each in parts for source in each[1]]
    line, lines = source_lines(trace, rows)
    around: dict[tuple[str, str], list[int]] = {}
    for at, source in enumerate(sources):
        for key in _functions_around(source):
            around.setdefault(key, []).append(at)
    own_ps = own[rows] if len(work) else trace.events.duration_ps[rows]
    return _Traced(
        rows, _shares(trace, rows, own_ps), np.array([is_backward(each.op_name) for each in sources], np.bool_),
        np.concatenate([each[2] for each in parts]), line, lines, np.arange(len(sources)),
        [op_at_end(each.op_name) for each in sources], [np.array(each, np.int64) for each in around.values()],
    )  # fmt: skip


def _of_program(work: ProgramWork) -> tuple[I64, list[InstructionSource], Mask]:
    """The events of a program that hold no others, where each comes from, and whether that place has a layer."""
    module = work.module
    known = work.instruction >= 0
    known[known] = ~module.is_opcode(*_HOLDS_OTHERS)[work.instruction[known]]
    instruction = work.instruction[known]
    run = distinct(instruction)
    read = dict(zip(run.tolist(), module.sources.read(run.tolist()) if len(run) else (), strict=True))
    # A compiler also writes other sums as products.
    layers = {source.place for _, source in product_sources(work) if is_layer(source.op_name)}
    own = [row for row in rows_of(module, "gather") if _is_given(work, row)]
    # A kernel of a library, such as fused attention, stands for layers, whatever its name.
    own += [row for row in rows_of(module, "custom-call") if kind_of_call(module.target_of(row)) != FREE]
    layers |= {source.place for source in (module.sources.read(own) if own else ())}
    found = {each: source.place in layers or _in_layer(source) for each, source in read.items()}
    return (
        work.rows[known],
        [read[each] for each in instruction.tolist()],
        np.array([found[each] for each in instruction.tolist()], np.bool_),
    )


def _is_given(work: ProgramWork, row: int) -> bool:
    """Whether an instruction takes rows of what the program is given, as of a table."""
    origin = work.flow.origin(work.flow.operand(row, 0))
    return work.module.opcode_of(origin) == "parameter" and work.module.computation[origin] == work.module.entry


def _in_layer(source: InstructionSource) -> bool:
    """Whether a library's layer is between an instruction and the line of the program that asked for it."""
    for frame in source.stack:
        if is_user_frame(frame):
            return False
        if runs_layer(frame.partition(" ")[2]):
            return True
    return False


def _functions_around(source: InstructionSource) -> set[tuple[str, str]]:
    users = (frame.partition(" ") for frame in source.users())
    return {(place.rpartition(":")[0], function) for place, _, function in users}


def _of_graphs(trace: HostTrace) -> _Traced | None:
    """None where no op knows its line, as in most graphs: then there is no part to tell."""
    work = computing_of(trace)
    line, lines = source_lines(trace, work.rows)
    if not lines:
        return None
    types = trace.events.type[work.rows]
    kinds, place = number_rows(types, len(trace.event_types))
    names = [op_alone(name.rpartition(":")[2] or name) for name in type_names(trace, kinds)]
    layer = has_trait(trace, types, OpTrait.MULTIPLIES) | has_trait(trace, types, PurposeTrait.LOOKS_UP)
    return _Traced(
        work.rows, _shares(trace, work.rows, work.own_ps), has_trait(trace, types, OpTrait.OF_GRADIENT), layer,
        line, lines, place, names, _by_function(line, lines),
    )  # fmt: skip


def _by_function(line: I64, lines: list[SourceLine]) -> list[I64]:
    """The places in `line` of each function, those that come first by their first place."""
    functions: dict[tuple[str, str], int] = {}
    function_of = [functions.setdefault((each.file, each.function), len(functions)) for each in lines]
    at = np.flatnonzero(line >= 0)
    if not len(at):
        return []
    groups = Groups.of(np.array(function_of, np.int64)[line[at]])
    order = np.argsort(groups.number, kind="stable")
    return np.split(at[order], np.cumsum(groups.count())[:-1])


def _say_ops(trace: HostTrace, traced: _Traced, members: I64) -> str:
    """`40 mul (4.1 ms), 8 add (0.2 ms)`: what takes most of it per step, with its backward work."""
    steps, whole = max(len(whole_steps(trace).number), 1), observed_time(trace).total
    kinds, place = np.unique(np.array(traced.ops)[traced.op[members]], return_inverse=True)
    ps = np.bincount(place.ravel(), traced.own_ps[members], len(kinds)) * whole
    calls = np.bincount(place.ravel(), minlength=len(kinds))
    return ", ".join(
        f"{calls[at] / steps:,.0f} {kinds[at]} ({ps[at] / steps / 1e9:.2g} ms)" for at in np.argsort(-ps)[:3].tolist()
    )
