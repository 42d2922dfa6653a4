"""`stepscope serve --warm`: commands are answered from memory, with the bytes that they would write themselves."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.waiting import await_until

from stepscope.cli import start
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, PlaneKind, TraceBuilder

MS = 10**9
PATIENCE_S = 120

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says whose question it is")


def store_steps(folder: Path, count: int) -> Path:
    """A profile of some steps of 10 ms with an op each."""
    builder = TraceBuilder("worker", start_unix_ns=10**18)
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    for step in range(count):
        line.event("train", step * 10 * MS, 10 * MS, EventKind.STEP_MARK, {"step_num": step, "_r": 1})
        line.event("dense/MatMul:MatMul", step * 10 * MS, 5 * MS, EventKind.OP)
    folder.mkdir(exist_ok=True)
    file = folder / "worker.xplane.pb"
    file.write_bytes(write(builder.build()))
    return file


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a profile of three steps, seen from the folder above; and a temporary folder with a short name."""
    short = tempfile.mkdtemp(prefix="warm", dir="/tmp")
    monkeypatch.setenv("TMPDIR", short)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    store_steps(tmp_path / "logs", 3)
    yield tmp_path / "logs"
    shutil.rmtree(short)


@pytest.fixture
def server(logs: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that keeps that folder."""
    process = start_server("-m", "stepscope", "serve", "--warm", str(logs))
    yield process
    process.kill()
    process.wait()


def start_server(*words: str) -> subprocess.Popen[bytes]:
    """A Python process, once it listens."""
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    await_until(lambda: is_listening() or process.poll() is not None, PATIENCE_S, "the server")
    assert process.poll() is None
    return process


def is_listening() -> bool:
    """Whether there is a socket that somebody may connect to."""
    path = start.socket_path()
    return path is not None and Path(path).exists()


def run_alone(*words: str) -> tuple[bytes, bytes, int]:
    """Stdout, stderr and status of a command in a process of its own."""
    command = [sys.executable, "-c", "from stepscope.cli.main import main; main()", *words]
    done = subprocess.run(command, capture_output=True, check=False)
    return done.stdout, done.stderr, done.returncode


def ask(capfdbinary: pytest.CaptureFixture[bytes], *words: str) -> tuple[bytes, bytes, int | None]:
    """What the server writes, and the status; None if the server leaves the command to us."""
    capfdbinary.readouterr()
    status = await_until(lambda: ask_again(words), PATIENCE_S, "the server's answer")
    said = capfdbinary.readouterr()
    return said.out, said.err, status[0]


def ask_again(words: tuple[str, ...]) -> tuple[int | None] | None:
    """The status in a tuple; None if it is not there, perhaps since the server is busy."""
    status = start.ask(words)
    return None if status is None else (status,)


@pytest.mark.parametrize(
    "words",
    [
        ["summary", "logs"],
        ["overview", "logs", "--format", "json"],
        ["op-stats", "logs/worker.xplane.pb", "--top", "1"],
        ["op_stats", "logs", "--format", "csv"],
        ["steps", "logs", "--steps", "1-2", "--format", "html"],
        ["overview", "logs", "--run", "of-another-name"],
    ],
)
def test_the_answer_has_the_bytes_and_the_status_of_the_command_itself(server, capfdbinary, words):
    alone = run_alone(*words)

    assert ask(capfdbinary, *words) == alone
    assert ask(capfdbinary, *words) == alone  # from what the first answer left in memory
    assert any(alone)


def test_a_file_that_has_changed_is_read_again(server, logs, capfdbinary):
    before = ask(capfdbinary, "overview", "logs", "--format", "json")
    store_steps(logs, 5)

    after = ask(capfdbinary, "overview", "logs", "--format", "json")
    assert after != before
    assert after == run_alone("overview", "logs", "--format", "json")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["overview"],
        ["overview", "--no-such-option", "logs"],
        ["overview", "--help"],
        ["overview", "elsewhere"],
        ["overview", "-"],
        ["overview", "gs://logs"],
        ["overview", "logs", "--output", "made.txt"],
        ["overview", "logs", "--memory", "4GB"],
        ["sql", "logs", "SELECT 1"],
    ],
)
def test_other_commands_run_where_they_are_called(server, logs, capfdbinary, words):
    store_steps(logs.parent / "elsewhere", 3)
    ask(capfdbinary, "summary", "logs")  # so that it is not busy

    assert start.ask(words) is None
    assert capfdbinary.readouterr() == (b"", b"")


def test_a_caller_with_other_settings_is_not_answered(server, capfdbinary, monkeypatch):
    ask(capfdbinary, "summary", "logs")
    monkeypatch.setenv("STEPSCOPE_DEVICES", "mine.csv")

    assert start.ask(["summary", "logs"]) is None


def test_a_server_that_died_is_no_error(server, capfdbinary):
    alone = run_alone("summary", "logs")
    server.send_signal(signal.SIGKILL)
    server.wait()

    assert is_listening()  # its socket is left
    assert start.ask(["summary", "logs"]) is None
    done = subprocess.run([sys.executable, "-m", "stepscope", "summary", "logs"], capture_output=True, check=True)
    assert (done.stdout, done.stderr, 0) == alone
    with start_server("-m", "stepscope", "serve", "--warm", "logs") as next_one:  # takes the place
        ask(capfdbinary, "summary", "logs")
        next_one.kill()


def test_a_socket_of_another_user_is_not_spoken_to(server, capfdbinary, monkeypatch):
    ask(capfdbinary, "summary", "logs")
    theirs = Path(start.socket_path() or "").parent
    stranger = os.getuid() + 1
    (theirs.parent / f"stepscope-{stranger}").symlink_to(theirs)
    monkeypatch.setattr(os, "getuid", lambda: stranger)

    assert start.ask(["summary", "logs"]) is None


def test_nobody_else_can_reach_the_socket(server, logs, capfdbinary):
    path = Path(start.socket_path() or "")
    ask(capfdbinary, "summary", "logs")

    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o600, 0o700]
    server.terminate()
    assert server.wait() == 0
    assert not path.exists()


def test_there_is_one_server_for_a_user(server, logs):
    _, said, status = run_alone("serve", "--warm", str(logs))

    assert (status, b"runs already" in said) == (2, True)


def test_a_server_that_nobody_asks_ends(logs):
    program = "from stepscope.cli import start, warm; warm.WarmServer(['logs'], start.socket_path(), 0.5).run()"
    process = start_server("-c", program)

    await_until(lambda: process.poll() is not None, PATIENCE_S, "the end of the server")
    assert process.returncode == 0
    assert not is_listening()


def test_a_page_is_not_served_as_well(logs):
    _, said, status = run_alone("serve", "--warm", str(logs), "--port", "0")

    assert (status, b"--warm" in said) == (2, True)
