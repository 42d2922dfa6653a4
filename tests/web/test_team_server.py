"""The server for a team: its door, and what comes through it in spite of it."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from browsing import DRAWN, store_profile
from draw import draw
from ports import free_port
from werkzeug.test import Client, TestResponse

from stepscope.agents.sessions import Sessions
from stepscope.cli.main import run
from stepscope.errors import UsageError
from stepscope.web import app as app_module
from stepscope.web.app import App
from stepscope.web.auth.gate import COOKIE, MOST_FAILURES, Gate, GateOptions
from stepscope.web.auth.log import write_request
from stepscope.web.auth.login import safe_next
from stepscope.web.auth.proxies import Proxies, parse_proxies
from stepscope.web.auth.roles import Rights
from stepscope.web.auth.tokens import COOKIE_SECONDS, Tokens, make_token, read_tokens
from stepscope.web.catalogue import Root
from stepscope.web.hosts import own_names
from stepscope.web.notes.note_store import NoteStore
from stepscope.web.site import Site, SiteOptions

TEXTS = {role: f"token-of-those-who-{role.name.lower()}" for role in Rights}
CHANGES = {"X-Stepscope": "1"}


class Team:
    """A shared server, and requests to it."""

    def __init__(self, tmp_path: Path, proxies: Proxies | None = None) -> None:
        self.logdir = tmp_path / "logs"
        store_profile(self.logdir, "r1", draw(DRAWN))
        store_profile(self.logdir, "r2", draw(DRAWN))
        options = SiteOptions([Root(str(self.logdir))], host_names=own_names("0.0.0.0"), is_shared=True)
        self.site = Site(options, words=NoteStore(tmp_path / "words.db"))
        tokens = tuple(make_token(text, role, role.name.title()) for role, text in TEXTS.items())
        self.options = GateOptions(tokens, proxies or Proxies(), store=self.site.words)
        self.app = App(self.site, Gate(self.options))
        self.client = Client(self.app)

    def ask(self, path: str, role: Rights | None = Rights.CAPTURE, method: str = "GET", **more: Any) -> TestResponse:
        """A request of somebody with a role; None for somebody without a token."""
        headers = {"Authorization": f"Bearer {TEXTS[role]}"} if role else {}
        headers |= (CHANGES if method != "GET" else {}) | more.pop("headers", {})
        return Client(self.app).open(path, method=method, headers=headers, **more)

    def session(self, run: str = "r1") -> str:
        """The id of a session."""
        return next(one["id"] for one in self.ask("/api/sessions").json["sessions"] if one["run"] == run)

    def change(self, version: int, role: Rights = Rights.LABEL, **words: Any) -> TestResponse:
        """A change of the words of r1."""
        return self.ask(f"/api/sessions/{self.session()}/words", role, "POST", json={"version": version, **words})


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    made = Team(tmp_path)
    yield made
    made.site.close()


# -- coming in ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/api/config", "/api/sessions", "/api/words", "/assets/x.js", "/nothing", "/api/capture/1"]
)
def test_without_a_token_nothing_is_answered(team, path):
    assert team.ask(path, None).status_code == 401
    assert team.ask(path, None, headers={"Authorization": "Bearer wrong-wrong-wrong-wrong"}).status_code == 401
    assert team.ask(path, None, headers={"Cookie": f"{COOKIE}=1.0.0.0"}).status_code == 401


def log_in(client: Client, text: str, **headers: str) -> TestResponse:
    """The answer to the login form."""
    return client.post("/login", data={"token": text}, headers={"Origin": "http://localhost"} | headers)


def test_a_login_gives_a_cookie_that_scripts_and_other_sites_do_not_get(team):
    answer = log_in(team.client, TEXTS[Rights.SEE])

    cookie = answer.headers["Set-Cookie"]
    assert (answer.status_code, answer.location) == (303, "/")
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", f"Max-Age={COOKIE_SECONDS}", "Path=/;"))
    assert TEXTS[Rights.SEE] not in cookie
    assert team.client.get("/api/words").json["role"] == "see"
    assert team.client.post("/logout", headers={"Origin": "http://localhost"}).status_code == 303
    assert team.client.get("/api/words").status_code == 401


def test_a_cookie_ends_and_clocks_may_differ_by_minutes():
    token = make_token(TEXTS[Rights.SEE])
    tokens = Tokens([token])
    cookie = tokens.make_cookie(token, now=1e9)

    assert tokens.read_cookie(cookie, now=1e9 + COOKIE_SECONDS).token is token
    assert tokens.read_cookie(cookie, now=1e9 - 200).token is token  # of a server whose clock is ahead
    assert tokens.read_cookie(cookie, now=1e9 + COOKIE_SECONDS + 1) is None
    assert tokens.read_cookie(cookie, now=1e9 - 400) is None
    assert Tokens([make_token("another-token-altogether")]).read_cookie(cookie, now=1e9) is None
    assert Tokens([make_token(TEXTS[Rights.SEE])]).read_cookie(cookie, now=1e9)  # another server with the same token


def test_each_role_may_do_what_it_may(team):
    session = team.session()
    wanted = {
        Rights.SEE: [("GET", f"/api/sessions/{session}"), ("GET", "/api/words")],
        Rights.LABEL: [("POST", f"/api/sessions/{session}/words")],
        Rights.CAPTURE: [("POST", "/api/capture"), ("GET", "/api/capture/1"), ("DELETE", "/api/capture/1")],
    }
    for least, requests in wanted.items():
        for method, path in requests:
            for role in Rights:
                is_refused = team.ask(path, role, method, json={}).status_code == 403
                assert is_refused == (role < least), (role, method, path)


def test_health_needs_no_token_and_names_no_path(team, tmp_path):
    assert team.ask("/healthz", None, headers={"Host": "10.0.0.1:80"}).json == {"status": "ok"}
    assert team.ask("/readyz", None).status_code == 200
    team.logdir.rename(tmp_path / "gone")
    gone = team.ask("/readyz", None)
    assert (gone.status_code, gone.json) == (503, {"status": "no logdir can be read"})
    team.site.end()
    assert team.ask("/readyz", None).json == {"status": "ending"}


def test_tokens_are_read_from_a_file_that_others_cannot_read(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("# ours\nsee-only-see-only see Anna of ops\n\nlet-me-do-all-of-it\n")
    path.chmod(0o600)

    assert [(token.role, token.name) for token in read_tokens(path)] == [
        (Rights.SEE, "Anna of ops"),
        (Rights.CAPTURE, ""),
    ]
    assert "see-only" not in repr(read_tokens(path))
    path.chmod(0o644)
    with pytest.raises(UsageError, match="other users may read these tokens"):
        read_tokens(path)
    for wrong in ("short", "long-enough-as-it-is king", ""):
        path.write_text(wrong)
        path.chmod(0o600)
        with pytest.raises(UsageError):
            read_tokens(path)


# -- behind a proxy ----------------------------------------------------------------------------------------------------


def test_only_known_proxies_are_believed(tmp_path):
    team = Team(tmp_path, parse_proxies(["127.0.0.1"], "X-Forwarded-User", "/prof"))
    told = {"X-Forwarded-User": "anna", "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}

    known = team.ask("/prof/api/words", None, headers=told, environ_base={"REMOTE_ADDR": "127.0.0.1"})
    other = team.ask("/prof/api/words", None, headers=told, environ_base={"REMOTE_ADDR": "203.0.113.1"})
    behind = team.ask("/prof/", None, headers={"Accept": "text/html"}, environ_base={"REMOTE_ADDR": "127.0.0.1"})

    assert (known.json["person"], known.json["role"]) == ("anna", "label")
    assert other.status_code == 401
    assert behind.location == "/prof/login"
    team.site.close()


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [("203.0.113.9", "203.0.113.9"), ("1.2.3.4, 203.0.113.9", "203.0.113.9"), ("203.0.113.9, 10.0.0.2", "203.0.113.9"),
     ("", "127.0.0.1"), ("10.0.0.3", "127.0.0.1")],
)  # fmt: skip
def test_the_client_is_the_last_that_is_no_proxy(forwarded, client):
    proxies = parse_proxies(["127.0.0.1", "10.0.0.0/8"])

    assert proxies.apply({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": forwarded})["REMOTE_ADDR"] == client


@pytest.mark.parametrize("prefix", ["//evil.example", "/a\r\nX: 1", "/a b", "/../..", "javascript:1", "/" + "a" * 300])
def test_a_prefix_that_is_no_path_is_not_believed(prefix):
    proxies = parse_proxies(["127.0.0.1"])

    found = proxies.apply({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_PREFIX": prefix})
    assert found.get("SCRIPT_NAME", "") in ("", "/../..")


# -- what people say of sessions ---------------------------------------------------------------------------------------


def test_words_are_kept_with_who_said_them(team, tmp_path):
    said = team.change(0, title=" Baseline ", note="as of\nMonday", labels=["a", "a", " b "], starred=True).json

    assert (said["title"], said["note"], said["labels"], said["starred"]) == (
        "Baseline",
        "as of\nMonday",
        ["a", "b"],
        True,
    )
    assert (said["version"], said["changed_by"]) == (1, "Label")
    assert team.ask("/api/words", Rights.SEE).json["sessions"] == {team.session(): said}
    assert NoteStore(tmp_path / "words.db").of(team.session()).title == "Baseline"  # another server


def test_deletion_can_be_undone_and_removes_no_file(team):
    assert team.change(0, deleted=True).json["deleted"]
    assert not team.change(1, deleted=False).json["deleted"]
    assert len(team.ask("/api/sessions").json["sessions"]) == 2


def test_of_two_who_edit_one_note_the_second_is_told(team):
    assert team.change(0, note="mine").status_code == 200
    refused = team.change(0, note="mine too")

    assert (refused.status_code, refused.json["error"]) == (409, "Label has changed this meanwhile")
    assert team.change(1, note="both").json["note"] == "both"


def test_servers_that_share_a_store_lose_no_change(tmp_path):
    path = tmp_path / "words.db"

    def count_up(_: int) -> int:
        lost = 0
        for _ in range(10):
            while True:
                store = NoteStore(path)
                known = store.of("s")
                try:
                    store.change("s", known.version, {"note": str(int(known.note or 0) + 1)}, "")
                    break
                except Exception:
                    lost += 1
        return lost

    with ThreadPoolExecutor(4) as servers:
        list(servers.map(count_up, range(4)))
    assert NoteStore(path).of("s").note == "40"


def test_where_nothing_can_be_written_notes_are_refused_and_the_rest_works(team, tmp_path):
    team.site.words.path = tmp_path / "logs" / "r1-is-a-file"
    team.site.words.path.write_bytes(b"not a database, but long enough to be taken for one" * 100)

    assert team.change(0, note="x").status_code == 409
    assert team.ask("/api/words").json["sessions"] == {}


def test_a_full_disk_is_said(monkeypatch, team):
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device")))

    assert team.change(0, note="x").status_code == 507


# -- attacks -----------------------------------------------------------------------------------------------------------


def _forged_cookie() -> str:
    """A cookie of one token that names another."""
    token = make_token(TEXTS[Rights.SEE])
    cookie = Tokens([token]).make_cookie(token)
    return f"{COOKIE}={cookie.replace(token.id, make_token(TEXTS[Rights.CAPTURE]).id)}"


ATTACKS = {
    "no token": lambda team: team.ask("/api/words", None),
    "an empty token": lambda team: team.ask("/api/words", None, headers={"Authorization": "Bearer "}),
    "a token in the address": lambda team: team.ask(f"/api/words?token={TEXTS[Rights.SEE]}", None),
    "a cookie without a signature": lambda team: team.ask(
        "/api/words", None, headers={"Cookie": f"{COOKIE}=1.{make_token(TEXTS[Rights.SEE]).id}.9999999999."}
    ),
    "a cookie of another role": lambda team: team.ask(
        "/api/words", None, headers={"Cookie": _forged_cookie()}
    ),
    "a cookie with a time of thousands of digits": lambda team: team.ask(
        "/api/words", None, headers={"Cookie": f"{COOKIE}=1.{make_token(TEXTS[Rights.SEE]).id}.{'9' * 5000}.0"}
    ),
    "a person named by nobody's proxy": lambda team: team.ask("/api/words", None, headers={"X-Forwarded-User": "root"}),
    "an address named by nobody's proxy": lambda team: team.ask(
        "/api/words", None, headers={"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1"}
    ),
    "rebinding": lambda team: team.ask("/api/words", headers={"Host": "evil.example"}),
    "rebinding by a proxy's header": lambda team: team.ask(
        "/api/words", headers={"Host": "evil.example", "X-Forwarded-Host": "localhost"}
    ),
    "a form of another site": lambda team: log_in(team.client, TEXTS[Rights.SEE], Origin="http://evil.example"),
    "a form without an origin": lambda team: team.client.post("/login", data={"token": TEXTS[Rights.SEE]}),
    "a change sent by another site": lambda team: Client(team.app).post(
        f"/api/sessions/{team.session()}/words", json={"version": 0, "note": "x"},
        headers={"Authorization": f"Bearer {TEXTS[Rights.LABEL]}"},
    ),
    "a change by somebody who may only see": lambda team: team.change(0, Rights.SEE, note="x"),
    "a capture by somebody who may only label": lambda team: team.ask(
        "/api/capture", Rights.LABEL, "POST", json={"addresses": ["127.0.0.1:22"]}
    ),
    "a session that is a path": lambda team: team.ask(
        "/api/sessions/..%2f..%2fetc%2fpasswd/words", Rights.LABEL, "POST", json={"version": 0}
    ),
    "a session that is SQL": lambda team: team.ask(
        "/api/sessions/' OR 1=1; DROP TABLE words; --/words", Rights.LABEL, "POST", json={"version": 0, "note": "x"}
    ),
    "an attribute that is not offered": lambda team: team.change(0, changed_by="root"),
    "a note of a megabyte": lambda team: team.change(0, note="x" * 900_000),
    "a thousand labels": lambda team: team.change(0, labels=[str(n) for n in range(1000)]),
    "a version that is no number": lambda team: team.ask(
        f"/api/sessions/{team.session()}/words", Rights.LABEL, "POST", data=b'{"version": 1e999}'
    ),
    "JSON that is nested without end": lambda team: team.ask(
        f"/api/sessions/{team.session()}/words", Rights.LABEL, "POST", data=b"[" * 500_000
    ),
    "a file outside of the page": lambda team: team.ask("/assets/..%2f..%2f..%2fsite.py"),
    "a name that no system can have": lambda team: team.ask("/" + "a" * 5000),
    "a body behind a GET": lambda team: team.ask("/api/capture", Rights.SEE, "GET", data=b"x" * 1000),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused_and_learns_nothing(team, attack, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    answer = ATTACKS[attack](team)

    assert 400 <= answer.status_code < 500
    said = answer.text + str(answer.headers) + caplog.text + capfd.readouterr().err
    assert str(team.logdir.parent) not in answer.text
    assert str(Path(app_module.__file__).parent) not in answer.text
    assert not [text for text in TEXTS.values() if text in said]
    assert team.site.words.all() == {}


def test_words_with_markup_are_sent_as_data(team):
    note = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    answer = team.change(0, note=note, title="=1+1", labels=["<b>"])

    assert answer.mimetype == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "script-src" not in answer.headers["Content-Security-Policy"]  # so default-src 'self' counts
    assert answer.json["note"] == note


def test_a_logout_ends_the_login_for_whoever_has_its_cookie(tmp_path):
    """Also on another server with the same store, and no other login."""
    team = Team(tmp_path)
    cookies = [log_in(Client(team.app), TEXTS[Rights.SEE]).headers["Set-Cookie"].partition(";")[0] for _ in range(2)]

    def status(gate: Gate, cookie: str) -> int:
        return Client(App(team.site, gate), use_cookies=False).get("/api/words", headers={"Cookie": cookie}).status_code

    here = Gate(team.options)
    answer = Client(App(team.site, here), use_cookies=False).post(
        "/logout", headers={"Cookie": cookies[0], "Origin": "http://localhost"}
    )
    assert answer.status_code == 303
    assert [status(here, cookie) for cookie in cookies] == [401, 200]
    assert [status(Gate(team.options), cookie) for cookie in cookies] == [401, 200]
    team.site.close()


def test_a_token_that_is_revoked_lets_nobody_in_any_more(tmp_path, capsys):
    file = tmp_path / "tokens"
    texts = []
    for name in ("Ana", "Ben"):
        assert run(["tokens", str(file), "--add", name, "--role", "label"]) == 0
        texts.append(capsys.readouterr().err.split()[-1])
    assert file.stat().st_mode & 0o077 == 0
    team = Team(tmp_path)
    app = App(team.site, Gate(GateOptions(read_tokens(file), Proxies(), token_file=file)))

    def statuses() -> list[int]:
        headers = [{"Authorization": f"Bearer {text}"} for text in texts]
        return [Client(app).get("/api/words", headers=each).status_code for each in headers]

    assert statuses() == [200, 200]
    cookie = log_in(Client(app), texts[0]).headers["Set-Cookie"].partition(";")[0]

    assert run(["tokens", str(file), "--revoke", "Ana"]) == 0

    assert [line.split()[1:] for line in capsys.readouterr().out.splitlines()] == [["label", "Ben"]]
    assert statuses() == [401, 200]
    assert Client(app, use_cookies=False).get("/api/words", headers={"Cookie": cookie}).status_code == 401
    assert run(["tokens", str(file), "--revoke", "Ana"]) == 2
    file.write_text("no role here ?")
    assert statuses() == [401, 200]  # a file that cannot be read changes nothing
    team.site.close()


@pytest.mark.parametrize("behind_proxy", [False, True])
def test_wrong_tokens_lock_out_no_right_one(tmp_path, behind_proxy):
    """Those who guess and their colleagues may have one address."""
    team = Team(tmp_path, parse_proxies(["127.0.0.1"], "", "") if behind_proxy else None)
    from_there = {"X-Forwarded-For": "203.0.113.77"} if behind_proxy else {}
    there = {"REMOTE_ADDR": "127.0.0.1"}
    wrong = {"Authorization": "Bearer wrong-wrong-wrong-wrong", **from_there}
    log_in(team.client, TEXTS[Rights.SEE])
    for _ in range(MOST_FAILURES):
        assert Client(team.app).get("/api/words", headers=wrong, environ_base=there).status_code == 401

    told = Client(team.app).get("/api/words", headers=wrong, environ_base=there)
    assert (told.status_code, int(told.headers["Retry-After"]) > 200) == (429, True)
    assert team.ask("/api/words", headers=from_there, environ_base=there).status_code == 200  # a token
    assert team.client.get("/api/words", headers=from_there, environ_base=there).status_code == 200  # a cookie
    form, headers = {"token": TEXTS[Rights.SEE]}, {"Origin": "http://localhost", **from_there}
    assert Client(team.app).post("/login", data=form, headers=headers, environ_base=there).status_code == 303
    team.site.close()


@pytest.mark.parametrize(
    "wanted",
    ["//evil.example", "https://evil.example", "/\\evil.example", "/a/../b", "javascript:1", "/a\nb", "", "/other"],
)
def test_after_the_login_no_other_site_is_shown(wanted):
    assert safe_next(wanted, "/prof") == "/prof/"
    assert safe_next("/prof/?run=1#/steps", "/prof") == "/prof/?run=1#/steps"


def test_a_defect_names_no_file(team, monkeypatch):
    monkeypatch.setattr(type(team.site.catalogue), "scan", lambda _: (_ for _ in ()).throw(OSError("/secret/place")))

    answer = team.ask("/api/sessions", Rights.SEE)
    assert (answer.status_code, "/secret" in answer.text) == (500, False)


def test_a_shared_server_shows_no_folder_above_its_logdir(team):
    session = team.session()
    for path in ("/api/config", "/api/sessions", f"/api/sessions/{session}", "/api/words"):
        assert str(team.logdir.parent) not in team.ask(path, Rights.SEE).text, path


def test_the_log_has_no_token(team, capsys):
    team.app._log = write_request
    team.ask(f"/api/words?token={TEXTS[Rights.SEE]}")
    log_in(team.client, TEXTS[Rights.SEE])
    team.ask("/\x1b[31m")

    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    assert [line["path"] for line in lines][:2] == ["/api/words", "/login"]
    assert lines[0]["person"] == "Capture"
    assert not [text for text in TEXTS.values() if text in json.dumps(lines)]


# -- the process -------------------------------------------------------------------------------------------------------


class Process:
    """`stepscope serve` as a process."""

    def __init__(self, *words: str, **environment: str) -> None:
        command = [sys.executable, "-m", "stepscope", "serve", *words, "--port", "0"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        assert self.process.stdout
        self.first_line = self.process.stdout.readline()
        self.address = self.first_line.partition(" is shown at ")[2].partition(" ")[0]

    def end(self) -> tuple[int, str, str]:
        """Asks it to end; returns status, and the rest of stdout and stderr."""
        self.process.terminate()
        out, err = self.process.communicate(timeout=600)
        return self.process.returncode, out, err


def test_a_new_token_is_shown_once_and_the_server_ends_when_asked(tmp_path):
    import urllib.request

    store_profile(tmp_path, "r1", draw(DRAWN))
    served = Process(str(tmp_path))
    assert served.process.stdout
    token = served.process.stdout.readline().partition("token, shown only now: ")[2].strip()
    request = urllib.request.Request(f"{served.address}api/sessions", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        sessions = json.loads(answer.read())["sessions"]
    status, out, err = served.end()

    assert len(token) > 40
    assert [session["run"] for session in sessions] == ["r1"]
    assert (status, out) == (0, "")
    assert token not in err
    assert json.loads(err.splitlines()[-1])["path"] == "/api/sessions"


def test_tls_by_certificate_files(tmp_path):
    openssl = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        subprocess.run(
            [*openssl, "-keyout", str(key), "-out", str(certificate), *subject], check=True, capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("needs the openssl command for a certificate")
    import urllib.request

    (tmp_path / "logs").mkdir()
    served = Process(
        str(tmp_path / "logs"), "--tls-cert", str(certificate), "--tls-key", str(key), STEPSCOPE_TOKEN=TEXTS[Rights.SEE]
    )
    context = ssl.create_default_context(cafile=str(certificate))
    headers = {"Authorization": f"Bearer {TEXTS[Rights.SEE]}"}
    with ThreadPoolExecutor(4) as clients:

        def ask(_: int) -> int:
            request = urllib.request.Request(f"{served.address}api/config", headers=headers)
            with urllib.request.urlopen(request, timeout=600, context=context) as answer:
                return len(answer.read())

        sizes = list(clients.map(ask, range(8)))
    status, _, err = served.end()

    assert served.address.startswith("https://127.0.0.1:")
    assert len(set(sizes)) == 1
    assert (status, TEXTS[Rights.SEE] in err) == (0, False)


NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{
        listen 127.0.0.1:{port};
        location /prof/ {{
            proxy_pass http://127.0.0.1:{backend};
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto https;
            proxy_set_header X-Forwarded-User anna;
        }}
    }}
}}
"""


