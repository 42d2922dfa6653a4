"""Gradients of parameters that no update reads.

critic(fake).backward()    adds to generator and critic     the critic's pass goes on through the generator
critic_optimizer.step()    writes the critic
critic(fake).backward()    ...
generator.zero_grad()      the generator's begin anew: none of what was added has been read
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np

from stepscope.analysis.purpose.autograd import BackwardPasses, bounds, inner_adds, passes_of
from stepscope.analysis.purpose.computing import backward_runs, computing_of, inside_any, update_ranges
from stepscope.analysis.purpose.sizes import Size, sizes_of
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.trace.columns import events_of_kind, is_inside, is_inside_another
from stepscope.analysis.trace.grouping import enclosing_events, forest
from stepscope.analysis.trace.program_facts import zero_gradients
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, distinct, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import RESETS, strip_library
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.traits import OpTrait, PurposeTrait

K = EventKind


@dataclass(frozen=True)
class Unused:
    """Gradients of parameters that no update reads, with the backward work that nothing else needs.

    Attributes:
        rows: rows of events; parameters: how many a step; sizes: of the largest, as recorded, empty where unknown.
        is_dropped: updates work on these parameters at other times, but these gradients begin anew before.
        is_zeroed: they are set to zero before an update reads them.
    """

    rows: I64
    parameters: float
    sizes: tuple[str, ...] = ()
    is_dropped: bool = False
    is_zeroed: bool = False


def unused_gradients(trace: HostTrace) -> Unused | None:
    """Gradients that are computed for parameters, and that no update reads; None where none are, or it is not known.

    Three facts show them.  With recorded sizes: no update has operands of the sizes of a layer's parameters, or none
    does before their gradients begin anew; or all gradients of that size are zeros between steps, as a capture of our
    own has read.  Without: the gradient is never reset, so that each step adds to that of the step
    before, while others begin anew; that needs one update a step, as a second optimizer may reset its own elsewhere.
    """
    return trace.derived("unused gradients", _find_unused)


def _find_unused(trace: HostTrace) -> Unused | None:
    passes, updates = passes_of(trace), update_ranges(trace)
    # A pass within a pass computes activations again: what lies inside a node is not told apart then.
    nested = is_inside_another(trace, backward_runs(trace), K.BACKWARD).any()
    if not passes.adds.any() or not len(updates) or nested:
        return None
    steps, sizes = max(len(whole_steps(trace).number), 1), dict[int, Size]()
    unused = dropped = zeroed = np.zeros(len(passes), np.bool_)
    if trace.has_stat(stat_names.INPUT_DIMS):
        sizes = dict(zip(np.flatnonzero(passes.adds).tolist(), _added_sizes(trace, passes), strict=True))
        unused, dropped, zeroed = _unread(trace, passes, sizes)
    if not sizes or not any(sizes.values()):
        never = _never_reset(trace, passes, updates)
        unused = unused if never is None else never
    is_zeroed = bool(zeroed.any())
    unused = unused | zeroed
    chosen = unused if unused.any() else dropped
    if not chosen.any():
        return None
    # After the last gradient that is used, a pass computes for the others alone.
    _, _, of = bounds(passes)
    last_used = np.full(int(of.max()) + 1, -1)
    used = np.flatnonzero(passes.adds & ~chosen)
    last_used[of[used]] = used  # ascending: the last one stays
    removed = chosen | ((np.bincount(of, chosen) > 0)[of] & (np.arange(len(passes)) > last_used[of]))
    texts = dict.fromkeys(str([*sizes[at]]).replace(" ", "") for at in np.flatnonzero(unused).tolist() if at in sizes)
    return Unused(passes.rows[removed], int(chosen.sum()) / steps, tuple(texts), not unused.any(), is_zeroed)


# ---- By sizes --------------------------------------------------------------------------------------------------------

_Layer = tuple[Size, ...]  # the sizes of an op's operands behind the first: its parameters


def _unread(trace: HostTrace, passes: BackwardPasses, sizes: Mapping[int, Size]) -> tuple[Mask, Mask, Mask]:
    """Which runs add to gradients of layers that no update works on, which to those that begin anew before one does,
    and which to those that are zeros when one does.

    Args:
        sizes: of what each run adds, by its place in `passes`.
    """
    unused, dropped, zeroed = (np.zeros(len(passes), np.bool_) for _ in range(3))
    layers = _runs_of_layers(trace, passes, sizes)
    updates = _updated_sizes(trace, passes)
    if not layers or not updates:
        return unused, dropped, zeroed
    times = _updates_of_layers(passes, sizes, layers, updates)
    if not any(map(len, times.values())):
        return unused, dropped, zeroed  # a flat buffer in place of the parameters: which are updated is not known
    zeros = _set_to_zero(trace, passes)
    telling = [(at, numbers - zeros) for at, numbers in updates] if zeros else updates
    with_more = _updates_of_layers(passes, sizes, layers, telling) if zeros else times
    reads, start = _reads(trace), trace.events.start_ps[passes.rows]
    begins = ~_adds_in_place(trace, passes.rows)
    for layer, places in layers.items():
        runs = np.array(places, np.int64)  # in order of time
        if not len(times[layer]):
            unused[runs] = True
            continue
        if not len(with_more[layer]):
            zeroed[runs] = True
            continue
        used = np.sort(np.concatenate([times[layer], *(reads[sizes[at]] for at in {*places} if sizes[at] in reads)]))
        # A later pass in which they begin anew; what is after the last one is not known.
        anew = np.searchsorted(passes.of[runs[begins[runs]]], passes.of[runs], side="right")
        known = anew < begins[runs].sum()
        until = start[runs[begins[runs]][anew[known]]]
        dropped[runs[known]] = np.searchsorted(used, start[runs[known]]) == np.searchsorted(used, until)
    return unused, dropped, zeroed


def _set_to_zero(trace: HostTrace, passes: BackwardPasses) -> Counter[Size]:
    """How many parameters of each size have gradients that are zeros between steps, without the sizes that an op resets
    between an update and the next backward pass: those are zeros because they were used."""
    zeros = Counter(zero_gradients(trace))
    if not zeros:
        return zeros
    work, start = computing_of(trace), trace.events.start_ps
    rows = work.rows[work.outer & ~work.backward & ~work.updates]
    types = used_rows(trace.events.type[rows], len(trace.event_types))
    resets = types[
        np.array([RESETS.fullmatch(strip_library(name)) is not None for name in type_names(trace, types)], np.bool_)
    ]
    rows = rows[np.isin(trace.events.type[rows], resets)]
    ends = [passes.rows[bounds(passes)[1] - 1], update_ranges(trace)]
    begins = np.sort(np.concatenate([start[each] for each in ends]))
    is_pass = np.isin(begins, start[ends[0]])
    at = np.searchsorted(begins, start[rows]) - 1
    used = rows[(at < 0) | ~is_pass[np.maximum(at, 0)]]  # what came before is an update
    texts = distinct(trace.stat_strings(stat_names.INPUT_DIMS, rows=used)).tolist()
    reset = {size for text in texts if text > 0 for size in _first_operand(trace.strings[text])}
    return Counter({size: count for size, count in zeros.items() if size not in reset})


def _added_sizes(trace: HostTrace, passes: BackwardPasses) -> list[Size]:
    return _first_sizes(trace, inner_adds(trace, passes.rows[passes.adds]))


def _first_sizes(trace: HostTrace, ops: I64) -> list[Size]:
    """The size of the first operand of each op."""
    text = trace.stat_strings(stat_names.INPUT_DIMS, rows=ops)
    known = {row: next(iter(sizes_of(trace.strings[row])), ()) if row > 0 else () for row in distinct(text).tolist()}
    return [known[row] for row in text.tolist()]


def _runs_of_layers(trace: HostTrace, passes: BackwardPasses, sizes: Mapping[int, Size]) -> Mapping[_Layer, list[int]]:
    """The runs that add to the gradients of layers, by the sizes of their parameters: places in `passes`.

    A gradient is added as soon as it is there, so that the node before, which has a number, tells its op.  What has the
    size of no operand behind the first is the gradient of the input, which is used where examples are changed against
    the model.
    """
    work, adds = computing_of(trace), np.flatnonzero(passes.adds)
    learned = np.flatnonzero(work.learned & (work.number >= 0))
    numbers, first = np.unique(work.number[learned], return_index=True)
    outer = np.zeros(len(trace.events), np.bool_)
    outer[work.rows[work.outer]] = True
    dims = trace.stat_strings(stat_names.INPUT_DIMS)[enclosing_events(trace, outer)[work.rows[learned[first]]]]
    known = {row: sizes_of(trace.strings[row])[1:] if row > 0 else () for row in distinct(dims).tolist()}
    layer_of = {number: known[row] for number, row in zip(numbers.tolist(), dims.tolist(), strict=True)}
    last = np.maximum.accumulate(np.where(passes.number >= 0, np.arange(len(passes)), 0))[adds]
    number = np.where(passes.of[last] == passes.of[adds], passes.number[last], -1)
    found: dict[_Layer, list[int]] = defaultdict(list)
    for place, own in zip(adds.tolist(), number.tolist(), strict=True):
        layer = layer_of.get(own, ())
        if sizes[place] and any(sorted(each) == sorted(sizes[place]) for each in layer):
            found[layer].append(place)
    return found


def _updated_sizes(trace: HostTrace, passes: BackwardPasses) -> list[tuple[int, Counter[Size]]]:
    """When each update ends, and how many parameters of each size it works on; nothing if that is not known of one, or
    if one runs several backward passes itself.

    Each kind of its ops goes once over the parameters, or over their states, which have their sizes.  What is written
    in place between two passes elsewhere may be an update, too.
    """
    work, events = computing_of(trace), trace.events
    calls = update_ranges(trace)
    above = forest(trace).parent[calls].astype(np.int64)
    calls = calls[(above < 0) | ~inside_any(trace, np.maximum(above, 0), calls)]
    end = events.start_ps[calls] + events.duration_ps[calls]
    first = np.sort(events.start_ps[passes.rows[bounds(passes)[0]]])
    if (np.searchsorted(first, end) - np.searchsorted(first, events.start_ps[calls]) > 1).any():
        return []
    rows = work.rows[work.outer & ~work.backward & ~work.learned]
    rows = rows[_writes_in_place(trace, rows)]
    dims, kinds = (trace.stat_strings(name, rows=rows) for name in (stat_names.INPUT_DIMS, stat_names.INPUT_TYPES))
    among = np.zeros(len(events), np.bool_)
    among[calls] = True
    call = enclosing_events(trace, among)[rows].astype(np.int64)
    lists = [row for row in distinct(kinds[kinds > 0]).tolist() if "TensorList" in trace.strings[row]]
    texts = distinct(dims[np.isin(kinds, lists) & (call >= 0)]).tolist()
    if any(row <= 0 or "[[[" not in trace.strings[row] for row in texts):
        return []
    sizes = {row: _first_operand(trace.strings[row]) if row > 0 else [] for row in distinct(dims).tolist()}
    group = np.where(call >= 0, call, -1 - np.searchsorted(first, events.start_ps[rows]))
    ended = dict(zip(calls.tolist(), end.tolist(), strict=True))
    counts: dict[int, dict[int, Counter[Size]]] = {call: defaultdict(Counter) for call in calls.tolist()}
    columns = group.tolist(), events.type[rows].tolist(), dims.tolist(), events.start_ps[rows].tolist()
    for each, type_, row, start in zip(*columns, strict=True):
        counts.setdefault(each, defaultdict(Counter))[type_].update(filter(None, sizes[row]))
        ended.setdefault(each, start)
    found = [(ended[each], _most_usual(of_types)) for each, of_types in counts.items()]
    return found if all(numbers for _, numbers in found[: len(calls)]) else []


def _most_usual(counts: Mapping[int, Counter[Size]]) -> Counter[Size]:
    """How many parameters of each size there are: as most kinds of ops have it, the larger one of two."""
    found = Counter[Size]()
    for size in {size for each in counts.values() for size in each}:
        numbers = Counter(each[size] for each in counts.values() if each[size])
        found[size] = max(numbers, key=lambda number: (numbers[number], number))
    return found


def _first_operand(text: str) -> list[Size]:
    """The sizes of an op's first operand, which may be a list of tensors.

    >>> _first_operand("[[8,4],[4,2]]"), _first_operand("[[[8,4],[4,2]],[[8,4],[4,2]],[]]")
    ([(8, 4)], [(8, 4), (4, 2)])
    """
    if text.startswith("[[["):
        return [*sizes_of(text[1 : text.index("]]") + 2])]
    return [*sizes_of(text)[:1]]


def _updates_of_layers(
    passes: BackwardPasses,
    sizes: Mapping[int, Size],
    layers: Mapping[_Layer, list[int]],
    updates: list[tuple[int, Counter[Size]]],
) -> Mapping[_Layer, I64]:
    """When updates may have worked on each layer: in ps."""
    needs: dict[_Layer, Counter[Size]] = {}
    for layer, places in layers.items():
        need = needs[layer] = Counter[Size]()
        for (_, size), number in Counter((int(passes.of[at]), sizes[at]) for at in places).items():
            need[size] = max(need[size], number)
    found: dict[_Layer, list[int]] = {layer: [] for layer in layers}
    of_numbers: dict[frozenset[tuple[Size, int]], set[_Layer]] = {}
    for start, numbers in updates:
        key = frozenset(numbers.items())
        if key not in of_numbers:
            of_numbers[key] = _updated_layers(needs, numbers)
        for layer in of_numbers[key]:
            found[layer].append(start)
    return {layer: np.array(sorted(each), np.int64) for layer, each in found.items()}


def _updated_layers(needs: Mapping[_Layer, Counter[Size]], numbers: Counter[Size]) -> set[_Layer]:
    """The layers that an update of parameters of some sizes may work on: those that alone have a size of them, and
    others of which there are enough left; where sizes are left over, all that have these."""
    certain, maybe = set[_Layer](), {layer for layer, need in needs.items() if need <= numbers}
    while True:
        owners = Counter(size for layer in maybe for size in needs[layer])
        more = {layer for layer in maybe - certain if any(owners[size] == 1 for size in needs[layer])}
        certain |= more
        left = numbers - sum((needs[layer] for layer in certain), Counter[Size]())
        kept = certain | {layer for layer in maybe if needs[layer] <= left}
        if not more and kept == maybe:
            break
        maybe = kept
    left = left - sum((needs[layer] for layer in maybe - certain), Counter[Size]())
    return maybe | {layer for layer, need in needs.items() if any(left[size] for size in need)}


def _reads(trace: HostTrace) -> Mapping[Size, I64]:
    """When ops other than those of the model and of updates take a tensor of some size first and leave it as it is: it
    may be a gradient that the program keeps.  Sorted times in ps."""
    work = computing_of(trace)
    rows = work.rows[work.outer & ~work.backward & ~work.updates & ~work.learned]
    rows = rows[~_writes_in_place(trace, rows)]
    found: dict[Size, list[int]] = defaultdict(list)
    for size, start in zip(_first_sizes(trace, rows), trace.events.start_ps[rows].tolist(), strict=True):
        found[size].append(start)
    return {size: np.array(sorted(times), np.int64) for size, times in found.items()}


def _writes_in_place(trace: HostTrace, ops: I64) -> Mask:
    """Whether each op writes into its first operand, as PyTorch names those that do."""
    types = used_rows(trace.events.type[ops], len(trace.event_types))
    chosen = types[np.array([name.endswith("_") for name in type_names(trace, types)], np.bool_)]
    found: Mask = np.isin(trace.events.type[ops], chosen)
    return found


# ---- By what is reset ------------------------------------------------------------------------------------------------


def _never_reset(trace: HostTrace, passes: BackwardPasses, updates: I64) -> Mask | None:
    """Which runs add to what earlier steps left, in the first pass after an update in which others begin anew."""
    steps = len(whole_steps(trace).number)
    above = forest(trace).parent[updates].astype(np.int64)
    own = updates[(above < 0) | ~inside_any(trace, np.maximum(above, 0), updates)]
    if len(own) > steps or len(distinct(trace.events.type[own])) != 1:
        return None
    end = np.sort(trace.events.start_ps[own] + trace.events.duration_ps[own])
    window = np.searchsorted(end, trace.events.start_ps[passes.rows], side="right")
    _, first, place = np.unique(window, return_index=True, return_inverse=True)
    is_first = passes.of == passes.of[first][place]
    continues = passes.adds & _adds_in_place(trace, passes.rows)
    fresh = np.bincount(window[passes.adds & is_first & ~continues], minlength=int(window.max()) + 1)
    found = continues & is_first & (fresh[window] > 0) & (window > 0)  # what came before the first update is not known
    usual = len(distinct(window[found])) >= max(len(own) - 1, 1)
    return found if usual else None


def _adds_in_place(trace: HostTrace, runs: I64) -> Mask:
    """Whether each run adds in place: the gradient was there before."""
    ops = events_of_kind(trace, K.OP)
    ops = ops[has_trait(trace, trace.events.type[ops], PurposeTrait.ADDS_IN_PLACE) & is_inside(trace, ops, K.BACKWARD)]
    above = forest(trace).parent[ops].astype(np.int64)
    above = above[above >= 0]
    above = above[has_trait(trace, trace.events.type[above], OpTrait.ADDS_GRADIENT)]
    found: Mask = np.isin(runs, forest(trace).parent[above])
    return found
