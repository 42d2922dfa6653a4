"""How long work takes after a change, as a share of its time now: derived from the trace where it can be.

Where the trace does not tell, the range is that of the named source.  `docs/advice.md` lists all of them.
"""

from __future__ import annotations

import math

import numpy as np

from stepscope.analysis.account.interventions import Uncertain
from stepscope.analysis.account.selectors import work_launched_by
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.grouping import device_rows
from stepscope.analysis.trace.program_facts import op_threads_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import F64, I64, distinct, used_rows
from stepscope.vocabulary.computing_ops import CONVOLVES, op_alone
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.traits import OpTrait

# A quarter is four times the speed, the most that FlashAttention's authors state for the whole attention.
_FASTEST_ATTENTION = 0.25
# PyTorch's kernels for lists of tensors take 30 tensors in a launch where each parameter has four of them, as in Adam.
_TENSORS_OF_A_LAUNCH = 30
_MOST_WORKERS = 8  # of a DataLoader or a pool: what its guides begin with

IN_16_BITS = Uncertain(
    0.125,
    0.5,
    1.0,
    "products in 16 bits take an eighth of the time where they compute (the median of the table of devices), half where"
    " they wait for memory, and all of it where they are too small for either",
)

# Of ops that compute in 64 bits, the share of their time that is left in 32: least, usually, most.
_IN_32_BITS = (0.25, 0.5, 0.75)
_OF_ONEDNN = (0.09, 0.2, 0.3)  # of what oneDNN computes in 32 bits alone: convolutions, and products of TensorFlow
_WHY_32_BITS = (
    "a processor's vectors and its memory hold twice as many numbers of 32 bits as of 64: ops take half the time (of"
    " products 35 to 75 % were measured, of erf and log1p 4 and 13 %, of a whole step of JAX 30 %)"
)
_WHY_ONEDNN = (
    "oneDNN computes convolutions, and products of TensorFlow, in 32 bits only, which took 9 to 28 % of the time"
)


def estimate_workers(trace: HostTrace) -> Uncertain:
    """How many workers prepare the input side by side: no more than there are processors, where that is known."""
    cores = op_threads_of(trace).cores or _MOST_WORKERS
    low, usual, most = (max(min(workers, cores), 1) for workers in (2, 4, _MOST_WORKERS))
    if low == most:
        return Uncertain(
            low, low, low, f"assumes {low} workers that prepare the input, as many as there are processors"
        )
    return Uncertain(low, usual, most, f"assumes {low} to {most} workers that prepare the input")


def estimate_fused(trace: HostTrace, rows: I64) -> Uncertain:
    """What chains of elementwise kernels take as one kernel each.

    Each kernel reads its operands from memory and writes its result.  Of k in a row with one operand each, two accesses
    of 2 k are left; with a second operand each, k + 2 of 3 k.  A kernel alone is as long as before.

    Args:
        rows: elementwise kernels, ascending rows of events; at least one.
    """
    length = _chain_lengths(trace, rows).astype(np.float64)
    ps = trace.events.duration_ps[rows]
    least, most = _mean(1.0 / length, ps), _mean((length + 2.0) / (3.0 * length), ps)
    mean = len(rows) / float((1.0 / length).sum())
    words = f"elementwise kernels run {mean:.1f} in a row, and a fused one reads and writes memory once"
    return Uncertain(least, (least + most) / 2, most, f"{words}: {100 * least:.0f} to {100 * most:.0f} % of the time")


def _chain_lengths(trace: HostTrace, rows: I64) -> I64:
    """How many of the kernels follow each other in a queue, for each of them: int64 of shape (n,)."""
    work = device_rows(trace)
    work = work[np.lexsort((trace.events.start_ps[work], trace.events.line[work]))]
    chosen = np.isin(work, rows)
    line = trace.events.line[work]
    starts = chosen & ~np.append(False, chosen[:-1] & (line[1:] == line[:-1]))
    chain = (np.cumsum(starts) - 1)[chosen]
    found = np.empty(len(trace.events), np.int64)
    found[work[chosen]] = np.bincount(chain)[chain]
    return found[rows]


def estimate_32_bits(trace: HostTrace, rows: I64) -> Uncertain:
    """What ops in 64 bits take in 32.

    Args:
        rows: rows of events.
    """
    types, ps = trace.events.type[rows], trace.events.duration_ps[rows]
    fast = has_trait(trace, types, OpTrait.MULTIPLIES) > 0
    if trace.framework != "tensorflow":
        kinds = used_rows(types, len(trace.event_types))
        convolves = [CONVOLVES.fullmatch(op_alone(name)) is not None for name in type_names(trace, kinds)]
        fast &= np.isin(types, kinds[np.array(convolves, np.bool_)])
    share = float(ps[fast].sum()) / max(float(ps.sum()), 1.0)
    low, usual, high = (share * one + (1.0 - share) * other for one, other in zip(_OF_ONEDNN, _IN_32_BITS, strict=True))
    return Uncertain(low, usual, high, f"{_WHY_32_BITS}; {_WHY_ONEDNN}" if share >= 0.1 else _WHY_32_BITS)


def estimate_attention(trace: HostTrace, rows: I64) -> Uncertain:
    """What attention takes in a fused kernel: the time of its products, which it still computes.

    Args:
        rows: device work of attention in several kernels; at least one.
    """
    ops = events_of_kind(trace, EventKind.OP)
    ops = ops[has_trait(trace, trace.events.type[ops], OpTrait.BATCHED_PRODUCT)]
    products = np.isin(rows, work_launched_by(trace, ops))
    usual = max(_mean(products.astype(np.float64), trace.events.duration_ps[rows]), _FASTEST_ATTENTION)
    words = f"a fused attention kernel takes as long as the products, {100 * usual:.0f} % of the time"
    return Uncertain(
        _FASTEST_ATTENTION, usual, 1.0, f"{words}; {100 * _FASTEST_ATTENTION:.0f} % is the best that was published"
    )


def estimate_update(trace: HostTrace, calls: I64) -> Uncertain:
    """What of the host's time the launches of an update take that does the same for lists of parameters.

    Kernels of one name become one for each list.  One fused kernel does everything; the most is one of each name for
    every 30 parameters.

    Args:
        calls: the calls of an optimizer; at least one.
    """
    launched = work_launched_by(trace, calls)
    kinds = len(distinct(trace.events.type[launched]))
    each = len(launched) / len(calls)
    if each <= kinds or not kinds:
        return Uncertain(1.0, 1.0, 1.0, "the update launches no kernel twice")
    lists = math.ceil(each / kinds / _TENSORS_OF_A_LAUNCH)
    least, most = lists / each, min(kinds * lists / each, 1.0)
    words = f"an update of lists of parameters launches {lists} to {kinds * lists} kernels instead of {each:.0f}"
    return Uncertain(least, (least + most) / 2, most, words)


def _mean(factor: F64, ps: I64) -> float:
    """The factor of all kernels together."""
    return float((factor * ps).sum() / ps.sum()) if ps.any() else 1.0
