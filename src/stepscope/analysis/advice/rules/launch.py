"""A device waits while the host launches its work or waits for its results."""

from __future__ import annotations

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.gain import Bound, without
from stepscope.analysis.advice.rule import Advice, Row, Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.analysis.loop import Activity

_SYNCS = 2.0  # waits a step: one at its end is usual

_FEWER: Actions = {
    "tensorflow": ("compile the step as a whole: tf.function(jit_compile=True)", "use larger batches"),
    "jax": ("put the whole step under one jax.jit", "use larger batches, or jax.lax.scan over several steps"),
    "pytorch": (
        "torch.compile(model, mode='reduce-overhead'), which replays CUDA graphs",
        "use fused or foreach optimizers, and larger batches",
    ),
    "": ("launch fewer and larger pieces of device work", "use larger batches"),
}
_CONTENTION = "keep threads of the input away from those that launch: TF_GPU_THREAD_MODE=gpu_private"
_SYNC_ACTIONS = (
    "fetch values every N steps, and several at once: .item(), float(), .numpy() and print() wait for the device",
    "keep metrics on the device and fetch them when the epoch ends",
)


def _evaluate(context: Context, threshold: float) -> Advice | None:
    if not context.has_device:
        return None
    launch = context.shares.get("kernel_launch", 0.0)
    idle = launch + context.shares.get("other", 0.0) + context.shares.get("host_compute", 0.0)
    syncs = context.calls(Activity.SYNC)
    waits = syncs > _SYNCS and idle >= threshold
    share = idle if waits else launch
    if share < threshold:
        return None
    removed = share * context.step_ms / 100
    iterators = any(host.feed.has_iterators for host in context.hosts)
    extra = (_CONTENTION,) if iterators and context.framework == "tensorflow" else ()
    gain = without(
        context, removed, "time in which the device waits for the host", [Bound(context.compute_ms, "the device")]
    )
    return gain.advice(
        rule="device.sync" if waits else "launch.bound",
        kind="host_sync" if waits else "eager_dispatch",
        title="Stop waiting for the device within the step"
        if waits
        else "Launch fewer or larger pieces of device work",
        evidence=f"{share:.1f} % of the step time the device waits for the host"
        + (f", which waits for it {syncs:.0f} times a step" if waits else ", which is busy launching work"),
        actions=_SYNC_ACTIONS if waits else (*actions_for(context.framework, _FEWER), *extra),
        tool="steps",
        confidence=0.7,
        rows=(Row("steps", "other" if waits else "kernel_launch", round(removed, 3)),),
        intervals=context.intervals(Activity.SYNC if waits else Activity.RUNTIME),
    )


RULE = Rule(
    id="launch.bound",
    threshold_percent=15.0,
    evaluate=_evaluate,
    yields_to=("recompilation", "input_preprocessing", "input_python", "input_file_read", "input_no_prefetch"),
)
