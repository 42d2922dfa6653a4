"""The timeline: rows, merged slices, search, details and selections, drawn and compared with what must be there."""

from __future__ import annotations

import numpy as np
import pytest
from draw import MS, Sort, draw, traces
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.analysis.resources.counters import counter_window, counters_of
from stepscope.analysis.timeline import details, load, search, selection
from stepscope.analysis.timeline.index import Window, find_slices, index_of, level_for
from stepscope.analysis.timeline.load import group_load
from stepscope.analysis.timeline.tracks import activity_ps, all_groups, group_named, groups_of
from stepscope.errors import UsageError
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder, Trait

MANY = 1_000_000
K = EventKind


def spans(events: list[tuple[int, int]], names: str = "") -> HostTrace:
    """A trace of one thread; each event has a start and a length in ps, and a letter as its name."""
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for at, (start, length) in enumerate(events):
        line.event(names[at] if names else "e", start, length, K.OP)
    return builder.build()


def shown(trace: HostTrace, found: Window) -> list[tuple[int, int, int, int, str]]:
    """Row, start, end, number of events and the longest one's name of each slice."""
    row = np.repeat(found.rows, np.diff(found.row_begin))
    names = [trace.name_of(int(event)) for event in found.event]
    columns = (row, found.start_ps, found.end_ps, found.count)
    return list(zip(*(column.tolist() for column in columns), names, strict=True))


def everything(trace: HostTrace, begin: int, end: int, width: int, most: int = MANY) -> Window:
    return find_slices(trace, begin, end, range(index_of(trace).n_rows), width, most)


def test_tracks_on_which_ranks_communicate_are_told() -> None:
    trace = draw("""
        host main | LLL
        gpu0 s7   | KK
        gpu0 s20  |  NN
    """)
    assert [(each.name, each.communicates) for group in groups_of(trace) for each in group.tracks] == [
        ("s7", False), ("s20", True), ("main", False),
    ]  # fmt: skip


# -- rows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "lanes"),
    [
        pytest.param([(0, 10), (2, 3), (6, 2), (12, 1)], [0, 1, 1, 0], id="calls inside a call"),
        pytest.param([(0, 10), (0, 4), (1, 2)], [0, 1, 2], id="inside one another from one start"),
        pytest.param([(0, 4), (4, 4), (8, 1)], [0, 0, 0], id="one after the other without a gap"),
        pytest.param([(0, 6), (3, 6), (7, 1), (9, 2)], [0, 1, 0, 0], id="overlapping without nesting"),
        pytest.param([(0, 4), (0, 0), (2, 0), (4, 0)], [0, 1, 1, 0], id="events without a length"),
        pytest.param([(-9, 4), (-5, 9)], [0, 0], id="before the session's start"),
    ],
)
def test_no_two_events_of_a_row_overlap(events, lanes):
    assert index_of(spans(events)).lane.tolist() == lanes


def test_sums_of_occurrences_and_counters_are_not_drawn():
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    line.event("sum", 0, 9, K.AGGREGATE)
    line.event("work", 0, 9, K.OP)
    trace = builder.build()

    assert sorted(index_of(trace).lane.tolist()) == [-1, 0]
    assert [row[3:] for row in shown(trace, everything(trace, 0, 10, 10))] == [(1, "work")]


# -- slices ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "end", "width", "level"),
    [(0, 100, 100, 0), (0, 100, 99, 1), (0, 200, 100, 1), (5, 6, 10, 0), (0, 1 << 20, 1, 20), (0, 1 << 62, 1, 56)],
)
def test_a_cell_is_at_least_a_pixel_and_less_than_two(begin, end, width, level):
    assert level_for(begin, end, width) == level


#         0         1         2         3
#         0123456789012345678901234567890123
#         aa b ccccccccccccccc d e  fff   gg
_PICTURE = [(0, 2), (3, 1), (5, 15), (21, 1), (23, 1), (26, 3), (32, 2)]


