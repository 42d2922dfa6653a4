"""Translates errors of gRPC into plain messages."""

from __future__ import annotations

import re
from typing import Any

import grpc

from stepscope.capture.remote.outcome import Cause, Failure

_BUSY = re.compile(r"session.*(active|running|in progress)|already.*(active|running)|another profil", re.IGNORECASE)
_DISABLED = re.compile("disabled", re.IGNORECASE)
_CODE = grpc.StatusCode


def translate_rpc_error(error: Any, waited_seconds: float) -> Failure:
    """The failure that a call to a profiler server ended with."""
    code, said = error.code(), " ".join((error.details() or "").split())
    if code in (_CODE.ALREADY_EXISTS, _CODE.INTERNAL, _CODE.FAILED_PRECONDITION):
        if _BUSY.search(said):
            hint = "wait until it ends, or end it where it was started"
            return Failure(Cause.BUSY, f"busy with another capture; {hint} (it says: {said})")
        if _DISABLED.search(said):
            return Failure(Cause.DISABLED, f"profiling is switched off in the job: {said}")
    if code in _FAILURES:
        cause, text = _FAILURES[code]
        return Failure(cause, text.format(seconds=waited_seconds, said=said or "nothing more"))
    if code == _CODE.UNKNOWN and "Stream removed" in said:
        return Failure(Cause.DISCONNECTED, "the connection broke while it recorded")
    return Failure(Cause.SERVER_ERROR, f"the server answered {code.name}: {said or 'nothing more'}")


_FAILURES: dict[Any, tuple[Cause, str]] = {
    _CODE.UNIMPLEMENTED: (
        Cause.NO_PROFILER,
        "the server speaks gRPC but has no profiler service; another program uses this port, so use the port that the"
        " job gave to server.start",
    ),
    _CODE.UNAVAILABLE: (
        Cause.DISCONNECTED,
        "the connection broke while it recorded; check whether the job still runs (gRPC says: {said})",
    ),
    _CODE.DEADLINE_EXCEEDED: (
        Cause.DEADLINE,
        "no answer within {seconds:.0f} s; the job may be stuck, the profile very large, or the worker's clock behind"
        " this machine's",
    ),
    _CODE.UNAUTHENTICATED: (
        Cause.NOT_ALLOWED,
        "the job's profiler server asks for a token ({said})",
    ),
    _CODE.CANCELLED: (Cause.CANCELLED, "cancelled; what it had recorded is lost"),
}
