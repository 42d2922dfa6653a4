"""A step computes results that its update does not depend on."""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import foretell_change
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.naming import name_culprit, name_line, name_op, name_share
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.facts.work import USUAL_FORWARD, WorkFacts, programs_beside
from stepscope.vocabulary.python import is_training_function
from stepscope.vocabulary.traits import OpTrait

_SUSPICIOUS_FORWARD = 1.4
_NOTHING = (0, "", 0.0, None)

_ACTIONS = (
    "skip it if its result is not used: a loss with weight zero, a metric that nobody reads",
    "evaluate every N steps instead of in every step",
    "compute results that do not change from step to step once, and keep them",
)


def _evaluate(context: Context, threshold: float) -> Advice | None:
    work = context.work
    if work is None or context.has_device or not work.steps:
        return None
    extra, what, confidence, program = _find_extra_work(work)
    extra_ms = extra / work.steps / MS * work.critical_path_share
    if context.percent(extra_ms) < threshold:
        return None
    change, others_ms = "beside" if program else "extra", _other_functions_ms(context)
    if context.framework == "tensorflow" and others_ms > extra_ms:
        # A function that is left out saves all its work, not only the forward pass.
        change, extra_ms = "functions", others_ms
    key = program or context.largest_op(OpTrait.MULTIPLIES)
    advised = foretell_change(context, change, extra_ms, "forward computation without a backward pass").advice(
        rule="compute.redundant",
        kind="redundant_compute",
        title="Remove computation that the update does not need",
        evidence=f"{context.percent(extra_ms):.1f} % of each step {what}",
        actions=_ACTIONS,
        tool="op-stats",
        confidence=confidence,
        rows=(Row("op-stats", key, round(extra_ms, 3)),) if key else (),
    )
    return _name_work(context, advised, work, program)


def _name_work(context: Context, advised: Advice, work: WorkFacts, program: str | None) -> Advice:
    """The advice with the program as its culprit, else with the op that takes most of the time."""
    share = next((module for module in work.modules if module.name == program), None)
    if share is None:
        return name_culprit(context, advised, "extra")
    op = name_op(context, advised, share.name, 1, share.self_ps / work.steps * work.critical_path_share)
    return name_line(context, advised, f"program {share.name.partition(' (program ')[0]}", op)


def _other_functions_ms(context: Context) -> float:
    """Time per step of functions whose names do not say training, if another's does."""
    programs = context.loop.programs if context.loop else []
    beside = [program for program in programs if not is_training_function(program.name)]
    if len(beside) == len(programs):
        return 0.0
    return context.per_step(sum(program.total_ps for program in beside)) / MS


def _find_extra_work(work: WorkFacts) -> tuple[int, str, float, str | None]:
    """Time, evidence, confidence, and the program that does it; None if it is part of a larger one."""
    if work.no_grad_ps is not None and work.backward_ps:
        what = (
            "is spent computing without gradients (torch.no_grad) during training"
            if work.no_grad_ps >= work.unlearned_ps
            else "is spent in forward passes that record a graph for a backward pass that never runs"
        )
        return work.no_grad_ps + work.unlearned_ps, what, 0.75, None
    if work.backward_ps and work.forward_ps > _SUSPICIOUS_FORWARD * work.backward_ps:
        extra = int(work.forward_ps - USUAL_FORWARD * work.backward_ps)
        times = work.forward_ps / work.backward_ps
        return (
            extra,
            f"is spent on computation without a backward pass (forward work is {times:.1f} times the backward work)",
            0.7,
            None,
        )
    return _find_other_programs(work)


def _find_other_programs(work: WorkFacts) -> tuple[int, str, float, str | None]:
    """Programs other than the one that trains."""
    main, beside = programs_beside(work)
    if main is None or not beside:
        return _NOTHING
    largest = beside[0]
    which = largest.name if len(beside) == 1 else f"{len(beside)} programs (mainly {largest.name})"
    text = f"is spent in {which} besides the training program {main.name}; ignore this if each step needs the result"
    return sum(module.self_ps for module in beside), text, 0.5, largest.name


_RECOMPUTING = (
    "if the memory suffices: take torch.utils.checkpoint from the layers, or from all but the largest",
    "keep what is expensive to compute and small: torch.utils.checkpoint.create_selective_checkpoint_contexts",
    "in 16 bits activations take half of the memory, so that fewer have to be computed again",
)


def _evaluate_recomputation(context: Context, threshold: float) -> Advice | None:
    """Advice on forward ops that run again within the backward pass."""
    device, work = context.device, context.work
    again = device.kinds.get("recomputed") if device else None
    if device is not None and again is not None:
        time = again.total_ps * min(device.busy_ps / max(device.work_ps, 1), 1.0) / device.steps / MS
    else:
        time = work.recomputed_ps / max(work.steps, 1) / MS if work else 0.0
    if context.percent(time) < threshold:
        return None
    gain = foretell_change(context, "recomputed", time, "computing activations again")
    advised = gain.advice(
        rule="compute.recomputed",
        kind="redundant_compute",
        title="Recompute fewer activations",
        evidence=f"{context.percent(time):.1f} % of each step computes activations again within the backward pass"
        " (activation checkpointing)",
        actions=_RECOMPUTING,
        tool="op-stats",
        confidence=0.7,
    )
    if device is not None and again is not None:
        op = name_share(context, advised, again.largest[0], device.steps)
        return name_line(context, advised, "recomputed", op)
    return name_culprit(context, advised, "recomputed")


RULE = Rule(
    id="compute.redundant",
    threshold_percent=15.0,
    evaluate=_evaluate,
    yields_to=("straggler", "memory_churn", "eager_dispatch", "host_sync", "recompilation", "small_batch"),
)
RECOMPUTATION = Rule(
    id="compute.recomputed",
    threshold_percent=10.0,
    evaluate=_evaluate_recomputation,
    yields_to=("eager_dispatch", "small_batch", "straggler"),
)
