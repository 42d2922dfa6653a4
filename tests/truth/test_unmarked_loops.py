"""Steps of loops whose marks are taken away: the same as the marked ones, whatever the loop does besides."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from calm import taking_a_turn
from places import ROOT
from program_runs import read_profile, require_packages, run_warm

from bench.steps import are_same_steps, captures_below, remove_marks
from stepscope.analysis.steps.find_steps import steps_of

RECORD = "import sys; from bench.step_loops import main; main(*sys.argv[1:])"
LOOPS = {
    "torch": (
        "5 identical", "12 identical", "40 identical", "accumulation", "two optimizers", "adversaries", "evaluation",
        "checkpoints", "update by hand", "loader",
    ),
    "jax": ("5 identical", "12 identical", "40 identical", "evaluation", "two functions"),
}  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """The loops of all frameworks, each in a folder of its own."""
    folder = tmp_path_factory.mktemp("loops")
    for framework in LOOPS:
        if importlib.util.find_spec(framework) is None:
            continue
        words = ["-c", RECORD, framework, str(folder / framework)]
        with taking_a_turn():
            done = run_warm(framework, words, ROOT)
        assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.parametrize(("framework", "loop"), [(name, loop) for name, loops in LOOPS.items() for loop in loops])
def test_the_steps_of_a_loop_without_marks_are_the_marked_ones(recorded, framework, loop):
    require_packages(framework)
    (path,) = captures_below(recorded / framework / loop)
    trace = read_profile(path)
    marked, found = steps_of(trace), steps_of(remove_marks(trace))

    assert (marked.source, found.source) == ("markers", "inferred")
    assert are_same_steps(marked, found), found.how
    assert found.confidence is not None
    assert found.confidence >= 0.9
    assert found.how.startswith("no step marks found; ")
