"""The XSpace reader: exactly what TensorFlow's protobuf reads, on real files; and case by case, on files drawn here."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xspace_build as x
from framework_captures import FrameworkCapture
from places import HELPERS
from warm_python import WARM
from xspace_build import Ref, Unsigned, event, event_name, line, plane, stat, stat_name

from stepscope.errors import LeftOutError
from stepscope.formats.xspace import reader
from stepscope.formats.xspace.decoding import decode
from stepscope.formats.xspace.reader import read
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, Stats, StatTag, TraceBuilder, Trait

K, T = EventKind, Trait
HOST = "/host:CPU"
A = event_name(1, "a")


# -- the same as protobuf, on real files -------------------------------------------------------------------------

CORPUS = ("jax-mi300x-attention", "jax-mi300x-conv", "tf-gpu-multi-worker", "tpu-inference")
CAPTURES = ("jax_dense/slow", "jax_unjitted_step/fixed", "tf_convnet/slow", "tf_file_per_record/slow")


def view(trace: HostTrace) -> list[Any]:
    """A trace as `xspace_protobuf.view` tells a file."""
    return [
        (
            int(trace.planes.plane_id[row]),
            trace.plane_name(row),
            stats_view(trace, trace.plane_stats)[row],
            [line_view(trace, line) for line in np.flatnonzero(trace.lines.plane == row)],
        )
        for row in range(len(trace.planes))
    ]


def line_view(trace: HostTrace, row: int) -> tuple[Any, ...]:
    lines, types, strings = trace.lines, trace.event_types, trace.strings
    of_events = trace.derived("test: stats", lambda trace: stats_view(trace, trace.event_stats))
    of_types = trace.derived("test: type stats", lambda trace: stats_view(trace, trace.type_stats))
    here = range(lines.event_begin[row], lines.event_end[row])
    rows = zip(here, *(column[here].tolist() for column in (trace.events.start_ps, trace.events.duration_ps,
                                                          trace.events.type)), strict=True)  # fmt: skip
    events = [
        (start, duration, strings[types.name[kind]], strings[types.display_name[kind]], of_types[kind], of_events[at])
        for at, start, duration, kind in rows
    ]
    names = strings[lines.name[row]], strings[lines.display_name[row]]
    numbers = [int(column[row]) for column in (lines.display_id, lines.start_ns, lines.duration_ps)]
    return int(lines.line_id[row]), *names, *numbers, events


def stats_view(trace: HostTrace, stats: Stats) -> list[tuple[Any, ...]]:
    """The stats of every owner: (name, type, value)."""
    text = dict(enumerate(trace.strings))
    tags = {StatTag.NONE: "none", StatTag.DOUBLE: "double", StatTag.UINT: "uint", StatTag.INT: "int",
            StatTag.STRING: "text", StatTag.BYTES: "bytes"}  # fmt: skip
    value_of = {
        StatTag.NONE: lambda value: None,
        StatTag.DOUBLE: lambda value: value.to_bytes(8, "little", signed=True),
        StatTag.UINT: lambda value: value % (1 << 64),
        StatTag.INT: lambda value: value,
        StatTag.STRING: text.__getitem__,
        StatTag.BYTES: trace.strings.raw,
    }
    rows = zip(stats.name.tolist(), stats.tag.tolist(), stats.value.tolist(), strict=True)
    told = [(text[name], tags[StatTag(tag)], value_of[StatTag(tag)](value)) for name, tag, value in rows]
    bounds = stats.offsets.tolist()
    return [tuple(told[a:b]) for a, b in pairwise(bounds)]


@pytest.fixture(scope="session")
def protobuf(corpus: Path, bottleneck_captures: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What protobuf reads from the real files: planes by path."""
    folders = [corpus / name for name in CORPUS] + [bottleneck_captures / name for name in CAPTURES]
    return read_by_protobuf([next(folder.rglob("*.xplane.pb")) for folder in folders], tmp_path_factory)


