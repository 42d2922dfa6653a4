"""`stepscope open` as a process, its address and its threads; and captures that the page starts."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from browsing import DRAWN, running, store_profile
from draw import draw
from ports import free_port
from waiting import await_until
from werkzeug.test import Client

from stepscope.capture import client as capture_module
from stepscope.capture.client import CaptureOutcome, CaptureRequest, Phase, WorkerStatus
from stepscope.cli.main import run as run_command
from stepscope.errors import CaptureError, UsageError
from stepscope.model import HostTrace
from stepscope.shelf import TraceShelf, trace_bytes
from stepscope.web import hosts, serving
from stepscope.web.app import App
from stepscope.web.catalogue import Root
from stepscope.web.site import Site, SiteOptions

# -- the address -------------------------------------------------------------------------------------------------------


def test_the_next_free_port_is_taken():
    with serving.bind_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with serving.bind_socket("127.0.0.1", port) as bound:
            assert port < bound.getsockname()[1] < port + serving.PORTS_TRIED


def test_an_address_of_another_machine_is_refused_in_plain_words():
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1: .*; give an address of this machine"):
        serving.bind_socket("192.0.2.1", 0)
    with pytest.raises(UsageError, match="cannot listen on no such host"):
        serving.bind_socket("no such host", 0)


def test_the_address_is_one_to_type_into_a_browser():
    with serving.bind_socket("0.0.0.0", 0) as everywhere:
        assert serving.page_url(everywhere) == f"http://127.0.0.1:{everywhere.getsockname()[1]}/"


@pytest.mark.parametrize(
    ("host", "more", "allowed"),
    [
        ("127.0.0.1", (), {"localhost", "127.0.0.1", "[::1]"}),
        ("localhost", ("Proxy.Example",), {"localhost", "127.0.0.1", "[::1]", "proxy.example"}),
        ("127.0.0.9", (), {"localhost", "127.0.0.1", "[::1]", "127.0.0.9"}),
    ],
)
def test_on_loopback_only_its_names_are_answered_to(host, more, allowed):
    names = hosts.own_names(host, more)

    assert names.names == allowed
    assert not names.accepts("192.0.2.7:80")


@pytest.mark.parametrize("header", ["192.0.2.7:8090", "[2001:db8::1]", "localhost:1", "mybox", "MyBox:80"])
def test_beyond_loopback_addresses_and_given_names_are_answered_to(header):
    assert hosts.own_names("0.0.0.0", ["mybox"]).accepts(header)


@pytest.mark.parametrize(
    "header",
    ["evil.example", "evil.example:8090", "[::1].evil", "[::1]evil:80", "127.0.0.1.evil.example", "", "a b", "mybox.",
     "localhost:999999", "[evil]", "127.1", "0x7f.1", "mybox@evil.example", "mybox/evil", "mybox\r\nX: 1"],
)  # fmt: skip
def test_a_name_that_another_site_points_here_is_refused(header):
    assert not hosts.own_names("0.0.0.0", ["mybox"]).accepts(header)
    assert not hosts.own_names("127.0.0.1", ["mybox"]).accepts(header)


@pytest.mark.parametrize(
    ("environment", "answer"),
    [({}, False), ({"DISPLAY": ":0"}, True), ({"WAYLAND_DISPLAY": "w"}, True), ({"BROWSER": "code"}, True)],
)
def test_a_machine_without_a_screen_has_no_browser(environment, answer, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", "linux")

    assert serving.has_browser() is answer


# -- the process -------------------------------------------------------------------------------------------------------


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    """A logdir with one session."""
    store_profile(tmp_path / "logs", "r1", draw(DRAWN))
    return tmp_path / "logs"


# A shell that starts programs in the background has them ignore Ctrl-C.  The program itself takes that back: a function
# between fork and exec would be run in a process whose other threads are gone.
OPEN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from stepscope.cli.main import main
sys.exit(main(["open", sys.argv[1], "--no-browser", "--port", "0"]))
"""


