"""Asking: what is refused, what is limited, what a mistake is said, and several sessions at once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from draw import draw
from sql_sessions import Drawn, open_database, training

from stepscope.analysis.registry import TOOLS
from stepscope.errors import UnreadableError, UsageError
from stepscope.report.export import to_csv, to_json, to_parquet
from stepscope.sql.answer import schema_report
from stepscope.sql.database import Database
from stepscope.sql.tool_tables import declared_tables

SESSION = Drawn(host=training())


@pytest.fixture(scope="module")
def database() -> Database:
    return open_database({"main": SESSION}, memory_bytes=100 << 20)


def rows(database: Database, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = database.ask(query).table.to_pylist()
    return found


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO steps VALUES (1)",
        "DELETE FROM events",
        "DROP VIEW events",
        "COPY (SELECT 1) TO 'x.csv'",
        "ATTACH 'x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '64GB'",
        "RESET memory_limit",
        "PRAGMA enable_profiling",
        "CALL pragma_version()",
        "EXPORT DATABASE 'x'",
        "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1",
        "EXPLAIN/**/CREATE TABLE x AS SELECT 1",
        "PREPARE x AS SELECT 1",
        "BEGIN",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "FROM read_parquet('http://localhost/x.parquet')",
    ],
)
def test_whatever_does_more_than_read_the_profile_is_refused(database: Database, query: str) -> None:
    with pytest.raises(UsageError, match=r"\[read-only\].*SELECT"):
        database.ask(query)


@pytest.mark.parametrize("query", ["FROM '/etc/passwd'", "FROM SESSION", "FROM rows", "SELECT getenv('HOME')"])
def test_neither_files_nor_variables_of_the_program_are_tables(database: Database, query: str) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        database.ask(query)


def test_nothing_is_left_of_a_query_that_was_refused(database: Database) -> None:
    for query in ("CREATE TABLE left_over AS SELECT 1", "SELECT 1; SELECT 2", ""):
        with pytest.raises(UsageError):
            database.ask(query)

    assert rows(database, "SELECT count(*) AS n FROM duckdb_tables()") == [{"n": 0}]


@pytest.mark.parametrize(
    "query",
    [
        "FROM events LIMIT 1",
        "WITH a AS (SELECT 1 AS x) SELECT * FROM a",
        "DESCRIBE kernels",
        "SUMMARIZE steps",
        "SHOW TABLES",
        "EXPLAIN SELECT * FROM events",
        "EXPLAIN ANALYZE SELECT count(*) FROM events",
        "EXPLAIN/**/SELECT 1",
        "/* a */ EXPLAIN -- b\n SELECT 1",
        "EXPLAIN (FORMAT json) SELECT 1",
        "PIVOT events ON kind USING count(*)",
        "VALUES (1), (2)",
        "SELECT 1;",
    ],
)
def test_every_form_of_reading_is_answered(database: Database, query: str) -> None:
    assert database.ask(query).table.num_rows > 0


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_join_that_explodes_names_the_limit_of_memory(database: Database) -> None:
    query = "SELECT a.range FROM range(100000) a, range(100000) b ORDER BY a.range * b.range % 7919"

    with pytest.raises(UsageError, match=r"\[memory\] .*100 MiB.*ask for less"):
        database.ask(query)


def test_an_answer_with_more_rows_than_allowed_says_so(database: Database) -> None:
    found = database.ask("SELECT event FROM events ORDER BY event DESC", rows=2)

    assert found.table.num_rows == 2
    assert found.more
    assert found.warnings == ("only the first 2 rows of the answer",)
    assert not database.ask("SELECT 1", rows=1).more


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "place", "meant"),
    [
        ("SELECT durration_ps FROM events", "line 1, column 8 (durration_ps)", "duration_ps"),
        ("SELECT *\nFROM kernel", "line 2, column 6 (kernel)", "kernels"),
        ("SELECT *\nFROM op_stat", "line 2, column 6 (op_stat)", "op_stats"),
        ("SELECT * FROM idle_gap", "line 1, column 15 (idle_gap)", "idle_gaps"),
        ("SELECT selftime(1)", "line 1, column 8", "self_time"),
        ("SELECT 1 +", "line 1, column 10", ""),
        ("SELECT * FROM events WHERE kind = ", "line 1, column 33", ""),
    ],
)
def test_a_mistake_has_its_position_and_the_nearest_names(
    database: Database, query: str, place: str, meant: str
) -> None:
    with pytest.raises(UsageError) as caught:
        database.ask(query)

    problem = caught.value.problem
    assert place in problem.reason
    assert problem.code == "sql"
    assert meant in (problem.hint or "")


def test_the_position_is_right_in_a_long_line(database: Database) -> None:
    query = "SELECT " + "start_ps + " * 40 + "strat_ps FROM events"

    with pytest.raises(UsageError, match=f"column {query.index('strat_ps') + 1} "):
        database.ask(query)


def test_a_conversion_that_fails_is_no_bug(database: Database) -> None:
    with pytest.raises(UsageError, match="Could not convert string 'train'"):
        database.ask("SELECT name::INTEGER FROM events")


# -- sessions and hosts ------------------------------------------------------------------------------------------------


def test_several_sessions_are_asked_at_once() -> None:
    after = Drawn(host=draw("host main | a--"))
    both = open_database({"before": SESSION, "after": after})

    found = rows(both, "SELECT (SELECT count(*) FROM before.events) AS b, (SELECT count(*) FROM after.events) AS a")

    assert found == [{"b": len(training().events), "a": 1}]
    assert rows(both, "SELECT count(*) AS n FROM events") == [{"n": found[0]["b"]}]
    assert rows(both, "SELECT name FROM after.self_time('%')") == [{"name": "a"}]
    assert rows(both, "SELECT b.name FROM after.op_stats a RIGHT JOIN before.op_stats b USING (name) LIMIT 1")
    assert rows(both, "SELECT count(*) AS n FROM after.stats") == [{"n": 1}]


@pytest.mark.parametrize("name", ["my run", "temp", "1st", "x;DROP", "system"])
def test_a_session_has_a_name_that_sql_can_say(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a session"):
        open_database({name: SESSION})


def test_a_host_that_cannot_be_read_is_left_out_and_named() -> None:
    torn = Drawn(good=training("good"), bad=None)

    found = open_database({"main": torn}).ask("SELECT DISTINCT host FROM events")

    assert found.table.to_pylist() == [{"host": "good"}]
    assert found.partial
    assert any("bad: the file is torn" in warning for warning in found.warnings)


def test_the_only_host_that_cannot_be_read_is_an_error() -> None:
    torn = Drawn(bad=None)

    with pytest.raises(UnreadableError, match="the file is torn"):
        open_database({"main": torn}).ask("SELECT count(*) FROM events")


# -- tables of tools ---------------------------------------------------------------------------------------------------


def test_every_table_of_every_tool_can_be_asked(database: Database) -> None:
    listed = {table.tool for table in declared_tables()}

    for table in declared_tables():
        for name in table.names:
            found = database.ask(f"SELECT * FROM {name}").table
            assert found.column_names == [field.name for field in table.fields]
    assert listed == {tool.name for tool in TOOLS}


def test_a_tools_table_holds_what_the_tool_says(database: Database) -> None:
    report = SESSION.report("op-stats")

    assert rows(database, "SELECT name, occurrences FROM op_stats ORDER BY rank") == [
        {"name": row["name"], "occurrences": row["occurrences"]} for row in report.main_table().rows
    ]


def test_the_schema_lists_every_table_with_units() -> None:
    found = schema_report(("host",)).table.to_pylist()

    assert {"table": "events", "column": "duration_ps", "type": "BIGINT", "unit": "ps", "meaning": "how long"} in found
    assert {"op_stats", "steps_rows", "memory_profile_memories", "stats"} <= {line["table"] for line in found}


# -- macros ------------------------------------------------------------------------------------------------------------


def test_units_and_overlap(database: Database) -> None:
    assert rows(database, "SELECT us(5e6) AS us, ms(5e9) AS ms, seconds(5e12) AS s, overlap_ps(0, 10, 4, 20) AS o") == [
        {"us": 5.0, "ms": 5.0, "s": 5.0, "o": 6}
    ]
    assert rows(database, "SELECT overlap_ps(0, 1, 4, 5) AS o") == [{"o": 0}]


def test_events_inside_of_others_at_any_depth() -> None:
    session = Drawn(
        host=draw("""
        host main | A----- A--
        host main |  b---   d
        host main |   c-
        host two  |   x
    """)
    )

    found = rows(open_database({"main": session}), "SELECT name FROM nested_under('for%') ORDER BY event")

    assert [row["name"] for row in found] == ["b", "c", "d"]


def test_time_by_step(database: Database) -> None:
    assert rows(database, "SELECT step, calls, ms(total_ps) AS ms FROM by_step('IteratorGetNext')") == [
        {"step": 0, "calls": 1, "ms": 2.0},
        {"step": 1, "calls": 1, "ms": 2.0},
    ]


def test_busy_time_merges_what_overlaps_and_overlapped_measures_it() -> None:
    session = Drawn(
        host=draw("""
        gpu0 a | K---  K--
        gpu0 b |  K---
        gpu0 c |   N-----
    """)
    )
    database = open_database({"main": session})

    assert rows(
        database, "SELECT ms(start_ps - min(start_ps) OVER ()) AS at, ms(duration_ps) AS ms FROM busy('kernel')"
    ) == [
        {"at": 0.0, "ms": 5.0},
        {"at": 6.0, "ms": 3.0},
    ]
    assert rows(
        database, "SELECT device, ms(busy_ps) AS busy, ms(shared_ps) AS shared FROM overlapped('collective', 'kernel')"
    ) == [{"device": "GPU:0", "busy": 6.0, "shared": 5.0}]


# -- answers -----------------------------------------------------------------------------------------------------------


def test_an_answer_is_a_report_in_every_form(database: Database) -> None:
    found = database.ask("SELECT name, duration_ps, sum(self_ps) AS self_ps FROM events GROUP BY ALL ORDER BY ALL")

    body = found.to_dict()
    assert body["columns"] == [
        {"name": "name", "type": "str", "unit": ""},
        {"name": "duration_ps", "type": "int", "unit": "ps"},
        {"name": "self_ps", "type": "int", "unit": "ps"},
    ]
    assert len(body["rows"]) == found.table.num_rows
    assert b'"tool": "sql"' in to_json(found)
    assert to_csv(found).startswith(b"name,duration_ps,self_ps\n")
    assert to_parquet(found)[:4] == b"PAR1"
    assert "IteratorGetNext" in str(found)
    assert "<table" in found._repr_html_()
    assert found.to_arrow().schema.field("self_ps").metadata[b"unit"] == b"ps"


def test_values_of_every_type_can_be_shown(database: Database) -> None:
    query = (
        "SELECT [1, 2] AS list, {'a': 1} AS struct, 1.5::DECIMAL(5, 2) AS decimal, NULL AS nothing, "
        "10::HUGEINT AS huge, 1e30::HUGEINT AS huger, DATE '2026-01-02' AS day, "
        "INTERVAL 1 DAY AS interval, true AS yes, 3::UTINYINT AS small, 'nan'::DOUBLE AS nan, 1 AS twice, 2 AS twice"
    )

    found = database.ask(query)

    row = found.to_dict()["rows"][0]
    assert (row["decimal"], row["nothing"], row["huge"], row["small"], row["yes"]) == (1.5, None, 10, 3, True)
    assert (row["day"], row["list"], row["twice"], row["twice_2"]) == ("2026-01-02", "[1, 2]", 1, 2)
    assert to_json(found)
    assert to_csv(found)
    assert pa.types.is_int64(found.table.schema.field("huge").type)
