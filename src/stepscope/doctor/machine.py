"""Checks whether this machine can record profiles, and what would be missing in them."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from ctypes.util import find_library
from dataclasses import field
from pathlib import Path

from stepscope.cache import Cache
from stepscope.doctor.report import Check, DoctorReport, make_report
from stepscope.errors import counted
from stepscope.formats.base import FORMATS
from stepscope.formats.threads import usable_cores
from stepscope.plugins import Plugins, entry_points_of, plugins_of
from stepscope.records import dataclass

FRAMEWORKS = {
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
    "jax": ("jax",),
    "pytorch": ("torch",),
    "keras": ("keras",),
    "cupti-python": ("cupti-python",),
}
_ADDITIONS = (
    ("stepscope.formats", "stepscope.formats.form", "Format"),
    ("stepscope.tools", "stepscope.analysis.registry", "Tool"),
    ("stepscope.rules", "stepscope.analysis.advice.rule", "Rule"),
    ("stepscope.exports", "stepscope.export.registry", "Export"),
)
_MODPROBE = (
    "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > /etc/modprobe.d/nvidia-profiling.conf, rebuild the "
    "initial RAM disk if the system has one, and reboot; in a container, run it with --cap-add=SYS_ADMIN (or "
    "--privileged=true)"
)
_CAP_SYS_ADMIN = 1 << 21
_INJECTIONS = ("CUDA_INJECTION64_PATH", "CUDA_INJECTION32_PATH", "NVTX_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID")
_OTHER_PROFILERS = {
    "nv-hostengine": "DCGM",
    "dcgm-exporter": "DCGM",
    "nsys": "Nsight Systems",
    "nsys-launcher": "Nsight Systems",
    "ncu": "Nsight Compute",
    "dynolog": "dynolog",
}
_SCARCE_BYTES = 1 << 30
_SLOW_CLOCK_S = 1e-6


@dataclass(frozen=True)
class Machine:
    """The part of the machine that the checks examine.

    Attributes:
        root: the folder that contains /proc, /dev and /usr.
        environment: that of this process.
        packages: the folders with Python packages.
    """

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    packages: tuple[Path, ...] = field(default_factory=lambda: tuple(Path(entry) for entry in sys.path if entry))


def examine_machine(machine: Machine | None = None) -> DoctorReport:
    """Checks whether this machine can record and analyse profiles."""
    here = machine or Machine()
    checks = [
        Check(
            "python",
            "ok",
            f"{platform.python_version()} on {platform.platform(terse=True)}, {counted(usable_cores(), 'CPU')}",
        ),
        *frameworks(),
        *gpus(here),
        clock(),
        _cache(),
        *writable(Path.cwd()),
        Check("reads", "ok", ", ".join(fmt.name for fmt in FORMATS)),
        *additions(),
    ]
    return make_report(checks)


# -- what other packages add ------------------------------------------------------------------------------------------


def additions() -> list[Check]:
    """The formats, tools, rules and exports of other packages, and those that cannot be loaded."""
    checks = []
    for group, module, kind in _ADDITIONS:
        if not entry_points_of(group):
            continue
        added: Plugins[object] = plugins_of(group, getattr(importlib.import_module(module), kind))
        noun = group.rpartition(".")[2]
        if added.editions:
            checks.append(Check(noun, "ok", f"added by {', '.join(dict.fromkeys(added.editions))}"))
        remedy = "install a version of the package that fits this one, or remove it"
        checks += [Check(noun, "problem", warning, remedy) for warning in added.warnings]
    return checks


# -- frameworks -------------------------------------------------------------------------------------------------------


def frameworks() -> list[Check]:
    """The frameworks in this Python, and their versions."""
    checks = []
    for name, packages in FRAMEWORKS.items():
        found = next((f"{package} {version}" for package in packages if (version := _version(package))), None)
        if found:
            checks.append(Check(name, "ok", found))
    if not checks:
        remedy = "install the framework that you train with into this Python, or run stepscope in its environment"
        checks.append(Check("frameworks", "note", f"none of {', '.join(FRAMEWORKS)} in {sys.prefix}", remedy))
    return checks


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


# -- GPUs -------------------------------------------------------------------------------------------------------------


def gpus(machine: Machine) -> list[Check]:
    """The GPUs that are visible, and what prevents profiling them."""
    checks = _nvidia(machine)
    if (machine.root / "dev/kfd").exists():
        checks.append(Check("gpu", "ok", "an AMD GPU is visible"))
    return checks or [Check("gpu", "note", "no GPU is visible; profiles will show the host only")]


def _nvidia(machine: Machine) -> list[Check]:
    folder = machine.root / "proc/driver/nvidia/gpus"
    if not folder.is_dir():
        return []
    models = [_model(gpu) for gpu in sorted(folder.iterdir())]
    found = f"{len(models)} NVIDIA: {', '.join(sorted(set(models)))}"
    hidden = machine.environment.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None and hidden.strip() in ("", "-1"):
        state, remedy = "problem", f"CUDA_VISIBLE_DEVICES={hidden!r} hides them from programs; unset it"
    elif not (machine.root / "dev/nvidiactl").exists():
        state, remedy = "problem", "their device files are missing; run the container with --gpus all"
    else:
        state, remedy = "ok", ""
    return [
        Check("gpu", state, found, remedy),
        cupti_library(machine),
        cupti_permission(machine),
        other_client(machine),
        *builds(),
    ]


def builds() -> list[Check]:
    """The frameworks that were built for the CPU only, and cannot use the GPUs of this machine."""
    torch, checks = _version("torch") or "", []
    if torch.endswith("+cpu"):
        checks.append(Check("pytorch", "problem", f"torch {torch} cannot use the GPU", "install its build for CUDA"))
    if _version("tensorflow-cpu"):
        found = "tensorflow-cpu cannot use the GPU"
        checks.append(Check("tensorflow", "problem", found, "pip install 'tensorflow[and-cuda]'"))
    if _version("jax") and not any(_version(f"jax-cuda{major}-plugin") for major in (12, 13)):
        checks.append(Check("jax", "problem", "JAX has no CUDA plugin", "pip install 'jax[cuda13]'"))
    return checks


def _model(gpu: Path) -> str:
    found = re.search(r"^Model:\s*(.+?)\s*$", _text(gpu / "information"), re.MULTILINE)
    return found.group(1) if found else "unknown model"


def cupti_library(machine: Machine) -> Check:
    """Finds CUPTI, which every profiler needs to record what runs on an NVIDIA GPU."""
    found = next(_cupti_paths(machine), None)
    if found is not None:
        return Check("cupti library", "ok", found)
    remedy = (
        "install CUDA's CUPTI and put its folder on the path: "
        "export LD_LIBRARY_PATH=/usr/local/cuda/extras/CUPTI/lib64:$LD_LIBRARY_PATH; or pip install nvidia-cuda-cupti"
    )
    return Check("cupti library", "problem", "CUPTI was not found; profiles would show the host only", remedy)


def _cupti_paths(machine: Machine) -> Iterator[str]:
    """The places of CUPTI in the order of a program's search: the path, the framework's packages, CUDA's folders."""
    for folder in filter(None, machine.environment.get("LD_LIBRARY_PATH", "").split(":")):
        yield from map(str, sorted(Path(folder).glob("libcupti.so*")))
    for place in machine.packages:
        for pattern in ("nvidia/*/lib/libcupti.so*", "torch/lib/libcupti*.so*"):
            yield from map(str, sorted(place.glob(pattern)))
    if machine.root == Path("/") and (library := find_library("cupti")):
        yield library
    for pattern in ("usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*", "usr/local/cuda*/lib64/libcupti.so*"):
        yield from map(str, sorted(machine.root.glob(pattern)))


