"""Communication libraries (NCCL, RCCL and others), and PyTorch's layer above them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from stepscope.model import EventKind, Trait
from stepscope.vocabulary.kernel_names import brief
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import KindRule

K = EventKind

HOST_CALLS: tuple[KindRule, ...] = (
    (
        r"(?:nccl|gloo|mpi|ucc|xccl|hccl|rccl):|_?c10d(?:_functional)?::|_dtensor::shard_dim_alltoall"
        r"|record_param_comms$"
        # ops that servers bring along, such as vLLM's _C::shm_allreduce and _C_custom_ar::all_reduce
        r"|(?!aten::)\w+::(?:\w+_)?(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)(?:_\w+)?$",
        K.COLLECTIVE_CALL,
        Trait.NONE,
    ),
)
# KERNELS are named as in Kineto traces, STREAM_WORK as in XSpace files.
KERNELS: tuple[KindRule, ...] = (
    (r"(?i:.*(?:nccl|rccl|msccl|oneccl|cross_device_reduce|multimem_\w*reduce|nvshmem"
     r"|(?:one|two)_?shot_?all_?reduce|all_?reduce_?(?:one|two)_?(?:shot|stage)|all_?reduce_?fusion"
     r"|quick_?reduce|all_?reduce_prototype"
     r"|ep::int(?:er|ra)node))",  # DeepEP, which sends tokens to their experts and back
     K.COLLECTIVE, Trait.NONE),
)  # fmt: skip
STREAM_WORK: tuple[KindRule, ...] = ((r"(?i:nccl|rccl)", K.COLLECTIVE, Trait.NONE),)

_LIBRARY_CALL = Pattern(r"\w+:(?!:)")
_ALGORITHM = Pattern(
    r"(?:^|_)(TREE|RING|NVLS_TREE|NVLS|COLLNET_DIRECT|COLLNET_CHAIN|COLLNET|PAT)_(LL128|LL|SIMPLE)(?:\W|_|$)"
)
_NOT_A_LETTER = Pattern(r"[^a-z]")
_OPERATIONS = tuple(
    (name, Pattern(pattern))
    for name, pattern in (
        ("all_reduce", "allreduce"), ("all_gather", "allgather"), ("reduce_scatter", "reducescatter"),
        ("all_to_all", "alltoall|epint(?:er|ra)node"), ("broadcast", "broadcast"), ("barrier", "barrier"),
        ("gather", "gather"),
        ("send_recv", "send|recv|collectivepermute|ppermute"), ("scatter", "scatter"), ("reduce", "reduce"),
    )
)  # fmt: skip
OPERATIONS = frozenset(name for name, _ in _OPERATIONS)
PIPELINE_OPERATION = "send_recv"
DIRECTIONS = {"send": 1, "isend": 1, "recv": -1, "irecv": -1, "recvAnysource": -1}  # as PyTorch states collectives
PIPELINE = "pipeline"
_PARALLELISM = tuple(
    (kind, Pattern(pattern))
    for kind, pattern in (
        (PIPELINE, r"pipeline|(?:^|_)pp(?:_|$)"),
        ("expert", r"expert|moe|(?:^|_)ep(?:_|$)"),
        ("context", r"context|sequence|(?:^|_)[cs]p(?:_|$)"),
        ("tensor", r"tensor|model_parallel|(?:^|_)[tm]p(?:_|$)"),
        ("data", r"data|replicate|shard|(?:^|_)(?:dp|ddp|fsdp)(?:_|$)"),
    )
)
_BYTES_OF_TYPE = tuple(
    (size, Pattern(pattern))
    for size, pattern in (
        (1, r"float8|float4|bool|byte|char|int8|e4m3|e5m2"), (2, r"half|bfloat16|bf16|float16|short|int16"),
        (8, r"double|float64|long|int64"), (4, r"float|int"),
    )
)  # fmt: skip


def is_library_call(name: str) -> bool:
    """True for a library's own record: `gloo:all_reduce` is the operation, `c10d::allreduce_` requests it."""
    return _LIBRARY_CALL.match(name) is not None


@lru_cache(maxsize=4096)
def operation_of(name: str) -> str:
    """The operation of a kernel or a call.

    >>> operation_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    'all_reduce'
    >>> operation_of("nccl:_all_gather_base")
    'all_gather'
    >>> operation_of("void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(__nv_bfloat16*, float*)")
    'all_to_all'
    """
    letters = _NOT_A_LETTER.sub("", name.lower())
    return next((operation for operation, pattern in _OPERATIONS if pattern.search(letters)), brief(name))


@lru_cache(maxsize=4096)
def algorithm_of(name: str) -> str:
    """The algorithm and protocol in a kernel's name; empty if it has none.

    >>> algorithm_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    'ring, LL'
    >>> algorithm_of("ncclKernel_AllReduce_TREE_LL128_Sum_half(ncclWorkElem)")
    'tree, LL128'
    """
    found = _ALGORITHM.search(name)
    if found is None:
        return ""
    return f"{found[1].lower().replace('_', ' ')}, {found[2] if found[2] != 'SIMPLE' else 'simple'}"


@lru_cache(maxsize=256)
def bytes_of_type(name: str) -> int:
    """Bytes per element of a type; 0 if the type is unknown."""
    return next((size for size, pattern in _BYTES_OF_TYPE if pattern.search(name.lower())), 0)


def parallelism_of(description: str, operations: Sequence[str]) -> str | None:
    """What a process group is for: data, tensor, pipeline, expert or context; None if that is not known.

    Args:
        description: what the program calls the group; empty if unknown.
        operations: what runs in it.

    >>> parallelism_of("TENSOR_MODEL_PARALLEL_GROUP", ["all_reduce"]), parallelism_of("mesh_dp", ["all_reduce"])
    ('tensor', 'data')
    >>> parallelism_of("default_pg", ["send_recv"])
    'pipeline'
    """
    lower = description.lower()
    stated = next((kind for kind, pattern in _PARALLELISM if pattern.search(lower)), None)
    return stated or (PIPELINE if {*operations} == {PIPELINE_OPERATION} else None)
