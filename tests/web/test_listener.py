"""Connections that say nothing, requests that never end, and bodies that nobody asked for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from waiting import await_until

from stepscope.web import listener
from stepscope.web.listener import EvictingServer

PATIENCE_S = 60.0
ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
THREADS = 2
MOST_BODY = 1000


def app(environ, start_response):
    """Answers with the length of the body."""
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{len(body)} bytes".encode()]


@contextmanager
def listening(asked=app) -> Iterator[EvictingServer]:
    """A server, for as long as the context lasts."""
    made = EvictingServer(asked, socket.create_server(("127.0.0.1", 0)), THREADS, MOST_BODY)
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.stop()
        thread.join(PATIENCE_S)
        made.close()
        assert not thread.is_alive()


def connected(made: EvictingServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", made.effective_port), PATIENCE_S)


def answer(made: EvictingServer, request: bytes = ASK) -> bytes:
    """The answer on a connection of its own."""
    with connected(made) as client:
        client.sendall(request)
        said = b""
        while not (said.endswith(b"bytes") or b" 4" in said) and (piece := client.recv(1000)):
            said += piece
        return said


@pytest.mark.parametrize("said", [b"", ASK[:20], b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\nx"],
                         ids=["silent", "half a head", "half a body"])  # fmt: skip
def test_a_thousand_connections_that_wait_lock_nobody_out(said):
    """Waitress's own limit of 100 made the next one wait for two minutes."""
    with listening() as made, ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(connected(made)).sendall(said)
        for _ in range(300):
            stack.enter_context(connected(made)).sendall(said)

        assert answer(made).startswith(b"HTTP/1.1 200 OK")
        assert len(made.active_channels) <= listener.MOST_CONNECTIONS


def test_connections_that_are_kept_after_an_answer_lock_nobody_out():
    with listening() as made, ExitStack() as stack:
        for _ in range(99):
            kept = stack.enter_context(connected(made))
            kept.sendall(ASK)
            assert kept.recv(1000).startswith(b"HTTP/1.1 200 OK")

        assert answer(made).startswith(b"HTTP/1.1 200 OK")


def test_a_body_that_is_too_long_is_refused_before_it_is_sent():
    announced = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 314572800\r\n\r\n"
    chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + b"x" * 2000 + b"\r\n"
    with listening() as made:
        assert answer(made, announced).startswith(b"HTTP/1.1 413")
        assert answer(made, chunked).startswith(b"HTTP/1.1 413")
        assert b"3 bytes" in answer(made, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")


def test_a_head_without_an_end_is_refused():
    with listening() as made:
        assert b" 431 " in answer(made, b"GET / HTTP/1.1\r\nX: " + b"a" * (66 << 10))[:20]


def test_a_request_that_takes_too_long_to_arrive_ends(monkeypatch):
    monkeypatch.setattr(listener, "LONGEST_REQUEST_SECONDS", 0.0)
    with listening() as made, connected(made) as slow:
        made.next_channel_cleanup = 0
        made.adj.cleanup_interval = 0
        slow.sendall(ASK[:10])

        def is_gone() -> bool:
            made.pull_trigger()
            return not made.active_channels

        assert slow.recv(1) == b""
        await_until(is_gone, PATIENCE_S, "the end of the connection")


def test_signs_of_life_wait_for_nobody():
    """Neither pages nor questions in SQL that take all threads of their kind."""
    held = threading.Event()

    def slow(environ, start_response):
        if environ["PATH_INFO"] != "/healthz":
            held.wait(PATIENCE_S)
        return app(environ, start_response)

    with listening(slow) as made, ExitStack() as stack:
        for path in [b"/page", b"/api/sessions/a/sql"] * 20:
            stack.enter_context(connected(made)).sendall(ASK.replace(b"/ ", path + b" "))
        assert answer(made, ASK.replace(b"/ ", b"/healthz ")).startswith(b"HTTP/1.1 200 OK")
        held.set()


@pytest.mark.parametrize("start", [ASK[:20], b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\nx"])
def test_a_request_has_its_time_from_its_first_byte_on(start):
    """However often a byte of it comes, and however long the connection was kept before."""
    with listening() as made, connected(made) as client:
        client.sendall(ASK)
        client.recv(1000)
        client.sendall(start)
        [channel] = await_until(lambda: [each for each in made.active_channels.values() if each.request], 60, "a byte")
        client.sendall(b"x")

        made.maintenance(channel.request_since + listener.LONGEST_REQUEST_SECONDS - 3)
        assert not channel.will_close
        made.maintenance(channel.request_since + listener.LONGEST_REQUEST_SECONDS - 1)
        assert channel.will_close