def start_open(program: str, logdir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(logdir)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip


def test_open_prints_its_address_answers_and_ends_cleanly_on_ctrl_c(logdir):
    opened = start_open(OPEN, logdir)
    with opened:
        line = opened.stdout.readline() if opened.stdout else ""
        address = line.partition(" is shown at ")[2].split()[0]
        with urllib.request.urlopen(f"{address}api/sessions", timeout=600) as answer:
            sessions = json.loads(answer.read())["sessions"]
        opened.send_signal(signal.SIGINT)
        out, err = opened.communicate(timeout=600)

    assert line.startswith(f"{logdir} is shown at http://127.0.0.1:")
    assert [session["run"] for session in sessions] == ["r1"]
    assert (opened.returncode, out, err) == (0, "", "")


SLOW = f"""
import time
from stepscope.web import site
site._FAREWELL_SECONDS = 600
site.Site._warm_up = lambda self: time.sleep(600)
{OPEN}
"""


def test_ctrl_c_does_not_wait_for_what_is_being_loaded(logdir):
    opened = start_open(SLOW, logdir)
    with opened:
        line = opened.stdout.readline() if opened.stdout else ""
        opened.send_signal(signal.SIGINT)
        _, err = opened.communicate(timeout=600)

    assert " is shown at " in line
    assert (opened.returncode, err) == (0, "")


def test_open_of_what_is_not_there_fails_in_one_line(tmp_path, capsys):
    assert run_command(["open", str(tmp_path / "absent"), "--no-browser"]) == 1
    assert "there is no such file or folder" in capsys.readouterr().err
    (tmp_path / "text.txt").write_text("text")
    assert run_command(["open", str(tmp_path / "text.txt"), "--no-browser"]) == 1


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "free"])
def test_open_tells_that_it_could_not_have_the_port_it_was_asked_for(logdir, capsys, monkeypatch, taken):
    class Server:
        def __init__(self, site: Site, bound: socket.socket) -> None:
            bound.close()

        def run(self) -> None: ...

    monkeypatch.setattr(serving, "PageServer", Server)
    with serving.bind_socket("127.0.0.1", free_port()) as other:
        port = other.getsockname()[1]
        if not taken:
            other.close()
        assert run_command(["open", str(logdir), "--no-browser", "--port", str(port)]) == 0
    out, err = capsys.readouterr()

    served = int(out.partition("http://127.0.0.1:")[2].partition("/")[0])
    told = f"stepscope: port {port} is in use by another program; serving on {served}\n"
    assert (served != port, err) == (taken, told if taken else "")


def test_open_beyond_loopback_says_who_can_see_it(logdir, capsys, monkeypatch):
    monkeypatch.setattr(serving.PageServer, "run", lambda server: server._listener.close())

    assert run_command(["open", str(logdir), "--no-browser", "--port", "0", "--host", "0.0.0.0"]) == 0
    assert "anybody who reaches this address sees these profiles" in capsys.readouterr().err
    assert run_command(["open", str(logdir), "--no-browser", "--port", "0"]) == 0
    assert capsys.readouterr().err == ""


def test_open_waits_for_a_first_profile(tmp_path, capsys, monkeypatch):
    served: list[Site] = []

    class Server:
        def __init__(self, site: Site, bound: socket.socket) -> None:
            served.append(site)
            bound.close()

        def run(self) -> None:
            store_profile(tmp_path, "r1", draw(DRAWN))

    monkeypatch.setattr(serving, "PageServer", Server)
    assert run_command(["open", str(tmp_path), "--no-browser", "--port", "0"]) == 0
    assert "no profile yet" in capsys.readouterr().err
    assert [one.session.run for one in served[0].catalogue.sessions()] == ["r1"]


def test_a_request_that_is_dropped_half_way_harms_nobody(logdir):
    with running(logdir) as server:
        port = int(server.address.rstrip("/").rpartition(":")[2])
        for sent in (b"GET /api/se", b"GET /api/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST / HTTP/1.1\r\n",
                     b"\x16\x03\x01 not http\r\n\r\n"):  # fmt: skip
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(sent)
        assert server.get("api/sessions")["sessions"][0]["run"] == "r1"


# -- the shelf ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A key that tells when somebody asks with it."""

    name: str
    event: threading.Event = field(default_factory=threading.Event, compare=False)

    def __hash__(self) -> int:
        self.event.set()
        return hash(self.name)


def test_the_shelf_keeps_what_fits_and_lets_go_what_was_not_used_for_longest():
    traces = {name: draw(DRAWN) for name in "abcd"}
    shelf = TraceShelf(max_bytes=3 * trace_bytes(traces["a"]))
    for name in ("a", "b", "c", "a", "d"):
        shelf.get(name, lambda name=name: traces[name], trace_bytes(traces[name]))

    assert [name for name in "abcd" if name in shelf] == ["a", "c", "d"]
    assert shelf.nbytes() <= shelf.max_bytes
    shelf.drop(lambda key: key == "a")
    assert "a" not in shelf


