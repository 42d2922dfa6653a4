"""`stepscope prove --knobs`: settings turned in a process, and a program that is run again and again."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from program_runs import run_command

from stepscope.capture.proving.options import ProveOptions
from stepscope.capture.proving.stopwatch import KnobTurner, Stopwatch
from stepscope.proof.knobs import TimedRun
from stepscope.proof.record import read_proofs

LOADER = "torch.utils.data.dataloader"


@pytest.fixture
def loaders(monkeypatch) -> ModuleType:
    """A module like PyTorch's, whose loaders keep what they were given."""

    class IterableDataset:
        pass

    class DataLoader:
        def __init__(self, dataset, batch_size=1, num_workers=0, prefetch_factor=None, persistent_workers=False):
            self.given = {"workers": num_workers, "prefetch": prefetch_factor, "persistent": persistent_workers}

    module = ModuleType(LOADER)
    module.IterableDataset, module.DataLoader = IterableDataset, DataLoader
    monkeypatch.setitem(sys.modules, LOADER, module)
    return module


@pytest.mark.parametrize(
    ("setting", "given", "made", "note"),
    [
        ("workers=3", {"num_workers": 1, "prefetch_factor": 4}, {"workers": 3, "prefetch": 4}, ""),
        ("workers=0", {"num_workers": 2, "prefetch_factor": 4}, {"workers": 0, "prefetch": None}, ""),
        ("prefetch=8", {"num_workers": 2}, {"workers": 2, "prefetch": 8}, ""),
        ("prefetch=8", {}, {"workers": 0, "prefetch": None}, "the loader has no workers that could prefetch"),
        ("OMP_NUM_THREADS=1", {"num_workers": 2}, {"workers": 2, "prefetch": None}, ""),
    ],
)
def test_a_knob_of_loaders_is_turned_where_they_are_made(loaders, setting, given, made, note):
    settings = KnobTurner(setting)
    undo = settings.install()
    loader = loaders.DataLoader([1, 2], 1, **given)
    undo()
    assert loader.given | made == loader.given
    assert settings.note == note


def test_an_iterable_dataset_keeps_its_workers(loaders):
    settings = KnobTurner("workers=2")
    settings.install()()
    assert loaders.DataLoader(loaders.IterableDataset()).given["workers"] == 0
    assert settings.note == "each worker of an iterable dataset gives all its samples"


def test_a_knob_of_what_the_program_does_not_make_is_said():
    assert KnobTurner("autotune=off").note == "the program did not create tf.data before its steps"


@pytest.mark.parametrize(("steps", "step_ms"), [(200, 10.0), (30, 10.0), (5, None)])
def test_steps_are_timed_until_the_budget_or_the_program_ends(tmp_path, steps, step_ms):
    clock = [0.0]
    options = ProveOptions(budget_s=1.0, output=str(tmp_path / "answer.json"), timed=True, setting="A=1")
    stopwatch = Stopwatch(options, KnobTurner("A=1"), lambda: clock[0])
    running = stopwatch.run()
    next(running)
    try:
        for _ in range(steps):
            clock[0] += 0.01
            running.send([0.01])
    except StopIteration:
        pass
    stopwatch.save(tmp_path)
    found = TimedRun.from_json((tmp_path / "answer.json").read_text("utf-8"))
    assert found.step_ms == (None if step_ms is None else pytest.approx(step_ms))
    assert found.note == ("" if step_ms else "the program ended too early")


HURRIED = """
import sys
from stepscope.capture.proving import knobs
from stepscope.cli.main import main
knobs._TIMED_S, sys.argv[0] = 1.0, "stepscope"
main()
"""


def test_a_program_is_run_again_with_each_setting(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(
        "import os, time, stepscope\n"
        "for number in range(10_000):\n"
        "    stepscope.step(number)\n"
        "    time.sleep(float(os.environ.get('NAP', '0.04')))\n"
    )
    words = ["prove", "--knob", "NAP=0.01,never", "--budget", "4", "--steps", "0", "--logdir", str(tmp_path / "logs")]
    done = run_command(["-c", HURRIED, *words, str(script)], tmp_path)
    assert done.returncode == 0, done.stderr
    faster, failed = read_proofs(tmp_path / "logs")
    assert (faster.place, faster.pairs) == ("NAP=0.01", 1)
    assert faster.value > 2
    assert failed.place == "NAP=never"
    assert "could not convert string to float" in failed.note
    assert "an interval needs 6" in done.stderr
