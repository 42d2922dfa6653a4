"""The tutorials: each program runs as its page says, and the summary names what the page tells readers to look for."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from calm import is_calm, taking_a_turn
from places import ROOT
from program_runs import profiles_below, require_packages, run_command

import stepscope
import tutorials

NAMES = ["hugging-face", "jax", "keras", "lightning", "plain-python", "pytorch", "tensorflow"]


def test_each_framework_has_a_tutorial():
    assert tutorials.names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole(name):
    tutorial = tutorials.read_tutorial(name)
    run, again, compare = tutorial.commands

    compile(tutorial.changed_program, "train.py", "exec")
    assert tutorial.changed_program != tutorial.program
    assert again == run.replace("stepscope run", "stepscope run --logdir after")
    assert compare == f"stepscope compare {tutorials.LOGDIR} after"
    shown = tutorial.text.partition(f"    $ {run}\n")[2].partition("\n\n")[0]
    assert tutorial.culprit in shown
    assert str(ROOT) not in tutorial.text
    assert (tutorials.PAGES / "pictures" / f"{name}.svg").read_text(encoding="utf-8").startswith("<svg ")


@pytest.mark.parametrize("name", NAMES)
def test_the_program_of_a_tutorial_runs_and_its_summary_names_what_is_slow(name, tmp_path):
    tutorial = tutorials.read_tutorial(name)
    require_packages(*re.findall(r"^(?:import|from) (\w+)", tutorial.program, re.MULTILINE))

    with taking_a_turn():
        said, logdir, overview = run_tutorial(tutorial, tmp_path)

    assert "stepscope: captured steps " in said
    assert "\nverdict " in said
    assert tutorial.culprit in said or not is_calm(overview)  # others' work may then be what the steps wait for
    assert ">step " in tutorials.draw_steps(logdir, logdir.parent)


def run_tutorial(tutorial: tutorials.Tutorial, folder: Path) -> tuple[str, Path, dict[str, Any]]:
    """What the program's first command said, its logdir, and the overview of its profile."""
    (folder / tutorials.SCRIPT).write_text(tutorial.program)
    done = run_command(["-m", *shlex.split(tutorial.commands[0])], folder, tutorials.QUIET)
    assert done.returncode == 0, done.stderr
    profile = profiles_below(folder / tutorials.LOGDIR)[-1]  # on a slow machine, a window before it
    return done.stderr, profile.parents[3], stepscope.load(profile).overview().to_dict()


def test_what_the_change_removes_must_be_in_the_program():
    broken = tutorials.Tutorial("x", "", "a = 1\nb = 2\n", ("-a = 3", "+a = 4"), "")

    with pytest.raises(ValueError, match="does not have once"):
        _ = broken.changed_program


def test_a_change_replaces_its_runs_of_lines():
    change = ("-a = 1", "+a = 3", "...", " b = 2", "+c = 4")

    assert tutorials.Tutorial("x", "", "a = 1\nb = 2\n", change, "").changed_program == "a = 3\nb = 2\nc = 4\n"
