"""The XSpace writer: what it writes reads back as it was, elsewhere too, and names come first."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
import xspace_build as x
from xspace_build import Ref, Unsigned, event, event_name, line, plane, plane_stat, stat, stat_name

from stepscope.formats.xspace import schema
from stepscope.formats.xspace.reader import read
from stepscope.formats.xspace.writer import pieces, write
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, Stats, StatTag, Table, TraceBuilder

HOST = "/host:CPU"
FILES = (
    "corpus/jax-mi300x-attention", "corpus/jax-mi300x-conv", "corpus/tf-gpu-multi-worker", "corpus/tpu-inference",
    "captures/tf_convnet/slow", "captures/tf_file_per_record/slow", "captures/jax_unjitted_step/fixed",
)  # fmt: skip
TEXTS = {"name", "display_name"}


def meaning(trace: HostTrace) -> dict[str, Any]:
    """Everything that a trace tells, with texts instead of string rows, and each event's type instead of its row: the
    writer may split types, and number them anew."""
    tables = {
        "planes": trace.planes,
        "lines": trace.lines,
        "events": trace.events,
        "event_stats": trace.event_stats,
        "plane_stats": trace.plane_stats,
    }
    of_session = ("host", "start_unix_ns", "stop_unix_ns", "framework", "recorder_messages", "problems", "partial")
    told = {name: getattr(trace, name) for name in of_session} | {
        f"{name}.{column}": values for name, table in tables.items() for column, values in columns(trace, table).items()
    }
    types = type_meanings(trace)
    return told | {"events.type": [types[row] for row in told["events.type"]]}


def type_meanings(trace: HostTrace) -> list[tuple[Any, ...]]:
    """What each event type is: name, short name, plane, stats."""
    types, stats = columns(trace, trace.event_types), columns(trace, trace.type_stats)
    rows = list(zip(stats["name"], stats["tag"], stats["value"], strict=True))
    own = [rows[a:b] for a, b in pairwise(stats["offsets"])]
    return list(zip(types["name"], types["display_name"], types["plane"], own, strict=True))


def columns(trace: HostTrace, table: Table) -> dict[str, list[Any]]:
    texts = [trace.strings.raw(row) for row in range(len(trace.strings))]
    out: dict[str, list[Any]] = {}
    for field in fields(table):  # type: ignore[arg-type]
        values = getattr(table, field.name).tolist()
        out[field.name] = [texts[row] for row in values] if field.name in TEXTS else values
    if isinstance(table, Stats):
        tagged = zip(out["tag"], out["value"], strict=True)
        out["value"] = [texts[value] if tag >= StatTag.STRING else value for tag, value in tagged]
    return out


def same(trace: HostTrace, other: HostTrace) -> None:
    """Holds two traces against each other, column by column."""
    one, two = meaning(trace), meaning(other)
    assert one.keys() == two.keys()
    for name, expected in one.items():
        assert two[name] == expected, name


def again(trace: HostTrace) -> HostTrace:
    """The trace, written and read."""
    back = read(write(trace), "again.xplane.pb", "")
    back.check()
    return back


@pytest.fixture
def file(request: pytest.FixtureRequest) -> Path:
    """A real file by a name of `FILES`."""
    origin, _, name = request.param.partition("/")
    folder: Path = request.getfixturevalue("corpus" if origin == "corpus" else "bottleneck_captures")
    return next((folder / name).rglob("*.xplane.pb"))


# -- real files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, indirect=True)
def test_a_real_file_reads_back_as_it_was(file: Path) -> None:
    trace = read(file.read_bytes(), "", "")
    back = again(trace)

    same(trace, back)
    assert type_meanings(back) == type_meanings(trace)
    assert back.event_types.metadata_id.tolist() == trace.event_types.metadata_id.tolist()


def test_the_pieces_are_the_file(corpus: Path) -> None:
    trace = read(next((corpus / "jax-mi300x-conv").rglob("*.xplane.pb")).read_bytes(), "", "")

    assert b"".join(pieces(trace)) == write(trace)


OVERVIEWS = ("corpus/tf-gpu-multi-worker", "captures/tf_convnet/slow", "corpus/tpu-inference")


@pytest.mark.parametrize("file", OVERVIEWS, indirect=True)
def test_xprof_reads_our_file_as_it_reads_the_original(file: Path, tmp_path: Path) -> None:
    ours = tmp_path / file.name
    ours.write_bytes(write(read(file.read_bytes(), "", "")))

    assert oracle.overview([ours]) == oracle.overview([file])


# -- case by case ------------------------------------------------------------------------------------------------


def test_a_trace_of_our_own_tracer() -> None:
    builder = TraceBuilder("vm", 1_700_000_000_000_000_000, 1_700_000_001_000_000_000)
    cpu = builder.plane(HOST, PlaneKind.HOST)
    python = builder.line(cpu, "MainThread", 4711)
    python.event("train", 1_000, 5_000, EventKind.STEP_MARK, {"step_num": 0, "loss": 0.25})
    python.event("load", 2_000, 1_000, stats={"path": "a/b", "raw": b"\xff\x00", "id": (1 << 64) - 1, "n": -3})
    python.event("train", 9_000, 4_000, EventKind.STEP_MARK, {"step_num": 1})
    builder.line(cpu, "Thread-1", 4712, display_name="loader").event("load", 0, 300)
    builder.recorder_messages.append("3 events were dropped")
    trace = builder.build()
    back = again(trace)

    assert back.host == "vm"
    assert [back.name_of(row) for row in range(4)] == ["train", "load", "train", "load"]
    assert back.events.start_ps.tolist() == [1_000, 2_000, 9_000, 0]
    assert back.events.duration_ps.tolist() == [5_000, 1_000, 4_000, 300]
    assert back.events.kind.tolist()[::2] == [EventKind.STEP_MARK, EventKind.STEP_MARK]
    assert [back.stats_of_event(row) for row in range(4)] == [
        {"step_num": 0, "loss": 0.25},
        {"path": "a/b", "raw": b"\xff\x00", "id": (1 << 64) - 1, "n": -3},
        {"step_num": 1},
        {},
    ]
    assert back.lines.line_id.tolist() == [4711, 4712]
    assert [back.strings[row] for row in back.lines.display_name] == ["", "loader"]
    assert (back.start_unix_ns, back.stop_unix_ns) == (trace.start_unix_ns, trace.stop_unix_ns)
    assert back.recorder_messages == ("3 events were dropped",)


def drawn(*parts: bytes) -> HostTrace:
    trace = read(b"".join(parts), "drawn.xplane.pb", "")
    assert [problem.code for problem in trace.problems if problem.code != "repeated-planes"] == []
    return trace


A = event_name(1, "a")
VALUES = (1, -1, Unsigned(1 << 63), 0.5, "t", "", b"b", b"", Ref(2), Ref(9), None, 0)
SINCE_1970 = line("l", event(1, at=5), start_ns=1_700_000_000_000_000_000)
SESSION = x.environment(1_699_999_999_000_000_000, 1_700_000_009_000_000_000)
BARE = event(1)
CASES = {
    "nothing but a name": plane("empty"),
    "aggregates": plane(
        HOST, line("l", event(1, occurrences=5, ps=9, stats=[stat(2, 8)]), event(1, at=4)), A, stat_name(2, "n")
    ),
    "a stat that only looks like an aggregate's": plane(
        HOST, line("l", event(1, at=4, stats=[stat(1, 5), stat(2, 6)])), A, stat_name(1, "num_occurrences")
    ),
    "all sorts of stats": plane(
        HOST,
        line("l", event(1, stats=[stat(2, value) for value in VALUES])),
        event_name(1, "a", "short", stats=[stat(2, "t"), stat(3, 7)]),
        stat_name(2, "n"),
        stat_name(3, "m"),
        plane_stat(3, "t"),
        plane_stat(2, b"\xff"),
    ),
    "stats without a name": plane(HOST, line("l", event(1, stats=[stat(9, 1)])), A),
    "sparse ids": plane(
        HOST, line("l", event(-5), event(1 << 60)), event_name(-5, "a"), event_name(1 << 60, "b"), plane_id=-1
    ),
    "negative times": plane(HOST, line("l", event(1, at=-5_000, ps=3), event(1, at=-1), start_ns=2), A),
    "extremes": plane(HOST, line("l", event(1, at=-(1 << 61), ps=1 << 61), event(1, at=1 << 61, ps=1 << 61)), A),
    "times since 1970": plane(HOST, SINCE_1970, A) + SESSION,
    "times since 1970 and others": plane(HOST, SINCE_1970, line("m", event(1, at=5), start_ns=7), A) + SESSION,
    "lines without events": plane(HOST, line("l"), line("m", BARE), line("n"), line("o", BARE), line("p"), A),
    "planes without lines": plane("p") + plane(HOST, line("m", BARE), A) + plane("q"),
    "two planes of one name": plane(HOST, line("l", BARE), A) + plane(HOST, line("m", BARE), event_name(1, "b")),
    "hostile names": plane(HOST, line(b"\xff\x00", BARE), event_name(1, b"\x1b[0m\xfe")) + x.text(4, "vm"),
    "long names": plane(HOST, line("l" * 999, BARE), event_name(1, "a" * 100_000, "s" * 300)),
    "what the recorder said": x.text(2, "an error") + x.text(3, "a warning") + plane(HOST),
}


@pytest.mark.parametrize("case", CASES)
def test_reads_back_as_it_was(case: str) -> None:
    trace = drawn(CASES[case])

    same(replace(trace, problems=()), replace(again(trace), problems=()))


def test_a_line_that_starts_impossibly_far_away_keeps_its_start_and_its_events() -> None:
    trace = read(plane(HOST, line("l", event(1, at=5), start_ns=-(1 << 63)), A), "", "")
    back = again(trace)

    assert back.events.start_ps.tolist() == trace.events.start_ps.tolist() == [5]
    assert back.lines.start_ns.tolist() == [-(1 << 63)]


def test_many_events_are_written_in_several_rounds() -> None:
    events = b"".join(event(1 + row % 2, at=row, ps=row % 7, stats=[stat(1, row)] * (row % 3)) for row in range(70_000))
    trace = drawn(plane(HOST, line("l", events), line("m", events), A, event_name(2, "b"), stat_name(1, "n")))

    same(trace, again(trace))


def test_times_of_a_session_that_no_plane_tells_get_a_plane() -> None:
    builder = TraceBuilder("vm", 1_700_000_000_000_000_000, None)
    builder.plane("/device:GPU:0", PlaneKind.GPU, 0)
    back = again(builder.build())

    assert [back.plane_name(row) for row in range(2)] == ["/device:GPU:0", schema.ENVIRONMENT_PLANE]
    assert (back.start_unix_ns, back.stop_unix_ns) == (1_700_000_000_000_000_000, None)


def test_a_text_is_written_once_a_plane_however_often_it_is_used() -> None:
    long = "a text that is used often " * 40
    events = [event(1, stats=[stat(1, long), stat(2, long)]) for _ in range(50)]
    data = write(drawn(plane(HOST, line("l", *events), A, stat_name(1, "n"), stat_name(2, "m"))))

    assert data.count(long.encode()) == 1


def test_steps_that_the_file_tells_are_declared_in_every_plane() -> None:
    # XProf makes steps of its own as soon as one plane does not declare the stat.
    grouped = plane(HOST, line("l", event(1, stats=[stat(1, 4)])), A, stat_name(1, "group_id"))
    data = write(drawn(grouped, plane("/device:GPU:0"), plane("/device:GPU:1")))

    planes = [message for number, _, message in x.fields(data) if number == schema.SPACE_PLANES]
    assert [stat_name(1, "group_id") in message for message in planes] == [True, True, True]


def test_the_kinds_of_lines_survive_where_the_format_can_tell_them() -> None:
    builder = TraceBuilder("vm")
    gpu = builder.plane("/device:GPU:0", PlaneKind.GPU, 0)
    builder.line(gpu, "Stream #1(Compute)", 1, LineKind.STREAM).event(
        "kernel", 0, 5, EventKind.KERNEL, {"correlation_id": 1}
    )
    builder.line(gpu, "Steps", 0xDEADBEEF, LineKind.STEPS).event("1", 0, 5, EventKind.DEVICE_STEP)
    trace = builder.build()

    assert again(trace).lines.kind.tolist() == trace.lines.kind.tolist()
    assert again(trace).events.kind.tolist() == trace.events.kind.tolist()


def test_metadata_comes_before_the_lines() -> None:
    data = write(drawn(plane(HOST, line("l", event(1, stats=[stat(1, 5)])), plane_stat(1, 8), A, stat_name(1, "n"))))
    (message,) = [value for number, _, value in x.fields(data) if number == schema.SPACE_PLANES]

    assert list(dict.fromkeys(number for number, _, _ in x.fields(message))) == [
        schema.PLANE_NAME,
        schema.PLANE_STAT_METADATA,
        schema.PLANE_EVENT_METADATA,
        schema.PLANE_STATS,
        schema.PLANE_LINES,
    ]


def test_an_empty_trace() -> None:
    data = write(TraceBuilder("vm").build())

    assert data == x.text(4, "vm")


def test_writing_leaves_the_trace_alone() -> None:
    trace = drawn(CASES["all sorts of stats"])
    before = meaning(trace)
    for column in (trace.events.start_ps, trace.event_stats.value, trace.event_stats.offsets, trace.lines.start_ns):
        column.flags.writeable = False
    write(trace)

    assert meaning(trace) == before
    assert isinstance(trace.events.start_ps, np.ndarray)