def cupti_permission(machine: Machine) -> Check:
    """Checks whether the driver permits profiling (if not, CUPTI fails with CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)."""
    parameters = _text(machine.root / "proc/driver/nvidia/params")
    if not re.search(r"^RmProfilingAdminOnly:\s*1", parameters, re.MULTILINE):
        return Check("cupti permission", "ok", "the driver lets every user profile")
    if _is_administrator(machine):
        return Check("cupti permission", "ok", "the driver lets only administrators profile, and this process is one")
    return Check("cupti permission", "problem", "the driver lets only administrators profile", _MODPROBE)


def _is_administrator(machine: Machine) -> bool:
    """The driver requires the capability CAP_SYS_ADMIN, which root in a container lacks."""
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", _text(machine.root / "proc/self/status"), re.MULTILINE)
    return bool(effective and int(effective.group(1), 16) & _CAP_SYS_ADMIN)


def other_client(machine: Machine) -> Check:
    """Checks for another tool that uses CUPTI or the GPU's counters: only one tool at a time may."""
    injected = [f"{name}={machine.environment[name]}" for name in _INJECTIONS if machine.environment.get(name)]
    if injected:
        remedy = (
            f"unset {' '.join(entry.partition('=')[0] for entry in injected)}, or run the job outside that profiler"
        )
        return Check("other CUPTI client", "problem", f"another profiler is injected: {', '.join(injected)}", remedy)
    names = {_text(comm).strip() for comm in (machine.root / "proc").glob("[0-9]*/comm")}
    running = sorted({_OTHER_PROFILERS[name] for name in names & set(_OTHER_PROFILERS)})
    if running:
        remedy = "if a profile lacks its device: end it for the capture; DCGM's profiling: dcgmi profile --pause"
        return Check("other CUPTI client", "note", f"{', '.join(running)} runs on this machine", remedy)
    return Check("other CUPTI client", "ok", "none was found")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


