"""The door of a server: lets a request in with its visitor, or answers it."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict, deque
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from werkzeug import Request

from stepscope.errors import BusyError
from stepscope.records import dataclass
from stepscope.web.answers import Answer, Refused, json_answer
from stepscope.web.auth.login import login_page, safe_next
from stepscope.web.auth.proxies import Proxies
from stepscope.web.auth.roles import Rights, Visitor
from stepscope.web.auth.tokens import COOKIE_SECONDS, Token, Tokens, visitor_with
from stepscope.web.notes.note_store import NoteStore

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

COOKIE = "stepscope_login"
LONGEST_NAME = 100
MOST_FAILURES = 10
"""Wrong tokens from one address within WINDOW_SECONDS; the next wrong ones are told to wait."""

WINDOW_SECONDS = 300.0
MOST_ADDRESSES = 10_000

_FRESH_SECONDS = 2.0
_BEARER = "Bearer "
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GateOptions:
    """Who may come in.

    Attributes:
        tokens: the accepted tokens.
        proxies: the proxies that are believed.
        identity_role: the role of those whom a proxy names.
        token_file: where the tokens were read; it is read again when it changes.
        store: keeps the logins that have ended.
    """

    tokens: tuple[Token, ...]
    proxies: Proxies
    identity_role: Rights = Rights.LABEL
    token_file: Path | None = None
    store: NoteStore = field(default_factory=lambda: NoteStore(None))


class Attempts:
    """Limits how often wrong tokens are looked at, by address.  Safe to use from several threads.

    What is counted is what failed: a right token passes from every address, so nobody can lock out the colleagues
    behind the same proxy.  That helps nobody to guess one: a token has 16 characters or more.
    """

    def __init__(self) -> None:
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def seconds_to_wait(self, address: str) -> float:
        """How long an address has to wait before its next attempt; 0 if it may try."""
        with self._lock:
            failures = self._failures.get(address)
            if failures is None:
                return 0.0
            while failures and failures[0] < time.monotonic() - WINDOW_SECONDS:
                failures.popleft()
            return max(0.0, failures[0] + WINDOW_SECONDS - time.monotonic()) if len(failures) >= MOST_FAILURES else 0.0

    def add_failure(self, address: str) -> None:
        """Counts a wrong token."""
        with self._lock:
            failures = self._failures.setdefault(address, deque(maxlen=MOST_FAILURES))
            failures.append(time.monotonic())
            self._failures.move_to_end(address)
            while len(self._failures) > MOST_ADDRESSES:
                self._failures.popitem(last=False)


class Gate:
    """Lets visitors in.  Safe to use from several threads."""

    def __init__(self, options: GateOptions) -> None:
        self.options = options
        self._tokens = Tokens(options.tokens, options.token_file)
        self._attempts = Attempts()
        self._ended: frozenset[str] = frozenset()
        self._ended_until = 0.0

    def outside(self, environ: WSGIEnvironment) -> WSGIEnvironment:
        """The request as its client sent it."""
        return self.options.proxies.apply(environ)

    def admit(self, request: Request) -> Visitor | Answer:
        """The visitor who sends a request; or the answer, if it is about coming in, or nobody known sends it.

        Raises BusyError (429) for who has tried too many wrong tokens.
        """
        if request.path == "/login":
            return self._log_in(request) if request.method == "POST" else self._show_page(request)
        if request.path == "/logout" and request.method == "POST":
            return self._log_out(request)
        visitor = self._find_by_proxy(request) or self._find_by_token(request) or self._find_by_cookie(request)
        return visitor or self._turn_away(request)

    # -- who is it? ------------------------------------------------------------------------------------------------

    def _find_by_proxy(self, request: Request) -> Visitor | None:
        # `outside` has removed the header if it came from somebody else.
        name = request.environ.get(self.options.proxies.identity_key, "").strip()
        if not self.options.proxies.identity_header or not name:
            return None
        return Visitor(name[:LONGEST_NAME], self.options.identity_role, _address(request), f"proxy {name}")

    def _find_by_token(self, request: Request) -> Visitor | None:
        header = request.headers.get("Authorization", "")
        if not header.startswith(_BEARER):
            return None
        token = self._check(request, header.removeprefix(_BEARER).strip())
        return visitor_with(token, _address(request)) if token else None

    def _find_by_cookie(self, request: Request) -> Visitor | None:
        login = self._tokens.read_cookie(request.cookies.get(COOKIE, ""))
        if login is None or login.id in self._ended_logins():
            return None
        return visitor_with(login.token, _address(request))

    def _ended_logins(self) -> frozenset[str]:
        """The logins that have ended, as of a moment ago: other servers may have ended some."""
        if time.monotonic() >= self._ended_until:
            self._ended |= self.options.store.ended_logins()
            self._ended_until = time.monotonic() + _FRESH_SECONDS
        return self._ended

    def _check(self, request: Request, text: str) -> Token | None:
        """The token of a text; None if it is wrong.  Raises BusyError (429) after too many wrong ones."""
        token = self._tokens.find(text)
        if token is None:
            address = _address(request)
            seconds = self._attempts.seconds_to_wait(address)
            if seconds:
                raise BusyError.for_seconds(math.ceil(seconds), "too many wrong tokens came from this address")
            self._attempts.add_failure(address)
            _log.warning("a wrong token from %s", address)
        return token

    # -- answers ---------------------------------------------------------------------------------------------------

    def _show_page(self, request: Request) -> Answer:
        return login_page(request.script_root, request.args.get("next", ""))

    def _log_in(self, request: Request) -> Answer:
        _refuse_other_sites(request)
        wanted = request.form.get("next", "")
        token = self._check(request, request.form.get("token", "").strip())
        if token is None:
            return login_page(request.script_root, wanted, "This token is not known.", 401)
        cookie = _cookie(request, self._tokens.make_cookie(token), COOKIE_SECONDS)
        return _go(safe_next(wanted, request.script_root), cookie)

    def _log_out(self, request: Request) -> Answer:
        """Ends the login for whoever has its cookie, here at once and on other servers within moments."""
        _refuse_other_sites(request)
        login = self._tokens.read_cookie(request.cookies.get(COOKIE, ""))
        if login is not None:
            self._ended |= {login.id}
            with suppress(Refused):  # this server knows it
                self.options.store.end_login(login.id, login.until)
        return _go(f"{request.script_root}/login", _cookie(request, "", 0))

    def _turn_away(self, request: Request) -> Answer:
        """The login page for people, an error for programs."""
        if request.method in ("GET", "HEAD") and "text/html" in request.headers.get("Accept", ""):
            return _go(f"{request.script_root}/login")
        answer = json_answer({"error": "log in first", "hint": "send Authorization: Bearer TOKEN", "choices": []}, 401)
        return Answer(answer.body, answer.content_type, 401, {"WWW-Authenticate": "Bearer"})


def _address(request: Request) -> str:
    return request.remote_addr or ""


def _refuse_other_sites(request: Request) -> None:
    """Refuses a form that another site made a browser send.  Browsers say where a form comes from."""
    origin = request.headers.get("Origin", "")
    if urlsplit(origin).netloc.lower() != request.host.lower():
        raise Refused(403, "this form does not come from this site", "open the login page of this server")


def _cookie(request: Request, value: str, seconds: int) -> str:
    path = f"{request.script_root}/"
    secure = "; Secure" if request.scheme == "https" else ""
    return f"{COOKIE}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def _go(address: str, cookie: str = "") -> Answer:
    headers = {"Location": address} | ({"Set-Cookie": cookie} if cookie else {})
    return Answer(b"", "text/plain", 303, headers)