def test_the_newest_is_kept_however_large():
    shelf = TraceShelf()
    shelf.get("a", lambda: draw(DRAWN), 1)
    shelf.get("b", lambda: draw(DRAWN), 1)

    assert ("a" in shelf, "b" in shelf) == (False, True)


def test_who_asks_while_a_failed_reading_is_tried_again_waits_for_it():
    shelf, readings = TraceShelf(), []
    first_reads, second_asks, second_reads, third_asks, may_end = (threading.Event() for _ in range(5))

    def read(began: threading.Event, proceed: threading.Event, fails: bool) -> HostTrace:
        readings.append(began)
        began.set()
        assert proceed.wait(60)
        if fails:
            raise ValueError("the first reading fails")
        return draw(DRAWN)

    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(shelf.get, Asked("a"), lambda: read(first_reads, second_asks, fails=True))
        assert first_reads.wait(60)
        second = threads.submit(shelf.get, Asked("a", second_asks), lambda: read(second_reads, may_end, fails=False))
        assert second_reads.wait(60)
        third = threads.submit(shelf.get, Asked("a", third_asks), lambda: read(may_end, may_end, fails=False))
        assert third_asks.wait(60)
        may_end.set()

        assert isinstance(first.exception(), ValueError)
        assert second.result() is third.result()
    assert readings == [first_reads, second_reads]


def test_what_is_derived_from_a_trace_counts():
    trace = draw(DRAWN)
    before = trace_bytes(trace)
    array = trace.derived("big", lambda _: trace.events.start_ps.repeat(1000))

    assert trace_bytes(trace) == before + array.nbytes
    trace.derived("view", lambda _: (array[1:], {"x": [array[:5]]}))
    assert trace_bytes(trace) == before + array.nbytes


# -- captures ----------------------------------------------------------------------------------------------------------


@dataclass
class FakeClient:
    """What stands in for the client of `stepscope.capture`; `plan` says what becomes of each worker."""

    plan: dict[str, str]
    requests: list[CaptureRequest] = field(default_factory=list)
    may_end: threading.Event = field(default_factory=threading.Event)

    def capture_workers(self, request: CaptureRequest, on_progress: Any, cancel: Any) -> CaptureOutcome:
        self.requests.append(request)
        statuses = []
        for address in request.workers:
            on_progress(self.status(address, Phase.RECORDING))
            await_until(lambda: self.may_end.is_set() or cancel.is_set(), 60, "the end of the capture")
            if self.plan[address] == "crash":
                raise CaptureError("nothing can be written here", path=request.logdir)
            statuses.append(self.status(address, Phase(self.plan[address])))
        is_saved = any(status.phase == Phase.SAVED for status in statuses)
        folder = store_profile(Path(request.logdir), "captured", draw(DRAWN)) if is_saved else None
        return CaptureOutcome(tuple(statuses), folder and str(folder), cancel.is_set())

    @staticmethod
    def status(address: str, phase: Phase) -> WorkerStatus:
        detail = "connection refused" if phase == Phase.FAILED else "so far"
        return WorkerStatus(address, phase, attempt=2, detail=detail, size_bytes=7)


@pytest.fixture
def capture_client(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Client, FakeClient]]:
    """A browser at the page, and the fake that captures for it."""
    fake = FakeClient({"a:1": "saved", "b:2": "failed", "c:3": "crash"})
    monkeypatch.setattr(capture_module, "capture_workers", fake.capture_workers)
    site = Site(SiteOptions([Root(str(logdir))]))
    yield Client(App(site)), fake
    site.close()


def post(client: Client, wish: Any) -> Any:
    return client.post("/api/capture", json=wish, headers={"X-Stepscope": "1"})


def ended(client: Client, capture: str) -> Any:
    """What a capture says when it is over."""

    def told() -> Any:
        said = client.get(f"/api/capture/{capture}").json
        return None if said["state"] == "running" else said

    return await_until(told, 60, "the end of the capture")


def test_a_capture_tells_how_far_it_is_and_opens_its_session(capture_client, logdir):
    client, fake = capture_client
    assert client.get("/api/config").json["capture"] is True
    capture = post(client, {"addresses": ["a:1"], "duration_ms": 60_000, "retries": 4, "python_tracer_level": 1}).json
    told = client.get(f"/api/capture/{capture['id']}").json
    assert (told["state"], told["session"], told["error"]) == ("running", None, None)
    assert 50 < told["seconds_left"] <= 60

    fake.may_end.set()
    told = ended(client, capture["id"])
    sessions = {one["id"]: one["run"] for one in client.get("/api/sessions").json["sessions"]}
    assert (told["state"], sessions[told["session"]]) == ("done", "captured")
    assert told["workers"] == [{"address": "a:1", "state": "saved", "message": "so far (attempt 2)", "bytes": 7}]
    request = fake.requests[0]
    assert (request.workers, request.attempts, request.logdir) == (["a:1"], 5, str(logdir))
    assert (request.options.python_tracer_level, request.options.host_tracer_level) == (1, 2)


