"""Hosts analysed on real clusters: Ray with a head process, Dask with a scheduler and two workers, on this machine."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from ports import free_port
from waiting import await_until

import stepscope
from stepscope.engines.base import EngineError
from stepscope.report.export import to_json

sessions = pytest.importorskip("bench.sessions", reason="the bench is in the checkout alone")

BIN = Path(sys.executable).parent


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten hosts, of which one cannot be read."""
    folder = tmp_path_factory.mktemp("session")
    sessions.make_session(folder, sessions.Scenario(hosts=10, straggler=4, damaged=1))
    return Path(folder)


@pytest.fixture(scope="module")
def ray_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Ray cluster that runs already and demands a token, as Ray does unless told otherwise.

    Ray keeps one cluster a machine, so `ray stop` would end others' as well.
    """
    if find_spec("ray") is None:
        pytest.skip("needs Ray")  # which reads its variables when it is imported
    port = free_port()
    command = [BIN / "ray", "start", "--head", f"--port={port}", "--num-cpus=2", "--include-dashboard=false"]
    token = tmp_path_factory.mktemp("ray") / "token"
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # short: sockets lie below it
    token.write_text(secrets.token_hex(32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
        patch.setenv("RAY_AUTH_MODE", "token")
        head = subprocess.Popen(
            [*command, "--object-store-memory=100000000", "--disable-usage-stats", "--block", f"--temp-dir={folder}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        await_until(lambda: answers(port), 120, "the head of Ray")
        yield f"127.0.0.1:{port}"
        import ray

        ray.shutdown()
        os.killpg(head.pid, signal.SIGKILL)  # asked to end, it would take half a minute
        head.wait()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def dask_address() -> Iterator[str]:
    """A Dask scheduler with two workers, each a process of its own."""
    pytest.importorskip("distributed")
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    parts = [["dask", "scheduler", "--host", "127.0.0.1", "--port", str(port), "--dashboard-address", ":0"]]
    parts += [["dask", "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]] * 2
    running = [_start(words) for words in parts]
    from distributed import Client

    await_until(lambda: answers(port), 120, "the scheduler")
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=600)
    yield address
    for process in reversed(running):
        process.terminate()
        process.wait(60)


def _start(words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([BIN / words[0], *words[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture(params=["ray", "dask"])
def engine(request: pytest.FixtureRequest) -> str:
    """An engine as users write it, with the address of its cluster."""
    return f"{request.param}={request.getfixturevalue(f'{request.param}_address')}"


def test_a_cluster_gives_the_same_answer_as_this_process(
    logdir: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    here = stepscope.load(logdir).overview()
    said: list[str] = []
    there = stepscope.load(logdir, engine=engine, progress=said.append).overview()
    assert to_json(there) == to_json(here)
    assert len(there.hosts) == 9
    assert any(sentence.startswith("analysed 9 of 10 hosts, 1 failed") for sentence in said)


def test_a_killed_worker_process_costs_no_host(logdir: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    expected = to_json(stepscope.load(logdir).distributed())
    killed: list[int] = []

    def kill(sentence: str) -> None:
        if not killed:
            killed.extend(_children_at_work())
            for child in killed:
                os.kill(child, signal.SIGKILL)

    assert to_json(stepscope.load(logdir, engine=engine, progress=kill).distributed()) == expected
    assert killed


def _children_at_work() -> list[int]:
    """Processes on this machine that do tasks; those of a cluster are started by its workers."""
    found = []
    for words in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            ours = f"PYTEST_XDIST_WORKER={os.environ.get('PYTEST_XDIST_WORKER', '')}".encode()
            if b"stepscope.engines.child" in words.read_bytes() and ours in (words.parent / "environ").read_bytes():
                found.append(int(words.parent.name))
        except OSError:
            continue
    return found


def test_workers_of_another_version_are_refused_with_both_named(
    logdir: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    monkeypatch.setattr(stepscope, "__version__", "99.1")
    with pytest.raises(EngineError) as raised:
        stepscope.load(logdir, engine=engine).overview()
    monkeypatch.undo()
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    assert f"have Stepscope {stepscope.__version__} on {python}" in str(raised.value)
    assert f"this process has Stepscope 99.1 on {python}" in str(raised.value)


def test_workers_share_the_cache(logdir: Path, engine: str, cache_dir: Path) -> None:
    stepscope.load(logdir, engine=engine).overview()
    profile = stepscope.load(logdir)
    assert len(profile.overview().hosts) == 9
    assert profile.events_read == 0


def test_a_killed_dask_worker_costs_no_host(logdir: Path, dask_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker itself, not only the process that does its tasks."""
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    expected = to_json(stepscope.load(logdir).pod_viewer())
    third = _start(["dask", "worker", dask_address, "--nthreads", "1", "--no-nanny", "--no-dashboard"])
    from distributed import Client

    with Client(dask_address, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=600)
    found = stepscope.load(logdir, engine=f"dask={dask_address}", progress=lambda _: third.kill()).pod_viewer()
    third.wait()
    assert to_json(found) == expected


