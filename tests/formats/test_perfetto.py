"""The reader of Perfetto's traces: what our export writes, what the protos allow, and what PyTorch writes."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import perfetto_build as p
import pyarrow as pa
import pytest
from draw import draw
from perfetto_build import begin, end, process, thread, trace

import stepscope
from stepscope.analysis.registry import all_tools
from stepscope.errors import StepscopeError, UnreadableError
from stepscope.export import perfetto
from stepscope.formats.base import format_from_prefix, format_of
from stepscope.formats.kineto.reader import read as read_json
from stepscope.formats.perfetto.reader import read
from stepscope.formats.session import find_sessions
from stepscope.model import EventKind, HostTrace

CORPUS = ("tf-gpu-multi-worker", "jax-mi300x-conv", "tpu-inference", "torch-v100-resnet50-workers0")
MAIN = (process(1, 7, "python"), thread(2, 7, 70, "main", parent=1))


def read_back(data: bytes) -> HostTrace:
    """The trace of some bytes, which has to keep what all traces promise."""
    found = read(data, "a.pftrace", "")
    found.check()
    return found


def slices(found: HostTrace) -> list[tuple[str, int, int, str]]:
    """Every event: name, start from the first one and duration in ns, line."""
    events = found.events
    first = events.start_ps.min()
    return sorted(
        (
            found.name_of(row),
            int(events.start_ps[row] - first) // 1000,
            int(events.duration_ps[row]) // 1000,
            found.line_name(int(events.line[row])),
        )
        for row in range(len(events))
    )


def kinds(found: HostTrace) -> dict[str, EventKind]:
    return {found.name_of(row): EventKind(found.events.kind[row]) for row in range(len(found.events))}


def stats(found: HostTrace, name: str) -> dict[str, Any]:
    """The stats of the only event of that name, without its category."""
    (row,) = (row for row in range(len(found.events)) if found.name_of(row) == name)
    return {key: value for key, value in found.stats_of_event(row).items() if key != "category"}


def codes(found: HostTrace) -> list[str]:
    return [problem.code for problem in found.problems]


# ---- our own export --------------------------------------------------------------------------------------------------


def table(found: HostTrace, rows: Any = None) -> Counter[tuple[Any, ...]]:
    """How often each event is there: plane, name as shown, duration in ns, kind."""
    types, events = found.event_types, found.events
    short = np.where(types.display_name > 0, types.display_name, types.name)
    return Counter(
        (
            found.plane_name(int(found.lines.plane[events.line[row]])),
            found.strings[int(short[events.type[row]])],
            int((events.start_ps[row] + events.duration_ps[row]) // 1000 - events.start_ps[row] // 1000),
            EventKind(events.kind[row]),
        )
        for row in (range(len(events)) if rows is None else rows.tolist())
    )


def test_our_own_export_comes_back():
    picture = draw(
        """
        host main | M0------M1------
        host main | I--a-L1 I--a-L2
        gpu0 s    |      K1-     K2-
        """
    )
    assert table(read_back(b"".join(perfetto.pieces([picture])))) == table(picture)


@pytest.mark.parametrize("profile", CORPUS)
def test_exports_of_real_profiles_come_back(corpus: Path, profile: str):
    from stepscope.analysis.timeline.index import is_drawn

    loaded = stepscope.load(corpus / profile)
    whole = loaded.trace(loaded.hosts[0])
    back = read_back(b"".join(perfetto.pieces([whole])))
    counters = back.events.kind == EventKind.COUNTER
    ours, theirs = (
        Counter((plane, name, kind) for plane, name, _, kind in found.elements())
        for found in (table(whole, np.flatnonzero(is_drawn(whole))), table(back, np.flatnonzero(~counters)))
    )

    assert theirs == ours
    assert back.problems == ()
    drawn = np.flatnonzero(is_drawn(whole))
    assert abs(int(back.events.duration_ps[~counters].sum() - whole.events.duration_ps[drawn].sum())) <= 1000 * len(
        drawn
    )


def test_stats_and_the_time_since_1970_come_back():
    builder = stepscope.model.TraceBuilder("host", start_unix_ns=1_700_000_000_000_000_123)
    line = builder.line(builder.plane("/host:CPU", stepscope.model.PlaneKind.HOST), "python")
    given = {"int": -3, "big": (1 << 64) - 1, "real": 0.1, "text": 'quo"te é \n'}
    line.event("work", 5_000, 1_000_000, EventKind.OP, given)
    back = read_back(b"".join(perfetto.pieces([builder.build()])))

    assert stats(back, "work") == given
    assert back.start_unix_ns == 1_700_000_000_000_000_123 + 5


def test_perfettos_own_bindings_agree(corpus: Path):
    loaded = stepscope.load(corpus / "tf-gpu-multi-worker")
    compare_with_bindings(loaded.trace(loaded.hosts[0]))


def test_perfettos_own_bindings_agree_on_a_drawn_trace():
    compare_with_bindings(draw("host main | I--a-L1 I--a-L2\ngpu0 s    |      K1-     K2-"))


def compare_with_bindings(whole: HostTrace) -> None:
    """Perfetto's proto classes, which are not ours, find the same slices in our export."""
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    data = b"".join(perfetto.pieces([whole]))
    names: dict[int, str] = {}
    opened: dict[int, list[tuple[str, int]]] = {}
    theirs: Counter[tuple[str, int]] = Counter()
    for packet in protos.Trace.FromString(data).packet:
        names |= {each.iid: each.name for each in packet.interned_data.event_names}
        event = packet.track_event
        if event.type == event.TYPE_SLICE_BEGIN:
            opened.setdefault(event.track_uuid, []).append((names[event.name_iid], packet.timestamp))
        elif event.type == event.TYPE_SLICE_END:
            name, start = opened[event.track_uuid].pop()
            theirs[name, packet.timestamp - start] += 1
    found = read_back(data)
    counters = {found.name_of(row) for row in np.flatnonzero(found.events.kind == EventKind.COUNTER).tolist()}
    ours = Counter((name, length) for name, _, length, _ in slices(found) if name not in counters)

    assert theirs == ours