# -- time and place ---------------------------------------------------------------------------------------------------


def clock() -> Check:
    """Whether reading the clock is cheap enough to be done for every event."""
    readings = 1000
    begin = time.perf_counter()
    for _ in range(readings):
        time.perf_counter_ns()
    cost_s = (time.perf_counter() - begin) / readings
    found = f"one reading takes {cost_s * 1e9:.0f} ns"
    if cost_s < _SLOW_CLOCK_S:
        return Check("clock", "ok", found)
    remedy = "events will look longer than they are; let the kernel use the tsc clock source"
    return Check("clock", "note", found, remedy)


def _cache() -> Check:
    folder, url = Cache().folder, Cache().options.url
    if url is not None:
        return Check("cache", "ok", url)
    if folder is None:
        return Check("cache", "note", "switched off", "unset STEPSCOPE_CACHE to open profiles faster the second time")
    if not _may_write_below(folder):
        remedy = "set STEPSCOPE_CACHE_DIR to a folder that can be written, to open profiles faster the second time"
        return Check("cache", "note", f"{folder} cannot be written", remedy)
    return Check("cache", "ok", str(folder))


def _may_write_below(folder: Path) -> bool:
    """Whether a folder, or the nearest above it that exists, may be written."""
    existing = next((each for each in (folder, *folder.parents) if os.path.exists(each)), folder)  # noqa: PTH110 - Path.exists may raise
    return os.access(existing, os.W_OK | os.X_OK)


def writable(folder: Path) -> list[Check]:
    """Whether profiles can be written below a folder, and while they are made, to the temporary folder."""
    return [_writable("write access", folder), _temporary_files()]


def _temporary_files() -> Check:
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError:  # it has looked for a place where it can write
        remedy = "set TMPDIR to a folder that can be written"
        return Check("temporary files", "problem", "no temporary folder can be written", remedy)
    return _writable("temporary files", folder)


def _writable(what: str, folder: Path) -> Check:
    try:
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check(what, "problem", f"{folder}: {error.strerror}", "choose a logdir that can be written")
    found = f"{folder} can be written, {free / 1e9:.1f} GB are free"
    if free < _SCARCE_BYTES:
        return Check(what, "note", found, "make room: a capture may need a gigabyte")
    return Check(what, "ok", found)
