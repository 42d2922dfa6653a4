"""The demo's training programs leave a profile with their steps."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from warm_python import WARM

from stepscope import demo
from stepscope.errors import CaptureError, UsageError
from stepscope.formats.xspace.reader import read
from stepscope.model import EventKind


@pytest.mark.parametrize("framework", demo.PROGRAMS)
def test_ten_steps_are_recorded(framework, tmp_path):
    script = f"from stepscope import demo; print(demo.train({str(tmp_path)!r}, {framework!r}))"
    done = WARM.run(framework, ["-c", script], os.environ, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]

    trace = read(Path(done.stdout.split()[-1]).read_bytes(), "demo", "host")

    steps = np.flatnonzero(trace.events.kind == EventKind.STEP_MARK)
    assert trace.stat_ints(["step_num"])[steps].tolist() == list(range(10))


def test_the_first_framework_that_can_be_imported_is_taken(monkeypatch):
    monkeypatch.setattr(demo, "PROGRAMS", {"no_such_framework": "x", "decimal": "no.such.program", "json": "json.tool"})

    assert demo._choose_program(None).__name__ == "json.tool"


def test_a_framework_that_is_not_there_is_said_to_be_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "PROGRAMS", {"no_such_framework": "x"})

    with pytest.raises(CaptureError, match="no_such_framework cannot be imported"):
        demo.train(tmp_path, "no_such_framework")


def test_an_unknown_framework_is_answered_with_the_known_ones(tmp_path):
    with pytest.raises(UsageError, match="jax, torch, tensorflow, numpy"):
        demo.train(tmp_path, "cobol")


def test_a_demo_that_cannot_write_says_why(monkeypatch, tmp_path):
    monkeypatch.setenv("STEPSCOPE_TRACER", "host")
    file = tmp_path / "file"
    file.touch()

    with pytest.raises(CaptureError, match="nothing can be written here"):
        demo.train(file, "numpy")