@pytest.mark.parametrize(
    ("width", "slices"),
    [
        pytest.param(
            40,
            [(0, 0, 2, 1, "a"), (0, 3, 4, 1, "b"), (0, 5, 20, 1, "c"), (0, 21, 22, 1, "d"), (0, 23, 24, 1, "e"),
             (0, 26, 29, 1, "f"), (0, 32, 34, 1, "g")],
            id="a pixel a ps: every event by itself",
        ),
        pytest.param(
            10,
            [(0, 0, 4, 2, "a"), (0, 5, 20, 1, "c"), (0, 21, 24, 2, "d"), (0, 26, 29, 1, "f"), (0, 32, 34, 1, "g")],
            id="four ps a pixel: small ones of a cell are one, the first of the longest names it",
        ),
        pytest.param(
            5,
            [(0, 0, 4, 2, "a"), (0, 5, 20, 1, "c"), (0, 21, 24, 2, "d"), (0, 26, 29, 1, "f"), (0, 32, 34, 1, "g")],
            id="eight ps a pixel",
        ),
        pytest.param(
            2, [(0, 0, 29, 6, "c"), (0, 32, 34, 1, "g")], id="32 ps a pixel: what starts in one cell is one slice"
        ),
    ],
)  # fmt: skip
def test_slices_of_a_picture(width, slices):
    trace = spans(_PICTURE, "abcdefg")

    assert shown(trace, everything(trace, 0, 40, width)) == slices


def test_a_slice_knows_how_busy_it_is():
    found = everything(spans([(0, 2), (3, 1), (6, 1)]), 0, 64, 1)

    assert (found.busy_ps.tolist(), found.start_ps.tolist(), found.end_ps.tolist()) == ([4.0], [0], [7])


def test_what_reaches_into_the_window_is_in_it_and_what_does_not_is_not():
    trace = spans([(0, 2), (4, 30), (40, 2)], "abc")

    assert shown(trace, everything(trace, 16, 32, 16)) == [(0, 4, 34, 1, "b")]
    assert shown(trace, everything(trace, 34, 40, 6)) == []


def test_an_event_without_length_is_in_the_window_that_begins_with_it():
    trace = spans([(8, 0), (16, 0)], "ab")

    assert shown(trace, everything(trace, 8, 16, 8)) == [(0, 8, 8, 1, "a")]


def overlapping(trace: HostTrace, found: Window, at: int) -> int:
    """How many events of a row overlap the window, widened to cells of the row's level; the slow and plain way."""
    index, level = index_of(trace), int(found.levels[at])
    row = int(found.rows[at])
    line = int(np.searchsorted(index.first_row, row, side="right")) - 1
    events = np.flatnonzero((trace.events.line == line) & (index.lane == row - index.first_row[line]))
    start = trace.events.start_ps[events]
    end = start + trace.events.duration_ps[events]
    begin_ps, end_ps = BEGIN_END[0] >> level << level, -(-BEGIN_END[1] >> level) << level
    return int(((start < end_ps) & ((end > begin_ps) | (start >= begin_ps))).sum())


BEGIN_END = [0, 0]


@settings(max_examples=150, deadline=None)
@given(traces(), st.integers(-5, 95), st.integers(1, 100), st.integers(1, 64), st.integers(1, 6))
def test_counts_add_up_to_the_events_that_overlap_the_window(trace, begin, length, width, thrift):
    BEGIN_END[:] = begin, begin + length
    rows = index_of(trace).n_rows
    found = everything(trace, begin, begin + length, width, most=4 * rows * thrift or 1)

    counts = [int(found.count[a:b].sum()) for a, b in zip(found.row_begin, found.row_begin[1:], strict=False)]
    assert counts == [overlapping(trace, found, at) for at in range(rows)]
    assert len(found.count) <= 4 * rows * thrift


def random_trace(events: int, seed: int = 0) -> HostTrace:
    """Bursts of short events with a few long ones, on one row."""
    random = np.random.default_rng(seed)
    length = np.where(
        random.random(events) < 0.02, random.integers(1_000, 90_000, events), random.integers(0, 40, events)
    )
    gap = np.where(
        random.random(events) < 0.01, random.integers(1_000, 400_000, events), random.integers(0, 30, events)
    )
    start = np.cumsum(gap + length) - length
    return spans(list(zip(start.tolist(), length.tolist(), strict=True)))


