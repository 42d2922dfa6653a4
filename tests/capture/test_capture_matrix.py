"""Every way to capture, with every framework: real loops, each captured step against the loop's own clock.

One process per framework runs them all, see `matrix_programs`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matrix_programs
import oracle
import pytest
from program_runs import UNHURRIED, profiles_below, require_packages, run_command, step_marks

FRAMEWORKS = ("tensorflow", "jax", "torch", "python")
Said = dict[str, dict[str, Any]]


@pytest.fixture(scope="module", params=FRAMEWORKS)
def framework(request) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def program(framework, tmp_path_factory) -> tuple[Path, Said]:
    """The logdir of one framework's program, and what its own clock said."""
    if framework != "python":
        require_packages(framework, "keras")
    folder = tmp_path_factory.mktemp(framework)
    words = ["run", "--logdir", "run", "--steps", "4", "--skip", "3", "-q", *UNHURRIED, matrix_programs.__file__]
    done = run_command(["-m", "stepscope", *words, framework, str(folder)], folder, {"KERAS_BACKEND": framework})
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


def captured(folder: Path, way: str) -> list[Path]:
    """The profiles of one way.  The signal's go where `stepscope run` was told to write: first its own, then those."""
    if way in ("run", "signal"):
        paths = profiles_below(folder / "run")
        return paths[:1] if way == "run" else paths[1:]
    return profiles_below(folder / way.replace("/", " "))


@pytest.mark.parametrize("way", matrix_programs.WAYS)
def test_each_captured_step_is_as_long_as_the_loop_says(program, framework, way):
    folder, said = program
    paths = captured(folder, way)
    found = {number: ms for path in paths for number, ms in step_marks(path).items()}
    expected = said[way]

    assert len(paths) == (2 if way == "schedule" else 1)
    if expected["numbers"] is not None:
        assert list(found) == expected["numbers"]
        own = expected["ms"]
    elif "first" in expected:  # the steps after the signal, whatever their numbers
        assert len(found) == 4
        own = expected["ms"][expected["first"] :][:4]
    else:  # those that the window holds, without a gap
        assert list(found) == list(range(min(found), max(found) + 1))
        assert found
        own = [expected["ms"][number] for number in found]
        if framework == "torch":  # it also keeps the parts of the steps that the window's ends cut
            own = [(0.0, most) if i in (0, len(own) - 1) else (least, most) for i, (least, most) in enumerate(own)]
    assert len(found) == len(own)
    assert [
        ms for ms, (least, most) in zip(found.values(), own, strict=True) if not least * 0.99 <= ms <= most * 1.01
    ] == []


def test_xprof_opens_the_profile(program, framework):
    require_packages("xprof")
    folder, said = program

    overview = oracle.overview(captured(folder, "start/stop"))

    # Of more than five steps XProf leaves out the first and the last.  Without ops of a framework it shows none.
    assert len(overview.steps) == (len(said["start/stop"]["ms"]) - 2 if framework in ("tensorflow", "jax") else 0)
