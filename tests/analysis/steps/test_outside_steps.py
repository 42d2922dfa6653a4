"""Recordings of which the steps are the smaller part."""

from __future__ import annotations

from draw import Sort, draw
from reporting import overview_of

from stepscope.analysis.steps.outside_steps import outside_steps
from stepscope.model import EventKind as K

_SORTS = {
    "s": Sort(K.PYTHON_CALL, "$loader.py:9 start_workers"),
    "p": Sort(K.PYTHON_CALL, "$profiler.py:91 start_trace"),
    "t": Sort(K.PYTHON_CALL, "$train.py:3 train"),
    "a": Sort(K.OP, "aten::mm"),
}


def test_what_comes_before_the_steps_is_said_first_and_by_name() -> None:
    trace = draw(
        """
        host main | t-------------------------------------
        host main |  s-------------------------M0--M1--M2-
        host main |                            aa  aa  aa
        """,
        _SORTS,
    )
    found = outside_steps(trace)

    assert found is not None
    assert (round(found.percent), found.where, found.name) == (
        71,
        "before the first step",
        "$loader.py:9 start_workers",
    )
    screen = overview_of(trace).first_screen()
    assert screen.title == "71 % of the recording lies before the first step"
    assert screen.sentence.startswith("the steps themselves are ")


def test_the_start_of_the_recorder_is_no_time_of_the_program() -> None:
    trace = draw(
        """
        host main | p--------------------------M0--M1--M2-
        host main |                            aa  aa  aa
        """,
        _SORTS,
    )

    assert outside_steps(trace) is None


def test_a_step_of_another_kind_is_outside_of_the_others() -> None:
    trace = draw(
        """
        host main | M0M1M2M3-------------------------------------
        host main | a-a-a-
        """,
        _SORTS,
    )
    found = outside_steps(trace)

    assert found is not None
    assert found.where == "after the last step"


def test_a_long_first_request_that_the_device_computes_is_a_request() -> None:
    """The prompt takes longer than the tokens after it; that the host waits meanwhile starts nothing up."""
    picture = """
        host main | L1-S-----------------------------L2-S-L3-S-L4-S-L5-S-
        gpu0 s    |   K1----------------------------- K2-- K3-- K4-- K5--
        """
    trace = draw(picture, {"S": Sort(K.SYNC, "cudaStreamSynchronize")})
    screen = overview_of(trace).first_screen()

    assert outside_steps(trace) is None
    assert "computation on the device" in screen.sentence


def test_what_other_threads_do_there_is_named_where_the_loop_shows_nothing() -> None:
    trace = draw(
        """
        host main | M0--M1--M2--
        host main | aa  aa  aa
        host comm |             r--------r---------r---
        host more |              r--------r---------r--
        """,
        _SORTS | {"r": Sort(K.ANNOTATION, "gloo:all_reduce")},
    )
    found = outside_steps(trace)

    assert found is not None
    assert (found.where, found.name, found.beside) == ("after the last step", "", "gloo:all_reduce")
    said = str(overview_of(trace).sections())
    assert "lie after the last step; other threads are in `gloo:all_reduce` for most of it" in said
    assert "nothing there says what runs" not in said