@pytest.mark.parametrize("level", [0, 3, 6, 9, 12, 15, 18, 21])
def test_stored_levels_say_what_the_events_themselves_say(level):
    trace = random_trace(20_000)
    index = index_of(trace)
    end = trace.span_ps()[1]
    width = max(1, -(-end >> level))

    found = find_slices(trace, 0, width << level, [0], width, MANY)

    own = index.rows.order[: index.rows.begin[1]]
    start, stop = index.rows.start[own], (index.rows.start + index.rows.duration)[own]
    small = (stop - start) < (1 << level)
    joined = small[1:] & small[:-1] & (start[1:] >> level == start[:-1] >> level)
    first = np.flatnonzero(np.concatenate([[True], ~joined]))
    assert found.start_ps.tolist() == start[first].tolist()
    assert found.count.tolist() == np.diff(np.append(first, len(start))).tolist()
    assert found.end_ps.tolist() == stop[np.append(first[1:], len(start)) - 1].tolist()
    assert found.busy_ps.tolist() == np.add.reduceat((stop - start).astype(float), first).tolist()
    longest = np.maximum.reduceat(stop - start, first)
    assert trace.events.duration_ps[found.event].tolist() == longest.tolist()


def test_an_answer_never_holds_more_slices_than_asked_for_and_never_leaves_an_event_out():
    trace = random_trace(20_000)
    end = trace.span_ps()[1]

    found = everything(trace, 0, end, 4_000, most=100)

    assert len(found.count) <= 100
    assert found.count.sum() == 20_000
    assert found.levels[0] > level_for(0, end, 4_000)


def test_rows_with_little_in_them_keep_their_detail_beside_a_crowded_one():
    builder = TraceBuilder("host")
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    crowded, calm = builder.line(plane, "crowded"), builder.line(plane, "calm")
    for at in range(5_000):
        crowded.event("c", 10 * at, 5, K.OP)
    for at in range(20):
        calm.event("d", 2_500 * at, 9, K.OP)
    trace = builder.build()

    found = everything(trace, 0, 50_000, 50_000, most=300)

    assert found.levels[1] == 0
    assert np.diff(found.row_begin).tolist()[1] == 20
    assert len(found.count) <= 300


@pytest.mark.parametrize(
    ("begin", "end", "width", "most"), [(5, 5, 10, 100), (5, 4, 10, 100), (0, 9, 0, 100), (0, 9, 10, 3)]
)
def test_a_window_that_makes_no_sense_is_refused(begin, end, width, most):
    with pytest.raises(UsageError):
        everything(spans([(0, 1)]), begin, end, width, most)


# -- tracks ------------------------------------------------------------------------------------------------------


def tree(trace: HostTrace) -> list[str]:
    lines: list[str] = []

    def add(groups, indent):
        for group in groups:
            lines.append(f"{indent}{group.kind} {group.name} /{group.lanes}")
            for track in group.tracks:
                lines.append(f"{indent}  {track.kind} {track.name} {track.detail}".rstrip() + " *" * track.main)
            add(group.groups, f"{indent}  ")

    add(groups_of(trace), "")
    return lines


@pytest.mark.parametrize(
    ("kinds", "lanes"),
    [((LineKind.OTHER, LineKind.OTHER), 2), ((LineKind.OTHER, LineKind.THREAD), 1), ((LineKind.THREAD,) * 2, 2)],
)
@pytest.mark.parametrize("plane", [PlaneKind.OTHER, PlaneKind.HOST])
def test_a_group_has_as_many_lanes_as_its_load_counts(plane, kinds, lanes):
    builder = TraceBuilder("host")
    row = builder.plane("x", plane)
    for kind in kinds:
        builder.line(row, "line", kind=kind).event("work", 0, 64, K.OP)
    trace = builder.build()
    (group,) = groups_of(trace)

    assert (group.lanes, group_load(trace, group, 0, 1, 6).tolist()) == (lanes, [lanes])


