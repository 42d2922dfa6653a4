"""Decides what every event is: from its name, from the line it stands on, and from the stats it carries.

This is the only place that knows XSpace event names.  The rules are tables; the first that matches wins.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stepscope.formats.spool.layout import WITHOUT_FRAMEWORK
from stepscope.kernels.wire import FLAG_AGGREGATE, FLAG_IF_NONZERO
from stepscope.model import (
    EventKind,
    Events,
    EventTypes,
    LineKind,
    PlaneKind,
    Stats,
    StatTag,
    Strings,
    Trait,
)
from stepscope.model.arrays import I32, I64, U8, Mask

K = EventKind

# Stats that say what an event is, as bits of the flags that decoding collects.  The second half of a pair tells
# whether a value of 0 counts.
(
    CORRELATION, KERNEL, MEMCPY, MEMSET, MEMORY, HLO_OP, ROOT, STEP_NUM, ASYNC, FUNCTION_CALL, COLLECTIVE, COUNTER,
    EAGER,
) = (1 << bit for bit in range(13))  # fmt: skip
FLAG_OF_STAT: dict[str, tuple[int, bool]] = {
    "correlation_id": (CORRELATION, True),
    "kernel_details": (KERNEL, True),
    "memcpy_details": (MEMCPY, True),
    "Memset_details": (MEMSET, True),
    "memset_details": (MEMSET, True),
    "memalloc_details": (MEMORY, True),
    "MemFree_details": (MEMORY, True),
    "MemoryResidency_details": (MEMORY, True),
    "hlo_op": (HLO_OP, True),
    "_r": (ROOT, True),
    "step_num": (STEP_NUM, True),
    "_a": (ASYNC, False),
    "tf_function_call": (FUNCTION_CALL, True),
    "all_reduce_unique_id": (COLLECTIVE, True),
    "counter_value": (COUNTER, True),
    "is_eager": (EAGER, False),
}

_Rule = tuple[str, EventKind, Trait]

_HOST_RULES: tuple[_Rule, ...] = (
    (r"\$", K.PYTHON_CALL, Trait.NONE),
    (r"ProfilerStep#\d+$|TraceContext$", K.STEP_MARK, Trait.NONE),
    (r"(?:train|test)[^/]*$", K.OTHER, Trait.MARKS_IF_ROOT),
    (r"(?i:IteratorGetNext)|MultiDeviceIteratorGetNext", K.INPUT_WAIT, Trait.NONE),
    (r"Iterator::.*::(?:TFRecord|TextLine|FixedLengthRecord|SSTable|RecordIO|ArrayRecord)(?:V\d+)?(?:\[\d+\])?$",
     K.ITERATOR, Trait.FILE_READ),
    (r"Iterator::|Iterator$", K.ITERATOR, Trait.NONE),
    (r"(?:Prefetch|ParallelInterleave|ParallelMap|ParallelFilter|MapAndBatch|ParseExample|ParallelBatch)"
     r"(?:Produce|Consume|InitializeInput)$", K.INPUT_HANDOVER, Trait.NONE),
    (r"InstantiatedCapturedFunction::Run", K.INPUT_CALLBACK, Trait.NONE),
    (r"(?:FunctionRun|SessionRun|RunGraph)$", K.FUNCTION_RUN, Trait.NONE),
    (r"PjitFunction\(", K.TRACED_FUNCTION, Trait.NONE),
    (r"ExecutorState::Process|ExecutorDoneCallback", K.EXECUTOR, Trait.NONE),
    (r"Eager(?:Kernel|Local)?Execute", K.EAGER_EXECUTE, Trait.NONE),
    (r"MemoryAllocation$", K.ALLOCATION, Trait.NONE),
    (r"MemoryDeallocation$", K.DEALLOCATION, Trait.NONE),
    (r"ThreadpoolListener::StartRegion$", K.REGION_BEGIN, Trait.NONE),
    (r"ThreadpoolListener::StopRegion$", K.REGION_END, Trait.NONE),
    (r"ThreadpoolListener::", K.THREADPOOL, Trait.NONE),
    (r"(?:cu|hip|cuda)[A-Za-z]*Synchronize", K.SYNC, Trait.NONE),  # in StreamWaitEvent a stream waits, not the host
    (r"(?:Batched)?DevicePut$|H2D Dispatch$", K.COPY_HOST_TO_DEVICE_CALL, Trait.NONE),
    (r"InfeedEnqueue", K.COPY_HOST_TO_DEVICE_CALL, Trait.ENQUEUE),
    (r"(?i:memcpy)(?i:HToD|H2D)", K.COPY_HOST_TO_DEVICE_CALL, Trait.NONE),
    (r"(?i:memcpy)(?i:HToH|H2H)", K.COPY_HOST_TO_HOST, Trait.NONE),
    (r"tf\.function-graph_building|lower_sharding_computation|(?:XlaCompile|XlaCompileImpl|CompileToLocalExecutable|PjRt\w*::Compile\w*|\w*Compiler::\w*|HloPass\w*"
     r"|backend_compile|TfrtCpuClient::Compile\w*|CpuCompiler\w*|LlvmIrCompiler\w*|IrCompiler\w*|MlirToHlo\w*)",
     K.COMPILE, Trait.COMPILES),
    (r"(?:SaveV2|MergeV2Checkpoints|RestoreV2|ShardedFilename)(?::|$)|.*:(?:SaveV2|MergeV2Checkpoints|RestoreV2)$",
     K.CHECKPOINT, Trait.NONE),
    (r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*:[A-Z_]\w*$", K.OP, Trait.NONE),  # TensorFlow: name:Type
    (r"[^:]*:[a-z_][a-z0-9_]*(?:\[.*\])?$", K.OP, Trait.NONE),  # JAX: scope:primitive
    (r"[^:]+:$", K.OP, Trait.NONE),
)  # fmt: skip

_COLLECTIVES = (
    r"all[-_]?reduce|all[-_]?gather|reduce[-_]?scatter|all[-_]?to[-_]?all|collective[-_]?(?:permute|broadcast)|"
    r"ragged-all-to-all"
)
_GPU_RULES: tuple[_Rule, ...] = (
    (r"(?i:nccl|rccl)", K.COLLECTIVE, Trait.NONE),
    (r"(?i:memcpy[ ]?(?:HtoD|H2D))|CopyHostToDevice", K.COPY_HOST_TO_DEVICE, Trait.NONE),
    (r"(?i:memcpy[ ]?(?:DtoH|D2H))|CopyDeviceToHost", K.COPY_DEVICE_TO_HOST, Trait.NONE),
    (r"(?i:memcpy[ ]?(?:DtoD|D2D))|CopyDeviceToDevice", K.COPY_DEVICE_TO_DEVICE, Trait.NONE),
    (r"(?i:memcpy[ ]?(?:PtoP|P2P))", K.COPY_PEER, Trait.NONE),
    (r"(?i:memcpy[ ]?(?:HtoH|H2H))", K.COPY_HOST_TO_HOST, Trait.NONE),
    (r"(?i:memcpy)", K.COPY_OTHER, Trait.NONE),
    (r"(?i:memset)", K.MEMSET, Trait.NONE),
    (r"CudaGraphExec:", K.GRAPH_LAUNCH, Trait.NONE),
    (r"Memory |UM_", K.DEVICE_MEMORY, Trait.NONE),
    (r"NVTX:", K.SCOPE, Trait.NONE),
)
_TPU_RULES: tuple[_Rule, ...] = (
    (rf"%?(?:{_COLLECTIVES})", K.COLLECTIVE, Trait.NONE),
    (r"%?infeed", K.INFEED, Trait.NONE),
    (r"%?outfeed", K.OUTFEED, Trait.NONE),
    # Space 5 is the host's memory: of a copy the first shape is what it makes.
    (r"%?copy-(?:start|done)\S* = \(?\S*S\(5\)", K.COPY_DEVICE_TO_HOST, Trait.NONE),
    (r"%?copy-(?:start|done)\S* = .*S\(5\)", K.COPY_HOST_TO_DEVICE, Trait.NONE),
)
_RULES_OF_PLANE: dict[PlaneKind, tuple[_Rule, ...]] = {
    PlaneKind.HOST: _HOST_RULES,
    PlaneKind.GPU: _GPU_RULES,
    PlaneKind.TPU: _TPU_RULES,
    PlaneKind.SPARSE_CORE: _TPU_RULES,
}
_KINDS = max(EventKind) + 1
_KIND_OF_LINE = {
    LineKind.STEPS: K.DEVICE_STEP,
    LineKind.MODULES: K.MODULE,
    LineKind.DERIVED: K.SCOPE,
    LineKind.COUNTERS: K.COUNTER,
    LineKind.OVERHEAD: K.OVERHEAD,
}

# What marks 16-bit (or narrower) floating point in a kernel's name or in the shapes of its op: the spellings of CUDA,
# cuDNN, CUTLASS and Eigen, then the operand letters of Tensile (H half, B bfloat16) and of XLA shapes.
_16BIT = re.compile(
    rb"half|fp16|bf16|bfloat16|float16|fp8|f8e[45]m[23]|[hi](?:884|1688|16816)(?!\d)|hmma|hgemm|_f16|"
    rb"_[HB]{2}[SHB]_|(?:^|[(,;])f16\["
)

# The second of JAX's is also a part of names of PyTorch's own Python, such as `torch/_jit_internal.py(104)`.
_JAX_CALL = re.compile(rb"PjitFunction\(")
_JAX_NAME = re.compile(rb"\$profiler\.py|jit_")
_TORCH_NAME = re.compile(rb"aten::|ProfilerStep#")


def _compiled(rules: Sequence[_Rule]) -> re.Pattern[bytes]:
    # Each rule is one group, so `lastindex` of a match is the number of the rule.
    return re.compile("|".join(f"({pattern})" for pattern, _, _ in rules).encode())


def classify_types(strings: Strings, names: I32, planes: I32, plane_kinds: U8) -> tuple[U8, U8]:
    """Kind and traits that an event type's name alone gives.

    Args:
        names, planes: int32 of shape (types,): string row and plane row of each type.
        plane_kinds: uint8 of shape (planes,).

    Returns:
        Two uint8 of shape (types,).
    """
    kinds = np.zeros(len(names), np.uint8)
    traits = np.zeros(len(names), np.uint8)
    blob = strings.blob.data
    begins, ends = strings.offsets[names].tolist(), strings.offsets[names + 1].tolist()
    for plane_kind, rules in _RULES_OF_PLANE.items():
        match = _compiled(rules).match
        for row in np.flatnonzero(plane_kinds[planes] == plane_kind).tolist():
            found = match(blob, begins[row], ends[row])
            if found and found.lastindex:
                _, kinds[row], traits[row] = rules[found.lastindex - 1]
    return kinds, traits


def flags_of_strings(strings: Strings) -> NDArray[np.uint32]:
    """Flags that a stat named by each string gives its event: uint32 of shape (strings,)."""
    flags = np.zeros(len(strings), np.uint32)
    for name, (bit, zero_counts) in FLAG_OF_STAT.items():
        row = strings.find(name)
        if row > 0:
            flags[row] = bit if zero_counts else bit | FLAG_IF_NONZERO
    return flags


_BLOCK = 1 << 18  # events at a time: the file's bytes are still in memory, and there is little room beside them


def classify_events(
    event_type: I32,
    event_line: I32,
    flags: NDArray[np.uint16],
    type_kind: U8,
    type_traits: U8,
    line_kind: U8,
) -> tuple[U8, U8]:
    """Kind and traits of every event: its type's, corrected by its line and its stats.

    Args:
        flags: what `FLAG_OF_STAT` collected for each event.

    Returns:
        Two uint8 of shape (events,).
    """
    kinds, traits = np.empty(len(event_type), np.uint8), np.empty(len(event_type), np.uint8)
    for begin in range(0, len(event_type), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        kinds[rows], traits[rows] = _classify_block(
            event_type[rows], event_line[rows], flags[rows], type_kind, type_traits, line_kind
        )
    return kinds, traits


def _classify_block(
    event_type: I32,
    event_line: I32,
    flags: NDArray[np.uint16],
    type_kind: U8,
    type_traits: U8,
    line_kind: U8,
) -> tuple[U8, U8]:
    """Of some events; these share few combinations of the three, so the rules are applied to the combinations."""
    known_flags = np.flatnonzero(np.bincount(flags))
    rank = np.zeros(1 << 16, np.int32)
    rank[known_flags] = np.arange(len(known_flags))
    shape = (len(known_flags), len(LineKind), 2, _KINDS)
    marks = (type_traits & np.uint8(Trait.MARKS_IF_ROOT)) != 0
    cell = (marks * np.int32(_KINDS) + type_kind).take(event_type)
    cell += (line_kind * np.int32(2 * _KINDS)).take(event_line)
    cell += (rank * np.int32(len(LineKind) * 2 * _KINDS)).take(flags)

    cells = np.flatnonzero(np.bincount(cell))
    flag, line, mark, kind = np.unravel_index(cells, shape)
    kinds, traits = np.zeros(math.prod(shape), np.uint8), np.zeros(math.prod(shape), np.uint8)
    kinds[cells], traits[cells] = _by_line_and_stats(
        kind.astype(np.uint8), mark.astype(np.bool_), line, known_flags[flag].astype(np.uint16)
    )
    own = type_traits & np.uint8(0xFF - Trait.MARKS_IF_ROOT)
    return kinds.take(cell), own.take(event_type) | traits.take(cell)


def _by_line_and_stats(kind: U8, marks_if_root: Mask, place: I64, flags: NDArray[np.uint16]) -> tuple[U8, U8]:
    """Kind and traits of combinations: the kind that the name gives, whether it marks a step, line kind, flags."""

    def has(bit: int) -> Mask:
        wanted: Mask = (flags & np.uint16(bit)) != 0
        return wanted

    nameless = kind == K.OTHER
    host = place == LineKind.THREAD
    kind[host & nameless & has(HLO_OP)] = K.OP
    kind[host & nameless & has(FUNCTION_CALL)] = K.TRACED_FUNCTION
    kind[host & nameless & has(CORRELATION)] = K.RUNTIME_CALL
    kind[host & has(STEP_NUM)] = K.STEP_MARK
    kind[host & (kind == K.OTHER) & has(ROOT) & marks_if_root] = K.STEP_MARK

    stream = (place == LineKind.STREAM) & nameless
    kind[stream & (has(CORRELATION) | has(KERNEL) | has(HLO_OP))] = K.KERNEL
    kind[stream & has(MEMCPY)] = K.COPY_OTHER
    kind[stream & has(MEMSET)] = K.MEMSET
    kind[stream & has(MEMORY)] = K.DEVICE_MEMORY

    core = place == LineKind.DEVICE_OPS
    kind[core & nameless] = K.DEVICE_OP
    kind[core & has(COLLECTIVE)] = K.COLLECTIVE

    for line, fixed in _KIND_OF_LINE.items():
        kind[place == line] = fixed
    kind[has(COUNTER)] = K.COUNTER
    kind[has(FLAG_AGGREGATE)] = K.AGGREGATE

    traits = np.zeros(len(kind), np.uint8)
    for bit, trait in ((ROOT, Trait.EXPLICIT_ROOT), (ASYNC, Trait.ASYNC), (EAGER, Trait.EAGER)):
        traits[has(bit)] |= np.uint8(trait)
    return kind, traits


def put_16bit(strings: Strings, events: Events, types: EventTypes, stats: Stats) -> None:
    """Marks device work that computes in 16 bits: by the shape stat if the event has one, else by its name.

    This is the rule of the reference with its gap closed: bf16 and fp8 count as 16-bit or narrower, too.
    """
    computes = np.zeros(256, np.bool_)
    computes[[K.KERNEL, K.DEVICE_OP]] = True
    rows = np.flatnonzero(computes.take(events.kind))
    if not len(rows):
        return
    text = types.name.take(events.type.take(rows))
    owners, shapes = _texts_named(strings, stats, "shape")
    if len(owners):
        shape = np.zeros(len(events), np.int32)
        shape[owners] = shapes
        text = np.where(shape[rows] > 0, shape[rows], text)
    narrow = np.zeros(len(strings), np.bool_)
    for row in np.flatnonzero(np.bincount(text)).tolist():
        narrow[row] = _16BIT.search(strings.raw(row)) is not None
    events.traits[rows[narrow.take(text)]] |= np.uint8(Trait.COMPUTES_16BIT)


def put_compiles(strings: Strings, events: Events, stats: Stats) -> None:
    """Marks the calls of traced functions that were traced anew."""
    owners, modes = _texts_named(strings, stats, "tf_function_call")
    traced = [strings.find("traced-xla"), strings.find("traced-nonXla")]
    events.traits[owners[np.isin(modes, traced)]] |= np.uint8(Trait.COMPILES)


def _texts_named(strings: Strings, stats: Stats, name: str) -> tuple[I64, I64]:
    """Owners that have a text under this name, and the text's row."""
    wanted = strings.find(name)
    rows = np.flatnonzero(stats.name == wanted) if wanted > 0 else np.empty(0, np.int64)
    rows = rows[stats.tag[rows] == StatTag.STRING]
    return np.searchsorted(stats.offsets, rows, side="right") - 1, stats.value[rows]


def framework(strings: Strings) -> str:
    """Which framework wrote the file, told by names that only it writes; `python` where Stepscope recorded a program
    that uses none; empty if nothing tells."""
    if strings.find("jax_version") > 0 or strings.find("jaxlib_version") > 0:
        return "jax"
    if any(strings.find(name) > 0 for name in ("FunctionRun", "EagerExecute", "ExecutorState::Process")):
        return "tensorflow"
    blob = strings.blob.data
    for name, pattern in (("jax", _JAX_CALL), ("pytorch", _TORCH_NAME), ("jax", _JAX_NAME)):
        if pattern.search(blob):
            return name
    return "python" if strings.find(WITHOUT_FRAMEWORK) > 0 else ""
