"""Work of a device that could be less: data moved, kernels in pieces, products in 32 bits, memory asked of the driver.

A row names the kind of work, see `facts.device_facts.work_by_kind`; the replay says what less of it gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Actions, Finding, Op, Rule, actions_for, has_culprit, op_of, rows_of
from stepscope.analysis.advice.rules.words import FRAGMENTED, WORDS_OF_CLASS
from stepscope.report import amount
from stepscope.report.looks import size_text
from stepscope.vocabulary.devices import MOVES_PAGES, PINNED_COPY
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.tensor_cores import is_plain_product
from stepscope.vocabulary.torch import fused_form
from stepscope.vocabulary.traits import CallTrait

_MANY = 20.0  # kernels per step: fewer are no chain
_PER_PARAMETER = 50.0  # launches of an update: a fused or foreach one makes a dozen

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
_OFFLOAD: Actions = {
    "jax": (
        "what was placed in the host's memory and fits into the device's: move it there once, before the loop"
        " (jax.device_put with a sharding of memory_kind='device')",
        "let less have to leave: a smaller batch, 16 bits, jax.checkpoint, which computes again instead of moving; and"
        " offload less by policies such as save_and_offload_only_these_names",
    ),
    "": ("keep data in the device's memory: a smaller batch, 16 bits, or recomputation instead of offload",),
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
_PINNED_OUT: Actions = {
    "pytorch": (
        "copy into pinned memory that is kept: torch.empty(shape, pin_memory=True).copy_(x, non_blocking=True), and"
        " wait where its values are read",
        "copy less back: compute on the device what the host makes of it",
    ),
    "": (
        f"copy into pinned memory that is kept ({PINNED_COPY})",
        "copy less back: compute on the device what the host makes of it",
    ),
}
_PREFETCH: Actions = {
    "": (
        f"move pages before they are needed, all at once: {MOVES_PAGES} before the kernel, and back before the host"
        " reads",
        "or allocate memory of the device, and copy",
    ),
}
_CHAINS: Actions = {
    "tensorflow": ("tf.function(jit_compile=True) fuses elementwise ops into their neighbours",),
    "jax": ("put the ops under one jax.jit: XLA then fuses them",),
    "pytorch": (
        "torch.compile(model) fuses elementwise ops into their neighbours",
        "use fused layers: torch.nn.functional.layer_norm, gelu and cross_entropy instead of their parts written out",
    ),
    "": ("fuse elementwise ops with a compiler",),
}
_ATTENTION: Actions = {
    "pytorch": (
        "torch.nn.functional.scaled_dot_product_attention(q, k, v) in place of matmul, softmax and matmul; with Hugging"
        " Face models from_pretrained(..., attn_implementation='sdpa')",
        "in 16 bits it runs as one flash kernel, which writes no matrix of scores",
    ),
    "jax": (
        "jax.nn.dot_product_attention(q, k, v, implementation='cudnn')",
        "the fused attention of Transformer Engine, where it is installed",
    ),
    "tensorflow": ("keras.layers.MultiHeadAttention with flash attention: keras.config.enable_flash_attention()",),
    "": ("use a fused attention kernel",),
}
_UPDATE: Actions = {
    "pytorch": (
        "{0} updates all parameters in a few kernels",
        "wrap the update in torch.compile if the optimizer is your own",
    ),
    "": ("update all parameters in one fused kernel",),
}
# Of PyTorch 2.13's optimizers.
_TENSOR_FLOAT_32 = "torch.set_float32_matmul_precision('high') for TensorFloat-32"
_NARROW: Actions = {
    "tensorflow": (
        "keras.config.set_dtype_policy('mixed_bfloat16')",
        "keras.config.set_dtype_policy('mixed_float16'), with keras.optimizers.LossScaleOptimizer",
        "make layer and batch sizes multiples of 8",
    ),
    "jax": (
        "compute in jnp.bfloat16, keep the weights in float32",
        "compute in jnp.float16 with a scaled loss, keep the weights in float32",
        "jax.config.update('jax_default_matmul_precision', 'bfloat16'), or 'tensorfloat32'",
    ),
    "pytorch": (
        "torch.autocast('cuda', dtype=torch.bfloat16)",
        "torch.autocast('cuda', dtype=torch.float16) with torch.amp.GradScaler",
        _TENSOR_FLOAT_32,
        "make layer and batch sizes multiples of 8",
    ),
    "": ("try mixed precision: 16 bits for products, 32 for weights, and a scaled loss for float16",),
}
_SINGLE: Actions = {
    "jax": ("leave jax_enable_x64 off, or give the arrays of the step dtype=jnp.float32",),
    "pytorch": (
        "leave out .double() and dtype=torch.float64; model.float(), and .float() for tensors of NumPy arrays, which"
        " are float64 by default",
    ),
    "tensorflow": (
        "give variables and batches dtype=tf.float32 (array.astype('float32')); keras.config.set_floatx('float32')",
    ),
    "": ("compute in 32 bits: NumPy's arrays are float64 by default",),
}


def find_work(
    kind: str, what: str, without: str, least: float = 0.0, detail: Callable[[Context], str] | None = None
) -> Callable[[Context], Finding | None]:
    """The finding of a kind of device work.

    Args:
        what: what its kernels do, in words that follow them; detail: see `Finding`.
        least: fewer kernels per step are not worth a word.
    """

    def find(context: Context) -> Finding | None:
        device = context.device
        work = device.kinds.get(kind) if device is not None else None
        if device is None or work is None or work.calls < least * device.steps:
            return None
        time = device.elapsed_ms(work.total_ps)
        kernels = f"{work.calls / device.steps:.0f} kernels"
        if not has_culprit(context, kind):  # nobody calls a kernel: its op says more
            kernels += f", mostly {work.largest[0].name},"
        return Finding(
            part_ms=time,
            evidence=f"for {context.percent(time):.1f} % of each step {kernels} {what}",
            detail=detail,
            change=kind,
            without=without,
            parts=(kind,),
            op=op_of(work.largest[0], device.steps),
            rows=rows_of("kernel-stats", work.largest, device.steps),
            intervals=context.work_places(work.largest),
        )

    return find


def _find_offload(context: Context) -> Finding | None:
    """What compiled programs move between the memories of host and device."""
    device = context.device
    work = device.kinds.get("offload") if device is not None else None
    if device is None or work is None:
        return None
    time = device.elapsed_ms(work.total_ps)
    moved = f", up to {size_text(work.most_bytes)} in one copy" if work.most_bytes else ""
    return Finding(
        part_ms=time,
        evidence=f"the program moves data between the memories of host and devices{moved}",
        change="offload",
        without="moving data between host and device",
        parts=("offload",),
        op=op_of(work.largest[0], device.steps),
        rows=rows_of("kernel-stats", work.largest, device.steps),
        intervals=context.work_places(work.largest),
    )


def _describe_tensor_cores(context: Context) -> str:
    """The share of kernel time that could use tensor cores but does not."""
    report = context.read("kernel-stats")
    rows = report.rows if report else ()
    total = sum(amount(row["total_us"]) for row in rows)
    idle = sum(amount(row["total_us"]) for row in rows if row["tensor_core_eligible"] and not row["uses_tensor_core"])
    return (
        f"; {100.0 * idle / total:.0f} % of kernel time could use tensor cores but does not" if total and idle else ""
    )


_find_wide = find_work(
    "wide_products",
    "multiply matrices or convolve in 32 bits",
    "half the time of 32-bit products",
    detail=_describe_tensor_cores,
)


def _find_wide_products(context: Context) -> Finding | None:
    """Products in 32 bits: what lets them compute in TensorFloat-32 is said of products of matrices that do not yet, as
    convolutions do it anyway."""
    found, work = _find_wide(context), context.device.kinds.get("wide_products") if context.device else None
    if found is None or work is None:
        return found
    plain = any(is_plain_product(share.name) for share in work.largest)
    actions = actions_for(context.framework, _NARROW)
    return replace(found, actions=tuple(each for each in actions if plain or each != _TENSOR_FLOAT_32))


def _find_doubles(context: Context) -> Finding | None:
    """Ops in 64 bits on a host that computes itself."""
    work = context.work
    if not work.doubles_ps:
        return None
    time = work.per_step_ms(work.doubles_ps) * work.critical_path_share
    return Finding(
        part_ms=time,
        evidence=f"{context.percent(time):.1f} % of each step computes in 64 bits (float64)",
        change="doubles",
        without="what ops in 64 bits take beyond 32",
        parts=("doubles",),
        state="in 64 bits",
    )


def _find_pageable(context: Context) -> Finding | None:
    device = context.device
    if device is None or not device.pageable:
        return None
    waits = [call for call in device.calls if name_has(call.name, CallTrait.COPIES)]
    time = device.per_step_ms(device.exposed_pageable_ps + sum(call.total_ps for call in waits))
    return Finding(
        part_ms=time,
        evidence=f"the device waits {context.percent(time):.1f} % of each step for copies from pageable (not pinned)"
        f" host memory{f', {device.pageable / device.steps:.0f} per step' if context.has_steps else ''}",
        change="pageable",
        without="copies from pageable memory",
        parts=("transfer",),
        rows=rows_of("kernel-stats", waits, device.steps) or (Row("overview", "transfer", round(time, 3)),),
        intervals=context.work_places(waits),
    )


def _find_copies_out(context: Context) -> Finding | None:
    """Copies to memory of the host that is not pinned, which the driver makes through a small buffer of its own."""
    device = context.device
    if device is None or not device.out_to_pageable:
        return None
    time = device.per_step_ms(device.exposed_out_ps)
    return Finding(
        part_ms=time,
        evidence=f"for {context.percent(time):.1f} % of each step the device does nothing but copy to pageable (not"
        " pinned) memory of the host",
        change="copy",
        unknown="how fast the same copies are to pinned memory was not measured",
        parts=("copy",),
        rows=(Row("overview", "copy", round(time, 3)),),
    )


def _find_migrations(context: Context) -> Finding | None:
    """Pages of unified memory that move when host or device touches them, one after the other."""
    device = context.device
    moved = device.migrations if device is not None else None
    if device is None or moved is None:
        return None
    time = device.elapsed_ms(moved.total_ps)
    return Finding(
        part_ms=time,
        evidence=f"pages of unified memory move {moved.calls / device.steps:,.0f} times, {time:,.1f} ms in all",
        unknown="what the kernel takes without waiting for its pages was not recorded",
        parts=("transfer", "copy"),
        op=op_of(moved, device.steps),
        rows=rows_of("kernel-stats", [moved], device.steps),
    )


def _find_update(context: Context) -> Finding | None:
    """An optimizer that launches kernels for each parameter."""
    device = context.device
    update = device.update if device is not None else None
    if device is None or update is None or update.launches < _PER_PARAMETER * device.steps:
        return None
    time = device.per_step_ms(update.total_ps)
    how = fused_form(update.name) or "an optimizer of torch.optim, with fused=True or foreach=True,"
    return Finding(
        part_ms=time,
        actions=tuple(each.format(how) for each in actions_for(context.framework, _UPDATE)),
        evidence=f"the update launches {update.launches / device.steps:.0f} kernels per step, parameter by parameter",
        change="optimizer",
        without="launching the update parameter by parameter",
        op=Op(update.name, 1, update.total_ps / device.steps),
        rows=(Row("op-stats", update.name, round(time, 3)),),
    )


def _find_driver_calls(context: Context) -> Finding | None:
    """Driver calls that allocate or free memory.  They stop the device; caching allocators make few.

    Without steps they are of the start: a program takes its first memory once.
    """
    device = context.device
    calls = [call for call in device.calls if name_has(call.name, CallTrait.TAKES_MEMORY)] if device else []
    if device is None or not calls or not context.has_steps:
        return None
    idle = device.per_step_ms(sum(call.total_ps for call in calls))
    return Finding(
        part_ms=idle,
        evidence=f"the device is idle for {context.percent(idle):.1f} % of each step during"
        f" {sum(call.calls for call in calls) / device.steps:.0f} calls such as {calls[0].name}",
        change="driver_calls",
        without="memory calls to the driver",
        op=op_of(calls[0], device.steps),
        rows=rows_of("op-stats", calls, device.steps),
        intervals=context.work_places(calls),
    )


# If the host launches too slowly, a device with less work only waits longer.  Precision yields to nothing: its gain
# comes from the replay, where a device that waits for launches gains nothing from speed.
_LAUNCHING = ("eager_dispatch", "small_batch")

RULES = (
    Rule(
        "layout.transposes", 4.0, kind="memory_churn", title="Keep data in the layout that the kernels need",
        find=find_work("layout", "only change the order of data", "layout conversion"),
        actions=_LAYOUT, tool="kernel-stats", confidence=0.75, yields_to=_LAUNCHING,
    ),
    Rule(
        "memory.device-copies", 10.0, kind="memory_churn", title="Write in place instead of copying",
        find=find_work("device_copies", "only copy or join data", "copying inside the device"),
        actions=WORDS_OF_CLASS["memory_churn"].actions, tool="kernel-stats", confidence=0.65, yields_to=_LAUNCHING,
    ),
    Rule(
        "memory.offload", 10.0, kind="memory_churn", title="Move less between the host's memory and the device's",
        find=_find_offload, actions=_OFFLOAD, tool="kernel-stats", confidence=0.75,
    ),
    Rule(
        "input.pageable", 3.0, kind="input_transfer",
        title="Copy the next batch from pinned memory while the step runs",
        find=_find_pageable, actions=_PINNED, tool="kernel-stats", confidence=0.7, yields_to=("input_transfer",),
    ),
    Rule(
        "copies.pageable", kind="memory_churn", title="Copy results to pinned memory",
        find=_find_copies_out, actions=_PINNED_OUT, tool="kernel-stats", confidence=0.7,
    ),
    Rule(
        "copies.migrations", kind="memory_churn", title="Move unified memory before it is needed",
        find=_find_migrations, actions=_PREFETCH, tool="kernel-stats", confidence=0.7,
    ),
    Rule(
        "memory.driver-calls", 3.0, kind="memory_churn", title="Allocate memory from the driver once",
        find=_find_driver_calls, actions=FRAGMENTED, tool="memory-profile", confidence=0.75,
    ),
    Rule(
        "precision.low", 25.0, kind="low_precision", title="Compute in 16 bits", find=_find_wide_products,
        tool="kernel-stats", confidence=0.6,
    ),
    Rule(
        "precision.double", kind="low_precision", title="Compute in 32 bits", find=_find_doubles,
        actions=_SINGLE, tool="op-stats", confidence=0.7, yields_to=("redundant_compute", "small_batch"),
    ),
    Rule(
        "kernels.elementwise", 15.0, kind="memory_churn", title="Fuse chains of elementwise kernels",
        find=find_work(
            "elementwise",
            "run single elementwise ops, each of which reads its operands from memory and writes its result there",
            "a part of what the elementwise kernels take", least=_MANY,
        ),
        actions=_CHAINS, tool="kernel-stats", confidence=0.6, yields_to=_LAUNCHING,
    ),
    Rule(
        "kernels.attention", 10.0, kind="memory_churn", title="Use a fused attention kernel",
        find=find_work(
            "attention", "compute attention in pieces: products, a softmax and whatever lies between",
            "a part of what the attention kernels take", least=1.0,
        ),
        actions=_ATTENTION, tool="kernel-stats", confidence=0.6, yields_to=_LAUNCHING,
    ),
    Rule(
        "optimizer.per-parameter", 5.0, kind="eager_dispatch", title="Update all parameters in a few kernels",
        find=_find_update, tool="op-stats", confidence=0.75,
    ),
)  # fmt: skip
