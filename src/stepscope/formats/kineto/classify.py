"""Decides what every event is, from its category and name.

This is the only place that knows the names that PyTorch and its libraries use.  The rules are tables; the first that
matches wins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

from stepscope.model import EventKind, Trait

K = EventKind


class Place(IntEnum):
    """What sort of line an event belongs on."""

    THREAD = 0
    STREAM = 1
    SCOPE = 2  # an annotation, projected onto a stream
    WAIT = 3  # waits and marks that a stream's tools draw beside it
    OVERHEAD = 4
    SPAN = 5  # the profiler's own span
    COUNTER = 6
    NOWHERE = 7  # not an event of its own


_Rule = tuple[str, EventKind, Trait]
_Rules = tuple[tuple[re.Pattern[str], EventKind, Trait], ...]

STEP_MARK = re.compile(r"ProfilerStep#(\d+)$")
MEMORY_NAME = "[memory]"
BACKWARD_PREFIX = "autograd::engine::evaluate_function: "


def _rules(*rules: _Rule) -> _Rules:
    return tuple((re.compile(pattern), kind, traits) for pattern, kind, traits in rules)


# The phases of torch.compile: each is recorded as a plain op, as the function that was timed, and as an annotation
# with its data.  Running what was compiled ("Torch-Compiled Region", "CompiledFxGraph") is no compilation.
_COMPILE = (
    r".* \(dynamo_timed\)$"
    r"|\S+_data: (?:.*, )?compile_id="
    r"|(?:dynamo|entire_(?:frame|backward)_compile|(?:inductor|backend)_compile|bytecode_tracing|compile_attempt_\d+"
    r"|compile_file|code_gen|build_guards|fx_codegen_and_compile|create_aot_dispatcher_function|aot_[a-z]\w+"
    r"|_recursive_\w+_passes|async_compile\.wait|GraphLowering\.\w+|compile_fx\S*|_compile\.\w+)$"
    r"|(?i:triton\W?(?:jit)?\W?compile)"
)
_COLLECTIVE_CALL = (
    r"(?:nccl|gloo|mpi|ucc|xccl|hccl|rccl):|_?c10d(?:_functional)?::|_dtensor::shard_dim_alltoall|record_param_comms$"
)
_CHECKPOINT = (
    r"(?i:.*\b(?:save|write|load|restore)[ _.:-]*(?:the )?(?:ckpt|checkpoint|model|state|snapshot|weights)"
    r"|.*\b(?:ckpt|checkpoint|model|state_dict|snapshot|weights)[ _.:-]*(?:sav|writ|load|restor)"
    r"|.*\btorch[.:]+(?:save|load)\b)"
)
_FRAMES = (
    r"Optimizer\.(?:step|zero_grad)#|(?:Distributed)?DataParallel\.forward$|FullyShardedDataParallel"
    r"|Torch-Compiled Region|TorchDynamo Cache Lookup|Pregraph bytecode|AOTDispatcher Runtime|## |\[pl\]"
)
_MARKS: tuple[_Rule, ...] = (
    (STEP_MARK.pattern, K.STEP_MARK, Trait.NONE),
    (r"enumerate\(DataLoader\)#", K.INPUT_WAIT, Trait.NONE),
    (r"enumerate\(DataPipe\)#", K.ITERATOR, Trait.NONE),
    (_COLLECTIVE_CALL, K.COLLECTIVE_CALL, Trait.NONE),
    (_COMPILE, K.COMPILE, Trait.COMPILES),
)
_OP_RULES = _rules(
    (re.escape(BACKWARD_PREFIX), K.BACKWARD, Trait.NONE),
    *_MARKS,
    (_FRAMES, K.ANNOTATION, Trait.NONE),
    (r"", K.OP, Trait.NONE),
)
_ANNOTATION_RULES = _rules(*_MARKS, (_CHECKPOINT, K.CHECKPOINT, Trait.NONE), (r"", K.ANNOTATION, Trait.NONE))
_PYTHON_RULES = _rules(
    (r"(?:.*/)?torch/serialization\.py\(\d+\): (?:save|load)$", K.CHECKPOINT, Trait.NONE),
    (r"(?:.*/)?torch/distributed/checkpoint/state_dict_\w+\.py\(\d+\): (?:async_)?(?:save|load)$",
     K.CHECKPOINT, Trait.NONE),
    (r"(?:.*/)?(?:torch/_dynamo/convert_frame\.py\(\d+\): _compile|torch/_inductor/compile_fx\.py\(\d+\): compile_fx\w*"
     r"|triton/compiler/compiler\.py\(\d+\): compile)$", K.PYTHON_CALL, Trait.COMPILES),
    (r"", K.PYTHON_CALL, Trait.NONE),
)  # fmt: skip
_KERNEL_RULES = _rules(
    (r"(?i:.*(?:nccl|rccl|msccl|oneccl|cross_device_reduce|multimem_\w*reduce|nvshmem"
     r"|(?:one|two)_?shot_?all_?reduce|all_?reduce_?(?:one|two)_?(?:shot|stage)|all_?reduce_?fusion))",
     K.COLLECTIVE, Trait.NONE),
    (r"", K.KERNEL, Trait.NONE),
)  # fmt: skip
_COPY_RULES = _rules(
    (r".*\b(?:HtoD|HtoA|HostToDevice|[HM]2D)\b", K.COPY_HOST_TO_DEVICE, Trait.NONE),
    (r".*\b(?:DtoH|AtoH|DeviceToHost|D2[HM])\b", K.COPY_DEVICE_TO_HOST, Trait.NONE),
    (r".*\b(?:[DA]to[DA]|DeviceToDevice|D2D)\b", K.COPY_DEVICE_TO_DEVICE, Trait.NONE),
    (r".*\bPtoP\b", K.COPY_PEER, Trait.NONE),
    (r".*\b(?:HtoH|HostToHost)\b", K.COPY_HOST_TO_HOST, Trait.NONE),
    (r"", K.COPY_OTHER, Trait.NONE),
)
_RUNTIME_RULES = _rules(
    (r"(?:cuda|cu|hip)(?:Device|Stream|Event|Ctx|Thread)Synchronize|ze\w+Synchronize|(?:ur|pi)\w+(?:Wait|Finish)$",
     K.SYNC, Trait.NONE),
    (r"", K.RUNTIME_CALL, Trait.NONE),
)  # fmt: skip
_WAIT_RULES = _rules(
    (r"(?:Stream|Context|Event) Sync", K.SYNC, Trait.NONE),  # a "Stream Wait Event" does not stop the host
    (r"", K.OTHER, Trait.NONE),
)
_OTHER_RULES = _rules(
    (re.escape(MEMORY_NAME), K.ALLOCATION, Trait.NONE),
    *_MARKS,
    (r"", K.OTHER, Trait.NONE),
)
_MEMSET_RULES = _rules((r"", K.MEMSET, Trait.NONE))
_SCOPE_RULES = _rules((r"", K.SCOPE, Trait.NONE))
_OVERHEAD_RULES = _rules((r"", K.OVERHEAD, Trait.NONE))
_NO_RULES = _rules((r"", K.OTHER, Trait.NONE))

# By category in lower case.  The short names are those of PyTorch 1.8 and 1.9.
_CATEGORIES: dict[str, tuple[Place, _Rules]] = {
    **dict.fromkeys(("cpu_op", "operator"), (Place.THREAD, _OP_RULES)),
    "user_annotation": (Place.THREAD, _ANNOTATION_RULES),
    **dict.fromkeys(("python_function", "python"), (Place.THREAD, _PYTHON_RULES)),
    "kernel": (Place.STREAM, _KERNEL_RULES),
    **dict.fromkeys(("gpu_memcpy", "memcpy"), (Place.STREAM, _COPY_RULES)),
    **dict.fromkeys(("gpu_memset", "memset"), (Place.STREAM, _MEMSET_RULES)),
    "gpu_user_annotation": (Place.SCOPE, _SCOPE_RULES),
    **dict.fromkeys(
        ("cuda_runtime", "cuda_driver", "runtime", "xpu_runtime", "xpu_driver", "mtia_runtime", "glow_runtime",
         "privateuse1_runtime", "privateuse1_driver"), (Place.THREAD, _RUNTIME_RULES)),
    **dict.fromkeys(("cuda_sync", "xpu_sync"), (Place.WAIT, _WAIT_RULES)),
    "cuda_event": (Place.WAIT, _NO_RULES),
    "overhead": (Place.OVERHEAD, _OVERHEAD_RULES),
    "trace": (Place.SPAN, _NO_RULES),
}  # fmt: skip
_ELSEWHERE = (Place.THREAD, _OTHER_RULES)

# They repeat the bounds of the profiler's span, the second of them often wrongly by a tenth of a second and more.
_WINDOW_MARKS = ("Iteration Start: ", "Record Window End")


EXPORTED = "stepscope"
"""A category of all events that Stepscope exported."""

# Kernel names of template libraries have some thousand letters; patterns take too long on a hostile megabyte.
_LONGEST_NAME = 16_384


def is_pytorch(category: str) -> bool:
    """True for a category that only PyTorch's profiler writes."""
    return category.lower() in ("cpu_op", "cpu_instant_event", "python_function", "gpu_user_annotation", "cuda_runtime")


