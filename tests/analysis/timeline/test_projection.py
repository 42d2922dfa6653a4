"""Ranges of the host on the rows of devices: drawn, and compared with what must be there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from draw import MS, SORTS, draw

from stepscope.analysis.timeline import details, search, workbench
from stepscope.analysis.timeline.projection import add_projections, find_projected, projection_of, scope_name
from stepscope.analysis.timeline.tracks import all_groups, groups_of
from stepscope.errors import UsageError
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder

MODULE = {"Y": replace(SORTS["Y"], name="nn.Module: Linear_0")}


def projected(trace: HostTrace) -> list[tuple[str, str, str, float, float]]:
    """Stream, kind, name, start and end in ms of each range, row by row."""
    found = projection_of(trace)
    index = found.index
    line = np.searchsorted(index.first_row, np.arange(index.n_rows), side="right") - 1
    ranges = []
    for row in range(index.n_rows):
        places = index.rows.order[index.rows.begin[row] : index.rows.begin[row + 1]].tolist()
        at = int(line[row])
        stream, what = trace.line_label(int(found.stream[at])), "AMS"[int(found.what[at])]
        for place in places:
            start, length = int(index.rows.start[place]), int(index.rows.duration[place])
            name = scope_name(trace, int(found.type[place])) or trace.name_of(int(found.event[place]))
            ranges.append((stream, what, name, start / MS, (start + length) / MS))
    return ranges


def test_a_range_reaches_from_the_first_to_the_last_work_that_it_launched_on_each_stream():
    trace = draw("""
        host main | A--------     A------
        host main |  L1 L2 L3      L4 L5
        gpu0 s    |      K1--K2     K4--
        gpu0 t    |            K3
        gpu0 s    |                     K5
    """)

    assert projected(trace) == [
        ("s", "A", "forward", 5, 11),
        ("s", "A", "forward", 16, 22),
        ("t", "A", "forward", 11, 13),
    ]


def test_an_outer_range_holds_what_inner_ones_launched_and_lies_in_the_row_above():
    trace = draw(
        """
        host main | A---------
        host main | Y-- Y----
        host main |  L1  L2L3
        gpu0 s    |    K1- K2-K3
        """,
        MODULE,
    )

    assert projected(trace) == [
        ("s", "A", "forward", 3, 12),
        ("s", "M", "nn.Module: Linear_0", 3, 6),
        ("s", "M", "nn.Module: Linear_0", 7, 12),
    ]


def test_work_handed_to_another_thread_belongs_to_the_range_that_handed_it_over():
    trace = draw("""
        host main | A-----
        host main |  P1
        host pool |    C1---
        host pool |     L2
        gpu0 s    |         K2
    """)

    assert projected(trace) == [("s", "A", "forward", 8, 10)]


def test_annotations_that_the_profiler_laid_onto_streams_itself_are_not_laid_twice():
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main", 1)
    main.event("forward", 0, 4 * MS, EventKind.ANNOTATION)
    main.event("launch", 1 * MS, MS, EventKind.RUNTIME_CALL, {"correlation_id": 7})
    plane = builder.plane("/device:GPU:0", PlaneKind.GPU)
    stream = builder.line(plane, "Stream #7(Compute)", 7, LineKind.STREAM)
    stream.event("k", 3 * MS, MS, EventKind.KERNEL, {"correlation_id": 7})
    assert [each[2] for each in projected(builder.build())] == ["forward"]

    laid = builder.line(plane, "Stream #7 annotations", 8, LineKind.DERIVED)
    laid.event("forward", 3 * MS, MS, EventKind.SCOPE)
    assert projected(builder.build()) == []


def test_ranges_that_launch_each_other_in_a_circle_end():
    builder = TraceBuilder("host")
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    for own, other in ((1, 2), (2, 1)):
        line = builder.line(plane, f"thread {own}", own)
        line.event(f"range {own}", own * MS, 9 * MS, EventKind.ANNOTATION, {"_ct": 3, "_c": other})
        line.event("produce", (own + 1) * MS, MS, EventKind.OTHER, {"_pt": 3, "_p": own})
        line.event("launch", (own + 3) * MS, MS, EventKind.RUNTIME_CALL, {"correlation_id": own})
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU), "s", 7, LineKind.STREAM)
    stream.event("k", 20 * MS, MS, EventKind.KERNEL, {"correlation_id": 1})
    stream.event("k", 22 * MS, MS, EventKind.KERNEL, {"correlation_id": 2})

    names = {each[2] for each in projected(builder.build())}

    assert names == {"range 1", "range 2"}


@pytest.mark.parametrize("picture", ["host main | A--\n host main |  L1", "gpu0 s | K1", "host main | A--"])
def test_without_ranges_or_their_work_there_are_no_rows(picture):
    trace = draw(picture)

    assert projected(trace) == []
    assert add_projections(trace, groups_of(trace)) == groups_of(trace)


def test_a_projected_track_stands_above_its_stream_and_its_slices_name_the_range():
    trace = draw("""
        host main | A--------
        host main |  L1 L2
        gpu0 s    |      K1--K2
    """)
    (device,) = (group for group in all_groups(add_projections(trace, groups_of(trace))) if group.kind == "device")

    assert [(track.id, track.kind, track.detail) for track in device.tracks] == [
        (f"t{len(trace.lines)}", "projected", "s"),
        (device.tracks[1].id, "stream", ""),
    ]
    window = find_projected(trace, 0, 20 * MS, [0], 2_000, 100).window
    assert [trace.name_of(int(event)) for event in window.event] == ["forward"]
    assert trace.events.kind[window.event[0]] == EventKind.ANNOTATION


def scoped_kernels(*works: tuple[str, int, int], laid: bool = False) -> HostTrace:
    """Kernels of one stream: the path of each one's op, its start and end in ms; a copy where the path is empty."""
    builder = TraceBuilder("host")
    plane = builder.plane("/device:GPU:0", PlaneKind.GPU)
    stream = builder.line(plane, "s", 7, LineKind.STREAM)
    for path, start, end in works:
        kind = EventKind.KERNEL if path else EventKind.COPY_HOST_TO_DEVICE
        stream.event(f"k{start}", start * MS, (end - start) * MS, kind, {"tf_op": path} if path else {})
    if laid:
        rows = builder.line(plane, "Framework Name Scope", 8, LineKind.DERIVED)
        rows.event("net", 0, MS, EventKind.SCOPE)
    return builder.build()


