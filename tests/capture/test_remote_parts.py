"""The parts of captures over the network, each by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from waiting import await_until

from stepscope.capture import ProfilerOptions, client
from stepscope.capture.client import CaptureOutcome, CaptureRequest, Cause, Phase, WorkerStatus
from stepscope.capture.recorder import RECORDER
from stepscope.capture.remote import addresses, messages
from stepscope.capture.remote.handlers import Service, parse_request
from stepscope.capture.remote.monitor import Load, measure_load
from stepscope.capture.remote.reach import translate_rpc_error
from stepscope.capture.remote.xspace import has_events
from stepscope.capture.tracers import ranges
from stepscope.capture.tracers.system import PLANE as SYSTEM_PLANE
from stepscope.cli import capture as command
from stepscope.cli.main import run
from stepscope.errors import CaptureError, UsageError

# -- messages ----------------------------------------------------------------------------------------------------------


def test_a_message_survives_the_wire():
    request = messages.new(
        "ProfileRequest",
        opts=messages.new("ProfileOptions", version=1, start_timestamp_ns=2**63, session_id="s"),
        tools=["a", "b"],
        emit_xspace=True,
    )
    request.opts.advanced_configuration["k"].string_value = "v"

    assert messages.message_class("ProfileRequest").FromString(request.SerializeToString()) == request


def test_bytes_on_the_wire_are_those_of_the_service():
    """Numbers and types as TensorFlow's server reads them: field 5 is a text of 1 byte, field 9 a true bool."""
    request = messages.new("ProfileRequest", repository_root="r", emit_xspace=True)

    assert request.SerializeToString() == b"\x2a\x01r" + b"\x48\x01"


def test_our_messages_are_strangers_to_the_default_pool():
    script = """
from google.protobuf import descriptor_pool
from stepscope.capture.remote import messages
messages.new("ProfileRequest")
try:
    print(descriptor_pool.Default().FindMessageTypeByName("tensorflow.ProfileRequest"))
except KeyError:
    print("unknown")
"""

    assert output_of(script) == "unknown\n"


def test_grpc_is_imported_only_when_it_is_needed():
    script = "import sys, stepscope; stepscope.server; stepscope.client; print('grpc' in sys.modules)"

    assert output_of(script) == "False\n"


def output_of(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


# -- profiles in bytes -------------------------------------------------------------------------------------------------


def part(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


EVENT = part(4, b"")
LINE = part(3, b"\x08\x01" + EVENT)  # id 1, an event
NOISE = b"\x09" + b"8 bytes." + b"\x0d" + b"four" + b"\x10\xff\x01" + part(9, EVENT)
SPACES = {
    "nothing": (b"", False),
    "plane": (part(1, part(2, b"/host:CPU")), False),
    "line": (part(1, part(3, b"\x08\x01")), False),
    "event": (part(1, LINE), True),
    "second plane": (part(1, b"") + part(1, part(3, b"") + LINE), True),
    "event of nothing": (part(2, LINE), False),
    "samples of the system": (part(1, part(2, SYSTEM_PLANE.encode()) + LINE), False),
    "noise": (NOISE + part(1, NOISE + part(3, NOISE + EVENT)), True),
    "cut in a number": (b"\xff", False),
    "unknown wire type": (b"\x0f" + part(1, LINE), False),
}


@pytest.mark.parametrize("name", SPACES)
def test_a_profile_with_events_is_told_from_an_empty_one(name):
    data, expected = SPACES[name]

    assert has_events(data) is expected


# -- addresses and requests --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("localhost:6009", ["localhost:6009"]),
        ("grpc://10.0.0.2:8466,grpc://10.0.0.3:8466", ["10.0.0.2:8466", "10.0.0.3:8466"]),
        ("http://localhost:6009/", ["localhost:6009"]),
        ("[::1]:6009, worker-1.example:1", ["[::1]:6009", "worker-1.example:1"]),
    ],
)
def test_addresses(text, expected):
    assert [str(address) for address in addresses.parse(text)] == expected


