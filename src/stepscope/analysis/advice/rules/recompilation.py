"""The step is traced or compiled repeatedly."""

from __future__ import annotations

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Finding, Rule, actions_for
from stepscope.analysis.advice.rules.words import WORDS_OF_CLASS
from stepscope.analysis.facts.loop_events import Starts
from stepscope.errors import counted

_AGAIN = "Stop tracing and compiling again"  # where most steps do not


def _find_compiling(context: Context) -> Finding | None:
    compiling, found = context.cause_ms("compile"), context.pace.compiles
    if not compiling or found is None:
        return None
    share, steps = context.percent(compiling), context.loop.steps if context.loop else 0
    some = 2 * found.steps <= steps
    again = f"; that happens in {found.steps} of {counted(steps, 'step')}" if some else ""
    return Finding(
        part_ms=compiling,
        title=_AGAIN if some else "",
        share=f"{share:.1f} % of {'the average' if some else 'each'} step is spent tracing or compiling programs",
        evidence=f"{again or _describe_frequency(context.calls(Starts.COMPILE))}{_describe_change(context)}",
        change="compile" if context.has_device else "compiling",
        without="tracing, compiling and starting new programs",
        parts=("compile",),
        actions=_order_actions(context),
        rows=(Row("overview", "compile", round(compiling, 3)),),
        intervals=context.intervals("compile"),
    )


def _describe_frequency(times: float) -> str:
    """How often it happens per step; empty if the count is unknown."""
    if not times:
        return ""
    often = f"{times:.1f}".removesuffix(".0")
    return "; that happens once per step" if often == "1" else f"; that happens {often} times per step"


def _describe_change(context: Context) -> str:
    """Which program is compiled and what changes about it, as far as the trace shows."""
    found = context.pace.compiles
    programs = context.loop.programs if context.loop else []
    if found is None or not (found.programs or found.op or found.change):
        return f"; mostly {programs[0].name}" if programs else ""
    most = found.programs[0] if found.programs else None
    text = f"; {most.name} {'once' if most.times == 1 else f'{most.times} times'} in total" if most else ""
    if found.change:
        return f"{text}; {found.change}"
    if found.same_shapes:
        return f"{text}, each time with the same argument shapes: a static argument changes, or the function is new"
    return text + (f"; the input shapes of {found.op} change: {', then '.join(found.shapes)}" if found.op else "")


_BY_VALUE = {
    "jax": "drop `{0}` from static_argnums, or static_argnames, of {1}, and pass it as an array; where Python branches"
    " on it: jax.lax.cond or jnp.where",
    "tensorflow": "pass `{0}` to {1} as a tensor, tf.constant({0}): each new Python value is a new trace",
    "pytorch": "pass `{0}` to {1} as a tensor, or torch.compile(dynamic=True): else each value is compiled",
}
_BY_SHAPE = "pad `{0}` of {1} to one shape, or to a few: each new one is compiled"
_ANEW = "define {1} once, outside the loop, and what is given to it with it: a new function is compiled again"
_ONE_OBJECT = (
    "make the {2} that is given to {1} as `{0}` once, before the loop: another object is another static argument,"
    " though it does the same"
)
_ONE_MODEL = (
    "make what {1} traces once, before the loop, if it is made anew: a new function, a new Keras model, and one that is"
    " compiled again, are traced anew; set_weights gives a model other weights"
)


def _order_actions(context: Context) -> tuple[str, ...]:
    """What is known of the argument that changes first; the actions on shapes last if these are known not to change."""
    actions = actions_for(context.framework, WORDS_OF_CLASS["recompilation"].actions)
    found = context.pace.compiles
    if found is None or not (found.same_shapes or found.function):
        return actions
    how = _ANEW if not found.argument else _BY_SHAPE if found.is_shape else _BY_VALUE.get(context.framework, "")
    how = _ONE_MODEL if found.is_first else _ONE_OBJECT if found.of_type else how
    named = (how.format(found.argument, found.function, found.of_type),) if found.function and how else ()
    others = actions if found.is_shape else tuple(sorted(actions, key=lambda each: each.startswith("keep shapes")))
    return (*named, *others)


RULES = (
    Rule(
        "compile.again", kind="recompilation", title="Stop tracing and compiling in every step", find=_find_compiling,
        tool="steps", confidence=0.95,
    ),
)  # fmt: skip
