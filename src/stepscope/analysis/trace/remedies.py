"""How to record what a capture lacks, in the words of whoever recorded it: one table, and who that was.

A row has a remedy for each recorder; one that has none of its own takes its framework's, and a file of an unknown maker
the general one, which names no option of any profiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from stepscope.analysis.trace.columns import is_any_kind
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import distinct
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.torch import backend_of
from stepscope.vocabulary.traits import OpTrait

Remedies = Mapping[str, str]

CAPTURE_PLANE = "/stepscope:capture"
"""What a capture by Stepscope writes about itself."""

_OPS = (EventKind.OP, EventKind.BACKWARD)
_PYTORCH = frozenset({"mps", "npu", "xpu", "hpu"})  # backends that PyTorch's own profiler records in part only
_STEPSCOPE = "stepscope"  # recorded PyTorch, with options of its own
_OWN = frozenset({"tensorflow", "jax", "python", _STEPSCOPE})  # Stepscope's options, equal to JAX's, record these
_AGAIN = "record the program with `stepscope run SCRIPT`, or with its framework's own profiler"
_ELSEWHERE = "record the program with its framework's own profiler"
_CUPTI = "while the device works; on NVIDIA devices check that CUPTI can be found and used"

HOST_ACTIVITY: Remedies = {
    "pytorch": "record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ...])",
    "nsight": "record calls, ranges and samples of the host: nsys profile --trace=cuda,nvtx,osrt --sample=process-tree",
    "own": "record with ProfilerOptions(host_tracer_level=2)",
    "": f"{_AGAIN}: this file shows nothing of the host",
}
DEVICE_ACTIVITY: Remedies = {
    "pytorch": f"record with torch.profiler.profile(activities=[..., ProfilerActivity.CUDA]), {_CUPTI}",
    "mps": "PyTorch's profiler records no work of Apple's GPUs: put torch.mps.profiler.start() and stop() around some"
    " steps, and look at its signposts in Instruments (Metal System Trace)",
    "npu": "record with torch_npu.profiler.profile(activities=[..., torch_npu.profiler.ProfilerActivity.NPU])",
    "xpu": "record with torch.profiler.profile(activities=[..., ProfilerActivity.XPU])",
    "hpu": "record with torch.profiler.profile(activities=[..., ProfilerActivity.HPU])",
    "nsight": "record with nsys profile --trace=cuda,nvtx, while the device works",
    "own": f"record with ProfilerOptions(device_tracer_level=1) {_CUPTI}",
    "": f"{_AGAIN}: this file shows nothing of a device",
}
_PYTHON = (
    "record with `stepscope run --python-tracer-level 1` or ProfilerOptions(python_tracer_level=1);"
    " TensorFlow's own option records no Python"
)
_RANGES = "name its parts by ranges of NVTX (nvtx.annotate, torch.cuda.nvtx.range), and record with nsys --trace=nvtx"
PYTHON_CALLS: Remedies = {
    "tensorflow": _PYTHON,  # 2.21; only TensorFlow's profiler server records them
    "pytorch": "record with torch.profiler.profile(with_stack=True)",
    "nsight": _RANGES,
    "own": "record with ProfilerOptions(python_tracer_level=1)",
    "": _AGAIN,
}
ALLOCATIONS: Remedies = {
    # On a CPU without oneDNN by default (no AVX512 VNNI), TensorFlow takes an allocator that records nothing.
    "tensorflow": "record with host_tracer_level=2 or more; for the CPU's memory also set "
    "TF_CPU_ALLOCATOR_USE_BFC=true before TensorFlow starts",
    "jax": "on GPUs and TPUs record with host_tracer_level=2 or more; JAX records none on CPUs",
    "pytorch": "record with torch.profiler.profile(profile_memory=True)",
    _STEPSCOPE: "record with torch.profiler.profile(profile_memory=True), which can be opened here",
    "": _ELSEWHERE,
}
MODULES: Remedies = {
    "tensorflow": "TensorFlow records none; op names show their layers, see `stepscope op-stats`",
    "jax": "JAX records none; op names show where in the program they come from, see `stepscope op-stats`",
    "pytorch": "record with torch.profiler.profile(with_stack=True)",
    "nsight": _RANGES,
    _STEPSCOPE: "record with ProfilerOptions(python_tracer_level=1)",
    "": _ELSEWHERE,
}
SHAPES: Remedies = {
    "tensorflow": "TensorFlow records none",
    "jax": "JAX records none",
    "pytorch": "record with torch.profiler.profile(record_shapes=True)",
    "nsight": "Nsight Systems records none",
    _STEPSCOPE: "record with ProfilerOptions(host_tracer_level=2)",
    "": _ELSEWHERE,
}
CALL_SITES: Remedies = {
    "tensorflow": _PYTHON,
    "pytorch": "record with torch.profiler.profile(with_stack=True) to see lines",
    "nsight": _RANGES,
    "own": "record with ProfilerOptions(python_tracer_level=1) to see lines",
    "": _AGAIN,
}
STEP_MARKS: Remedies = {
    "pytorch": "call `prof.step()` of torch.profiler after each training step or request, and record five to ten of"
    " them",
    "nsight": "name each training step or request by a range of NVTX, as `with nvtx.annotate(f'step {i}'):`, and record"
    " five to ten of them",
    "": "put `with stepscope.step(i):` around what repeats, a training step or a request, and record five to ten of"
    " them",
    "chrome": "name each training step or request in the trace, as `step 1`, and record five to ten of them",
}
LATER: Remedies = {
    "pytorch": "run a few steps before the capture starts: start() after them, or schedule(skip_first=5, active=5)",
    "tensorflow": "run a few steps before the capture starts: start() after them, or profile_batch=(10, 15)",
    "nsight": "run a few steps before the recording starts: nsys profile --delay SECONDS, or --capture-range with a"
    " range around later steps",
    "own": "run a few steps before the capture starts: start() after them",
    "": "run a few steps before the recording starts",
}
SEE_DEVICE = (
    "see whether another process uses the device (nvidia-smi, rocm-smi); record longer before the first step, so that"
    " what was queued earlier is done"
)
TABLES = (
    HOST_ACTIVITY, DEVICE_ACTIVITY, PYTHON_CALLS, ALLOCATIONS, MODULES, SHAPES, CALL_SITES, STEP_MARKS, LATER,
)  # fmt: skip


def recorder_of(trace: HostTrace) -> str:
    """Who recorded a trace, as a key of the tables: another tool than the framework's profiler, else the backend of
    PyTorch that its profiler treats in its own way, else Stepscope if it recorded PyTorch, else the framework."""
    if trace.recorder or trace.framework != "pytorch":
        return trace.recorder or trace.framework
    ops = distinct(trace.events.type[np.flatnonzero(is_any_kind(trace.events.kind, _OPS))]).astype(np.int64)
    names = type_names(trace, ops[has_trait(trace, ops, OpTrait.OF_DEVICE_LIBRARY)])
    return next((found for name in names if (found := backend_of(name)) in _PYTORCH), "") or (
        _STEPSCOPE if CAPTURE_PLANE in map(trace.plane_name, range(len(trace.planes))) else "pytorch"
    )


def first_recorder(recorders: Iterable[str]) -> str:
    """That of a session: the first that a host knows, else empty."""
    return next(filter(None, recorders), "")


def remedy(how: Remedies, recorder: str) -> str:
    """The remedy for a recorder, else that of its family, else the general one."""
    family = "pytorch" if recorder in _PYTORCH else "own" if recorder in _OWN else ""
    return how.get(recorder) or how.get(family) or how[""]
