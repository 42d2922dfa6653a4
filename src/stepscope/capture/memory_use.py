"""What fills the memory: a snapshot at out-of-memory, and how much of each kind is in use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from stepscope.capture.frameworks import find_cuda, has_jax_backend
from stepscope.capture.tracers.base import Artifact

_HISTORY = 20_000  # allocations that PyTorch keeps


def uses_cuda() -> bool:
    """Whether PyTorch has computed on a GPU."""
    return find_cuda() is not None


def keep_history() -> None:
    """Lets PyTorch remember its last allocations on GPUs, with their Python stacks, for the snapshot."""
    record = getattr(getattr(find_cuda(), "memory", None), "_record_memory_history", None)
    if record is not None:
        record(max_entries=_HISTORY, stacks="python")


def listen_to_cuda(listener: Callable[[], object]) -> bool:
    """Calls a function when PyTorch's allocator has no more memory on a GPU, before the exception is raised.

    Returns:
        False if this PyTorch does not offer that.  The listener cannot be removed.
    """
    native: Any = sys.modules.get("torch._C")
    attach = getattr(native, "_cuda_attach_out_of_memory_observer", None)
    if attach is None:
        return False

    def observe(device: int, requested: int, device_total: int, device_free: int) -> None:
        listener()

    attach(observe)
    return True


def device_snapshots(folder: Path) -> tuple[Artifact, ...]:
    """The frameworks' own snapshots of device memory, as files of a session."""
    artifacts: list[Artifact] = []
    for make in (_snapshot_torch, _snapshot_jax):
        with suppress(Exception):  # it may itself need memory, or belong to another release
            artifacts += make(folder)
    return tuple(artifacts)


def _snapshot_torch(folder: Path) -> list[Artifact]:
    cuda = find_cuda()
    if cuda is None:
        return []
    path = folder / "memory.pickle"
    cuda.memory._dump_snapshot(str(path))
    return [Artifact("pickle", path)]


def _snapshot_jax(folder: Path) -> list[Artifact]:
    if not has_jax_backend():
        return []
    path = folder / "memory.prof"
    sys.modules["jax"].profiler.save_device_memory_profile(str(path))
    return [Artifact("memory.prof", path)]


def memory_in_use() -> dict[str, float]:
    """How many bytes of each kind are in use, by the kernel's and the frameworks' own counts.

    `python_blocks` counts the blocks that Python's allocator has handed out, not bytes.
    """
    found: dict[str, float] = {"python_blocks": float(sys.getallocatedblocks())}
    for read in (_read_process, _read_torch, _read_jax):
        with suppress(Exception):
            found |= read()
    return found


_KINDS = {"VmRSS": "resident", "RssAnon": "anonymous", "RssFile": "file_mapped", "RssShmem": "shared"}


def _read_process() -> dict[str, float]:
    found: dict[str, float] = {}
    with Path("/proc/self/status").open(encoding="ascii", errors="replace") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name in _KINDS:
                found[f"{_KINDS[name]}_bytes"] = float(rest.split()[0]) * 1024
    return found


def _read_torch() -> dict[str, float]:
    cuda = find_cuda()
    if cuda is None:
        return {}
    devices = range(cuda.device_count())
    return {
        "device_allocated_bytes": float(sum(cuda.memory_allocated(index) for index in devices)),
        "device_reserved_bytes": float(sum(cuda.memory_reserved(index) for index in devices)),
    }


def _read_jax() -> dict[str, float]:
    if not has_jax_backend():
        return {}
    stats = [device.memory_stats() for device in sys.modules["jax"].local_devices()]
    known = [each["bytes_in_use"] for each in stats if each and "bytes_in_use" in each]
    return {"device_allocated_bytes": float(sum(known))} if known else {}


def describe_use(used: dict[str, float]) -> str:
    """The kinds with the most bytes, for a sentence."""
    kinds = sorted(((value, name) for name, value in used.items() if name.endswith("_bytes")), reverse=True)
    named = [f"{name.removesuffix('_bytes').replace('_', ' ')} {value / 1e9:.2f} GB" for value, name in kinds[:3]]
    return ", ".join(named)
