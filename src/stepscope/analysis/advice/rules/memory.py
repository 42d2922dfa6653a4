"""Memory: large tensors that are copied or refilled in every step, and a device's memory that is full, torn or free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Actions, Finding, Op, Rule, actions_for
from stepscope.analysis.advice.rules.words import FRAGMENTED, WORDS_OF_CLASS

_HOLES_PERCENT = 50.0  # of the free memory
_HOLES_MATTER = 75.0  # percent of the capacity in use: from here on fragmentation can make an allocation fail
_FULL_PERCENT, _EMPTY_PERCENT = 95.0, 30.0  # of the capacity

_ROOM: Actions = {
    "tensorflow": (
        "recompute activations: tf.recompute_grad around large blocks",
        "keras.config.set_dtype_policy('mixed_bfloat16') halves activations",
        "use a smaller batch",
    ),
    "jax": (
        "recompute activations: jax.checkpoint (jax.remat) around large blocks",
        "donate arrays that the step replaces: jax.jit(..., donate_argnums=...)",
        "keep activations in jnp.bfloat16",
    ),
    "pytorch": (
        "recompute activations: torch.utils.checkpoint.checkpoint around large blocks",
        "torch.autocast('cuda', dtype=torch.bfloat16) halves most activations",
        "use a smaller batch",
    ),
    "": ("recompute activations, use 16 bits, or a smaller batch",),
}
# What to do about copies by what asks for them, see `vocabulary.copies`; each is said only where that takes time.
COPIES: Mapping[str, Actions] = {
    "layout": {
        "pytorch": (
            "keep one layout: contiguous() and reshape() copy after permute() or transpose(); permute once before the"
            " layers and once behind them, and use layers that take the axes as they are (nn.Linear works on the last)",
            "leave .contiguous() out where the next op accepts the tensor as it is",
        ),
        "tensorflow": ("keep one layout: transpose once before the layers and once behind them, or use tf.einsum",),
        "jax": ("keep one layout: transpose once before the layers and once behind them, or use jnp.einsum",),
        "": ("keep one layout: transpose once, before the work and behind it",),
    },
    "join": {
        "pytorch": (
            "write into a preallocated tensor (x[i:j] = v, index_copy_, a static cache or a ring buffer) instead of"
            " torch.cat and torch.stack",
        ),
        "tensorflow": (
            "write into a tf.Variable in place (v.scatter_nd_update(indices, x), v[i:j].assign(x)) instead of tf.concat"
            " and tf.stack, which allocate a new tensor",
        ),
        "jax": ("x.at[i].set(v) or jax.lax.dynamic_update_slice inside the jitted step instead of jnp.concatenate",),
        "": ("write into one array in place instead of joining arrays",),
    },
    "pad": {"": ("pad once, before training, or let the op pad that follows (padding= of a convolution)",)},
    "convert": {"": ("convert once, where the data is made, and keep that type",)},
    "fill": {"": ("fill less: make constant arrays once, before the loop",)},
    "repeat": {"": ("let ops broadcast (expand, a length of 1) instead of repeating data",)},
    "copy": {
        "pytorch": (
            "clone() only what is changed later, and use in-place ops (add_, mul_) where nothing needs the old",
        ),
        "": ("change data in place instead of copying it",),
    },
}
_NO_ZEROS = "let optimizer.zero_grad() set gradients to None, its default: zeros are written into them now"
_KEEP_LAYOUT = "Keep one layout instead of copying"
_WORTH = 0.1  # of the time of copies: what asks for less is not worth a word
_MOST_OF = 0.5
_FREE = ("raise the batch size as long as the step time grows more slowly; adapt the learning rate",)
_GROWTH = (
    "to leave the rest to other programs: tf.config.experimental.set_memory_growth(gpu, True), before the first op",
)
_GROWS = "TF_FORCE_GPU_ALLOW_GROWTH"
_NO_GAIN = "free memory costs no time, and full memory none yet"


def _find_churn(context: Context) -> Finding | None:
    work, loop = context.work, context.loop
    if loop is None or context.has_device or not work.steps or not work.moves:
        return None
    moves = work.per_step_ms(max(work.moves_ps - work.casts_ps, 0))
    moves *= work.critical_path_share
    moves += context.per_step_ms(loop.after_moves_ps) if work.moves_ps > 2 * work.casts_ps else 0.0
    top = work.moves[0]
    is_layout = work.asked.get("layout", 0) >= _MOST_OF * work.moves_ps > 0
    return Finding(
        part_ms=moves,
        title=_KEEP_LAYOUT if is_layout else "",
        evidence=f"{context.percent(moves):.1f} % of each step only moves or fills data or allocates large tensors,"
        f" mostly in {top.name}" + (", to change its layout" if is_layout else ""),
        actions=act_on_copies(context) or None,
        change="moving",
        without="moving data and freeing memory",
        parts=("moves",),
        op=Op(top.name, top.calls / work.steps, top.total_ps / work.steps),
        rows=tuple(Row("op-stats", op.name, round(work.per_step_ms(op.total_ps), 3)) for op in work.moves[:3]),
        intervals=context.intervals("host_compute") if context.framework == "pytorch" else (),
    )


def act_on_copies(context: Context) -> tuple[str, ...]:
    """What to do about the copies of a step that a host computes, by what asks for them, what takes most time first;
    nothing where that is not known."""
    asked = context.work.asked
    whole = sum(asked.values())
    kinds = [kind for kind, ps in asked.items() if kind and ps >= _WORTH * whole]
    zeros = (_NO_ZEROS,) if context.work.zeroes_gradients else ()
    return zeros + tuple(action for kind in kinds for action in actions_for(context.framework, COPIES[kind]))


def _find_capacity(context: Context) -> Finding | None:
    report = context.read("memory-profile") if context.has_device else None
    found = (_check_memory(context, memory) for memory in (report.memories if report else ()))
    return next((each for each in found if each is not None), None)


def _check_memory(context: Context, memory: Mapping[str, Any]) -> Finding | None:
    share = _peak_percent(memory) or 0.0
    holes = (memory.get("peak") or {}).get("fragmentation_percent") or 0.0
    full, torn = share >= _FULL_PERCENT, holes >= _HOLES_PERCENT and share >= _HOLES_MATTER
    if not full and not torn:
        return None
    evidence = f"{memory['id']} is {share:.0f} % full at its peak"
    return Finding(
        percent=100.0,
        id="" if full else "memory.fragmented",
        title="" if full else "Avoid memory fragmentation",
        evidence=f"{evidence}, and {holes:.0f} % of its free memory is fragmented" if torn else evidence,
        unknown=_NO_GAIN,
        actions=(
            *(actions_for(context.framework, _ROOM) if full else ()),
            *(actions_for(context.framework, FRAGMENTED) if torn else ()),
        ),
        rows=(Row("memory-profile", str(memory["id"]), 0.0),),
    )


def _find_free_memory(context: Context) -> Finding | None:
    """Memory that stays free at the peak: a larger batch fits, or another program.  Nothing where what is computed is
    known and none of it trains: how many requests come at once is not the program's choice."""
    report = context.read("memory-profile") if context.has_device and not context.infers else None
    shares = {str(memory["id"]): _peak_percent(memory) for memory in (report.memories if report else ())}
    known = {memory: share for memory, share in shares.items() if share and not _is_host(memory)}
    fullest = max(known, key=lambda memory: known[memory], default=None)
    if fullest is None or known[fullest] >= _EMPTY_PERCENT:
        return None
    return Finding(
        percent=100.0,
        evidence=f"the fullest device memory, {fullest}, is {known[fullest]:.2g} % full at its peak",
        unknown=_NO_GAIN,
        actions=(*_FREE, *(_GROWTH if _takes_all_memory(context) else ())),
        rows=(Row("memory-profile", fullest, 0.0),),
    )


