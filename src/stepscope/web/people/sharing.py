"""Links to a view of a session, signed and for some days.

A link lets nobody in: who opens it logs in and sees with the own role.  The signature says that somebody of this team
made the link, for that session and that view, so a changed one or one from elsewhere leads nowhere.  The key lies in
the store of the words, so servers with the same store accept each other's links.
"""

from __future__ import annotations

import hmac
import re
import time

from stepscope.web.answers import Refused

LONGEST_DAYS = 90
DEFAULT_DAYS = 14
LONGEST_VIEW = 1000

_DAY_SECONDS = 86_400
_PURPOSE = b"stepscope link 1"
# A view of the page, as it stands after the # of an address: no other site, no script, and no way to leave a header.
_VIEW = re.compile(rf"#/[\w./~%?&=+,:@!$*-]{{0,{LONGEST_VIEW}}}", re.ASCII)


def check_view(view: str) -> str:
    """A view of the page, if it is one.  Raises Refused (400)."""
    if not _VIEW.fullmatch(view):
        raise Refused(400, "this is not a view of the page", "share what the page shows: #/VIEW?session=ID")
    return view


def sign_link(key: bytes, session: str, view: str, days: float, now: float | None = None) -> tuple[str, int]:
    """The expiry and signature of a link, `EXPIRES.SIGNATURE`, and when it ends in seconds since 1970.

    Raises:
        Refused: 400 for a number of days that cannot be.
    """
    if not 0 < days <= LONGEST_DAYS:
        raise Refused(400, f"a link is for at most {LONGEST_DAYS} days", "give a number of days")
    expires = int((time.time() if now is None else now) + days * _DAY_SECONDS)
    return f"{expires}.{_sign(key, session, view, expires)}", expires


def check_link(key: bytes, session: str, view: str, mark: str, now: float | None = None) -> None:
    """Checks a link.  Raises Refused: 403 if it was changed or is not from here, 410 if it has ended."""
    text, _, signature = mark.partition(".")
    is_number = text.isascii() and text.isdecimal() and len(text) < 12
    expected = _sign(key, session, view, int(text) if is_number else 0)
    if not is_number or not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace")):
        raise Refused(403, "this link was changed, or comes from another server", "ask for a new link")
    if (time.time() if now is None else now) > int(text):
        raise Refused(410, "this link has expired", "ask for a new link")


def _sign(key: bytes, session: str, view: str, expires: int) -> str:
    body = "\n".join((session, view, str(expires))).encode("utf-8", "surrogatepass")
    return hmac.new(hmac.digest(key, _PURPOSE, "sha256"), body, "sha256").hexdigest()[:32]