@pytest.mark.parametrize(
    "text",
    ["", "localhost", "localhost:", ":6009", "localhost:0", "localhost:65536", "a:1:2", "ftp://a:1", "a:1,", "a/b:1"],
)
def test_wrong_addresses(text):
    with pytest.raises(UsageError, match="is not a worker address"):
        addresses.parse(text)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"duration_ms": 0}, "duration_ms=0 cannot be captured"),
        ({"duration_ms": -5}, "duration_ms=-5 cannot be captured"),
        ({"duration_ms": 3_600_001}, "duration_ms=3600001 cannot be captured"),
        ({"attempts": 0}, "attempts=0 is too few"),
        ({"workers": []}, "needs a list of workers"),
        ({"workers": "a:1"}, "needs a list of workers"),
        ({"options": ProfilerOptions(host_tracer_level=4)}, "host_tracer_level=4 is out of range; use 0 to 3"),
        ({"options": ProfilerOptions(device_tracer_level=-1)}, "device_tracer_level=-1 is out of range; use 0 to 1"),
        ({"options": ProfilerOptions(python_tracer_level=2)}, "python_tracer_level=2 is out of range; use 0 to 1"),
        ({"options": ProfilerOptions(delay_ms=-1)}, "delay_ms=-1 is negative"),
    ],
)
def test_a_request_that_makes_no_sense(tmp_path, facts, message):
    with pytest.raises(UsageError, match=message):
        CaptureRequest(**{"workers": ["a:1"], "logdir": tmp_path, **facts})


def test_a_worker_list_takes_the_place_of_the_service_address(monkeypatch, tmp_path):
    asked: list[CaptureRequest] = []
    saved = WorkerStatus("w", Phase.SAVED)
    monkeypatch.setattr(
        client, "capture_workers", lambda request: asked.append(request) or CaptureOutcome((saved,), "run", False)
    )

    client.trace("grpc://master:8470", tmp_path, 100, worker_list="10.0.0.2,10.0.0.3:8466")

    assert asked[0].workers == ["10.0.0.2:8470", "10.0.0.3:8466"]


@pytest.mark.parametrize(
    ("duration_ms", "level", "message"), [(0, 1, "duration_ms=0"), (100, 3, "level=3 is not a monitoring level")]
)
def test_a_monitor_call_that_makes_no_sense(duration_ms, level, message):
    with pytest.raises(UsageError, match=message):
        client.monitor("localhost:1", duration_ms, level)


# -- what a server understands -----------------------------------------------------------------------------------------


def wanted(options: dict[str, object] | None = None, **fields: object):
    opts = messages.new("ProfileOptions", **{"version": 1, "duration_ms": 100, **(options or {})})
    return parse_request(messages.new("ProfileRequest", **{"opts": opts, "emit_xspace": True, **fields}))


def test_levels_of_a_request():
    levels = {"host_tracer_level": 1, "device_tracer_level": 0, "python_tracer_level": 1}

    assert wanted(levels).options == ProfilerOptions(1, 1, 0)
    assert wanted({**levels, "version": 0}).options == ProfilerOptions()


def test_the_duration_of_an_old_client_counts():
    assert wanted({"duration_ms": 0}, duration_ms=700).duration_ms == 700


def test_a_call_that_is_cancelled_before_it_is_served_records_nothing(monkeypatch):
    monkeypatch.setenv("STEPSCOPE_TRACER", "host")
    over = SimpleNamespace(add_callback=lambda _: False)  # what gRPC answers for a call that has ended
    hour = messages.new("ProfileOptions", version=1, duration_ms=3_600_000)

    with pytest.raises(CaptureError, match="the client gave up"):
        Service().profile(messages.new("ProfileRequest", opts=hour, emit_xspace=True), over)
    answer = Service().monitor(messages.new("MonitorRequest", duration_ms=3_600_000), over)
    assert answer.monitor_result is not None


