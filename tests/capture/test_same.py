"""A program runs under Stepscope as it runs without: the same output, exit status and files.

Each file of `same/` is a program; one whose name begins with `_` is a part of others.  A comment may say
`# modes: run watch` for what it is run under (`run` if it says nothing), `# timeout: 300` for its seconds, and
`# options: --seconds 1` for more options of the command.  `# arguments: spawn fork` makes a program of each argument,
`# arguments: functions` of each function without parameters.

By default a few of them run, each under one mode.  STEPSCOPE_SAME=all runs all, and as many random compositions as
STEPSCOPE_SAME_SEEDS says; STEPSCOPE_SAME=torch runs those whose names begin so.  STEPSCOPE_SAME_MODES runs each
under these modes, whatever its comment says.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from program_runs import require_packages
from visible import VISIBLE

FOLDER = Path(__file__).parent / "same"
SAMPLE = {
    "jax_methods": "run",
    "torch_variables": "run",
    "tf_tapes": "run",
    "torch_failing": "watch",
    "process_threads joins_all": "run",
    "process_mp_pool spawn": "run",
    "process_waits sleeps": "run",
    "process_tools profiled": "run",
    "process_state": "run",
    'process_exits print("a",flush=True);os.closerange(3,65536)': "run",
}
COMPOSED = ("compose_jax", "compose_torch", "compose_tf")
SEEDS = int(os.environ.get("STEPSCOPE_SAME_SEEDS", "40"))
MODES = os.environ.get("STEPSCOPE_SAME_MODES", "")
WANTED = os.environ.get("STEPSCOPE_SAME", "")
QUIET = {
    "STEPSCOPE_CACHE": "off",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "KINETO_LOG_LEVEL": "6",
    "PYTHONHASHSEED": "0",
    "CUDA_VISIBLE_DEVICES": "",
}
_FEW = ("--steps", "3", "--skip", "2")
_OF_KINETO = r"USDT:|ERROR: External init callback|\[W\d{4} [^]]*\] disableProfiler called but no active"  # as listed
_OWN_LINE = re.compile(
    rf"stepscope|(\[rank\d\]:)?[IWE]\d{{4}} |WARNING: All log messages|\d{{4}}-\d\d-\d\d |{_OF_KINETO}"
)

# Runs a program between the two calls of the API; without STEPSCOPE_SAME_LOGDIR it only runs it.
_BETWEEN = """
import os, runpy, sys
logdir = os.environ.pop("STEPSCOPE_SAME_LOGDIR", "")
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
if logdir:
    import stepscope
    stepscope.start(logdir)
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    if logdir:
        stepscope.stop()
"""


@dataclass(frozen=True)
class Outcome:
    """What a run leaves: exit status, streams without Stepscope's own lines, files in its folder."""

    status: int | str
    stdout: str
    stderr: str
    files: tuple[str, ...]


def commands(mode: str, logdir: Path) -> tuple[list[str], list[str]]:
    """The words before a program, without and with Stepscope."""
    python, stepscope = [sys.executable], [sys.executable, "-m", "stepscope"]
    to = ["--logdir", str(logdir)]
    return {
        "run": (python, [*stepscope, "run", "-q", *_FEW, *to]),
        "samples": (python, [*stepscope, "run", "-q", *_FEW, "--python-tracer-level", "1", *to]),
        "watch": (python, [*stepscope, "run", "-q", "--watch", *_FEW, *to]),
        "prove": (python, [*stepscope, "prove", "--budget", "5", *_FEW, *to]),
        "api": ([*python, "-c", _BETWEEN], [*python, "-c", _BETWEEN]),
        "callback": (python, python),
    }[mode]


def run(words: list[str], folder: Path, seconds: float, more: dict[str, str]) -> Outcome:
    folder.mkdir(parents=True)
    environment = {**os.environ, **QUIET, **more}
    process = subprocess.Popen(
        words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=seconds)
        status: int | str = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        status = f"no end in {seconds:g} s"
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts)
    lines = [line for line in clean(err).splitlines() if not _OWN_LINE.match(line)]
    return Outcome(status, clean(out), "\n".join(lines), tuple(files))


def clean(output: bytes) -> str:
    """The text of a stream, without addresses of objects and numbers of processes that Python names."""
    return re.sub(r"(?<=0x)[0-9a-f]{6,}|(?<=pid=)\d+", "", output.decode("utf-8", "replace"))


