"""Saves of Orbax are ranges while a capture runs, so that the step's cause is the checkpoint."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import saving_programs
from calm import is_calm, record_calmly
from program_runs import UNHURRIED, profiles_below, read_profile, run_warm

import stepscope
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.saves import SavesTracer
from stepscope.model import EventKind


def test_a_loop_that_saves_with_orbax_waits_for_its_checkpoints(tmp_path):
    pytest.importorskip("orbax.checkpoint")
    path = record_calmly(lambda: record(Path(tempfile.mkdtemp(dir=tmp_path))), lambda path: is_calm(overview_of(path)))

    trace = read_profile(path)
    saves = trace.events.kind == EventKind.CHECKPOINT
    assert int(saves.sum()) >= 5
    advice = stepscope.load(path).advice().to_dict()["advice"]
    stall = next(each for each in advice if each["class"] == "checkpoint_stall")
    assert stall is advice[0] or not is_calm(overview_of(path))
    assert "saving_programs.py" in stall["evidence"]


def record(folder: Path) -> Path:
    """Runs the program in a folder; the profile."""
    options = ["-q", "--steps", "5", "--logdir", "logs", *UNHURRIED]
    done = run_warm("jax", ["-m", "stepscope", "run", *options, saving_programs.__file__, "saved"], folder)
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = profiles_below(folder / "logs")
    return path


def overview_of(path: Path) -> dict[str, Any]:
    return dict(stepscope.load(path).overview().to_dict())


PLACE = "orbax.checkpoint._src.checkpointers.checkpointer"


def test_the_methods_are_put_back_and_errors_pass(monkeypatch):
    class Checkpointer:
        def save(self) -> None:
            raise ValueError("the disk is full")

    original = Checkpointer.save
    monkeypatch.setitem(sys.modules, PLACE, SimpleNamespace(Checkpointer=Checkpointer))
    tracer = SavesTracer()
    tracer.start(ProfilerOptions(), lambda: 0)
    assert Checkpointer.save is not original
    with pytest.raises(ValueError, match="disk is full"):
        Checkpointer().save()
    tracer.stop()
    assert Checkpointer.save is original


def test_another_release_of_orbax_is_left_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, PLACE, ModuleType("renamed"))
    tracer = SavesTracer()
    tracer.start(ProfilerOptions(), lambda: 0)
    tracer.stop()
    assert tracer.drain() == []