def is_op(category: str, kind: int) -> bool:
    """True for what device work names as its op: everything that the dispatcher ran, but for a step's mark."""
    return category.lower() in ("cpu_op", "operator") and kind != K.STEP_MARK


def _kind_told(category: str) -> EventKind | None:
    """The kind that a trace which Stepscope exported names in its categories, such as `kernel,stepscope`."""
    kind, comma, rest = category.partition(",")
    return EventKind.__members__.get(kind.upper()) if comma and rest == EXPORTED else None


def classify(category: str, name: str) -> tuple[Place, EventKind, Trait]:
    """Where an event belongs, what it is, and its traits, as far as its category and name tell."""
    told = _kind_told(category)
    if told is not None:
        return Place.THREAD, told, Trait.NONE
    place, rules = _CATEGORIES.get(category.lower(), _ELSEWHERE)
    name = name[:_LONGEST_NAME]
    if rules is _OTHER_RULES and name.startswith(_WINDOW_MARKS):
        return Place.NOWHERE, K.OTHER, Trait.NONE
    for pattern, kind, traits in rules:
        if pattern.match(name):
            return place, kind, traits
    return place, K.OTHER, Trait.NONE


# -- precision ---------------------------------------------------------------------------------------------------------

# Spellings of 16-bit and narrower floating point in kernel names: types in words (also mangled, as in N3c104HalfE and
# DF16b), the mma shapes of half-precision GEMMs (h884, h16816), and the operand letters of Tensile (Cijk_..._BBS_) and
# of cuBLAS' nvjet.
_NARROW = re.compile(
    r"(?i:bf16|bfloat16|fp16|float16|fp8|float8|e4m3|e5m2|fp4|e2m1)|(?<![A-Za-z0-9])f16|DF16"
    r"|(?:c10|at)::Half\b|Half(?:E|$)|__half|(?<![A-Za-z])half2?(?:_t)?(?![A-Za-z_])"
    r"|hgemm|(?<![A-Za-z0-9])h(?:884|1688|16816)|HMMA|hmma"
    r"|^Cijk_[A-Za-z]+_[A-Za-z]+_(?:H|B|F8)|nvjet_(?:sm\d+_)?[htq]"
)
# Names that tell another type.
_WIDE = re.compile(r"float|double|tf32|fp?32|fp?64|(?<![a-z])[sdcz]gemm|scudnn|(?<![a-z0-9])s1688gemm|^Cijk_|nvjet_")
_NARROW_TYPES = ("c10::Half", "c10::BFloat16", "c10::Float8", "c10::Float4")
_WIDE_TYPES = ("float", "double")


def kernel_computes_16bit(name: str) -> bool | None:
    """Whether a kernel computes in 16 bits or fewer; None if its name does not tell."""
    name = name[:_LONGEST_NAME]
    if _NARROW.search(name):
        return True
    return False if _WIDE.search(name) else None


def inputs_are_16bit(types: Sequence[object]) -> bool:
    """Whether an op with inputs of these types computes in 16 bits or fewer: all its floating-point tensors do."""
    narrow = any(isinstance(name, str) and name.startswith(_NARROW_TYPES) for name in types)
    return narrow and not any(name in _WIDE_TYPES for name in types)
