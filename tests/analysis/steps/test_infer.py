"""Steps that nobody marked: which cycle is found in a sequence, and what is not taken for one."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from draw import MS, Sort, draw
from hypothesis import given, settings
from hypothesis import strategies as st

import stepscope
from stepscope.analysis.overview import overview_tool as overview
from stepscope.analysis.steps.cycles import Cycle, find_cycle
from stepscope.analysis.steps.find_steps import HostSteps, steps_of
from stepscope.analysis.steps.named_steps import mark_named_steps
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder

K = EventKind


def cycle_in(text: str, start: list[int] | None = None) -> Cycle | None:
    """The cycle in a sequence of one-letter names; blanks are for the reader.  One event a tick unless `start` says."""
    names = np.frombuffer(text.replace(" ", "").encode(), np.uint8).astype(np.int32)
    return find_cycle(names, np.arange(len(names)) if start is None else np.array(start))


def steps_in(text: str) -> list[str]:
    """The sequence cut where steps begin."""
    found, letters = cycle_in(text), text.replace(" ", "")
    if found is None:
        return []
    bounds = [*found.anchors.tolist(), len(letters)]
    return [letters[begin:end] for begin, end in itertools.pairwise(bounds)]


# -- the sequence ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        pytest.param("frfrls frfrls frfrls", "lsfrfr lsfrfr ls", id="the first name that occurs once a step begins it"),
        pytest.param("de abcde abcde abcde", "deabc deabc deabc de", id="the sequence begins in the middle of a step"),
        pytest.param("e llll h  e llll h  e llll h  e llll h", "ellllh ellllh ellllh ellllh", id="layers are no steps"),
    ],
)
def test_where_steps_begin(text: str, steps: str) -> None:
    assert steps_in(text) == steps.split()


def test_what_some_steps_do_besides_takes_little_from_how_sure_a_cycle_is() -> None:
    """Two of twelve steps log: they have `a` and `b` twice."""
    found = cycle_in("abcdefgh" * 4 + "abcdefghabi" + "abcdefgh" * 5 + "abcdefghabi" + "abcdefgh")

    assert found is not None
    assert len(found.anchors) == 12
    assert found.confidence > 0.8


def test_a_clean_cycle_is_certain() -> None:
    found = cycle_in("abc abc abc abc")

    assert found is not None
    assert found.anchors.tolist() == [0, 3, 6, 9]
    assert found.confidence == 1.0
    assert found.last_is_whole


@pytest.mark.parametrize(
    ("text", "whole"),
    [("abcde abcde abcde abcde", True), ("abcde abcde abcde abc", False), ("abcde abcde abcde a", False)],
)
def test_a_sequence_may_end_in_the_middle_of_a_step(text: str, whole: bool) -> None:
    found = cycle_in(text)

    assert found is not None
    assert (len(found.anchors), found.last_is_whole) == (4, whole)


def test_steps_need_not_be_equal_to_be_alike() -> None:
    found = cycle_in("abcdefghij abcdefghij abcdefghiij abcdefghj abcdefghij")

    assert found is not None
    assert len(found.anchors) == 5
    assert 0.8 < found.confidence < 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "ab",
        "abc abc",  # twice proves nothing
        "abcdefghijklmnop",
        "a bb ccc dddd eeeee ffffff ggggggg",
        "azxqpbzfhkqzlwmrtyaeuzcvqnhgb",
    ],
)
def test_what_is_no_cycle(text: str) -> None:
    assert cycle_in(text) is None


def test_one_name_alone_needs_a_rhythm() -> None:
    regular = cycle_in("aaaaaaaa", start=[0, 10, 20, 31, 40, 50, 60, 70])
    warming_up = cycle_in("aaaaaaaa", start=[0, 60, 70, 80, 91, 100, 110, 120])
    irregular = cycle_in("aaaaaaaa", start=[0, 1, 2, 90, 91, 92, 200, 201])

    assert regular is not None
    assert regular.confidence > 0.9
    assert warming_up is not None
    assert 0.7 < warming_up.confidence < 0.9
    assert irregular is None


@pytest.mark.parametrize(
    ("calls", "steps"),
    [
        pytest.param("F--      F-F--F-F-----F-F---", 7, id="at odd times, the first long before"),
        pytest.param("F-F-F-          F-F-F-          F-", 7, id="with a log every third time"),
        pytest.param("FFFF                              F", 0, id="without any rhythm"),
        pytest.param("F-F--------F-F--------", 0, id="too few"),
    ],
)
def test_a_program_that_a_loop_calls_at_odd_times_is_its_step(calls: str, steps: int) -> None:
    found = steps_of(draw(f"host main | {calls}"))

    assert len(found.start_ps) == steps if steps else found.source == "none"


# -- layers are no steps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [12, 36, 100])
def test_many_layers_between_little_else_are_still_layers(layers: int) -> None:
    layer, head = "abcdefghijklmn", "XYZ"  # 3 of 500 and more events say that the layers are parts of something
    found = cycle_in((layer * layers + head) * 4)

    assert found is not None
    assert len(found.anchors) == 4


def test_layers_that_run_forward_and_backward_are_not_taken_for_steps() -> None:
    found = cycle_in(("abcd" * 48 + "L" + "efghij" * 48) * 5)

    assert found is not None
    assert len(found.anchors) == 5
    assert found.confidence == 1.0


def test_what_happens_now_and_then_does_not_make_larger_steps() -> None:
    step = "abcdefghijkl"
    found = cycle_in((step * 10 + "Z") * 4)  # a loop that logs after every tenth step

    assert found is not None
    assert len(found.anchors) == 40


def test_long_captures_are_read_to_their_end() -> None:
    pattern = np.arange(1_000, dtype=np.int32)
    names = np.tile(pattern, 450)  # more than the part from which the cycle is learnt
    found = find_cycle(names, np.arange(len(names)))

    assert found is not None
    assert np.diff(found.anchors).tolist() == [1_000] * 449
    assert found.last_is_whole


@given(st.text("bcdef", max_size=12), st.integers(3, 9))
@settings(max_examples=200, deadline=None)
def test_whatever_repeats_is_found_as_often_as_it_repeats(rest: str, times: int) -> None:
    found = cycle_in(("a" + rest) * times)

    assert found is not None
    assert len(found.anchors) == times
    assert found.confidence == 1.0 or not rest


@given(st.lists(st.integers(0, 9), max_size=60))
@settings(max_examples=300, deadline=None)
def test_a_cycle_is_never_claimed_without_three_steps_and_some_trust(names: list[int]) -> None:
    found = find_cycle(np.array(names, np.int32), np.arange(len(names)))

    if found is not None:
        assert len(found.anchors) >= 3
        assert 0.6 <= found.confidence <= 1.0
        assert len(set(np.array(names)[found.anchors].tolist())) == 1


# -- what is looked at, in a trace -------------------------------------------------------------------------------


def found(trace: HostTrace) -> tuple[str, float | None, list[tuple[float, float, bool]]]:
    """How steps were found, with which confidence, and their bounds in ms with whether they are complete."""
    steps: HostSteps = steps_of(trace)
    bounds = zip((steps.start_ps / MS).tolist(), (steps.end_ps / MS).tolist(), steps.complete.tolist(), strict=True)
    return steps.source, steps.confidence, list(bounds)


def test_steps_from_kernels() -> None:
    trace = draw("gpu0 s |  a-b--  a-b--  a-b-- a-b--")

    assert found(trace) == ("inferred", 0.5, [(1, 8, True), (8, 15, True), (15, 21, True), (21, 26, True)])
    assert steps_of(trace).how == (
        "no step marks found; 4 steps were inferred from the repeating sequence of kernels, each starting with 'a'; "
        "they may be layers of one step, as no call of the host tells them apart"
    )
    assert steps_of(trace).label.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_more_work_after_every_third_cycle_makes_three_of_them_a_step_where_the_host_does_not_tell() -> None:
    """The layers of a model: its lookup and its head run kernels of the same names as they do."""
    trace = draw(f"gpu0 s | {('abcdefgh' * 3 + 'h') * 4}")

    assert [(begin, end) for begin, end, _ in found(trace)[2]] == [(0, 25), (25, 50), (50, 75), (75, 100)]
    assert steps_of(trace).confidence == 0.5


def test_steps_of_the_busiest_device() -> None:
    trace = draw("""
        gpu0 s | x-  y-         z-
        gpu1 s | a---- a---- a---- a----
    """)

    assert [begin for begin, _, _ in found(trace)[2]] == [0, 6, 12, 18]


def test_the_last_step_counts_only_if_it_is_as_long_as_the_others() -> None:
    waits_between = draw("gpu0 s | a-b-        a-b-        a-b-        a-b-")
    works_on = draw("gpu0 s | a-b- a-b- a-b- a-b- D--------------")

    assert [complete for _, _, complete in found(waits_between)[2]] == [True, True, True, False]
    assert [complete for _, _, complete in found(works_on)[2]] == [True, True, True, False]


def test_layers_of_one_call_are_no_steps() -> None:
    trace = draw("""
        host main | A------------------------
        host main | L1L2L3L4L5L6L7L8L9
        gpu0 s    |   e1e2a3b4a5b6a7b8h9
    """)
    alone = draw("""
        host main | A------------------------
        host main | L3L4L5L6L7L8
        gpu0 s    |   a3b4a5b6a7b8
    """)
    sync = {"S": Sort(K.SYNC, "cudaStreamSynchronize")}
    loop = draw(
        """
        host main | A------------------------
        host main | L3L4S-L5L6S-L7L8S-
        gpu0 s    |   a3b4  a5b6  a7b8
        """,
        sync,
    )

    assert found(trace)[0] == "none"  # an embedding before them, a head after them: layers
    assert found(alone)[0] == "none"  # what repeats in a range that occurs once is a layer
    assert found(loop)[0] == "inferred"  # a loop in a range that the user named: it reads a result each time


def test_layers_of_one_launch_of_a_graph_are_no_steps_and_the_launches_are() -> None:
    sorts = {"O": Sort(K.RUNTIME_CALL, "cudaGraphLaunch", "correlation_id")}
    once = draw("host main | O1\ngpu0 s    |  k1z1k1z1k1z1k1z1", sorts)
    often = draw(
        """
        host main | O1          O2          O3          O4
        gpu0 s    |   k1k1k1k1    k2k2k2k2    k3k3k3k3    k4k4k4k4
        """,
        sorts,
    )

    assert found(once)[0] == "none"
    assert [begin for begin, _, _ in found(often)[2]] == [0, 12, 24, 36]


def test_cycles_under_one_module_after_the_other_are_layers() -> None:
    sorts = {
        letter: Sort(K.PYTHON_CALL, f"nn.Module: {name}")
        for letter, name in zip("BCDEG", ("Model_0", "Block_0", "Block_1", "Block_2", "Block_3"), strict=True)
    }
    layers = draw(
        """
        host main | B-----------------------
        host main | C----D----E----G----
        host main | a-b- a-b- a-b- a-b-
        """,
        sorts,
    )
    calls = draw(
        """
        host main | B----B----B----B----
        host main | a-b- a-b- a-b- a-b-
        """,
        sorts,
    )

    assert found(layers)[0] == "none"
    assert len(found(calls)[2]) == 4


def test_runs_of_xla_modules_are_steps_on_a_tpu_but_not_where_they_are_derived_from_kernels() -> None:
    sorts = {"m": Sort(K.MODULE, "jit_step")}
    tpu = draw(
        """
        tpu0 Modules | m---- m---- m---- m----
        tpu0 ops     | a-b-b a-bb- ab-b- a-bbb
        """,
        sorts,
    )
    gpu = draw(
        """
        gpu0 Modules | m---------- m----  m----  m----
        gpu0 s       | a-b-- a-b-- a-b--  a-b--  a-b--
        """,
        sorts,
    )

    assert "sequence of XLA modules" in steps_of(tpu).how
    assert len(found(tpu)[2]) == 4
    assert "sequence of kernels" in steps_of(gpu).how
    assert len(found(gpu)[2]) == 5


def test_steps_from_function_calls_hold_what_happens_between_them() -> None:
    trace = draw("""
        host main | I-F--- I-F--- I-F--- I-F---
        host main |    F-     F-     F-     F-
    """)

    assert found(trace)[0] == "inferred"
    assert [(begin, end) for begin, end, _ in found(trace)[2]] == [(2, 9), (9, 16), (16, 23), (23, 27)]
    assert "function calls" in steps_of(trace).how


def test_steps_from_input_alone() -> None:
    waits = draw("host main |  I1- a--- I1- a--- I1- a--- I1- a---")
    calls = draw("host main |  J-- b--- J-- c--- J-- d--- J-- e---")

    assert "waits for input" in steps_of(waits).how
    assert "input iterator calls" in steps_of(calls).how
    assert len(found(waits)[2]) == len(found(calls)[2]) == 4


PYTHON_CALLS = {
    "Z": Sort(K.PYTHON_CALL, "$<frozen importlib._bootstrap>:1022 _find_and_load"),
    "E": Sort(K.PYTHON_CALL, "$net.py:30 fit"),
    "W": Sort(K.PYTHON_CALL, "$net.py:10 forward"),
    "D": Sort(K.PYTHON_CALL, "$net.py:20 backward"),
    "O": Sort(K.PYTHON_CALL, "$log.py:3 report"),
}


def test_the_steps_of_plain_python_are_the_rounds_of_the_function_that_takes_the_time() -> None:
    trace = draw(
        """
        host main | Z-----------------E------------------------------
        host main | W-W-W-W-W-W-W-W-W- W--D--W--D--W--D--W--D--W--D-
        host main |                     W-    W-    W-    W-    W-
        """,
        PYTHON_CALLS,
    )

    assert found(trace) == ("inferred", 1.0, [(at, at + 6 - (at == 43), True) for at in range(19, 49, 6)])
    assert "calls of Python functions, each starting with '$net.py:10 forward'" in steps_of(trace).how


def test_what_a_loop_of_plain_python_reports_now_and_then_makes_no_longer_steps() -> None:
    calls = "W" + 49 * "-" + "D" + 49 * "-"
    trace = draw("host main | " + "".join(2 * calls + "O" for _ in range(5)), PYTHON_CALLS)

    assert len(found(trace)[2]) == 10


def test_a_function_that_fills_its_loop_is_the_step_whatever_the_loop_does_now_and_then() -> None:
    """The rare call also is the first of each longer round, which looks like a perfect cycle."""
    trace = draw("host main | " + "".join("O" + 20 * "-" + 30 * "W-" for _ in range(4)), PYTHON_CALLS)

    assert len(found(trace)[2]) == 120
    assert "calls of the Python function that takes most of its loop's time" in steps_of(trace).how


@pytest.mark.parametrize(("least_us", "source"), [(0.0, "inferred"), (800.0, "none")])
def test_calls_of_which_only_the_longer_ones_were_recorded_are_no_steps(least_us: float, source: str) -> None:
    """Of a function that takes about as long as the shortest call that is kept, many calls are missing."""
    builder = TraceBuilder("host")
    builder.plane("/stepscope:capture", stats={"python_min_us": least_us} if least_us else {})
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for at in range(60):
        line.event("$numpy/_core/_methods.py:47 _sum", 2 * at * MS, MS, K.PYTHON_CALL)

    assert steps_of(builder.build()).source == source


def test_layers_that_a_loop_calls_are_no_steps_of_it() -> None:
    trace = draw("host main | " + "".join("O-" + 12 * "W-" for _ in range(8)), PYTHON_CALLS)

    assert len(found(trace)[2]) == 8


@pytest.mark.parametrize(("name", "source"), [("PjitFunction(_normal)", "none"), ("PjitFunction(train)", "inferred")])
def test_what_is_called_for_each_layer_that_is_made_is_no_step(name: str, source: str) -> None:
    sorts = {"Q": Sort(K.TRACED_FUNCTION, "PjitFunction(sqrt)"), "N": Sort(K.TRACED_FUNCTION, name)}

    assert steps_of(draw("host main | " + 4 * "Q--N----", sorts)).source == source


@pytest.mark.parametrize(
    ("around", "inside", "source"),
    [
        ("$micro.py:8 loss", "$nn.py:20 MLP.__call__", "none"),
        ("$micro.py:9 <listcomp>", "$nn.py:20 MLP.__call__", "none"),
        ("$micro.py:9 <listcomp>", "$nn.py:20 train_step", "inferred"),
        ("$micro.py:8 main", "$nn.py:20 MLP.__call__", "inferred"),
    ],
)
def test_samples_of_the_one_batch_that_was_recorded_are_no_steps(around: str, inside: str, source: str) -> None:
    sorts = {"E": Sort(K.PYTHON_CALL, around), "W": Sort(K.PYTHON_CALL, inside)}
    trace = draw(f"host main | E{79 * '-'}\nhost main | {20 * 'W---'}", sorts)

    assert steps_of(trace).source == source


@pytest.mark.parametrize(("name", "source"), [("matplotlib/artist.py:9 __init__", "none"), ("net.py:9 f", "inferred")])
def test_what_an_import_calls_that_has_not_ended_is_no_step(name: str, source: str) -> None:
    sorts = PYTHON_CALLS | {"W": Sort(K.PYTHON_CALL, f"${name}")}

    assert steps_of(draw(f"host main | {20 * 'W---'}Z--", sorts)).source == source


def test_what_is_called_when_the_recording_ends_is_what_it_was_before() -> None:
    """The call that runs then is not recorded."""
    sorts = {"E": Sort(K.PYTHON_CALL, "$micro.py:8 loss"), "W": Sort(K.PYTHON_CALL, "$nn.py:20 MLP.__call__")}

    assert steps_of(draw(f"host main | E{19 * '-'}\nhost main | {15 * 'W---'}", sorts)).source == "none"


def test_a_few_long_calls_are_the_parts_of_a_script_and_no_steps() -> None:
    assert found(draw("host main | W--D--W--D--W--D--", PYTHON_CALLS))[0] == "none"


def test_irregular_calls_are_no_steps() -> None:
    trace = draw("host main | F- F- F-                         F- F-                        F-")

    assert found(trace)[0] == "none"


def test_marks_are_believed_rather_than_cycles() -> None:
    trace = draw("""
        host main | M0---------- M1----------
        host main | L1L2L3L4     L5L6L7L8
        gpu0 s    | a1b2a3b4     a5b6a7b8
    """)

    assert steps_of(trace).source == "markers"


def test_the_overview_states_the_confidence() -> None:
    report = overview.merge([overview.partial(draw("gpu0 s | a-b-- a-b-- a-b-- a-b--"))])

    assert (report.steps_source, report.confidence) == ("inferred", 0.5)
    assert report.to_dict()["steps_confidence"] == 0.5
    assert report.warnings == (
        "no step marks found; 4 steps were inferred from the repeating sequence of kernels, each starting with 'a'; "
        "they may be layers of one step, as no call of the host tells them apart (confidence 0.50)",
    )
    assert "step marks" in [item.what for item in report.missing]


# -- real profiles -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "what", "least"),
    [
        ("jax-mi300x-conv", "sequence of kernels", 5),
        ("jax-mi300x-attention", "sequence of kernels", 5),
        ("tpu-inference", "sequence of XLA modules", 50),
    ],
)
def test_unmarked_profiles_of_the_corpus_have_steps(corpus: Path, name: str, what: str, least: int) -> None:
    report = stepscope.load(corpus / name).overview().to_dict()

    assert report["steps_source"] == "inferred"
    assert what in report["steps_how"]
    assert report["steps_confidence"] > 0.9
    assert len(report["steps"]) >= least


# -- updates of optimizers -----------------------------------------------------------------------------------------

UPDATES = {"U": Sort(K.ANNOTATION, "Optimizer.step#Adam.step"), "Q": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#next")}


def update_steps(text: str) -> list[tuple[int, int]]:
    """The steps that end with updates, start and end in ms; the trace is a single thread."""
    steps = steps_of(draw(f"host main | {text}", UPDATES))
    assert steps.source == "inferred"
    return [(start // MS, end // MS) for start, end in zip(steps.start_ps.tolist(), steps.end_ps.tolist(), strict=True)]


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        pytest.param("abcU abcU abcU", [0, 4, 9, 14], id="a step ends with the update"),
        pytest.param("abU abU abUxyzabU abU abUxyzabU", [0, 3, 7, 11, 17, 21, 25, 31], id="evaluated now and then"),
        pytest.param("abUcdU abUcdU abUcdU", [0, 6, 13, 20], id="of optimizers in turn the last one ends the step"),
        pytest.param("QabUabU QabUabU QabUabU QabUabU", [0, 7, 15, 23, 31], id="several updates after each batch"),
    ],
)
def test_steps_that_end_with_updates(text: str, bounds: list[int]) -> None:
    assert update_steps(text) == list(itertools.pairwise(bounds))


@pytest.mark.parametrize(
    ("sizes", "bounds"),
    [
        ("1234" * 4, [0, 12, 24, 36]),  # tokens of a request
        ("34" + "1234" * 3 + "12", [0, 12, 24]),  # it begins within a request
        ("1111" * 4, list(range(0, 45, 3))),
        ("1212" * 4, list(range(0, 45, 3))),  # two sizes in turn count nothing up
        ("1324214312431423", list(range(0, 45, 3))),
    ],
)
def test_rounds_whose_sizes_count_up_and_begin_again_are_steps(sizes: str, bounds: list[int]) -> None:
    ops = {each: Sort(K.OP, "aten::mm", stats={"Input Dims": f"[[{each},8],[8,8]]"}) for each in "1234"}
    letters = dict(zip("1234", "wxyz", strict=True))
    sorts = {letters[each]: sort for each, sort in ops.items()} | {"t": Sort(K.OP, "aten::triu")}
    trace = draw("host main | " + "".join(f"t{letters[each]} " for each in sizes), sorts)

    assert [start // MS for start in steps_of(trace).start_ps.tolist()][: len(bounds)] == bounds


@pytest.mark.parametrize(
    ("turns", "bounds"),
    [
        ("cccgcccgcccgc", [0, 16, 32, 48]),  # three updates of a critic, one of a generator
        ("ccgcccgcccgcccg", [0, 12, 28, 44, 60]),  # it begins within a round
        ("cgcgcgcg", [0, 8, 16, 24, 32]),
        ("ccccccc", [0, 4, 8, 12, 16, 20, 24, 28]),
        ("ccgcgccgcg", [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40]),  # in no regular turns
    ],
)
def test_a_round_of_optimizers_that_take_turns_is_a_step(turns: str, bounds: list[int]) -> None:
    sorts = UPDATES | {
        letter: Sort(K.OP, "aten::mul_", stats={"Input Dims": sizes})
        for letter, sizes in (("c", "[[12,1,4,4]]"), ("g", "[[96,48,4,4]]"))
    }
    marks, ops = "fU--" * len(turns), "".join(f" {each}  " for each in turns)
    steps = steps_of(draw(f"host main | {marks}\nhost main | {ops}", sorts))

    assert [(start // MS, end // MS) for start, end in zip(steps.start_ps, steps.end_ps, strict=True)] == list(
        itertools.pairwise(bounds)
    )


def test_updates_with_nothing_in_common_are_no_steps() -> None:
    assert steps_of(draw("host main | abU cdU efU ghU", UPDATES)).source == "none"


def _parts(*names: str) -> dict[str, Sort]:
    wait = {"S": Sort(K.SYNC, "cudaStreamSynchronize")}
    return wait | {letter: Sort(K.ANNOTATION, name) for letter, name in zip("ABCDE", names, strict=False)}


_WITH_RANGES = """
    host main | A- L1  S-B- L3  S-C- L5  S-D- L7  S-
    gpu0 s    |    a1b2     a3b4     a5b6     a7b8
