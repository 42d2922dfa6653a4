"""The views: what is in them, and that they are the columns of the trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from draw import MS, draw
from sql_sessions import Drawn, open_database, training

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder
from stepscope.sql.all_views import VIEWS
from stepscope.sql.event_views import EVENTS
from stepscope.sql.names import VIEW_NAMES
from stepscope.sql.stats_view import NAME as STATS

GIB = 1 << 30


def ask(trace: HostTrace, query: str) -> list[dict[str, Any]]:
    return open_database({"main": Drawn(host=trace)}).ask(query).table.to_pylist()


def test_events_are_numbered_named_and_timed() -> None:
    found = ask(training(), "SELECT event, host, name, kind, start_ps, duration_ps, end_ps, step FROM events LIMIT 2")

    assert found == [
        {
            "event": 0, "host": "host", "name": "train", "kind": "step_mark", "start_ps": 0, "duration_ps": 14 * MS,
            "end_ps": 14 * MS, "step": 0,
        },
        {
            "event": 1, "host": "host", "name": "IteratorGetNext", "kind": "input_wait", "start_ps": MS,
            "duration_ps": 2 * MS, "end_ps": 3 * MS, "step": 0,
        },
    ]  # fmt: skip


def test_numbers_share_the_memory_of_the_trace() -> None:
    trace = training()

    batch = EVENTS.read(trace, ["start_ps", "name"])

    start, name = batch.columns
    assert start.buffers()[1].address == trace.events.start_ps.ctypes.data
    assert name.indices.buffers()[1].address == trace.events.type.ctypes.data


def test_self_time_leaves_out_what_is_directly_inside() -> None:
    trace = draw("""
        host main | A-----
        host main |  b--
        host main |   c
    """)

    assert ask(trace, "SELECT name, ms(self_ps) AS ms FROM events ORDER BY event") == [
        {"name": "forward", "ms": 3.0}, {"name": "b", "ms": 2.0}, {"name": "c", "ms": 1.0},
    ]  # fmt: skip


def test_kernels_have_their_op_and_their_launch() -> None:
    found = ask(
        training(),
        "SELECT k.name, k.kind, k.device, k.stream, k.op, l.name AS launched_by, k.step "
        "FROM kernels k JOIN events l ON l.event = k.launch WHERE k.kind = 'kernel'",
    )

    assert found == [
        {
            "name": "kernel", "kind": "kernel", "device": "GPU:0", "stream": "s", "op": op, "launched_by": "launch",
            "step": step,
        }
        for step, op in enumerate([found[0]["op"], found[1]["op"]])
    ]  # fmt: skip


def test_launches_name_what_they_started_and_how_late() -> None:
    found = ask(training(), "SELECT name, thread, pieces, delay_ps / 1e9 AS delay_ms FROM launches ORDER BY event")

    assert [(row["name"], row["thread"]) for row in found] == [("launch", "main")] * 4
    assert [row["pieces"] for row in found] == [1, 2, 1, 2]
    assert all(row["delay_ms"] >= 0 for row in found)


def test_ops_add_up_to_what_op_stats_says() -> None:
    trace = training()
    listed = ask(trace, "SELECT side, type, name, total_self_us AS us FROM op_stats WHERE name <> 'IDLE' ORDER BY ALL")

    found = ask(trace, "SELECT side, type, name, us(sum(self_ps)) AS us FROM ops GROUP BY ALL ORDER BY ALL")

    assert found == listed
    assert {row["side"] for row in found} == {"host", "device"}


def test_steps_are_those_that_tools_find() -> None:
    trace = training()

    found = ask(trace, "SELECT step, start_ps, end_ps, complete FROM steps ORDER BY step")

    steps = steps_of(trace)
    columns = steps.number, steps.start_ps, steps.end_ps, steps.complete
    assert [tuple(row.values()) for row in found] == [*zip(*(column.tolist() for column in columns), strict=True)]


def test_causes_of_a_step_add_up_to_its_time() -> None:
    found = ask(training(), "SELECT step, sum(percent) AS percent FROM causes GROUP BY step")

    assert [round(row["percent"], 6) for row in found] == [100.0] * len(found)
    assert found


def test_memory_and_counters_of_a_program_that_allocates() -> None:
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    facts = {"Device Type": 1, "Device Id": 0, "Addr": 64, "Total Allocated": GIB}
    line.event("[memory]", 5, 0, EventKind.ALLOCATION, {"Bytes": 512, **facts})

    found = ask(builder.build(), "SELECT is_allocation, time_ps, memory IS NOT NULL AS named FROM memory")

    assert found == [{"is_allocation": True, "time_ps": 5, "named": True}]


def test_stats_are_columns_of_their_own_type() -> None:
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    line.event("a", 0, 1, stats={"number": -5, "share": 0.5, "text": "x", "name": "taken", "mixed": 1})
    line.event("b", 1, 1, stats={"mixed": "word"})
    trace = builder.build()

    found = ask(trace, "SELECT event, number, share, text, stat_name, mixed_int, mixed_text FROM stats ORDER BY event")

    assert found == [
        {
            "event": 0, "number": -5, "share": 0.5, "text": "x", "stat_name": "taken", "mixed_int": 1,
            "mixed_text": None,
        },
        {
            "event": 1, "number": None, "share": None, "text": None, "stat_name": None, "mixed_int": None,
            "mixed_text": "word",
        },
    ]  # fmt: skip


def test_row_numbers_are_unique_in_a_session_of_several_hosts() -> None:
    session = Drawn(a=training("a"), b=training("b"))

    found = open_database({"main": session}).ask(
        "SELECT e.host, count(*) AS n, count(DISTINCT e.event) AS different, "
        "count(*) FILTER (WHERE p.host <> e.host) AS strange FROM events e JOIN events p ON e.parent = p.event "
        "GROUP BY e.host ORDER BY e.host"
    )

    rows = found.table.to_pylist()
    assert [row["host"] for row in rows] == ["a", "b"]
    assert all(row["n"] == row["different"] > 0 and row["strange"] == 0 for row in rows)
    assert open_database({"main": session}).ask("SELECT count(DISTINCT event) AS n FROM events").table.to_pylist() == [
        {"n": 2 * len(training().events)}
    ]


def test_hosts_without_devices_steps_memory_or_counters_have_empty_views() -> None:
    trace = draw("host main | a--")

    for view in VIEWS:
        rows = ask(trace, f"SELECT * FROM {view.name}")
        assert rows if view.name in ("events", "ops", "steps", "tracks", "strings", "hosts", "causes") else rows == []


def test_an_empty_trace_has_every_view() -> None:
    for view in VIEWS:
        rows = ask(TraceBuilder("host").build(), f"SELECT * FROM {view.name}")
        assert len(rows) == (1 if view.name in ("hosts", "strings") else 0)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_columns_are_of_their_declared_type_and_length(view) -> None:
    trace = training()

    batch = view.read(trace, [column.name for column in view.columns])

    assert batch.schema.types == [column.dtype for column in view.columns]
    assert batch.num_rows == view.length(trace, view.prepare(trace))
    assert "host" in batch.schema.names
    assert all(column.doc and not column.doc[0].isupper() for column in view.columns)


def test_the_light_list_of_names_is_that_of_the_views() -> None:
    assert set(VIEW_NAMES) == {view.name for view in VIEWS} | {STATS}


def test_texts_that_are_no_utf8_are_shown_with_a_replacement() -> None:
    builder = TraceBuilder("host")
    builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main").event("caf\udce9", 0, 1)

    assert ask(builder.build(), "SELECT name FROM events") == [{"name": "caf\N{REPLACEMENT CHARACTER}"}]


def test_filters_reach_columns_that_are_not_shown() -> None:
    trace = training()
    expected = int(np.count_nonzero(trace.events.kind == EventKind.RUNTIME_CALL))

    assert ask(trace, "SELECT count(*) AS n FROM events WHERE kind = 'runtime_call' AND duration_ps > 0") == [
        {"n": expected}
    ]


def test_a_scan_makes_only_the_columns_that_a_query_reads(monkeypatch) -> None:
    made: list[list[str]] = []
    read = type(EVENTS).read

    def noting(self: Any, trace: HostTrace, names: list[str], place: int = 0) -> pa.RecordBatch:
        made.append(names)
        return read(self, trace, names, place)

    monkeypatch.setattr(type(EVENTS), "read", noting)

    ask(training(), "SELECT kind, sum(duration_ps) FROM events GROUP BY kind")

    assert made == [["kind", "duration_ps"]]
