"""Device runtimes: the names of their calls and copies, of CUDA, HIP and XPUs (Unified Runtime, Level Zero)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stepscope.model import EventKind, Trait
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import KindRule, NameTable
from stepscope.vocabulary.traits import CallTrait, KernelTrait

K = EventKind

# Named as in XSpace files.
HOST_CALLS: tuple[KindRule, ...] = (
    (r"(?:cu|hip|cuda)[A-Za-z]*Synchronize", K.SYNC, Trait.NONE),  # in StreamWaitEvent a stream waits, not the host
    (r"(?i:memcpy)(?i:HToD|H2D)", K.COPY_HOST_TO_DEVICE_CALL, Trait.NONE),
    (r"(?i:memcpy)(?i:HToH|H2H)", K.COPY_HOST_TO_HOST, Trait.NONE),
    (r"(?:cu|cuda|hip)[A-Z][A-Za-z]*(?:_v\d+|_ptsz)*$", K.RUNTIME_CALL, Trait.NONE),  # also without a correlation id
)
# Tasks of Ascend's streams, by name.
NPU_TASKS: tuple[KindRule, ...] = (
    (r"(?i:hcom_|hccl|(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)(?![a-z]))", K.COLLECTIVE, Trait.NONE),
    (r"(?i:memcpy_async|sdma)", K.COPY_OTHER, Trait.NONE),
)
IDLE_NPU_TASK = Pattern(
    r"(?i)(?:event|notify|capture|fusion|stream)_?(?:wait|record|reset)|write_?value|profil\w+_(?:en|dis)able|place_?holder"
    r"|maintenance"
)
"""Tasks in which a stream waits for another or marks a place: nothing is computed in them."""

MTIA_EVENTS: tuple[KindRule, ...] = (
    (r"event_(?:wait|record)$", K.OTHER, Trait.NONE),
    (r"dma_request$", K.COPY_OTHER, Trait.NONE),
)
"""Events of MTIA's streams that compute nothing: one waits for another or marks a place, or data moves."""

DEVICE_WORK: tuple[KindRule, ...] = (
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
# Named as in Kineto traces.
COPIES: tuple[KindRule, ...] = (
    (r".*(?:\b|MEMCPY)(?:HtoD|HtoA|HostToDevice|[HM]2D)\b", K.COPY_HOST_TO_DEVICE, Trait.NONE),
    (r".*(?:\b|MEMCPY)(?:DtoH|AtoH|DeviceToHost|D2[HM])\b", K.COPY_DEVICE_TO_HOST, Trait.NONE),
    (r".*(?:\b|MEMCPY)(?:[DA]to[DA]|DeviceToDevice|D2D)\b", K.COPY_DEVICE_TO_DEVICE, Trait.NONE),
    (r".*\bPtoP\b", K.COPY_PEER, Trait.NONE),
    (r".*\b(?:HtoH|HostToHost)\b", K.COPY_HOST_TO_HOST, Trait.NONE),
    (r"", K.COPY_OTHER, Trait.NONE),
)
RUNTIME_CALLS: tuple[KindRule, ...] = (
    (r"(?:AscendCL@)?aclopCompile", K.COMPILE, Trait.NONE),  # an operator, the first time that it is met in a shape
    (r"(?:cuda|cu|hip)(?:Device|Stream|Event|Ctx|Thread)Synchronize|ze\w+Synchronize|(?:ur|pi)\w+(?:Wait|Finish)$"
     r"|(?:AscendCL@)?aclrtSynchronize(?:Device|Stream|Event)",
     K.SYNC, Trait.NONE),
    (r"", K.RUNTIME_CALL, Trait.NONE),
)  # fmt: skip
WAITS: tuple[KindRule, ...] = (
    (r"(?:Stream|Context|Event) Sync", K.SYNC, Trait.NONE),  # a "Stream Wait Event" does not stop the host
    (r"", K.OTHER, Trait.NONE),
)

# "Memcpy HtoD (Pinned -> Device)", "kind_src:pinned kind_dst:device size:4096"
_MEMORY = Pattern(r".*(?:\(|kind_src:)(pinned|pageable)\b", re.IGNORECASE)
_PAGEABLE = ("(pageable", "kind_src:pageable")
# How CUDA is asked for pinned memory, and for pages of unified memory ahead of time.
PINNED_COPY = "cudaHostAlloc or cudaHostRegister, then cudaMemcpyAsync"
MOVES_PAGES = "cudaMemPrefetchAsync(data, bytes, device, stream)"
_TO_PAGEABLE = ("-> pageable", "kind_dst:pageable")


def mentions(name: str, words: Iterable[str]) -> bool:
    """True if a name contains one of some words, which are in lower case."""
    text = name.lower()
    return any(word in text for word in words)


def memory_of(text: str) -> str:
    """The kind of host memory in a copy's name or details; empty if unknown.

    >>> memory_of("Memcpy HtoD (Pageable -> Device)"), memory_of("kind_src:pinned kind_dst:device size:4096")
    ('pageable', 'pinned')
    """
    found = _MEMORY.match(text)
    return found[1].lower() if found else ""


NAMES: tuple[NameTable, ...] = (
    NameTable(
        rules=(
            (CallTrait.BLOCKING_COPY, r"(?:cuda|hip)Memcpy(?!\w*Async)\w*$|cuMemcpy(?!\w*Async)\w*$"),
            (CallTrait.LAUNCHES_GRAPH, r"(?:cuda|cu|hip)GraphLaunch"),
            (
                CallTrait.LAUNCHES_KERNEL,
                r"(?:cuda|cu|hip)\w*Launch(?:Cooperative)?Kernel|(?:ur|pi)Enqueue\w*KernelLaunch",
            ),
            (CallTrait.LOADS_KERNELS, r"(?:cu|hip)ModuleLoad(?:Data\w*|FatBinary)?$"),
            (CallTrait.CAPTURES_GRAPH, r"(?:cuda|cu|hip)Stream(?:Begin|End)Capture"),
            (CallTrait.BEGINS_CAPTURE, r"(?:cuda|cu|hip)StreamBeginCapture"),
            (CallTrait.AWAITS_ALL, r"(?:cuda|cu|hip)(?:Device|Ctx|Thread)Synchronize"),
            (CallTrait.RECORDS_EVENT, r"(?:cuda|cu|hip)EventRecord"),
            (CallTrait.STREAM_WAITS, r"(?:cuda|cu|hip)StreamWaitEvent"),
            (CallTrait.TAKES_MEMORY, r"(?:cuda|hip|cu)(?:Malloc|Free|(?:Host|Mem)(?:Alloc|Free))(?!\w*Async)\w*$"),
            (CallTrait.COPIES, lambda name: mentions(name, ("memcpy",))),
            (CallTrait.CLEARS, lambda name: mentions(name, ("memset",))),
            (CallTrait.MAY_BLOCK, r"(?i).*(?:memcpy|copy|synchronize|wait)"),
        )
    ),
    NameTable(
        rules=(
            (KernelTrait.FROM_PAGEABLE, lambda name: mentions(name, _PAGEABLE)),
            (KernelTrait.TO_PAGEABLE, lambda name: mentions(name, _TO_PAGEABLE)),
            (KernelTrait.MIGRATES, r"Unified memory "),
        )
    ),
)