# ---- what the protos allow -------------------------------------------------------------------------------------------


def test_slices_nest_on_their_tracks():
    found = read_back(
        trace(
            *MAIN,
            thread(3, 7, 71, "io"),
            begin(100, 2, "outer"),
            begin(120, 3, "read"),
            begin(150, 2, "inner"),
            end(160, 2),
            end(190, 3),
            end(200, 2),
            {8: 170, 10: 1, 11: {9: p.INSTANT, 11: 2, 23: "mark"}},
        )
    )

    assert slices(found) == [
        ("inner", 50, 10, "main"),
        ("mark", 70, 0, "main"),
        ("outer", 0, 100, "main"),
        ("read", 20, 70, "io"),
    ]
    assert found.problems == ()


def test_names_are_those_of_the_sequence():
    named = {
        13: p.CLEARED,
        12: {2: {1: 1, 2: "one"}, 1: {1: 1, 2: "cpu_op"}, 3: {1: 4, 2: "key"}, 29: {1: 9, 2: "text"}},
    }
    other = {13: p.CLEARED, 12: {2: {1: 1, 2: "other"}}}
    event = {9: p.BEGIN, 10: 1, 11: 2}
    found = read_back(
        trace(
            *MAIN,
            {10: 1, **named},
            {10: 5, **other},
            {8: 10, 10: 1, 13: p.NEEDED, 11: {**event, 3: 1, 4: {1: 4, 17: 9}}},
            end(20, 2),
            {8: 30, 10: 5, 13: p.NEEDED, 11: event},
            end(40, 2),
            {10: 1, **other},
            {8: 50, 10: 1, 13: p.NEEDED, 11: event},
            end(60, 2),
        )
    )

    assert [name for name, *_ in slices(found)] == ["one", "other", "other"]
    assert stats(found, "one") == {"key": "text"}
    assert kinds(found)["one"] == EventKind.OP


