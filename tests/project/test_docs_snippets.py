"""What the documentation tells people to type runs: every command and every snippet of Python, on a tiny profile."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT
from ports import free_port
from program_runs import require_packages, run_command, run_warm

from stepscope.cli.commands import find_command
from stepscope.cli.main import run
from stepscope.cli.words import read_words
from stepscope.formats.series import series_folder, tail_path
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, PlaneKind, TraceBuilder

# What the tutorials type is in test_tutorials.py.
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if path.parent.name != "tutorials"
)
RUNS = ("2026_01_01_00_00_00", "2026_01_02_00_00_00")

# What readers put their own names for.
LOGDIR = re.compile(
    r"/path/to/logdir|(?<![\w-])\$?(?:PATH|LOGDIR|BEFORE|AFTER|LATER)\b|(?<= )(?:workers[04]|baselines?|after)(?= |$)"
)
STANDS_FOR = {
    "HOST:PORT": "localhost:6009", "--budget FILE": "--budget budget.toml", '"$BUDGET"': "budget.toml", '"$LAST"': "2",
    '"$GITHUB_STEP_SUMMARY"': "summary.md", "FILE": "out.file", "SELECT ...": "SELECT 1", "CAUSE": "input",
}  # fmt: skip
WORKERS = re.compile(r"worker-0:6009(?:,worker-1:6009)?")

# Commands that serve until somebody ends them, or need a job that runs; their words are checked, and not run.
WAITING = ("open", "capture", "mcp", "serve", "trigger")

# What a command says that needs a store, a large session or several ranks; it is read, too.
NEEDING = ("://", "huge", "--balance-ranks", "report1.sqlite")

# Of the example package, which test_extending.py installs and runs.
OF_THE_TEMPLATE = "run.acme"

# What the snippets take for granted: something to train.
STAND_INS = """
import itertools, threading, time
from types import SimpleNamespace
import stepscope
def train_step(batch=None): sum(range(9999))
def train(): [train_step() for _ in range(3)]
def wait_until_it_is_slow(): time.sleep(0.3)
logdir, batches, data, args = "logs", iter(range(100)), None, None
model = SimpleNamespace(fit=lambda data, callbacks: None)
lightning = SimpleNamespace(Trainer=lambda callbacks: None)
transformers = SimpleNamespace(Trainer=lambda model, args, callbacks: None)
"""
# A job that trains all the time, for those who capture it.
JOB = """
def job():
    for i in itertools.count():
        with stepscope.step(i):
            train_step()
threading.Thread(target=job, daemon=True).start()
"""


# The profiles that the snippets of a page leave.
RECORDED = {"README.md": 1, "docs/getting-started.md": 1, "docs/capture.md": 4, "docs/capture-remote.md": 3}


def profile() -> bytes:
    """Steps of 10 ms: 4 ms wait for input and 5 ms compute."""
    ms = 10**9
    builder = TraceBuilder("worker", start_unix_ns=10**18)
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    for step in range(10):
        begin = step * 10 * ms
        line.event("train", begin, 10 * ms, EventKind.STEP_MARK, {"step_num": step, "_r": 1})
        line.event("IteratorGetNext:IteratorGetNext", begin, 4 * ms, EventKind.INPUT_WAIT)
        line.event("aten::cat", begin + 4 * ms, 5 * ms, EventKind.OP)
        line.event("train.py(9): collate", begin + 4 * ms, 5 * ms, EventKind.PYTHON_CALL)
    return write(builder.build())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with two sessions and a time series in `logs`, and a script to train with."""
    for name in RUNS:
        session = tmp_path / "logs" / "plugins" / "profile" / name
        session.mkdir(parents=True)
        (session / "worker.xplane.pb").write_bytes(profile())
    (tmp_path / "budget.toml").write_text('step_ms = "+5 %"')
    series = series_folder(tmp_path / "logs", RUNS[0])
    series.mkdir(parents=True)
    tail_path(series, "worker").write_text('{"unix_s": 1700000000, "steps": 10, "step_ms_median": 10}\n')
    (tmp_path / "package").mkdir()
    for script in ("train.py", "package/train.py"):
        (tmp_path / script).write_text(
            "import stepscope\nfor i in range(20):\n    with stepscope.step(i):\n        sum(range(9999))\n"
        )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands(page: str) -> list[str]:
    """The lines that call `stepscope`, without prompts and comments."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = re.findall(r"^(?:    (?:\$ )?| *- run: | *)(stepscope \w.*)", re.sub(r"\\\n *", "", text), re.MULTILINE)
    named = [line for line in re.findall(r"`(stepscope \w[^`\n]*)`", text) if LOGDIR.search(line)]
    return [re.split(r"\s+#|\s{2,}", line)[0] for line in [*lines, *named] if OF_THE_TEMPLATE not in line]


def snippets(page: str) -> list[str]:
    """The blocks that are marked as Python."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def is_only_read(command: str) -> bool:
    """True for a command that waits, or that needs a store, a cluster or a file of gigabytes."""
    return command.split()[1] in WAITING or any(word in command for word in NEEDING)


SCRIPTED = ("run", "prove")  # what runs a script
EVERY_COMMAND = sorted({command for page in PAGES for command in commands(page)})


