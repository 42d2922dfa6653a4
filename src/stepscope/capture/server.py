"""Lets TensorBoard, XProf, TensorFlow's client, `stepscope capture` and `stepscope.client` capture this program.

    stepscope.server.start(6009)

It speaks the service of `tf.profiler.experimental.server` and `jax.profiler.start_server`, and captures with the tracer
that the program would use itself, PyTorch's and Stepscope's own among them.  While nobody asks for anything a socket
waits and nothing runs; see `stepscope.capture.remote.front`.  It never keeps the program from ending.
"""

from __future__ import annotations

import atexit
import operator
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

from stepscope.capture import report
from stepscope.errors import CaptureError
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.capture.remote.front import Front
    from stepscope.capture.remote.handlers import Service

__all__ = ["start", "stop"]

ANY_ADDRESS = "[::]"
"""All addresses of the machine, IPv4 and IPv6, as the frameworks' servers listen."""

_MAX_CALLS = 16  # at once
_GRACE_SECONDS = 5.0  # for sending what calls have when the server stops


@dataclass(frozen=True, eq=False)
class Server:
    """A server that listens."""

    front: Front
    service: Service


_server: Server | None = None
_lock = threading.RLock()
_parent_natives: list[object] = []  # never freed: their threads are not in this process, and freeing waits for them


def start(port: int | str, *, address: str = ANY_ADDRESS, strict: bool = False) -> int | None:
    """Starts the profiler server of this process.

    Whoever can reach the port can capture the program and have the profile written to any folder that the program may
    write to.  The protocol knows no passwords: on a network that others use, listen on `localhost` and use a tunnel.

    Args:
        port: where to listen; 0 chooses a free port.  A text will do, as it comes from the environment.
        address: the address to listen on.
        strict: raise instead of logging.

    Returns:
        The port; None if it does not listen, `stepscope.last_error()` then tells why.

    Raises:
        CaptureError: only with `strict`: the port is taken, or this process has a server already.
    """
    global _server
    with report.Wall("starting the profiler server", strict), _lock:
        _refuse_second()
        _server = _start_listening(_parse_port(port), address)
        atexit.register(stop)
        return _server.front.port
    return None


def stop() -> None:
    """Stops the server.  A capture that runs for a client ends, and the client gets what was recorded."""
    global _server
    with _lock:
        server, _server = _server, None
        atexit.unregister(stop)
    if server is None:
        return
    with report.Wall("stopping the profiler server", strict=False):
        server.front.close()
        server.service.end()
        server.front.stop_native(_GRACE_SECONDS)


def _refuse_second() -> None:
    if _server is not None:
        raise CaptureError(
            f"this process has a profiler server on port {_server.front.port} already",
            code="already-running",
            kept="that server",
            hint="one server serves any number of clients; call stop() first to move it",
        )


def _parse_port(port: object) -> int:
    """The port; raises CaptureError for what is none."""
    try:
        number = int(port) if isinstance(port, str) else operator.index(port)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number <= 65535:
        raise CaptureError(f"port {port} does not exist", code="address", hint="choose 1 to 65535, or 0 for any")
    return number


def _start_listening(port: int, address: str) -> Server:
    from stepscope.capture.remote.front import Front, listen
    from stepscope.capture.remote.handlers import Service

    try:
        listening = listen(address, port)
    except OSError as error:
        number = error.errno or 0  # below 0 for an unknown name; what Python says of a taken port is long
        reason = os.strerror(number) if number > 0 else error.strerror or error
        raise CaptureError(
            f"cannot listen on {address}:{port}: {reason}",
            code="address",
            lost="captures over the network; training goes on",
            hint="another program or worker of this job may have the port; choose one per process, or 0 for any",
        ) from error
    service = Service()
    front = Front(listening, lambda host: _start_native(service, host))
    front.start()
    return Server(front, service)


def _start_native(service: Service, host: str) -> tuple[Any, int]:
    """The server of gRPC, on a port that nobody knows."""
    import grpc

    from stepscope.capture.remote.service import MESSAGE_SIZES

    native = grpc.server(_DaemonThreads(), options=MESSAGE_SIZES, maximum_concurrent_rpcs=_MAX_CALLS)
    native.add_generic_rpc_handlers((service.handlers(),))
    port = int(native.add_insecure_port(f"{host}:0"))
    native.start()
    return native, port


class _DaemonThreads(Executor):
    """A thread for each call, which does not outlive the program.  The pools of the standard library are waited for
    when the interpreter ends, and a capture may take minutes."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Runs a call on a thread of its own."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name="stepscope-server", daemon=True).start()
        return future


def _forget_parent() -> None:
    """After a fork: the server is the parent's, which goes on to serve."""
    global _server, _lock
    _lock = threading.RLock()
    if _server is not None:
        _parent_natives.append(_server.front.abandon())
        _server = None
        atexit.unregister(stop)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