NET = (
    ("jit(step)/jvp(net)/dense/dot_general:", 0, 2),
    ("", 2, 3),
    ("jit(step)/jvp(net)/dense/add:", 3, 4),
    ("jit(step)/jvp(net)/while/body/act/max:", 5, 6),
    ("jit(step)/transpose(jvp(net))/dense/dot_general:", 7, 9),
    ("jit(step)/mul:", 9, 10),
)


def test_scopes_of_a_program_are_rows_of_its_stream_the_inner_below_the_outer():
    assert projected(scoped_kernels(*NET)) == [
        ("s", "S", "net", 0, 6),
        ("s", "S", "backward", 7, 9),
        ("s", "S", "dense", 0, 4),
        ("s", "S", "act", 5, 6),
        ("s", "S", "net", 7, 9),
        ("s", "S", "dense", 7, 9),
    ]


def test_a_scope_ends_with_its_step():
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main", 1)
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU), "s", 7, LineKind.STREAM)
    for step in range(3):
        main.event("train", step * 10 * MS, 10 * MS, EventKind.STEP_MARK, {"step_num": step})
        main.event("launch", step * 10 * MS + MS, MS, EventKind.RUNTIME_CALL, {"correlation_id": step + 1})
        work = {"correlation_id": step + 1, "tf_op": "net/MatMul:MatMul"}
        stream.event("k", step * 10 * MS + 3 * MS, 6 * MS, EventKind.KERNEL, work)

    scopes = [each for each in projected(builder.build()) if each[1] == "S"]

    assert scopes == [("s", "S", "net", step * 10 + 3, step * 10 + 9) for step in range(3)]


