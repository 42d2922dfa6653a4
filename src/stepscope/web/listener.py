"""The production WSGI server, waitress, made fit for clients that keep connections and say nothing.

Waitress stops accepting once it has as many connections as it may have, and closes silent ones only after two minutes:
a hundred idle browsers would lock out the next.  Here the connection that has been silent for longest makes room.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

if TYPE_CHECKING:
    import socket
    from wsgiref.types import WSGIApplication

MOST_CONNECTIONS = 512
"""Below the usual 1024 files of a process, half of which are for profiles and for libraries."""

IDLE_SECONDS = 60
"""After this time without a byte a connection is closed; browsers open another when they need one."""

LONGEST_REQUEST_SECONDS = 30.0
"""For the head and the body of a request to arrive: 1 MiB takes a second on a slow line."""

_LOOK_SECONDS = 5
_ROOM = 16  # connections that are closed at once when there is no room, so that this is not done for each

_log = logging.getLogger(__name__)


class Listener(TcpWSGIServer):  # type: ignore[misc]
    """Waitress on a bound socket."""

    def __init__(self, app: WSGIApplication, bound: socket.socket, threads: int, most_body: int) -> None:
        # waitress warns of every request that waits for a thread, which happens whenever a profile is loaded.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        settings = Adjustments(
            sockets=[bound],
            threads=threads,
            ident="stepscope",
            connection_limit=MOST_CONNECTIONS,
            channel_timeout=IDLE_SECONDS,
            cleanup_interval=_LOOK_SECONDS,
            max_request_body_size=most_body,  # refused by its announced length, before a byte of it is kept
            max_request_header_size=64 << 10,
            asyncore_use_poll=True,  # the other way fails from the 1024th open file on
            clear_untrusted_proxy_headers=False,  # the app knows which proxy it may believe
        )
        workers = ThreadedTaskDispatcher()
        workers.set_thread_count(threads)
        address = (bound.family, bound.type, bound.proto, bound.getsockname())
        super().__init__(
            app, {}, True, bound, dispatcher=workers, adj=settings, bind_socket=False, sockinfo=address
        )  # fmt: skip

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
            if channel.request is None:
                channel.request_since = None
            elif getattr(channel, "request_since", None) is None:
                channel.request_since = now
            elif now - channel.request_since > LONGEST_REQUEST_SECONDS:
                channel.will_close = True

    def close_silent(self, count: int) -> None:
        """Closes the connections that nothing is done for, those first that have been silent for longest."""
        silent = [
            channel for channel in self.active_channels.values() if not (channel.requests or channel.total_outbufs_len)
        ]
        for channel in sorted(silent, key=_last_sign)[:count]:
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


def _last_sign(channel: Any) -> float:
    return float(channel.last_activity)
