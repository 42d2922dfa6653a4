"""One worker is slower than the others, which wait for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from stepscope.analysis.advice.context import MS, Context, busy_ps
from stepscope.analysis.advice.gain import Bound, predict_without
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.naming import name_culprit
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.facts.host_facts import HostFacts
from stepscope.analysis.facts.loop_events import Activity
from stepscope.analysis.facts.loop_time import SEVERAL_STEPS
from stepscope.vocabulary.torch import machine_of

_MOSTLY = 0.5
_MOSTLY_LAST = 0.7  # of the steps: two workers that take turns are each last in about half of them
_MORE_WORK = 1.05  # times that of the others
_MORE_OPS = 1.05  # times the ops of the others: the slow worker has extra work


def _evaluate(context: Context, threshold: float) -> Advice | None:
    busy = {host.host: time for host in context.hosts if (time := _busy_ms(context, host)) is not None}
    if len(busy) < 2 or not any(map(_communicates, context.hosts)):
        return None
    working = [host for host in context.hosts if host.host in busy]
    slow = max(working, key=lambda host: busy[host.host])
    others = [host for host in working if host is not slow]
    usual = _median(busy[host.host] for host in others)
    behind = busy[slow.host] - usual
    if context.percent(behind) < threshold or not (context.has_device or _is_mostly_last(slow, others)):
        return None
    ops = _ops_per_step(slow)
    usual_ops = _median(_ops_per_step(host) for host in others)
    extra = ops > _MORE_OPS * usual_ops or _extra_host_work_ms(slow, others) >= _MOSTLY * behind
    if not extra and _shares_its_cores(slow, others):
        return None
    removed = behind if extra else busy[slow.host] - math.fsum(busy.values()) / len(busy)
    what = f"work that only {slow.host} does" if extra else f"work of {slow.host} beyond its share"
    more = _describe_extra_work(ops, usual_ops, extra)
    rows = tuple(Row("pod-viewer", host, round(time, 3)) for host, time in busy.items())
    advised = predict_without(context, removed, what, [Bound(usual, "the work of the others")], computes=True).advice(
        rule="straggler",
        kind="straggler",
        title=f"Take work off {slow.host}",
        evidence=f"{slow.host} works {busy[slow.host]:.2f} ms per step, the others {usual:.2f} ms and then wait{more}",
        actions=(
            "evaluate, log and save rarely, or spread that work over all workers" if extra else
            "give every worker the same amount of data: equal batches, sequences of similar length",
            "check that machine for other programs, slow disks or a slow network",
        ),
        tool="pod-viewer",
        confidence=0.9,
        rows=rows,
    )  # fmt: skip
    return name_culprit(context, advised, *_causes_of_lag(slow, others), account=slow.account)


def _communicates(host: HostFacts) -> bool:
    """Whether a worker takes part in collectives; without any, nothing shows that the workers wait for each other."""
    on_thread = bool(host.loop and host.loop.calls.get(Activity.COLLECTIVE.name.lower()))
    return on_thread or bool(host.device and host.device.collectives)


def _causes_of_lag(slow: HostFacts, others: Sequence[HostFacts]) -> tuple[str, ...]:
    """The causes in the account of the slow worker, the one that it spends most time on beyond the others first."""
    if slow.account is None:
        return ()
    usual = [{row.cause: row.ps for row in other.account.rows} for other in others if other.account is not None]
    more = {row.cause: row.ps - _median(each.get(row.cause, 0) for each in usual or [{}]) for row in slow.account.rows}
    return tuple(sorted((cause for cause in more if cause != "communication"), key=lambda cause: -more[cause]))


def _median(values: Iterable[float]) -> float:
    # That of `statistics` costs an overview 10 ms of imports.
    return float(np.median(list(values)))


def _is_mostly_last(slow: HostFacts, others: Sequence[HostFacts]) -> bool:
    """Whether a worker is the slowest in most common steps; workers that take turns are not stragglers.

    Without devices only: with devices, loops launch collectives and do not wait for them.
    """
    loops = [host.loop for host in (slow, *others) if host.loop is not None]
    if slow.loop is None or len(loops) <= len(others):
        return True
    common = set.intersection(*(set(loop.busy) for loop in loops))
    last = sum(slow.loop.busy[step] == max(loop.busy[step] for loop in loops) for step in common)
    return len(common) < SEVERAL_STEPS or last >= _MOSTLY_LAST * len(common)


def _shares_its_cores(slow: HostFacts, others: Sequence[HostFacts]) -> bool:
    """Whether all are processes of one machine without devices that compute the same amount.

    Then contention for the shared cores makes one slower, not the program.
    """
    machines = {machine_of(host.host) for host in (slow, *others)}
    usual = _median(host.work.operands for host in others)
    alike = 0 < slow.work.operands <= _MORE_WORK * usual
    return slow.device is None and len(machines) == 1 and alike


def _describe_extra_work(ops: float, usual_ops: float, extra: bool) -> str:
    if ops > _MORE_OPS * usual_ops:
        return f"; it runs {ops:.0f} ops per step, the others {usual_ops:.0f}"
    return "; its extra work is not an op: Python, saving or input" if extra else "; all run about as many ops"


def _extra_host_work_ms(slow: HostFacts, others: Sequence[HostFacts]) -> float:
    """How much longer than the others it spends outside ops: in Python, saving and input, in ms per step."""
    parts = [activity.name.lower() for activity in (Activity.PYTHON, Activity.CHECKPOINT, Activity.INPUT)]

    def spent(host: HostFacts) -> float:
        return sum(host.loop.activity_ps.get(part, 0) for part in parts) / host.loop.steps / MS if host.loop else 0.0

    return spent(slow) - _median(spent(host) for host in others)


def _ops_per_step(host: HostFacts) -> float:
    """Ops per step, or kernels if there is a device."""
    return host.device.kernels / host.device.steps if host.device else host.work.ops / max(host.work.steps, 1)


def _busy_ms(context: Context, host: HostFacts) -> float | None:
    """Time per step in which a worker is not waiting for the others; in exposed collectives it is waiting."""
    if not context.has_device:
        return busy_ps(host.loop) / MS if host.loop is not None else None
    if host.device is None or not host.device.marked:
        return None
    return (host.device.observed_ps - host.device.exposed_collectives_ps) / host.device.steps / MS


RULE = Rule(id="straggler", threshold_percent=15.0, evaluate=_evaluate)
