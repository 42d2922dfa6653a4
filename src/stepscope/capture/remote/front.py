"""The port of the profiler server: sockets that wait, which costs nothing.

A gRPC server wakes up a dozen times per second, and its threads and locks do not survive a fork of the program.  So it
runs only while there are clients.  It starts with the first byte of the first client, on a local port that is not
announced.  The bytes are forwarded in both directions.  Some time after the last connection it is stopped again.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from stepscope.capture import report
from stepscope.capture.handles import move_socket_up
from stepscope.capture.own_threads import OwnThread, Recurring

LINGER_S = 60.0
"""How long gRPC's server stays after the last connection, at least."""

_FIRST_BYTE_S = 30.0  # a connection that sends nothing for so long is closed
_MOST_CONNECTIONS = 64
_MOST_OF_A_CLIENT = 16  # connections from one address of another machine
_PIECE = 1 << 18
_NO_MORE_FILES_S = 1.0
_CLOSE_S = 5.0  # of the program's end, for the thread that accepts
_LOOPBACK = "127.0.0.1"


class Native(Protocol):
    """gRPC's server."""

    def stop(self, grace: float | None) -> threading.Event:
        """Stops the server; the returned event is set when its calls have ended."""


StartNative = Callable[[str], tuple[Native, int]]  # the address to listen on -> the server, and its port


def listen(address: str, port: int) -> list[socket.socket]:
    """Opens sockets that listen on all addresses of a name, all on one port; port 0 chooses a free one.

    Raises:
        OSError: the name is unknown, the port is taken, or none of the addresses is this machine's.
    """
    if address in ("", "[::]", "::") and socket.has_dualstack_ipv6():
        return [socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)]
    host = "" if address == "[::]" else address.strip("[]")  # this machine has no IPv6
    found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listening: list[socket.socket] = []
    try:
        for family, place in dict.fromkeys((family, place[:2]) for family, _, _, _, place in found):
            _listen_on_address(listening, family, str(place[0]), port)
    except OSError:
        for opened in listening:
            opened.close()
        raise
    return listening


def _listen_on_address(listening: list[socket.socket], family: int, host: str, port: int) -> None:
    """Listens on one more address.  One that this machine does not have is left out if there are others."""
    bound = listening[0].getsockname()[1] if listening else port
    try:
        listening.append(socket.create_server((host, bound), family=family))
    except OSError as error:
        if not listening or error.errno == errno.EADDRINUSE:
            raise


