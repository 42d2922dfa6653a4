"""The model: the string table, the tables' declarations, the stats of a trace, and the builder."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.model import (
    TABLES,
    EventKind,
    Events,
    HostTrace,
    LineKind,
    PlaneKind,
    Stats,
    StatTag,
    Strings,
    TraceBuilder,
    Trait,
    arrays,
)
from stepscope.model.arrays import (
    count_below,
    distinct,
    median,
    percentiles,
    places_of,
    union,
    used_rows,
)

K = EventKind

# -- strings -----------------------------------------------------------------------------------------------------


def strings(*texts: str | bytes) -> Strings:
    return Strings.build([b"", *(text.encode() if isinstance(text, str) else text for text in texts)])


def test_rows_are_texts_and_row_0_is_the_empty_one() -> None:
    table = strings("ab", "ü", "abc")

    assert len(table) == 4
    assert list(table) == ["", "ab", "ü", "abc"]
    assert [table.raw(row) for row in range(4)] == [b"", b"ab", b"\xc3\xbc", b"abc"]


def test_bytes_that_are_no_text_are_shown_and_kept() -> None:
    table = strings(b"a\xff\x00b")

    assert table[1] == "a\ufffd\x00b"
    assert table.raw(1) == b"a\xff\x00b"


FINDS = [
    ("", 0), ("ab", 1), ("ba", 2), ("abc", 3), (b"abc", 3), ("ü", 4), (b"\xff", 5),
    ("a", -1), ("abx", -1), ("xbc", -1), ("axc", -1), ("abcd", -1),
]  # fmt: skip


@pytest.mark.parametrize(("text", "row"), FINDS)
def test_find(text: str | bytes, row: int) -> None:
    assert strings("ab", "ba", "abc", "ü", b"\xff").find(text) == row


@settings(deadline=None)
@given(st.sets(st.binary(max_size=5)).map(sorted), st.binary(max_size=5))
def test_find_is_the_inverse_of_raw(texts: list[bytes], other: bytes) -> None:
    rows = [b"", *(text for text in texts if text)]
    table = Strings.build(rows)

    assert [table.find(table.raw(row)) for row in range(len(table))] == list(range(len(rows)))
    assert table.find(other) == (rows.index(other) if other in rows else -1)


@pytest.mark.parametrize("rows", [[], [b"ab"]])
def test_a_table_without_the_empty_string_is_refused(rows: list[bytes]) -> None:
    with pytest.raises(ValueError, match="row 0"):
        Strings.build(rows)


# -- tables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_declared_with_type_unit_and_meaning(table: type[Any]) -> None:
    declared = {column.name for column in table.columns()}

    assert declared == {field.name for field in fields(table)} - {"offsets"}
    assert all(column.dtype.itemsize and column.unit and column.doc for column in table.columns())


def events(**columns: Any) -> Events:
    """Two events, with some columns replaced."""
    whole = {column.name: np.zeros(2, column.dtype) for column in Events.columns()}
    return Events(**whole | columns)


WRONG_COLUMNS = [
    ({"type": np.zeros(2, np.int64)}, r"Events\.type: expected int32 of shape \(2,\), got int64 of shape \(2,\)"),
    ({"kind": np.zeros(3, np.uint8)}, r"Events\.kind: expected uint8 of shape \(2,\), got uint8 of shape \(3,\)"),
    ({"line": np.zeros((2, 1), np.int32)}, r"Events\.line: .* got int32 of shape \(2, 1\)"),
]


@pytest.mark.parametrize(("columns", "message"), WRONG_COLUMNS)
def test_a_column_that_is_not_as_declared_is_refused(columns: dict[str, Any], message: str) -> None:
    events().check()
    with pytest.raises(ValueError, match=message):
        events(**columns).check()


# -- a trace -----------------------------------------------------------------------------------------------------


def small() -> TraceBuilder:
    """Two threads and a stream.

    python    | train..............  |
    python    |   load..             |
    loader    |         load..       |
    Stream #1 |             kernel.. |
    """
    builder = TraceBuilder("vm")
    host = builder.plane("/host:CPU", PlaneKind.HOST)
    python = builder.line(host, "python", 7)
    python.event("load", 200, 400, stats={"id": 5, "file": "a"})
    python.event("train", 0, 1_900, K.STEP_MARK, {"step_num": 3})
    builder.line(host, "loader", 8).event("load", 800, 400, K.ITERATOR, {"id": (1 << 63) + 1})
    gpu = builder.plane("/device:GPU:1", PlaneKind.GPU, 1, {"core_count": 80, "clock_rate": 1.5})
    stream = builder.line(gpu, "Stream #1", 1, LineKind.STREAM)
    stream.event("load", 1_200, 600, K.KERNEL, traits=Trait.COMPUTES_16BIT, display_name="shown")
    return builder


def broken(**changes: Any) -> HostTrace:
    return replace(small().build(), **changes)


def test_a_link_to_a_row_that_does_not_exist_is_refused() -> None:
    trace = small().build()
    types = replace(trace.events, type=trace.events.type + np.int32(1))
    lines = replace(trace.events, line=trace.events.line - np.int32(1))
    names = replace(trace.event_types, name=trace.event_types.name + np.int32(100))

    with pytest.raises(ValueError, match=r"events\.type refers to rows outside 0\.\.2"):
        broken(events=types).check()
    with pytest.raises(ValueError, match=r"events\.line refers to rows outside 0\.\.2"):
        broken(events=lines).check()
    with pytest.raises(ValueError, match=r"event_types\.name refers to rows outside"):
        broken(event_types=names).check()


def test_stats_that_belong_to_other_owners_are_refused() -> None:
    with pytest.raises(ValueError, match="stats of 4 owners have 3 offsets"):
        broken(event_stats=Stats.empty(2)).check()


def test_names_places_and_extent() -> None:
    trace = small().build()

    assert [trace.name_of(row) for row in range(4)] == ["train", "load", "load", "load"]
    assert [trace.strings[row] for row in trace.event_names()] == ["train", "load", "load", "load"]
    assert [trace.plane_name(row) for row in range(2)] == ["/host:CPU", "/device:GPU:1"]
    assert trace.lines_of(LineKind.STREAM).tolist() == [2]
    assert trace.lines_of(LineKind.THREAD, LineKind.STREAM).tolist() == [0, 1, 2]
    assert trace.device_planes() == [1]
    assert trace.span_ps() == (0, 1_900)
    assert TraceBuilder("vm").build().span_ps() == (0, 0)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("tf_compute/17", "tf_compute/17"),
        ("tf_compute/-1927060610", "tf_compute/2367906686"),
        ("py_xla_execute/-4106831565636175816", "py_xla_execute/14339912508073375800"),
        ("thread -549452224 (python)", "thread 3745515072 (python)"),
        ("a-13/b", "a-13/b"),
        ("thread -99999999999999999999", "thread -99999999999999999999"),
    ],
)
def test_a_threads_number_has_no_sign_on_its_label(name: str, label: str) -> None:
    builder = TraceBuilder("host")
    builder.line(builder.plane("/host:CPU"), name).event("x", 0, 1)
    trace = builder.build()

    assert (trace.line_name(0), trace.line_label(0)) == (name, label)


def test_stats_of_one_plane_and_of_one_event() -> None:
    trace = small().build()

    assert trace.stats_of_plane(1) == {"core_count": 80, "clock_rate": 1.5}
    assert trace.stats_of_plane(0) == {}
    assert trace.stats_of_event(1) == {"id": 5, "file": "a"}
    assert trace.stats_of_event(3) == {}


def test_a_kind_counts_as_a_plain_integer_and_leaves_columns_narrow() -> None:
    column = np.array([0, 2, 1, 2], np.uint8)

    assert (column == K.OP).tolist() == (column == K.OP).tolist() == [False, True, False, True]
    assert (column >= K.STEP_MARK).tolist() == [False, True, True, True]
    assert np.add(column, K.OP).dtype == np.uint8
    assert np.maximum(column, K.STEP_MARK, out=column).tolist() == [1, 2, 1, 2]


def test_a_stat_as_a_dense_column() -> None:
    trace = small().build()

    assert trace.stat_ints(["id"]).tolist() == [-1, 5, 1 - (1 << 63), -1]
    assert trace.stat_ints(["id"], missing=0).tolist() == [0, 5, 1 - (1 << 63), 0]
    assert [trace.strings[row] if row >= 0 else None for row in trace.stat_strings(["file"])] == [None, "a", None, None]
    assert np.isnan(trace.stat_doubles(["id"])).all()  # it is no double
    assert trace.stat_ints(["file"]).tolist() == [-1] * 4  # and that is no integer
    assert trace.stat_ints(["not there"]).tolist() == [-1] * 4


def test_a_dense_column_of_very_many_stats() -> None:
    counts = np.random.default_rng(0).integers(0, 4, 40_000)
    owner = np.repeat(np.arange(40_000), counts)
    builder = TraceBuilder("vm")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    line.event("a", 0, 1, stats={"id": 1})
    trace = builder.build()
    name = trace.strings.find("id")
    tag = np.full(len(owner), StatTag.INT, np.uint8)
    stats = Stats(np.full(len(owner), name, np.int32), tag, owner + 7, np.append(0, np.cumsum(counts)))
    events = Events(**{each.name: np.repeat(getattr(trace.events, each.name), 40_000) for each in fields(Events)})

    column = replace(trace, events=events, event_stats=stats).stat_ints(["id"])

    assert column.tolist() == [event + 7 if counts[event] else -1 for event in range(40_000)]


def test_of_several_spellings_the_first_wins_event_by_event() -> None:
    builder = TraceBuilder("vm")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    line.event("a", 0, 1, stats={"old": 1, "new": 2})
    line.event("b", 1, 1, stats={"old": 3})
    line.event("c", 2, 1, stats={"new": 4})
    line.event("d", 3, 1)
    trace = builder.build()

    assert trace.stat_ints(["new", "old"]).tolist() == [2, 3, 4, -1]
    assert trace.stat_ints(["old", "new"]).tolist() == [1, 3, 4, -1]


@pytest.mark.parametrize("others", [0, 1000], ids=["most-events", "few-events"])
def test_a_stat_of_some_events_is_that_of_all_at_their_places(others: int) -> None:
    builder = TraceBuilder("vm")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    line.event("a", 0, 1, stats={"old": 1, "new": 2, "text": "x"})
    line.event("b", 1, 1, stats={"old": 3, "size": 0.5})
    line.event("c", 2, 1, stats={"new": 4, "text": "y"})
    line.event("d", 3, 1)
    for at in range(others):  # so that few of the events are asked for
        line.event("e", 4 + at, 1, stats={"old": at, "text": "x"})
    trace = builder.build()
    trace = replace(trace, type_stats=_one_stat(trace, int(trace.events.type[3]), "new", 99))
    rows = np.array([3, 2, 0, 2, 1])

    assert trace.stat_ints(["new", "old"], rows=rows).tolist() == [99, 4, 2, 4, 3]
    assert trace.stat_ints(["old"], 7, rows=rows).tolist() == [7, 7, 1, 7, 3]
    assert [trace.strings[row] for row in trace.stat_strings(["text"], rows=rows)] == ["", "y", "x", "y", ""]
    assert np.nan_to_num(trace.stat_doubles(["size"], rows=rows)).tolist() == [0, 0, 0, 0, 0.5]
    assert trace.stat_ints(["not there"], rows=rows).tolist() == [-1] * 5
    assert trace.stat_ints(["old"], rows=rows[:0]).tolist() == []


def _one_stat(trace: HostTrace, owner: int, name: str, value: int) -> Stats:
    return Stats(
        name=np.array([trace.strings.find(name)], np.int32),
        tag=np.array([StatTag.INT], np.uint8),
        value=np.array([value], np.int64),
        offsets=np.searchsorted([owner], np.arange(len(trace.event_types) + 1)),
    )


def test_an_events_own_stat_wins_over_its_types() -> None:
    trace = small().build()
    trace = replace(trace, type_stats=_one_stat(trace, int(trace.events.type[1]), "id", 99))

    assert trace.stat_ints(["id"]).tolist() == [-1, 5, 1 - (1 << 63), -1]
    assert trace.stats_of_event(1)["id"] == 5
    assert trace.stat_ints(["id"], missing=0)[0] == 0


# -- the builder -------------------------------------------------------------------------------------------------


def test_events_are_sorted_in_their_lines_the_longer_first() -> None:
    builder = TraceBuilder("vm")
    line = builder.line(builder.plane("p"), "l")
    for name, start, duration in (("c", 5, 1), ("b", 5, 9), ("a", -3, 1), ("d", 5, 1)):
        line.event(name, start, duration, stats={"from": name})
    trace = builder.build()

    assert [trace.name_of(row) for row in range(4)] == ["a", "b", "c", "d"]
    assert trace.events.start_ps.tolist() == [-3, 5, 5, 5]
    assert trace.events.duration_ps.tolist() == [1, 9, 1, 1]
    assert [trace.stats_of_event(row)["from"] for row in range(4)] == ["a", "b", "c", "d"]


def test_lines_of_one_plane_become_neighbours() -> None:
    builder = TraceBuilder("vm")
    first, second = builder.plane("first"), builder.plane("second")
    for plane, name in ((second, "x"), (first, "a"), (second, "y"), (first, "b")):
        builder.line(plane, name).event(f"on {name}", 0, 1)
    trace = builder.build()

    assert [trace.strings[row] for row in trace.lines.name] == ["a", "b", "x", "y"]
    assert trace.lines.plane.tolist() == [0, 0, 1, 1]
    assert (trace.lines.event_begin.tolist(), trace.lines.event_end.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 4])
    assert [trace.name_of(row) for row in range(4)] == ["on a", "on b", "on x", "on y"]
    assert trace.events.line.tolist() == [0, 1, 2, 3]


def test_a_type_is_a_name_on_a_plane() -> None:
    trace = small().build()
    types = trace.event_types
    names = [
        (trace.strings[name], trace.strings[shown]) for name, shown in zip(types.name, types.display_name, strict=True)
    ]

    assert names == [("load", ""), ("train", ""), ("load", "shown")]
    assert types.plane.tolist() == [0, 0, 1]
    assert len(set(types.metadata_id.tolist())) == 3


VALUES = [
    (True, StatTag.INT, 1),
    (-(1 << 63), StatTag.INT, -(1 << 63)),
    ((1 << 63) - 1, StatTag.INT, (1 << 63) - 1),
    (1 << 63, StatTag.UINT, 1 << 63),
    ((1 << 64) - 1, StatTag.UINT, (1 << 64) - 1),
    (1 << 64, StatTag.STRING, "18446744073709551616"),
    (-(1 << 63) - 1, StatTag.STRING, "-9223372036854775809"),
    (np.int32(-4), StatTag.INT, -4),
    (0.1, StatTag.DOUBLE, 0.1),
    (np.float32(0.5), StatTag.DOUBLE, 0.5),
    (float("inf"), StatTag.DOUBLE, float("inf")),
    ("text", StatTag.STRING, "text"),
    ("", StatTag.STRING, ""),
    ("lone \udcff surrogate", StatTag.STRING, "lone \ufffd surrogate"),
    ("half \ud800 of a pair", StatTag.STRING, "half ? of a pair"),
    (b"\x00\xff", StatTag.BYTES, b"\x00\xff"),
]


@pytest.mark.parametrize(("value", "tag", "expected"), VALUES)
def test_values_of_stats(value: Any, tag: StatTag, expected: Any) -> None:
    builder = TraceBuilder("vm")
    builder.plane("p", stats={"it": value})
    trace = builder.build()

    assert trace.plane_stats.tag.tolist() == [tag]
    assert trace.stats_of_plane(0) == {"it": expected}


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, object()])
def test_a_value_that_no_stat_can_hold_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="a stat holds int, float, str or bytes, not "):
        TraceBuilder("vm").plane("p", stats={"it": value})


def test_of_several_threads_one_derives_and_the_others_wait():
    trace = TraceBuilder("host").build()
    calls: list[int] = []
    gate = threading.Barrier(4)

    def derive(_: int) -> int:
        gate.wait()
        return trace.derived("key", lambda host: calls.append(1) or host.derived("inner", lambda _: len(calls)))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(derive, range(4))) == [1, 1, 1, 1]
    assert calls == [1]


# -- piece by piece ------------------------------------------------------------------------------------------------


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_BLOCK", 3)


def trace_with_numbers() -> HostTrace:
    """Events with a number of their own, one of their type, in two spellings, or none."""
    builder = TraceBuilder("host")
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    line = builder.line(plane, "thread", LineKind.THREAD)
    for at in range(10):
        stats = {"group_id": at - 2} if at % 3 else {"Group": at} if at % 2 else {}
        line.event(f"op {at % 2}", at, 1, kind=K.OP, stats=stats)
    return builder.build()


@pytest.mark.usefixtures("small_pieces")
def test_a_column_of_numbers_piece_by_piece_is_the_whole_column() -> None:
    trace, names = trace_with_numbers(), ("group_id", "Group")
    pieces = list(trace.stat_int_blocks(names, missing=-7))

    assert [first for first, _ in pieces] == [0, 3, 6, 9]
    assert np.concatenate([piece for _, piece in pieces]).tolist() == trace.stat_ints(names, missing=-7).tolist()


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("least", [-3, 0, 4, 99])
def test_events_with_a_number_that_is_large_enough(least: int) -> None:
    trace, names = trace_with_numbers(), ("group_id", "Group")
    rows, values = trace.events_with_int(names, least)
    whole = trace.stat_ints(names, missing=least - 1)

    assert rows.tolist() == np.flatnonzero(whole >= least).tolist()
    assert values.tolist() == whole[whole >= least].tolist()


def test_events_with_a_number_that_no_event_has() -> None:
    rows, values = trace_with_numbers().events_with_int(("other",))

    assert rows.tolist() == values.tolist() == []


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("table", [np.bool_, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("index", [np.uint8, np.int32, np.int64])
def test_looking_up_is_indexing(table: type[np.generic], index: type[np.generic]) -> None:
    entries = (np.arange(256) % 5).astype(table)
    places = np.array([255, 0, 3, 3, 1, 200, 7], index)

    for each in (places, places[::2]):
        found = arrays.look_up(entries, each)
        assert found.dtype == entries.dtype
        assert found.tolist() == entries[each].tolist()


def test_an_empty_trace_is_a_trace() -> None:
    trace = TraceBuilder("vm").build()

    trace.check()
    assert (len(trace.events), len(trace.strings), trace.device_planes()) == (0, 1, [])
    assert trace.stat_ints(["id"]).tolist() == []


# -- what arrays have in common is what numpy says, to the last bit ---------------------------------------------------


_numbers = st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=40)
_floats = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=40)


@given(_numbers, _floats)
def test_medians_are_those_of_numpy(numbers: list[int], floats: list[float]) -> None:
    assert median(numbers) == float(np.median(numbers))
    assert median(np.array(floats)) == float(np.median(floats))


@given(_numbers, _floats, st.lists(st.integers(0, 100), min_size=1, max_size=4))
def test_percentiles_are_those_of_numpy(numbers: list[int], floats: list[float], percents: list[int]) -> None:
    table = np.array(floats + floats[::-1]).reshape(-1, 2)

    assert percentiles(np.array(numbers), percents).tolist() == np.percentile(numbers, percents).tolist()
    assert percentiles(table, percents).tolist() == np.percentile(table, percents, axis=0).tolist()


@given(st.lists(st.integers(-5, 5), max_size=40))
def test_different_values_ascend(numbers: list[int]) -> None:
    assert distinct(np.array(numbers, np.int64)).tolist() == sorted(set(numbers))
    assert union(np.array(numbers, np.int64), np.array([4, 4])).tolist() == sorted({*numbers, 4})


@given(st.lists(st.integers(0, 9), max_size=40))
def test_used_rows_ascend_for_an_index_of_any_type(rows: list[int]) -> None:
    for index in (np.array(rows, np.int32), np.array(rows, np.int64), np.array(rows, np.int32)[::2]):
        assert used_rows(index, 10).tolist() == np.unique(index).tolist()


@given(st.lists(st.integers(-9, 9), max_size=40), st.lists(st.integers(-10, 10), max_size=40), st.booleans())
def test_values_below_limits_are_as_many_as_numpy_finds(values: list[int], limits: list[int], at_it: bool) -> None:
    ascending, asked = np.array(sorted(values), np.int64), np.array(limits, np.int64)
    found = count_below(ascending, asked, with_limit=at_it)
    assert found.tolist() == np.searchsorted(ascending, asked, side="right" if at_it else "left").tolist()


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(-1, 10)))
def test_the_first_of_equal_values_is_the_place_of_one(values: list[int], wanted: list[int]) -> None:
    for column in (np.array(values, np.int64), np.array(values, np.int32)):
        found = places_of(column, np.array(wanted, np.int64))
        assert found.tolist() == [values.index(each) if each in values else -1 for each in wanted]


def test_an_index_outside_of_the_table_is_refused() -> None:
    with pytest.raises(IndexError):
        used_rows(np.array([0, 10], np.int32), 10)
