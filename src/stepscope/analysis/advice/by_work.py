"""What makes computing cheaper, by what is computed and where, in words of the framework: for a part of which no rule
knows an excess."""

from __future__ import annotations

from stepscope.analysis.account.account import StepAccount
from stepscope.analysis.account.account_text import COMPUTING
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.rule import Actions, Named, actions_for, fit_actions
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.vocabulary.families import (
    ATTENTION,
    CONVOLUTION,
    FUSED_ATTENTION,
    NORMALIZATION,
    PRODUCT,
    RUNTIME_COMPILER,
    SLOW_CONVOLUTION,
    family_of,
)
from stepscope.vocabulary.kernel_names import brief
from stepscope.vocabulary.native import is_of_program

_HOST, _DEVICE = "host", "device"
_COMPILED = (
    "the program compiles kernels while it runs: compile them ahead of time for the device (nvcc -arch, hipcc"
    " --offload-arch), or keep what was compiled (a cache of cubins, CUDA_CACHE_PATH for the driver's)"
)
_BFLOAT16 = "torch.autocast('cpu', dtype=torch.bfloat16), where the processor computes in it"
# By kind of work, place and framework; "" is any framework.
_BY_WORK: dict[tuple[str, str, str], tuple[str, ...]] = {
    (CONVOLUTION, _DEVICE, "pytorch"): (
        "convolutions: 16 bits, if they compute in 32 (torch.autocast('cuda', dtype=torch.float16)), with model and"
        " batches in channels_last",
        "let cuDNN choose its fastest kernel: torch.backends.cudnn.benchmark = True",
        "let MIOpen choose its fastest kernel: MIOPEN_FIND_MODE=1",
    ),
    (CONVOLUTION, _HOST, "pytorch"): (
        "convolutions on a processor: torch.compile(model), which joins batch norm and ReLU to them in inference;"
        " model.to(memory_format=torch.channels_last) and the batch",
        _BFLOAT16,
        "run it on a GPU",
    ),
    (SLOW_CONVOLUTION, _HOST, "pytorch"): (
        "convolutions without a library: oneDNN, where PyTorch has it (torch.backends.mkldnn.is_available()); on"
        " Apple's processors their GPU, model.to('mps')",
        "fewer, larger calls: all samples in one batch",
    ),
    (CONVOLUTION, _DEVICE, "jax"): ("convolutions: NHWC layouts, and operands in jnp.bfloat16",),
    (CONVOLUTION, _HOST, "tensorflow"): (
        "convolutions on a processor: fewer channels or a larger stride where the model allows it; oneDNN"
        " (TF_ENABLE_ONEDNN_OPTS=1); or run it on a GPU",
    ),
    (PRODUCT, _DEVICE, "pytorch"): (
        "products of matrices: sizes that are multiples of 8 (of 16 in 8 bits), and larger batches",
        "FP8 (torchao, Transformer Engine)",
        "of a model that is not trained, weights of 8 bits or less (torchao's int8_weight_only, AWQ, GPTQ)",
    ),
    (PRODUCT, _HOST, "pytorch"): (
        "products on a processor: larger batches, torch.compile(model); or run it on a GPU",
        _BFLOAT16,
    ),
    (PRODUCT, _DEVICE, "jax"): ("products of matrices: operands in jnp.bfloat16, and sizes that are multiples of 128",),
    (ATTENTION, _DEVICE, "pytorch"): (
        "attention: torch.nn.functional.scaled_dot_product_attention or FlashAttention in 16 bits; shorter or packed"
        " sequences",
    ),
    (ATTENTION, _DEVICE, "jax"): (
        "attention in bfloat16: jax.nn.dot_product_attention(..., implementation='cudnn')",
        "the fused attention of Transformer Engine, in bfloat16",
    ),
    (FUSED_ATTENTION, _DEVICE, ""): (
        "attention, which is fused: shorter or packed sequences, a window, or fewer heads of keys and values"
        " (grouped queries)",
    ),
    (NORMALIZATION, _DEVICE, "pytorch"): ("torch.compile(model) joins normalizations to the ops around them",),
    (RUNTIME_COMPILER, _HOST, ""): (_COMPILED,),
}
_LARGER_BATCH = "it costs the same for a batch of any size: a larger batch has fewer updates per sample"
_UPDATE: Actions = {
    "pytorch": (
        "fused=True of torch.optim's Adam, AdamW, SGD and Adagrad updates in one pass over the parameters; foreach=True"
        " of the others in a few ops",
        _LARGER_BATCH,
    ),
    "tensorflow": (
        "compile the step with jit_compile=True, of tf.function or model.compile: it fuses the ops of the update",
        _LARGER_BATCH,
    ),
    "": (_LARGER_BATCH,),
}
_ON_HOST = (
    "make the computation itself cheaper: torch.compile(model); bfloat16, where the processor computes in it"
    " (torch.autocast('cpu', dtype=torch.bfloat16)); or run it on a GPU"
)
_TINY = (
    "most of that time starts ops that are too short to do more: fewer, larger ones (batch what a loop goes through,"
    " compile it as a whole), or compute once what stays the same"
)
_CHEAPER = "make the computation itself cheaper, or use more or faster hardware"
_KERNEL = tuple(
    f"make the kernel `{{}}` cheaper: {tool} says whether registers, memory or arithmetic limit it"
    for tool in ("`ncu`", "`rocprof-compute`")
)
_MOST_PERCENT = 50.0  # of the step, by the word: in healthy small programs the update is up to 45 %
_DOUBLES = "float64 is slow on devices for graphics: compute in 32 bits where the result allows it"
_FUNCTION = "make `{}` cheaper, run it on several threads or on the device, or do it once and keep the result"


