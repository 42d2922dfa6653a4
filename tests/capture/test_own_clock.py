"""A clock that is set during a capture: the steps stay as long as they were, and the profile says it."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.capture.assemble import describe_jump, find_marks, measure_jump_ns, settle_events
from stepscope.formats.xspace.reader import read
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, PlaneKind, TraceBuilder

MS = 10**9  # ps
HOUR = 3_600_000 * MS


@pytest.mark.parametrize(
    ("moved_s", "unix_s", "jump_s"),
    [(10, 3610, 3600), (10, -3590, -3600), (10, 10.05, 0), (3600, 3601.8, 0), (0.2, 0.5, 0.3)],
    ids=["forward", "back", "read at another moment", "slewed", "a short capture"],
)
def test_a_jump_is_told_from_an_adjusted_rate(moved_s, unix_s, jump_s):
    found = measure_jump_ns(round(moved_s * 1e9), round(unix_s * 1e9))

    assert round(found / 1e9, 6) == jump_s


def trace_of(place, steps=10, name="train"):
    """Steps of 10 ms, each with an op in its middle; `place` gives the time of each moment."""
    builder = TraceBuilder("host", start_unix_ns=10**18)
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    for step in range(steps):
        for title, begin, length in ((name, 0, 9), ("op", 3, 4)):
            start, end = place((step * 10 + begin) * MS), place((step * 10 + begin + length) * MS)
            facts = {"step_num": step, "_r": 1} if title == name else {}
            kind = EventKind.STEP_MARK if title == name else EventKind.OP
            line.event(title, start, end - start, kind, facts)
    return builder.build()


def settled_times(place, own=lambda at: at):
    content = settle_events(write(trace_of(place)), trace_of(own))
    if content is None:
        return None
    trace = read(content, "", "")
    ops = np.flatnonzero(trace.event_names() == trace.strings.find("op"))
    return (trace.events.start_ps[ops] / MS).tolist(), (trace.events.duration_ps[ops] / MS).tolist()


EXPECTED = ([10.0 * step + 3 for step in range(10)], [4.0] * 10)


@pytest.mark.parametrize(
    "place",
    [
        lambda at: at + HOUR * (at >= 55 * MS),
        lambda at: at * 3000,
        lambda at: at // 1000,
        lambda at: at + 7 * MS,
    ],
    ids=["set forward within a step", "stretched", "squeezed", "shifted"],
)
def test_events_are_put_on_the_clock_of_the_marks(place):
    starts, durations = settled_times(place)

    assert starts == pytest.approx(EXPECTED[0], abs=0.01)
    assert [length for at, length in enumerate(durations) if at != 5] == pytest.approx([4.0] * 9, abs=0.01)


def test_a_clock_that_is_set_back_into_the_capture_cannot_be_corrected():
    assert settled_times(lambda at: at - 30 * MS * (at >= 55 * MS) + 50 * MS) is None


def test_a_profile_without_marks_cannot_be_corrected():
    assert settle_events(write(trace_of(lambda at: at, steps=1)), trace_of(lambda at: at)) is None


def test_marks_are_found_by_their_stat_and_by_pytorchs_names():
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    line.event("ProfilerStep#7", 0, 5, EventKind.STEP_MARK)
    line.event("train", 10, 5, EventKind.STEP_MARK, {"step_num": 8})
    line.event("train", 20, 5, EventKind.STEP_MARK, {"step_num": 8})

    assert find_marks(builder.build()) == {7: (0, 5), 8: (10, 15)}


def test_the_sentence_says_which_way_and_whether_times_can_be_relied_on():
    assert "set forward by 3,600.0 s" in describe_jump(3600 * 10**9, settled=True)
    assert "set back by 1.5 s" in describe_jump(-1_500_000_000, settled=None)
    assert "do not rely on them" in describe_jump(10**9, settled=False)
