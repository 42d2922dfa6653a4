"""The XSpace reader on files that are cut, damaged, hostile, or no XSpace at all.

Whatever the bytes are, `read` returns a sound trace that says what is wrong, or raises UnreadableError.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xspace_build as x
from xspace_build import Unsigned, event, event_name, excerpt, line, plane, stat, stat_name

import native
from stepscope.errors import Problem, UnreadableError
from stepscope.formats.xspace.reader import read
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, HostTrace, Stats, StatTag

HOST = "/host:CPU"
CORPUS = ("jax-mi300x-attention", "jax-mi300x-conv", "tf-gpu-multi-worker", "tpu-inference")


def one_file(corpus: Path, name: str) -> bytes:
    return next((corpus / name).rglob("*.xplane.pb")).read_bytes()


def names(trace: HostTrace) -> list[str]:
    return [trace.name_of(row) for row in range(len(trace.events))]


def sound(trace: HostTrace) -> None:
    """Holds a trace against everything that its tables promise."""
    trace.check()
    events, lines = trace.events, trace.lines
    assert (events.duration_ps >= 0).all()
    assert (events.start_ps + events.duration_ps >= events.start_ps).all()
    assert (lines.event_end >= lines.event_begin).all()
    assert lines.event_end[-1:].tolist() in ([], [len(events)])
    same_line = np.diff(events.line) == 0
    assert (np.diff(events.start_ps)[same_line] >= 0).all()
    assert set(np.unique(events.kind).tolist()) <= set(EventKind)
    for stats in (trace.event_stats, trace.type_stats, trace.plane_stats):
        sound_stats(stats, len(trace.strings))
    keys = np.stack([trace.event_types.plane, trace.event_types.metadata_id])
    assert keys.shape == np.unique(keys, axis=1).shape


def sound_stats(stats: Stats, n_strings: int) -> None:
    assert (np.diff(stats.offsets) >= 0).all()
    assert stats.offsets[0] == 0
    assert ((stats.name >= 0) & (stats.name < n_strings)).all()
    assert set(np.unique(stats.tag).tolist()) <= set(StatTag)
    texts = stats.value[stats.tag >= StatTag.STRING]
    assert ((texts >= 0) & (texts < n_strings)).all()


def told(problem: Problem, size: int) -> None:
    """Holds a problem against the one form that all problems have."""
    assert problem.path == "some.xplane.pb"
    assert all((problem.code, problem.reason, problem.kept, problem.lost, problem.hint))
    if problem.code in ("truncated", "damaged"):
        assert problem.offset is not None
        assert 0 <= problem.offset < size


def attempt(data: bytes) -> HostTrace | None:
    """The trace of bytes of any sort, None if there is nothing in them."""
    try:
        trace = read(data, "some.xplane.pb", "")
    except UnreadableError as error:
        assert error.problem.path == "some.xplane.pb"
        assert error.problem.hint
        return None
    sound(trace)
    for problem in trace.problems:
        told(problem, len(data))
    lacking = {"truncated", "damaged", "joined", "repeated-planes"} & {problem.code for problem in trace.problems}
    assert trace.partial == bool(lacking)
    return trace


# -- files that are cut off --------------------------------------------------------------------------------------


def cuts(data: bytes) -> Iterator[tuple[int, HostTrace]]:
    """What is left of a file cut at every third percent of its length, where anything is."""
    for percent in range(3, 100, 3):
        size = len(data) * percent // 100
        trace = attempt(data[:size])
        if trace is not None:
            yield size, trace


@pytest.mark.parametrize("name", CORPUS)
def test_a_real_file_cut_anywhere_keeps_the_events_before_the_cut(name: str, corpus: Path) -> None:
    data = one_file(corpus, name)
    whole = read(data, "", "").events
    counts = [0]
    for size, trace in cuts(data):
        (problem,) = trace.problems
        assert problem.code == "truncated"
        assert problem.reason.endswith(f"after {size:,} bytes")
        assert problem.kept == f"{len(trace.events):,} events before the cut" or len(trace.events) == 1
        counts.append(len(trace.events))

    assert len(counts) > 31
    assert counts == sorted(counts)
    assert counts[-1] > 0.9 * len(whole)


@pytest.mark.parametrize("name", CORPUS)
def test_a_file_of_ours_cut_anywhere_keeps_the_names_too(name: str, corpus: Path) -> None:
    whole = read(one_file(corpus, name), "", "")
    counts = [0]
    for _, trace in cuts(write(whole)):
        kept = len(trace.events)
        unknown = trace.event_names() == 0
        assert not unknown.any()
        assert [problem.code for problem in trace.problems] == ["truncated"]
        # All lines but the last are complete, and a line that is cut loses its last events.
        complete = slice(0, int(trace.lines.event_begin[-1]) if len(trace.lines) else 0)
        assert (trace.events.start_ps[complete] == whole.events.start_ps[complete]).all()
        assert (trace.events.kind[complete] == whole.events.kind[complete]).all()
        counts.append(kept)

    assert len(counts) > 31
    assert counts == sorted(counts)


SMALL = plane(
    HOST,
    stat_name(1, "size"),
    event_name(1, "a"),
    event_name(2, "b"),
    line("python", event(1, at=1, ps=300, stats=[stat(1, 12), stat(1, "text")]), event(2, at=2, ps=300)),
    line("worker", event(1, at=3, ps=300)),
    plane_id=1,
) + plane("/device:GPU:0", line("Stream #1", event(7, at=4, ps=1 << 40)), event_name(7, "kernel"), plane_id=2)


def test_a_small_file_cut_at_every_byte() -> None:
    kept = [sorted(names(trace)) if (trace := attempt(SMALL[:size])) else None for size in range(len(SMALL))]

    assert list(dict.fromkeys(map(str, kept))) == [
        "None",
        "[]",
        "['a']",
        "['a', 'b']",
        "['a', 'a', 'b']",
        "['', 'a', 'a', 'b']",  # the device's names come last, and are cut off
    ]


def test_the_cut_is_told_where_reading_failed() -> None:
    begin = SMALL.index(event(2, at=2, ps=300))
    trace = attempt(SMALL[: begin + 4])

    assert trace is not None
    assert [str(problem) for problem in trace.problems] == [
        f"[truncated] some.xplane.pb at byte {begin}: the file ends inside the field that starts here, after "
        f"{begin + 4} bytes; kept: 1 event before the cut; lost: what followed; copy the file again, or record again "
        "if the capture was interrupted"
    ]


def test_names_that_are_cut_off_are_told_with_the_cut() -> None:
    data = plane(HOST, line("python", event(1, at=1), event(1, at=2)), event_name(1, "a"))
    trace = attempt(data[:-3])

    assert trace is not None
    assert names(trace) == ["", ""]
    assert [problem.code for problem in trace.problems] == ["truncated"]
    assert trace.problems[0].lost == "what followed, such as the names of 2 events"


def test_a_file_cut_between_two_planes_cannot_be_told_from_a_whole_one() -> None:
    host, device = (x.text(1, message) for _, _, message in x.fields(SMALL))

    assert host + device == SMALL
    assert read(host, "", "").problems == ()


# -- files with damage inside ------------------------------------------------------------------------------------


def damaged(*fields: bytes, kept: list[str], lost: str, at: bytes, reason: str) -> HostTrace:
    """Reads a plane with damage, told at the bytes `at`."""
    data = plane(HOST, event_name(1, "a"), event_name(2, "b"), stat_name(1, "size"), *fields)
    trace = attempt(data)
    assert trace is not None
    assert names(trace) == kept
    (problem,) = trace.problems
    assert (problem.code, problem.reason, problem.lost) == ("damaged", reason, lost)
    assert problem.offset == data.index(at)
    return trace


PAST_THE_END = "a field extends past the end of its message"
NO_FIELD = "this is not a field of the format"

BROKEN_EVENTS = [
    (x.number(1, 1) + b"\x22\x7f", PAST_THE_END),  # a stat longer than the event
    (x.number(1, 1) + b"\x10\xff\xff", PAST_THE_END),  # an offset without an end
    (x.number(1, 1) + b"\x10" + b"\xff" * 12, PAST_THE_END),
    (x.number(1, 1) + b"\x07", NO_FIELD),  # no such wire type
    (x.number(1, 1) + b"\x00\x00", NO_FIELD),  # no such number
    (x.number(1, 1) + x.text(4, stat(1, 5)) * 3 + b"\x22\x09\x01", PAST_THE_END),  # good stats come first
    (x.number(1, 1) + x.number(5, 4) * 3 + b"\x22\x09\x01", PAST_THE_END),
    (b"\x0c\x08\x02", NO_FIELD),  # the end of a group that never began
    (b"\x0b\x08\x02", PAST_THE_END),  # a group without an end
    (b"\x51\x01", PAST_THE_END),  # a fixed64 without room
]


@pytest.mark.parametrize(("broken", "reason"), BROKEN_EVENTS)
def test_a_broken_event_is_skipped(broken: bytes, reason: str) -> None:
    good = event(2, at=1, stats=[stat(1, 77)])
    trace = damaged(
        line("python", good, x.text(4, broken), good),
        line("worker", good),
        kept=["b", "b", "b"],
        lost="1 event",
        at=x.text(4, broken),
        reason=reason,
    )
    assert trace.stat_ints(["size"]).tolist() == [77, 77, 77]


def test_many_broken_events_write_over_nothing() -> None:
    # Each has more stats than all good events together.
    broken = x.text(4, x.number(1, 1) + x.text(4, stat(1, 666)) * 50 + b"\x22\x09\x01")
    good = event(2, stats=[stat(1, 77)])
    lines = [line(f"thread {row}", good, *[broken] * 20) for row in range(50)]
    trace = attempt(plane(HOST, event_name(2, "b"), stat_name(1, "size"), *lines))

    assert trace is not None
    assert trace.stat_ints(["size"]).tolist() == [77] * 50
    assert trace.problems[0].reason == f"{PAST_THE_END}, the first of 50 damaged places"
    assert trace.problems[0].lost == "1,000 events"


BROKEN_STATS = [
    (b"\x08\x01\x20", PAST_THE_END),
    (b"\x08\x01\x2a\x09ab", PAST_THE_END),
    (b"\x08\x01\x11\x00", PAST_THE_END),
    (b"\x08\x01\x20" + b"\x80" * 11, PAST_THE_END),
    (b"\x08\x01\x07", NO_FIELD),
]


@pytest.mark.parametrize(("broken", "reason"), BROKEN_STATS)
def test_a_broken_stat_costs_its_value_only(broken: bytes, reason: str) -> None:
    first = event(1, at=1, stats=[broken, stat(1, 5)])
    trace = damaged(line("python", first, event(2, at=2)), kept=["a", "b"], lost="1 stat", at=first, reason=reason)
    assert trace.event_stats.tag.tolist() == [StatTag.NONE, StatTag.INT]


def test_a_broken_stat_of_a_type_or_a_plane() -> None:
    broken = b"\x08\x01\x2a\x09ab"
    data = plane(HOST, event_name(1, "a", stats=[broken]), x.text(6, broken), stat_name(1, "size"))
    trace = attempt(data)

    assert trace is not None
    assert trace.type_stats.tag.tolist() == trace.plane_stats.tag.tolist() == [StatTag.NONE]
    assert [(problem.code, problem.offset) for problem in trace.problems] == [("damaged", data.index(broken))]


def test_a_broken_line_ends_there_and_the_next_one_is_read() -> None:
    damaged(
        line("python", event(1, at=1), b"\x07\x01\x02\x03", event(1, at=2)),
        line("worker", event(2)),
        kept=["a", "b"],
        lost="the rest of the line or plane that is damaged",
        at=b"\x07\x01\x02\x03",
        reason=NO_FIELD,
    )


def test_a_broken_plane_ends_there_and_the_next_one_is_read() -> None:
    first = plane(HOST, line("python", event(1)), event_name(1, "a"), b"\xff" * 12, line("python", event(1)))
    second = plane("/device:GPU:0", line("worker", event(1)), event_name(1, "b"))
    trace = attempt(first + second)

    assert trace is not None
    assert names(trace) == ["a", "b"]
    assert [(p.code, p.reason) for p in trace.problems] == [("damaged", "a number has no end")]


def test_an_event_longer_than_its_line() -> None:
    too_long = b"\x22\x85\x01" + x.number(1, 1)
    damaged(
        x.text(3, x.text(2, "python") + event(1) + too_long),
        line("worker", event(2)),
        kept=["a", "b"],
        lost="the rest of the line or plane that is damaged",
        at=too_long,
        reason=PAST_THE_END,
    )


def test_damage_and_a_cut_are_two_problems() -> None:
    broken = x.text(4, b"\x07")
    data = plane(HOST, event_name(1, "a"), line("python", event(1), broken), line("worker", event(1), event(1)))
    trace = attempt(data[:-2])

    assert trace is not None
    assert names(trace) == ["a", "a"]
    assert [(p.code, p.offset) for p in trace.problems] == [
        ("truncated", len(data) - len(event(1))),
        ("damaged", data.index(broken)),
    ]


# -- events that make no sense -----------------------------------------------------------------------------------


def test_events_whose_names_are_missing_are_kept() -> None:
    a, b, c = event(5, at=1, ps=2), event(1 << 50, at=3), event(-1, at=4, stats=[stat(9, 1)])
    trace = attempt(plane(HOST, line("python", a, b, c, a), event_name(5, "a")))

    assert trace is not None
    assert names(trace) == ["a", "a", "", ""]
    assert trace.event_types.metadata_id.tolist() == [5, -1, 1 << 50]
    assert trace.stats_of_event(3) == {"": 1}
    assert [str(problem) for problem in trace.problems] == [
        "[unnamed-events] some.xplane.pb: the file lacks the names of 2 of its 4 events; kept: their times and stats; "
        "lost: what they are: they count as unknown work; the program that wrote the file left them out; record again "
        "if the names matter"
    ]


def test_missing_names_of_several_planes_are_told_apart() -> None:
    trace = attempt(plane(HOST, line("python", event(1), event(2))) + plane(HOST, line("python", event(2), event(1))))

    assert trace is not None
    assert trace.event_types.plane.tolist() == [0, 0, 1, 1]
    assert trace.event_types.metadata_id[trace.events.type].tolist() == [1, 2, 2, 1]


EDGE = (1 << 63) - 1
IMPOSSIBLE = [
    # start of the line in ns, offset and duration in ps; expected start and duration
    (0, 0, 0, (0, 0)),
    (5, -9_000, 1, (-4_000, 1)),
    (0, EDGE, 5, (0, 0)),
    (0, -EDGE - 1, 5, (0, 0)),
    (3, 4, EDGE, (3_004, 0)),
    (3, 4, -1, (3_004, 0)),
    (3, 4, -EDGE - 1, (3_004, 0)),
    (EDGE, 4, 5, (4, 5)),  # absolute, and the first: it is the start
    (-EDGE - 1, 4, 5, (4, 5)),
    (10**16, 4, 5, (4, 5)),
    ((1 << 61) // 1000, 1 << 60, 5, ((1 << 61) // 1000 * 1000, 0)),
    (-(1 << 61) // 1000 + 1, -(1 << 60), 5, ((-(1 << 61) // 1000 + 1) * 1000, 0)),
    (0, 1 << 61, 1 << 61, (1 << 61, 1 << 61)),
    (0, -(1 << 61), 1 << 61, (-(1 << 61), 1 << 61)),
]


@pytest.mark.parametrize(("start_ns", "at", "ps", "expected"), IMPOSSIBLE)
def test_times_at_the_edges_of_what_can_be(start_ns: int, at: int, ps: int, expected: tuple[int, int]) -> None:
    trace = attempt(plane(HOST, line("python", event(1, at=at, ps=ps), start_ns=start_ns), event_name(1, "a")))

    assert trace is not None
    assert (int(trace.events.start_ps[0]), int(trace.events.duration_ps[0])) == expected
    believed = expected == (start_ns * 1000 + at, ps) or start_ns == EDGE
    assert [problem.code for problem in trace.problems] == ([] if believed else ["impossible-times"])


def test_a_damaged_start_of_one_line_leaves_the_others_alone() -> None:
    start = 1_700_000_000_000_000_000
    starts = [start + 5, 2 * 10**17, start, start + 9]
    lines = [line("python", event(1), start_ns=one) for one in starts]
    trace = attempt(plane(HOST, *lines, event_name(1, "a")))

    assert trace is not None
    assert trace.events.start_ps.tolist() == [5_000, 0, 0, 9_000]
    assert [problem.code for problem in trace.problems] == ["impossible-times"]


@pytest.mark.parametrize("told_ns", [0, (1 << 64) - 1, 1 << 63])
def test_an_impossible_start_of_the_session_is_unknown(told_ns: int) -> None:
    trace = attempt(plane(HOST, line("python")) + x.environment(told_ns, told_ns))

    assert trace is not None
    assert (trace.start_unix_ns, trace.stop_unix_ns) == (None, None)


def test_a_start_of_the_session_that_is_no_whole_number_is_unknown() -> None:
    told = x.stat_name(1, "profile_start_time"), x.plane_stat(1, 1.5)
    trace = attempt(plane(HOST, line("python")) + plane("Task Environment", *told))

    assert trace is not None
    assert trace.start_unix_ns is None


HOSTILE_NAMES = [
    b"\xff\xfe\x80",
    b"\x00\x00\x00",
    b"\x1b[31mred\x1b[0m\x07",
    b"x" * 1_000_000,
    b"Iterator::" * 100_000,
    b"a:" * 500_000,
    "\u202e\U0001f4a9\ud7ff".encode(),
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_may_be_any_bytes(name: bytes) -> None:
    fields = line(name, event(1, stats=[stat(1, name)])), event_name(1, name), stat_name(1, name)
    trace = attempt(plane(name, *fields) + plane(HOST, *fields) + plane("/device:GPU:0", *fields) + x.text(2, name))

    assert trace is not None
    row = int(trace.planes.name[0])
    assert trace.strings.raw(row) == name
    assert trace.event_names().tolist() == trace.lines.name.tolist() == trace.event_stats.name.tolist() == [row] * 3
    assert trace.event_stats.value.tolist() == [row] * 3
    assert trace.problems == ()


# -- files of unusual shape --------------------------------------------------------------------------------------

MORE_THAN_16_BITS = 66_000


def test_more_lines_than_sixteen_bits_count() -> None:
    lines = b"".join(line(f"thread {row}", event(1, at=row), line_id=row) for row in range(MORE_THAN_16_BITS))
    trace = attempt(plane(HOST, lines, event_name(1, "a")))

    assert trace is not None
    assert trace.lines.line_id.tolist() == list(range(MORE_THAN_16_BITS))
    assert trace.events.start_ps.tolist() == list(range(MORE_THAN_16_BITS))


def test_more_planes_than_sixteen_bits_count() -> None:
    trace = attempt(x.text(1, b"") * MORE_THAN_16_BITS + plane(HOST, line("python", event(1)), event_name(1, "a")))

    assert trace is not None
    assert (len(trace.planes), names(trace)) == (MORE_THAN_16_BITS + 1, ["a"])


def test_lines_without_events_events_without_fields_stats_without_fields() -> None:
    trace = attempt(plane(HOST, x.text(3, b"") * 3, x.text(3, x.text(4, b"") + x.text(4, x.text(4, b"") * 2))))

    assert trace is not None
    assert np.diff(trace.lines.event_begin, append=2).tolist() == [0, 0, 0, 2]
    assert trace.event_stats.tag.tolist() == [StatTag.NONE, StatTag.NONE]


# -- nothing to be had -------------------------------------------------------------------------------------------

NOTHING: list[tuple[bytes, str, str]] = [
    (b"", "empty", "the file is empty"),
    (b"step,loss\n1,0.5\n", "unreadable", "it looks like text"),
    (b"\nA line that starts like a plane of sixty-five bytes does, by accident, and goes on.", "unreadable", "text"),
    (b'{"traceEvents": []}', "unreadable", "it looks like JSON"),
    (b"  [1]", "unreadable", "it looks like JSON"),
    (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "unreadable", "it looks like gzip data"),
    (bytes(4096), "unreadable", "it starts with zeros"),
    (b"\xff" * 4096, "unreadable", "no plane of an XSpace can be read"),
    (b"\x0a", "unreadable", "no plane of an XSpace can be read"),
    (b"\x0a\x80", "unreadable", "no plane of an XSpace can be read"),
    (x.text(4, "a host and nothing else"), "unreadable", "no plane of an XSpace can be read"),
    (plane("")[:3], "unreadable", "no plane of an XSpace can be read"),
    (plane(HOST)[:-4], "unreadable", "no plane of an XSpace can be read"),  # not even its name
    (x.varint(1 << 3 | 2) + x.varint(1 << 60), "unreadable", "no plane of an XSpace can be read"),
]


@pytest.mark.parametrize(("data", "code", "words"), NOTHING)
def test_a_file_with_nothing_in_it_is_one_clear_error(data: bytes, code: str, words: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        read(data, "some.xplane.pb", "")

    problem = caught.value.problem
    assert (problem.code, problem.path, problem.offset) == (code, "some.xplane.pb", 0)
    assert words in problem.reason
    assert problem.hint


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes(seed: int) -> None:
    noise = np.random.default_rng(seed).bytes(10_000)
    attempt(noise)
    attempt(b"\x0a" + noise)
    attempt(x.text(1, noise))
    attempt(plane(HOST, x.text(3, noise), x.text(4, noise), x.text(5, noise), x.text(6, noise)))


# -- memory ------------------------------------------------------------------------------------------------------

HUGE = (1 << 60, (1 << 63) - 1, (1 << 64) - 1, 1 << 31, 1 << 40)
OF_HUGE_SIZE: dict[str, Any] = {
    "plane": lambda size: x.varint(1 << 3 | 2) + x.varint(size) + plane(HOST)[2:],
    "line": lambda size: plane(HOST, x.varint(3 << 3 | 2) + x.varint(size)),
    "event": lambda size: plane(HOST, x.text(3, x.varint(4 << 3 | 2) + x.varint(size))),
    "stat": lambda size: plane(HOST, line("l", x.text(4, x.varint(4 << 3 | 2) + x.varint(size)))),
    "text": lambda size: plane(HOST, line("l", event(1, stats=[x.number(1, 1) + b"\x2a" + x.varint(size)]))),
    "name": lambda size: plane(
        HOST, x.text(4, x.number(1, 1) + x.text(2, b"\x12" + x.varint(size))), line("l", event(1))
    ),
    "ids": lambda size: plane(HOST, event_name(size, "a"), stat_name(size, "b"), line("l", event(size))),
    "count": lambda size: plane(HOST, line("l", event(1, occurrences=size, ps=size))),
    "reference": lambda size: plane(HOST, line("l", event(1, stats=[stat(1, x.Ref(size)), stat(1, Unsigned(size))]))),
    "unknown": lambda size: plane(HOST, x.varint(99 << 3 | 2) + x.varint(size)),
}


def peak_bytes(data: bytes) -> int:
    """The most memory that reading held at a time."""
    attempt(data)  # what is loaded on first use does not count
    tracemalloc.start()
    try:
        attempt(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("what", OF_HUGE_SIZE)
def test_a_small_file_that_claims_much_gets_little(what: str, size: int) -> None:
    assert peak_bytes(OF_HUGE_SIZE[what](size) + plane("some more", event_name(1, "x" * 800))) < 2_000_000


SHAPES = {
    "planes": x.text(1, b"") * 20_000 + plane(HOST),
    "planes with names": b"".join(plane("p", event_name(4_000, "a"), stat_name(4_000, "b")) for _ in range(2_000)),
    "lines": plane(HOST, x.text(3, b"") * 20_000),
    "events": plane(HOST, x.text(3, x.text(4, b"") * 20_000)),
    "stats": plane(HOST, x.text(3, x.text(4, x.text(4, b"") * 20_000))),
    "types": plane(HOST, x.text(4, b"") * 20_000),
    "ids": plane(HOST, line("l", *(event(row << 32) for row in range(20_000)))),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_memory_is_in_proportion_to_the_file(shape: str) -> None:
    data = SHAPES[shape]
    assert peak_bytes(data) < 2_000_000 + 500 * len(data)


# -- fuzz --------------------------------------------------------------------------------------------------------


def mutated(data: bytes, rng: np.random.Generator, donors: list[bytes]) -> bytes:
    """The file with one to three injuries."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, len(out)))
        some = int(rng.integers(1, 9))
        match int(rng.integers(0, 8)):
            case 0:
                out[at] ^= 1 << int(rng.integers(0, 8))
            case 1:
                out[at : at + some] = rng.bytes(some)
            case 2:
                out[at:at] = rng.bytes(some)
            case 3:
                del out[at : at + some]
            case 4:  # a number, most likely a length, becomes huge
                out[at : at + some] = x.varint(int(rng.choice([1 << 60, (1 << 64) - 1, 1 << 31, 127, 1 << 14])))
            case 5:  # a number without an end
                out[at : at + some] = b"\xff" * int(rng.integers(1, 12))
            case 6:
                donor = donors[int(rng.integers(0, len(donors)))]
                begin = int(rng.integers(0, len(donor)))
                out[at : at + some * 20] = donor[begin : begin + int(rng.integers(1, 200))]
            case 7:
                del out[max(at, 1) :]
        if not out:
            break
    return bytes(out)


