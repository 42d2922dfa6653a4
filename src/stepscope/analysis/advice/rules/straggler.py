"""One worker is slower than the others, which wait for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.account.causes import Cause, own_work_of_steps
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import Gain
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Finding, Rule
from stepscope.analysis.facts.host_facts import HostFacts
from stepscope.analysis.facts.loop_time import SEVERAL_STEPS
from stepscope.analysis.workers.balance import balance, relieve_rank, side_by_side
from stepscope.errors import counted
from stepscope.model.arrays import F64
from stepscope.vocabulary.torch import machine_of

_LEAST_PERCENT = 15.0  # of the step
_MOSTLY = 0.5
_MOSTLY_LAST = 0.7  # of the steps: two workers that take turns are each last in about half of them
_MORE_WORK = 1.05  # times that of the others
_MORE_OPS = 1.05  # times the ops of the others: the slow worker has extra work
_BESIDE_OPS = [Cause.PYTHON, Cause.CHECKPOINT, Cause.INPUT]  # work that is no op


def _find(context: Context) -> Finding | None:
    working = [host for host in context.hosts if host.steps and _shows_its_work(context, host)]
    if len(working) < 2:
        return None
    slow = max(working, key=_busy_ms)
    others = [host for host in working if host is not slow]
    usual_ms = _median([_busy_ms(host) for host in others])
    behind = _busy_ms(slow) - usual_ms
    if context.percent(behind) < _LEAST_PERCENT or not _is_mostly_last(slow, others):
        return None
    more_ms = _extra_by_cause_ms(slow, others)
    beside = float(more_ms[_BESIDE_OPS].sum()) >= _MOSTLY * behind
    extra = beside or (_runs_more_ops(slow, others) and not _learns_from_more(slow, others))
    if not extra and _shares_its_cores(slow, others):
        return None
    gain = _foretell(working, slow, extra)
    if gain is None:
        return None
    return Finding(
        part_ms=behind,
        gain=gain,
        title=f"Take work off {slow.host}",
        evidence=f"{slow.host} works {_busy_ms(slow):.2f} ms per step, the others"
        f" {usual_ms:.2f} ms and then wait{_describe_work(slow, others, extra)}",
        parts=_causes_of_lag(more_ms),
        host=slow,
        actions=(
            "evaluate, log and save rarely, or spread that work over all workers" if extra else
            "give every worker the same amount of data: equal batches, sequences of similar length",
            "check that machine for other programs, slow disks or a slow network",
        ),
        rows=tuple(Row("pod-viewer", host.host, round(_busy_ms(host), 3)) for host in (slow, *others)),
    )  # fmt: skip


def _busy_ms(host: HostFacts) -> float:
    """Time per step in which a worker does not wait for the others."""
    return host.account.own_ps / MS if host.account else 0.0


def _shows_its_work(context: Context, host: HostFacts) -> bool:
    """Whether the account of a worker says how long it works; with devices, only if the program marks its steps."""
    marked = not context.has_device or (host.device is not None and host.device.marked)
    return host.account is not None and marked


def _foretell(working: Sequence[HostFacts], slow: HostFacts, extra: bool) -> Gain | None:
    """The gain of balanced ranks, as `whatif --balance-ranks` has it; without what only the slow one does, if it does
    something else."""
    ranks = [host.rank for host in working if host.rank is not None]
    found = relieve_rank(ranks, slow.host) if extra else balance(ranks)
    if found is None:
        return None
    change = (
        f"if {slow.host} had no more work than the others" if extra else "if all workers had the same amount of work"
    )
    return Gain(
        found.now_ps / MS,
        found.then_ps / MS,
        f"{found.now_ps / MS:.2f} ms in the median step, {change}: {found.then_ps / MS:.2f} ms; {found.slowest} is the"
        f" slowest in {found.slowest_steps} of {counted(found.steps, 'common step')}",
        least_ms=found.least_ps / MS,
        most_ms=found.most_ps / MS,
    )


def _extra_by_cause_ms(slow: HostFacts, others: Sequence[HostFacts]) -> F64:
    """By cause, how much more of each step the slow worker spends than the others: float64 of shape (causes,)."""
    more: F64 = _mean_by_cause(slow) - np.median([_mean_by_cause(other) for other in others], axis=0)
    return more / MS


def _mean_by_cause(host: HostFacts) -> F64:
    usual = [step.causes_ps for step in host.steps if step.usual]
    mean: F64 = np.array(usual, np.float64).reshape(len(usual), len(Cause)).mean(axis=0)
    return mean


def _causes_of_lag(more_ms: F64) -> tuple[str, ...]:
    """The causes in the account of the slow worker, the one that it spends most time on beyond the others first."""
    order = [Cause(at) for at in np.argsort(-more_ms, kind="stable").tolist()]
    return tuple(cause.name.lower() for cause in order if cause != Cause.COMMUNICATION)


def _median(values: Sequence[float]) -> float:
    # That of `statistics` costs an overview 10 ms of imports.
    return float(np.median(values))


def _is_mostly_last(slow: HostFacts, others: Sequence[HostFacts]) -> bool:
    """Whether a worker is the slowest in most common steps; workers that take turns are not stragglers."""
    _, spent = side_by_side({host.host: host.steps for host in (slow, *others)})
    own = own_work_of_steps(spent)
    last, steps = int((own[0] == own.max(axis=0)).sum()), len(own[0])
    return steps < SEVERAL_STEPS or last >= _MOSTLY_LAST * steps


def _shares_its_cores(slow: HostFacts, others: Sequence[HostFacts]) -> bool:
    """Whether all are processes of one machine without devices that compute the same amount.

    Then contention for the shared cores makes one slower, not the program.
    """
    machines = {machine_of(host.host) for host in (slow, *others)}
    usual = _median([host.work.operands for host in others])
    alike = 0 < slow.work.operands <= _MORE_WORK * usual
    return slow.device is None and len(machines) == 1 and alike


def _runs_more_ops(slow: HostFacts, others: Sequence[HostFacts]) -> bool:
    return _ops_per_step(slow) > _MORE_OPS * _median([_ops_per_step(host) for host in others])


def _learns_from_more(slow: HostFacts, others: Sequence[HostFacts]) -> bool:
    """Whether the backward work grows with the ops, so that the worker has more data; what it does besides, such as an
    evaluation, has none."""
    usual = _median([host.work.backward_ps for host in others])
    if not usual:
        return False
    grown = _ops_per_step(slow) / _median([_ops_per_step(host) for host in others]) - 1
    return slow.work.backward_ps / usual - 1 >= _MOSTLY * grown


def _describe_work(slow: HostFacts, others: Sequence[HostFacts], extra: bool) -> str:
    if _runs_more_ops(slow, others):
        usual = _median([_ops_per_step(host) for host in others])
        return f"; it runs {_ops_per_step(slow):.0f} ops per step, the others {usual:.0f}"
    return "; its extra work is not an op: Python, saving or input" if extra else "; all run about as many ops"


def _ops_per_step(host: HostFacts) -> float:
    """Ops per step, or kernels if there is a device."""
    return host.device.kernels / host.device.steps if host.device else host.work.ops / max(host.work.steps, 1)


RULE = Rule("straggler", _LEAST_PERCENT, kind="straggler", find=_find, tool="pod-viewer", confidence=0.9)