def test_devices_come_first_and_the_thread_with_the_steps_leads_the_host():
    builder = TraceBuilder("host")
    host = builder.plane("/host:CPU", PlaneKind.HOST)
    for name, length, kind in (
        ("busy", 90, K.OP), ("python3", 9, K.STEP_MARK), ("pool/11", 5, K.OP), ("pool/12", 6, K.OP),
        ("pool/-13", 7, K.OP), ("idle", 0, None),
    ):  # fmt: skip
        line = builder.line(host, name)
        if kind is not None:
            line.event("x", 0, length, kind)
    for ordinal in (1, 0):
        gpu = builder.plane(f"/device:GPU:{ordinal}", PlaneKind.GPU, ordinal)
        for name, line_kind in (
            ("Stream #7(Compute,MemcpyH2D)", LineKind.STREAM), ("TensorFlow Name Scope", LineKind.DERIVED),
            ("TensorFlow Ops", LineKind.DERIVED), ("XLA Modules", LineKind.MODULES), ("Steps", LineKind.STEPS),
        ):  # fmt: skip
            builder.line(gpu, name, kind=line_kind).event("x", 0, 5, K.KERNEL)
    trace = builder.build()

    device = [
        "  steps Steps", "  modules XLA Modules", "  ops TensorFlow Ops", "  scopes TensorFlow Name Scope",
        "  stream Stream 7 Compute, MemcpyH2D",
    ]  # fmt: skip
    assert tree(trace) == [
        "device GPU:0 /1", *device, "device GPU:1 /1", *device,
        "host Host threads /5", "  thread python3 *", "  thread busy",
        "  pool pool /3", "    thread pool 4294967283", "    thread pool 12", "    thread pool 11",
    ]  # fmt: skip
    assert groups_of(trace)[2].empty == ("idle",)


def test_a_group_is_found_by_its_id_and_holds_the_lines_of_all_below_it():
    trace = draw(
        """
        host main | M--
        host p/1  | a
    """.replace("p/1 ", "p1  ")
    )
    host = groups_of(trace)[0]

    assert group_named(trace, host.id) is host
    assert sorted(host.lines()) == [0, 1]
    assert group_named(trace, "nothing") is None


def test_the_first_view_leaves_out_what_lies_far_from_the_work():
    events = [(0, 1), *((10_000 + at, 1) for at in range(2_000)), (90_000, 1)]
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for start, length in events:
        line.event("e", start, length, K.OP)
    for step in range(4):
        line.event("train", 9_800 + 600 * step, 600, K.STEP_MARK, {"step_num": step})

    begin, end = activity_ps(builder.build())

    assert 9_500 < begin <= 9_800
    assert 12_200 <= end < 12_500
    assert activity_ps(spans(events)) == (0, 90_001), "without steps nothing says that the work is what matters"


def test_the_first_view_holds_the_step_and_only_the_work_that_is_near_it():
    trace = draw("""
        host main |                     M1------
        gpu0 s7   | k                 k k--k----k-                      k----
    """)

    begin, end = activity_ps(trace)

    assert 16 * MS < begin < 18 * MS, "the copy before the step is in the picture, the first kernel is not"
    assert 29 * MS < end < 31 * MS
    assert activity_ps(spans([(0, 1), (90_000, 1)])) == (0, 90_001), "a trace without steps is shown whole"


# -- load and counters -------------------------------------------------------------------------------------------


def test_a_device_is_busy_while_any_of_its_streams_is():
    trace = draw("""
        gpu0 s | k---  k-
        gpu0 t |   k--
    """)

    # The picture in cells of 2 ms: the streams cover 0-5 and 6-8.
    found = group_load(trace, groups_of(trace)[0], 0, 5, (2 * MS - 1).bit_length()) * (1 << (2 * MS - 1).bit_length())

    assert found.sum() == pytest.approx(7 * MS)


def test_a_host_is_as_busy_as_the_number_of_its_threads_at_work():
    trace = spans([(0, 8), (1, 2), (16, 4)])
    builder = TraceBuilder("host")
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    for name in ("a", "b"):
        line = builder.line(plane, name)
        line.event("x", 0, 8, K.OP)
        line.event("y", 1, 2, K.OP)
    two = builder.build()

    assert group_load(trace, groups_of(trace)[0], 0, 3, 3).tolist() == [1.0, 0.0, 0.5]
    assert group_load(two, groups_of(two)[0], -8, 3, 3).tolist() == [0.0, 2.0, 0.0]