def test_scopes_that_the_profiler_wrote_as_rows_are_not_laid_twice():
    assert projected(scoped_kernels(*NET, laid=True)) == []


def test_a_track_of_scopes_says_what_it_is_and_its_slices_bear_the_names_of_scopes():
    trace = scoped_kernels(*NET)
    (device,) = (group for group in all_groups(add_projections(trace, groups_of(trace))) if group.kind == "device")
    assert [(track.name, track.kind, track.rows) for track in device.tracks] == [
        ("Scopes", "scoped", 3),
        ("s", "stream", 1),
    ]

    found = find_projected(trace, 0, 20 * MS, [0], 2_000, 100)

    assert [scope_name(trace, int(each)) for each in found.type] == ["net", "backward"]
    assert set(found.kind.tolist()) == {EventKind.SCOPE}
    assert scope_name(trace, 0) is None and scope_name(trace, 10**6) is None


def test_a_search_finds_scopes_like_events_and_walks_them_in_order_of_time():
    trace = scoped_kernels(*NET)
    found = search.find_events(trace, "DENSE")
    seen, at, event = [], -1, -1
    for _ in range(3):
        place = search.find_nearest(trace, found, at, event, forward=True)
        spot = details.spot_of(trace, place.event)
        seen.append((spot.name, spot.kind, spot.start_ps // MS, spot.duration_ps // MS, place.number))
        at, event = spot.start_ps, spot.event

    assert seen == [("dense", "scope", 0, 4, 1), ("dense", "scope", 7, 2, 2), ("dense", "scope", 0, 4, 1)]
    assert search.match_histogram(trace, found, 0, 10 * MS, 10).tolist() == [1, 0, 0, 0, 0, 0, 0, 1, 0, 0]
    assert found.types[len(trace.event_types) :].tolist() == [name == "dense" for name in projection_of(trace).scopes]
    assert len(search.find_events(trace, "^(net|backward)$", regex=True).rows) == 3


def test_a_scope_that_is_found_is_the_slice_that_is_drawn_and_tells_what_is_around_and_inside():
    trace = scoped_kernels(*NET)
    act = int(search.find_events(trace, "act").rows[0])
    row = int(projection_of(trace).index.first_row[0]) + details.spot_of(trace, act).lane

    assert act in find_projected(trace, 0, 20 * MS, [row], 2_000, 100).window.event.tolist()
    facts = details.details_of(trace, act)
    assert (facts.full_name, [spot.name for spot in facts.around]) == ("net/act", ["net"])
    assert (facts.inside, facts.first_inside.name) == (1, "k5")
    assert (facts.previous.name, facts.next.start_ps // MS) == ("dense", 7)
    assert details.links_of(trace, act).step == details.links_of(trace, facts.first_inside.event).step
    with pytest.raises(UsageError):
        details.spot_of(trace, len(trace.events) + 10**6)


def test_scopes_are_among_the_longest_matches_and_in_no_call_tree():
    trace = scoped_kernels(*NET)
    everything = range(len(trace.lines))

    found = workbench.select_events(trace, 0, 20 * MS, everything, "n")
    longest = workbench.longest_events(trace, found.rows, 2).tolist()

    assert [details.spot_of(trace, row).name for row in longest] == ["net", "dense"]
    assert workbench.duration_histogram(trace, found.rows).counts.sum() == len(found.rows) == 4
    assert len(workbench.build_call_tree(trace, found).parent) == 0
    assert len(workbench.select_events(trace, 0, 20 * MS, everything).rows) == len(NET)