def test_one_process_uses_one_ray_cluster(logdir: Path, ray_address: str) -> None:
    stepscope.load(logdir, engine=f"ray={ray_address}").steps()
    with pytest.raises(EngineError, match=r"connected to the Ray cluster at .* and cannot use 127.0.0.1:1 as well"):
        stepscope.load(logdir, engine="ray=127.0.0.1:1").overview()


def test_a_dask_engine_without_an_address_makes_a_cluster(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    assert to_json(stepscope.load(logdir, engine="dask").steps()) == to_json(stepscope.load(logdir).steps())


LOCAL_RAY = """
import sys, stepscope
print(len(stepscope.load(sys.argv[1], engine="ray").overview().hosts))
"""


def test_a_ray_engine_without_an_address_uses_the_cluster_of_the_environment(logdir: Path, ray_address: str) -> None:
    environment = os.environ | {"RAY_ADDRESS": ray_address, "STEPSCOPE_CACHE": "off"}
    del environment["RAY_AUTH_MODE"]  # the engine finds out that there is a token
    done = subprocess.run(
        [sys.executable, "-c", LOCAL_RAY, str(logdir)], capture_output=True, text=True, timeout=600, env=environment
    )
    assert done.stdout == "9\n", done.stderr


REMEMBERED_RAY = """
import functools, sys, stepscope
say = functools.partial(print, file=sys.stderr)
print(len(stepscope.load(sys.argv[1], engine="ray", progress=say).overview().hosts))
"""


def test_a_cluster_that_this_machine_remembers_and_that_is_gone_is_found_out(logdir: Path) -> None:
    """Ray's own search for it takes minutes.  A cluster is started instead, and nothing is left of it."""
    pytest.importorskip("ray")
    place = Path(tempfile.mkdtemp(prefix="r-", dir="/tmp"))
    (place / "ray").mkdir()
    remembered, gone = place / "ray" / "ray_current_cluster", f"127.0.0.1:{free_port()}"
    remembered.write_text(gone)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"TMPDIR": str(place), "STEPSCOPE_CACHE": "off", "RAY_USAGE_STATS_ENABLED": "0"}

    done = subprocess.run(
        [sys.executable, "-c", REMEMBERED_RAY, str(logdir)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
    )

    assert done.stdout == "9\n", done.stderr
    assert done.stderr.splitlines()[:3] == [
        f"connecting to Ray at {gone}",
        f"Ray's last cluster of this machine, {gone}, does not answer",
        "starting a Ray cluster on this machine",
    ]
    assert remembered.read_text() == gone
    assert [path.name for path in place.iterdir()] == ["ray"]
    shutil.rmtree(place)


def test_a_cluster_that_is_not_there(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens: the errors say so, and how one is started.  In a process without a Ray connection."""
    port = free_port()
    pytest.importorskip("distributed")
    with pytest.raises(EngineError, match=rf"no Dask scheduler answers at tcp://127.0.0.1:{port}.*dask scheduler"):
        stepscope.load(logdir, engine=f"dask=tcp://127.0.0.1:{port}").overview()
    command = [sys.executable, "-m", "stepscope", "overview", str(logdir), "--engine", f"ray=127.0.0.1:{port}"]
    pytest.importorskip("ray")
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    assert f"there is no Ray cluster at 127.0.0.1:{port} that can be used" in done.stderr
    assert "ray start --head" in done.stderr


@pytest.mark.parametrize(("greeting", "says"), [(b"", "does not answer"), (b"SSH-2.0-OpenSSH_9", "another protocol")])
def test_what_listens_and_is_no_dask_scheduler_is_found_out(
    greeting: bytes, says: str, logdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask itself would wait for it without an end."""
    pytest.importorskip("distributed")
    monkeypatch.setattr("stepscope.engines.base.CONNECT_SECONDS", 1 if not greeting else 60)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        ended = threading.Event()
        threading.Thread(target=_greet, args=(other, greeting, ended), daemon=True).start()
        with pytest.raises(EngineError, match=f"no Dask scheduler answers at {address}: .*{says}"):
            stepscope.load(logdir, engine=f"dask={address}").overview()
        ended.set()


def _greet(listener: socket.socket, greeting: bytes, ended: threading.Event) -> None:
    connection, _ = listener.accept()
    connection.sendall(greeting)
    ended.wait(60)
    connection.close()


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("dask", "distributed")])
def test_an_engine_that_is_not_installed_names_the_command_that_installs_it(
    logdir: Path, name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EngineError, match=rf'not installed; pip install "stepscope\[{name}\]"'):
        stepscope.load(logdir, engine=name).overview()


def test_importing_stepscope_imports_no_engine() -> None:
    code = "import sys, stepscope.api, stepscope.cli.main; print({'ray', 'dask', 'distributed'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