def test_nested_annotations_are_json_as_in_json_traces():
    shapes = {"Input Dims": [[2, 3], []], "nested": {"a": [1.5, True, 'x"y'], "b": []}, "flag": True, "zero": 0}
    found = read_back(trace(*MAIN, begin(0, 2, "op", **shapes), end(5, 2)))
    as_json = {"ph": "X", "name": "op", "pid": 7, "tid": 70, "ts": 0, "dur": 5, "args": shapes}
    from_json = read_json(json.dumps({"traceEvents": [as_json]}).encode(), "a.json", "")

    assert json.loads(stats(found, "op")["nested"]) == shapes["nested"]
    assert stats(found, "op") == {**stats(from_json, "op"), "nested": stats(found, "op")["nested"]}


def test_an_entry_without_a_name_is_a_member_with_an_empty_one():
    nameless = {8: 0, 10: 1, 11: {9: p.BEGIN, 11: 2, 23: "op", 4: {10: "key", 11: [{6: "text"}, {10: "n", 4: -12}]}}}
    found = read_back(trace(*MAIN, nameless, end(5, 2)))

    assert stats(found, "op") == {"key": '{"":"text","n":-12}'}


def test_defaults_and_clocks_of_a_sequence():
    """A clock of the sequence's own counts in us from the packet before; another one runs an hour ahead."""
    hour = 3600 * 10**9
    snapshot = {1: [{1: 6, 2: 1_000_000}, {1: 64, 2: 500, 3: 1, 4: 1000}, {1: 3, 2: 1_000_000 + hour}]}
    found = read_back(
        trace(
            *MAIN,
            {10: 1, 13: p.CLEARED, 6: snapshot, 59: {58: 64, 11: {11: 2}}},
            {8: 10, 10: 1, 11: {9: p.BEGIN, 23: "first"}},  # at 1,010 us
            {8: 5, 10: 1, 11: {9: p.END}},
            {8: 2_000_000 + hour, 58: 3, 10: 1, 11: {9: p.BEGIN, 11: 2, 23: "later"}},
            {8: 2_003_000 + hour, 58: 3, 10: 1, 11: {9: p.END, 11: 2}},
        )
    )

    assert slices(found) == [("first", 0, 5000, "main"), ("later", 990_000, 3000, "main")]


@pytest.mark.parametrize("how", ["plain", "gzip", "deflate", "zstd"])
def test_compressed_files_and_packets(how: str):
    inside = trace(*MAIN, begin(0, 2, "a"), end(7, 2))
    data = {
        "plain": inside,
        "gzip": gzip.compress(inside),
        "deflate": trace({50: zlib.compress(inside)}),
        "zstd": trace({133: pa.compress(inside, "zstd", asbytes=True)}),
    }[how]

    assert slices(read_back(data)) == [("a", 0, 7, "main")]


def test_counters():
    found = read_back(
        trace(
            *MAIN,
            {60: {1: 9, 5: 1, 2: "queue", 8: {}}},
            {60: {1: 10, 5: 1, 2: "sum", 8: {4: 1000, 5: 1}}},
            {8: 1, 10: 1, 11: {9: p.COUNTER, 11: 9, 44: 1.5}},
            *({8: time, 10: 1, 11: {9: p.COUNTER, 11: 10, 30: 2}} for time in (5, 6)),
        )
    )
    from stepscope.analysis.resources.counters import counters_of

    assert {each.name: each.value.tolist() for each in counters_of(found)} == {"queue": [1.5], "sum": [2000.0, 4000.0]}


