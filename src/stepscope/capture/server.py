"""A profiler server: TensorBoard, XProf, TensorFlow's client, `stepscope capture` and `stepscope.client` can use it.

    stepscope.server.start(6009)

It offers the service of `tf.profiler.experimental.server` and `jax.profiler.start_server`.  It captures with the tracer
that the program itself would use, which may be PyTorch's or Stepscope's own.  Until a client connects, only a socket
waits; see `stepscope.capture.remote.front`.  The server never keeps the program from ending.
"""

from __future__ import annotations

import atexit
import operator
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.capture import report
from stepscope.capture.running_servers import announce_server, withdraw_server
from stepscope.errors import CaptureError
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.capture.remote.front import Front
    from stepscope.capture.remote.handlers import Service

__all__ = ["start", "stop"]

ANY_ADDRESS = "[::]"
"""All addresses of the machine, IPv4 and IPv6, as the frameworks' servers listen."""

_MAX_CALLS = 16  # at once
_GRACE_SECONDS = 5.0  # for sending the results of open calls when the server stops


@dataclass(frozen=True, eq=False)
class Server:
    """A running server; `note` lets this user's page and command line find it."""

    front: Front
    service: Service
    note: Path | None


class OnlyServer:
    """The one server that this process may have.

    Attributes:
        running: the server; None if there is none.
        lock: held while the server starts or stops.  It is reentrant, because a signal handler may stop the server.
        parent_natives: gRPC's servers of the parents of this process.  They are never freed: their threads are not in
            this process, and freeing waits for them.
    """

    def __init__(self) -> None:
        self.running: Server | None = None
        self.lock = threading.RLock()
        self.parent_natives: list[object] = []

    def forget_parent(self) -> None:
        """After a fork: the server belongs to the parent, which goes on serving."""
        self.lock = threading.RLock()
        if self.running is not None:
            self.parent_natives.append(self.running.front.abandon())
            self.running = None
            atexit.unregister(stop)


SERVER = OnlyServer()


def start(port: int | str, *, address: str = ANY_ADDRESS, strict: bool = False) -> int | None:
    """Starts the profiler server of this process.

    Anyone who can reach the port can capture the program, and can have the profile written to any folder that the
    program may write to.  The protocol has no passwords: on a shared network, listen on `localhost` and use a tunnel.

    Args:
        port: where to listen; 0 chooses a free port.  A text such as "6009" works, too.
        address: the address to listen on.
        strict: raise instead of logging.

    Returns:
        The port.  None if the server could not start; `stepscope.last_error()` then says why.

    Raises:
        CaptureError: only with `strict`: the port is taken, or this process has a server already.
    """
    with report.Wall("starting the profiler server", strict), SERVER.lock:
        _refuse_second(SERVER.running)
        SERVER.running = server = _start_listening(_parse_port(port), address)
        atexit.register(stop)
        return server.front.port
    return None


def stop() -> None:
    """Stops the server.  A capture for a client ends, and the client gets what was recorded until then."""
    with SERVER.lock:
        server, SERVER.running = SERVER.running, None
        atexit.unregister(stop)
    if server is None:
        return
    withdraw_server(server.note)
    with report.Wall("stopping the profiler server", strict=False):
        server.front.close()
        server.service.end()
        server.front.stop_native(_GRACE_SECONDS)


def _refuse_second(running: Server | None) -> None:
    if running is not None:
        raise CaptureError(
            f"this process already has a profiler server on port {running.front.port}",
            code="already-running",
            kept="that server",
            hint="one server is enough for any number of clients; to move it, call stop() first",
        )


def _parse_port(port: object) -> int:
    """The port as a number.  Raises CaptureError if it is invalid."""
    try:
        number = int(port) if isinstance(port, str) else operator.index(port)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number <= 65535:
        raise CaptureError(f"{port} is not a port", code="address", hint="choose 1 to 65535, or 0 for any")
    return number


def _start_listening(port: int, address: str) -> Server:
    from stepscope.capture.remote.front import Front, listen
    from stepscope.capture.remote.handlers import Service

    try:
        listening = listen(address, port)
    except OSError as error:
        number = error.errno or 0  # negative for an unknown name; Python's own message for a taken port is long
        reason = os.strerror(number) if number > 0 else error.strerror or error
        raise CaptureError(
            f"cannot listen on {address}:{port}: {reason}",
            code="address",
            lost="captures over the network; training goes on",
            hint="another program or worker of this job may use the port; choose one per process, or 0 for a free one",
        ) from error
    service = Service()
    front = Front(listening, lambda host: _start_native(service, host))
    front.start()
    return Server(front, service, announce_server(front.port))


def _start_native(service: Service, host: str) -> tuple[Any, int]:
    """Starts gRPC's server on a port that is not announced; returns the server and the port."""
    import grpc

    from stepscope.capture.remote.service import MESSAGE_SIZES

    native = grpc.server(_DaemonThreads(), options=MESSAGE_SIZES, maximum_concurrent_rpcs=_MAX_CALLS)
    native.add_generic_rpc_handlers((service.handlers(),))
    port = int(native.add_insecure_port(f"{host}:0"))
    native.start()
    return native, port


class _DaemonThreads(Executor):
    """Runs each call on a daemon thread.  The interpreter's end would wait for a pool of the standard library, and a
    capture may take minutes."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Runs a call on a new thread."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name="stepscope-server", daemon=True).start()
        return future


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SERVER.forget_parent)
