"""The template package of the docs is installed beside Stepscope, and all that it adds works as if it were ours."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

TEMPLATE = ROOT / "docs" / "template"
PAGE = (ROOT / "docs" / "extending.md").read_text("utf-8")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, installed by pip from a copy: builds leave files beside their sources."""
    source, target = tmp_path_factory.mktemp("source") / "package", tmp_path_factory.mktemp("target")
    shutil.copytree(TEMPLATE, source)
    words = ["install", "--no-index", "--no-build-isolation", "--no-deps", "--quiet", "--target", str(target)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, str(source)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(done.stderr) if "No module named" not in done.stderr else pytest.skip(done.stderr)
    return target


@pytest.fixture
def folder(installed: Path, tmp_path: Path) -> Path:
    """A working directory with the log that the page shows."""
    text = re.search(r"printf '(.*?)' > run\.acme", PAGE)
    assert text
    (tmp_path / "run.acme").write_text(text[1].replace("\\n", "\n"))
    return tmp_path


def stepscope(installed: Path, folder: Path, *words: str, program: str = "") -> str:
    """What a command, or a program, prints where the package is installed."""
    path = os.pathsep.join([str(installed), str(ROOT / "src")])
    command = ["-c", program] if program else ["-m", "stepscope", *words]
    environment = os.environ | {"PYTHONPATH": path, "STEPSCOPE_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_commands_of_the_page_work(installed: Path, folder: Path) -> None:
    script = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[0]
    commands = re.findall(r"(?m)^stepscope (.*)$", script)
    assert len(commands) == 4

    shell = f'stepscope() {{ "$PYTHON" -m stepscope "$@"; }}\nset -e\n{script}'
    environment = os.environ | {
        "PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(installed), str(ROOT / "src")]),
        "STEPSCOPE_CACHE_DIR": str(folder / "cache"),
    }
    done = subprocess.run(
        ["bash", "-c", shell], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "Turn on Acme's cache" in done.stdout
    assert done.stdout.count("compute") >= 2
    lines = (folder / "run.events.txt").read_text().splitlines()
    assert len(lines) == 6
    assert lines[0] == "run\t0\t10000000000\tstep"


def test_the_tool_is_in_json_python_help_and_the_cache(installed: Path, folder: Path) -> None:
    report = json.loads(stepscope(installed, folder, "longest-events", "run.acme", "--format", "json"))
    assert [row["duration_us"] for row in report["rows"]] == [10000.0, 10000.0, 5000.0, 5000.0, 4000.0, 4000.0]
    assert any("acme" in path.name for path in (folder / "cache").rglob("*"))
    again = json.loads(stepscope(installed, folder, "longest-events", "run.acme", "--format", "json"))
    assert again == report

    program = (
        "import stepscope; profile = stepscope.load('run.acme');"
        "print(len(profile.longest_events().rows), profile.sql('FROM longest_events').table.num_rows)"
    )
    assert stepscope(installed, folder, program=program) == "6 6\n"
    assert "longest-events" in stepscope(installed, folder, "--help")


def test_the_rule_gives_advice(installed: Path, folder: Path) -> None:
    report = json.loads(stepscope(installed, folder, "advice", "run.acme", "--format", "json"))

    assert "acme.slow-load" in [item["id"] for item in report["advice"]]


def test_the_doctor_lists_what_was_added(installed: Path, folder: Path) -> None:
    said = stepscope(installed, folder, program=(
        "from stepscope.doctor.machine import additions\n"
        "print([(check.check, check.state, check.found) for check in additions()])"
    ))  # fmt: skip

    assert said.count("added by acme-stepscope 1.0") == 4


def test_what_cannot_be_loaded_is_left_out_and_named(folder: Path, tmp_path: Path) -> None:
    info = tmp_path / "broken" / "broken-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text(
        "[stepscope.formats]\nx = nowhere:FORMAT\n"
        "[stepscope.tools]\nx = json:dumps\n"
        "[stepscope.exports]\nx = quits:EXPORT\n"
    )
    (info.parent / "quits.py").write_text("import sys\nsys.exit(3)\n")

    said = stepscope(info.parent, folder, program=(
        "from stepscope.doctor.machine import additions\n"
        "from stepscope.errors import StepscopeError\n"
        "from stepscope.analysis.registry import tool_named\n"
        "print([(check.check, check.state) for check in additions()])\n"
        "try:\n    tool_named('x')\n"
        "except StepscopeError as error:\n    print(error)\n"
    ))  # fmt: skip

    first, second = said.splitlines()
    assert first == "[('formats', 'problem'), ('tools', 'problem'), ('exports', 'problem')]"
    assert "the entry point 'x' of json:dumps is not a tool" in second


def test_the_page_and_the_package_name_the_same_entry_points() -> None:
    shown = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[0].strip()

    assert shown in (TEMPLATE / "pyproject.toml").read_text("utf-8")
