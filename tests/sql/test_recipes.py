"""Every recipe of the documentation is asked, and has an answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sql_sessions import Drawn, open_database, rich_training

from stepscope.sql.database import Database

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sql.md"
RECIPES = re.findall(r"(?m)^(?P<title>[A-Z][^`]*?):\n\n```sql\n(?P<query>.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
SESSIONS = {"before": Drawn(host=rich_training()), "after": Drawn(host=rich_training())}


@pytest.fixture(scope="module")
def database() -> Database:
    return open_database(SESSIONS)


def test_there_are_twenty_recipes() -> None:
    assert len(RECIPES) >= 20
    assert len(RECIPES) == PAGE.read_text("utf-8").count("```sql")


@pytest.mark.parametrize(("title", "query"), RECIPES, ids=[title[:40] for title, _ in RECIPES])
def test_a_recipe_has_an_answer(database: Database, title: str, query: str) -> None:
    found = database.ask(query)

    assert found.table.num_rows > 0
    assert any(column.null_count < len(column) for column in found.table.columns)
