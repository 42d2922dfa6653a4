"""How to record what a capture lacks, using the options of the profiler that wrote it."""

from __future__ import annotations

from collections.abc import Mapping

_CUPTI = "while the device works; on NVIDIA devices check that CUPTI can be found and used"

# A PyTorch profile was written by torch.profiler or by Stepscope.
HOST_ACTIVITY: Mapping[str, str] = {
    "pytorch": "record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ...]), or with "
    "ProfilerOptions(host_tracer_level=2)",
    "": "record with ProfilerOptions(host_tracer_level=2)",
}
DEVICE_ACTIVITY: Mapping[str, str] = {
    "pytorch": "record with torch.profiler.profile(activities=[..., ProfilerActivity.CUDA]), or with "
    f"ProfilerOptions(device_tracer_level=1), {_CUPTI}",
    "": f"record with ProfilerOptions(device_tracer_level=1) {_CUPTI}",
}
_OURS = (
    "record with `stepscope run --python-tracer-level 1` or ProfilerOptions(python_tracer_level=1);"
    " TensorFlow's own option records no Python"
)
PYTHON_CALLS: Mapping[str, str] = {
    "tensorflow": _OURS,  # 2.21; only TensorFlow's profiler server records them
    "pytorch": "record with torch.profiler.profile(with_stack=True), or with ProfilerOptions(python_tracer_level=1)",
    "": "record with ProfilerOptions(python_tracer_level=1)",
}
ALLOCATIONS: Mapping[str, str] = {
    # On a CPU without oneDNN by default (no AVX512 VNNI), TensorFlow takes an allocator that records nothing.
    "tensorflow": "record with host_tracer_level=2 or more; for the CPU's memory also set "
    "TF_CPU_ALLOCATOR_USE_BFC=true before TensorFlow starts",
    "jax": "on GPUs and TPUs record with host_tracer_level=2 or more; JAX records none on CPUs",
    "pytorch": "record with torch.profiler.profile(profile_memory=True)",
    "": "TensorFlow and JAX record them with host_tracer_level=2 or more, PyTorch with profile_memory=True",
}
MODULES: Mapping[str, str] = {
    "tensorflow": "TensorFlow records none; op names show their layers, see `stepscope op-stats`",
    "jax": "JAX records none; op names show where in the program they come from, see `stepscope op-stats`",
    "": "record with torch.profiler.profile(with_stack=True)",
}
SHAPES: Mapping[str, str] = {
    "tensorflow": "TensorFlow records none",
    "jax": "JAX records none",
    "": "record with torch.profiler.profile(record_shapes=True)",
}
CALL_SITES: Mapping[str, str] = {
    "tensorflow": _OURS,
    "jax": "record with ProfilerOptions(python_tracer_level=1) to see lines",
    "": "record with torch.profiler.profile(with_stack=True) to see lines",
}


SEE_DEVICE = (
    "see whether another process uses the device (nvidia-smi, rocm-smi); record longer before the first step, so that"
    " what was queued earlier is done"
)


def remedy(how: Mapping[str, str], framework: str) -> str:
    """The remedy for a framework, or the general one if the framework has none of its own."""
    return how.get(framework, how[""])
