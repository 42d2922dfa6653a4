"""What a visitor may do."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, cast

from stepscope.records import dataclass

if TYPE_CHECKING:
    from werkzeug import Request


class Rights(IntEnum):
    """Each may do what those before it may."""

    SEE = 1  # look at sessions and compare them
    LABEL = 2  # label, note, rename, upload and delete them
    CAPTURE = 3  # record running jobs


@dataclass(frozen=True)
class Visitor:
    """Who sends a request.

    Attributes:
        name: for notes and logs; empty if unknown.
        role: what the visitor may do.
        address: where the request comes from.
        login: what the visitor came in with: the id of a token, or the name that a proxy gives; empty without a door.
    """

    name: str
    role: Rights
    address: str = ""
    login: str = ""

    @property
    def person(self) -> str:
        """Whose limits count.  Those who share a token are told apart by where they are."""
        return f"{self.login} {self.address}" if self.login else ""


OWNER = Visitor("", Rights.CAPTURE)
"""Whoever uses a server without a door: the person who started it."""

_KEY = "visitor of stepscope"


def set_visitor(request: Request, visitor: Visitor) -> None:
    """Stores who sends a request."""
    request.environ[_KEY] = visitor


def visitor_of(request: Request) -> Visitor:
    """Who sends a request."""
    return cast("Visitor", request.environ.get(_KEY, OWNER))