@pytest.mark.parametrize(
    ("addresses", "state", "error"),
    [
        (["a:1", "b:2"], "done", "b:2: connection refused"),
        (["b:2"], "failed", "b:2: connection refused"),
        (["c:3"], "failed", "nothing can be written here"),
    ],
    ids=["some", "none", "crash"],
)
def test_what_failed_is_told_in_plain_words(capture_client, addresses, state, error):
    client, fake = capture_client
    fake.may_end.set()
    told = ended(client, post(client, {"addresses": addresses}).json["id"])

    assert told["state"] == state
    assert error in told["error"]
    assert (told["session"] is not None) == (state == "done")


@pytest.mark.parametrize(
    ("wish", "status", "error"),
    [
        ({}, 400, "not a capture request"),
        ({"addresses": []}, 400, "at least one address"),
        ({"addresses": "a:1"}, 400, "not a capture request"),
        ({"addresses": ["a:1"], "duration_ms": "long"}, 400, "not a capture request"),
        ({"addresses": ["bad"]}, 400, "not a worker address"),
    ],
    ids=["empty", "nobody", "no list", "no number", "no address"],
)
def test_a_wish_that_makes_no_sense_is_refused(capture_client, wish, status, error):
    answer = post(capture_client[0], wish)

    assert answer.status_code == status
    assert error in answer.json["error"]


def _hang_up_on_all(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            listener.accept()[0].close()


def test_a_shared_server_does_not_say_which_ports_are_open(tmp_path):
    from stepscope.web.capturing import Wish

    captures = Site(SiteOptions([Root(str(tmp_path))], is_shared=True)).captures
    said = []
    with socket.create_server(("127.0.0.1", 0)) as opened, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        visitors = threading.Thread(target=_hang_up_on_all, args=(opened,))
        visitors.start()
        for port in (opened.getsockname()[1], closed.getsockname()[1]):
            capture = captures.start(Wish([f"127.0.0.1:{port}"], duration_ms=10, retries=0))
            captures.wait(120)
            said.append([worker.message for worker in capture.workers.values()])
        opened.shutdown(socket.SHUT_RDWR)
        visitors.join()

    assert said == [["no profiler server answers at this address"]] * 2


def test_a_token_is_in_no_answer(capture_client):
    client, _ = capture_client
    token = "a-token-that-nobody-sees"
    started = post(client, {"addresses": ["a:1"], "token": token})

    assert token not in started.text + client.get(f"/api/capture/{started.json['id']}").text


def test_addresses_are_taken_as_they_are_pasted(capture_client):
    client, fake = capture_client
    fake.may_end.set()
    told = ended(client, post(client, {"addresses": [" grpc://a:1", "http://b:2 "]}).json["id"])

    assert fake.requests[0].workers == ["a:1", "b:2"]
    assert [(worker["address"], worker["state"]) for worker in told["workers"]] == [("a:1", "saved"), ("b:2", "failed")]


def test_a_defect_of_the_client_ends_the_capture_too(capture_client, monkeypatch):
    client, _ = capture_client
    monkeypatch.setattr(capture_module, "capture_workers", lambda *_: None)
    told = ended(client, post(client, {"addresses": ["a:1"]}).json["id"])

    assert told["state"] == "failed"
    assert "AttributeError" in told["error"]


def test_where_nothing_can_be_captured_the_page_knows():
    client = Client(App(Site(SiteOptions([Root("gs://bucket/logs")]))))
    assert client.get("/api/config").json["capture"] is False
    refused = post(client, {"addresses": ["a:1"]})
    assert (refused.status_code, refused.json["hint"]) == (409, "open a folder of this machine")


def test_a_capture_can_be_ended_early(capture_client):
    client, _ = capture_client
    capture = post(client, {"addresses": ["b:2"], "duration_ms": 60_000}).json["id"]
    told = client.delete(f"/api/capture/{capture}", headers={"X-Stepscope": "1"}).json

    assert told["seconds_left"] is None
    assert ended(client, capture)["state"] == "cancelled"
