"""The port, the browser, and the server that `stepscope open` runs."""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING

from stepscope.errors import UsageError
from stepscope.web.app import MOST_BODY_BYTES, App, LogRequest
from stepscope.web.hosts import is_loopback
from stepscope.web.listener import EvictingServer
from stepscope.web.notes.purge import Purger, wanted_days
from stepscope.web.site import Site

__all__ = [
    "DEFAULT_PORT", "PORTS_TRIED", "PageServer", "bind_socket", "has_browser", "is_loopback", "open_browser",
    "page_url",
]  # fmt: skip

if TYPE_CHECKING:
    import ssl

    from stepscope.web.auth.gate import Gate

DEFAULT_PORT = 8090
PORTS_TRIED = 50
THREADS = 8
"""Enough that loading one profile does not delay requests for others."""


def bind_socket(host: str, port: int | None, tries: int = PORTS_TRIED) -> socket.socket:
    """A listening socket on the port or the next free one; 0 means any.

    Raises UsageError if the address does not belong to this machine or none of the tried ports is free.
    """
    wanted = DEFAULT_PORT if port is None else port
    for candidate in range(wanted, wanted + (tries if wanted else 1)):
        try:
            return _listen(host, candidate)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                hint = "give an address of this machine, such as 127.0.0.1 or 0.0.0.0"
                raise UsageError(f"cannot listen on {host}: {error.strerror or error}", hint=hint) from error
        except OverflowError:
            break
    last = min(wanted + tries - 1, 65535)
    ports = f"port {wanted} is not" if last == wanted else f"no port from {wanted} to {last} is"
    raise UsageError(f"{ports} free on {host}", hint="give another --port")


def _listen(host: str, port: int) -> socket.socket:
    """Listens without SO_REUSEPORT, so that a port in use raises an error."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except BaseException:
        made.close()
        raise
    return made


def page_url(bound: socket.socket, scheme: str = "http") -> str:
    """The URL of the page for a browser on this machine."""
    host, port = bound.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"


class PageServer:
    """A production WSGI server on a bound socket."""

    def __init__(
        self,
        site: Site,
        bound: socket.socket,
        gate: Gate | None = None,
        tls: ssl.SSLContext | None = None,
        log: LogRequest | None = None,
    ) -> None:
        self._site = site
        self._listener = EvictingServer(App(site, gate, log), bound, THREADS, MOST_BODY_BYTES, tls)

    def run(self) -> None:
        """Answers requests until the process is interrupted or `stop` is called."""
        self._site.warm_up()
        days = wanted_days() if self._site.options.is_shared else None
        purger = None if days is None else Purger(self._site, days)
        if purger is not None:
            purger.start()
        try:
            self._listener.run()
        finally:
            if purger is not None:
                purger.stop()
            self._site.close()
            self._listener.close()

    def stop(self) -> None:
        """Makes `run` return; called from another thread."""
        self._listener.stop()

    def finish(self, patience: float) -> None:
        """Makes `run` return once open requests are answered; called from another thread."""
        self._site.end()
        self._listener.finish(patience)


def has_browser() -> bool:
    """Whether a browser can be opened; on Linux only one with a window, as a text browser would take the terminal."""
    if os.environ.get("BROWSER") or sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_browser(address: str) -> None:
    """Opens the browser without waiting for it; does nothing on a machine without one."""
    if has_browser():
        threading.Thread(target=webbrowser.open, args=(address,), name="browser", daemon=True).start()
