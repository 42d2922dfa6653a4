"""Runs small programs in processes of their own, and reads the profiles that they leave."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from warm_python import WARM

from stepscope.formats.base import require_format
from stepscope.model import EventKind, HostTrace

TIMEOUT_S = 600  # of a machine that does other things as well
# Options of `stepscope run` for a program that may take long to its first step: no time window comes before it.
UNHURRIED = ("--seconds", "600", "--patience", "600")
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}


def require_packages(*names: str) -> None:
    """Skips the test unless the packages that its program uses are installed; this process imports none of them."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed, and a program of this test uses it")


def run_command(
    words: Sequence[str], folder: Path, environment: dict[str, str] | None = None, timeout: float = TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """Runs this Python with `words` in `folder`, without what this test's own environment asks of Stepscope."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=_environment(environment),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def run_warm(
    framework: str, words: Sequence[str], folder: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """As `run_command`, for a program that finds a framework imported; it costs seconds less."""
    return WARM.run(framework, words, _environment(environment), TIMEOUT_S, folder)


def _environment(more: dict[str, str] | None) -> dict[str, str]:
    """This test's own, without what it asks of Stepscope."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STEPSCOPE_")}
    return clean | QUIET | (more or {})


def run_program(
    program: str, folder: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a program's text with `folder` as its argument; fails with what it said if it fails."""
    done = run_command(["-c", program, str(folder)], folder, environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def read_profile(path: str | Path) -> HostTrace:
    """The trace in a profile file."""
    path = Path(path)
    return require_format(path.name, str(path)).read(path.read_bytes(), str(path), "host")


def step_marks(path: str | Path) -> dict[int, float]:
    """Step number -> duration in ms, in the order of time."""
    trace = read_profile(path)
    rows = np.flatnonzero(trace.events.kind == EventKind.STEP_MARK)
    rows = rows[np.argsort(trace.events.start_ps[rows], kind="stable")]
    numbers = trace.stat_ints(["step_num"])[rows].tolist()
    return dict(zip(numbers, (trace.events.duration_ps[rows] / 1e9).tolist(), strict=True))


def step_numbers(path: str | Path) -> list[int]:
    """The numbers of the marked steps, in the order of time."""
    return list(step_marks(path))


def profiles_below(folder: str | Path) -> list[Path]:
    """All profiles of a logdir, oldest run first."""
    return sorted(Path(folder).glob("plugins/profile/*/*.xplane.pb"))