"""


@pytest.mark.parametrize(
    ("names", "source"),
    [
        pytest.param([f"FSDP::pre_forward (blocks.{n})" for n in range(4)], "none", id="one block after the other"),
        pytest.param(["pre_forward (blocks.0)"] * 4, "inferred", id="the same block again and again"),
        pytest.param([f"batch.{n}" for n in range(4)], "inferred", id="batches are numbered as blocks are"),
    ],
)
def test_cycles_with_another_numbered_part_of_the_model_in_each_are_layers(names: list[str], source: str) -> None:
    assert found(draw(_WITH_RANGES, _parts(*names)))[0] == source


def test_copies_that_no_computation_follows_are_no_steps() -> None:
    copies = {"C": Sort(K.COPY_HOST_TO_DEVICE, "Memcpy HtoD")}

    assert found(draw("gpu0 s | C- C- C- C- C- C- k--------------", copies))[0] == "none"
    assert len(found(draw("gpu0 s | C-k- C-k- C-k- C-k-", copies))[2]) == 4


def test_what_holds_less_than_half_of_the_work_of_the_devices_is_no_step() -> None:
    copies = {"C": Sort(K.COPY_DEVICE_TO_HOST, "Memcpy DtoH")}

    assert found(draw("gpu0 s | k--k--k--k-- C-----------------", copies))[0] == "none"
    assert len(found(draw("gpu0 s | k--k--k--k-- C---", copies))[2]) == 4


_PHASES = {
    letter: Sort(K.ANNOTATION, name)
    for letter, name in zip("RBHP", ("read", "backbone", "BatchNormalization head", "post"), strict=True)
}


def test_phases_that_come_as_often_as_the_longest_make_one_step() -> None:
    trace = draw("host main | H--P--  R-B---H--P-  R-B---H--P-  R-B---H--P-  R-B---H--P-  R-B---H--P-", _PHASES)

    source, sure, steps = found(trace)
    assert (source, sure) == ("inferred", 0.833)
    assert [(begin, end) for begin, end, _ in steps] == [(8, 21), (21, 34), (34, 47), (47, 60), (60, 71)]
    assert steps_of(trace).how == (
        "no step marks found; 5 steps were inferred from 4 ranges that come once in each, such as 'backbone', "
        "'BatchNormalization head', 'post'; a step begins with 'read'"
    )


def test_a_range_that_fills_its_loop_is_the_step_whatever_comes_beside_it() -> None:
    trace = mark_named_steps(draw("host main | R-B---------R-B---------R-B---------R-B---------R-B---------", _PHASES))

    assert (found(trace)[0], steps_of(trace).name[0]) == ("markers", "backbone 0")


def test_requests_that_threads_handle_side_by_side_are_no_steps() -> None:
    handle = {"R": Sort(K.ANNOTATION, "Stage::run")}
    one = "R--- R----- R--- R---- R---\nhost a |  ab   abab   ab   aba   a"
    alone, beside = draw(f"host a | {one}", handle), draw(f"host a | {one}\nhost b | R----- R--- R---- R---", handle)

    assert steps_of(mark_named_steps(alone)).source == "markers"
    assert steps_of(mark_named_steps(beside)).source != "markers"


def test_the_layers_of_a_language_model_are_no_steps(corpus: Path) -> None:
    said = stepscope.load(corpus / "torch-sglang-qwen3").overview().to_dict()

    assert (said["steps_source"], said["step_time_ms"]["count"]) == ("markers", 1)  # one prefill of 36 equal layers


# -- what the host does once a step ----------------------------------------------------------------------------------

_WAIT = {"S": Sort(K.SYNC, "cudaDeviceSynchronize")}
_PAIRS = """
    host main | L1L2L3L4L5L6S--L1L2L3L4L5L6S--L1L2L3L4L5L6S--L1L2L3L4L5L6S--
    gpu0 s    |  a1b2a3b4a5b6   a1b2a3b4a5b6   a1b2a3b4a5b6   a1b2a3b4a5b6
