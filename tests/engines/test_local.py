"""Hosts analysed by processes of this machine: the same answers, and what happens when a process is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import await_until

import stepscope
from stepscope.analysis.registry import TOOLS, tool_named
from stepscope.engines.budget import parse_size
from stepscope.engines.choice import EngineChoice, parse_engine
from stepscope.engines.folding import Fold, Piece
from stepscope.engines.host_work import encode_partial
from stepscope.engines.schedule import Progress, cut_tasks
from stepscope.engines.session_work import limit_seconds
from stepscope.errors import UnreadableError, UsageError
from stepscope.report.export import to_json

sessions = pytest.importorskip("bench.sessions", reason="the bench is in the checkout alone")


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eleven hosts, of which two cannot be read."""
    folder = tmp_path_factory.mktemp("session")
    sessions.make_session(folder, sessions.Scenario(hosts=11, straggler=4, damaged=2, skew_ms=1))
    return Path(folder)


def children_of(process: int) -> list[int]:
    """The child processes at work for a process."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            words = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == process and b"stepscope.engines.child" in words:
            found.append(int(status.parent.name))
    return found


def is_running(process: int) -> bool:
    """False for one that has ended, even if nobody has asked for its status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("tool", ["overview", "op-stats", "kernel-stats", "op-shapes", "distributed", "pod-viewer"])
def test_processes_give_the_same_answer_as_this_process(logdir: Path, tool: str) -> None:
    here = stepscope.load(logdir).report(tool)
    assert to_json(stepscope.load(logdir, engine="local=2").report(tool)) == to_json(here)
    assert len(here.hosts) == 9


def test_a_selection_of_steps_is_analysed_there_too(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    there, here = stepscope.load(logdir, engine="local=2"), stepscope.load(logdir)
    for steps in ("1-2", "all"):
        assert to_json(there.overview(steps=steps)) == to_json(here.overview(steps=steps))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_condensed_partials_merge_to_the_same_report(logdir: Path, tool: object) -> None:
    chosen = tool_named(str(getattr(tool, "name", "")))
    profile = stepscope.load(logdir)
    names = [name for name in profile.hosts if name not in ("host0000", "host0010")][:6]
    readable = []
    for name in names:
        try:
            readable.append(profile.analyse(chosen.name, name))
        except UnreadableError:
            continue
    expected = to_json(chosen.merge(readable))

    nested = chosen.combine_hosts([*chosen.combine_hosts(readable[:2]), *chosen.combine_hosts(readable[2:])])
    assert to_json(chosen.merge(nested)) == expected


def test_partials_are_folded_in_the_order_of_the_hosts(logdir: Path) -> None:
    tool = tool_named("overview")
    profile = stepscope.load(logdir)
    parts = [profile.analyse("overview", name) for name in profile.hosts if _is_readable(profile, name)]
    fold = Fold(tool)
    fold.add(3, Piece(1, [parts[2]]))
    fold.add(1, Piece(2, encode_partial(parts[1:2])))  # of two hosts, one failed
    assert fold.partials == []
    fold.add(0, Piece(1, parts[:1]))
    assert to_json(tool.merge(fold.partials)) == to_json(tool.merge(parts[:3]))


def _is_readable(profile: stepscope.api.LoadedProfile, host: str) -> bool:
    try:
        profile.trace(host)
    except UnreadableError:
        return False
    return True


def test_killed_processes_cost_no_host(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time a task ends, every process is killed; what they were at is done again."""
    expected = to_json(stepscope.load(logdir).overview())
    killed: list[int] = []

    def kill(sentence: str) -> None:
        if len(killed) < 4:
            for child in children_of(os.getpid()):
                os.kill(child, signal.SIGKILL)
                killed.append(child)

    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    found = stepscope.load(logdir, engine="local=2", progress=kill).overview()
    assert killed
    assert to_json(found) == expected


def test_a_host_that_takes_too_long_is_left_out_and_named(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stepscope.load(logdir, host="host0005").overview()  # the only one that needs no time
    monkeypatch.setenv("STEPSCOPE_TASK_SECONDS", "0")
    report = stepscope.load(logdir, engine="local=2").overview()
    assert report.hosts == ("host0005",)
    lost = [warning for warning in report.warnings if warning.startswith("[lost]")]
    assert len(lost) == 10
    assert "host0000.xplane.pb: left out after 2 tries: it took longer than 0 s" in lost[0]


def test_a_host_that_takes_too_much_memory_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.make_session(tmp_path, sessions.Scenario(hosts=3))
    large = sessions.repeat_steps(sessions.drawn_rank(kernels=400), 600)
    [path] = tmp_path.rglob("host0001.xplane.pb")
    path.write_bytes(sessions.write(large))
    monkeypatch.setattr("stepscope.engines.session_work.SessionWork._memory_of_child", lambda *_: 60 << 20)
    report = stepscope.load(tmp_path, engine="local=1").overview()
    assert report.hosts == ("host0000", "host0002")
    [lost] = [warning for warning in report.warnings if warning.startswith("[lost]")]
    assert "host0001.xplane.pb: left out after 2 tries: it took 0." in lost


@pytest.mark.parametrize("text", ["ten", "-1", "nan", "inf"])
def test_a_limit_that_is_not_a_time_is_wrong_usage(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_TASK_SECONDS", text)
    with pytest.raises(UsageError, match=f"STEPSCOPE_TASK_SECONDS is '{text}'"):
        limit_seconds([])


def test_nothing_left_is_an_error_that_names_the_hosts(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_TASK_SECONDS", "0")
    with pytest.raises(UnreadableError, match=r"none of the 11 hosts can be read.*host0000.*it took longer than 0 s"):
        stepscope.load(logdir, engine="local=2").overview()


JOB = """
import os, sys, stepscope
def tell(sentence):
    print(sentence, flush=True)
stepscope.load(sys.argv[1], engine="local=2", progress=tell).prepare(["overview", "op-stats", "op-shapes"])
"""


def test_interrupting_ends_the_processes(tmp_path: Path) -> None:
    sessions.make_session(tmp_path, sessions.Scenario(hosts=40, steps=12))
    job = subprocess.Popen(
        [sys.executable, "-c", JOB, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert job.stdout is not None
    assert "analysed" in job.stdout.readline()
    children = children_of(job.pid)
    job.send_signal(signal.SIGINT)
    _, errors = job.communicate(timeout=600)
    assert "KeyboardInterrupt" in errors
    assert children
    await_until(lambda: not any(map(is_running, children)), 60, "the children to end")


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    sessions.make_session(tmp_path, sessions.Scenario(hosts=40, steps=12))
    job = subprocess.Popen([sys.executable, "-c", JOB, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert job.stdout is not None
    job.stdout.readline()
    children = children_of(job.pid)
    job.kill()
    job.communicate()
    assert children
    await_until(lambda: not any(map(is_running, children)), 60, "the children to end")


def test_a_script_needs_no_main_guard(logdir: Path, tmp_path: Path) -> None:
    """A process that ran the user's script again would never end."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import stepscope\nprint(len(stepscope.load({str(logdir)!r}, engine='local=2').overview().hosts))"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == "9\n"


# ---- what users write ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("local", EngineChoice("local")),
        ("local=3", EngineChoice("local", "3")),
        ("ray=10.0.0.1:6379", EngineChoice("ray", "10.0.0.1:6379")),
        ("dask=tcp://scheduler:8786", EngineChoice("dask", "tcp://scheduler:8786")),
    ],
)
def test_engines_as_users_write_them(text: str, choice: EngineChoice) -> None:
    assert parse_engine(text) == choice


