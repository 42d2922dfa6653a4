"""`stepscope doctor`: why there is nothing to see, and what to do about it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from stepscope.analysis.overview import OverviewReport
from stepscope.api import load
from stepscope.cache import Cache
from stepscope.errors import InputError
from stepscope.formats.session import Session, find_sessions
from stepscope.report import Cell, Field, Prose, Report, Rows, Section

MOST_SESSIONS = 20  # looked into, newest first
FRAMEWORKS = {"tensorflow": ("tensorflow", "tensorflow-cpu"), "jax": ("jax",), "pytorch": ("torch",)}

CHECK_FIELDS: tuple[Field, ...] = (
    Field("check", "text", "what was looked at", "str"),
    Field("state", "text", "`ok`, `note` or `problem`", "str"),
    Field("found", "text", "what was found", "str"),
    Field("remedy", "text", "what to do about it; empty if nothing", "str"),
)
SESSION_FIELDS: tuple[Field, ...] = (
    Field("run", "text", "the session's name", "str"),
    Field("hosts", "count", "hosts that recorded it", "int"),
    Field("size_mb", "MB", "size of its files together"),
    Field("format", "text", "format of its files", "str"),
    Field("state", "text", "`ok`, `note` or `problem`", "str"),
    Field("steps", "count", "complete steps; unknown if the session cannot be read", "int"),
    Field("steps_source", "text", "how the steps were found", "str"),
)


@dataclass(frozen=True)
class Check:
    """One finding: what was looked at, whether it is fine, and what to do."""

    check: str
    state: str
    found: str
    remedy: str = ""

    def row(self) -> dict[str, Cell]:
        """The finding as a table row."""
        return {"check": self.check, "state": self.state, "found": self.found, "remedy": self.remedy}


@dataclass(frozen=True, kw_only=True)
class DoctorReport(Report):
    """What was found; the worst first."""

    TOOL: ClassVar[str] = "doctor"

    checks: tuple[Check, ...]
    sessions: tuple[dict[str, Cell], ...] = ()

    def body(self) -> dict[str, Any]:
        """The report's own part of the JSON object."""
        return {"checks": [check.row() for check in self.checks], "sessions": list(self.sessions)}

    def sections(self) -> Sequence[Section]:
        """The sessions, the findings, and what to do."""
        rows = tuple(check.row() for check in self.checks)
        remedies = tuple(f"{check.check}: {check.remedy}" for check in self.checks if check.remedy)
        found = tuple(Field(f.name, f.unit, f.doc, f.kind) for f in CHECK_FIELDS if f.name != "remedy")
        parts: list[Section] = [Rows("Sessions", SESSION_FIELDS, self.sessions)] if self.sessions else []
        return [*parts, Rows("Findings", found, rows), Prose("What to do", remedies or ("nothing: all is well",))]

    def main_table(self) -> Rows:
        """The findings with their remedies."""
        return Rows("Findings", CHECK_FIELDS, tuple(check.row() for check in self.checks))


def _report(
    checks: Sequence[Check], hosts: tuple[str, ...] = (), sessions: Sequence[dict[str, Cell]] = ()
) -> DoctorReport:
    order = {"problem": 0, "note": 1, "ok": 2}
    worst = sorted(checks, key=lambda check: order[check.state])
    return DoctorReport(hosts=hosts, warnings=(), partial=False, checks=tuple(worst), sessions=tuple(sessions))


# -- a logdir ----------------------------------------------------------------------------------------------------


def examine_logdir(logdir: str, progress: Callable[[str], None] | None = None) -> DoctorReport:
    """What is in a logdir, what is wrong with it, and what to do.  Answers also where there is nothing at all."""
    try:
        sessions = find_sessions(logdir)
    except InputError as error:
        problem = error.problem
        return _report([Check("profiles", "problem", problem.reason, problem.hint or "")])
    checks, rows = [], []
    for session in sessions[:MOST_SESSIONS]:
        found, row = _examine_session(session, progress)
        checks += found
        rows.append(row)
    if len(sessions) > MOST_SESSIONS:
        checks.append(Check("sessions", "note", f"only the newest {MOST_SESSIONS} of {len(sessions)} were looked into"))
    return _report(checks, sessions[0].hosts, rows)


