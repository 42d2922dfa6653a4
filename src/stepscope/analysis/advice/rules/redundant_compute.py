"""A step computes what its update does not depend on."""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import without
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.facts.work import WorkFacts
from stepscope.vocabulary.python import is_training_function
from stepscope.vocabulary.traits import OpTrait

_USUAL_FORWARD = 0.6  # forward over backward work of a network that is trained: about a half, more for the first layer
_SUSPICIOUS_FORWARD = 1.4
_NOTHING = (0, "", 0.0, None)

_ACTIONS = (
    "skip it where its result is not used: a loss with weight zero, a metric that nobody reads",
    "evaluate every N steps instead of in every step",
    "compute once, and keep, what does not change from step to step",
)


def _evaluate(context: Context, threshold: float) -> Advice | None:
    work = context.work
    if work is None or context.has_device or not work.steps:
        return None
    extra, what, confidence, program = _extra(work)
    extra_ms = extra / work.steps / MS * work.critical_path_share
    if context.percent(extra_ms) < threshold:
        return None
    if context.framework == "tensorflow":  # with its forward pass goes all that a function does besides
        extra_ms = max(extra_ms, _functions_beside_the_training_ms(context))
    key = program or context.largest_op(OpTrait.MULTIPLIES)
    return without(context, extra_ms, "forward computation without a backward pass", computes=True).advice(
        rule="compute.redundant",
        kind="redundant_compute",
        title="Leave out what the update does not need",
        evidence=f"{context.percent(extra_ms):.1f} % of the time of a step {what}",
        actions=_ACTIONS,
        tool="op-stats",
        confidence=confidence,
        rows=(Row("op-stats", key, round(extra_ms, 3)),) if key else (),
    )


def _functions_beside_the_training_ms(context: Context) -> float:
    """Time of a step in which functions run that do not train by their names, where another does."""
    programs = context.loop.programs if context.loop else []
    beside = [program for program in programs if not is_training_function(program.name)]
    if len(beside) == len(programs):
        return 0.0
    return context.per_step(sum(program.total_ps for program in beside)) / MS


def _extra(work: WorkFacts) -> tuple[int, str, float, str | None]:
    """Time, what it is, how sure that is, and the program that does it, None if it is part of a larger one."""
    if work.no_grad_ps is not None and work.backward_ps:
        what = (
            "computes without gradients (torch.no_grad) while it trains"
            if work.no_grad_ps >= work.unlearned_ps
            else "runs forward passes that no backward pass follows, though they record what one would need"
        )
        return work.no_grad_ps + work.unlearned_ps, what, 0.75, None
    if work.backward_ps and work.forward_ps > _SUSPICIOUS_FORWARD * work.backward_ps:
        extra = int(work.forward_ps - _USUAL_FORWARD * work.backward_ps)
        times = work.forward_ps / work.backward_ps
        return (
            extra,
            f"computes what has no backward pass (forward work is {times:.1f} times the backward work)",
            0.7,
            None,
        )
    return _beside_the_update(work)


def _beside_the_update(work: WorkFacts) -> tuple[int, str, float, str | None]:
    """Programs beside the one that trains.  That is one with a backward pass, as far as the trace tells, of several the
    one with such a name, or else with the most calls."""
    if len(work.modules) < 2 or len(work.modules) > _FEW_PROGRAMS:
        return _NOTHING
    training = [module for module in work.modules if module.name in work.training]
    main = max(training or work.modules, key=lambda module: (is_training_function(module.name), module.calls))
    beside = [module for module in work.modules if module is not main]
    if training:  # without products a program is no forward pass: it updates the weights, or counts
        beside = [module for module in beside if module.name in work.multiplying]
    if not beside:
        return _NOTHING
    largest = beside[0]
    which = f"{largest.name}, a program" if len(beside) == 1 else f"{len(beside)} programs, above all {largest.name},"
    text = f"runs {which} beside the one that trains ({main.name}); if that needs the result in every step, all is well"
    return sum(module.self_ps for module in beside), text, 0.5, largest.name


_FEW_PROGRAMS = 8  # more of them are single ops: then the step is not compiled as a whole

RULE = Rule(
    id="compute.redundant",
    threshold_percent=15.0,
    evaluate=_evaluate,
    yields_to=("straggler", "memory_churn", "eager_dispatch", "host_sync", "recompilation", "small_batch"),
)
