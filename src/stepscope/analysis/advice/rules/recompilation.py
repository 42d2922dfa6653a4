"""The step is traced or compiled again and again."""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import Bound, calm, without
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.analysis.facts.loop_events import Activity

_ACTIONS: Actions = {
    "tensorflow": (
        "pass changing numbers as tensors (tf.constant(x)), not as Python values: each new value is traced anew",
        "declare @tf.function(input_signature=[...]), or reduce_retracing=True, where shapes change",
        "keep shapes constant: .batch(n, drop_remainder=True), or pad",
        "define each tf.function once, outside the loop: one that is made in every step is traced in every step",
        "print(the_function.pretty_printed_concrete_signatures()) lists each trace's arguments: what differs between"
        " two of them has changed",
    ),
    "jax": (
        "keep shapes constant: pad, or bucket lengths into a few sizes",
        "do not mark as static_argnums what changes; pass changing numbers as arrays",
        "define jitted functions once, outside the loop: a new lambda is compiled anew",
        "jax.config.update('jax_explain_cache_misses', True) logs what changed at every call that traces anew",
    ),
    "pytorch": (
        "torch.compile(dynamic=True), or torch._dynamo.mark_dynamic(x, 0), where shapes change",
        "pass changing numbers as tensors, not as Python values",
        "TORCH_LOGS=recompiles python train.py logs the guard that failed, with the argument that changed",
    ),
    "": ("keep shapes and Python arguments of the compiled step constant",),
}


_WORTH_SAYING = 5.0  # percent of the step
_MOST_SLOWED = 2.5  # by so much a compiler on another thread slows computation down, measured on two cores


def _evaluate(context: Context, threshold: float) -> Advice | None:
    compiling = context.part_ms(Activity.COMPILE)
    if context.percent(compiling) < threshold:
        return None
    # A program that is new runs slowly once more: it is instantiated, its graph optimized, its caches are cold.
    around = context.part_ms(Activity.PROGRAM, Activity.RUNTIME, Activity.DISPATCH, Activity.WAIT)
    first = _first_runs_ms(context)
    computing = context.compute_ms - first
    removed = compiling + max(around - context.compute_ms, 0.0) + first
    times = context.calls(Activity.COMPILE)
    changed = _what_changed(context)
    return without(
        context, removed, "tracing, compiling and starting new programs",
        [Bound(_alone_ms(context, computing, compiling), "the computation")],
        (Activity.COMPILE, Activity.PROGRAM, Activity.RUNTIME), competes_ms=removed, computes=True,
    ).advice(
        rule="compile.again",
        kind="recompilation",
        title="Stop tracing and compiling in every step",
        evidence=f"{context.percent(compiling):.1f} % of the time of a step traces or compiles programs"
        f"{_and_starts(context, removed - compiling)}{_how_often(times)}{changed}",
        actions=_actions(context),
        tool="steps",
        confidence=0.95,
        rows=(Row("steps", "compilation", round(compiling, 3)),),
        intervals=context.intervals(Activity.COMPILE),
    )  # fmt: skip


def _alone_ms(context: Context, computing: float, compiling: float) -> float:
    """What the computation of a step takes where no compiler competes with it for the cores: it fits into the time
    without one.  JAX computes on while the next program is compiled, but is slowed down by it only so much."""
    fits = min(computing, context.period_ms - compiling) * calm(context)
    return max(fits, min(computing, context.compute_ms / _MOST_SLOWED)) if context.framework == "jax" else fits


def _and_starts(context: Context, time_ms: float) -> str:
    """What new programs take besides, where that is much."""
    share = context.percent(time_ms)
    return f", and {share:.1f} % starts them and runs them for the first time" if share >= _WORTH_SAYING else ""


def _how_often(times: float) -> str:
    """How often in a step, as far as that says more than that it happens at all."""
    if not times:
        return ""
    return "; that happens once a step" if round(times, 1) == 1.0 else f"; that happens {times:.1f} times a step"


def _first_runs_ms(context: Context) -> float:
    work = context.work
    return work.first_runs_ps / max(work.steps, 1) / MS if work else 0.0


def _what_changed(context: Context) -> str:
    """Which program it is and what changes about it, as far as the trace tells."""
    found = context.pace.compiles if context.pace else None
    programs = context.loop.programs if context.loop else []
    if found is None or not (found.programs or found.op):
        return f"; most of it in {programs[0].name}" if programs else ""
    most = found.programs[0] if found.programs else None
    text = f"; {most.name} {'once' if most.times == 1 else f'{most.times} times'} in all" if most else ""
    if found.same_shapes:
        return f"{text}, each time for arguments of the same shapes: a static argument changes, or the function is new"
    return text + (f"; the shapes that {found.op} is given change: {', then '.join(found.shapes)}" if found.op else "")


def _actions(context: Context) -> tuple[str, ...]:
    """What helps against shapes that change goes last if they are known not to."""
    actions = actions_for(context.framework, _ACTIONS)
    found = context.pace.compiles if context.pace else None
    return actions if found is None or not found.same_shapes else tuple(sorted(actions, key=_is_about_shapes))


def _is_about_shapes(action: str) -> bool:
    return action.startswith("keep shapes")


RULE = Rule(id="compile.again", threshold_percent=8.0, evaluate=_evaluate)
