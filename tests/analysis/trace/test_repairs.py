"""Rows that cannot be as they are: cut or set aside when a trace is loaded, counted and named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.trace.repairs import repair
from stepscope.model import EventKind, HostTrace
from tests.helpers.draw import MS, Sort, draw

_RECORDER = {"O": Sort(EventKind.OTHER, "PyTorch Profiler (0)")}


def events(trace: HostTrace, *names: str) -> list[tuple[str, int, int]]:
    """Name, start and end in ms of the events of some names."""
    rows = [row for row in range(len(trace.events)) if trace.name_of(row) in names]
    start, duration = trace.events.start_ps, trace.events.duration_ps
    return [(trace.name_of(row), int(start[row]) // MS, int(start[row] + duration[row]) // MS) for row in rows]


def test_work_that_ends_after_the_next_work_of_its_stream_began_is_cut_there() -> None:
    trace = repair(
        draw("""
            gpu0 s | a-------------
            gpu0 s |    b--
            gpu0 s |        a--
            gpu0 s |            b--
        """)
    )
    assert events(trace, "a", "b") == [("a", 0, 3), ("b", 3, 6), ("a", 7, 10), ("b", 11, 14)]
    (made,) = trace.repairs
    assert (made.code, made.count, made.of, made.ps) == ("ends-after-next", 1, 4, 11 * MS)
    assert "1 event ('a') has a wrong duration: it ends up to 11 ms after the next work" in str(made)


@pytest.mark.parametrize(
    ("why", "picture"),
    [
        (
            "a kernel that lets its successor start before it ends, each time",
            """
                gpu0 s | a---  a---  a---
                gpu0 s |    b-    b-    b-
                gpu0 s | c  c  c  c
            """,
        ),
        (
            "other streams",
            """
                gpu0 s | a---------
                gpu0 t |   b--
            """,
        ),
        (
            "a line that is no queue: most of its work overlaps",
            """
                gpu0 s | a---------
                gpu0 s |   b---------
                gpu0 s |     c---------
                gpu0 s |       d-
            """,
        ),
    ],
)
def test_work_that_may_overlap_stays(why: str, picture: str) -> None:
    trace = draw(picture)

    assert repair(trace) is trace, why


def test_an_event_after_the_stated_end_is_set_aside() -> None:
    trace = draw(
        """
            host main | M0------M1------
            gpu0 s    |  k--     k--                                  x-
        """,
        start_unix_ns=1_000_000_000,
    )
    mended = repair(replace(trace, stop_unix_ns=1_000_000_000 + 16_000_000))

    assert events(mended, "x") == []
    assert len(mended.events) == 4
    assert [made.code for made in mended.repairs] == ["outside"]
    assert "1 event ('x') lies outside of the recording's own start and stop, by up to 30 ms" in str(mended.repairs[0])


def test_a_device_that_finishes_its_work_after_the_end_keeps_it() -> None:
    trace = draw(
        """
            host main | M0------M1------
            gpu0 s    |  k----   k----   k----
        """,
        start_unix_ns=1_000_000_000,
    )
    trace = replace(trace, stop_unix_ns=1_000_000_000 + 16_000_000)

    assert repair(trace) is trace


def test_without_a_stated_end_work_further_away_than_all_else_lasts_is_set_aside() -> None:
    mended = repair(
        draw("""
            host main | M0------M1------
            gpu0 s    |  k--     k--                                  x-
        """)
    )
    assert events(mended, "x") == []
    assert "further from all other events than these last together" in str(mended.repairs[0])


@pytest.mark.parametrize("far", ["far away on the stream", "far away on a stream of its own"])
def test_a_little_work_far_away_is_set_aside_on_whatever_stream_it_lies(far: str) -> None:
    own = "gpu0 s" if far == "far away on the stream" else "gpu0 t"
    trace = repair(
        draw(f"""
            host main | a--a--a--a--
            gpu0 s    |  k- k- k- k-
            {own}    |                                 x-
        """)
    )
    assert events(trace, "x") == []
    assert [(made.code, made.count) for made in trace.repairs] == [("outside", 1)]


def test_work_far_away_of_which_the_host_says_something_stays() -> None:
    trace = draw("""
        host main | a--a--a--a--                       a--
        gpu0 s    |  k- k- k- k-                        k-
    """)

    assert repair(trace) is trace


def test_the_recorder_s_own_row_is_no_work_and_tells_when_it_stopped() -> None:
    mended = repair(
        draw(
            """
                host main     | M0------M1------a---------------
                host recorder | O-----------------
            """,
            _RECORDER,
        )
    )
    assert events(mended, "a") == [("a", 16, 18)]
    assert [(made.code, made.count, made.ps) for made in mended.repairs] == [("open-at-end", 1, 14 * MS)]
    assert [int(kind) for kind in mended.lines.kind] == [1, 8]  # a thread, and overhead


def test_an_op_ends_with_the_run_of_its_program() -> None:
    """Of ops one may hold others, so that the next one is no end; and what most runs have is no fault."""
    trace = repair(
        draw("""
            tpu0 Modules | a-----b-----c-----
            tpu0 ops     | o---- p--------------------- q----
        """)
    )
    (made,) = trace.repairs
    assert (made.code, made.count, made.ps) == ("ends-after-program", 1, 16 * MS)
    assert events(trace, "p") == [("p", 6, 12)]


def test_ops_beside_programs_are_no_fault() -> None:
    trace = draw("""
        tpu0 Modules | a-----b-----c-----
        tpu0 ops     | o-------p-----q----
    """)
    assert repair(trace) is trace


def test_the_last_kernel_ends_when_a_call_returned_that_waited_for_it() -> None:
    calls = {"W": Sort(EventKind.SYNC, "cudaDeviceSynchronize")}
    trace = repair(
        draw(
            """
            host main | W---  W---
            gpu0 s    | a-- b-- a----------------
            """,
            calls,
        )
    )

    assert events(trace, "a", "b") == [("a", 0, 3), ("b", 4, 7), ("a", 8, 10)]
    assert [made.code for made in trace.repairs] == ["ends-after-wait"]


def test_a_kernel_that_ends_a_little_after_the_wait_for_it_is_left_as_it_is() -> None:
    trace = draw(
        """
        host main | W---  W---
        gpu0 s    | a-- b-- a---
        """,
        {"W": Sort(EventKind.SYNC, "cudaDeviceSynchronize")},
    )

    assert repair(trace) is trace
