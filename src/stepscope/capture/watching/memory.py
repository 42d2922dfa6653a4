"""What fills the memory: a snapshot at out-of-memory, and how much of each kind is in use."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from stepscope.capture.frameworks import find_cuda, has_jax_backend
from stepscope.capture.program_files import is_users_file
from stepscope.capture.tracers.base import Artifact

_HISTORY = 20_000  # allocations that PyTorch keeps
_WORDS = ("out of memory", "resource_exhausted", "resource exhausted", "oom when allocating")


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an exception says that memory, of the host or of a device, is used up."""
    if error is None:
        return False
    if isinstance(error, MemoryError):
        return True
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"OutOfMemoryError", "ResourceExhaustedError"}:
        return True
    if names & {"XlaRuntimeError", "JaxRuntimeError", "RuntimeError"}:
        with suppress(Exception):
            return any(word in str(error).lower() for word in _WORDS)
    return False


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


_ASKED = (
    re.compile(r"[Tt]ried to allocate (?P<amount>[\d.,]+ ?[KMGT]?i?B)"),  # PyTorch on a GPU
    re.compile(r"tried to allocate (?P<bytes>\d+) bytes"),  # PyTorch on a CPU
    re.compile(r"[Oo]ut of memory (?:while )?trying to allocate (?P<amount>[\d.,]+ ?[KMGT]?i?B|\d+ bytes)"),  # XLA
    re.compile(r"[Oo]ut of memory allocating (?P<bytes>\d+) bytes"),
    re.compile(r"Unable to allocate (?P<amount>[\d.,]+ ?[KMGT]?i?B)"),  # NumPy
    re.compile(r"OOM when allocating (?P<what>tensor with shape\[[\d,]*\] and type \w+)"),  # TensorFlow
)


def describe_request(error: BaseException) -> str:
    """How much was asked for, by its message, and the line of the program that asked; empty if neither is known.

    >>> describe_request(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."))
    'asked for 2.00 GiB'
    """
    found = next((match for pattern in _ASKED if (match := pattern.search(str(error)))), None)
    parts = found.groupdict() if found else {}
    size = f"{int(parts['bytes']) / 1e9:.2f} GB" if parts.get("bytes") else parts.get("amount") or parts.get("what")
    line = _find_asking_line(error)
    return " ".join([*([f"asked for {size}"] if size else []), *([f"in {line}"] if line else [])])


def _find_asking_line(error: BaseException) -> str:
    """The innermost line of the user's own code that an exception passed: `load (train.py:12)`; empty if none."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_users_file(code.co_filename):
            found = f"{code.co_qualname} ({Path(code.co_filename).name}:{trace.tb_lineno})"
        trace = trace.tb_next
    return found


def describe_use(used: dict[str, float]) -> str:
    """The kinds with the most bytes, for a sentence."""
    kinds = sorted(((value, name) for name, value in used.items() if name.endswith("_bytes")), reverse=True)
    named = [f"{name.removesuffix('_bytes').replace('_', ' ')} {value / 1e9:.2f} GB" for value, name in kinds[:3]]
    return ", ".join(named)