def act_on_work(context: Context, account: StepAccount | None) -> tuple[str, ...]:
    """What makes the longest part of a run cheaper that only computes, by the name of what computes in it."""
    on_host = account is None or account.devices is None or account.rows[0].cause == "host_compute"
    culprit = account.rows[0].culprit if account is not None and account.rows else None
    op = next((str(each["name"]) for each in context.top_ops if each["self_percent"] is not None), "")
    names = [culprit.op or culprit.name] if culprit is not None else []
    place = _HOST if on_host else _DEVICE
    of_ops_ms = context.work.per_step_ms(context.work.compute_ps)  # the rest are functions of other libraries
    if on_host and 2 * context.work.tiny_share >= 1 and 2 * of_ops_ms >= context.cause_ms("host_compute"):
        return (_TINY,)
    if _update_percent(context, account) >= LARGE_SHARE:
        return actions_for(context.framework, _UPDATE)
    for name in (*names, op):
        if found := work_actions(name, place, context.framework):
            left = tuple(each for each in found if each != _BFLOAT16 or not context.work.in_16_bits)
            return fit_actions(context.device_type, left)
    if culprit is not None and (own := _act_on_own(culprit, on_host, context.framework)):
        return fit_actions(context.device_type, own)
    is_torch = context.framework == "pytorch" and on_host and not context.has_steps
    return (_ON_HOST if is_torch else _CHEAPER,)


def _update_percent(context: Context, account: StepAccount | None) -> float:
    """How much of the step updates parameters, in percent, where that is the largest purpose of what computes; else 0.

    At most its share of what the step computes: ops on several threads take more time together than the step waits for.
    """
    purposes = context.pace.purposes
    update = purposes.get("update", 0)
    if account is None or not update or update < max(purposes.values()):
        return 0.0
    computing = sum(account.percent(row.ps, row.cause) for row in account.rows if row.cause in COMPUTING)
    return min(context.percent(update / MS), computing * update / sum(purposes.values()))


def title_of_work(context: Context, account: StepAccount) -> str:
    """What to make cheaper where most of each step is one op or kernel that something is known about, or the update is
    most of it; empty elsewhere: that a function of the program computes the model is no news."""
    if (share := _update_percent(context, account)) >= _MOST_PERCENT:
        return f"Make the update of the parameters cheaper: it is {share:.0f} % of {account.each_step}"
    row = account.rows[0]
    if row.culprit is None or row.culprit.file or 2 * row.culprit.ps <= account.step_ps:
        return ""
    place = _HOST if row.cause == "host_compute" else _DEVICE
    known = work_actions(row.culprit.op or row.culprit.name, place, context.framework)
    if not known and not _act_on_own(row.culprit, place == _HOST, context.framework):
        return ""
    name = brief(row.culprit.op or row.culprit.name)
    return f"Make `{name}` cheaper: it is {account.percent(row.culprit.ps):.0f} % of {account.each_step}"


def act_on_cause(context: Context, account: StepAccount, cause: str) -> tuple[str, ...]:
    """The same of the part of a cause, where its name tells what is computed; empty elsewhere."""
    culprit = next((row.culprit for row in account.rows if row.cause == cause), None)
    place = _DEVICE if cause == "device_compute" else _HOST
    names = [culprit.op or culprit.name] if culprit is not None else []
    names += [str(op["name"]) for op in context.top_ops[:1]]
    found = (work_actions(name, place, context.framework) for name in names)
    return fit_actions(context.device_type, next(filter(None, found), ()))


def work_actions(name: str, place: str, framework: str) -> tuple[str, ...]:
    """The actions for the kind of work of a name, on the host or a device; empty where none is known."""
    family = family_of(name)
    return _BY_WORK.get((family, place, framework)) or _BY_WORK.get((family, place, ""), ())


def act_on_host_function(culprit: Culprit | None) -> tuple[str, ...]:
    """What to do about a function of compiled code that samples show on the host; nothing for others."""
    if culprit is None:
        return ()
    known = work_actions(culprit.name, _HOST, "")
    return known or ((Named(_FUNCTION.format(brief(culprit.name))),) if is_of_program(culprit.name) else ())


def _act_on_own(culprit: Culprit, on_host: bool, framework: str) -> tuple[str, ...]:
    """What to do about a kernel or a function that the program brings along itself."""
    name = brief(culprit.name)
    if on_host:
        return (_FUNCTION.format(name),) if is_of_program(culprit.name) else ()
    is_own = culprit.op is None and culprit.file is None and not framework
    return (*(each.format(name) for each in _KERNEL), _DOUBLES) if is_own else ()