def test_work_and_counters_of_gpus():
    """Stages, queues, kernels and counters, by their numbers; values of extra data are text."""
    names = {
        24: [{1: 1, 2: "Kernel"}, {1: 2, 2: "Memcpy"}, {1: 100, 2: "[007] stream 7"}],
        1000: {1: 5, 3: "gemm<float>"},
        1001: {1: 1, 2: "registers_per_thread"},
        47: {1: 3, 3: 1, 2: {1: {1: 0, 2: "Power (W)"}}},
    }
    launch = {1: {1: 8, 2: 2}, 2: {1: 128}, 3: {1: 1, 4: 32}}
    extra = [{1: "correlation", 2: "77"}, {1: "Process Group Name", 2: "0"}, {1: "share", 2: "0.25"}]
    found = read_back(
        trace(
            {10: 1, 13: p.CLEARED, 12: names},
            {8: 50, 10: 1, 13: p.NEEDED, 53: {2: 30, 11: 1, 13: 100, 14: 1, 19: 5, 21: launch, 6: extra}},
            {8: 90, 10: 1, 13: p.NEEDED, 53: {2: 10, 11: 1, 13: 100, 14: 2}},
            {8: 60, 10: 1, 13: p.NEEDED, 52: {4: 3, 2: {1: 0, 3: 250.0}}},
        )
    )

    assert kinds(found) == {
        "gemm<float>": EventKind.KERNEL,
        "Memcpy": EventKind.COPY_OTHER,
        "Power (W)": EventKind.COUNTER,
    }
    assert stats(found, "gemm<float>") == {
        "grid": "[8,2,1]",
        "block": "[128,1,1]",
        "registers per thread": 32,
        "correlation_id": 77,
        "Process Group Name": "0",
        "share": 0.25,
    }
    assert [found.plane_name(row) for row in range(len(found.planes))] == ["/device:GPU:1"]
    assert slices(found)[-1][-1].startswith("Stream #7")


def test_events_as_chrome_writes_them():
    legacy = {9: 0, 11: 2, 23: "task", 6: {2: ord("X"), 3: 40}}
    assert slices(read_back(trace(*MAIN, {8: 1000, 10: 1, 11: legacy}))) == [("task", 0, 40_000, "main")]


# ---- PyTorch's second backend ----------------------------------------------------------------------------------------


def test_starts_of_a_group_before_its_ends():
    """The n-th end is that of the n-th start, also where one slice ends as the next one starts."""
    found = read_back(
        trace(
            *MAIN,
            *(begin(start, 2, name) for name, start in (("a", 0), ("b", 10), ("c", 12), ("d", 20))),
            *(end(stop, 2) for stop in (10, 20, 15, 25)),
        )
    )

    assert slices(found) == [("a", 0, 10, "main"), ("b", 10, 10, "main"), ("c", 12, 3, "main"), ("d", 20, 5, "main")]


def test_a_track_whose_time_goes_back_is_paired_by_time():
    """Two writers share it, one after the other in the file; other tracks are not disturbed."""
    found = read_back(
        trace(
            *MAIN,
            thread(3, 7, 71, "io"),
            *(begin(100, 2, "a"), begin(120, 2, "inner"), end(130, 2), end(150, 2)),
            *(begin(50, 2, "before"), end(60, 2)),
            *(begin(70, 3, "read", bytes=5), end(90, 3)),
            *(begin(55, 2, "nested"), end(57, 2)),
        )
    )

    assert slices(found) == [
        ("a", 50, 50, "main"),
        ("before", 0, 10, "main"),
        ("inner", 70, 10, "main"),
        ("nested", 5, 2, "main"),
        ("read", 20, 20, "io"),
    ]
    assert stats(found, "read") == {"bytes": 5}


