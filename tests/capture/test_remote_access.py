"""Who may capture a job over the network, and where a client may have files written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from program_runs import require_packages

from stepscope import last_error
from stepscope.capture import client, server
from stepscope.capture.remote import handlers, messages, service
from stepscope.capture.remote.access import Access
from stepscope.capture.remote.outcome import CaptureRequest, Failure, Reason
from stepscope.errors import CaptureError, StepscopeError, UsageError

TOKEN = "correct-horse-battery-staple"
CODE = grpc.StatusCode


@pytest.fixture(autouse=True)
def _no_server_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("STEPSCOPE_CAPTURE_TOKEN", "STEPSCOPE_CAPTURE_OPEN", "STEPSCOPE_LOGDIR"):
        monkeypatch.delenv(name, raising=False)
    yield
    server.stop()


def listening() -> set[str]:
    """The addresses that this process's server listens on."""
    assert server.SERVER.running is not None
    return {opened.getsockname()[0] for opened in server.SERVER.running.front._listening}


# -- the address -------------------------------------------------------------------------------------------------------


def test_by_default_only_this_machine_reaches_the_server():
    assert server.start(0, strict=True)

    assert listening() <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize("address", [server.ANY_ADDRESS, "0.0.0.0", "::", "192.0.2.1", ""])
def test_on_other_addresses_the_server_starts_with_a_token_only(address):
    assert server.start(0, address=address) is None

    error = last_error()
    assert isinstance(error, CaptureError)
    assert error.problem.code == "token"
    assert "set STEPSCOPE_CAPTURE_TOKEN" in str(error)


def test_a_token_or_the_word_open_lets_it_listen_everywhere(monkeypatch):
    assert server.start(0, address=server.ANY_ADDRESS, token=TOKEN, strict=True)
    server.stop()
    assert server.start(0, address=server.ANY_ADDRESS, open_to_all=True, strict=True)
    server.stop()
    monkeypatch.setenv("STEPSCOPE_CAPTURE_OPEN", "1")
    assert server.start(0, address=server.ANY_ADDRESS, strict=True)
    assert listening() & {"::", "0.0.0.0"}


@pytest.mark.parametrize("token", ["short", "with a space in the middle", "ümläute-sind-nicht-erlaubt", "x" * 15, "\n"])
def test_what_is_no_token_is_refused(token):
    with pytest.raises(StepscopeError, match="a token has 16 or more"):
        server.start(0, token=token, strict=True)
    with pytest.raises(UsageError, match="a token has 16 or more"):
        client.check("localhost:1", token=token)


# -- the token ---------------------------------------------------------------------------------------------------------


def test_only_calls_with_the_token_are_answered(monkeypatch):
    address = f"localhost:{server.start(0, token=TOKEN, strict=True)}"

    def cause(token: str | None) -> Any:
        (found,) = client.check(address, token).values()
        return found and (found.cause, found.detail)

    said = "the job's profiler server asks for a token"
    assert cause(None)[0] == Reason.NOT_ALLOWED
    assert cause(None)[1].startswith(f"{said} ([token] this server needs a token; set STEPSCOPE_CAPTURE_TOKEN")
    assert cause(TOKEN + "x")[1].startswith(f"{said} ([token] the token is wrong")
    assert cause(TOKEN) is None
    monkeypatch.setenv("STEPSCOPE_CAPTURE_TOKEN", TOKEN)
    assert cause(None) is None


def test_a_frameworks_client_which_brings_no_token_is_told():
    port = server.start(0, token=TOKEN, strict=True)
    with service.open_channel(f"localhost:{port}") as channel, pytest.raises(grpc.RpcError) as caught:
        service.caller(channel, service.PROFILE)(messages.new("ProfileRequest", duration_ms=10), timeout=60)

    assert caught.value.code() == CODE.UNAUTHENTICATED
    assert TOKEN not in str(caught.value)


_TENSORFLOWS_CLIENT = """
import sys
import tensorflow as tf
try:
    tf.profiler.experimental.client.trace(f"grpc://localhost:{sys.argv[2]}", sys.argv[1], 200, num_tracing_attempts=1)
except Exception as error:
    print(type(error).__name__)
"""


# Other tests of this process make TensorFlow quiet.
SAYS_WARNINGS = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"}


def test_tensorflows_own_client_is_told_what_to_use_where_a_token_is_needed(tmp_path):
    """Where none is needed it captures: `test_remote.py`."""
    require_packages("tensorflow")
    port = server.start(0, token=TOKEN, strict=True)
    command = [sys.executable, "-c", _TENSORFLOWS_CLIENT, str(tmp_path), str(port)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=300, env=SAYS_WARNINGS)

    assert refused.stdout.split()[-1] == "RuntimeError"
    assert "TensorFlow's own client cannot send one: use `stepscope capture`" in refused.stderr
    assert TOKEN not in refused.stderr + refused.stdout
    assert not list(tmp_path.rglob("*.pb"))