def read_by_protobuf(files: Sequence[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What protobuf reads from files: planes by path."""
    paths = [str(path) for path in files]
    output = tmp_path_factory.mktemp("protobuf") / "planes.pickle"
    worker = HELPERS / "xspace_protobuf.py"
    done = WARM.run("tensorflow", [str(worker), str(output), *paths], os.environ, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    planes: dict[str, list[Any]] = pickle.loads(output.read_bytes())
    return planes


@pytest.mark.parametrize("name", CORPUS + CAPTURES)
def test_a_real_file_is_read_as_protobuf_reads_it(name: str, protobuf: dict[str, list[Any]]) -> None:
    path = next(path for path in protobuf if f"/{name}/" in path)
    require_equal_to_protobuf(path, protobuf[path])


def test_a_fresh_file_is_read_as_protobuf_reads_it(
    tf_slow_map_capture: FrameworkCapture,
    jax_marked_capture: FrameworkCapture,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    files = [*tf_slow_map_capture.paths, *jax_marked_capture.paths]
    for path, planes in read_by_protobuf(files, tmp_path_factory).items():
        require_equal_to_protobuf(path, planes)


def require_equal_to_protobuf(path: str, planes: list[Any]) -> None:
    trace = read(Path(path).read_bytes(), path, "")
    trace.check()

    assert (trace.problems, trace.partial) == ((), False)
    for expected, found in zip(planes, view(trace), strict=True):
        for expected_line, found_line in zip(expected[3], found[3], strict=True):
            for pair in zip(expected_line[-1], found_line[-1], strict=True):
                assert pair[0] == pair[1]
            assert expected_line == found_line
        assert expected == found


# -- values ------------------------------------------------------------------------------------------------------


def of(data: bytes, host: str = "") -> HostTrace:
    """The trace of a file that is not damaged."""
    trace = read(data, "drawn.xplane.pb", host)
    trace.check()
    assert (trace.problems, trace.partial) == ((), False)
    return trace


def host_line(*events: bytes, names: tuple[bytes, ...] = (), start_ns: int = 0) -> HostTrace:
    """A trace of one host thread; event metadata 1 to 3 are `a`, `b`, `c`."""
    letters = [event_name(number, name) for number, name in enumerate("abc", 1)]
    return of(plane(HOST, line("python", *events, start_ns=start_ns), *letters, *names))


def table(trace: HostTrace) -> list[tuple[str, int, int]]:
    """All events: name, start, duration in ps."""
    events = trace.events
    return [(trace.name_of(row), int(events.start_ps[row]), int(events.duration_ps[row])) for row in range(len(events))]


def stats(trace: HostTrace, event: int = 0) -> list[tuple[str, int, Any]]:
    """An event's own stats: name, tag, value."""
    own = trace.event_stats
    rows = range(own.offsets[event], own.offsets[event + 1])
    return [(trace.strings[own.name[row]], int(own.tag[row]), trace.stat_value(own, row)) for row in rows]


STAT_VALUES = [
    (7, StatTag.INT, 7),
    (-1, StatTag.INT, -1),
    (-(1 << 63), StatTag.INT, -(1 << 63)),
    (Unsigned(7), StatTag.UINT, 7),
    (Unsigned((1 << 64) - 1), StatTag.UINT, (1 << 64) - 1),
    (0.1, StatTag.DOUBLE, 0.1),
    (float("-inf"), StatTag.DOUBLE, float("-inf")),
    ("text", StatTag.STRING, "text"),
    ("", StatTag.STRING, ""),
    ("fünf · 五", StatTag.STRING, "fünf · 五"),
    (b"\x00\xff\x1b[0m", StatTag.BYTES, b"\x00\xff\x1b[0m"),
    (b"", StatTag.BYTES, b""),
    (Ref(2), StatTag.STRING, "a referenced text"),
    (Ref(99), StatTag.STRING, ""),
    (None, StatTag.NONE, 0),
]


@pytest.mark.parametrize(("value", "tag", "expected"), STAT_VALUES)
def test_a_stat_of_an_event_a_type_and_a_plane(value: Any, tag: StatTag, expected: Any) -> None:
    trace = of(
        plane(
            HOST,
            line("python", event(1, stats=[stat(1, value)])),
            event_name(1, "a", stats=[stat(1, value)]),
            stat_name(1, "it"),
            stat_name(2, "a referenced text"),
            x.plane_stat(1, value),
        )
    )

    for of_owner in (trace.event_stats, trace.type_stats, trace.plane_stats):
        assert [(trace.strings[of_owner.name[0]], of_owner.tag[0])] == [("it", tag)]
        assert trace.stat_value(of_owner, 0) == expected


def test_signed_and_unsigned_values_of_one_stat_are_one_column_of_integers() -> None:
    hashed = (1 << 63) + 5
    trace = host_line(
        event(1, at=0, ps=1, stats=[stat(1, 12)]),
        event(1, at=1, ps=1, stats=[stat(1, Unsigned(hashed))]),
        event(1, at=2, ps=1, stats=[stat(1, Unsigned(12))]),
        event(1, at=3, ps=1),
        names=(stat_name(1, "id"),),
    )

    assert trace.stat_ints(["id"]).tolist() == [12, hashed - (1 << 64), 12, -1]
    assert trace.stats_of_event(1) == {"id": hashed}


def test_equal_texts_are_one_string_however_they_are_written() -> None:
    trace = host_line(
        event(1, stats=[stat(1, "f32[2,3]"), stat(1, Ref(2)), stat(1, b"f32[2,3]")]),
        names=(stat_name(1, "shape"), stat_name(2, "f32[2,3]")),
    )

    assert len(set(trace.event_stats.value.tolist())) == 1
    assert list(trace.strings).count("f32[2,3]") == 1


def test_an_aggregate_has_a_count_instead_of_a_position() -> None:
    trace = host_line(event(1, at=5, ps=10), event(2, occurrences=40, ps=900))

    assert table(trace) == [("b", 0, 900), ("a", 5, 10)]
    assert trace.events.kind.tolist() == [K.AGGREGATE, K.OTHER]
    assert trace.stats_of_event(0) == {"num_occurrences": 40}


# -- times and order ---------------------------------------------------------------------------------------------


def test_a_start_counts_from_its_line_and_may_be_negative() -> None:
    trace = host_line(event(1, at=-3_000_000, ps=5), event(2, at=7), event(3), start_ns=2)

    assert table(trace) == [("a", -2_998_000, 5), ("c", 2_000, 0), ("b", 2_007, 0)]


def test_events_are_sorted_and_their_stats_move_along() -> None:
    trace = host_line(
        event(1, at=30, ps=5, stats=[stat(1, 1), stat(1, 11)]),
        event(2, at=10, ps=5),
        event(3, at=10, ps=90, stats=[stat(1, 3)]),
        event(1, at=20, ps=1, stats=[stat(1, 4), stat(1, "text")]),
        names=(stat_name(1, "n"),),
    )

    assert table(trace) == [("c", 10, 90), ("b", 10, 5), ("a", 20, 1), ("a", 30, 5)]
    assert [[value for _, _, value in stats(trace, row)] for row in range(4)] == [[3], [], [4, "text"], [1, 11]]


def test_only_the_line_that_is_out_of_order_is_sorted() -> None:
    lines = [
        line(name, *(event(1, at=at, stats=[stat(1, at)]) for at in starts))
        for name, starts in (("first", (1, 2)), ("second", (9, 3, 6)), ("third", (4, 4)), ("fourth", (8, 7)))
    ]
    trace = of(plane(HOST, *lines, event_name(1, "a"), stat_name(1, "at")))

    assert trace.events.start_ps.tolist() == [1, 2, 3, 6, 9, 4, 4, 7, 8]
    assert trace.stat_ints(["at"]).tolist() == [1, 2, 3, 6, 9, 4, 4, 7, 8]


START = 1_700_000_000_000_000_000  # ns since 1970


def test_times_that_count_from_1970_are_told_from_the_first_line() -> None:
    lines = line("late", event(1, at=7), start_ns=START + 50), line("early", event(1), start_ns=START)
    trace = of(plane(HOST, *lines, A))

    assert trace.events.start_ps.tolist() == [50_007, 0]
    assert (trace.start_unix_ns, trace.stop_unix_ns) == (START, None)


def test_times_that_count_from_1970_are_told_from_the_start_of_the_session() -> None:
    lines = line("absolute", event(1, at=7), start_ns=START + 50), line("relative", event(1), start_ns=3)
    trace = of(plane(HOST, *lines, A) + x.environment(START, START + 900))

    assert trace.events.start_ps.tolist() == [50_007, 3_000]
    assert (trace.start_unix_ns, trace.stop_unix_ns) == (START, START + 900)


def test_a_session_start_that_cannot_belong_to_the_lines_is_not_believed() -> None:
    trace = of(plane(HOST, line("python", event(1, at=7), start_ns=START), A) + x.environment(START + 10**18, START))

    assert trace.events.start_ps.tolist() == [7]
    assert (trace.start_unix_ns, trace.stop_unix_ns) == (START, None)


# -- ids and names -----------------------------------------------------------------------------------------------

ID_SETS = [
    [1, 2, 3],
    [0, 1, 2],
    [1 << 40, 5, 1 << 62],  # hashes
    [-1, -(1 << 63), (1 << 63) - 1],
    [3_000_000, 1, 2],
]


@pytest.mark.parametrize("ids", ID_SETS)
def test_metadata_ids_may_be_any_numbers(ids: list[int]) -> None:
    a, b, c = ids
    trace = of(
        plane(
            HOST,
            line("python", *(event(one, at=row, stats=[stat(one, Ref(a))]) for row, one in enumerate(ids))),
            *(event_name(one, f"event {one}") for one in ids),
            *(stat_name(one, f"stat {one}") for one in ids),
        )
    )

    assert [name for name, _, _ in table(trace)] == [f"event {one}" for one in ids]
    assert [stats(trace, row) for row in range(3)] == [[(f"stat {one}", StatTag.STRING, f"stat {a}")] for one in ids]
    assert trace.event_types.metadata_id.tolist() == [a, b, c]


def test_of_two_entries_with_one_id_the_later_counts() -> None:
    names = event_name(7, "first"), event_name(7, "second"), stat_name(1, "old"), stat_name(1, "new")
    trace = of(plane(HOST, line("python", event(7, stats=[stat(1, 0)])), *names))

    assert table(trace) == [("second", 0, 0)]
    assert stats(trace) == [("new", StatTag.INT, 0)]
    assert len(trace.event_types) == 1


def test_an_entry_whose_id_stands_only_in_its_key_or_only_in_its_value() -> None:
    only_key = x.text(4, x.number(1, 1) + x.text(2, x.text(2, "by key")))
    only_value = x.text(4, x.text(2, x.number(1, 2) + x.text(2, "by value")))
    trace = of(plane(HOST, line("python", event(1, at=0), event(2, at=1)), only_key, only_value))

    assert [name for name, _, _ in table(trace)] == ["by key", "by value"]


def test_names_to_show() -> None:
    to_show = x.text(11, "shown") + x.number(10, 8) + x.number(9, 500)
    stored = line("stored", event(1), line_id=-5, start_ns=3, extra=to_show)
    trace = of(plane(HOST, stored, event_name(1, "long", "short")))

    assert trace.strings[trace.event_types.display_name[0]] == "short"
    assert line_view(trace, 0)[:-1] == (-5, "stored", "shown", 8, 3, 500)


def test_stats_of_a_type_belong_to_all_of_its_events() -> None:
    trace = of(
        plane(
            HOST,
            line("python", event(1, at=0), event(1, at=1, stats=[stat(1, 9)])),
            event_name(1, "a", stats=[stat(1, 5), stat(2, "add")]),
            stat_name(1, "flops"),
            stat_name(2, "hlo_category"),
        )
    )

    assert [trace.stats_of_event(row)["flops"] for row in (0, 1)] == [5, 9]
    assert trace.stat_ints(["flops"]).tolist() == [5, 9]
    assert [trace.strings[row] for row in trace.stat_strings(["hlo_category"])] == ["add", "add"]


UNKNOWN = [
    x.number(100, 5),
    x.number(100, -1),
    x.fixed(100, bytes(8)),
    x.fixed(100, bytes(4)),
    x.text(100, "not for us"),
    x.text(3000, x.text(1, "not for us")),
    x.group(100, x.number(1, 8), x.text(2, "not for us"), x.group(7, x.fixed(3, bytes(8))), x.fixed(4, bytes(4))),
]


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_unknown_fields_are_skipped_at_every_level(unknown: bytes) -> None:
    def entry(field: int, name: str) -> bytes:
        value = unknown + x.number(1, 1) + x.text(2, name) + unknown
        return x.text(field, unknown + x.number(1, 1) + x.text(2, value) + unknown)

    one_stat = unknown + stat(1, 5) + unknown
    trace = of(
        unknown
        + plane(
            HOST,
            unknown,
            line("python", unknown, event(1, at=3, ps=4, stats=[one_stat], extra=unknown), unknown),
            entry(4, "a"),
            entry(5, "n"),
            x.text(6, one_stat),
            unknown,
        )
        + unknown
    )

    assert table(trace) == [("a", 3, 4)]
    assert stats(trace) == [("n", StatTag.INT, 5)]
    assert trace.stats_of_plane(0) == {"n": 5}


def test_numbers_may_be_written_longer_than_needed() -> None:
    padded = b"\x08\x81\x80\x00" + b"\x10\x87\x80\x80\x80\x00"  # metadata_id 1, offset 7
    trace = of(plane(HOST, x.text(3, b"\x22\x8a\x80\x00" + padded), event_name(1, "a")))

    assert table(trace) == [("a", 7, 0)]


def test_what_the_file_says_about_itself() -> None:
    said = x.text(2, "an error") + x.text(3, "a warning") + x.text(4, "machine-7") + x.text(4, "another")
    data = said + plane(HOST)

    assert of(data).host == "machine-7"
    assert of(data, "given").host == "given"
    assert of(plane(HOST)).host == "localhost"
    assert of(data).recorder_messages == ("an error", "a warning")


# -- what things are ---------------------------------------------------------------------------------------------

PLANES = [
    ("/host:CPU", PlaneKind.HOST, -1),
    ("/host:CPU [4711]", PlaneKind.HOST, -1),  # a sub-process
    ("/host:python-tracer", PlaneKind.HOST, -1),
    ("/host:CUPTI", PlaneKind.HOST, -1),
    ("/device:GPU:0", PlaneKind.GPU, 0),
    ("/device:GPU:17", PlaneKind.GPU, 17),
    ("/device:TPU:3", PlaneKind.TPU, 3),
    ("/device:TPU:1 SparseCore 0", PlaneKind.SPARSE_CORE, 1),
    ("/device:TPU:1 SparseCore tile 2", PlaneKind.SPARSE_CORE, 1),
    ("/device:CUSTOM:MOSAIC:4", PlaneKind.CUSTOM_DEVICE, -1),
    ("/device:CUSTOM:100", PlaneKind.CUSTOM_DEVICE, 100),
    ("/host:metadata", PlaneKind.METADATA, -1),
    ("Task Environment", PlaneKind.ENVIRONMENT, -1),
    ("/host:tfstreamz", PlaneKind.OTHER, -1),
    ("#Chip0 TPU Non-Core", PlaneKind.OTHER, -1),
    ("/device:GPU:" + "9" * 5000, PlaneKind.GPU, -1),
    ("", PlaneKind.OTHER, -1),
]


@pytest.mark.parametrize(("name", "kind", "ordinal"), PLANES)
def test_what_a_plane_is(name: str, kind: PlaneKind, ordinal: int) -> None:
    trace = of(plane(name, line("a line")))

    assert (trace.planes.kind.tolist(), trace.planes.ordinal.tolist()) == ([kind], [ordinal])


DERIVED = 0xDEADBEEF
LINES = [
    (HOST, "python", 1, LineKind.THREAD),
    (HOST, "_counters_", (1 << 63) - 1, LineKind.COUNTERS),
    ("/device:GPU:0", "Stream #13(Compute)", 13, LineKind.STREAM),
    ("/device:GPU:0", "Stream #13(MemcpyD2H)", 13, LineKind.STREAM),
    ("/device:GPU:0", "Steps", DERIVED, LineKind.STEPS),
    ("/device:GPU:0", "XLA Modules", DERIVED + 4, LineKind.MODULES),
    ("/device:GPU:0", "XLA Ops", DERIVED + 5, LineKind.DERIVED),
    ("/device:GPU:0", "Some new thing", DERIVED + 2, LineKind.DERIVED),
    ("/device:GPU:0", "Some new thing", DERIVED + 399, LineKind.DERIVED),
    ("/device:GPU:0", "Some new thing", DERIVED + 2 - (1 << 32), LineKind.DERIVED),  # the id as int32
    ("/device:GPU:0", "Some new thing", DERIVED + 400, LineKind.STREAM),
    ("/device:GPU:0", "TensorFlow Ops", 7, LineKind.DERIVED),
    ("/device:GPU:0", "CUPTI overhead", 7, LineKind.OVERHEAD),
    ("/device:TPU:0", "Steps", 0, LineKind.STEPS),
    ("/device:TPU:0", "XLA Modules", 1, LineKind.MODULES),
    ("/device:TPU:0", "XLA Ops", 2, LineKind.DEVICE_OPS),
    ("/device:TPU:0", "Async XLA Ops", 3, LineKind.DERIVED),
    ("/device:TPU:0 SparseCore 0", "Sparse Core Ops", 2, LineKind.DEVICE_OPS),
    ("/host:metadata", "a line", 0, LineKind.OTHER),
]


@pytest.mark.parametrize(("of_plane", "name", "line_id", "kind"), LINES)
def test_what_a_line_is(of_plane: str, name: str, line_id: int, kind: LineKind) -> None:
    assert of(plane(of_plane, line(name, line_id=line_id))).lines.kind.tolist() == [kind]


def drawn(of_plane: str, of_line: str, name: str, facts: dict[str, Any]) -> tuple[EventKind, Trait]:
    """Kind and traits of one event with the stats `facts`."""
    stats = [stat(number, value) for number, value in enumerate(facts.values(), 1)]
    names = [stat_name(number, key) for number, key in enumerate(facts, 1)]
    trace = of(plane(of_plane, line(of_line, event(1, ps=5, stats=stats)), event_name(1, name), *names))
    return EventKind(trace.events.kind[0]), Trait(trace.events.traits[0])


ON_A_HOST: list[tuple[str, dict[str, Any], EventKind, Trait]] = [
    ("anything", {}, K.OTHER, T.NONE),
    # steps
    ("ProfilerStep#12", {}, K.STEP_MARK, T.NONE),
    ("TraceContext", {}, K.STEP_MARK, T.NONE),
    ("train", {"step_num": 3, "_r": 1}, K.STEP_MARK, T.EXPLICIT_ROOT),
    ("train_loop", {"_r": 1}, K.STEP_MARK, T.EXPLICIT_ROOT),
    ("test", {"_r": 1}, K.STEP_MARK, T.EXPLICIT_ROOT),
    ("train", {}, K.OTHER, T.NONE),
    ("train/dense", {"_r": 1}, K.OTHER, T.EXPLICIT_ROOT),
    ("Profiled batch", {"step_num": 0}, K.STEP_MARK, T.NONE),
    # input
    ("IteratorGetNextOp::DoCompute", {}, K.INPUT_WAIT, T.NONE),
    ("IteratorGetNextAsOptionalOp::DoCompute", {}, K.INPUT_WAIT, T.NONE),
    ("MultiDeviceIteratorGetNextFromShard", {}, K.INPUT_WAIT, T.NONE),
    ("Iterator::Root::Prefetch::Map", {"id": 5}, K.ITERATOR, T.NONE),
    ("Iterator::Root::ParallelInterleaveV4[0]::TFRecord", {}, K.ITERATOR, T.FILE_READ),
    ("Iterator::TextLine", {}, K.ITERATOR, T.NONE),
    ("Iterator::Root::FixedLengthRecordV2", {}, K.ITERATOR, T.FILE_READ),
    ("Iterator::Root::TFRecordist", {}, K.ITERATOR, T.NONE),
    ("PrefetchProduce", {"element_id": 1}, K.INPUT_HANDOVER, T.NONE),
    ("ParallelMapConsume", {}, K.INPUT_HANDOVER, T.NONE),
    ("ParallelInterleaveInitializeInput", {}, K.INPUT_HANDOVER, T.NONE),
    ("InstantiatedCapturedFunction::RunAsync", {}, K.INPUT_CALLBACK, T.NONE),
    ("InfeedEnqueueTuple", {}, K.COPY_HOST_TO_DEVICE_CALL, T.ENQUEUE),
    # running
    ("FunctionRun", {"id": 4, "_r": 1}, K.FUNCTION_RUN, T.EXPLICIT_ROOT),
    ("SessionRun", {}, K.FUNCTION_RUN, T.NONE),
    ("RunGraph", {}, K.FUNCTION_RUN, T.NONE),
    ("PjitFunction(step)", {}, K.TRACED_FUNCTION, T.NONE),
    ("ExecutorState::Process", {"id": 4, "iter_num": 0}, K.EXECUTOR, T.NONE),
    ("EagerExecute", {}, K.EAGER_EXECUTE, T.NONE),
    ("EagerLocalExecute: AddV2", {}, K.EAGER_EXECUTE, T.NONE),
    ("train_step", {"tf_function_call": "notTraced-xla"}, K.TRACED_FUNCTION, T.NONE),
    ("train_step", {"tf_function_call": "traced-nonXla"}, K.TRACED_FUNCTION, T.COMPILES),
    ("XlaCompile", {}, K.COMPILE, T.COMPILES),
    ("backend_compile", {}, K.COMPILE, T.COMPILES),
    ("model/save/SaveV2:SaveV2", {}, K.CHECKPOINT, T.NONE),
    ("MergeV2Checkpoints", {}, K.CHECKPOINT, T.NONE),
    ("$train.py:12 step", {}, K.PYTHON_CALL, T.NONE),
    # what replicas on one host exchange by threads
    ("sgd/CollectiveReduceV2_1:CollectiveReduceV2", {}, K.COLLECTIVE_CALL, T.NONE),
    ("gather/CollectiveGatherV2:CollectiveGatherV2", {}, K.COLLECTIVE_CALL, T.NONE),
    ("CollectiveOpV2Kernel::Run", {}, K.COLLECTIVE_CALL, T.NONE),
    ("BaseCollectiveExecutor::ExecuteAsync", {}, K.COLLECTIVE_CALL, T.NONE),
    ("CollectiveExecutor::RunClosure", {}, K.COLLECTIVE_CALL, T.NONE),
    ("group/CollectiveAssignGroupV2:CollectiveAssignGroupV2", {}, K.OP, T.NONE),
    ("_send_allreduce/CollectiveReduce/_3:_Send", {}, K.OTHER, T.NONE),
    ("ThreadpoolListener::Record", {}, K.THREADPOOL, T.NONE),
    ("ThreadpoolListener::StartRegion", {}, K.REGION_BEGIN, T.NONE),
    ("ThreadpoolListener::StopRegion", {}, K.REGION_END, T.NONE),
    # ops
    ("model/dense/MatMul:MatMul", {}, K.OP, T.NONE),
    ("model/dense/MatMul:MatMul", {"is_eager": 1}, K.OP, T.EAGER),
    ("model/dense/MatMul:MatMul", {"is_eager": 0}, K.OP, T.NONE),
    ("jit(step)/dot:dot_general", {}, K.OP, T.NONE),
    ("fusion.1", {"hlo_op": "fusion.1"}, K.OP, T.NONE),
    ("producer", {"_a": 1}, K.OTHER, T.ASYNC),
    ("producer", {"_a": 0}, K.OTHER, T.NONE),
    # the device's runtime
    ("cuLaunchKernel", {"correlation_id": 0}, K.RUNTIME_CALL, T.NONE),
    ("cuStreamSynchronize", {"correlation_id": 4}, K.SYNC, T.NONE),
    ("hipDeviceSynchronize", {}, K.SYNC, T.NONE),
    ("cuStreamWaitEvent", {"correlation_id": 5}, K.RUNTIME_CALL, T.NONE),
    ("MemcpyH2D", {"correlation_id": 9}, K.COPY_HOST_TO_DEVICE_CALL, T.NONE),
    ("MemcpyHToD", {}, K.COPY_HOST_TO_DEVICE_CALL, T.NONE),
    ("memcpyH2H", {}, K.COPY_HOST_TO_HOST, T.NONE),
    ("MemoryAllocation", {"requested_bytes": 8}, K.ALLOCATION, T.NONE),
    ("MemoryDeallocation", {}, K.DEALLOCATION, T.NONE),
]

LAUNCHED = {"correlation_id": 5}
ON_A_GPU: list[tuple[str, dict[str, Any], EventKind, Trait]] = [
    ("anything", {}, K.OTHER, T.NONE),
    ("sgemm_128x64_nn", LAUNCHED, K.KERNEL, T.NONE),
    ("sgemm_128x64_nn", {"kernel_details": "regs:32"}, K.KERNEL, T.NONE),
    ("loop_add_fusion", {"hlo_op": "fusion.2"}, K.KERNEL, T.NONE),
    # copies, in the spellings of NVIDIA and AMD
    ("MemcpyH2D", LAUNCHED, K.COPY_HOST_TO_DEVICE, T.NONE),
    ("Memcpy HtoD (Pinned -> Device)", LAUNCHED, K.COPY_HOST_TO_DEVICE, T.NONE),
    ("CopyHostToDevice", LAUNCHED, K.COPY_HOST_TO_DEVICE, T.NONE),
    ("MemcpyD2H", LAUNCHED, K.COPY_DEVICE_TO_HOST, T.NONE),
    ("CopyDeviceToHost", LAUNCHED, K.COPY_DEVICE_TO_HOST, T.NONE),
    ("MemcpyD2D", LAUNCHED, K.COPY_DEVICE_TO_DEVICE, T.NONE),
    ("Memcpy DtoD", LAUNCHED, K.COPY_DEVICE_TO_DEVICE, T.NONE),
    ("CopyDeviceToDevice", LAUNCHED, K.COPY_DEVICE_TO_DEVICE, T.NONE),
    ("MemcpyP2P", LAUNCHED, K.COPY_PEER, T.NONE),
    ("Memcpy PtoP", LAUNCHED, K.COPY_PEER, T.NONE),
    ("MemcpyOther", LAUNCHED, K.COPY_OTHER, T.NONE),
    ("unheard of", {"memcpy_details": "kind_src:device"}, K.COPY_OTHER, T.NONE),
    ("Memset", LAUNCHED, K.MEMSET, T.NONE),
    ("unheard of", {"memset_details": "num_bytes:4"}, K.MEMSET, T.NONE),
    ("unheard of", {"MemoryResidency_details": "x"}, K.DEVICE_MEMORY, T.NONE),
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", LAUNCHED, K.COLLECTIVE, T.NONE),
    ("rcclGenericKernel", LAUNCHED, K.COLLECTIVE, T.NONE),
    ("CudaGraphExec:3", LAUNCHED, K.GRAPH_LAUNCH, T.NONE),
    ("a counter", {"counter_value": 3}, K.COUNTER, T.NONE),
    # 16 bits
    ("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", LAUNCHED, K.KERNEL, T.COMPUTES_16BIT),
    ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn", LAUNCHED, K.KERNEL, T.COMPUTES_16BIT),
    ("void foo<Eigen::half>(int)", LAUNCHED, K.KERNEL, T.COMPUTES_16BIT),
    ("turing_h1688cudnn_256x128_ldg8_relu", LAUNCHED, K.KERNEL, T.COMPUTES_16BIT),
    ("Cijk_Ailk_Bljk_BBS_BH_MT128x128x32", LAUNCHED, K.KERNEL, T.COMPUTES_16BIT),
    ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32", LAUNCHED, K.KERNEL, T.COMPUTES_16BIT),
    ("Cijk_Ailk_Bljk_SB_MT128x128x32", LAUNCHED, K.KERNEL, T.NONE),
    ("cutlass_80_tensorop_s1688gemm_128x128", LAUNCHED, K.KERNEL, T.NONE),  # tf32
    ("some_kernel", LAUNCHED | {"shape": "(bf16[8,8], f32[8])"}, K.KERNEL, T.COMPUTES_16BIT),
    ("half_kernel", LAUNCHED | {"shape": "f32[8,8]"}, K.KERNEL, T.NONE),
]

ON_A_TPU: list[tuple[str, dict[str, Any], EventKind, Trait]] = [
    ("%fusion.3 = f32[8] fusion()", {}, K.DEVICE_OP, T.NONE),
    ("fusion.3", {"shape": "bf16[8]"}, K.DEVICE_OP, T.COMPUTES_16BIT),
    ("%all-reduce.1 = f32[8] all-reduce()", {}, K.COLLECTIVE, T.NONE),
    ("all-gather-start.2", {}, K.COLLECTIVE, T.NONE),
    ("fusion.9", {"all_reduce_unique_id": 4}, K.COLLECTIVE, T.NONE),
    ("infeed.1", {}, K.INFEED, T.NONE),
    ("%outfeed", {}, K.OUTFEED, T.NONE),
]


@pytest.mark.parametrize(("name", "facts", "kind", "traits"), ON_A_HOST)
def test_what_an_event_on_a_host_thread_is(name: str, facts: dict[str, Any], kind: EventKind, traits: Trait) -> None:
    assert drawn(HOST, "python", name, facts) == (kind, traits)


@pytest.mark.parametrize(("name", "facts", "kind", "traits"), ON_A_GPU)
def test_what_an_event_on_a_stream_is(name: str, facts: dict[str, Any], kind: EventKind, traits: Trait) -> None:
    assert drawn("/device:GPU:0", "Stream #1", name, facts) == (kind, traits)


@pytest.mark.parametrize(("name", "facts", "kind", "traits"), ON_A_TPU)
def test_what_an_event_on_a_core_is(name: str, facts: dict[str, Any], kind: EventKind, traits: Trait) -> None:
    assert drawn("/device:TPU:0", "XLA Ops", name, facts) == (kind, traits)


BY_LINE = [
    ("/device:GPU:0", "Steps", K.DEVICE_STEP),
    ("/device:GPU:0", "XLA Modules", K.MODULE),
    ("/device:GPU:0", "XLA Ops", K.SCOPE),
    ("/device:GPU:0", "CUPTI overhead", K.OVERHEAD),
    ("/device:TPU:0", "Async XLA Ops", K.SCOPE),
    (HOST, "_counters_", K.COUNTER),
]


@pytest.mark.parametrize(("of_plane", "of_line", "kind"), BY_LINE)
def test_on_some_lines_all_events_are_of_one_kind(of_plane: str, of_line: str, kind: EventKind) -> None:
    assert drawn(of_plane, of_line, "MemcpyH2D", LAUNCHED)[0] == kind


FRAMEWORKS = [
    (plane(HOST, event_name(1, "FunctionRun")), "tensorflow"),
    (plane(HOST, event_name(1, "PjitFunction(step)")), "jax"),
    (plane("Task Environment", stat_name(1, "jax_version")), "jax"),
    (plane(HOST, event_name(1, "aten::mm")), "pytorch"),
    (plane(HOST, event_name(1, "my own range")), ""),
]


@pytest.mark.parametrize(("data", "framework"), FRAMEWORKS)
def test_which_framework_wrote_the_file(data: bytes, framework: str) -> None:
    assert of(data).framework == framework


def test_a_file_that_is_handed_over_is_out_of_memory_before_the_last_columns_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builder = TraceBuilder("h")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    main.event("a", 0, 1, stats={"text": "x" * 4_000_000})
    file = write(builder.build())
    make, memory = reader._event_table, []

    def watched(*columns: Any) -> Any:
        memory.append(tracemalloc.get_traced_memory()[0])
        return make(*columns)

    monkeypatch.setattr(reader, "_event_table", watched)
    for handed_over in (False, True):
        tracemalloc.start()
        data = [bytes(bytearray(file))]
        trace = read((data.pop() for _ in range(1)) if handed_over else data[0], "f", "h")
        tracemalloc.stop()
        assert len(trace.stats_of_event(0)["text"]) == 4_000_000  # type: ignore[arg-type]

    assert memory[0] - memory[1] > 0.9 * len(file)


def test_thousands_of_distinct_texts() -> None:
    texts = [f"text number {row}" for row in range(9_000)]
    trace = host_line(*(event(1, at=row, stats=[stat(1, text)]) for row, text in enumerate(texts)))

    assert [trace.strings[row] for row in trace.event_stats.value] == texts


def test_relative_times_stay_as_they_are() -> None:
    trace = of(plane(HOST, line("python", event(1, at=7), start_ns=4), A) + x.environment(START, START + 900))

    assert trace.events.start_ps.tolist() == [4_007]
    assert (trace.start_unix_ns, trace.stop_unix_ns) == (START, START + 900)


def test_ids_belong_to_their_plane() -> None:
    trace = of(
        plane(HOST, line("python", event(1)), event_name(1, "on the host"))
        + plane("/device:GPU:0", line("Stream #1", event(1)), event_name(1, "on the device"))
    )

    assert [name for name, _, _ in table(trace)] == ["on the host", "on the device"]


def test_any_buffer_can_be_read() -> None:
    data = plane(HOST, line("python", event(1, at=3)), event_name(1, "a"))

    assert table(of(bytearray(data))) == table(of(memoryview(data))) == [("a", 3, 0)]  # type: ignore[arg-type]


# -- in two parts ------------------------------------------------------------------------------------------------


def test_a_file_that_was_decoded_before_is_read_as_the_file() -> None:
    data = plane(HOST, line("python", event(1, at=3), event(2, at=5, stats=[stat(1, "x")])), A, stat_name(1, "what"))

    decoded = decode(data)

    assert view(read(decoded, "f", "h")) == view(read(data, "f", "h"))


def test_stats_that_are_left_out_decide_the_kind_all_the_same_and_are_not_taken_for_missing() -> None:
    data = plane(
        "/device:GPU:0",
        line("stream", event(1, at=0, ps=5, stats=[stat(1, "regs:9"), stat(2, 7)])),
        event_name(1, "k"), stat_name(1, "kernel_details"), stat_name(2, "group_id"),
    )  # fmt: skip
    whole, lean = (
        read(decode(data, left_out=names), "f", "h")
        for names in (frozenset[str](), frozenset({"kernel_details", "addr"}))
    )

    assert lean.events.kind.tolist() == whole.events.kind.tolist() == [K.KERNEL]
    assert (len(whole.event_stats), len(lean.event_stats)) == (2, 1)
    assert lean.stat_ints(("group_id",)).tolist() == [7]
    assert lean.stat_ints(("addr",)).tolist() == [-1]  # the file has none
    for ask in (lambda: lean.stat_strings(("level 0", "kernel_details")), lambda: lean.stats_of_event(0)):
        with pytest.raises(LeftOutError):
            ask()


def test_decoding_and_what_is_asked_before_need_no_numpy(tmp_path: Path) -> None:
    """A command decodes while numpy is imported, which takes as long as a third of the decoding."""
    file = tmp_path / "h.xplane.pb"
    file.write_bytes(plane(HOST, line("python", event(1, at=3)), A))
    code = (
        "import pathlib, sys; from stepscope.formats.xspace.decoding import decode;"
        "import stepscope.engines.host_work; from stepscope.formats.xspace.form import FORMAT;"
        "FORMAT.may_hold_several(sys.argv[1]); found = decode(pathlib.Path(sys.argv[1]).read_bytes());"
        "print(found.planes.names, list(found.lines.events.start_ps), 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)

    assert done.stdout == "['/host:CPU'] [3] False\n"
