"""Tokens, and the signed cookies that stand for them in a browser.

A cookie is signed with a key made of its token, so servers with the same tokens accept each other's cookies, nothing
has to be stored, and a token that is taken away takes its cookies with it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from stepscope.errors import UsageError
from stepscope.records import dataclass
from stepscope.web.door.roles import Role, Visitor

TOKEN_VARIABLE = "STEPSCOPE_TOKEN"
LEAST_CHARACTERS = 16
COOKIE_SECONDS = 12 * 3600
CLOCK_SKEW_SECONDS = 300
"""How far the clocks of two servers may be apart."""

_PURPOSE = b"stepscope cookie 1"
_ROLES = {role.name.lower(): role for role in Role}


@dataclass(frozen=True)
class Token:
    """A token of a person or a group.  Its text is kept as a hash only.

    Attributes:
        digest: of the text.
        key: signs cookies.
        role: what it allows.
        name: whose it is; may be empty.
    """

    digest: bytes
    key: bytes
    role: Role
    name: str = ""

    @property
    def id(self) -> str:
        """Names the token in a cookie; says nothing about its text."""
        return hashlib.sha256(b"id" + self.digest).hexdigest()[:12]

    def __repr__(self) -> str:
        return f"Token(role={self.role.name}, name={self.name!r})"


def make_token(text: str, role: Role = Role.CAPTURE, name: str = "") -> Token:
    """A token from its text.  Raises UsageError if it is too short, or has other characters than ASCII's."""
    if len(text) < LEAST_CHARACTERS or not all("!" <= char <= "~" for char in text):
        hint = "python -c 'import secrets; print(secrets.token_urlsafe())' makes one"
        raise UsageError(f"a token has {LEAST_CHARACTERS} or more letters, digits or signs of ASCII", hint=hint)
    key = hmac.digest(text.encode(), _PURPOSE, "sha256")
    return Token(hashlib.sha256(text.encode()).digest(), key, role, name)


def new_text() -> str:
    """The text of a new token: 256 random bits."""
    return secrets.token_urlsafe(32)


def read_tokens(path: Path) -> tuple[Token, ...]:
    """The tokens of a file: one a line, `TOKEN [see|label|capture [NAME]]`; lines that start with # do not count.

    Raises UsageError if the file cannot be read, others may read it, or a line is no token.
    """
    try:
        mode = path.stat().st_mode
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("the tokens cannot be read", path=path, hint="give a file of text lines") from error
    if os.name == "posix" and mode & 0o007:
        raise UsageError("other users may read these tokens", path=path, hint=f"chmod o-rwx {path}")
    found = [_parse_line(line, path) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not found:
        raise UsageError("there is no token in this file", path=path, hint="write one a line")
    return tuple(found)


def _parse_line(line: str, path: Path) -> Token:
    text, *rest = line.split(maxsplit=2)
    role = _ROLES.get(rest[0].lower()) if rest else Role.CAPTURE
    if role is None:
        raise UsageError(f"there is no role {rest[0]!r}", path=path, hint=f"the roles are {', '.join(_ROLES)}")
    return make_token(text, role, rest[1].strip()[:100] if len(rest) > 1 else "")


def parse_role(text: str) -> Role:
    """A role by its name.  Raises UsageError."""
    if text.lower() not in _ROLES:
        raise UsageError(f"there is no role {text!r}", hint=f"the roles are {', '.join(_ROLES)}")
    return _ROLES[text.lower()]


class Tokens:
    """The tokens that a server accepts."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tuple(tokens)

    def find(self, text: str) -> Token | None:
        """The token of a text; all are compared, so that the time says nothing."""
        digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        found = None
        for token in self._tokens:
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found

    def make_cookie(self, token: Token, now: float | None = None) -> str:
        """The value of a cookie that stands for a token for some hours."""
        issued = int(time.time() if now is None else now)
        body = f"1.{token.id}.{issued}"
        return f"{body}.{_sign(token, body)}"

    def read_cookie(self, value: str, now: float | None = None) -> Token | None:
        """The token that a cookie stands for; None if it is forged, too old, or from the future."""
        body, _, signature = value.rpartition(".")
        parts = body.split(".")
        if len(value) > 200 or len(parts) != 3 or parts[0] != "1" or not (parts[2].isascii() and parts[2].isdecimal()):
            return None
        token = next((token for token in self._tokens if token.id == parts[1]), None)
        if token is None or not hmac.compare_digest(_sign(token, body).encode(), signature.encode("utf-8", "replace")):
            return None
        age = (time.time() if now is None else now) - int(parts[2])
        return token if -CLOCK_SKEW_SECONDS <= age <= COOKIE_SECONDS else None


def _sign(token: Token, body: str) -> str:
    return hmac.new(token.key, body.encode(), "sha256").hexdigest()


def visitor_with(token: Token, address: str) -> Visitor:
    """The visitor that brings a token."""
    return Visitor(token.name, token.role, address, token.id)
