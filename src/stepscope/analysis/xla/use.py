"""How much of the hardware several ops together use: programs, and steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stepscope.analysis.xla.device_facts import DeviceFacts
from stepscope.analysis.xla.ops import OpRow
from stepscope.analysis.xla.peaks import Peaks
from stepscope.analysis.xla.step_time import StepTime
from stepscope.records import dataclass
from stepscope.report import Cell, percent


@dataclass(frozen=True)
class UsedOp:
    """An op, or the sum of several, with the peaks of its device.

    Attributes:
        program: the XLA program; None for ops of frameworks.
        least_s: of a sum, the time its operations take at the peaks of their precisions; None for a single op.
    """

    op: OpRow
    program: str | None
    shapes: str
    peaks: Peaks | None
    is_program: bool = False
    least_s: float | None = None

    @property
    def peak_flops(self) -> float | None:
        """The peak that its rate is measured against; of a sum, the mean of its ops' peaks, by their operations."""
        if self.peaks is None:
            return None
        if not self.is_program:
            return self.peaks.flops(self.op.precision, self.op.matrix)
        return self.op.flops / self.least_s if self.op.flops and self.least_s else None

    def plus(self, other: OpRow) -> UsedOp:
        """The same op with the runs of another host."""
        op = self.op
        added = op._replace(
            runs=op.runs + other.runs,
            total_ps=op.total_ps + other.total_ps,
            self_ps=op.self_ps + other.self_ps,
            flops=None if op.flops is None or other.flops is None else op.flops + other.flops,
            bytes=None if op.bytes is None or other.bytes is None else op.bytes + other.bytes,
        )
        return replace(self, op=added)


def use_of(label: str, ops: Sequence[UsedOp], runs: int) -> UsedOp:
    """A program as the sum of its ops; what is unknown of an op counts nothing."""
    flops = [used.op.flops for used in ops if used.op.flops is not None]
    nbytes = [used.op.bytes for used in ops if used.op.bytes is not None]
    heaviest = max(ops, key=lambda used: used.op.flops or 0).op
    total = heaviest._replace(
        name=label,
        category="program",
        runs=runs,
        total_ps=sum(used.op.self_ps for used in ops),
        self_ps=sum(used.op.self_ps for used in ops),
        flops=sum(flops) if flops else None,
        bytes=sum(nbytes) if nbytes else None,
    )
    return UsedOp(total, label, "", ops[0].peaks, is_program=True, least_s=least_seconds(ops))


def least_seconds(ops: Sequence[UsedOp], share_in_steps: bool = False) -> float | None:
    """The time that operations take at the peaks of their precisions; None if one of these is unknown."""
    total = 0.0
    for used in ops:
        if used.op.flops:
            peak = used.peak_flops
            if not peak:
                return None
            total += used.op.flops * (used.op.in_steps if share_in_steps else 1) / peak
    return total


def step_use(hosts: Sequence[tuple[StepTime | None, Sequence[UsedOp], Sequence[DeviceFacts]]]) -> dict[str, Cell]:
    """What steps use of the hardware, keyed as STEP_FIELDS of `merged`; all devices of a host work on each step."""
    found = [(steps, ops, devices) for steps, ops, devices in hosts if steps]
    if not found:
        return dict.fromkeys(_STEP_KEYS)
    count = max(steps.steps for steps, _, _ in found)
    device_s = sum(steps.total_ps / 1e12 * sum(facts.count for facts in devices) for steps, _, devices in found)
    every = [used for _, ops, _ in found for used in ops]
    inside = [(used.op, used.op.in_steps) for used in every]
    flops = sum((op.flops or 0) * share for op, share in inside)
    nbytes = sum((op.bytes or 0) * share for op, share in inside)
    time = sum(op.self_ps * share for op, share in inside)
    costed = sum(op.self_ps * share for op, share in inside if op.flops is not None)
    least = least_seconds(every, share_in_steps=True) if costed else None
    memories = {used.peaks.memory if used.peaks else None for used in every}
    memory = memories.pop() if len(memories) == 1 and nbytes else None
    return {
        "steps": count,
        "step_ms": sum(steps.total_ps / steps.steps for steps, _, _ in found) / len(found) / 1e9,
        "flops_per_step": flops / count if costed else None,
        "bytes_per_step": nbytes / count if nbytes else None,
        "costed_percent": percent(costed, time),
        "mfu_percent": None if least is None else percent(least, device_s),
        "mbu_percent": None if not memory else percent(nbytes / memory, device_s),
    }


_STEP_KEYS = ("steps", "step_ms", "flops_per_step", "bytes_per_step", "costed_percent", "mfu_percent", "mbu_percent")
