"""The loop pauses to save its state."""

from __future__ import annotations

from stepscope.analysis.account.account_text import cause_words
from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Actions, Finding, Rule

ACTIONS: Actions = {
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


def _find(context: Context) -> Finding | None:
    saving = context.cause_ms("checkpoint")
    where = context.intervals("checkpoint")
    name = next((place.name.lstrip("$") for place in where if place.name), "")
    where_text = f", in {name}" if name else ""
    return Finding(
        part_ms=saving,
        share=f"{context.percent(saving):.1f} % of each step is {cause_words('checkpoint')}{where_text}",
        change="checkpoint",
        without="saving",
        parts=("checkpoint",),
        rows=(Row("overview", "checkpoint", round(saving, 3)),),
        intervals=where,
        confidence=0.9 if name else 0.7,
    )


RULE = Rule(
    "checkpoint.stall", kind="checkpoint_stall", title="Save less often, or in the background", find=_find,
    actions=ACTIONS, tool="steps", yields_to=("recompilation",),
)  # fmt: skip
