"""The exception tree, and the common form of all problems.

    StepscopeError
    |-- InputError            a problem with a given profile
    |   |-- NotFoundError     there is no profile at the given place
    |   |-- AccessError       the file exists but may not be read
    |   `-- UnreadableError   the file was read but nothing in it can be used
    |-- UsageError            a wrong argument: unknown tool, host, run, option
    |-- OutputError           a result could not be written
    |-- CaptureError          a profile could not be recorded
    |-- BusyError             as much is being done as may be; it says when to ask again
    `-- RegressionError       a step got slower by more than was allowed, or it is unknown whether it did

A `Problem` is a fact with its place: what, where (file, byte, host), what was kept, what was lost, and what to do
next.  An error carries one; a trace that was read in part carries one as a warning.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Self

from stepscope.records import dataclass


def counted(number: int, noun: str) -> str:
    """A number with its noun, for messages.

    >>> counted(1, "event"), counted(2500, "event")
    ('1 event', '2,500 events')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem, described completely enough to act on.

    Attributes:
        code: short stable identifier, such as `truncated` or `not-found`.
        reason: what was found, one sentence without a full stop.
        path: the file or folder it is about.
        offset: byte offset in that file, counted from 0.
        host: the host whose data it is about.
        kept: what could still be used.
        lost: what could not be used.
        hint: what to do next, a sentence without a full stop.
    """

    code: str
    reason: str
    path: str | None = None
    offset: int | None = None
    host: str | None = None
    kept: str | None = None
    lost: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = self.path or (f"host {self.host}" if self.host else "")
        if self.offset is not None:
            place += f" at byte {self.offset:,}"
        parts = [f"{place}: {self.reason}" if place else self.reason]
        if self.kept:
            parts.append(f"kept: {self.kept}")
        if self.lost:
            parts.append(f"lost: {self.lost}")
        if self.hint:
            parts.append(self.hint)
        # A path may hold bytes that are not text, which UTF-8 cannot encode.
        return f"[{self.code}] {'; '.join(parts)}".encode("utf-8", "replace").decode()


class StepscopeError(Exception):
    """The root of everything that Stepscope raises on purpose."""

    default_code = "error"

    def __init__(
        self,
        reason: str,
        *,
        code: str | None = None,
        path: object = None,
        offset: int | None = None,
        host: str | None = None,
        kept: str | None = None,
        lost: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem = Problem(
            code=code or self.default_code,
            reason=reason,
            path=None if path is None else str(path),
            offset=offset,
            host=host,
            kept=kept,
            lost=lost,
            hint=hint,
        )
        super().__init__(str(self.problem))

    def add_hint(self, more: str) -> Self:
        """A copy of the error with one more hint."""
        hint = "; ".join(filter(None, (self.problem.hint, more)))
        return type(self)(**{**asdict(self.problem), "hint": hint})


class InputError(StepscopeError):
    """A profile that was given cannot be used as it is."""

    default_code = "input"

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """The error that a problem was made from."""
        return cls(**{each.name: getattr(problem, each.name) for each in fields(problem)})


class NotFoundError(InputError):
    """There is no profile at the given place."""

    default_code = "not-found"


class AccessError(InputError):
    """The file exists and the system refuses to read it."""

    default_code = "no-access"


class UnreadableError(InputError):
    """The file was read but nothing in it can be used."""

    default_code = "unreadable"


class UsageError(StepscopeError):
    """An argument is wrong; the message lists valid values."""

    default_code = "usage"


class OutputError(StepscopeError):
    """A result could not be written where it should go."""

    default_code = "output"


class CaptureError(StepscopeError):
    """A profile could not be recorded or stored."""

    default_code = "capture"


class BusyError(StepscopeError):
    """As much is being done as may be; `seconds` is after how long to ask again."""

    default_code = "busy"
    seconds = 1

    @classmethod
    def for_seconds(cls, seconds: int, reason: str) -> Self:
        """The error with the time to wait as its hint."""
        error = cls(reason, hint=f"ask again in {seconds} s")
        error.seconds = seconds
        return error


class RegressionError(StepscopeError):
    """A training step got slower by more than was allowed, or it is unknown whether it did."""

    default_code = "slower"


class LeftOutError(Exception):
    """A question needs stats that were not kept when the file was read.  No user meets it: the file is read again."""