@pytest.mark.parametrize("answers", [[False], [True, False]], ids=["before it is served", "while it starts"])
def test_a_recording_without_an_end_that_is_cancelled_is_not_left_running(monkeypatch, answers):
    monkeypatch.setenv("STEPSCOPE_TRACER", "host")
    service = Service()
    over = SimpleNamespace(is_active=lambda: answers.pop(0) if answers else False)

    with pytest.raises(CaptureError, match="the client gave up"):
        service.start_continuous(messages.new("ProfileRequest"), over)

    assert not RECORDER.is_running()
    with pytest.raises(CaptureError, match="no continuous profiling session"):
        service.stop_continuous(messages.new("StopContinuousProfilingRequest"), over)


def test_the_file_is_named_by_the_client():
    advanced = messages.new("ProfileOptions", version=1, duration_ms=1)
    advanced.advanced_configuration["override_hostname"].string_value = "b:2"

    assert wanted(host_name="10.0.0.2:6009").host == "10.0.0.2_6009"
    assert wanted({"override_hostname": "../a"}, host_name="c").host == "_a"
    assert parse_request(messages.new("ProfileRequest", opts=advanced, emit_xspace=True, host_name="c")).host == "b_2"


def test_the_folder_is_the_clients():
    assert wanted(emit_xspace=False, repository_root="/logs", session_id="run").folder == Path("/logs/run")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"repository_root": "", "session_id": "run"}, "there is no place for the profile"),
        ({"repository_root": "gs://bucket", "session_id": "run"}, "is not a local folder"),
        ({"repository_root": "/logs", "session_id": ""}, "session_id '' is not a name"),
        ({"repository_root": "/logs", "session_id": "../run"}, "session_id '../run' is not a name"),
        ({"repository_root": "/logs", "session_id": "/etc"}, "session_id '/etc' is not a name"),
    ],
)
def test_a_request_that_names_no_folder(fields, message):
    with pytest.raises(CaptureError, match=message):
        wanted(emit_xspace=False, **fields)


# -- what a server says, in plain words --------------------------------------------------------------------------------

SAID = [
    ("INTERNAL", "Another profiling session active.", Cause.BUSY, "busy with another capture"),
    ("ALREADY_EXISTS", "[busy] another profiling session is active in this process", Cause.BUSY, "busy with another"),
    ("ALREADY_EXISTS", "Profiling is disabled by TF_DISABLE_PROFILING", Cause.DISABLED, "profiling is switched off"),
    ("INTERNAL", "segfault", Cause.SERVER_ERROR, "the server answered INTERNAL: segfault"),
    ("UNIMPLEMENTED", "", Cause.NO_PROFILER, "has no profiler service"),
    ("UNAVAILABLE", "Socket closed", Cause.DISCONNECTED, "the connection broke while it recorded"),
    ("UNKNOWN", "Stream removed", Cause.DISCONNECTED, "the connection broke while it recorded"),
    ("DEADLINE_EXCEEDED", "", Cause.DEADLINE, "no answer within 61 s"),
    ("CANCELLED", "", Cause.CANCELLED, "cancelled"),
    ("DATA_LOSS", "", Cause.SERVER_ERROR, "the server answered DATA_LOSS: nothing more"),
]


@pytest.mark.parametrize(("code", "details", "cause", "text"), SAID)
def test_errors_of_a_server(code, details, cause, text):
    error = SimpleNamespace(code=lambda: grpc.StatusCode[code], details=lambda: details)

    failure = translate_rpc_error(error, 61.0)

    assert failure.cause == cause
    assert text in failure.detail


# -- monitoring --------------------------------------------------------------------------------------------------------

LOAD = Load(0.0, 1.0, process_percent=150.0, machine_percent=75.0, cpus=4, step_ms=(10.0, 30.0))


def test_a_load_in_words():
    assert LOAD.text(verbose=True, timestamp=False).splitlines() == [
        "CPU: 150.0% of one by this process; machine 75.0% of 4 CPUs",
        "Step time: 20.000 ms mean, 10.000 ms min, 30.000 ms max (2 steps)",
    ]
    assert LOAD.text(verbose=False, timestamp=True).startswith("Timestamp: ")
    assert "machine unknown" in replace(LOAD, machine_percent=None).text(verbose=False, timestamp=False)
    assert "Steps: none ended in 1 s" in replace(LOAD, step_ms=()).text(verbose=True, timestamp=False)


