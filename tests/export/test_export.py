"""Traces for other viewers: what is written is read back by our own reader, and by Perfetto's rules."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xspace_build
from draw import MS, draw
from xspace_build import read_varint

import stepscope
from stepscope.analysis.resources.counters import counters_of
from stepscope.analysis.timeline.index import is_drawn
from stepscope.analysis.trace.grouping import forest
from stepscope.cli.main import run
from stepscope.errors import UsageError
from stepscope.export import chrome, perfetto, pieces
from stepscope.formats.kineto.reader import read
from stepscope.formats.xspace import writer
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder

PICTURE = """
    host main | M0------M1------
    host main | I--a-L1 I--a-L2
    host io   |  J-J-    J-J-
    gpu0 s    |      K1-     K2-
"""
CORPUS = ("tf-gpu-multi-worker", "jax-mi300x-conv", "tpu-inference", "torch-v100-resnet50-workers0")


def chrome_text(*traces: HostTrace) -> bytes:
    return b"".join(chrome.pieces(traces))


def rows(trace: HostTrace) -> list[tuple[Any, ...]]:
    """Every event that has a place in time: plane, line, begin from the first one, length, name, kind."""
    drawn = np.flatnonzero(is_drawn(trace))
    first = int(trace.events.start_ps[drawn].min())
    types = trace.event_types
    short = np.where(types.display_name > 0, types.display_name, types.name)[trace.events.type]
    line_name = np.where(trace.lines.display_name > 0, trace.lines.display_name, trace.lines.name)
    found = []
    for row in drawn.tolist():
        line = int(trace.events.line[row])
        place = trace.plane_name(int(trace.lines.plane[line])), trace.strings[line_name[line]]
        time = int(trace.events.start_ps[row]) - first, int(trace.events.duration_ps[row])
        found.append((*place, *time, trace.strings[short[row]], EventKind(trace.events.kind[row])))
    return sorted(found)


def read_back(*traces: HostTrace) -> HostTrace:
    return read(chrome_text(*traces), "x.trace.json", "host")


# -- Chrome ------------------------------------------------------------------------------------------------------------


def test_our_own_reader_reads_what_was_written():
    trace = draw(PICTURE)
    back = read_back(trace)

    assert rows(back) == rows(trace)
    assert back.problems == ()
    assert [trace.name_of(row) for row in forest(back).cause[forest(back).cause >= 0]] == ["launch", "launch"]


@pytest.mark.parametrize("profile", CORPUS)
def test_real_profiles_come_back_as_they_were(corpus, profile):
    loaded = stepscope.load(corpus / profile)
    trace = loaded.trace(loaded.hosts[0])
    back = read_back(trace)

    # A line whose events overlap is written as several tracks.
    ours = Counter(row[2:] for row in rows(trace))
    theirs = Counter(row[2:] for row in rows(back))
    unlike = {row[2:4] for row in (ours - theirs)}
    silent = {row[:2] for row, kind in ((row, row[-1]) for row in (ours - theirs)) if kind == EventKind.OTHER}
    assert unlike == silent  # what nothing is known of is judged by its name again
    assert (forest(back).cause >= 0).sum() == (forest(trace).cause >= 0).sum()
    assert back.problems == ()


def lonely(stats: dict[str, Any], name: str = "work", start_ps: int = 0) -> HostTrace:
    """A trace of one event."""
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    line.event(name, start_ps, 1_234_567, EventKind.OP, stats)
    return builder.build()


STATS = [
    0,
    7,
    -1,
    10**18,
    1 - (1 << 63),
    (1 << 63) - 1,
    0.1,
    -1e-300,
    1e22,
    "text",
    'quo"te \\ \n \x00 \u202e \U0001f600',
]


@pytest.mark.parametrize("value", STATS, ids=range(len(STATS)))
def test_stats_keep_their_values(value):
    back = read_back(lonely({"a": 1, "key": value, "b": "x"}))

    found = back.stats_of_event(0)
    assert (found["a"], found["b"]) == (1, "x")
    assert found["key"] == value
    assert type(found["key"]) is type(value)


def test_what_json_has_no_word_for_is_written_all_the_same():
    text = chrome_text(lonely({"small": -(1 << 63), "big": (1 << 64) - 1, "nan": float("nan"), "raw": b"12345"}))
    (event,) = [line for line in json.loads(text)["traceEvents"] if line["ph"] == "X"]

    assert event["args"] == {"small": -(1 << 63), "big": (1 << 64) - 1, "nan": None, "raw": "5 bytes"}


@pytest.mark.parametrize(
    ("start_ps", "text"),
    [(0, b"0,"), (1, b"0.000001,"), (999_999, b"0.999999,"), (1_000_000, b"1,"), (1_050_000, b"1.050000,")],
)
def test_times_are_whole_picoseconds(start_ps, text):
    assert b'"ts":' + text in chrome_text(lonely({}, start_ps=start_ps))


def test_events_that_overlap_have_tracks_of_their_own():
    builder = TraceBuilder("host")
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU, 0), "Stream #7", kind=LineKind.STREAM)
    for start, length in ((0, 10), (2, 3), (5, 9), (20, 0), (20, 4)):
        stream.event(f"{start}+{length}", start * MS, length * MS, EventKind.KERNEL)
    lines = json.loads(chrome_text(builder.build()))["traceEvents"]

    names = {line["tid"]: line["args"]["name"] for line in lines if line["name"] == "thread_name"}
    tracks = {line["name"]: names[line["tid"]] for line in lines if line["ph"] == "X"}
    assert tracks == {
        "0+10": "Stream #7", "2+3": "Stream #7", "5+9": "Stream #7 (2)", "20+0": "Stream #7", "20+4": "Stream #7",
    }  # fmt: skip


def test_arrows_join_the_call_with_its_kernel():
    lines = json.loads(chrome_text(draw(PICTURE)))["traceEvents"]
    events = {(line["tid"], line["ts"]): line["name"] for line in lines if line["ph"] == "X"}
    begins = {line["id"]: events[line["tid"], line["ts"]] for line in lines if line["ph"] == "s"}
    ends = {line["id"]: events[line["tid"], line["ts"]] for line in lines if line["ph"] == "f"}

    assert len(begins) == len(ends)
    assert Counter((begins[number], ends[number]) for number in begins)["launch", "kernel"] == 2


def counting() -> HostTrace:
    builder = TraceBuilder("host")
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    builder.line(plane, "python").event("work", 0, 9 * MS, EventKind.OP)
    line = builder.line(plane, "_counters_", kind=LineKind.COUNTERS)
    for at, value in enumerate((5, 0, 2.5)):
        line.event("queue", at * MS, 0, EventKind.COUNTER, {"value": value})
    return builder.build()


def test_counters_come_back():
    (counter,) = counters_of(read_back(counting()))

    assert (counter.name, counter.value.tolist()) == ("queue", [5.0, 0.0, 2.5])
    assert counter.time_ps.tolist() == [0, MS, 2 * MS]


def test_hosts_stand_where_their_clocks_say():
    hosts = [
        draw("host main | M0--", host=name, start_unix_ns=start) for name, start in (("a", 5000), ("b", 1_005_000))
    ]
    lines = json.loads(chrome_text(*hosts))

    assert [line["ts"] for line in lines["traceEvents"] if line["ph"] == "X"] == [0, 1000]
    names = [line["args"]["name"] for line in lines["traceEvents"] if line["name"] == "process_name"]
    assert names == ["/host:CPU", "/host:CPU (b)"]
    assert lines["otherData"]["hosts"] == ["a", "b"]


def test_hosts_that_began_earlier_than_the_first_are_not_before_the_file():
    """Viewers drop what has a negative time."""
    hosts = [
        draw("host main | M0--", host=name, start_unix_ns=start) for name, start in (("a", 1_005_000), ("b", 5000))
    ]
    lines = json.loads(b"".join(pieces(hosts, "chrome", hosts=2)))
    first, second = (line["ts"] for line in lines["traceEvents"] if line["ph"] == "X")

    assert second - first == -1000
    assert second > 0


def test_hosts_without_a_common_clock_begin_together():
    hosts = [draw("host main | M0--", host=name, start_unix_ns=start) for name, start in (("a", 0), ("b", 1 << 60))]
    lines = json.loads(b"".join(pieces(hosts, "chrome", hosts=2)))
    first, second = (line["ts"] for line in lines["traceEvents"] if line["ph"] == "X")

    assert first == second


def test_what_has_no_place_in_time_is_counted():
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    line.event("sum", 0, 9, EventKind.AGGREGATE)
    line.event("work", 0, 9, EventKind.OP)
    told = json.loads(chrome_text(builder.build()))

    assert [line["name"] for line in told["traceEvents"] if line["ph"] == "X"] == ["work"]
    assert told["otherData"]["records_without_position_in_time"] == 1


# -- Perfetto ----------------------------------------------------------------------------------------------------------


def fields(data: bytes) -> dict[int, list[Any]]:
    """The fields of a protobuf message: integers, and bytes."""
    found: dict[int, list[Any]] = {}
    for number, wire, raw in xspace_build.fields(data):
        whole = {0: lambda raw: read_varint(raw, 0)[0], 1: lambda raw: int.from_bytes(raw, "little"), 2: bytes}
        found.setdefault(number, []).append(whole[wire](raw))
    return found


def packets(*traces: HostTrace) -> list[dict[int, list[Any]]]:
    return [fields(packet) for packet in fields(b"".join(perfetto.pieces(traces)))[1]]


@dataclass
class Seen:
    """What Perfetto makes of a file: finished slices, values, and what is wrong."""

    slices: list[tuple[str, int, int, str]] = field(default_factory=list)
    values: list[tuple[str, int, float]] = field(default_factory=list)
    leaving: dict[int, str] = field(default_factory=dict)
    reaching: dict[int, str] = field(default_factory=dict)
    args: dict[str, dict[str, Any]] = field(default_factory=dict)


def as_perfetto_does(*traces: HostTrace) -> Seen:
    """Sorts packets by time, keeps a stack for each track, looks up names of each sequence."""
    seen, tracks, names = Seen(), {}, {}
    stacks: dict[int, list[tuple[str, int]]] = {}
    everything = packets(*traces)
    for packet in everything:
        for entries in packet.get(12, []):
            for kind, values in fields(entries).items():
                for entry in map(fields, values):
                    names[packet[10][0], kind, entry[1][0]] = entry.get(2, [b""])[0].decode()
        for told in map(fields, packet.get(60, [])):
            name = told.get(2) or (fields(told[4][0]).get(5) if 4 in told else fields(told[3][0])[6])
            tracks[told[1][0]] = (name or [b""])[0].decode()
    for packet in sorted((one for one in everything if 11 in one), key=lambda one: one[8][0]):
        event, time, sequence = fields(packet[11][0]), packet[8][0], packet[10][0]
        track = event[11][0]
        if event[9] == [1]:
            name = names[sequence, 2, event[10][0]]
            stacks.setdefault(track, []).append((name, time))
            assert (sequence, 1, event[3][0]) in names
            seen.args[name] = dict(_args(event, names, sequence))
            seen.leaving |= dict.fromkeys(event.get(47, []), name)
            seen.reaching |= dict.fromkeys(event.get(48, []), name)
        elif event[9] == [2]:
            name, begin = stacks[track].pop()
            seen.slices.append((tracks[track], begin, time - begin, name))
        else:
            value = np.int64(event[44][0]).view(np.float64) if event[44][0] < 1 << 63 else float("nan")
            seen.values.append((tracks[track], time, float(value)))
    assert all(not stack for stack in stacks.values())
    return seen


def _args(event: dict[int, list[Any]], names: dict[Any, str], sequence: int) -> Iterator[tuple[str, Any]]:
    for told in map(fields, event.get(4, [])):
        ((kind, (value,)),) = ((kind, value) for kind, value in told.items() if kind != 1)
        if kind == 4 and value >= 1 << 63:
            value -= 1 << 64
        if kind == 5:
            value = float(np.uint64(value).view(np.float64))
        yield names[sequence, 3, told[1][0]], names[sequence, 29, value] if kind == 17 else value


def test_perfetto_sees_every_slice_on_its_track():
    trace = draw(PICTURE)
    seen = as_perfetto_does(trace)

    assert sorted(seen.slices) == sorted(
        (line, start // 1000, length // 1000, name) for _, line, start, length, name, _ in rows(trace)
    )
    joined = Counter((seen.leaving[number], seen.reaching[number]) for number in seen.reaching)
    assert joined["launch", "kernel"] == 2
    assert set(seen.leaving) == set(seen.reaching)


def test_perfetto_sees_stats_and_values():
    args = as_perfetto_does(lonely({"i": -5, "u": (1 << 64) - 1, "d": 0.5, "s": "text \u202e", "b": b"\xff"})).args[
        "work"
    ]
    assert args == {"i": -5, "u": (1 << 64) - 1, "d": 0.5, "s": "text \u202e", "b": "1 bytes"}

    assert as_perfetto_does(counting()).values == [
        ("queue", 0, 5.0),
        ("queue", MS // 1000, 0.0),
        ("queue", MS // 500, 2.5),
    ]


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(writer.write(draw(PICTURE)))
    return path


def test_the_command_writes_a_file_that_it_can_read(profile, tmp_path):
    output = tmp_path / "out.trace.json.gz"
    assert run(["trace", str(profile), "--format", "chrome", "--output", str(output)]) == 0

    assert json.loads(gzip.decompress(output.read_bytes()))
    before, after = (stepscope.load(path).overview().to_dict() for path in (profile, output))
    assert after["step_time_ms"] == before["step_time_ms"]
    assert after["breakdown_ms"] == before["breakdown_ms"]


def test_what_cannot_be_written_is_told(profile, tmp_path, capsys):
    assert run(["trace", str(profile), "--output", str(tmp_path / "away" / "x")]) == 1
    assert "folder does not exist" in capsys.readouterr().err
    assert run(["trace", str(profile), "--format", "pdf", "--output", "x"]) == 2
    assert run(["trace", str(tmp_path / "nothing"), "--output", str(tmp_path / "x")]) == 1
    assert list(tmp_path.glob("*x")) == []
    with pytest.raises(UsageError, match="no trace format 'pdf'"):
        pieces([], "pdf")


@pytest.mark.parametrize("profile", ["jax-mi300x-conv", "tpu-inference"])
def test_perfetto_sees_every_slice_of_real_profiles(corpus, profile):
    loaded = stepscope.load(corpus / profile)
    trace = loaded.trace(loaded.hosts[0])
    seen = as_perfetto_does(trace)

    drawn = np.flatnonzero(is_drawn(trace))
    start, length = trace.events.start_ps[drawn], trace.events.duration_ps[drawn]
    shift = max(0, -int(trace.span_ps()[0]))
    begin, end = (start + shift) // 1000, (start + length + shift) // 1000
    assert sorted((one[1], one[2]) for one in seen.slices) == sorted(
        zip(begin.tolist(), (end - begin).tolist(), strict=True)
    )
    assert len(seen.values) == sum(len(counter.time_ps) for counter in counters_of(trace))


def test_a_trace_without_events_is_a_valid_file():
    nothing = TraceBuilder("host").build()

    assert [line["ph"] for line in json.loads(chrome_text(nothing))["traceEvents"]] == ["M"]
    assert packets(nothing)
