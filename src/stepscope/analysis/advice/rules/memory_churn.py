"""Large tensors are copied, joined or refilled in every step."""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import foretell_change
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.naming import name_line, name_op
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.analysis.facts.loop_events import Activity
from stepscope.analysis.facts.work import WorkFacts
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.traits import OpTrait

_FEW_PROGRAMS = 8.0  # a step
_MANY_COPIES = 0.1  # of the computation
_OF_COPIES = 0.7  # of the time in a program without a running op: the rest waits for something else

_ACTIONS: Actions = {
    "tensorflow": (
        "write into a tf.Variable in place (v.scatter_nd_update(indices, x), v[i:j].assign(x)) instead of tf.concat,"
        " tf.pad or tf.tensor_scatter_nd_update, which allocate a new tensor",
        "allocate buffers once, before the loop",
    ),
    "jax": (
        "donate arrays that the step replaces: jax.jit(..., donate_argnums=...) lets XLA write in place",
        "jax.lax.dynamic_update_slice or x.at[i].set(v) inside the jitted step instead of jnp.concatenate",
    ),
    "pytorch": (
        "write into a preallocated tensor (x[i:j] = v, copy_, index_copy_) instead of torch.cat, clone or stack",
        "use a ring buffer instead of shifting data",
        "use in-place ops (add_, mul_), and let optimizer.zero_grad() set gradients to None (its default)",
    ),
    "": ("allocate memory once and write into it in place",),
}


def _evaluate(context: Context, threshold: float) -> Advice | None:
    work, loop = context.work, context.loop
    if work is None or loop is None or context.has_device or not work.steps:
        return None
    moves = max(work.moves_ps - work.casts_ps, 0) / work.steps / MS
    moves *= work.critical_path_share
    moves += context.per_step(loop.after_moves_ps) / MS if work.moves_ps > 2 * work.casts_ps else 0.0
    moves += _release_ms(context, work, moves) + work.eager_moves_ps / work.steps / MS
    if context.percent(moves) < threshold or not work.moves:
        return None
    top = work.moves[0]
    rows = tuple(Row("op-stats", op.name, round(op.self_ps / work.steps / MS, 3)) for op in work.moves[:3])
    gain = foretell_change(context, "moving", moves, "moving data and freeing memory")
    advised = gain.advice(
        rule="memory.churn",
        kind="memory_churn",
        title="Write in place instead of copying",
        evidence=f"{context.percent(moves):.1f} % of each step only moves or fills data or allocates large tensors,"
        f" mostly in {top.name}",
        actions=actions_for(context.framework, _ACTIONS),
        tool="memory-profile",
        confidence=0.85,
        rows=rows,
        intervals=context.intervals(Activity.OP) if context.framework == "pytorch" else (),
    )
    op = name_op(context, advised, top.name, top.calls / work.steps, top.self_ps / work.steps)
    return name_line(context, advised, "moves", op)


def _release_ms(context: Context, work: WorkFacts, moves: float) -> float:
    """Time per step in which compiled programs allocate and free memory while nothing computes.

    The share of the moves is counted.  Where XLA copies, most of the time is: it continues a large copy on other
    threads after the op has ended.
    """
    if context.calls(Activity.PROGRAM) > _FEW_PROGRAMS:
        return 0.0  # the time goes to the many starts
    inside = context.part_ms(Activity.PROGRAM, Activity.WAIT)
    if not inside or not moves:
        return 0.0
    share = moves / context.compute_ms
    copies = share >= _MANY_COPIES and name_has(work.moves[0].name, OpTrait.COPIES_WHOLE)
    return max(inside - context.compute_ms, 0.0) * (max(share, _OF_COPIES) if copies else share)


RULE = Rule(
    id="memory.churn",
    threshold_percent=20.0,
    evaluate=_evaluate,
    yields_to=("straggler", "recompilation", "eager_dispatch"),
)