def test_a_load_in_numbers():
    assert LOAD.result() == {
        "response_type": 3,
        "step_time_ms_avg": 20.0,
        "step_time_ms_min": 10.0,
        "step_time_ms_max": 30.0,
    }
    assert replace(LOAD, step_ms=()).result() == {"response_type": 0}


def test_steps_are_timed_from_begin_to_begin_while_somebody_watches():
    ended = threading.Event()

    def train() -> None:
        await_until(lambda: ranges.ROUTE.step_watchers, 60, "somebody who watches the steps")
        for number in range(4):
            with ranges.step(number):
                pass
        ended.set()

    thread = threading.Thread(target=train)
    thread.start()
    load = measure_load(10.0, ended)
    thread.join()

    assert len(load.step_ms) == 3
    assert ranges.ROUTE.step_watchers == ()


# -- the command -------------------------------------------------------------------------------------------------------

SAVED = WorkerStatus("a:1", Phase.SAVED, path="run/a_1.xplane.pb", size_bytes=1234)
REFUSED = WorkerStatus("b:2", Phase.FAILED, 3, "connection refused", Cause.REFUSED)


@pytest.fixture
def outcome_of(monkeypatch):
    """Makes the command get an outcome; returns the requests it made."""

    def install(*workers: WorkerStatus, cancelled: bool = False) -> list[CaptureRequest]:
        asked: list[CaptureRequest] = []
        folder = "run" if any(worker.phase == Phase.SAVED for worker in workers) else None

        def capture_workers(request, on_progress, cancel):
            asked.append(request)
            return CaptureOutcome(workers, folder, cancelled)

        monkeypatch.setattr(command, "capture_workers", capture_workers)
        return asked

    return install


def test_the_command_passes_on_what_it_is_told(outcome_of, capsys):
    asked = outcome_of(SAVED)
    levels = ["--host-tracer-level", "3", "--device-tracer-level", "0", "--python-tracer-level", "1"]

    status = run(
        ["capture", "a:1,b:2", "--logdir", "l", "--duration-ms", "50", "--retries", "4", "--delay-ms", "9", *levels]
    )

    assert status == 0
    assert asked == [CaptureRequest(["a:1", "b:2"], "l", 50, 5, ProfilerOptions(3, 1, 0, delay_ms=9))]
    assert [line.strip() for line in capsys.readouterr().out.splitlines()[1:]] == [
        "a:1     saved         1  1.2 kB  a_1.xplane.pb",
        "",
        "the profiles are in run",
        "more: stepscope summary run",
    ]


def test_partial_success_is_a_failure_that_says_what_is_kept(outcome_of, capsys):
    outcome_of(SAVED, REFUSED)

    status = run(["capture", "a:1,b:2", "--logdir", "l"])

    told = capsys.readouterr()
    assert status == 1
    assert told.err == (
        "stepscope: [partial] 1 of 2 workers sent a profile: b:2: connection refused;"
        " kept: the other profiles, in run\n"
    )
    assert "b:2" in told.out


def test_an_open_ended_capture_has_no_duration(outcome_of):
    asked = outcome_of(SAVED)

    assert run(["capture", "a:1", "--logdir", "l", "--open-ended"]) == 0
    assert asked[0].duration_ms is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["a:1"],
        ["a", "--logdir", "l"],
        ["a:1", "--logdir", "l", "--retries", "-1"],
        ["a:1", "--logdir", "l", "--host-tracer-level", "4"],
    ],
    ids=" ".join,
)
def test_wrong_usage(arguments):
    assert run(["capture", *arguments]) == 2


def test_ctrl_c_ends_the_capture_and_keeps_what_came(monkeypatch, capsys):
    early = replace(SAVED, ended_early=True)

    def capture_workers(request, on_progress, cancel):
        os.kill(os.getpid(), signal.SIGINT)
        assert cancel.wait(60)
        return CaptureOutcome((early,), "run", True)

    monkeypatch.setattr(command, "capture_workers", capture_workers)
    before = signal.getsignal(signal.SIGINT)

    assert run(["capture", "a:1", "--logdir", "l"]) == 0
    assert "saved, ended early" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is before