def find_differences(program: Path, mode: str, folder: Path, arguments: tuple[str, ...] = ()) -> list[str]:
    """What differs between a run without and one with Stepscope; nothing if a library that it needs is missing."""
    seconds = float(said(program, "timeout", "120"))
    plain, followed = commands(mode, folder / "log")
    followed += said(program, "options", "").split() if mode in ("run", "samples", "watch") else []
    logdir = {"STEPSCOPE_SAME_LOGDIR": str(folder / "log")} if mode in ("api", "callback") else {}
    before = run([*plain, str(program), *arguments], folder / "plain", seconds, {})
    if "ModuleNotFoundError" in before.stderr:
        pytest.skip(before.stderr.splitlines()[-1])
    after = run([*followed, str(program), *arguments], folder / "followed", seconds, logdir)
    found = []
    for name, one, other in zip(Outcome.__annotations__, vars(before).values(), vars(after).values(), strict=True):
        if one != other:
            lines = (str(each).splitlines() for each in (one, other))
            found.append(f"{name}:\n" + "\n".join([*difflib.unified_diff(*lines, lineterm="", n=0)][2:12]))
    if found and run([*plain, str(program), *arguments], folder / "again", seconds, {}) != before:
        found.insert(0, "the program itself differs between two runs without Stepscope, so this proves nothing")
    return found


def said(program: Path, key: str, default: str) -> str:
    return " ".join(re.findall(rf"^# {key}: (.*)$", program.read_text(), re.MULTILINE)) or default


def arguments_of(program: Path) -> list[str]:
    """What it is run with, each a program of its own; nothing where it is run once."""
    said_there = said(program, "arguments", "").split()
    return re.findall(r"^def (\w+)\(\):", program.read_text(), re.M) if said_there == ["functions"] else said_there


def pairs() -> list[tuple[str, str]]:
    """The programs that are wanted, each perhaps with its argument, and the modes."""
    if not WANTED:
        return list(SAMPLE.items())
    names = sorted(path.stem for path in FOLDER.glob("[!_]*.py") if path.stem not in COMPOSED)
    start = "" if WANTED == "all" else WANTED
    return [
        (f"{name} {argument}".strip(), mode)
        for name in names
        if name.startswith(start)
        for argument in arguments_of(FOLDER / f"{name}.py") or [""]
        for mode in (MODES or said(FOLDER / f"{name}.py", "modes", "run")).split()
    ]


@pytest.mark.parametrize(("name", "mode"), pairs())
def test_a_program_is_the_same(name, mode, tmp_path):
    program, *arguments = name.split()
    assert find_differences(FOLDER / f"{program}.py", mode, tmp_path, tuple(arguments)) == []


@pytest.mark.parametrize("name", COMPOSED if WANTED else COMPOSED[:1])
def test_wrappers_that_are_composed_at_random_are_the_same(name, tmp_path):
    arguments = ("0", str(SEEDS)) if WANTED else ("0", "12")
    assert find_differences(FOLDER / f"{name}.py", "run", tmp_path, arguments) == []


def test_what_a_program_sees_of_its_process_is_listed(tmp_path):
    require_packages("torch")
    program = FOLDER / "_state.py"
    views = [
        json.loads(run([*words, str(program)], tmp_path / name / "work", 120, {}).stdout)
        for name, words in zip(("plain", "followed"), commands("run", tmp_path / "log"), strict=True)
    ]

    plain, followed = views
    listed = {each.name for each in VISIBLE}

    assert {name for name in plain if plain[name] != followed[name]} <= listed
    handled = {name for name, handler in plain["signals"].items() if followed["signals"][name] != handler}
    assert handled <= {"SIGTERM", "SIGUSR2"}
    assert set(plain["modules"]) <= set(followed["modules"])
    assert plain["meta_path"] == followed["meta_path"][-len(plain["meta_path"]) :]


def test_the_comparison_finds_what_differs(tmp_path):
    """A program that asks whether it is followed."""
    program = tmp_path / "asks.py"
    program.write_text("import sys\nprint('stepscope' in sys.modules)\nopen(str(len(sys.modules) // 10_000), 'w')\n")

    (found,) = find_differences(program, "run", tmp_path / "runs")

    assert found.splitlines()[0] == "stdout:"
    assert found.splitlines()[-2:] == ["-False", "+True"]


def test_the_comparison_tells_a_program_that_differs_by_itself(tmp_path):
    program = tmp_path / "varies.py"
    program.write_text("import os\nprint(os.getpid())\n")

    found = find_differences(program, "run", tmp_path / "runs")

    assert found[0] == "the program itself differs between two runs without Stepscope, so this proves nothing"
    assert found[1].startswith("stdout:")