def test_a_drawn_torch_trace_gives_what_its_json_gives():
    """An op, its call and its kernel, twice; the second op starts as the first ends."""
    events = [
        {"cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 9, "ts": 0, "dur": 100, "args": {}},
        *(
            event
            for k in range(2)
            for event in (
                {"cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 10 + 20 * k, "dur": 20,
                 "args": {"External id": k + 1, "Input Dims": [[2, 3], []]}},
                {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 12 + 20 * k, "dur": 5,
                 "args": {"correlation": 70 + k, "External id": k + 1}},
                {"cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 40 + 20 * k, "dur": 15.5,
                 "args": {"correlation": 70 + k, "device": 0, "stream": 7, "grid": [4, 1, 1], "block": [64, 1, 1],
                          "registers per thread": 16}},
            )
        ),
    ]  # fmt: skip
    name = {"ph": "M", "name": "thread_name", "pid": 9, "tid": 9, "args": {"name": "main"}}
    compare_with_json({"traceEvents": [name, *({"ph": "X", **event} for event in events)]})


def test_a_torch_trace_gives_what_its_json_gives(corpus: Path):
    """The same events, kinds, lines and stats, and so the same answer of every tool."""
    (file,) = [path for path in (corpus / "torch-h100-qwen").rglob("*.json*") if ".trace.json" in path.name][:1]
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    document = json.loads(text)
    for event in document["traceEvents"]:  # packets have whole ns, and no null
        if event.get("ph") == "X":
            event["ts"], event["dur"] = round(event["ts"], 3), round(event["dur"], 3)
            event["args"] = {key: value for key, value in event.get("args", {}).items() if value is not None}
    compare_with_json(document)


def compare_with_json(document: dict[str, Any]) -> None:
    """Both forms of one trace give the same tables and answers."""
    events = [event for event in document["traceEvents"] if event.get("ph") in "XM" and event.get("cat") != "Trace"]
    plain = {"baseTimeNanoseconds": document.get("baseTimeNanoseconds", 0), "traceEvents": events}
    wanted = read_json(json.dumps(plain).encode(), "a.pt.trace.json", "h")
    found = read(gzip.compress(p.torch_trace(document), 1), "a.pt.trace.pftrace.gz", "h")

    assert table(found) == table(wanted)
    assert found.framework == wanted.framework == "pytorch"
    for tool in all_tools():
        assert answer(tool, found) == answer(tool, wanted), tool.name


def answer(tool: Any, found: HostTrace) -> str:
    """What a tool says."""
    try:
        return json.dumps(tool.merge([tool.partial(found)]).to_dict(), default=str)
    except StepscopeError as error:
        return str(error.problem.code)


# ---- damage ----------------------------------------------------------------------------------------------------------

WHOLE = tuple(
    p.packets_of(*MAIN, *(each for k in range(40) for each in (begin(k * 10, 2, f"op{k}", n=k), end(k * 10 + 5, 2))))
)


def test_a_cut_file_gives_what_is_before_the_cut():
    whole, ends = b"".join(WHOLE), {b"".join(WHOLE[:k]) for k in range(len(WHOLE) + 1)}
    for size in range(0, len(whole), 7):
        try:
            found = read_back(whole[:size])
        except UnreadableError as error:
            assert size < len(WHOLE[0])
            assert error.problem.path == "a.pftrace"
            continue
        assert len(found.events) == sum(1 for k in range(40) if sum(map(len, WHOLE[: 3 + 2 * k])) <= size)
        assert ("truncated" in codes(found)) == (whole[:size] not in ends), size


def test_reading_goes_on_behind_damage():
    packets = list(WHOLE)
    packets[10] = b"\xff" * len(packets[10])  # no packet starts here
    packets[21] = packets[21][:2] + b"\x07" + packets[21][3:]  # a packet that cannot be read
    found = read_back(b"".join(packets))

    assert len(found.events) >= 37
    assert found.partial
    assert "damaged" in codes(found)


def test_what_is_lost_is_said():
    named = {10: 1, 13: p.CLEARED, 12: {2: {1: 1, 2: "op"}}}
    event = {9: p.BEGIN, 11: 2}
    found = read_back(
        trace(
            *MAIN,
            named,
            {8: 10, 10: 1, 13: p.NEEDED, 11: {**event, 10: 1}},
            end(20, 2),
            {8: 30, 10: 1, 13: p.NEEDED, 11: {**event, 10: 99}},  # no packet names 99
            end(40, 2),
            {8: 50, 10: 1, 13: p.NEEDED, 42: 1, 11: {**event, 10: 1}},  # packets before this one are lost
            {8: 60, 58: 77, 10: 8, 11: {9: p.INSTANT, 11: 2, 23: "when?"}},  # no snapshot has clock 77
        )
    )

    assert [name for name, *_ in slices(found)] == ["op", "unnamed", "when?"]
    assert codes(found) == ["lost-packets", "undefined-names", "unknown-clock"]
    assert [each.reason for each in found.problems] == [
        "the recorder lost packets 1 time",
        "1 reference to names that the file does not define",
        "1 time on a clock that the file does not relate to the others",
    ]
    assert all(each.kept and each.lost and each.hint for each in found.problems)
    assert found.partial


def test_compressed_packets_that_are_damaged_or_endless():
    inside = trace(*MAIN, begin(0, 2, "a"), end(7, 2))
    broken = bytearray(zlib.compress(inside * 50))
    broken[len(broken) // 2] ^= 0xFF
    found = read_back(trace(*MAIN, begin(0, 2, "a"), end(7, 2), {50: bytes(broken)}))
    bomb = read_back(trace(*MAIN, begin(0, 2, "a"), end(7, 2), {50: zlib.compress(bytes(1 << 26))}))

    assert codes(found) == codes(bomb) == ["damaged"]
    assert len(bomb.events) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"<html>", "HTML"),
        (b'{"traceEvents": []}', "JSON"),
        (bytes(100), "zeros"),
        (gzip.compress(b"text, not packets", mtime=0), "text"),
        (b"\x0a\xff", "no packet"),
    ],
)
def test_what_is_no_trace_is_refused(data: bytes, reason: str):
    with pytest.raises(UnreadableError, match=reason):
        read(data, "a.pftrace", "")


