"""The routes of the SQL console, and the process behind them: answers, limits, an end on request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import store_profile
from sql_sessions import training
from werkzeug.test import Client

from stepscope.errors import BusyError
from stepscope.sql.limits import Limits
from stepscope.web.app import App
from stepscope.web.auth.roles import Rights, Visitor
from stepscope.web.catalogue import Root
from stepscope.web.site import Site, SiteOptions


class Console:
    """The SQL routes of a site with two sessions."""

    def __init__(self, folder: Path) -> None:
        for run in ("one", "two"):
            store_profile(folder, run, training())
        self.site = Site(SiteOptions([Root(str(folder))]))
        self.client = Client(App(self.site))
        listed = self.client.get("/api/sessions").json["sessions"]
        self.sessions = [each["id"] for each in listed]
        self.root = f"/api/sessions/{self.sessions[0]}/sql"

    def ask(self, query: str, status: int = 200, **more: Any) -> dict[str, Any]:
        answer = self.client.post(self.root, json={"query": query, **more}, headers={"X-Stepscope": "1"})
        assert answer.status_code == status, answer.text
        found: dict[str, Any] = answer.json
        return found


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    made = Console(tmp_path_factory.mktemp("sql"))
    yield made
    made.site.close()


def test_an_answer_is_a_section_as_those_of_the_tools(console: Console) -> None:
    found = console.ask("SELECT name, duration_ps FROM events ORDER BY event LIMIT 2")

    section = found["section"]
    assert [field["name"] for field in section["fields"]] == ["name", "duration_ps"]
    assert section["fields"][1]["unit"] == "ps"
    assert section["columns"]["name"] == ["train", "IteratorGetNext"]
    assert (section["row_count"], found["more"], found["warnings"]) == (2, False, [])
    assert found["elapsed_ms"] > 0


def test_rows_are_limited_and_it_is_said(console: Console) -> None:
    found = console.ask("SELECT * FROM range(20000)")
    assert found["section"]["row_count"] == 10_000
    assert found["more"]
    assert found["warnings"] == ["only the first 10,000 rows of the answer"]
    assert console.ask("SELECT * FROM range(9)", rows=3)["section"]["row_count"] == 3


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM kernel", "line 1, column 15"),
        ("COPY (SELECT 1) TO 'x'", "not allowed"),
        ("SELECT * FROM read_text('/etc/passwd')", "cannot reach files"),
        ("SELECT repeat('x', 40000000) AS long", "larger than 32 MiB"),
    ],
)
def test_a_wrong_question_is_refused_with_its_reason(console: Console, query: str, said: str) -> None:
    found = console.ask(query, status=400)

    assert said in found["error"]
    assert found["hint"]


def test_what_is_no_question_is_refused(console: Console) -> None:
    headers = {"X-Stepscope": "1"}
    assert console.client.post(console.root, json={"query": 1}, headers=headers).status_code == 400
    assert console.client.post(console.root, data=b"{", headers=headers).status_code == 400
    assert console.client.post(console.root, json={"query": "SELECT 1"}).status_code == 403
    assert console.ask("SELECT 1", status=400, rows=0)["error"].startswith("rows")
    assert "no session" in console.ask("SELECT 1", status=404, attach={"x": "nowhere"})["error"]


def test_the_schema_lists_tables_functions_and_limits(console: Console) -> None:
    found = console.client.get(f"{console.root}/schema").json

    tables = {table["name"]: table for table in found["tables"]}
    assert tables["events"]["columns"][0]["name"] == "event"
    assert tables["op_stats"]["tool"] == "op-stats"
    assert "nested_under(pattern)" in [each["call"] for each in found["functions"]]
    assert found["limits"] == {"memory_bytes": 2 << 30, "seconds": 30.0, "rows": 10_000, "answer_bytes": 32 << 20}


def test_somebody_elses_question_goes_on_and_one_too_many_is_told_when_to_come_again(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str | None, str]] = []

    class Full:
        limits = Limits()

        def ask(self, *_: object) -> None:
            raise BusyError.for_seconds(12, "there are 4 questions being answered")

        def stop(self, person: str | None, question: str) -> int:
            seen.append((person, question))
            return 1

    monkeypatch.setattr(console.site, "asker", Full)
    monkeypatch.setattr("stepscope.web.api_sql.visitor_of", lambda _: Visitor("Ana", Rights.SEE, "10.0.0.7", "token"))

    answer = console.client.post(console.root, json={"query": "SELECT 1"}, headers={"X-Stepscope": "1"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "12")
    console.client.delete(f"{console.root}?id=q1", headers={"X-Stepscope": "1"})
    monkeypatch.setattr(
        "stepscope.web.api_sql.visitor_of", lambda _: Visitor("Ops", Rights.CAPTURE, "10.0.0.8", "other")
    )
    console.client.delete(f"{console.root}?id=q1", headers={"X-Stepscope": "1"})
    console.client.delete(console.root, headers={"X-Stepscope": "1"})
    assert seen == [("token 10.0.0.7", "q1"), (None, "q1"), ("other 10.0.0.8", "")]
