"""A device spends its time moving data: between layouts, between tensors, or from pageable host memory."""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import foretell_change
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.naming import name_culprit, name_line, name_share
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.analysis.facts.device_facts import DeviceFacts, Share
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.traits import CallTrait

_LAYOUT: Actions = {
    "tensorflow": (
        "build the model in the layout that its kernels need: channels_last ('NHWC') for 16 bits on tensor cores",
        "leave the conversion to the graph: tf.config.optimizer.set_experimental_options({'layout_optimizer': True})",
        "use einsum instead of transpose and matmul",
    ),
    "jax": (
        "give convolutions the layout that the device needs: dimension_numbers=('NHWC', 'HWIO', 'NHWC')",
        "use einsum or dot_general on the axes as they are instead of transposing first",
    ),
    "pytorch": (
        "keep model and batches in one layout: .to(memory_format=torch.channels_last) on both",
        "look for .permute(), .transpose() and .contiguous() between layers that need different layouts",
    ),
    "": ("keep data in the layout that the kernels need",),
}
_CHURN: Actions = {
    "tensorflow": (
        "write into a tf.Variable in place (v.scatter_nd_update(indices, x), v[i:j].assign(x)) instead of tf.concat",
        "tf.function(jit_compile=True) fuses copies into neighbouring ops",
    ),
    "jax": (
        "donate arrays that the step replaces: jax.jit(..., donate_argnums=...) lets XLA write in place",
        "x.at[i].set(v) or jax.lax.dynamic_update_slice inside the jitted step instead of jnp.concatenate",
        "if copy-start and copy-done move data to the host and back, offload less",
    ),
    "pytorch": (
        "write into a preallocated tensor (copy_, index_copy_, a static cache) instead of torch.cat, clone() and stack",
        "avoid .contiguous() and .to(dtype) if the next op accepts the tensor as it is",
        "torch.compile fuses copies into neighbouring ops",
    ),
    "": ("allocate memory once and write into it in place",),
}
_PINNED: Actions = {
    "tensorflow": (
        "feed batches through tf.data with .prefetch(tf.data.AUTOTUNE), or tf.data.experimental.prefetch_to_device",
        "with small models, tf.compat.v1.ConfigProto(force_gpu_compatible=True) pins all tensors of the host",
    ),
    "jax": ("call jax.device_put on the next batch while the step runs, from reused arrays",),
    "pytorch": (
        "DataLoader(pin_memory=True), and batch.to(device, non_blocking=True)",
        "copy the next batch on a separate stream while the step runs",
    ),
    "": ("copy the next batch from pinned memory while the step runs",),
}


def _evaluate_layouts(context: Context, threshold: float) -> Advice | None:
    device = context.device
    layout = device and device.kinds.get("layout")
    if device is None or not layout:
        return None
    time = _critical_path_ms(device, layout.total_ps)
    if context.percent(time) < threshold:
        return None
    advised = foretell_change(context, "layout", time, "layout conversion").advice(
        rule="layout.transposes",
        kind="memory_churn",
        title="Keep data in the layout that the kernels need",
        evidence=f"{_describe_work(context, device, layout.largest, time)} only change the order of data",
        actions=actions_for(context.framework, _LAYOUT),
        tool="kernel-stats",
        confidence=0.75,
        rows=_evidence_rows(device, layout.largest),
        intervals=context.work_places(layout.largest),
    )
    return name_line(context, advised, "layout", name_share(context, advised, layout.largest[0], device.steps))


def _evaluate_copies(context: Context, threshold: float) -> Advice | None:
    device = context.device
    copying = device and device.kinds.get("device_copies")
    if device is None or not copying:
        return None
    time = _critical_path_ms(device, copying.total_ps)
    if context.percent(time) < threshold:
        return None
    advised = foretell_change(context, "device_copies", time, "copying inside the device").advice(
        rule="memory.device-copies",
        kind="memory_churn",
        title="Write in place instead of copying",
        evidence=f"{_describe_work(context, device, copying.largest, time)} only copy or join data",
        actions=actions_for(context.framework, _CHURN),
        tool="kernel-stats",
        confidence=0.65,
        rows=_evidence_rows(device, copying.largest),
        intervals=context.work_places(copying.largest),
    )
    return name_line(context, advised, "device_copies", name_share(context, advised, copying.largest[0], device.steps))


def _evaluate_pageable(context: Context, threshold: float) -> Advice | None:
    device = context.device
    if device is None or not device.pageable:
        return None
    waits = [call for call in device.calls if name_has(call.name, CallTrait.COPIES)]
    time = (device.exposed_pageable_ps + sum(call.total_ps for call in waits)) / device.steps / MS
    if context.percent(time) < threshold:
        return None
    advised = foretell_change(context, "pageable", time, "copies from pageable memory").advice(
        rule="input.pageable",
        kind="input_transfer",
        title="Copy the next batch from pinned memory while the step runs",
        evidence=f"the device waits {context.percent(time):.1f} % of each step for copies from pageable (not pinned)"
        f" host memory, {device.pageable / device.steps:.0f} per step",
        actions=actions_for(context.framework, _PINNED),
        tool="kernel-stats",
        confidence=0.7,
        rows=_evidence_rows(device, waits) or (Row("overview", "input", round(time, 3)),),
        intervals=context.work_places(waits),
    )
    return name_culprit(context, advised, "copy")


def _critical_path_ms(device: DeviceFacts, time_ps: int) -> float:
    """Elapsed time per step: work that overlaps on several streams or devices adds up to more."""
    shrunk = min(device.busy_ps / device.work_ps, 1.0) if device.work_ps else 1.0
    return time_ps * shrunk / device.steps / MS


def _describe_work(context: Context, device: DeviceFacts, work: list[Share], time: float) -> str:
    calls = sum(each.calls for each in work) / device.steps
    return (
        f"for {context.percent(time):.1f} % of each step the device runs kernels ({calls:.0f}, mostly {work[0].name})"
        " that"
    )


def _evidence_rows(device: DeviceFacts, work: list[Share]) -> tuple[Row, ...]:
    return tuple(Row("kernel-stats", each.name, round(each.total_ps / device.steps / MS, 3)) for each in work[:3])


# If the host launches too slowly, a device with less work only waits longer.
_LAUNCHING = ("eager_dispatch", "small_batch")

LAYOUTS = Rule(id="layout.transposes", threshold_percent=4.0, evaluate=_evaluate_layouts, yields_to=_LAUNCHING)
COPIES = Rule(id="memory.device-copies", threshold_percent=10.0, evaluate=_evaluate_copies, yields_to=_LAUNCHING)
PAGEABLE = Rule(id="input.pageable", threshold_percent=3.0, evaluate=_evaluate_pageable, yields_to=("input_transfer",))