def test_no_text_of_ours_shows_a_token(tmp_path):
    request = CaptureRequest(["a:1"], tmp_path, token=TOKEN)

    assert TOKEN not in repr(request) + repr(Access(TOKEN)) + str(Failure(Reason.NOT_ALLOWED, ""))


# -- what a request may ask for ----------------------------------------------------------------------------------------


class Refusal(Exception):  # noqa: N818 - what `abort` raises
    """The end of a call."""


class Call:
    """A call's context, as a handler sees it."""

    def __init__(self) -> None:
        self.code: Any = None
        self.said = ""

    def invocation_metadata(self) -> tuple[()]:
        return ()

    def is_active(self) -> bool:
        return True

    def add_callback(self, callback: object) -> bool:
        return True

    def abort(self, code: Any, said: str) -> None:
        self.code, self.said = code, said
        raise Refusal


def refused(access: Access, method: str = "profile", **fields: Any) -> Call:
    """The call of a request that is refused."""
    call, name = Call(), {"profile": "ProfileRequest", "monitor": "MonitorRequest"}[method]
    answer = handlers._guard(method, getattr(handlers.Service(access), method), access)
    with pytest.raises(Refusal):
        answer(messages.new(name, **fields), call)
    return call


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("profile", {"duration_ms": 2**63, "emit_xspace": True}),
        ("profile", {"duration_ms": 2**64 - 1, "emit_xspace": True}),
        ("profile", {"duration_ms": 10 * 86_400_000, "emit_xspace": True}),
        ("profile", {"duration_ms": 10, "repository_root": "/tmp/a\0b", "session_id": "s"}),
        ("profile", {"duration_ms": 10, "repository_root": "/tmp", "session_id": "a\0b"}),
        ("profile", {"duration_ms": 10, "repository_root": "/tmp", "session_id": "../x"}),
        ("profile", {"opts": {"duration_ms": 10, "start_timestamp_ns": 2**64 - 1}, "emit_xspace": True}),
        ("monitor", {"duration_ms": 2**63}),
    ],
)
def test_a_request_without_sense_is_an_invalid_argument(method, fields):
    assert refused(Access(), method, **fields).code == CODE.INVALID_ARGUMENT


def test_a_message_of_many_megabytes_is_refused():
    port = server.start(0, strict=True)
    with service.open_channel(f"localhost:{port}") as channel, pytest.raises(grpc.RpcError) as caught:
        service.caller(channel, service.TERMINATE)(
            messages.new("TerminateRequest", session_id="x" * (2 << 20)), timeout=60
        )

    assert caught.value.code() == CODE.RESOURCE_EXHAUSTED


# -- where files go ----------------------------------------------------------------------------------------------------


def test_files_go_below_the_jobs_logdir_only(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "out").symlink_to(tmp_path)
    access = Access(folder=tmp_path / "logs")

    for root in (tmp_path, tmp_path / "logs" / "..", tmp_path / "logs" / "out", tmp_path / "logs2", Path("/")):
        call = refused(access, duration_ms=10, repository_root=str(root), session_id="s")
        assert call.code == CODE.PERMISSION_DENIED, root
        assert str(tmp_path) not in call.said

    access.check_folder(tmp_path / "logs" / "plugins" / "profile" / "run")
    assert list((tmp_path / "logs").iterdir()) == [tmp_path / "logs" / "out"]


def access_of(**words: Any) -> Access:
    """What a server that was started like this lets its clients do."""
    assert server.start(0, strict=True, **words)
    assert server.SERVER.running is not None
    return server.SERVER.running.access


@pytest.mark.parametrize(
    ("words", "variable", "folder", "may_write"),
    [
        ({}, None, None, True),  # as TensorFlow's, for programs of this machine
        ({"logdir": "/logs"}, None, "/logs", True),
        ({}, "/jobs", "/jobs", True),
        ({"logdir": "/logs"}, "/jobs", "/logs", True),
        ({"logdir": "gs://bucket/logs"}, None, None, False),
        ({"logdir": "/logs", "any_folder": True}, None, None, True),
        ({"address": "0.0.0.0", "token": TOKEN}, None, None, False),
        ({"address": "0.0.0.0", "open_to_all": True}, None, None, False),
        ({"address": "0.0.0.0", "token": TOKEN, "logdir": "/logs"}, None, "/logs", True),
        ({"address": "0.0.0.0", "open_to_all": True, "any_folder": True}, None, None, True),
    ],
)
def test_the_folder_is_that_of_the_job(words, variable, folder, may_write, monkeypatch):
    if variable:
        monkeypatch.setenv("STEPSCOPE_LOGDIR", variable)

    found = access_of(**words)

    assert (found.folder and str(found.folder), found.may_write) == (folder, may_write)
