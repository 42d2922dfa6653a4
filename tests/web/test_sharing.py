"""Links that people send each other, and the end of sessions that they deleted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from browsing import DRAWN, store_profile
from draw import draw
from werkzeug.test import Client, TestResponse

from stepscope.errors import UsageError
from stepscope.web.answers import Refused
from stepscope.web.app import App
from stepscope.web.catalogue import Root
from stepscope.web.door.door import Door, DoorOptions
from stepscope.web.door.proxies import Proxies, parse_proxies
from stepscope.web.door.roles import Role
from stepscope.web.door.tokens import make_token
from stepscope.web.people.purge import DAYS_VARIABLE, MOST_AT_ONCE, purge, wanted_days
from stepscope.web.people.sharing import check_link, sign_link
from stepscope.web.people.words import WordStore
from stepscope.web.site import Site, SiteOptions

TEXTS = {role: f"token-of-those-who-{role.name.lower()}" for role in Role}
DAY = 86_400


class Server:
    """A server on a logdir and a store."""

    def __init__(self, folder: Path, shared: bool = True, proxies: Proxies | None = None) -> None:
        options = SiteOptions([Root(str(folder / "logs"))], is_shared=shared)
        self.site = Site(options, words=WordStore(folder / "words.db"))
        tokens = tuple(make_token(text, role, role.name.title()) for role, text in TEXTS.items())
        self.app = App(self.site, Door(DoorOptions(tokens, proxies or Proxies())) if shared else None)

    def ask(self, path: str, role: Role | None = Role.SEE, method: str = "GET", **more: Any) -> TestResponse:
        headers = {"X-Stepscope": "1"} | ({"Authorization": f"Bearer {TEXTS[role]}"} if role else {})
        return Client(self.app).open(path, method=method, headers=headers | more.pop("headers", {}), **more)

    @property
    def session(self) -> str:
        return str(self.ask("/api/sessions").json["sessions"][0]["id"])

    def share(self, **wanted: Any) -> Any:
        answer = self.ask(f"/api/sessions/{self.session}/share", method="POST", json=wanted)
        assert answer.status_code == 201, answer.text
        return answer.json


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store_profile(tmp_path / "logs", "r1", draw(DRAWN))
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    made = Server(folder)
    yield made
    made.site.close()


# -- links -------------------------------------------------------------------------------------------------------------


def test_a_link_leads_to_its_view_on_every_server_of_the_store(server: Server, folder: Path) -> None:
    view = f"#/kernels?session={server.session}&steps=2-3"
    link = server.share(view=view)["link"]

    for each in (server, Server(folder)):
        answer = each.ask(link)
        assert (answer.status_code, answer.headers["Location"]) == (303, f"/{view}")


def test_who_has_not_come_in_logs_in_first_and_then_sees_with_the_own_role(server: Server) -> None:
    link = server.share()["link"]
    client = Client(server.app)

    turned = client.get(link, headers={"Accept": "text/html"})
    goal = parse_qs(urlsplit(turned.headers["Location"]).query)["next"][0]
    entered = client.post(
        "/login", data={"token": TEXTS[Role.SEE], "next": goal}, headers={"Origin": "http://localhost"}
    )
    shown = client.get(entered.headers["Location"])

    assert urlsplit(turned.headers["Location"]).path == "/login"
    assert (shown.status_code, shown.headers["Location"]) == (303, f"/#/?session={server.session}")
    assert client.get("/api/words").json["role"] == "see"
    assert server.ask(link, None).status_code == 401


def test_a_long_view_survives_the_login(server: Server) -> None:
    view = f"#/timeline?session={server.session}&hidden={'%2C'.join(f't{at}' for at in range(150))}"
    turned = Client(server.app).get(server.share(view=view)["link"], headers={"Accept": "text/html"})
    goal = parse_qs(urlsplit(turned.headers["Location"]).query)["next"][0]

    assert len(view) > 600
    assert goal in server.ask(turned.headers["Location"], None).text.replace("&amp;", "&")
    assert server.ask(goal).headers["Location"] == f"/{view}"


def test_only_a_server_with_a_login_offers_links(server: Server, folder: Path) -> None:
    open_server = Server(folder, shared=False)

    assert server.ask("/api/words").json["can_share"] is True
    assert open_server.ask("/api/words").json["can_share"] is False
    open_server.site.close()


@pytest.mark.parametrize("told_by_proxy", [False, True], ids=["an option says the path", "a proxy says it"])
def test_below_a_path_a_link_leads_through_the_login_to_its_view(folder: Path, told_by_proxy: bool) -> None:
    below = "/team/prof"
    server = Server(folder, proxies=parse_proxies(["127.0.0.1"]) if told_by_proxy else Proxies(prefix=below))
    told = {"X-Forwarded-Prefix": below, "X-Forwarded-For": "10.0.0.9"} if told_by_proxy else {}
    client = Client(server.app, use_cookies=False)  # a browser's cookies follow the path before the proxy

    def ask(path: str, method: str = "GET", headers: dict[str, str] | None = None, **more: Any) -> TestResponse:
        """A request as the proxy hands it on."""
        path = path.removeprefix(below) if told_by_proxy else path
        sent = told | (headers or {})
        return client.open(path, method=method, headers=sent, environ_base={"REMOTE_ADDR": "127.0.0.1"}, **more)

    known = {"X-Stepscope": "1", "Authorization": f"Bearer {TEXTS[Role.SEE]}"}
    session = ask("/api/sessions", headers=known).json["sessions"][0]["id"]
    path = f"/api/sessions/{session}/share"
    link = ask(path, "POST", known, json={"view": "#/kernels?steps=2-3"}).json["link"]

    turned = ask(link, headers={"Accept": "text/html"})
    login = urlsplit(turned.headers["Location"])
    goal = parse_qs(login.query)["next"][0]
    entered = ask(login.path, "POST", {"Origin": "http://localhost"}, data={"token": TEXTS[Role.SEE], "next": goal})
    cookie = entered.headers["Set-Cookie"]
    shown = ask(entered.headers["Location"], headers={"Cookie": cookie.partition(";")[0]})

    assert f"Path={below}/" in cookie
    assert link.startswith(f"{below}/share/{session}/")
    assert (login.path, goal) == (f"{below}/login", link)
    assert (shown.status_code, shown.headers["Location"]) == (303, f"{below}/#/kernels?steps=2-3")
    server.site.close()


def test_a_link_ends(server: Server) -> None:
    key = server.site.words.link_key()
    mark, expires = sign_link(key, "s", "#/", 2, now=1000.0)

    assert expires == 1000 + 2 * DAY
    check_link(key, "s", "#/", mark, now=expires)
    with pytest.raises(Refused) as ended:
        check_link(key, "s", "#/", mark, now=expires + 1)
    assert ended.value.status == 410
    with pytest.raises(Refused):
        sign_link(key, "s", "#/", 91)


def test_a_link_holds_a_view_of_a_thousand_characters_and_no_longer_one(server: Server) -> None:
    path = f"/api/sessions/{server.session}/share"

    assert server.share(view="#/" + "x" * 1000)["link"]
    assert server.ask(path, method="POST", json={"view": "#/" + "x" * 1001}).status_code == 400


@pytest.mark.parametrize("change", ["session", "view", "expiry", "signature", "empty", "letters"])
def test_a_link_that_was_changed_leads_nowhere(server: Server, change: str) -> None:
    link = server.share(view="#/kernels")["link"]
    _, _, session, mark = urlsplit(link).path.split("/")
    expires, _, signature = mark.partition(".")
    changed = {
        "session": link.replace(session, "other"),
        "view": link.replace("kernels", "memory"),
        "expiry": link.replace(expires, str(int(expires) + DAY)),
        "signature": link.replace(signature, signature[::-1]),
        "empty": link.replace(mark, "."),
        "letters": link.replace(expires, "²" * 5),
    }[change]

    assert server.ask(changed).status_code == 403


@pytest.mark.parametrize(
    "view",
    ["https://evil.example", "//evil.example", "#/a\r\nSet-Cookie: x=1", "javascript:1", "#/<script>", "kernels"],
)
def test_a_link_leads_to_a_view_of_the_page_alone(server: Server, view: str) -> None:
    path = f"/api/sessions/{server.session}/share"

    assert server.ask(path, method="POST", json={"view": view}).status_code == 400
    assert server.ask(f"/share/{server.session}/1.a", query_string={"view": view}).status_code == 400


def test_without_a_door_a_link_is_the_address_itself(folder: Path) -> None:
    open_server = Server(folder, shared=False)

    assert open_server.share(view="#/kernels") == {"link": "/#/kernels", "expires": None}
    open_server.site.close()


def test_a_link_to_a_session_that_is_gone_says_so(server: Server, folder: Path) -> None:
    link = server.share()["link"]
    (folder / "logs/plugins/profile/r1").rename(folder / "elsewhere")
    server.site.catalogue.forget()

    assert server.ask(link).status_code == 404


# -- the end of deleted sessions ---------------------------------------------------------------------------------------


def delete(server: Server, run: str, at: float) -> str:
    """Deletes a session at a time."""
    listed = next(one for one in server.site.catalogue.sessions() if one.session.run == run)
    server.site.words.change(listed.id, 0, {"deleted": True}, "Label")
    with server.site.words._open() as connection:
        connection.execute("UPDATE words SET changed_at = ? WHERE session = ?", (at, listed.id))
    return listed.id


def test_files_of_sessions_that_were_deleted_long_ago_are_removed(folder: Path) -> None:
    for run in ("r2", "r3"):
        store_profile(folder / "logs", run, draw(DRAWN))
    server, now = Server(folder), 100.0 * DAY
    gone = delete(server, "r1", now - 31 * DAY)
    delete(server, "r2", now - 29 * DAY)

    assert purge(server.site, 30, now) == ["r1"]
    assert sorted(path.name for path in (folder / "logs/plugins/profile").iterdir()) == ["r2", "r3"]
    assert server.site.words.of(gone).version == 0
    assert purge(server.site, 30, now) == []
    server.site.close()


def test_nothing_behind_a_link_or_outside_the_logdir_is_removed(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "logs/plugins/profile/r1").rename(folder / "elsewhere/r1")
    (folder / "logs/plugins/profile/r1").symlink_to(folder / "elsewhere/r1")
    server = Server(folder)
    delete(server, "r1", 1.0)

    assert purge(server.site, 30, 100.0 * DAY) == []
    assert len(list((folder / "elsewhere/r1").iterdir())) == 1
    server.site.close()


def test_one_look_removes_few(folder: Path) -> None:
    (content,) = (folder / "logs/plugins/profile/r1").iterdir()
    for number in range(MOST_AT_ONCE + 4):
        run = folder / f"logs/plugins/profile/many{number}"
        run.mkdir()
        os.link(content, run / content.name)
    server = Server(folder)
    for number in range(MOST_AT_ONCE + 4):
        delete(server, f"many{number}", 1.0)

    assert len(purge(server.site, 30, 100.0 * DAY)) == MOST_AT_ONCE
    assert len(purge(server.site, 30, 100.0 * DAY)) == 4
    server.site.close()


@pytest.mark.parametrize("text", ["0", "0.5", "soon", "-3", "nan"])
def test_a_wrong_number_of_days_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(DAYS_VARIABLE, text)
    with pytest.raises(UsageError):
        wanted_days()


def test_nothing_is_removed_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DAYS_VARIABLE, raising=False)
    assert wanted_days() is None
    monkeypatch.setenv(DAYS_VARIABLE, "30")
    assert wanted_days() == 30
