"""What handlers return, and what they raise."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from stepscope.errors import AccessError, BusyError, InputError, NotFoundError, StepscopeError, UsageError
from stepscope.records import dataclass
from stepscope.report.base import encode_json

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
BINARY = "application/octet-stream"

PACKING_LEVEL = 1
"""The gzip level.  On loopback and local networks a higher one costs more time than it saves."""

MOST_CHOICES = 100
"""Names listed in an error; a logdir may hold thousands of sessions."""


@dataclass(frozen=True)
class Answer:
    """The content of a response; the app adds ETag, compression and security headers.

    Attributes:
        body: the whole content.
        content_type: its media type; a charset is added to text types.
        status: the HTTP status.
        headers: additional headers, such as `Content-Disposition`.
        is_final: whether the content at this address never changes, so that browsers need not ask again.
    """

    body: bytes
    content_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    is_final: bool = False

    @cached_property
    def etag(self) -> str:
        """A hash of the content."""
        return _hash(self.body)

    @cached_property
    def packed_etag(self) -> str:
        """A hash of the compressed content, which is another representation, and quicker to hash."""
        return _hash(self.packed)

    @cached_property
    def packed(self) -> bytes:
        """The content compressed with gzip."""
        return gzip.compress(self.body, PACKING_LEVEL, mtime=0)


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()


class Refused(Exception):  # noqa: N818 - what the client did is in error, not the server
    """A request that cannot be answered.

    Args:
        status: 400 for a wrong parameter, 404 for something unknown, 409 for something not possible now, 410 for
            something that is gone.
        error: what is wrong, a sentence without a full stop.
        hint: what to do, likewise.
        choices: the valid names.
    """

    def __init__(self, status: int, error: str, hint: str = "", choices: Iterable[str] = ()) -> None:
        self.status, self.error, self.hint = status, error, hint
        self.choices = tuple(choices)
        super().__init__(error)


def json_answer(value: Any, status: int = 200) -> Answer:
    """A value as JSON; NaN and infinities become null."""
    return Answer(encode_json(value), JSON, status)


def binary_answer(data: bytes, content_type: str = BINARY, headers: Mapping[str, str] | None = None) -> Answer:
    """Bytes without a change."""
    return Answer(data, content_type, headers=headers or {})


def error_answer(status: int, error: str, hint: str = "", choices: Sequence[str] = ()) -> Answer:
    """The common form of all errors."""
    return json_answer({"error": error, "hint": hint, "choices": list(choices[:MOST_CHOICES])}, status)


def refusal(error: Refused | StepscopeError) -> Answer:
    """The answer for an error that was raised on purpose."""
    if isinstance(error, Refused):
        return error_answer(error.status, error.error, error.hint, error.choices)
    answer = json_answer(error_json(error), _status_of(error))
    return replace(answer, headers={"Retry-After": str(error.seconds)}) if isinstance(error, BusyError) else answer


def error_json(error: StepscopeError) -> dict[str, Any]:
    """A StepscopeError in the common form of all errors."""
    problem = error.problem
    place = problem.path or (f"host {problem.host}" if problem.host else "")
    reason = f"{place}: {problem.reason}" if place else problem.reason
    return {"error": reason, "hint": problem.hint or "", "choices": []}


def _status_of(error: StepscopeError) -> int:
    if isinstance(error, BusyError):
        return 429
    if isinstance(error, UsageError):
        return 404 if error.problem.code.startswith("unknown-") else 400
    if isinstance(error, NotFoundError):
        return 404
    # The file exists but cannot be read: other rights or another file would help, another request would not.
    return 409 if isinstance(error, InputError | AccessError) else 500
