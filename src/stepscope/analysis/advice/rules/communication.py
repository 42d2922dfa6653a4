"""Collectives take time that no computation hides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import without
from stepscope.analysis.advice.items import Advice, Interval, Row
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.analysis.facts.loop_events import Activity
from stepscope.report import amount, number_text, size_text

if TYPE_CHECKING:
    from stepscope.analysis.workers.distributed_tool import DistributedReport

_MANY_MESSAGES = 8.0  # a step; from here on it is their number that costs, not only what they carry
_TINY_PS = 200_000_000  # of a collective on a device: then it is latency that it costs, not what it carries
_FEW_MESSAGES_PERCENT = 30.0  # what a few large messages may take: data parallelism has its price

_ACTIONS: Actions = {
    "tensorflow": (
        "reduce gradients together: tf.distribute.experimental.CommunicationOptions(bytes_per_pack=...)",
        "communicate in 16 bits",
    ),
    "jax": (
        "let jit partition the whole step, so that XLA combines and overlaps collectives",
        "reduce one flat array (jax.flatten_util.ravel_pytree) instead of one per parameter",
    ),
    "pytorch": (
        "torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=25), which reduces buckets of gradients while"
        " the backward pass runs, or larger buckets where it does so already",
        "or flatten all gradients into one buffer and reduce it once:"
        " torch.distributed.all_reduce(buffer, async_op=True)",
        "communicate in 16 bits: model.register_comm_hook(None, default_hooks.bf16_compress_hook), of"
        " torch.distributed.algorithms.ddp_comm_hooks",
    ),
    "": ("reduce gradients in large buckets while the backward pass runs", "communicate in 16 bits"),
}


def _evaluate(context: Context, threshold: float) -> Advice | None:
    exposed = _exposed(context)
    messages, many = _messages(context)
    if context.percent(exposed) < (threshold if many or context.has_device else _FEW_MESSAGES_PERCENT):
        return None
    count = f" in {messages:.0f} messages a step" if messages else ""
    compared = context.read("distributed")
    collectives = compared.collectives if compared else ()
    competes = exposed if many else 0.0
    gain = without(
        context, exposed, "communication that nothing hides", parts=(Activity.COLLECTIVE,), competes_ms=competes
    )
    return gain.advice(
        rule="communication.exposed",
        kind="communication_bound",
        title="Communicate in fewer, larger messages" if many else "Hide or shrink the communication",
        evidence=f"{context.percent(exposed):.1f} % of the time of a step goes to collectives{count} that no"
        f" computation hides{_pace(collectives)}",
        actions=(*_unrecorded(compared), *actions_for(context.framework, _ACTIONS)),
        tool="distributed" if collectives else "pod-viewer",
        confidence=0.9 if many else 0.7,
        rows=(Row("steps", "device_collectives", round(exposed, 3)),),
        intervals=_places(context),
    )


def _places(context: Context) -> tuple[Interval, ...]:
    """The longest collectives: on the devices, if they communicate at all, else on the host."""
    device = context.device
    return (device and context.work_places(device.communicating)) or context.intervals(Activity.COLLECTIVE)


def _pace(collectives: Sequence[Mapping[str, Any]]) -> str:
    """How fast the largest collectives move their data: far less than the link can means waiting, not moving."""
    largest = next((each for each in collectives if each["bus_gb_per_s"]), None)
    if largest is None:
        return ""
    size, speed = size_text(largest["bytes"]), number_text(largest["bus_gb_per_s"])
    return f"; {largest['operation']} of {size} moves its data at {speed} GB/s (bus bandwidth)"


def _unrecorded(compared: DistributedReport | None) -> Sequence[str]:
    """What to do first where the ranks that may be late are not recorded."""
    here = len(compared.rows) if compared else 0
    world = round(max((amount(each["ranks"]) for each in compared.collectives), default=0)) if compared else 0
    if not 0 < here < world:
        return ()
    return (
        f"record all {world} ranks ({here} {'is' if here == 1 else 'are'} here): a collective lasts until the last rank"
        " has come, and what looks like slow communication may be waiting for a slow rank",
    )


def _messages(context: Context) -> tuple[float, bool]:
    """Messages per step, and whether it is their number that costs."""
    device = context.device
    if not context.has_device or device is None:
        messages = context.calls(Activity.COLLECTIVE)
        return messages, messages > _MANY_MESSAGES
    messages = device.collectives / device.steps
    return messages, messages > _MANY_MESSAGES and device.collective_ps < _TINY_PS


def _exposed(context: Context) -> float:
    """Time of collectives that every host spends: what one host spends beyond that is waiting for another."""
    looped = [host.loop for host in context.hosts if host.loop is not None]
    if context.has_device:
        devices = [host.device for host in context.hosts if host.device is not None]
        return min((each.exposed_collectives_ps / each.steps / MS for each in devices), default=0.0)
    if not looped:
        return context.part_ms(Activity.COLLECTIVE)
    return min(loop.activity_ps.get("collective", 0) / loop.steps / MS for loop in looped)


RULE = Rule(
    id="communication.exposed",
    threshold_percent=15.0,
    evaluate=_evaluate,
    yields_to=("straggler",),
)
