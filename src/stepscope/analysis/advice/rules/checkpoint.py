"""The loop pauses to save its state."""

from __future__ import annotations

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.gain import foretell_change
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.naming import name_culprit
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.analysis.facts.loop_events import Activity

_ACTIONS: Actions = {
    "tensorflow": (
        "save every few hundred steps: keras.callbacks.ModelCheckpoint(path, save_freq=N), or"
        " tf.train.CheckpointManager(..., step_counter=step, checkpoint_interval=N)",
        "write in the background: checkpoint.save(path, options=tf.train.CheckpointOptions(enable_async=True))",
        "if NumPy writes the file, write it in another thread from copies of the variables",
    ),
    "jax": (
        "save every few hundred steps: orbax.checkpoint.CheckpointManagerOptions(save_interval_steps=N)",
        "write in the background: orbax.checkpoint.CheckpointManagerOptions(enable_async_checkpointing=True),"
        " or jax.device_get the arrays and save them in another thread",
    ),
    "pytorch": (
        "call torch.save every few hundred steps",
        "write in the background: torch.distributed.checkpoint.async_save, or copy the state and save it in a thread",
    ),
    "": ("save every few hundred steps, and in the background",),
}

# The evidence of a save that runs no op.
_BEFORE = {
    "tensorflow": "it is saved after its variables are read",
    "pytorch": "it is saved after its parameters are collected (state_dict)",
}


def _evaluate(context: Context, threshold: float) -> Advice | None:
    saving = context.part_ms(Activity.CHECKPOINT)
    if context.percent(saving) < threshold:
        return None
    where = context.intervals(Activity.CHECKPOINT)
    name = next((place.name.lstrip("$") for place in where if place.name), "")
    advised = foretell_change(context, "checkpoint" if context.has_device else "saving", saving, "saving").advice(
        rule="checkpoint.stall",
        kind="checkpoint_stall",
        title="Save less often, or in the background",
        evidence="" if name else _BEFORE.get(context.framework, ""),
        actions=actions_for(context.framework, _ACTIONS),
        tool="steps",
        confidence=0.9 if name else 0.7,
        rows=(Row("steps", "other", round(saving, 3)),),
        intervals=where,
    )
    where_text = f", in {name}" if name else ""
    share = f"{context.percent(saving):.1f} % of each step is spent saving the model's state{where_text}"
    return name_culprit(context, advised, "checkpoint", share=share)


RULE = Rule(id="checkpoint.stall", threshold_percent=5.0, evaluate=_evaluate, yields_to=("recompilation",))
