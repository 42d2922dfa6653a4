"""Who may capture a job over the network, and where a client may have files written."""

from __future__ import annotations

import hmac
import os
from pathlib import Path
from typing import Any

from stepscope.errors import CaptureError, UsageError
from stepscope.records import dataclass

TOKEN_VARIABLE = "STEPSCOPE_CAPTURE_TOKEN"
OPEN_VARIABLE = "STEPSCOPE_CAPTURE_OPEN"
LOGDIR_VARIABLE = "STEPSCOPE_LOGDIR"

TOKEN_KEY = "authorization"
"""The key of a call's metadata that has the token, as `Bearer TOKEN`."""

LEAST_CHARACTERS = 16
_SCHEME = "Bearer "


@dataclass(frozen=True)
class Access:
    """What clients of a profiler server may do.

    Attributes:
        token: what each call must bring; None if no token is needed.
        folder: where clients may have profiles written; None for any folder that the job may write to.
        may_write: whether clients may have anything written.  Otherwise they get profiles as answers only.
    """

    token: str | None = None
    folder: Path | None = None
    may_write: bool = True

    def __repr__(self) -> str:
        return f"Access(token={'...' if self.token else None}, folder={self.folder}, may_write={self.may_write})"

    def check_token(self, metadata: Any) -> None:
        """Raises CaptureError unless a call brings the token.

        Args:
            metadata: the call's metadata, pairs of key and value.
        """
        if self.token is None:
            return
        given = next((value for key, value in metadata or () if key == TOKEN_KEY), "")
        text = given.decode("latin-1") if isinstance(given, bytes) else given
        if not hmac.compare_digest(text.encode(), f"{_SCHEME}{self.token}".encode()):
            reason = "this server needs a token" if not text else "the token is wrong"
            hint = f"set {TOKEN_VARIABLE} to the job's token"
            if not text:
                hint += "; TensorFlow's own client cannot send one: use `stepscope capture`"
            raise CaptureError(reason, code="token", hint=hint)

    def check_folder(self, folder: Path) -> None:
        """Raises CaptureError unless a client may have a profile written to a folder."""
        if not self.may_write:
            reason = "this server writes no files for clients, since it does not know the job's logdir"
            raise CaptureError(reason, code="logdir", hint="ask with emit_xspace, or start the server with logdir=")
        if self.folder is None:
            return
        wanted, bound = folder.resolve(), self.folder.resolve()
        if wanted != bound and bound not in wanted.parents:
            hint = "use the job's logdir, ask with emit_xspace, or start the server with any_folder=True"
            raise CaptureError("this folder is outside of the job's logdir", code="logdir", hint=hint)


def metadata_of(token: str) -> tuple[str, str]:
    """The pair of metadata that shows a token."""
    return TOKEN_KEY, f"{_SCHEME}{token}"


def check_token_form(token: str) -> str:
    """The token without surrounding space.  Raises UsageError if it is too short, or cannot be sent."""
    text = token.strip()
    if len(text) < LEAST_CHARACTERS or not all("!" <= char <= "~" for char in text):
        hint = "python -c 'import secrets; print(secrets.token_urlsafe())' makes one"
        raise UsageError(f"a token has {LEAST_CHARACTERS} or more letters, digits or signs of ASCII", hint=hint)
    return text


def token_from_environment() -> str | None:
    """The token in the variable; None without one.  Raises UsageError if it is no token."""
    text = os.environ.get(TOKEN_VARIABLE, "").strip()
    return check_token_form(text) if text else None


def is_open_by_environment() -> bool:
    """Whether the variable says that a server may listen to everybody without a token."""
    return os.environ.get(OPEN_VARIABLE, "").strip().lower() in ("1", "yes", "true", "on")


def choose_token(given: str | None) -> str | None:
    """The token that a client brings: the given one, or that of the variable.  Raises UsageError if it is no token."""
    return check_token_form(given) if given else token_from_environment()