@cache
def small_files(corpus: Path) -> list[bytes]:
    """Excerpts of real files, as they are and as we write them."""
    excerpts = [excerpt(one_file(corpus, name), 3, 8) for name in CORPUS]
    return [*excerpts, *(write(read(data, "", "")) for data in excerpts[2:])]


def fuzz(corpus: Path, count: int, seed: int) -> tuple[int, int, int]:
    """Reads that many mutations; returns how many gave a whole trace, a partial one, and none."""
    rng = np.random.default_rng(seed)
    files = small_files(corpus)
    tally = [0, 0, 0]
    for row in range(count):
        trace = attempt(mutated(files[row % len(files)], rng, files))
        tally[2 if trace is None else int(trace.partial)] += 1
    return tally[0], tally[1], tally[2]


LOOPS_OF_READING = ("columns", "combine", "memory", "stats")  # and those of the folder wire/
LOOPS_OF_OTHER_FORMATS = ("wire/packets", "trace_json/scan")  # loaded and never called: taken as they are built


@pytest.mark.timeout(1200)  # eight modules are compiled, beside whatever else the machine does
@pytest.mark.skipif(importlib.util.find_spec("Cython") is None, reason="the checked build needs Cython")
def test_no_index_leaves_its_array(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops that read check no index, so one run has them check all; `make test-checked` does more of that."""
    monkeypatch.setenv("CFLAGS", "-O0 -g0")  # half the time of the compiler; the checks are the same
    folder = native.ROOT / "build" / "native-checked-reading"
    unread = [path.name for path in native.kernels(native.ROOT).glob("*.pyx") if path.stem not in LOOPS_OF_READING]
    others = [Path(name) for name in LOOPS_OF_OTHER_FORMATS]
    native.build_copy(folder, "checked", without=(*unread, *(f"{other.name}.pyx" for other in others)))
    for other in others:
        module = other.with_name(other.name + native.suffix())
        shutil.copy(native.kernels(native.ROOT) / module, native.kernels(folder) / module)
    script = "import sys, pathlib, test_xspace_damage as t; print(*t.fuzz(pathlib.Path(sys.argv[1]), 1_500, 7))"
    paths = [str(Path(__file__).parent), *sys.path]
    environment = native.checked_environment(folder, "checked")
    environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], *paths])
    done = subprocess.run(
        [sys.executable, "-c", script, str(corpus)], env=environment, capture_output=True, text=True, timeout=600
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
    assert sum(map(int, done.stdout.split())) == 1_500


def test_a_thousand_mutations(corpus: Path) -> None:
    """`make fuzz` tries millions."""
    whole, partial, none = fuzz(corpus, 1_000, 2026)

    assert whole + partial + none == 1_000
    assert min(whole, partial) > 50  # the injuries are neither all deadly nor all harmless
