"""The port of the profiler server: what waits there, and when gRPC's server is behind it."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from waiting import await_until

from stepscope import server
from stepscope.capture.remote import front
from stepscope.capture.remote.front import Front, listen
from stepscope.errors import CaptureError

_PATIENCE_S = 60


class Reverser:
    """Stands for gRPC's server: answers each connection with all that it said, backwards."""

    def __init__(self) -> None:
        self.starts = 0
        self.stopped = threading.Event()

    def start(self, address: str) -> tuple[Reverser, int]:
        self.starts += 1
        self.stopped.clear()
        self._socket = socket.create_server((address, 0))
        threading.Thread(target=self._run, daemon=True).start()
        return self, int(self._socket.getsockname()[1])

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as said:
                connection.sendall(said.read()[::-1])

    def stop(self, grace: float | None) -> threading.Event:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.stopped.set()
        return self.stopped


@contextmanager
def waiting(native: Reverser, linger_s: float = _PATIENCE_S) -> Iterator[Front]:
    found = Front(listen("127.0.0.1", 0), native.start, linger_s)
    found.start()
    try:
        yield found
    finally:
        found.close()
        found.stop_native(_PATIENCE_S)


def connected(found: Front) -> socket.socket:
    return socket.create_connection(("127.0.0.1", found.port), _PATIENCE_S)


def answer(found: Front, said: bytes) -> bytes:
    with connected(found) as client, client.makefile("rb") as heard:
        client.sendall(said)
        client.shutdown(socket.SHUT_WR)
        return heard.read()


def test_the_native_server_is_there_for_as_long_as_somebody_asks():
    native = Reverser()
    with waiting(native, linger_s=0.05) as found:
        before = native.starts
        answers = [answer(found, b"abc"), answer(found, b"de")]
        native.stopped.wait(_PATIENCE_S)
        again = answer(found, b"f")

    assert (before, answers, again) == (0, [b"cba", b"ed"], b"f")
    assert native.starts == 2
    assert native.stopped.is_set()


def test_every_byte_arrives_in_both_directions():
    said = b"".join(hashlib.sha256(bytes([number % 256])).digest() for number in range(1 << 16))  # 2 MiB
    with waiting(Reverser()) as found:
        assert answer(found, said) == said[::-1]


def test_who_connects_and_says_nothing_is_told_nothing():
    native = Reverser()
    with waiting(native) as found:
        connected(found).close()
        with connected(found) as silent:
            silent.shutdown(socket.SHUT_WR)
            heard = silent.recv(1)

    assert (heard, native.starts) == (b"", 0)


def test_no_more_connections_than_a_job_can_bear(monkeypatch):
    monkeypatch.setattr(front, "_MOST_CONNECTIONS", 1)
    with waiting(Reverser()) as found, connected(found) as first:
        first.sendall(b"ab")
        await_until(lambda: found._connections and not found._silent, _PATIENCE_S, "the first byte")
        with connected(found) as second:
            refused = second.recv(1)
        first.shutdown(socket.SHUT_WR)

        assert (refused, first.recv(8)) == (b"", b"ba")


def test_connections_that_say_nothing_lock_nobody_out():
    with waiting(Reverser()) as found, ExitStack() as stack:
        silent = [stack.enter_context(connected(found)) for _ in range(front._MOST_CONNECTIONS)]
        await_until(lambda: len(found._connections) == front._MOST_CONNECTIONS, _PATIENCE_S, "connections")

        assert answer(found, b"abc") == b"cba"
        assert silent[0].recv(1) == b""  # the one that had been silent for longest


def test_another_machine_has_some_of_the_connections_and_not_all(monkeypatch):
    monkeypatch.setattr(front, "_peer", lambda client: "192.0.2.1")
    with waiting(Reverser()) as found, ExitStack() as stack:
        for _ in range(front._MOST_OF_A_CLIENT):
            stack.enter_context(connected(found))
        await_until(lambda: len(found._connections) == front._MOST_OF_A_CLIENT, _PATIENCE_S, "connections")

        assert found._is_client_full("192.0.2.1")
        assert not found._is_client_full("192.0.2.2")
        assert not found._is_client_full("::ffff:127.0.0.1")


def test_a_process_without_free_files_waits_and_does_not_spin(monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr(front.time, "sleep", waits.append)
    with waiting(Reverser()) as found, socket.socket() as listener:
        monkeypatch.setattr(socket.socket, "accept", _no_files)
        found._accept(listener)
        monkeypatch.undo()

    assert waits == [front._NO_MORE_FILES_S]


def _no_files(listener: socket.socket) -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


class Threadless(Reverser):
    """Wants a thread when it stops, as gRPC's server does, where no more are to be had."""

    def stop(self, grace: float | None) -> threading.Event:
        super().stop(grace)
        raise RuntimeError("can't create new thread at interpreter shutdown")


@pytest.mark.parametrize("native", [Reverser(), Threadless()], ids=["with threads", "without"])
def test_a_front_that_closes_lets_an_answer_out(native):
    found = Front(listen("127.0.0.1", 0), native.start)
    found.start()
    with connected(found) as client:
        client.sendall(b"ab")
        client.shutdown(socket.SHUT_WR)
        heard = client.recv(8)
        found.close()
        found.stop_native(_PATIENCE_S)

    assert heard == b"ba"
    with pytest.raises(OSError, match="refused"):
        connected(found)


@pytest.mark.parametrize(
    ("address", "reason"),
    [("192.0.2.1", "Cannot assign requested address"), ("no host", "")],
    ids=["another machine's", "no name"],
)
def test_an_address_that_is_not_this_machines_is_told(address, reason):
    with pytest.raises(CaptureError, match=rf"cannot listen on {address}:0: {reason}"):
        server.start(0, address=address, open_to_all=True, strict=True)


def test_a_name_with_several_addresses_has_one_port_on_all(monkeypatch):
    places = [(socket.AF_INET, 1, 6, "", (host, 0)) for host in ("127.0.0.1", "192.0.2.1", "127.0.0.2")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
    with ExitStack() as opened:
        names = [opened.enter_context(each).getsockname() for each in listen("localhost", 0)]

    assert [host for host, _ in names] == ["127.0.0.1", "127.0.0.2"]  # the other is not this machine's
    assert len({port for _, port in names}) == 1


def test_a_server_that_waits_has_no_thread_of_python():
    before, frames = set(threading.enumerate()), set(sys._current_frames())
    server.start(0, address="127.0.0.1", strict=True)
    during, waiting = set(threading.enumerate()) - before, set(sys._current_frames()) - frames
    server.stop()

    assert not during
    assert not waiting or sys.platform != "linux"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork")  # JAX's, where another test has imported it
def test_a_child_does_not_hold_the_port_of_its_parent():
    port = server.start(0, strict=True)
    ours, childs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        childs.send(b"x")
        childs.recv(1)  # lives for longer than the parent's server
        os._exit(0)
    try:
        childs.close()
        ours.recv(1)
        server.stop()
        again = server.start(port, strict=True)
    finally:
        ours.close()
        os.waitpid(child, 0)
        server.stop()

    assert again == port