def describe_room(context: Context) -> str | None:
    """How much memory is free, in words, where it is as much again as is in use at the peak; None where it is less, or
    where that of a device is not known.  A host of which nothing was recorded is taken to have it."""
    if context.has_device:
        report = context.read("memory-profile")
        shares = [_peak_percent(each) for each in (report.memories if report else ()) if not _is_host(str(each["id"]))]
        known = [share for share in shares if share]
        if not known or max(known) > 50.0:
            return None
        return f"the fullest device memory is {max(known):.0f} % full at its peak"
    free, used = context.counter("Memory available GB"), context.counter("Memory process GB")
    if free is None or used is None:
        return ""
    return f"{free:.1f} GB of memory are free, and the program uses {used:.1f} GB" if free >= used else None


def _takes_all_memory(context: Context) -> bool:
    """Whether TensorFlow takes all memory at its start, as far as the capture shows."""
    return context.framework == "tensorflow" and not any(_GROWS in host.settings for host in context.hosts)


def _is_host(memory: str) -> bool:
    return "cpu" in memory.lower() or "host" in memory.lower()


def _peak_percent(memory: Mapping[str, Any]) -> float | None:
    """How full a memory is at its peak; None if its capacity is unknown."""
    capacity, peak = memory.get("capacity_bytes"), memory.get("peak") or {}
    used = (peak.get("stack_bytes") or 0) + (peak.get("heap_bytes") or 0)
    return 100.0 * used / capacity if capacity else None


RULES = (
    Rule(
        "memory.churn", kind="memory_churn", title="Write in place instead of copying",
        find=_find_churn, actions=WORDS_OF_CLASS["memory_churn"].actions, tool="memory-profile", confidence=0.85,
        yields_to=("straggler", "recompilation", "eager_dispatch"),
    ),
    Rule(
        "memory.nearly-full", _FULL_PERCENT, kind="memory_churn", title="Free memory before it runs out",
        find=_find_capacity, tool="memory-profile", confidence=0.6,
    ),
    Rule(
        "memory.free", _EMPTY_PERCENT, kind="small_batch", title="Use the free memory: a larger batch fits",
        find=_find_free_memory, tool="memory-profile", confidence=0.4, is_practice=True,
    ),
)  # fmt: skip