# ---- several processes -----------------------------------------------------------------------------------------------


def test_processes_in_one_file_are_hosts(tmp_path: Path):
    rows = [
        {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": pid, "ts": step * 1000.0 + at, "dur": took}
        for pid, took in ((41, 100.0), (42, 300.0))
        for step in range(3)
        for cat, name, at in (("user_annotation", f"ProfilerStep#{step}", 0), ("cpu_op", "aten::mm", 10))
    ]
    path = tmp_path / "job.pftrace"
    path.write_bytes(p.torch_trace({"traceEvents": rows}))
    profile = stepscope.load(path)

    assert profile.hosts == ("process 41", "process 42")
    assert [int(profile.trace(host).events.duration_ps.max()) for host in profile.hosts] == [100_000_000, 300_000_000]


# ---- names and folders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("w0.pftrace", "w0"),
        ("w0.pftrace.gz", "w0"),
        ("w0.123.pt.trace.pftrace.gz", "w0"),
        ("run.perfetto-trace", "run"),
        ("run.pftraces", None),
    ],
)
def test_names(name: str, host: str | None):
    found = format_of(name)
    assert (found.host_of(name) if found else None) == host


def test_a_trace_is_known_by_its_content():
    found = format_from_prefix(trace(*MAIN, begin(0, 2, "a"))[:1024])
    assert found is not None
    assert found.name == "perfetto"


def test_a_folder_of_ranks_is_a_session(tmp_path: Path):
    for rank in range(2):
        (tmp_path / f"rank{rank}.pftrace").write_bytes(trace(*MAIN, begin(0, 2, f"op{rank}"), end(5, 2)))
    (session,) = find_sessions(tmp_path)

    assert session.hosts == ("rank0", "rank1")
    assert len(stepscope.load(tmp_path).op_stats().to_dict()) > 0
