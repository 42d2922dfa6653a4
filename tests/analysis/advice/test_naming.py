"""The culprit of an advice: what it is, where its evidence names it, and what to record where the trace cannot tell."""

from __future__ import annotations

from dataclasses import replace

from draw import Sort, draw

from stepscope.analysis.advice import Advice, advise
from stepscope.analysis.overview import overview_tool as overview
from stepscope.model import EventKind, HostTrace

K = EventKind

SORTS = {
    "g": Sort(K.PYTHON_CALL, "$train.py:9 __getitem__"),
    "h": Sort(K.PYTHON_CALL, "$report.py:7 rank"),
    "j": Sort(K.PYTHON_CALL, "$pjit.py:3 call"),
    "l": Sort(K.PYTHON_CALL, "$loop.py:5 step"),
}


def first(*pictures: str, framework: str = "") -> Advice:
    hosts: list[HostTrace] = [draw(picture, SORTS, host=f"host{number}") for number, picture in enumerate(pictures)]
    context = overview.merge([overview.partial(host) for host in hosts]).context
    known = {"framework": framework, "recorder": framework} if framework else {}
    return advise(replace(context, **known)).items[0]


def test_the_evidence_starts_with_the_line_that_the_step_waits_for() -> None:
    item = first("""
        host main | M0--------M1--------M2--------
        host main | g-g-g-aaaag-g-g-aaaag-g-g-aaaa
        """)

    assert item.kind.startswith("input_")
    assert item.culprit is not None
    assert (item.culprit.file, item.culprit.line, item.culprit.calls, item.culprit.ps) == ("train.py", 9, 3, 6 * 10**9)
    assert item.evidence.startswith("60.0 % of each step is input: `train.py:9 __getitem__` (3 calls); ")


def test_time_in_which_nothing_was_recorded_has_no_class_but_a_remedy() -> None:
    item = first(
        """
        host main | M0--------M1--------M2--------
        host main | aaaa      aaaa      aaaa
        """,
        framework="pytorch",
    )

    assert (item.kind, item.culprit, item.predicted_speedup) == ("none", None, None)
    assert "with_stack=True" in item.actions[-1]


def test_files_of_the_framework_are_not_the_user_s() -> None:
    item = first("""
        host main | M0--------M1--------M2--------
        host main | l-----aaaal-----aaaal-----aaaa
        host main | j-----    j-----    j-----
        """)

    assert item.culprit is not None
    assert item.culprit.file == "loop.py"


def test_a_straggler_s_culprit_is_what_it_does_beyond_the_others() -> None:
    item = first(
        """
        host main | M0----------M1----------M2----------
        host main | aahhhhhhhhG-aahhhhhhhhG-aahhhhhhhhG-
        """,
        """
        host main | M0----------M1----------M2----------
        host main | aaG---------aaG---------aaG---------
        """,
    )

    assert item.kind == "straggler"
    assert item.culprit is not None
    assert item.culprit.name == "rank"


def test_an_op_that_orders_everything_and_is_most_of_the_step_is_the_first_advice() -> None:
    picture = """
        host main | M0--------M1--------M2--------
        host main | ssssssssssssssssssssssssssssss
        """
    context = overview.merge([overview.partial(draw(picture, {"s": Sort(K.OP, "aten::sort")}))]).context
    item = advise(context).items[0]

    assert (item.id, item.kind) == ("compute.ordering", "redundant_compute")
    assert "100.0 % of each step puts arrays in order (sort)" in item.evidence
    assert item.actions[0].startswith("select what is needed without ordering everything")
