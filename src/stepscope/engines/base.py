"""What an engine is."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any, Protocol

from stepscope.errors import StepscopeError
from stepscope.records import dataclass

CONNECT_SECONDS = 5.0
"""How long a cluster may take to answer; one that is there does within a second, across continents too."""


class EngineError(StepscopeError):
    """An engine cannot be used: not installed, not reachable, of another version."""

    default_code = "engine"


@dataclass(frozen=True)
class Done:
    """A task that was answered; `content` is the packed answer."""

    content: bytes


@dataclass(frozen=True)
class Lost:
    """A task that was not answered, and why."""

    reason: str


Ticket = Any
"""What an engine gives for a task; only the engine looks into it."""


class Engine(Protocol):
    """Something that does tasks beside each other.

    Attributes:
        name: as on the command line.
    """

    name: str

    def slots(self) -> int:
        """How many tasks it does at the same time; at least one.  May change while a cluster grows."""

    def submit(self, content: bytes) -> Ticket:
        """Starts a packed task.  Raises EngineError."""

    def wait(self, tickets: Sequence[Ticket], seconds: float) -> list[tuple[Ticket, Done | Lost]]:
        """Those of the tasks that have ended, at the latest after some seconds, when it may be none.

        Raises:
            EngineError: no task can be done here, because the workers have another version or are all gone.
        """

    def cancel(self, tickets: Sequence[Ticket]) -> None:
        """Ends tasks, also those at work."""

    def close(self) -> None:
        """Ends what this engine started; a cluster that was there before goes on."""


def refused(engine: str, theirs: str, ours: object) -> EngineError:
    """The error for workers of another version."""
    hint = "install the same versions on both ends"
    return EngineError(
        f"the workers of {engine} have {theirs}, and this process has {ours}", code="versions", hint=hint
    )


def not_importable(engine: str, error: BaseException) -> EngineError:
    """The error for workers that lack Stepscope."""
    hint = "install it there in the same version: pip install stepscope"
    return EngineError(f"the workers of {engine} cannot import Stepscope ({error})", code="versions", hint=hint)


def hear_greeting(address: str, size: int = 0) -> bytes | None:
    """What whoever listens at [SCHEME://]HOST:PORT says first, so many bytes; None for another kind of address.

    Raises:
        OSError: nobody listens, or nothing is said.
    """
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal():
        return None
    if int(port) >= 1 << 16:
        raise OSError(f"{port} is not a port")
    with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS) as connection:
        return connection.recv(size, socket.MSG_WAITALL) if size else b""


def first_line(error: BaseException) -> str:
    """An error in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
