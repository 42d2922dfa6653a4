"""Captures over the network, of real jobs: our client from every server, the frameworks' clients from ours."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
import remote_jobs
from places import HELPERS
from program_runs import step_numbers
from remote_jobs import Job, running_jobs
from waiting import await_until
from warm_python import WARM

import stepscope
from stepscope import ProfilerOptions
from stepscope.capture import client, report, server, tracers
from stepscope.capture.client import CaptureRequest, Cause, Phase
from stepscope.capture.remote import messages, reach, service
from stepscope.errors import CaptureError

FRAMEWORKS = [name for name in ("torch", "jax", "tensorflow") if importlib.util.find_spec(name)]
THEIRS = [name for name in ("jax", "tensorflow") if name in FRAMEWORKS]
SERVERS = [("plain", "ours"), *((name, "ours") for name in FRAMEWORKS), *((name, "theirs") for name in THEIRS)]
WINDOW_MS = 400


@pytest.fixture(scope="module")
def jobs(tmp_path_factory) -> Iterator[dict[str, Job]]:
    """One job per framework, and one without."""
    with running_jobs(tmp_path_factory.mktemp("jobs"), ["plain", *FRAMEWORKS]) as started:
        yield started


@pytest.fixture(autouse=True)
def no_error_is_left():
    report.forget()
    yield
    server.stop()


@pytest.fixture
def closed_port() -> Iterator[int]:
    with remote_jobs.closed_port() as port:
        yield port


def captured(logdir: Path | str, *workers: str, **facts: Any) -> client.CaptureOutcome:
    return client.capture_workers(CaptureRequest(workers, logdir, **{"duration_ms": WINDOW_MS, **facts}))


# -- our client, every server ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "whose"), SERVERS)
def test_steps_of_a_capture_are_those_of_the_loop(jobs, tmp_path, name, whose):
    for _ in range(3):  # of a busy machine, one of these windows begins and ends in time
        outcome = captured(tmp_path, jobs[name].address(whose))
        (worker,) = outcome.workers
        assert (worker.phase, worker.cause, worker.detail) == (Phase.SAVED, None, "")
        numbers = [int(row["step"]) for row in stepscope.load(worker.path).steps().to_dict()["rows"]]
        own_ms = jobs[name].durations_ms(numbers)
        window_ms = sum(most for _, most in own_ms)
        if WINDOW_MS / 4 < window_ms < WINDOW_MS * 1.5:
            break

    assert worker.path == f"{outcome.run}/localhost_{jobs[name].ports[whose]}.xplane.pb"
    assert Path(outcome.run).parent == tmp_path / "plugins" / "profile"
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert WINDOW_MS / 4 < window_ms < WINDOW_MS * 1.5
    rows = stepscope.load(worker.path).steps().to_dict()["rows"]
    inner = slice(1, -1) if name == "torch" else slice(None)  # it also keeps the steps that the window's ends cut
    pairs = zip((row["duration_ms"] for row in rows[inner]), own_ms[inner], strict=True)
    assert [pair for pair in pairs if not pair[1][0] * 0.99 <= pair[0] <= pair[1][1] * 1.01] == []


def test_many_workers_at_once_and_one_is_dead(jobs, tmp_path, closed_port):
    addresses = [job.address() for job in jobs.values()]
    told: list[client.WorkerStatus] = []

    request = CaptureRequest([*addresses, f"localhost:{closed_port}"], tmp_path, WINDOW_MS, attempts=2)
    outcome = client.capture_workers(request, told.append)

    assert [worker.phase for worker in outcome.workers] == [Phase.SAVED] * len(addresses) + [Phase.FAILED]
    assert outcome.reasons().startswith(f"localhost:{closed_port}: connection refused: nothing listens on port")
    assert len({worker.path for worker in outcome.saved}) == len(addresses)
    assert {str(Path(worker.path).parent) for worker in outcome.saved} == {outcome.run}
    of_first = [(status.phase, status.attempt) for status in told if status.address == addresses[0]]
    assert of_first == [(Phase.CONNECTING, 1), (Phase.RECORDING, 1), (Phase.RECEIVING, 1), (Phase.SAVED, 1)]
    of_dead = [(status.phase, status.attempt) for status in told if status.address == f"localhost:{closed_port}"]
    assert of_dead == [(Phase.CONNECTING, 1), (Phase.CONNECTING, 2), (Phase.CONNECTING, 2), (Phase.FAILED, 2)]


def test_a_logdir_on_another_machine_gets_the_profiles(jobs, tmp_path, monkeypatch):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    outcome = captured("memory://remote/logs", jobs["plain"].address())

    assert outcome.run.startswith("memory://remote/logs/plugins/profile/")
    assert outcome.saved[0].path == f"{outcome.run}/localhost_{jobs['plain'].ports['ours']}.xplane.pb"
    assert memory.size(outcome.saved[0].path) == outcome.saved[0].size_bytes
    assert list(tmp_path.iterdir()) == []


def test_trace_raises_if_no_worker_gives_a_profile(tmp_path, closed_port):
    with pytest.raises(CaptureError, match=f"no worker sent a profile: localhost:{closed_port}: connection refused"):
        stepscope.client.trace(f"localhost:{closed_port}", str(tmp_path), 200, num_tracing_attempts=1)

    assert not list(tmp_path.rglob("plugins/profile/*"))


# -- the frameworks' clients, our server -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def their_clients(jobs, tmp_path_factory) -> dict[str, Any]:
    """What TensorFlow's client and XProf got from every server of ours."""
    pytest.importorskip("xprof")
    if "tensorflow" not in FRAMEWORKS:
        pytest.skip("needs TensorFlow's client")
    logdir = tmp_path_factory.mktemp("their_clients")
    addresses = [job.address() for job in jobs.values()]
    words = [str(HELPERS / "remote_clients.py"), str(logdir), *addresses]
    done = WARM.run("tensorflow", words, os.environ, timeout=300)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_tensorflows_client_captures_every_framework_from_our_server(jobs, their_clients):
    events = their_clients["tensorflow_events"]

    assert set(events) == {f"plugins/profile/localhost_{job.ports['ours']}.xplane.pb" for job in jobs.values()}
    assert min(events.values()) > 5