def test_behind_nginx_below_a_path(tmp_path):
    import shutil
    import urllib.error
    import urllib.request

    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        pytest.skip("needs nginx, which Debian has as a package")
    from waiting import await_until

    (tmp_path / "logs").mkdir()
    served = Process(
        str(tmp_path / "logs"), "--prefix", "/prof", "--behind-proxy", "127.0.0.1",
        "--identity-header", "X-Forwarded-User", "--no-log", STEPSCOPE_TOKEN=TEXTS[Rights.SEE],
    )  # fmt: skip
    port = free_port()
    backend = served.address.rpartition(":")[2].partition("/")[0]
    (tmp_path / "nginx.conf").write_text(NGINX.format(folder=tmp_path, port=port, backend=backend))
    proxy = subprocess.Popen(
        [nginx, "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)], stderr=subprocess.DEVNULL
    )

    def ask() -> Any:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/prof/api/words", timeout=600) as answer:
                return json.loads(answer.read())
        except urllib.error.URLError as error:
            return getattr(error, "code", None) and f"status {error.code}"

    try:
        said = await_until(ask, 60, "nginx")
    finally:
        proxy.terminate()
        proxy.wait(60)
        served.end()

    assert (said["person"], said["role"]) == ("anna", "label")


# -- links -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("linked", ["folder", "file", "above"])
def test_a_link_leads_out_of_a_logdir_only_if_that_is_allowed(tmp_path, linked):
    """Whoever may write to a logdir could show the files of the server's user with it."""
    store_profile(tmp_path / "private", "secret", draw(DRAWN))
    store_profile(tmp_path / "logs", "own", draw(DRAWN))
    profiles = tmp_path / "logs" / "plugins" / "profile"
    [secret] = (tmp_path / "private").rglob("*.xplane.pb")
    if linked == "file":
        (profiles / "secret").mkdir()
        (profiles / "secret" / secret.name).symlink_to(secret)
    else:
        (profiles / "secret").symlink_to(
            secret.parent if linked == "folder" else os.path.relpath(secret.parent, profiles)
        )
    (profiles / "twice").symlink_to("own")  # which stays inside

    def runs(follows: bool) -> set[str]:
        site = Site(SiteOptions([Root(str(tmp_path / "logs"))], is_shared=True, follows_links=follows))
        listing = site.catalogue.scan()
        assert any(problem.code == "link" for problem in listing.problems) is not follows
        site.close()
        return {one.session.run for one in listing.sessions}

    assert runs(False) == {"own"}
    assert {run.rpartition("/")[2] for run in runs(True)} >= {"own", "secret"}
    listed = {each.id for each in Sessions([str(tmp_path / "logs")]).list_all()}
    assert listed == {"own"}


def test_under_tls_the_cookie_is_sent_under_tls_only(team):
    answer = team.client.post(
        "/login",
        data={"token": TEXTS[Rights.SEE]},
        headers={"Origin": "https://localhost"},
        base_url="https://localhost",
    )

    assert answer.headers["Set-Cookie"].endswith("; Secure")


def test_an_identity_header_needs_to_know_its_proxy():
    with pytest.raises(UsageError, match="anybody could send the header"):
        parse_proxies([], "X-Forwarded-User")
    with pytest.raises(UsageError, match="not an address of a proxy"):
        parse_proxies(["proxy.example"])


def test_while_another_server_changes_the_words_the_page_shows_those_read_last(tmp_path: Path) -> None:
    words = NoteStore(tmp_path / "words.db")
    words.change("s", 0, {"title": "Baseline"}, "me")
    assert words.of("s").title == "Baseline"
    with closing(sqlite3.connect(words.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert words.of("s").title == "Baseline"
        assert NoteStore(words.path).all() == {}


def test_a_version_that_no_change_can_have_is_refused_as_wrong(team: Team) -> None:
    assert team.change(10**22, title="x").status_code == 400