"""


def test_cycles_between_two_waits_of_the_host_are_one_step() -> None:
    source, sure, steps = found(draw(_PAIRS, _WAIT))

    assert (source, sure) == ("inferred", 1.0)
    assert [begin for begin, _, _ in steps] == [1, 16, 31, 46]


def test_cycles_that_nothing_on_the_host_supports_may_be_layers() -> None:
    _, sure, steps = found(draw(_PAIRS.replace("S--", "   ")))

    assert (sure, len(steps)) == (0.5, 12)


def test_a_device_whose_record_ends_early_does_not_tell_the_steps() -> None:
    trace = draw("""
        host main | F---- F---- F---- F---- F---- F---- F---- F---- F---- F----
        gpu0 s    |  a-b-  a-b-  a-b-
    """)
    assert len(found(trace)[2]) == 10


# -- a loop that reads nothing ---------------------------------------------------------------------------------------


def test_steps_of_which_only_the_calls_were_recorded_are_said_to_be_so() -> None:
    from stepscope.analysis.account.account import account_of
    from stepscope.analysis.account.account_text import judge_account
    from stepscope.analysis.trust.checks import doubts_of

    calls = draw("host main | M0-M1-M2-M3-\nhost main | F- F- F- F-")
    computed = draw("host main | M0-M1-M2-M3-\nhost main | F- F- F- F-\nhost pool |  a  a  a  a")
    account = account_of(calls)

    assert account is not None
    assert judge_account(account).name == "unknown"
    assert [(doubt.check, doubt.is_grave) for doubt in doubts_of(calls)] == [("only_dispatch", True)]
    assert [doubt.check for doubt in doubts_of(computed)] == []
