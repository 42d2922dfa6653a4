"""Tokens, and the signed cookies that stand for them in a browser.

A cookie is signed with a key made of its token, so servers with the same tokens accept each other's cookies, and a
token that is taken away takes its cookies with it.  Only the logins that have ended before their time are stored.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from stepscope.errors import OutputError, UsageError
from stepscope.records import dataclass
from stepscope.web.auth.roles import Rights, Visitor

TOKEN_VARIABLE = "STEPSCOPE_TOKEN"
LEAST_CHARACTERS = 16
COOKIE_SECONDS = 12 * 3600
CLOCK_SKEW_SECONDS = 300
"""How far the clocks of two servers may be apart."""

_PURPOSE = b"stepscope cookie 1"
_COOKIE = re.compile(
    r"(?P<body>2\.(?P<token>[0-9a-f]{12})\.(?P<issued>[0-9]{1,12})\.(?P<login>[0-9a-f]{16}))\.(?P<signature>[0-9a-f]{64})"
)
_log = logging.getLogger(__name__)
_ROLES = {role.name.lower(): role for role in Rights}


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
    role: Rights
    name: str = ""

    @property
    def id(self) -> str:
        """Names the token in a cookie; says nothing about its text."""
        return hashlib.sha256(b"id" + self.digest).hexdigest()[:12]

    def __repr__(self) -> str:
        return f"Token(role={self.role.name}, name={self.name!r})"


def make_token(text: str, role: Rights = Rights.CAPTURE, name: str = "") -> Token:
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
    found = [_parse_line(line, path) for line in _token_lines(path) if _is_token(line)]
    if not found:
        raise UsageError("there is no token in this file", path=path, hint="write one a line")
    return tuple(found)


def _token_lines(path: Path) -> list[str]:
    try:
        mode = path.stat().st_mode
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("the tokens cannot be read", path=path, hint="give a file of text lines") from error
    if os.name == "posix" and mode & 0o007:
        raise UsageError("other users may read these tokens", path=path, hint=f"chmod o-rwx {path}")
    return lines


def _is_token(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def add_token(path: Path, text: str, role: Rights, name: str) -> None:
    """Adds a token to a file, which is made if there is none.  Raises UsageError, OutputError."""
    lines = _token_lines(path) if path.exists() else []
    _write_lines(path, [*lines, f"{text} {role.name.lower()} {' '.join(name.split())}".rstrip()])


def remove_token(path: Path, wanted: str) -> None:
    """Removes a token from a file by its id or name.  Raises UsageError, OutputError."""
    lines = _token_lines(path)
    found = [
        line for line in lines if _is_token(line) and wanted in ((token := _parse_line(line, path)).id, token.name)
    ]
    if len(found) != 1:
        what = f"there are {len(found)} tokens named {wanted!r}" if found else f"there is no token {wanted!r}"
        raise UsageError(what, path=path, hint="give one of the listed ids")
    _write_lines(path, [line for line in lines if line is not found[0]])


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    """Replaces the file at once: a server reads the old tokens or the new ones."""
    new = path.with_name(f"{path.name}.new")
    try:
        mode = path.stat().st_mode & 0o770 if path.exists() else 0o600
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
        new.replace(path)
    except OSError as error:
        raise OutputError(error.strerror or "cannot be written", path=path) from error


def _parse_line(line: str, path: Path) -> Token:
    text, *rest = line.split(maxsplit=2)
    role = _ROLES.get(rest[0].lower()) if rest else Rights.CAPTURE
    if role is None:
        raise UsageError(f"there is no role {rest[0]!r}", path=path, hint=f"the roles are {', '.join(_ROLES)}")
    return make_token(text, role, rest[1].strip()[:100] if len(rest) > 1 else "")


def parse_role(text: str) -> Rights:
    """A role by its name.  Raises UsageError."""
    if text.lower() not in _ROLES:
        raise UsageError(f"there is no role {text!r}", hint=f"the roles are {', '.join(_ROLES)}")
    return _ROLES[text.lower()]


@dataclass(frozen=True)
class Login:
    """A login in a browser: its token, its id, and until when its cookie may be valid, in seconds since 1970."""

    token: Token
    id: str
    until: float


class Tokens:
    """The tokens that a server accepts.

    Args:
        tokens: those to begin with.
        path: their file, which is read again when it changes; a file that cannot be read changes nothing.
    """

    def __init__(self, tokens: Sequence[Token], path: Path | None = None) -> None:
        self._tokens, self._path = tuple(tokens), path
        self._seen = _stamp(path)

    def _current(self) -> tuple[Token, ...]:
        if self._path is not None and (stamp := _stamp(self._path)) != self._seen:
            self._seen = stamp
            try:
                self._tokens = read_tokens(self._path)
            except UsageError as error:
                _log.error("the tokens stay as they were: %s", error)
        return self._tokens

    def find(self, text: str) -> Token | None:
        """The token of a text; all are compared, so that the time says nothing."""
        digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        found = None
        for token in self._current():
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found

    def make_cookie(self, token: Token, now: float | None = None) -> str:
        """The value of a cookie that stands for a token for some hours; each is a login of its own."""
        issued = int(time.time() if now is None else now)
        body = f"2.{token.id}.{issued}.{secrets.token_hex(8)}"
        return f"{body}.{_sign(token, body)}"

    def read_cookie(self, value: str, now: float | None = None) -> Login | None:
        """The login that a cookie stands for; None if it is forged, too old, or from the future."""
        found = _COOKIE.fullmatch(value)
        token = found and next((token for token in self._current() if token.id == found["token"]), None)
        if not found or not token or not hmac.compare_digest(_sign(token, found["body"]), found["signature"]):
            return None
        issued = int(found["issued"])
        age = (time.time() if now is None else now) - issued
        is_valid = -CLOCK_SKEW_SECONDS <= age <= COOKIE_SECONDS
        return Login(token, found["login"], issued + COOKIE_SECONDS + CLOCK_SKEW_SECONDS) if is_valid else None


def _stamp(path: Path | None) -> tuple[int, int] | None:
    """What changes with a file."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return found and (found.st_mtime_ns, found.st_size)


def _sign(token: Token, body: str) -> str:
    return hmac.new(token.key, body.encode(), "sha256").hexdigest()


def visitor_with(token: Token, address: str) -> Visitor:
    """The visitor that brings a token."""
    return Visitor(token.name, token.role, address, token.id)
