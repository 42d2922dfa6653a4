"""HolisticTraceAnalysis beside Stepscope on real traces, where HTA is right; `docs/differences.md` tells where not.

HTA is no dependency of the project.  The tests use it if it can be imported, or the interpreter that
STEPSCOPE_HTA_PYTHON names:

    python -m venv hta && hta/bin/pip install HolisticTraceAnalysis
    STEPSCOPE_HTA_PYTHON=$PWD/hta/bin/python python -m pytest tests/truth/test_parity_hta.py
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import hta_worker
import pytest

import stepscope

FILES = {
    "nccl": "torch-nccl/nccl.pt.trace.json.gz",
    "qwen": "torch-h100-qwen/qwen.pt.trace.json.gz",
    "rank0": "torch-multirank/rank0.pt.trace.json.gz",
}


@pytest.fixture(scope="module")
def asked(corpus: Path) -> dict[str, Any]:
    python = os.environ.get("STEPSCOPE_HTA_PYTHON") or (sys.executable if importlib.util.find_spec("hta") else None)
    if python is None:
        pytest.skip("needs HolisticTraceAnalysis, or STEPSCOPE_HTA_PYTHON naming an interpreter that has it")
    paths = [str(corpus / name) for name in FILES.values()]
    done = subprocess.run(
        [python, str(hta_worker.__file__), *paths], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: found[path] for name, path in zip(FILES, paths, strict=True)}


def report(corpus: Path, name: str, tool: str) -> dict[str, Any]:
    return stepscope.load(corpus / FILES[name]).report(tool).to_dict()


@pytest.mark.parametrize("name", FILES)
def test_temporal_breakdown_and_overlap(corpus: Path, asked: dict[str, Any], name: str) -> None:
    [row] = report(corpus, name, "distributed")["rows"]
    theirs = asked[name]["temporal"]

    close = {"rel": 1e-6, "abs": 1e-3}
    assert row["span_ms"] == pytest.approx(theirs["kernel_time(us)"] / 1e3, **close)
    assert row["idle_ms"] == pytest.approx(theirs["idle_time(us)"] / 1e3, **close)
    assert row["compute_ms"] == pytest.approx(theirs["compute_time(us)"] / 1e3, **close)
    rest = row["exposed_ms"] + row["other_work_ms"]
    assert rest == pytest.approx(theirs["non_compute_time(us)"] / 1e3, **close)
    if row["communication_ms"]:
        assert row["overlap_percent"] == pytest.approx(asked[name]["overlap"], abs=0.01)
    else:
        assert row["overlap_percent"] is None  # HTA says NaN


def test_kernel_types(corpus: Path, asked: dict[str, Any]) -> None:
    """On times in whole microseconds; of others HTA loses the fractions, so that its parts do not add up."""
    [row] = report(corpus, "rank0", "distributed")["rows"]
    theirs = dict(asked["rank0"]["types"])

    def told(*types: str) -> float:
        return sum(time for kind, time in theirs.items() if all(each in kind for each in types))

    assert row["compute_ms"] * 1e3 == pytest.approx(told("COMPUTATION"), abs=0.5)
    assert row["communication_ms"] * 1e3 == pytest.approx(told("COMMUNICATION"), abs=0.5)
    assert row["overlap_ms"] * 1e3 == pytest.approx(told("COMPUTATION", "COMMUNICATION"), abs=0.5)


@pytest.mark.parametrize("name", ["nccl", "rank0"])
def test_idle_time_by_cause(corpus: Path, asked: dict[str, Any], name: str) -> None:
    """On traces that hold the launch of every kernel; HTA takes that of another kernel for a launch that is missing."""
    ours = {
        (int(row["stream"].partition("(")[0].removeprefix("Stream #")), cause): row[f"{cause}_ms"] * 1e3
        for row in report(corpus, name, "idle")["rows"]
        for cause in ("host_wait", "kernel_wait", "other")
    }
    assert asked[name]["idle"]
    for stream, cause, time in asked[name]["idle"]:
        assert ours[stream, cause] == pytest.approx(time, abs=0.1), (stream, cause)


@pytest.mark.parametrize("name", FILES)
def test_kernels(corpus: Path, asked: dict[str, Any], name: str) -> None:
    ours: dict[str, list[float]] = {}
    for row in report(corpus, name, "kernel-stats")["rows"]:
        total, most, least = ours.get(row["kernel"], [0.0, 0.0, float("inf")])
        ours[row["kernel"]] = [total + row["total_us"], max(most, row["max_us"]), min(least, row["min_us"])]
    theirs = {kernel: figures for kernel, *figures in asked[name]["kernels"] if not kernel.startswith("Mem")}
    assert ours.keys() == theirs.keys()
    for kernel, figures in theirs.items():
        assert ours[kernel] == pytest.approx(figures, rel=1e-6, abs=1e-3), kernel