def _examine_session(session: Session, progress: Callable[[str], None] | None) -> tuple[list[Check], dict[str, Cell]]:
    checks = [Check(session.run, "note", str(problem), problem.hint or "") for problem in session.problems]
    steps: int | None = None
    source: str | None = None
    try:
        report = load(session.files[0].path if len(session.files) == 1 else session.path, progress=progress).report(
            "overview"
        )
    except InputError as error:
        checks.append(Check(session.run, "problem", error.problem.reason, error.problem.hint or ""))
    else:
        assert isinstance(report, OverviewReport)
        checks += _examine_overview(session.run, report)
        count = report.step_time_ms["count"]
        steps, source = (count if isinstance(count, int) else None), report.steps_source
    states = {check.state for check in checks}
    sizes = [file.size for file in session.files if file.size is not None]
    row: dict[str, Cell] = {
        "run": session.run,
        "hosts": len(session.files),
        "size_mb": round(sum(sizes) / 1e6, 3),
        "format": ", ".join(sorted({file.format.name for file in session.files})),
        "state": next((state for state in ("problem", "note") if state in states), "ok"),
        "steps": steps,
        "steps_source": source,
    }
    return checks, row


def _examine_overview(run: str, report: OverviewReport) -> list[Check]:
    state = "problem" if report.partial else "note"
    checks = [Check(run, state, warning) for warning in report.warnings]
    checks += [Check(run, "note", f"not recorded: {item.what}", item.remedy) for item in report.missing]
    return checks or [Check(run, "ok", report.verdict.sentence)]


# -- this machine ------------------------------------------------------------------------------------------------


def examine_machine() -> DoctorReport:
    """Whether this machine can record and analyse profiles."""
    checks = [
        Check("python", "ok", f"{platform.python_version()} on {platform.platform(terse=True)}, {os.cpu_count()} CPUs"),
        *_frameworks(),
        *_gpus(),
        _cache(),
        _writable(Path.cwd()),
    ]
    return _report(checks)


def _frameworks() -> list[Check]:
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


def _gpus() -> list[Check]:
    nvidia, amd = Path("/proc/driver/nvidia/gpus"), Path("/dev/kfd")
    checks = []
    if nvidia.is_dir():
        checks.append(Check("gpu", "ok", f"{len(list(nvidia.iterdir()))} NVIDIA GPUs visible"))
        checks += _cupti()
    if amd.exists():
        checks.append(Check("gpu", "ok", "an AMD GPU is visible"))
    return checks or [Check("gpu", "note", "no GPU is visible; profiles will show the host only")]


def _cupti() -> list[Check]:
    library = find_library("cupti")
    remedy = (
        "add CUDA's extras/CUPTI/lib64 to LD_LIBRARY_PATH unless your framework brings its own (JAX and PyTorch do)"
    )
    checks = [
        Check("cupti", "ok", library) if library else Check("cupti", "note", "CUPTI is not on the library path", remedy)
    ]
    parameters = Path("/proc/driver/nvidia/params")
    restricted = parameters.is_file() and "RmProfilingAdminOnly: 1" in parameters.read_text(errors="replace")
    if restricted and os.geteuid() != 0:
        remedy = (
            "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > /etc/modprobe.d/nvidia-profiling.conf "
            "and reboot; in a container, run it with --cap-add=SYS_ADMIN"
        )
        checks.append(Check("cupti permission", "problem", "the driver lets only administrators profile", remedy))
    return checks


def _cache() -> Check:
    folder = Cache().folder
    if folder is None:
        return Check("cache", "note", "switched off", "unset STEPSCOPE_CACHE to open profiles faster the second time")
    return Check("cache", "ok", str(folder))


def _writable(folder: Path) -> Check:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Check("write access", "ok", f"{folder} can be written")
    except OSError as error:
        return Check("write access", "problem", f"{folder}: {error.strerror}", "choose a logdir that can be written")
