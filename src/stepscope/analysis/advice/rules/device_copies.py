"""A device spends its time on moving data: between layouts, between tensors, or in from memory that is not pinned."""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import without
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.analysis.facts.device_facts import DeviceFacts, Share
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.traits import CallTrait

_LAYOUT: Actions = {
    "tensorflow": (
        "build the model in the layout that its kernels want: channels_last ('NHWC') in 16 bits on tensor cores",
        "leave the conversion to the graph: tf.config.optimizer.set_experimental_options({'layout_optimizer': True})",
        "write einsum instead of transpose and matmul",
    ),
    "jax": (
        "give convolutions the layout that the device wants: dimension_numbers=('NHWC', 'HWIO', 'NHWC')",
        "write einsum or dot_general over the axes as they are, instead of transposing before it",
    ),
    "pytorch": (
        "keep model and input in one layout: model.to(memory_format=torch.channels_last), and the same for each batch",
        "look for .permute(), .transpose() and .contiguous() between layers that want different layouts",
    ),
    "": ("keep data in the layout that the kernels want",),
}
_CHURN: Actions = {
    "tensorflow": (
        "write into a tf.Variable in place (v.scatter_nd_update(indices, x), v[i:j].assign(x)) instead of tf.concat",
        "tf.function(jit_compile=True) fuses copies into the ops beside them",
    ),
    "jax": (
        "donate what is replaced: jax.jit(..., donate_argnums=...), so that XLA writes in place",
        "x.at[i].set(v) or jax.lax.dynamic_update_slice inside the jitted step instead of jnp.concatenate",
        "where copy-start and copy-done move data to the host and back, offload less of it",
    ),
    "pytorch": (
        "write into a preallocated tensor (copy_, index_copy_, a static cache) instead of torch.cat, clone() and stack",
        "avoid .contiguous() and .to(dtype) where the next op takes the tensor as it is",
        "torch.compile fuses copies into the ops beside them",
    ),
    "": ("write in place into memory that is allocated once",),
}
_PINNED: Actions = {
    "tensorflow": (
        "feed batches through tf.data with .prefetch(tf.data.AUTOTUNE), or tf.data.experimental.prefetch_to_device",
    ),
    "jax": ("jax.device_put the next batch while the step runs, from arrays that are reused",),
    "pytorch": (
        "DataLoader(pin_memory=True), and batch.to(device, non_blocking=True)",
        "copy the next batch on a stream of its own while the step runs",
    ),
    "": ("copy batches from pinned memory, while the step before runs",),
}


def _layouts(context: Context, threshold: float) -> Advice | None:
    device = context.device
    if device is None or not device.layout_ps:
        return None
    time = _on_critical_path(device, device.layout_ps)
    if context.percent(time) < threshold:
        return None
    return without(context, time, "bringing data into another layout").advice(
        rule="layout.transposes",
        kind="memory_churn",
        title="Keep data in the layout that the kernels want",
        evidence=f"{_share(context, device, device.layout, time)} only changes the order of data",
        actions=actions_for(context.framework, _LAYOUT),
        tool="kernel-stats",
        confidence=0.75,
        rows=_rows(device, device.layout),
        intervals=context.work_places(device.layout),
    )


def _copies(context: Context, threshold: float) -> Advice | None:
    device = context.device
    if device is None or not device.copying_ps:
        return None
    time = _on_critical_path(device, device.copying_ps)
    if context.percent(time) < threshold:
        return None
    return without(context, time, "copying inside the device").advice(
        rule="memory.device-copies",
        kind="memory_churn",
        title="Write in place instead of copying",
        evidence=f"{_share(context, device, device.copying, time)} only copies or joins data",
        actions=actions_for(context.framework, _CHURN),
        tool="kernel-stats",
        confidence=0.65,
        rows=_rows(device, device.copying),
        intervals=context.work_places(device.copying),
    )


def _pageable(context: Context, threshold: float) -> Advice | None:
    device = context.device
    if device is None or not device.pageable:
        return None
    waits = [call for call in device.calls if name_has(call.name, CallTrait.COPIES)]
    time = (device.exposed_pageable_ps + sum(call.total_ps for call in waits)) / device.steps / MS
    if context.percent(time) < threshold:
        return None
    return without(context, time, "copying from memory that is not pinned").advice(
        rule="input.pageable",
        kind="input_transfer",
        title="Copy batches from pinned memory, while the step before runs",
        evidence=f"in {context.percent(time):.1f} % of the time of a step the device waits for copies out of memory"
        f" that is not pinned, {device.pageable / device.steps:.0f} of them a step",
        actions=actions_for(context.framework, _PINNED),
        tool="kernel-stats",
        confidence=0.7,
        rows=_rows(device, waits) or (Row("overview", "input", round(time, 3)),),
        intervals=context.work_places(waits),
    )


def _on_critical_path(device: DeviceFacts, time_ps: int) -> float:
    """Time per step: work of several streams and devices at a time adds up to more than passes."""
    shrunk = min(device.busy_ps / device.work_ps, 1.0) if device.work_ps else 1.0
    return time_ps * shrunk / device.steps / MS


def _share(context: Context, device: DeviceFacts, work: list[Share], time: float) -> str:
    calls = sum(each.calls for each in work) / device.steps
    return (
        f"{context.percent(time):.1f} % of the time of a step the device runs work ({calls:.0f} pieces, most of it"
        f" {work[0].name}) that"
    )


def _rows(device: DeviceFacts, work: list[Share]) -> tuple[Row, ...]:
    return tuple(Row("kernel-stats", each.name, round(each.total_ps / device.steps / MS, 3)) for each in work[:3])


# Where the host launches too slowly, a device that has less to do waits for longer.
_LAUNCHING = ("eager_dispatch", "small_batch")

LAYOUTS = Rule(id="layout.transposes", threshold_percent=4.0, evaluate=_layouts, yields_to=_LAUNCHING)
COPIES = Rule(id="memory.device-copies", threshold_percent=10.0, evaluate=_copies, yields_to=_LAUNCHING)
PAGEABLE = Rule(id="input.pageable", threshold_percent=3.0, evaluate=_pageable, yields_to=("input_transfer",))
