"""Checks whether there is a profiler server at an address, and if not, what is there."""

from __future__ import annotations

import errno
import re
import socket
from typing import Any

import grpc

from stepscope.capture.remote import messages, service
from stepscope.capture.remote.addresses import Address
from stepscope.capture.remote.outcome import Failure, Reason

TIMEOUT_SECONDS = 5.0

# TensorFlow's and JAX's servers remember every session id that they are asked to end, so it is always the same one.
# All other methods would start, end or fetch something.
_NO_SESSION = "stepscope-reachability-check"


def check(address: Address, channel: Any) -> Failure | None:
    """None if a profiler server answers; otherwise the failure.  It starts nothing on the server."""
    return _check_connection(address, TIMEOUT_SECONDS) or _check_service(channel, TIMEOUT_SECONDS)


def _check_connection(address: Address, timeout: float) -> Failure | None:
    try:
        socket.create_connection((address.host.strip("[]"), address.port), timeout).close()
    except (socket.gaierror, UnicodeError):
        return Failure(
            Reason.NAME_NOT_FOUND,
            f"there is no machine named {address.host}; check the spelling, or use its IP address",
        )
    except ConnectionRefusedError:
        return Failure(
            Reason.REFUSED,
            f"connection refused: nothing listens on port {address.port}; start a profiler server in the job with"
            f" stepscope.server.start({address.port}), and check that the job still runs",
        )
    except TimeoutError:
        return _make_no_answer(f"no answer within {timeout:.0f} s")
    except OSError as error:
        reason = error.strerror or str(error)
        return _make_no_answer(f"unreachable ({errno.errorcode.get(error.errno or 0, 'network')}: {reason})")
    return None


def _make_no_answer(reason: str) -> Failure:
    return Failure(Reason.NO_ANSWER, f"{reason}; there may be a firewall, or the machine is down or in another network")


def _check_service(channel: Any, timeout: float) -> Failure | None:
    request = messages.new("TerminateRequest", session_id=_NO_SESSION)
    try:
        service.caller(channel, service.TERMINATE)(request, timeout=timeout)
    except grpc.RpcError as error:
        if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            return Failure(
                Reason.NOT_GRPC,
                "what listens there does not speak plain gRPC; the web pages of TensorBoard and Stepscope have other"
                " ports, so use the port that the job gave to server.start",
            )
        return translate_rpc_error(error, timeout)
    return None


def call(address: Address, channel: Any, method: service.Method, request: Any, seconds: float, unsupported: str) -> Any:
    """Calls a method of a server.

    Args:
        seconds: how long to wait for the answer.
        unsupported: what to say if the server has no such method.

    Raises:
        CaptureError: it does not answer, or refuses.
    """
    try:
        return service.caller(channel, method)(request, timeout=seconds)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.UNIMPLEMENTED:
            raise Failure(Reason.NO_PROFILER, unsupported).to_error(address) from None
        raise translate_rpc_error(error, seconds).to_error(address) from None


_BUSY = re.compile(r"session.*(active|running|in progress)|already.*(active|running)|another profil", re.IGNORECASE)
_DISABLED = re.compile("disabled", re.IGNORECASE)
_CODE = grpc.StatusCode


def translate_rpc_error(error: Any, waited_seconds: float) -> Failure:
    """The failure that a call to a profiler server ended with."""
    code, said = error.code(), " ".join((error.details() or "").split())
    if code in (_CODE.ALREADY_EXISTS, _CODE.INTERNAL, _CODE.FAILED_PRECONDITION):
        if _BUSY.search(said):
            hint = "wait until it ends, or end it where it was started"
            return Failure(Reason.BUSY, f"busy with another capture; {hint} (it says: {said})")
        if _DISABLED.search(said):
            return Failure(Reason.DISABLED, f"profiling is switched off in the job: {said}")
    if code in _FAILURES:
        cause, text = _FAILURES[code]
        return Failure(cause, text.format(seconds=waited_seconds, said=said or "nothing more"))
    if code == _CODE.UNKNOWN and "Stream removed" in said:
        return Failure(Reason.DISCONNECTED, "the connection broke while it recorded")
    return Failure(Reason.SERVER_ERROR, f"the server answered {code.name}: {said or 'nothing more'}")


_FAILURES: dict[Any, tuple[Reason, str]] = {
    _CODE.UNIMPLEMENTED: (
        Reason.NO_PROFILER,
        "the server speaks gRPC but has no profiler service; another program uses this port, so use the port that the"
        " job gave to server.start",
    ),
    _CODE.UNAVAILABLE: (
        Reason.DISCONNECTED,
        "the connection broke while it recorded; check whether the job still runs (gRPC says: {said})",
    ),
    _CODE.DEADLINE_EXCEEDED: (
        Reason.DEADLINE,
        "no answer within {seconds:.0f} s; the job may be stuck, the profile very large, or the worker's clock behind"
        " this machine's",
    ),
    _CODE.UNAUTHENTICATED: (Reason.NOT_ALLOWED, "the job's profiler server asks for a token ({said})"),
    _CODE.CANCELLED: (Reason.CANCELLED, "cancelled; what it had recorded is lost"),
}