def test_xprofs_capture_button_captures_from_our_server(jobs, their_clients):
    assert their_clients["xprof"] == {"result": "Capture profile successfully. Please refresh."}
    ((name, events),) = their_clients["xprof_events"].items()
    assert name == f"plugins/profile/localhost_{jobs['plain'].ports['ours']}.xplane.pb"
    assert events > 5


def test_tensorflows_client_monitors_through_our_server(their_clients):
    assert "CPU: " in their_clients["monitor"]
    assert "Step time: " in their_clients["monitor"]


def test_our_messages_have_the_fields_of_tensorflows(their_clients):
    assert their_clients["our_fields"] == their_clients["their_fields"]


# -- ending, waiting, asking again -------------------------------------------------------------------------------------


@contextmanager
def long_capture(address: str, logdir: Path) -> Iterator[Any]:
    """A capture of five minutes that has begun; ended early when the block ends, and then a future of its outcome."""
    cancel, recording = threading.Event(), threading.Event()

    def note(status: client.WorkerStatus) -> None:
        if status.phase != Phase.CONNECTING:
            recording.set()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.capture_workers, CaptureRequest([address], logdir, 300_000), note, cancel)
        try:
            assert recording.wait(120)
            yield running
        finally:
            cancel.set()


@pytest.mark.parametrize(("name", "whose"), [("plain", "ours"), *((name, "theirs") for name in THEIRS)])
def test_a_second_capture_is_told_of_the_first_which_can_be_ended_early(jobs, tmp_path, name, whose):
    address = jobs[name].address(whose)

    with long_capture(address, tmp_path) as first:
        second = _until_busy(tmp_path, address)

    assert "busy with another capture" in second.workers[0].detail
    assert first.result().cancelled
    (worker,) = first.result().workers
    assert (worker.phase, worker.ended_early) == (Phase.SAVED, True)
    assert captured(tmp_path, address).saved  # the server is free again


def _until_busy(logdir: Path, address: str) -> client.CaptureOutcome:
    """The request of the first capture may still be on its way when we are told that it was sent."""
    for _ in range(200):
        outcome = captured(logdir, address, duration_ms=1, attempts=1)
        if outcome.workers[0].cause == Cause.BUSY:
            return outcome
    raise AssertionError(outcome)


def test_a_capture_without_events_is_repeated_and_then_says_why(jobs, tmp_path):
    if "tensorflow" not in FRAMEWORKS:
        pytest.skip("needs TensorFlow's server")
    address = jobs["tensorflow"].address("theirs")

    outcome = captured(tmp_path, address, duration_ms=50, attempts=2, options=ProfilerOptions(host_tracer_level=0))

    (worker,) = outcome.workers
    assert (worker.cause, worker.attempt) == (Cause.EMPTY, 2)
    assert "without any event; host_tracer_level is 0" in worker.detail
    assert not list(tmp_path.rglob("*.xplane.pb"))


