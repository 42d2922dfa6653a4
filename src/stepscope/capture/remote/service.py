"""The methods of the profiler service, and the gRPC settings of both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepscope.capture.remote import messages
from stepscope.records import dataclass

NAME = "tensorflow.ProfilerService"

# Profiles are larger than 4 MiB, gRPC's default limit.
MESSAGE_SIZES = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))

LONGEST_REQUEST_BYTES = 1 << 20
"""A request names a folder and some options; anything longer is no request."""

SERVER_MESSAGE_SIZES = (
    ("grpc.max_receive_message_length", LONGEST_REQUEST_BYTES),
    ("grpc.max_send_message_length", -1),
)

# Workers are in the same network, so a web proxy is not used.  Each channel makes its own connection, because gRPC
# waits longer and longer before it repeats a failed one.
_CHANNEL = (*MESSAGE_SIZES, ("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1))


@dataclass(frozen=True)
class Method:
    """One method; all take one message and return one."""

    name: str
    request: str
    response: str


PROFILE = Method("Profile", "ProfileRequest", "ProfileResponse")
TERMINATE = Method("Terminate", "TerminateRequest", "TerminateResponse")
MONITOR = Method("Monitor", "MonitorRequest", "MonitorResponse")
START_CONTINUOUS = Method("StartContinuousProfiling", "ProfileRequest", "ContinuousProfilingResponse")
STOP_CONTINUOUS = Method("StopContinuousProfiling", "StopContinuousProfilingRequest", "StopContinuousProfilingResponse")
GET_SNAPSHOT = Method("GetSnapshot", "GetSnapshotRequest", "ProfileResponse")


def open_channel(address: str, token: str | None = None) -> Any:
    """A connection to a server; it is made with the first call.  Each call brings the token, if there is one: that of
    a job of this user on this machine, else the given one."""
    import grpc

    from stepscope.capture.remote.running_servers import token_for

    token = token_for(address) or token
    channel = grpc.insecure_channel(address, _CHANNEL)
    if token is None:
        return channel
    from stepscope.capture.remote.token_calls import AddToken

    return grpc.intercept_channel(channel, AddToken(token))


def caller(channel: Any, method: Method) -> Any:
    """A function that calls a method of the server at the other end of a channel."""
    return channel.unary_unary(
        f"/{NAME}/{method.name}",
        request_serializer=messages.message_class(method.request).SerializeToString,
        response_deserializer=messages.message_class(method.response).FromString,
    )


def handlers(behaviours: dict[Method, Callable[[Any, Any], Any]]) -> Any:
    """The service as a server's generic handler.  `behaviours`: the function that answers each method."""
    import grpc

    return grpc.method_handlers_generic_handler(
        NAME,
        {
            method.name: grpc.unary_unary_rpc_method_handler(
                behaviour,
                request_deserializer=messages.message_class(method.request).FromString,
                response_serializer=messages.message_class(method.response).SerializeToString,
            )
            for method, behaviour in behaviours.items()
        },
    )
