"""One worker is slower than the others, which wait for it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from stepscope.analysis.advice.context import MS, Context, busy_ps
from stepscope.analysis.advice.gain import Bound, without
from stepscope.analysis.advice.rule import Advice, Row, Rule
from stepscope.analysis.facts import HostFacts
from stepscope.analysis.loop import Activity

_MOSTLY = 0.5
_MORE_OPS = 1.05  # times the ops of the others: the slow worker does something that they do not


def _evaluate(context: Context, threshold: float) -> Advice | None:
    looped = [host for host in context.hosts if host.loop is not None]
    if len(looped) < 2:
        return None
    busy = {host.host: busy_ps(host.loop) / MS for host in looped}
    slow = max(looped, key=lambda host: busy[host.host])
    others = [host for host in looped if host is not slow]
    usual = statistics.median(busy[host.host] for host in others)
    behind = busy[slow.host] - usual
    if context.percent(behind) < threshold:
        return None
    ops = slow.work.ops / max(slow.work.steps, 1)
    usual_ops = statistics.median(host.work.ops / max(host.work.steps, 1) for host in others)
    extra = ops > _MORE_OPS * usual_ops or _outside_of_ops(slow, others) >= _MOSTLY * behind
    removed = behind if extra else busy[slow.host] - statistics.fmean(busy.values())
    what = f"work that only {slow.host} does" if extra else f"what {slow.host} has more than its share"
    more = _besides(ops, usual_ops, extra)
    rows = tuple(Row("pod-viewer", host, round(time, 3)) for host, time in busy.items())
    return without(context, removed, what, [Bound(usual, "the work of the others")]).advice(
        rule="straggler",
        kind="straggler",
        title=f"Take work off {slow.host}",
        evidence=f"{slow.host} works {busy[slow.host]:.2f} ms in a step and the others {usual:.2f} ms, then they"
        f" wait{more}",
        actions=(
            "do evaluation, logging and saving rarely, or spread over all workers" if extra else
            "give every worker the same amount of data: equal batches, sequences of similar length",
            "look for other programs, slow disks or a slow network on that machine",
        ),
        tool="pod-viewer",
        confidence=0.9,
        rows=rows,
    )  # fmt: skip


def _besides(ops: float, usual_ops: float, extra: bool) -> str:
    if ops > _MORE_OPS * usual_ops:
        return f"; it runs {ops:.0f} ops a step, the others {usual_ops:.0f}"
    return "; what it does more is no op: Python, saving or input" if extra else "; all run the same ops"


def _outside_of_ops(slow: HostFacts, others: Sequence[HostFacts]) -> float:
    """How much longer than the others it does what is no op: runs Python, saves, makes its input."""
    parts = [activity.name.lower() for activity in (Activity.PYTHON, Activity.CHECKPOINT, Activity.INPUT)]

    def spent(host: HostFacts) -> float:
        return sum(host.loop.activity_ps.get(part, 0) for part in parts) / host.loop.steps / MS if host.loop else 0.0

    return spent(slow) - statistics.median(spent(host) for host in others)


RULE = Rule(id="straggler", threshold_percent=15.0, evaluate=_evaluate)