@given(traces(), st.integers(0, 20), st.integers(-6, 40), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_the_load_of_wide_cells_is_that_of_the_narrow_ones_in_them(trace, extra, first, cells):
    for group in all_groups(groups_of(trace)):
        level = load._coarse_of(trace, group).level + extra
        begin = first << level
        expected = load._cover(load._spans_of(trace, group), begin, cells, level) / (1 << level)

        assert group_load(trace, group, begin, cells, level).tolist() == expected.tolist()


def counting(values: list[tuple[int, float]]) -> HostTrace:
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "queue", kind=LineKind.COUNTERS)
    for start, value in values:
        line.event("queue length", start, 0, K.COUNTER, {"counter_value": value})
    return builder.build()


def test_a_counter_says_what_held_before_and_the_extremes_of_each_cell():
    (counter,) = counters_of(counting([(0, 5.0), (9, 1.0), (10, 7.0), (11, 3.0), (24, 4.0)]))

    found = counter_window(counter, 8, 3, 3)

    assert (counter.name, counter.unit) == ("queue length", "")
    rows = zip(found.cell.tolist(), found.lowest.tolist(), found.highest.tolist(), found.last.tolist(), strict=True)
    assert list(rows) == [(-1, 5, 5, 5), (0, 1, 7, 3), (2, 4, 4, 4)]
    assert found.count.tolist() == [0, 3, 1]


def test_values_that_are_no_numbers_are_no_values_of_a_counter():
    (counter,) = counters_of(counting([(0, 5.0), (9, float("nan")), (10, float("inf"))]))

    assert counter.value.tolist() == [5.0]


def test_memory_in_use_is_a_counter():
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for start, kind, heap in ((1, K.ALLOCATION, 100), (5, K.ALLOCATION, 300), (8, K.DEALLOCATION, 50)):
        line.event("m", start, 0, kind, {"allocator_name": "cpu", "bytes_allocated": heap, "bytes_reserved": 0})

    (counter,) = counters_of(builder.build())

    assert (counter.name, counter.unit) == ("Memory in use: cpu", "bytes")
    assert (counter.time_ps.tolist(), counter.value.tolist()) == ([1, 5, 8], [100, 300, 50])


# -- search ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "regex", "names"),
    [
        ("mat", False, ["MatMul", "matmul_1"]),
        ("MATMUL_", False, ["matmul_1"]),
        (".", False, []),
        ("^mat.*l$", True, ["MatMul"]),
        ("mul|add", True, ["MatMul", "Add", "matmul_1"]),
        ("(", False, []),
    ],
)
def test_names_are_found_by_a_part_or_a_pattern_in_either_case(text, regex, names):
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for at, name in enumerate(("MatMul", "Add", "matmul_1")):
        line.event(name, at, 1, K.OP)
    trace = builder.build()

    assert [trace.name_of(int(row)) for row in search.find_events(trace, text, regex).rows] == names


@pytest.mark.parametrize(("text", "regex"), [("", False), ("(", True), ("x" * 501, False)])
def test_a_search_that_makes_no_sense_is_refused(text, regex):
    with pytest.raises(UsageError):
        search.find_events(spans([(0, 1)]), text, regex)


def test_a_pattern_that_would_take_others_forever_takes_no_time():
    trace = spans([(0, 1)])

    assert len(search.find_events(trace, "(e+)+$" * 20, regex=True).rows) == 0


def test_names_that_are_no_text_can_be_searched():
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    line.event("ab\udcff\udcfe<script>", 0, 1, K.OP)
    trace = builder.build()

    assert len(search.find_events(trace, "<SCRIPT>").rows) == 1