def test_a_job_that_does_nothing_gives_no_profile(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPSCOPE_TRACER", "host")
    monkeypatch.setattr(tracers, "PROBES", ())  # samples of stacks show where a job waits

    outcome = captured(tmp_path, f"localhost:{server.start(0)}", duration_ms=50, attempts=1)

    assert outcome.workers[0].cause == Cause.EMPTY
    assert "it may be waiting, compiling or ending; capture longer" in outcome.workers[0].detail


def test_a_capture_that_is_cancelled_before_it_begins_asks_nobody(jobs, tmp_path):
    cancel = threading.Event()
    cancel.set()

    outcome = client.capture_workers(CaptureRequest([jobs["plain"].address()], tmp_path), cancel=cancel)

    assert outcome.cancelled
    assert outcome.workers[0].cause == Cause.CANCELLED


def test_an_exception_in_on_progress_ends_the_capture_at_once(jobs, tmp_path):
    def refuse(status: client.WorkerStatus) -> None:
        if status.phase == Phase.RECORDING:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        client.capture_workers(CaptureRequest([jobs["plain"].address()], tmp_path, 60_000), refuse)

    assert not list(tmp_path.rglob("*.xplane.pb"))


# -- monitoring and continuous profiling -------------------------------------------------------------------------------


def test_monitor_tells_the_time_of_steps(jobs):
    text = stepscope.client.monitor(jobs["plain"].address(), 1000, level=2)

    mean_ms = float(text.partition("Step time: ")[2].split()[0])
    assert 10 < mean_ms < 1000


@pytest.mark.parametrize("name", THEIRS)
def test_monitor_says_that_other_servers_have_none(jobs, name):
    with pytest.raises(CaptureError, match="this server does not support monitoring"):
        stepscope.client.monitor(jobs[name].address("theirs"), 100)


@pytest.mark.parametrize(("name", "whose"), SERVERS)
def test_continuous_profiling_hands_out_snapshots(jobs, tmp_path, name, whose):
    address = jobs[name].address(whose)
    with stepscope.client.ContinuousProfiling(address, tmp_path) as profiling:
        paths = []
        for _ in range(2):
            _wait_for_steps(jobs[name], 10)
            paths.append(profiling.snapshot())

    assert len({path.parent for path in paths}) == 2
    first, second = (step_numbers(path) for path in paths)
    assert len(first) >= 5
    assert len(second) >= 5
    assert first[-1] <= second[0]  # PyTorch keeps both parts of a step that is cut
    with service.open_channel(address) as channel, pytest.raises(grpc.RpcError) as refused:
        _call(channel, service.GET_SNAPSHOT)
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND


def test_continuous_profiling_that_cannot_be_says_why(jobs, tmp_path, closed_port):
    profiling = stepscope.client.ContinuousProfiling(f"localhost:{closed_port}", tmp_path)
    with pytest.raises(CaptureError, match="refused"):
        profiling.start()
    with pytest.raises(CaptureError, match="no continuous profiling is running"):
        profiling.snapshot()
    profiling.stop()
    address = jobs["plain"].address()
    with (
        stepscope.client.ContinuousProfiling(address, tmp_path),
        pytest.raises(CaptureError, match="busy with another capture"),
        stepscope.client.ContinuousProfiling(address, tmp_path),
    ):
        pass


def _call(channel: Any, method: service.Method, **fields: Any) -> Any:
    return service.caller(channel, method)(messages.new(method.request, **fields), timeout=120)


def _wait_for_steps(job: Job, count: int) -> None:
    enough = job.clock.read_text().count("\n") + count
    await_until(lambda: job.clock.read_text().count("\n") >= enough, 120, f"{count} steps of the job")


# -- wrong addresses, wrong servers, wrong folders ---------------------------------------------------------------------


@contextmanager
def tcp_server(answer: bytes | None) -> Iterator[str]:
    """Accepts connections, and answers anything with the same bytes, or with nothing at all."""
    with socket.create_server(("localhost", 0)) as listener:
        held = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    held.append(listener.accept()[0])
                    held[-1].sendall(answer or b"")

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"localhost:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in held:
            connection.close()


@contextmanager
def other_grpc_server() -> Iterator[str]:
    with ThreadPoolExecutor(1) as pool:
        native = grpc.server(pool)
        port = native.add_insecure_port("localhost:0")
        native.start()
        yield f"localhost:{port}"
        native.stop(None).wait()


@contextmanager
def nothing_at(address: str) -> Iterator[str]:
    yield address


WRONG = {
    "name": (
        lambda: nothing_at("no-such-worker.invalid:6009"),
        Cause.NAME_NOT_FOUND,
        "there is no machine named",
    ),
    "closed": (lambda: nothing_at("localhost:1"), Cause.REFUSED, "nothing listens on port 1"),
    "web": (lambda: tcp_server(b"HTTP/1.1 200 OK\r\n\r\n"), Cause.NOT_GRPC, "does not speak plain gRPC"),
    "silent": (lambda: tcp_server(None), Cause.NOT_GRPC, "does not speak plain gRPC"),
    "other": (other_grpc_server, Cause.NO_PROFILER, "has no profiler service"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_with_an_address_is_told(tmp_path, monkeypatch, wrong):
    if wrong == "silent":  # the only one whose answer is that there is none
        monkeypatch.setattr(reach, "TIMEOUT_SECONDS", 1.0)
    where, cause, text = WRONG[wrong]

    with where() as address:
        outcome = captured(tmp_path, address, attempts=1)
        found = client.check(address)[address]

    (worker,) = outcome.workers
    assert (worker.phase, worker.cause, found.cause) == (Phase.FAILED, cause, cause)
    assert text in worker.detail
    assert not list(tmp_path.rglob("plugins/profile/*"))


def test_a_logdir_that_cannot_be_made_ends_the_capture_before_it_begins(jobs, tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(CaptureError) as refused:
        captured(tmp_path / "file", jobs["plain"].address())

    assert refused.value.problem.code == "logdir"


def test_a_server_that_cannot_write_says_where(jobs, tmp_path):
    """As the frameworks' clients ask: the server writes the file."""
    (tmp_path / "file").touch()
    options = messages.new("ProfileOptions", version=1, host_tracer_level=1, duration_ms=20)

    with service.open_channel(jobs["plain"].address()) as channel, pytest.raises(grpc.RpcError) as refused:
        _call(channel, service.PROFILE, opts=options, repository_root=str(tmp_path / "file"), session_id="run")

    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert str(tmp_path / "file" / "run") in refused.value.details()


# -- the server in its process -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "whose"), SERVERS)
def test_two_servers_on_one_port(jobs, name, whose):
    port = jobs[name].ports[whose]

    assert server.start(port) is None
    error = stepscope.last_error()
    assert f"cannot listen on localhost:{port}" in str(error)
    with pytest.raises(CaptureError, match="cannot listen"):
        server.start(port, strict=True)


def test_a_process_has_one_server(closed_port):
    first = server.start(0)

    assert server.start(closed_port) is None
    assert f"already has a profiler server on port {first}" in str(stepscope.last_error())
    server.stop()
    assert server.start(first) == first


@pytest.mark.parametrize("port", [70000, -1, "http", "", None, 1.5], ids=repr)
def test_a_port_that_does_not_exist(port):
    with pytest.raises(CaptureError, match=f"{port} is not a port"):
        server.start(port, strict=True)


ENDS_WHILE_CAPTURED = """
import sys, stepscope
print(stepscope.server.start(0), flush=True)
for i, line in enumerate(sys.stdin):  # each step is asked for
    with stepscope.step(i):
        pass
    print(i, flush=True)
"""


def test_a_job_that_ends_while_it_is_captured_ends_at_once_and_gives_what_it_has(tmp_path):
    command = [sys.executable, "-c", ENDS_WHILE_CAPTURED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        address = f"localhost:{int(job.stdout.readline())}"
        with long_capture(address, tmp_path) as capture:
            _until_busy(tmp_path, address)
            for _ in range(3):
                job.stdin.write("step\n")
                job.stdin.flush()
                job.stdout.readline()
            job.stdin.close()
            assert job.wait(120) == 0
            (worker,) = capture.result(120).workers

    assert worker.phase == Phase.SAVED, worker.detail
    assert len(stepscope.load(worker.path).steps().to_dict()["rows"]) == 3


FORKS = """
import os, sys, stepscope
port = stepscope.server.start(0)
child = os.fork()
if child == 0:
    sys.exit(0 if stepscope.server.start(0) else 1)  # a server of its own
print(os.waitpid(child, 0)[1], port, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs fork")
def test_a_child_ends_and_its_parent_goes_on_to_serve():
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        status, port = map(int, job.stdout.readline().split())
        found = client.check(f"localhost:{port}")
        job.stdin.close()

        assert status == 0
        assert found == {f"localhost:{port}": None}
        assert job.wait(120) == 0


def test_trace_by_the_names_of_tensorflow(jobs, tmp_path):
    outcome = stepscope.client.trace(
        f"grpc://{jobs['plain'].address()}", str(tmp_path), 200, options=ProfilerOptions(host_tracer_level=1)
    )

    assert [str(path) for path in tmp_path.rglob("*.xplane.pb")] == [outcome.workers[0].path]
