"""`stepscope run` with programs that do odd things: they run as under Python, and leave a profile."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from program_runs import QUIET, UNHURRIED, profiles_below, run_command, step_numbers

OPTIONS = ["-q", "--logdir", "logs", "--steps", "3", *UNHURRIED]
STEPS = """
import os, sys, time, stepscope
def steps(count=10, at=None, do=lambda: None):
    for i in range(count):
        with stepscope.step(i):
            if i == at: do()
            time.sleep(0.002)
"""
PROGRAMS = {
    "changes its folder": "import tempfile; os.chdir(tempfile.mkdtemp()); steps(); print('end')",
    "replaces its streams": "import io; out, sys.stdout, sys.stderr = sys.stdout, io.StringIO(), None; steps()"
    "; print('lost'); sys.stdout = out; print('end')",
    "writes bytes": "steps(); sys.stdout.buffer.write(bytes(range(256)))",
    "ends within a step": "steps(at=9, do=lambda: sys.exit(3))",
    "starts another program": "steps(); time.sleep(0.3); os.execv(sys.executable, [sys.executable, '-c', 'print(5)'])",
    "removes the logdir": "import shutil; steps(at=4, do=lambda: shutil.rmtree('logs', True)); print('end')",
    "has a profiler of its own": "sys.setprofile(lambda *a: None); steps(); print(sys.getprofile() is not None)",
    "ends without a goodbye": "steps(); time.sleep(0.3); print('end', flush=True); os._exit(4)",
    "ends without a goodbye within a step": "steps(at=9, do=lambda: (print('end', flush=True), os._exit(4)))",
    "spawns a process": "import multiprocessing as mp\n"
    "if __name__ == '__main__':\n"
    "    child = mp.get_context('spawn').Process(target=print, args=('child',)); child.start(); child.join()\n"
    "    steps(); print('end', child.exitcode)",
    "profiles itself": "import cProfile; own = cProfile.Profile(); own.enable(); steps(); own.disable()"
    "; print(len(own.getstats()) > 3)",
    "has a loop of its own": "import asyncio\n"
    "try: from uvloop import run\n"
    "except ImportError: from asyncio import run\n"
    "async def main():\n"
    "    for i in range(10):\n"
    "        with stepscope.step(i): await asyncio.sleep(0.002)\n"
    "run(main()); print('end')",
    "forks and leaves": "child = os.fork(); child or os._exit(0); os.waitpid(child, 0); steps(); print('end')",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_odd_program_runs_as_under_python_and_leaves_its_profile(tmp_path, program):
    (tmp_path / "script.py").write_text(STEPS + PROGRAMS[program] + "\n")

    plain = run_bytes(["script.py"], tmp_path)
    ours = run_bytes(["-m", "stepscope", "run", *OPTIONS, "script.py"], tmp_path)

    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout), ours.stderr
    (path,) = profiles_below(tmp_path / "logs")
    assert step_numbers(path) == [5, 6, 7]


def run_bytes(words: list[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STEPSCOPE_")}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=clean | QUIET, capture_output=True, timeout=300, check=False
    )


SEEN = "import sys, __main__; print(__name__, sys.argv, sys.path[0], sorted(vars()), __spec__, __loader__)"


def test_the_text_of_a_program_runs_as_under_python(tmp_path):
    for words in (["-c", SEEN, "--logdir", "x"], ["-c", "-1 / 0"]):
        plain = run_command(words, tmp_path)
        ours = run_command(["-m", "stepscope", "run", "--quiet", *words], tmp_path)

        assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
        assert ours.stderr == plain.stderr


def test_a_program_on_stdin_is_captured(tmp_path):
    program = textwrap.dedent(STEPS) + "steps()\nprint(__name__, sys.argv)\n"
    command = [sys.executable, "-m", "stepscope", "run", *OPTIONS, "-", "word"]

    done = subprocess.run(command, input=program, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)

    assert done.stdout == "__main__ ['-', 'word']\n"
    (path,) = profiles_below(tmp_path / "logs")
    assert step_numbers(path) == [5, 6, 7]


def test_a_module_of_a_package_runs_as_under_python_and_is_captured(tmp_path):
    package = tmp_path / "training"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "loop.py").write_text(STEPS + "steps(); print(__name__, __package__, sys.argv[1:])\n")

    plain = run_command(["-m", "training.loop", "--lr", "1"], tmp_path)
    ours = run_command(["-m", "stepscope", "run", *OPTIONS, "-m", "training.loop", "--lr", "1"], tmp_path)

    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout), ours.stderr
    (path,) = profiles_below(tmp_path / "logs")
    assert step_numbers(path) == [5, 6, 7]