def words_of(command: str) -> list[str]:
    sessions = iter(RUNS)
    line = re.sub(r"\bRUN\b", lambda _: next(sessions), LOGDIR.sub("logs", command))
    for theirs, ours in STANDS_FOR.items():
        line = line.replace(theirs, ours)
    return shlex.split(line.partition(" > ")[0])[1:]


def test_the_pages_hold_commands_and_snippets():
    assert len(EVERY_COMMAND) > 30
    assert sum(len(snippets(page)) for page in PAGES) > 8


@pytest.mark.parametrize(
    "command", [line for line in EVERY_COMMAND if line.split()[1] not in SCRIPTED and not is_only_read(line)]
)
def test_a_command_of_the_pages_succeeds(command, folder, capsys):
    before = set(folder.iterdir())
    status = run(words_of(command))

    told = capsys.readouterr()
    assert (status, "stepscope: [" in told.err) == (0, False), told.err
    assert told.out or set(folder.iterdir()) > before


@pytest.mark.parametrize("command", [line for line in EVERY_COMMAND if is_only_read(line)])
def test_a_command_that_waits_is_spelled_as_the_command_line_reads_it(command):
    name, *words = words_of(command)

    command = find_command(name)
    read_words(words, command.parameters, {}, command.passes_on)


@pytest.mark.parametrize("command", [line for line in EVERY_COMMAND if line.split()[1] == "run"])
def test_a_command_that_runs_a_script_leaves_its_profile(command, folder):
    done = run_command(["-m", "stepscope", *words_of(command)], folder)

    assert done.returncode == 0, done.stderr
    assert ("watched 19 steps" if "--watch" in command else "captured steps") in done.stderr


@pytest.mark.parametrize("command", [line for line in EVERY_COMMAND if line.split()[1] == "prove"])
def test_a_command_that_proves_says_what_a_short_script_leaves_open(command, folder):
    done = run_command(["-m", "stepscope", *words_of(command)], folder)

    assert done.returncode == 0, done.stderr
    assert re.search("nothing (was proved|measured)", done.stderr)


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)])
def test_the_python_of_a_page_runs_and_records_what_it_says(page, folder):
    with_keras = "profiler.keras" in "".join(snippets(page))
    if with_keras:
        require_packages("keras")
    program = STAND_INS + (JOB if page == "docs/capture-remote.md" else "") + "\n".join(snippets(page))
    program = LOGDIR.sub("logs", WORKERS.sub("localhost:6009", program)).replace("6009", str(free_port()))

    words = ["-c", program.replace("duration_ms=None", "duration_ms=300")]
    token = {"STEPSCOPE_CAPTURE_TOKEN": "a-token-of-the-tests"} if page == "docs/capture-remote.md" else None
    done = run_warm("tensorflow", words, folder) if with_keras else run_command(words, folder, token)

    assert done.returncode == 0, done.stderr
    assert len(list(folder.rglob("*.xplane.pb"))) - len(RUNS) == RECORDED.get(page, 0)


def test_the_script_for_continuous_integration_runs(folder):
    script = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/compare.md").read_text(), re.DOTALL | re.MULTILINE)[0]
    (folder / "logs").rename(folder / "baseline")
    tolerant = script.replace("--steps 30", "--steps 10").replace("--fail-above 10", "--fail-above 1e9")
    shell = f'stepscope() {{ "$PYTHON" -m stepscope "$@"; }}\n{tolerant}'

    done = subprocess.run(
        ["bash", "-c", shell], env=os.environ | {"PYTHON": sys.executable}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "Notes" in done.stdout
    assert (folder / "comparison.html").read_text().startswith("<!doctype html>")


def example(page: str, command: str) -> list[str]:
    """The lines that a page shows below a command, to the blank line or the `...` that ends them."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(f"    $ {command}\n")[2]
    shown = re.split(r"^    \.\.\.$|^(?=\S)", text, maxsplit=1, flags=re.MULTILINE)[0]
    return [line[4:] for line in shown.splitlines() if line.strip()]


def output(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert run(words) == 0
    return [line for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_the_readme_shows_what_a_summary_says(bottleneck_captures, capsys):
    shown = example("README.md", "stepscope summary logs")

    said = output(capsys, "summary", str(bottleneck_captures / "tf_fit_augment" / "slow"))

    assert [line.partition("; from ")[0] for line in said] == [line.partition("; from ")[0] for line in shown]
    assert [line.partition("; from ")[1] for line in said] == [line.partition("; from ")[1] for line in shown]


def test_the_page_on_comparing_shows_what_a_comparison_says(corpus, capsys):
    shown = example("docs/compare.md", "stepscope compare workers0 workers4 --top 6")
    sides = [str(corpus / f"torch-v100-resnet50-workers{number}") for number in (0, 4)]

    said = output(capsys, "compare", *sides, "--top", "6")[: len(shown)]

    assert [line.replace("torch-v100-resnet50-", "") for line in said] == shown


def test_the_budget_file_of_the_page_names_figures_of_a_recorded_job(corpus, tmp_path, capsys):
    page = (ROOT / "docs/gate.md").read_text()
    (tmp_path / "budget.toml").write_text(re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[0])
    job = str(corpus / "torch-v100-resnet50-workers0")

    assert run(["gate", job, job, "--budget", str(tmp_path / "budget.toml")]) == 1

    assert capsys.readouterr().err.startswith("stepscope: [over-budget]")
