"""The production WSGI server, waitress, made fit for clients that keep connections and say nothing.

Waitress stops accepting once it has as many connections as it may have, and closes silent ones only after two minutes:
a hundred idle browsers would lock out the next.  Here the connection that has been silent for longest makes room.
"""

from __future__ import annotations

import logging
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

from stepscope.errors import UsageError
from stepscope.sql.limits import AT_ONCE

if TYPE_CHECKING:
    import socket
    from wsgiref.types import WSGIApplication

MOST_CONNECTIONS = 512
"""Below the usual 1024 files of a process, half of which are for profiles and for libraries."""

IDLE_SECONDS = 60
"""After this time without a byte a connection is closed; browsers open another when they need one."""

LONGEST_REQUEST_SECONDS = 30.0
"""For the head and the body of a request to arrive: 1 MiB takes a second on a slow line."""

_LOOK_SECONDS = 1
_ROOM = 16  # connections that are closed at once when there is no room, so that this is not done for each


class EvictingServer(TcpWSGIServer):  # type: ignore[misc]
    """Waitress on a bound socket."""

    def __init__(
        self,
        app: WSGIApplication,
        bound: socket.socket,
        threads: int,
        most_body: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self.channel_class = Channel if tls is None else TlsChannel
        # waitress warns of every request that waits for a thread, which happens whenever a profile is loaded.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        settings = Adjustments(
            sockets=[bound],
            threads=threads,
            ident="stepscope",
            url_scheme="http" if tls is None else "https",
            connection_limit=MOST_CONNECTIONS,
            channel_timeout=IDLE_SECONDS,
            cleanup_interval=_LOOK_SECONDS,
            max_request_body_size=most_body,  # refused by its announced length, before a byte of it is kept
            max_request_header_size=64 << 10,
            asyncore_use_poll=True,  # the other way fails from the 1024th open file on
            clear_untrusted_proxy_headers=False,  # the app knows which proxy it may believe
        )
        workers = Lanes(threads)
        address = (bound.family, bound.type, bound.proto, bound.getsockname())
        super().__init__(
            app, {}, True, bound, dispatcher=workers, adj=settings, bind_socket=False, sockinfo=address
        )  # fmt: skip

    def accept(self) -> tuple[socket.socket, Any] | None:
        """The next connection and its address; None if it is gone already."""
        accepted = super().accept()
        if accepted is None or self._tls is None:
            return cast("tuple[socket.socket, Any] | None", accepted)
        connection, address = accepted
        connection.setblocking(False)
        # The handshake happens with the first bytes that are read, so a client that never begins it holds nobody up.
        return self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def readable(self) -> bool:
        """Whether to accept a connection now: always, since silent ones make room."""
        if len(self._map) >= self.adj.connection_limit:
            self.close_silent(_ROOM)
        ready: bool = super().readable()
        return ready

    def maintenance(self, now: float) -> None:
        """Closes connections without a sign of life, and those whose request takes too long to arrive."""
        super().maintenance(now)
        for channel in list(self.active_channels.values()):
            # The next look may be two intervals away.
            if (
                channel.request is not None
                and now - channel.request_since > LONGEST_REQUEST_SECONDS - 2 * _LOOK_SECONDS
            ):
                channel.will_close = True

    def close_silent(self, count: int) -> None:
        """Closes the connections that nothing is done for, those first that have been silent for longest."""
        silent = [
            channel for channel in self.active_channels.values() if not (channel.requests or channel.total_outbufs_len)
        ]
        for channel in sorted(silent, key=lambda channel: float(channel.last_activity))[:count]:
            channel.handle_close()

    def stop(self) -> None:
        """Makes `run` return; called from another thread."""
        self.trigger.pull_trigger(self._end)

    def finish(self, patience: float) -> None:
        """Takes no more connections, answers what was asked, at most for `patience` seconds, and makes `run` return;
        called from another thread."""
        self.trigger.pull_trigger(self.socket_gone)
        until = time.monotonic() + patience
        while time.monotonic() < until and any(channel.requests for channel in list(self.active_channels.values())):
            time.sleep(0.05)
        self.stop()

    def socket_gone(self) -> None:
        """Stops listening; open connections go on."""
        self.accepting = False

    def _end(self) -> None:
        """Closes all sockets in the server's loop, which then ends; waitress's own method leaves connections open."""
        self.task_dispatcher.shutdown(timeout=1)
        for channel in list(self._map.values()):
            channel.close()


class Lanes(ThreadedTaskDispatcher):  # type: ignore[misc]
    """Threads for each kind of request, so that no kind waits for another: pages, questions in SQL, signs of life."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self._questions, self._life = ThreadedTaskDispatcher(), ThreadedTaskDispatcher()
        self.set_thread_count(threads)
        # Those that are answered wait in their threads; one more refuses what is too much.
        self._questions.set_thread_count(AT_ONCE + 1)
        self._life.set_thread_count(1)

    def add_task(self, task: HTTPChannel) -> None:
        """Has a thread of its kind answer the connection's next request."""
        path = getattr(task.requests[0], "path", "")  # what was sent may be no request
        if path.endswith("/sql"):
            self._questions.add_task(task)
        elif path.endswith("/healthz"):
            self._life.add_task(task)
        else:
            super().add_task(task)

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> bool:
        """Ends all threads."""
        for lane in (self._questions, self._life):
            lane.shutdown(cancel_pending, timeout)
        ended: bool = super().shutdown(cancel_pending, timeout)
        return ended


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection.

    Attributes:
        request_since: when the first byte of the request came that has not ended.
    """

    request_since = 0.0

    def received(self, data: bytes) -> bool:
        """Takes bytes of one or more requests."""
        if self.request is None:
            self.request_since = time.time()
        taken: bool = super().received(data)
        return taken


class TlsChannel(Channel):
    """A connection under TLS."""

    def handle_read(self) -> None:
        """Reads all that has been decrypted: the system does not report what lies in the TLS library's buffer."""
        while self.connected and not self.will_close:
            try:
                data = self.socket.recv(self.adj.recv_bytes)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except OSError:  # no TLS, a refused certificate, or a lost connection
                self.handle_close()
                return
            if not data:
                self.handle_close()
                return
            self.last_activity = time.time()
            self.received(data)
            if not self.socket.pending():
                return

    def send(self, data: bytes, do_close: bool = True) -> int:
        """Sends what the TLS library takes now; returns the number of bytes."""
        try:
            return cast("int", self.socket.send(data))
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
        except OSError:
            if do_close:
                self.handle_close()
            return 0


def load_certificate(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """What TLS needs: a certificate with its chain, and its key.  Raises UsageError if they do not fit."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        hint = "give --tls-cert and --tls-key as files in PEM form that belong together"
        raise UsageError(f"the certificate cannot be used: {error.strerror or error}", hint=hint) from error
    return context
