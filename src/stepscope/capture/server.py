"""A profiler server: TensorBoard, XProf, TensorFlow's client, `stepscope capture` and `stepscope.client` can use it.

    stepscope.server.start(6009)

It offers the service of `tf.profiler.experimental.server` and `jax.profiler.start_server`.  It captures with the tracer
that the program itself would use, which may be PyTorch's or Stepscope's own.  Until a client connects, only a socket
waits; see `stepscope.capture.remote.front`.  The server never keeps the program from ending.
"""

from __future__ import annotations

import atexit
import ipaddress
import operator
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.capture import report
from stepscope.capture.own_threads import register_at_fork
from stepscope.capture.remote.running_servers import announce_server, withdraw_server
from stepscope.errors import CaptureError
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.capture.remote.access import Access
    from stepscope.capture.remote.front import Front
    from stepscope.capture.remote.handlers import Service

__all__ = ["ANY_ADDRESS", "start", "stop"]

LOOPBACK = "localhost"
"""The addresses that only programs of this machine reach."""

ANY_ADDRESS = "[::]"
"""All addresses of the machine, IPv4 and IPv6, on which the frameworks' servers listen."""

_MAX_CALLS = 16  # at once
_GRACE_SECONDS = 5.0  # for sending the results of open calls when the server stops


@dataclass(frozen=True, eq=False)
class Server:
    """A running server.

    Attributes:
        services: what answers clients: none before the first client, since what it imports is no business of a program
            that nobody asks.
        access: who may ask.
        note: lets this user's page and command line find it.
        gives_way: it was started for the job, not by the program, and ends when the program starts one.
    """

    front: Front
    services: list[Service]
    access: Access
    note: Path | None
    gives_way: bool = False


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


def start(
    port: int | str,
    *,
    address: str = LOOPBACK,
    token: str | None = None,
    open_to_all: bool = False,
    logdir: str | os.PathLike[str] | None = None,
    any_folder: bool = False,
    strict: bool = False,
) -> int | None:
    """Starts the profiler server of this process.

    Programs of this machine reach it.  With another address, such as `server.ANY_ADDRESS`, other machines do too; then
    clients need a token, or `open_to_all` says that none is needed.  gRPC sends the token as plain text: it keeps out
    who cannot listen in the network.

    Args:
        port: where to listen; 0 chooses a free port.  A text such as "6009" works, too.
        address: the address to listen on.
        token: what clients must bring; without one, that of the variable STEPSCOPE_CAPTURE_TOKEN.  TensorFlow's and
            JAX's clients bring none.
        open_to_all: listen on any address without a token, as the frameworks' servers do; the variable
            STEPSCOPE_CAPTURE_OPEN=1 says the same.
        logdir: the folder below which clients may have profiles written; without one, that of STEPSCOPE_LOGDIR.  If
            none is known, clients of this machine may name any folder, and those of others get profiles as answers
            only.
        any_folder: let clients name any folder that this program may write to, as the frameworks' servers do.
        strict: raise instead of logging.

    Returns:
        The port.  None if the server could not start; `stepscope.last_error()` then says why.

    Raises:
        CaptureError: only with `strict`: the port is taken, this process has a server already, or there is no token.
    """
    with report.NeverRaise("starting the profiler server", strict), SERVER.lock:
        if SERVER.running is not None and SERVER.running.gives_way:
            stop()
        _refuse_second(SERVER.running)
        access = _make_access(address, token, open_to_all, None if any_folder else logdir, any_folder)
        SERVER.running = server = _start_listening(_parse_port(port), address, access)
        atexit.register(stop)
        return server.front.port
    return None


def start_for_job(logdir: str, program: str = "") -> int | None:
    """Starts a server on any free port that only this user's programs on this machine can use, so that `stepscope
    capture` and the page find a job that starts none itself.

    Args:
        logdir: below it clients may have profiles written.
        program: what the job is called; empty for the name of the running script.

    Returns:
        The port; None if the process has a server already, or none can be started.
    """
    import secrets

    from stepscope.capture.remote.access import Access

    try:
        with SERVER.lock:
            if SERVER.running is not None:
                return None
            folder = None if "://" in logdir else Path(logdir).absolute()
            access = Access(secrets.token_urlsafe(), folder, may_write=folder is not None)
            SERVER.running = server = _start_listening(0, LOOPBACK, access, program, gives_way=True)
            atexit.register(stop)
            return server.front.port
    except Exception as error:  # nobody asked for this server
        report.inform(f"no profiler server for this job: {error}")
        return None


def stop_for_job() -> None:
    """Stops the server that `start_for_job` started, if it is still the one of this process."""
    if SERVER.running is not None and SERVER.running.gives_way:
        stop()


def _make_access(
    address: str, token: str | None, open_to_all: bool, logdir: str | os.PathLike[str] | None, any_folder: bool
) -> Access:
    from stepscope.capture.remote import access

    known = access.token_from_environment() if token is None else access.check_token_form(token)
    is_local = _is_loopback(address)
    if not (is_local or known or open_to_all or access.is_open_by_environment()):
        raise CaptureError(
            f"anybody who reaches {address} could capture this program",
            code="token",
            lost="captures over the network; training goes on",
            hint=f"give token=..., set {access.TOKEN_VARIABLE}, or say open_to_all=True",
        )
    folder = logdir or os.environ.get(access.LOGDIR_VARIABLE) or None
    if any_folder or folder is None:
        return access.Access(known, None, may_write=any_folder or is_local)
    is_elsewhere = "://" in os.fspath(folder)  # clients get their profiles as answers then
    return access.Access(known, None if is_elsewhere else Path(folder).absolute(), may_write=not is_elsewhere)


def _is_loopback(address: str) -> bool:
    text = address.strip("[]")
    try:
        return text == LOOPBACK or ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def stop() -> None:
    """Stops the server.  A capture for a client ends, and the client gets what was recorded until then."""
    with SERVER.lock:
        server, SERVER.running = SERVER.running, None
        atexit.unregister(stop)
    if server is None:
        return
    withdraw_server(server.note)
    with report.NeverRaise("stopping the profiler server", strict=False):
        server.front.close()
        for service in server.services:
            service.end()
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


def _start_listening(port: int, address: str, access: Access, program: str = "", gives_way: bool = False) -> Server:
    from stepscope.capture.remote.front import Front, listen

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
    services: list[Service] = []
    front = Front(listening, lambda host: _start_native(access, services, host))
    front.start()
    note = announce_server(front.port, program, access.token if gives_way else None)
    return Server(front, services, access, note, gives_way)


def _start_native(access: Access, services: list[Service], host: str) -> tuple[Any, int]:
    """Starts gRPC's server on a port that is not announced; returns the server and the port."""
    import grpc

    from stepscope.capture.remote.daemon_threads import DaemonThreads
    from stepscope.capture.remote.handlers import Service
    from stepscope.capture.remote.service import SERVER_MESSAGE_SIZES

    if not services:
        services.append(Service(access))
    native = grpc.server(DaemonThreads(), options=SERVER_MESSAGE_SIZES, maximum_concurrent_rpcs=_MAX_CALLS)
    native.add_generic_rpc_handlers((services[0].handlers(),))
    port = int(native.add_insecure_port(f"{host}:0"))
    native.start()
    return native, port


register_at_fork(after_in_child=SERVER.forget_parent)