def test_matches_are_walked_in_order_of_time_across_threads_and_round_the_end():
    trace = draw("""
        host a | k   k  x
        host b |  k  k
    """)
    found = search.find_events(trace, "k")

    def walk(forward: bool) -> list[tuple[int, int, int]]:
        at, event, seen = -1, -1, []
        for _ in range(5):
            place = search.find_nearest(trace, found, at, event, forward)
            event, at = place.event, int(trace.events.start_ps[place.event])
            seen.append((at // MS, int(trace.events.line[event]), place.number))
        return seen

    forward = [(0, 0, 1), (1, 1, 2), (4, 0, 3), (4, 1, 4), (0, 0, 1)]
    assert walk(forward=True) == forward
    assert walk(forward=False) == [(4, 1, 4), (4, 0, 3), (1, 1, 2), (0, 0, 1), (4, 1, 4)]


# -- selections --------------------------------------------------------------------------------------------------


def selection_rows(found: selection.SelectionSum) -> list[tuple[str, int, int, int]]:
    return [(row.name, row.events, row.total_ps // MS, row.self_ps // MS) for row in found.rows]


def test_a_selection_adds_up_what_is_inside_it():
    trace = draw("""
        host main | a---------
        host main |  b-- b--
        host main |   c
        gpu0 s    | k---
    """)

    whole = selection.sum_selection(trace, 0, 20 * MS, range(len(trace.lines)))
    part = selection.sum_selection(trace, 2 * MS, 6 * MS, [0])

    assert selection_rows(whole) == [("b", 2, 6, 5), ("a", 1, 10, 4), ("k", 1, 4, 4), ("c", 1, 1, 1)]
    assert (whole.events, whole.names, whole.total_ps // MS, whole.self_ps // MS) == (5, 4, 21, 14)
    assert selection_rows(part) == [("b", 2, 3, 2), ("a", 1, 4, 1), ("c", 1, 1, 1)]


def test_a_selection_is_summed_by_op_and_by_track():
    trace = draw("""
        host main | a-------
        host main |  L1
        host io   | b---
        gpu0 s    |     K1--
    """)  # the op a launches the kernel

    by_op = selection.sum_selection(trace, 0, 20 * MS, range(len(trace.lines)), by="op")
    by_track = selection.sum_selection(trace, 0, 20 * MS, range(len(trace.lines)), by="track")

    assert selection_rows(by_op) == [("a", 3, 14, 12), ("b", 1, 4, 4)]
    assert selection_rows(by_track) == [
        ("Host threads \N{MIDDLE DOT} main", 2, 10, 8),
        ("Host threads \N{MIDDLE DOT} io", 1, 4, 4),
        ("GPU:0 \N{MIDDLE DOT} s", 1, 4, 4),
    ]
    with pytest.raises(UsageError, match="not summed by 'colour'"):
        selection.sum_selection(trace, 0, 1, [0], by="colour")


def test_the_mark_of_a_step_is_a_frame_and_no_work():
    trace = draw("host main | S--------\nhost main |  b-- b--", {"S": Sort(EventKind.STEP_MARK, "ProfilerStep#1")})

    assert selection_rows(selection.sum_selection(trace, 0, 20 * MS, [0])) == [("b", 2, 6, 6)]


def test_names_beyond_the_most_are_added_up_and_not_left_out():
    trace = spans([(at * 10, at) for at in range(5)], "abcde")

    found = selection.sum_selection(trace, 0, 100, [0], most=2)

    assert [row.name for row in found.rows] == ["e", "d"]
    assert (found.rest.name, found.rest.events, found.rest.total_ps) == ("3 other names", 3, 3)
    assert (found.events, found.total_ps) == (5, 10)


@settings(max_examples=80, deadline=None)
@given(traces(), st.integers(-5, 95), st.integers(1, 100))
def test_a_selection_holds_exactly_what_overlaps_it(trace, begin, length):
    found = selection.sum_selection(trace, begin, begin + length, range(len(trace.lines)))

    start, stop = trace.events.start_ps, trace.events.start_ps + trace.events.duration_ps
    inside = (start < begin + length) & ((stop > begin) | (start >= begin))
    inside &= trace.events.kind != EventKind.STEP_MARK
    parts = np.minimum(stop, begin + length) - np.maximum(start, begin)
    assert found.events == inside.sum()
    assert found.total_ps == parts[inside].sum()
    assert found.self_ps <= found.total_ps


# -- details -----------------------------------------------------------------------------------------------------


def event_named(trace: HostTrace, name: str) -> int:
    return next(row for row in range(len(trace.events)) if trace.name_of(row) == name)


def test_details_of_an_event_tell_what_is_around_and_inside_it():
    trace = draw("""
        host main | a---------
        host main |  b-----
        host main |   c-e
    """)

    found = details.details_of(trace, event_named(trace, "b"))

    assert found.spot == details.Spot(1, "b", "op", 0, 1, MS, 6 * MS)
    assert (found.self_ps, found.inside, [spot.name for spot in found.around]) == (3 * MS, 2, ["a"])
    assert (found.first_inside.name, found.previous, found.next) == ("c", None, None)
    inner = details.details_of(trace, event_named(trace, "e"))
    assert ([spot.name for spot in inner.around], inner.previous.name, inner.inside) == (["a", "b"], "c", 0)
    assert (inner.layer, inner.place) == (None, None)


def test_details_of_an_event_tell_the_layer_and_the_line_of_the_program_around_it():
    sorts = {
        "f": Sort(K.PYTHON_CALL, "model.py(41): forward"),
        "n": Sort(K.PYTHON_CALL, "nn.Module: Attention_0"),
        "t": Sort(K.PYTHON_CALL, "torch/nn/functional.py(3): softmax"),
    }
    trace = draw(
        """
        host main | f---------
        host main |  n------
        host main |   t----
        host main |    a--
        """,
        sorts,
    )

    found = details.details_of(trace, event_named(trace, "a"))

    assert (found.layer, found.place) == ("Attention_0", "model.py:41")


def test_events_that_overlap_without_nesting_have_no_own_time():
    trace = spans([(0, 10), (5, 10)])

    assert details.details_of(trace, 0).self_ps is None
    assert details.details_of(trace, 1).self_ps == 10


def test_what_begins_in_an_event_and_ends_after_it_is_not_inside():
    found = details.details_of(spans([(0, 10), (2, 15), (3, 5)]), 0)
    assert (found.self_ps, found.inside, found.first_inside and found.first_inside.event) == (None, 1, 2)


def test_flows_lead_from_the_launch_to_the_kernel_and_back():
    trace = draw("""
        host main | M0--------
        host main |  L1
        gpu0 s    |    K1---
    """)
    launch, kernel = event_named(trace, "launch"), event_named(trace, "kernel")

    assert details.links_of(trace, kernel).cause.event == launch
    assert [spot.event for spot in details.links_of(trace, launch).effects] == [kernel]
    assert details.links_of(trace, kernel).step == "train 0"


@pytest.mark.parametrize("event", [-1, 1, 99])
def test_an_event_that_there_is_not_is_refused(event):
    with pytest.raises(UsageError):
        details.details_of(spans([(0, 1)]), event)


def test_long_names_keep_both_ends():
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    line.event("a" * 300 + "z" * 30, 0, 1, K.OP, traits=Trait.NONE)
    trace = builder.build()

    name = details.short_name(trace, 0)

    assert len(name) == 180
    assert name.startswith("aaa")
    assert name.endswith("z" * 30)
    assert details.details_of(trace, 0).full_name == "a" * 300 + "z" * 30


def test_rows_are_as_many_as_the_deepest_nesting():
    deep = spans([(at, 10_000 - 2 * at) for at in range(3_000)])

    assert index_of(deep).lane.tolist() == list(range(3_000))
    assert index_of(deep).row_count(0) == 3_000


def test_samples_stand_above_the_host_and_their_bookkeeping_is_the_profilers() -> None:
    builder = TraceBuilder("vm")
    planes = {
        "/host:CPU": PlaneKind.HOST,
        "/device:CUSTOM:Times of stack samples (Stepscope)": PlaneKind.CUSTOM_DEVICE,
        "/device:CUSTOM:Python stack samples (Stepscope)": PlaneKind.CUSTOM_DEVICE,
        "/device:GPU:0": PlaneKind.GPU,
    }
    for name, kind in planes.items():
        builder.line(builder.plane(name, kind), "main").event("work", 0, 10, EventKind.OP)

    shown = [(group.name, group.kind, group.tracks[0].is_profiler) for group in groups_of(builder.build())]

    assert shown == [
        ("GPU:0", "device", False),
        ("Times of stack samples", "other", True),
        ("Python stack samples", "other", False),
        ("Host threads", "host", False),
    ]
