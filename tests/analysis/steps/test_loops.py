"""Which loop of several marked ones is answered, and what becomes of the others."""

from __future__ import annotations

from stepscope.analysis.account import steps_tool
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.named_steps import mark_named_steps
from stepscope.model import EventKind, HostTrace
from tests.helpers.draw import MS, Sort, draw

_SORTS = {
    "Q": Sort(EventKind.STEP_MARK, "eval", "step_num"),
    "Z": Sort(EventKind.STEP_MARK, "epoch", "step_num"),
    "O": Sort(EventKind.STEP_MARK, "micro", "step_num"),
    "B": Sort(EventKind.STEP_MARK, "train_step", "step_num"),
}


def steps(trace: HostTrace) -> list[tuple[str, int, int]]:
    """Name, start and length of each step in ms."""
    found = steps_of(trace)
    return list(
        zip(found.name, (found.start_ps // MS).tolist(), (found.length_ps // MS).tolist(), strict=True)
    )  # fmt: skip


def others(trace: HostTrace) -> list[tuple[str, int, int]]:
    """Name, number of marks and their median in ms of the loops that are not answered."""
    return [(loop.name, loop.count, loop.median_ps // MS) for loop in steps_of(trace).others]


def test_training_and_evaluation_are_two_loops() -> None:
    trace = draw(
        """
            host main | M0----M1----M2---- Q0-Q1-Q2-Q3- M3----M4----
            host main |  a---- a---- a----  b- b- b- b-  a---- a----
        """,
        _SORTS,
    )
    assert steps(trace) == [
        ("train 0", 0, 6), ("train 1", 6, 6), ("train 2", 12, 7), ("train 3", 32, 6), ("train 4", 38, 6)
    ]  # fmt: skip
    assert others(trace) == [("eval", 4, 3)]
    report = steps_tool.merge([steps_tool.partial(trace)])
    assert [(row["loop"], row["count"], row["median_ms"], row["total_ms"]) for row in report.loops] == [
        ("eval", 4, 3.0, 12.0)
    ]
    assert any("'eval' is a loop of its own and not these steps: 4 marks, median 3" in text for text in report.warnings)


def test_an_evaluation_with_more_work_is_still_not_the_training_loop() -> None:
    trace = draw("host main | M0--M1--Q0------Q1------Q2------", _SORTS)

    assert [name for name, _, _ in steps(trace)] == ["train 0", "train 1"]
    assert others(trace) == [("eval", 3, 8)]


def test_steps_that_the_recorder_found_are_none_where_the_program_marks_its_own() -> None:
    def found(number: int) -> Sort:
        return Sort(EventKind.STEP_MARK, "train", stats={"step_num": number, "_found": 1})

    # The recorder finds that a step ends when the program's call returns, soon after the program's mark.
    sorts = _SORTS | {letter: found(number) for number, letter in enumerate("UVW")}
    trace = draw(
        """
            host main | M0----M1----M2----M3
            host main |  U-----V-----W----
        """,
        sorts,
    )
    assert [name for name, _, _ in steps(trace)] == ["train 0", "train 1", "train 2"]  # the last is cut
    assert others(trace) == []

    # Marks of epochs are not of these steps.
    trace = draw("host main | Z0---------------\nhost main | U----V----W----", sorts)
    assert [name for name, _, _ in steps(trace)] == ["train 0", "train 1", "train 2"]


def test_two_marks_that_share_most_of_their_time_are_of_one_step() -> None:
    def again(number: int) -> Sort:
        return Sort(EventKind.STEP_MARK, "train", stats={"step_num": number})

    sorts = _SORTS | {letter: again(number) for number, letter in enumerate("UVW")}
    trace = draw(
        """
            host main | M0------- M1------- M2-------
            host main |  U-------- V-------- W--------
            host main |   P1        P2        P3
            host pool | J    C1--- J    C2--- J    C3---
            host pool |       a          a          a
        """,
        sorts,
    )
    assert [name for name, _, _ in steps(trace)] == ["train 0", "train 1", "train 2"]
    ops = trace.events.kind == EventKind.OP  # on a thread that prepares input as well: the second mark starts them
    assert steps_of(trace).label[ops].tolist() == [0, 1, 2]


def test_marks_of_epochs_do_not_hide_those_of_steps() -> None:
    trace = draw(
        """
            host main | Z0-----------------Z1---------------
            host main |  M0---M1---M2---    M3---M4---M5---
        """,
        _SORTS,
    )
    assert steps(trace) == [
        ("train 0", 1, 5), ("train 1", 6, 5), ("train 2", 11, 9), ("train 3", 20, 5), ("train 4", 25, 5),
        ("train 5", 30, 5),
    ]  # fmt: skip
    assert others(trace) == [("epoch", 2, 17)]


def test_parts_marked_inside_a_step_are_no_steps() -> None:
    trace = draw(
        """
            host main | B0-------------B1-------------
            host main |  O0--O1--O2--   O3--O4--O5--
        """,
        _SORTS,
    )
    assert [name for name, _, _ in steps(trace)] == ["train_step 0", "train_step 1"]
    assert others(trace) == [("micro", 6, 4)]


def test_marks_of_two_threads_are_two_loops() -> None:
    trace = draw(
        """
            host main  | M0----M1----M2----
            host actor | M0--M1--M2--M3--
        """
    )
    assert steps(trace) == [("train 0", 0, 6), ("train 1", 6, 6), ("train 2", 12, 6)]
    assert others(trace) == [("train", 4, 4)]


def test_steps_of_one_name_on_two_threads_are_those_of_one() -> None:
    trace = draw(
        """
            host main  | A----A----A----A----A----
            host main  |  a--  a--  a--  a--  a--
            host actor | A---A---A---A---A---A---
            host actor |  a-  a-  a-  a-  a-  a-
        """,
        {"A": Sort(EventKind.ANNOTATION, "train_step")},  # side by side, ranges of other names are requests
    )
    from stepscope.analysis.steps.named_steps import mark_named_steps

    assert len(steps_of(mark_named_steps(trace)).number) == 5


def test_ranges_that_count_steps_in_their_names_are_steps_though_others_hold_more_of_the_work() -> None:
    trace = draw(
        """
            host main | U---V---W---E------------------
            host main |  a-  a-  a- a-a-a-a-a-a-a-a-a-
        """,
        {letter: Sort(EventKind.ANNOTATION, f"Warm-up Step {number}") for number, letter in enumerate("UVW", 1)}
        | {"E": Sort(EventKind.ANNOTATION, "benchmark")},
    )

    assert [(start, length) for _, start, length in steps(mark_named_steps(trace))] == [(0, 4), (4, 4), (8, 4)]


def test_a_named_evaluation_between_named_steps_is_a_loop_of_its_own() -> None:
    trace = draw(
        """
            host main | A---A---A---E-------A---A---A---E-------
            host main |  a-  a-  a-  a-b-a-  a-  a-  a-  a-b-a-
        """,
        {"E": Sort(EventKind.ANNOTATION, "evaluate"), "A": Sort(EventKind.ANNOTATION, "train_step")},
    )
    from stepscope.analysis.steps.named_steps import mark_named_steps

    marked = mark_named_steps(trace)
    assert [(start, length) for _, start, length in steps(marked)] == [
        (0, 4), (4, 4), (8, 4), (20, 4), (24, 4), (28, 4),
    ]  # fmt: skip
    assert others(marked) == [("evaluate", 2, 8)]


_LAYERS = {
    "V": Sort(EventKind.ANNOTATION, "Model_Forward"),
    "A": Sort(EventKind.ANNOTATION, "Attention"),
    "E": Sort(EventKind.ANNOTATION, "Embedding"),
}


def test_ranges_within_one_that_occurs_once_are_layers_where_most_of_it_is_other_work() -> None:
    layers = draw(
        """
            host main | V--------------------------------------------------
            host main | E----------------------------A----- A----- A-----
            host main |                               aaaa   aaaa   aaaa
        """,
        _LAYERS,
    )
    epoch = draw(
        """
            host main | V--------------------------------------------------
            host main | A---------------A---------------A---------------
            host main |  aaaa            aaaa            aaaa
        """,
        _LAYERS,
    )

    assert mark_named_steps(layers) is layers
    assert [name for name, _, _ in steps(mark_named_steps(epoch))] == ["Attention 0", "Attention 1", "Attention 2"]