@pytest.mark.parametrize("text", ["", "spark", "local=0", "local=many", "Ray"])
def test_other_engines_are_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(UsageError, match=r"local=PROCESSES|number of processes"):
        parse_engine(text)


@pytest.mark.parametrize(
    ("text", "size"), [("4GB", 4 * 10**9), ("1.5GiB", 3 << 29), ("128 MiB", 1 << 27), ("64000k", 64_000_000)]
)
def test_sizes_as_users_write_them(text: str, size: int) -> None:
    if size < 64 << 20:
        with pytest.raises(UsageError, match="too little memory; at least 64 MiB"):
            parse_size(text)
    else:
        assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "4 XB", "-1GB", "1e9", "12"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="memory"):
        parse_size(text)


def test_the_environment_chooses_an_engine_and_an_argument_overrides_it(
    logdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_ENGINE", "nonsense")
    with pytest.raises(UsageError, match="no engine named 'nonsense'"):
        stepscope.load(logdir)
    stepscope.load(logdir, engine="local")


def test_progress_says_hosts_bytes_rate_and_time_left() -> None:
    state = Progress(hosts=100, nbytes=1_000_000_000, done=40, failed=2, done_bytes=500_000_000)
    state.started = time.monotonic() - 10
    assert state.sentence().startswith("analysed 40 of 100 hosts, 2 failed, 500 of 1,000 MB, 5")
    assert state.sentence().endswith(" s left")


@pytest.mark.parametrize(("hosts", "slots", "tasks"), [(3, 8, 3), (16, 2, 8), (1000, 2, 125), (1000, 64, 334)])
def test_tasks_keep_all_slots_busy(hosts: int, slots: int, tasks: int, one_task: Callable[[int], object]) -> None:
    cut = cut_tasks([one_task(hosts)], slots)  # type: ignore[list-item]
    assert len(cut) == tasks
    assert [task.first for task in cut] == sorted({task.first for task in cut})
    assert sum(len(task.files) for task in cut) == hosts


@pytest.fixture
def one_task() -> Callable[[int], object]:
    from stepscope.cache import CacheOptions
    from stepscope.engines.host_work import KnownFile
    from stepscope.engines.task import Task
    from stepscope.formats import store
    from stepscope.formats.base import FORMATS
    from stepscope.formats.session import HostFile

    def make(hosts: int) -> Task:
        files = tuple(HostFile(f"h{at}", f"/h{at}", FORMATS[0], 1) for at in range(hosts))
        known = (KnownFile(store.Identity("/h", 1, 1, 1, None, 1), None),) * hosts
        return Task(0, files, known, ("steps",), False, None, CacheOptions(None), "here", None, 1.0)

    return make