class Front:
    """Waits for clients, and forwards the bytes between them and gRPC's server.

    Args:
        listening: sockets that listen; they are closed with the front.
        start_native: starts gRPC's server.
        linger_s: how long that stays after the last connection, at least.
    """

    def __init__(self, listening: list[socket.socket], start_native: StartNative, linger_s: float = LINGER_S) -> None:
        self.port = int(listening[0].getsockname()[1])
        self._listening = [move_socket_up(each) for each in listening]
        self._start_native = start_native
        self._linger_s = linger_s
        self._lock = threading.Lock()
        self._native: tuple[Native, int] | None = None
        self._connections: dict[OwnThread, socket.socket] = {}
        self._silent: dict[OwnThread, socket.socket] = {}  # those that have sent nothing yet, oldest first
        self._has_served = False  # since gRPC's server was looked at last
        waited_for = [opened.fileno() for opened in self._listening]
        self._waiting = Recurring(self._look, -1.0, "stepscope-server", waited_for)

    def start(self) -> None:
        """Starts accepting connections."""
        for listener in self._listening:
            listener.setblocking(False)
        self._waiting.start()

    def close(self) -> None:
        """Ends accepting connections."""
        self._waiting.stop()
        self._waiting.join(_CLOSE_S)
        self._drop_sockets()

    def stop_native(self, grace_s: float) -> None:
        """Stops gRPC's server, and waits until clients have received its answers, at most `grace_s`."""
        until = time.monotonic() + grace_s
        with self._lock:
            native, self._native = self._native, None
        # When the program ends, Python 3.12 starts no more threads, so gRPC cannot cut off calls after the grace.  Then
        # gRPC takes no new calls, and the open ones end with their connections.
        with suppress(RuntimeError):
            if native is not None:
                native[0].stop(grace_s).wait(grace_s)  # returns when there are no more calls
        for connection in list(self._connections):
            connection.join(max(0.0, until - time.monotonic()))

    def abandon(self) -> object:
        """In a forked child: closes the child's copies of the sockets, so that they end with the parent.

        Returns:
            An object that must never be freed: freeing it waits for its threads, which are not in this process.
        """
        self._drop_sockets()
        for client in list(self._connections.values()):
            client.close()
        return self._native

    def _drop_sockets(self) -> None:
        for opened in self._listening:
            with suppress(OSError):  # the program may have closed all files that it did not open
                opened.close()

    # -- connections -------------------------------------------------------------------------------------------------

    def _look(self) -> float:
        """Accepts whoever waits; returns the seconds until gRPC's server may be no longer needed."""
        for listener in self._listening:
            while self._accept(listener):
                self._has_served = True
        if self._has_served or self._connections:
            self._has_served = False
            return self._linger_s
        self.stop_native(0)
        return -1.0  # without clients there is nothing to do

    def _accept(self, listener: socket.socket) -> bool:
        """Accepts one connection; False if nobody waits."""
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                time.sleep(_NO_MORE_FILES_S)  # the client still waits, and would be reported again at once
            return False
        client.setblocking(True)
        thread = OwnThread(lambda: self._serve(thread, client), name="stepscope-connection")
        if self._is_client_full(str(address[0])):
            client.close()
            return True
        if len(self._connections) >= _MOST_CONNECTIONS:
            self._drop_silent()
        self._connections[thread] = self._silent[thread] = client
        try:
            if len(self._connections) > _MOST_CONNECTIONS:
                raise RuntimeError("too many connections")
            thread.start()
        except RuntimeError:  # or no thread can be started
            del self._connections[thread], self._silent[thread]
            client.close()
        return True

    def _is_client_full(self, host: str) -> bool:
        """Whether another machine has as many connections as one may have."""
        if ipaddress.ip_address(host.partition("%")[0].removeprefix("::ffff:")).is_loopback:
            return False
        return sum(_peer(client) == host for client in list(self._connections.values())) >= _MOST_OF_A_CLIENT

    def _drop_silent(self) -> None:
        """Ends the connection that has been silent for longest: idle ones must not lock others out."""
        for thread, client in list(self._silent.items())[:1]:
            self._silent.pop(thread, None)
            self._connections.pop(thread, None)
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)  # its thread closes it

    def _serve(self, thread: OwnThread, client: socket.socket) -> None:
        try:
            with report.NeverRaise("serving a profiler client", strict=False), client:
                client.settimeout(_FIRST_BYTE_S)
                with suppress(OSError):
                    first = client.recv(_PIECE)
                    self._silent.pop(thread, None)
                    client.settimeout(None)
                    if first:
                        self._join(client, first)
        finally:
            self._silent.pop(thread, None)
            self._connections.pop(thread, None)

    def _join(self, client: socket.socket, first: bytes) -> None:
        with socket.create_connection((_LOOPBACK, self._native_port())) as server:
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answers = OwnThread(_forward, (server, client), "stepscope-answers")
            answers.start()
            server.sendall(first)
            _forward(client, server)
            answers.join(threading.TIMEOUT_MAX)

    def _native_port(self) -> int:
        with self._lock:
            if self._native is None:
                self._native = self._start_native(_LOOPBACK)
            return self._native[1]


def _peer(client: socket.socket) -> str:
    try:
        return str(client.getpeername()[0])
    except OSError:  # it has gone
        return ""


def _forward(source: socket.socket, sink: socket.socket) -> None:
    """Forwards all bytes, and then the end of the stream."""
    piece = memoryview(bytearray(_PIECE))
    with suppress(OSError):  # either side may have gone
        while count := source.recv_into(piece):
            sink.sendall(piece[:count])
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
