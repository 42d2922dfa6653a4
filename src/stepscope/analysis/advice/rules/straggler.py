"""Workers have unequal work, and wait for each other: a replay of all ranks together names what is at fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.account.account import CONTENTION
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Finding, Gain, Rule
from stepscope.analysis.facts.host_facts import HostFacts
from stepscope.analysis.workers.answer import JobAnswer, list_names
from stepscope.analysis.workers.balance import Balanced, equal_work_of
from stepscope.analysis.workers.equal_work import MORE_OPS, MOSTLY
from stepscope.analysis.workers.stragglers import Straggling, share_cores
from stepscope.errors import counted
from stepscope.model.arrays import F64, median
from stepscope.vocabulary.workers import machine_of

_LEAST_PERCENT = 9.0  # of the step: a slowdown of 1.1, see STRAGGLES
_BESIDE_OPS = [Cause.PYTHON, Cause.CHECKPOINT, Cause.INPUT]  # work that is no op
_CHECK_MACHINE = "check that machine for other programs, slow disks or a slow network"
_DO: dict[Straggling, tuple[str, tuple[str, ...]]] = {
    Straggling.UNEQUAL_STAGES: (
        "Move layers off the longest pipeline stage",
        ("give that stage fewer layers, so that all stages take equally long: count the loss and the embedding, too",),
    ),
    Straggling.SEQUENCE_LENGTHS: (
        "Give every microbatch as many tokens",
        ("pack or sort sequences, so that microbatches of a step take equally long on all ranks",),
    ),
    Straggling.GARBAGE_COLLECTION: (
        "Collect garbage on all ranks at the same steps",
        ("call gc.disable() at the start, and gc.collect() on all ranks every few hundred steps",),
    ),
    Straggling.SLOW_LINK: (
        "Check the link between {who}",
        ("compare its bandwidth with that of the other links, and look for errors of its network device",),
    ),
    Straggling.LATE_INPUT: (
        "Make the input of {who} as fast as that of the others",
        ("check its storage, and give its input as many worker processes as that of the others", _CHECK_MACHINE),
    ),
    Straggling.EXTRA_WORK: (
        "Take work off {who}",
        ("evaluate, log and save rarely, as spreading that work over all workers saves less", _CHECK_MACHINE),
    ),
}
_TAKE_WORK_OFF = (
    "Take work off {who}",
    ("give every worker the same amount of data: equal batches, sequences of similar length", _CHECK_MACHINE),
)


def _find_straggler(context: Context) -> Finding | None:
    """What makes some workers slower than others; None if equal work would save too little of the step."""
    answer, working = context.job, context.working
    if answer is None or answer.culprit is None or answer.culprit.explains <= 0:
        return None
    found = equal_work_of(answer)
    if context.percent((found.now_ps - found.then_ps) / MS) < _LEAST_PERCENT:
        return None
    names = [rank.title for rank in answer.job.graph.ranks]
    if answer.straggler is None:
        return _describe(answer, found, working, answer.sentence(names))
    slow = working[answer.straggler]
    others = [host for host in working if host is not slow]
    if slow.device is None and share_cores(answer.job, [machine_of(host.host) for host in working]):
        # Contention for the shared cores makes one slower, not the program.
        is_alike = 0 < slow.work.operands <= (1 + MORE_OPS) * median([host.work.operands for host in others])
        if answer.culprit.cause != Straggling.EXTRA_WORK and is_alike:
            return None
        if 100.0 * (found.now_ps - found.then_ps) <= _waits_for_cores_percent(working) * found.now_ps:
            return None
    usual = median([_busy_ms(host) for host in others])
    name = names[answer.straggler]
    who = name if name == slow.host else f"{name} ({slow.host})"
    lag = f"{who} works {_busy_ms(slow):.2f} ms of the average step, the others {usual:.2f} ms and then wait"
    finding = _describe(answer, found, [slow, *others], lag + _describe_work(slow, others))
    return replace(finding, parts=_causes_of_lag(_extra_by_cause_ms(slow, others)), host=slow)


def _describe(answer: JobAnswer, found: Balanced, hosts: Sequence[HostFacts], evidence: str) -> Finding:
    culprit = answer.culprit
    assert culprit is not None
    title, actions = _DO.get(culprit.cause, _TAKE_WORK_OFF)
    names = [answer.job.graph.ranks[rank].title for rank in culprit.ranks]
    has_more = culprit.cause == Straggling.EXTRA_WORK or culprit.cause not in _DO  # work than the other ranks
    late = names[0] if has_more and len(names) == 1 else ""
    return Finding(
        part_ms=(found.now_ps - found.then_ps) / MS,
        gain=_predict(found, answer.change),
        title=title.format(who=list_names(names) or "the busiest workers"),
        evidence=evidence,
        actions=actions,
        late="the longest pipeline stage" if culprit.cause == Straggling.UNEQUAL_STAGES else late,
        rows=tuple(Row("pod-viewer", host.host, round(_busy_ms(host), 3)) for host in hosts),
    )


def _busy_ms(host: HostFacts) -> float:
    """Time per step in which a worker does not wait for the others."""
    return host.account.own_ps / MS if host.account else 0.0


def _predict(found: Balanced, change: str) -> Gain:
    """The gain of equal work, as `whatif --balance-ranks` has it.

    Args:
        change: what was replayed, in words.
    """
    replayed = f"{change} on all workers" if change == "with equal work" else change
    return Gain(
        found.now_ps / MS,
        found.then_ps / MS,
        f"{found.now_ps / MS:.2f} ms in the median step, {replayed}: {found.then_ps / MS:.2f} ms;"
        f" {found.slowest} is the slowest in {found.slowest_steps} of {counted(found.steps, 'common step')}",
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
    """The causes in the account of the slow worker on which it spends most time beyond the others, the first of them
    first: what is a small part of the lag does not explain it."""
    order = [Cause(at) for at in np.argsort(-more_ms, kind="stable").tolist() if at != Cause.COMMUNICATION]
    return tuple(cause.name.lower() for cause in order if more_ms[cause] >= MOSTLY * more_ms[order[0]])


def _waits_for_cores_percent(hosts: Sequence[HostFacts]) -> float:
    """What the rank with most of it waits for a free core, in percent of its step: on one machine any of them may seem
    to work longer by so much."""
    accounts = [host.account for host in hosts if host.account is not None]
    return max((each.percent(each.contention_ps, CONTENTION) for each in accounts), default=0.0)


def _describe_work(slow: HostFacts, others: Sequence[HostFacts]) -> str:
    usual = median([_ops_per_step(host) for host in others])
    if _ops_per_step(slow) > (1 + MORE_OPS) * usual:
        return f"; it runs {_ops_per_step(slow):.0f} ops per step, the others {usual:.0f}"
    data = median([host.work.operands for host in others])
    if 0 < (1 + MORE_OPS) * data < slow.work.operands:
        return f"; its products take {slow.work.operands / data:.1f} times as much data"
    more = _extra_by_cause_ms(slow, others)
    beside = float(more[_BESIDE_OPS].sum()) >= float(more.sum() - more[Cause.COMMUNICATION]) / 2
    return "; its extra work is not an op: Python, saving or input" if beside else "; all run about as many ops"


def _ops_per_step(host: HostFacts) -> float:
    """Ops per step, or kernels if there is a device."""
    return host.device.kernels / host.device.steps if host.device else host.work.ops / max(host.work.steps, 1)


RULES = (Rule("straggler", kind="straggler", find=_find_straggler, tool="pod-viewer", confidence=0.9),)
