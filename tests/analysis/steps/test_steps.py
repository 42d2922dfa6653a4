"""The step rules one by one.  Every trace is a picture; every expectation is counted in it by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw import MS, POOL, Sort, draw, traces
from gallery import gallery
from hypothesis import given, settings
from hypothesis import strategies as st

import stepscope
from stepscope.analysis.account import steps_tool
from stepscope.analysis.steps.breakdown import CATEGORIES, breakdown
from stepscope.analysis.steps.device_steps import device_steps
from stepscope.analysis.steps.find_steps import HostSteps, count_warm_up_steps, is_usual, steps_of, whole_steps
from stepscope.analysis.steps.host_steps import close_gaps
from stepscope.analysis.steps.named_steps import mark_named_steps
from stepscope.analysis.steps.session_steps import steps_of_host
from stepscope.analysis.steps.step_range import take_steps
from stepscope.formats.xspace import reader, writer
from stepscope.model import EventKind, HostTrace
from stepscope.vocabulary.serving import Batch

K = EventKind


def spans(trace: HostTrace) -> list[tuple[str, float, float]]:
    """Name, begin and end of every step, ms."""
    steps = steps_of(trace)
    bounds = zip(steps.name, steps.start_ps.tolist(), steps.end_ps.tolist(), strict=True)
    return [(name, start / MS, end / MS) for name, start, end in bounds]


def members(trace: HostTrace) -> dict[str, list[int]]:
    """For each name, the step of every event of that name in order of time; -1 is none."""
    label, found = steps_of(trace).label, dict[str, list[int]]()
    for row in np.argsort(trace.events.start_ps, kind="stable").tolist():
        found.setdefault(trace.name_of(row), []).append(int(label[row]))
    return found


def reread(trace: HostTrace) -> HostTrace:
    """The trace written to a file and read back, so that the reader decides anew what every event is."""
    as_tensorflow = replace(trace, framework="tensorflow")  # whose files tell kinds by names
    return reader.read(writer.write(as_tensorflow), "drawn", trace.host)


# -- what is a mark ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "stats", "is_mark"),
    [
        ("train", {"step_num": 7, "_r": 1}, True),  # tf.profiler.experimental.Trace, JAX StepTraceAnnotation
        ("Profiled batch", {"step_num": 7}, True),  # Keras 3: no _r
        ("anything", {"step_num": 7}, True),
        ("train", {"_r": 1}, True),  # Keras 2
        ("test", {"_r": 1}, True),
        ("TraceContext", {}, True),
        ("ProfilerStep#7", {}, True),  # torch.profiler, exported as XSpace
        ("train", {}, False),
        ("train/dense", {"_r": 1}, False),
        ("FunctionRun", {"_r": 1}, False),
    ],
)
def test_what_the_reader_takes_for_a_mark(name: str, stats: dict[str, int], is_mark: bool) -> None:
    trace = reread(draw("host main | A---", {"A": Sort(K.OTHER, name, stats=stats)}))

    assert (trace.events.kind[0] == K.STEP_MARK) == is_mark


def test_marks_are_steps_and_carry_the_programs_own_numbers() -> None:
    trace = draw("host main | M100-- M101--- M102-")

    assert spans(trace) == [("train 100", 0, 6), ("train 101", 7, 14), ("train 102", 15, 20)]
    assert steps_of(trace).source == "markers"
    assert steps_of(trace).number.tolist() == [100, 101, 102]
    assert steps_of(trace).numbered
    assert steps_of(trace).how == "3 step marks such as 'train 100' on thread 'main'"


def test_a_name_that_holds_its_number_is_not_given_it_again() -> None:
    sorts = {
        "a": Sort(K.STEP_MARK, "ProfilerStep#9", stats={"step_num": 9}),
        "b": Sort(K.STEP_MARK, "ProfilerStep#10", stats={"step_num": 10}),
        "c": Sort(K.STEP_MARK, "phase10", stats={"step_num": 0}),
        "d": Sort(K.STEP_MARK, "5", stats={"step_num": 5}),
    }
    assert steps_of(draw("host main | a--b--", sorts)).name == ("ProfilerStep#9", "ProfilerStep#10")
    assert steps_of(draw("host main | c--", sorts)).name == ("phase10 0",)
    assert steps_of(draw("host main | d--", sorts)).name == ("5",)


def figures(trace: HostTrace) -> dict[str, Any]:
    """What the pictures below expect; under the name of an event, the step of every such event."""
    steps = steps_of(trace)
    own = {"steps": spans(trace), "names": [*steps.name], "complete": steps.complete.tolist(), "source": steps.source}
    return members(trace) | own


@gallery("""
    the first step does not begin before the device is done with what was launched before it
        # K3: launched before the recording started, since its id is low
        host main |    L5 M1------ M2------
        host main |        L6       L7
        gpu0 s    |  K3-------K5--K6-----K7----
        steps = [("train 1", 14, 21), ("train 2", 21, 27)]
        kernel = [-1, -1, 0, 1]
    what other streams still do of earlier work does not delay the first step
        host main | M1------ M2------
        host main |  L6       L7
        gpu0 s    | K3--K6-----K7----
        gpu0 t    | N4--------
        steps = [("train 1", 4, 11), ("train 2", 11, 17)]
    a stream that runs ahead does not begin the first step for one that still does earlier work
        host main |   M1------ M2------
        host main |    L5L6     L7
        gpu0 s    | K3---K4-K6-----K7----
        gpu0 t    |     K5
        steps = [("train 1", 8, 15), ("train 2", 15, 21)]
    copies that prefetching makes during the first step are no backlog
        host main | M1------ M2------
        host main |     L6       L7
        host pre  |  L4
        gpu0 s    |   U4  K6-     K7-
        steps = [("train 1", 0, 9), ("train 2", 9, 17)]
    a mark inside a mark is no step
        host main | M1-------- M2--------
        host main |  Y------    Y------
        host main |   M7-        M8-
        steps = [("train 1", 0, 10), ("train 2", 11, 21)]
    of marks on two threads those of the fuller thread count
        host eval |     M9----------
        host main | M1--- M2--- M3---
        names = ["train 1", "train 2", "train 3"]
""")
def test_which_marks_are_steps_and_when_the_first_one_begins(picture: str, expected: dict[str, Any]) -> None:
    found = figures(draw(picture))

    assert {name: found[name] for name in expected} == expected


def test_each_device_begins_the_first_step_when_it_is_done_with_its_own_backlog() -> None:
    trace = draw("""
        host main | M1-------- M2------
        host main |  L6L8       L7L9
        gpu0 s    | K3--K6------ K7----
        gpu1 s    | K4------K8---- K9--
    """)

    begins = {of.device: [ps // MS for ps in of.start_ps] for of in device_steps(trace)}
    assert begins == {"GPU:0": [4, 13], "GPU:1": [8, 14]}


# -- what belongs to a step --------------------------------------------------------------------------------------


@gallery("""
    what a mark encloses belongs to it
        host main | M0------- M1-------
        host main |  a- b-     a-   c-
        host main |   d         d        e
        a = [0, 1]
        b = [0]
        c = [1]
        d = [0, 1]
        e = [-1]
    a consumer belongs to the step of its producer
        host main | M0------ M1------
        host main |  P5       P6
        host pool |    C5--      C6--
        host pool |     a-        a-  C9-
        consume = [0, 1, -1]
        a = [0, 1]
    a context id that is used twice links to the latest producer before
        host main | M0------ M1------
        host main |  P5       P5
        host pool |    C5--      C5--
        consume = [0, 1]
    a region of a threadpool belongs to who handed it over
        # after the region: the thread works for steps, and this is the step at hand
        host main | M0-------------- M1--------------
        host main |  P1               P2
        host pool |     S1!a- b- T!      S2!a- T!  c-
        a = [0, 1]
        b = [0]
        c = [1]
    a last mark that holds no work does not halve the mean
        host main | M0-------M1-
        host main |  a------
        complete = [True, False]
    device work belongs to the step that launched it
        host main | M0---- M1----
        host main |  L1     L2
        gpu0 s    |      K1--  K2--
        kernel = [0, 1]
    device work launched between steps belongs to none
        host main | M0----                M1----
        host main |  L1        L7 L8       L2
        gpu0 s    |   K1--       K7--K8--   K2--
        kernel = [0, -1, -1, 1]
        steps = [("train 0", 0, 6), ("train 1", 22, 28)]
    work of a thread that nothing links belongs to the step at hand
        host main     | M0--------- M1---------
        host autograd |    B-----      B-----  B-
        host autograd |     a L1        a L2
        host gloo     |         G--        G--
        gpu0 s        |         K1--        K2--
        backward = [0, 1, -1]
        a = [0, 1]
        gloo:all_reduce = [0, 1]
        kernel = [0, 1]
    threads that launch kernels work for the steps
        # copies input ahead, for whichever step
        host main     | M0--------- M1---------
        host autograd |    a L1        a L2
        host pin      |  b  V3      b V4
        gpu0 s        |      K1--        K2--
        gpu0 copy     |      U3       U4
        a = [0, 1]
        b = [-1, -1]
    threads that prepare input work for no step
        host main | M0--------- M1---------
        host main |  P1
        host data |    C1-- J--   J---
        host data |          a     a
        a = [-1, -1]
""")
def test_what_belongs_to_a_step_of_marks(picture: str, expected: dict[str, Any]) -> None:
    found = figures(draw(picture))

    assert {name: found[name] for name in expected} == expected


def test_a_producer_of_another_context_type_links_nothing() -> None:
    other = {"Q": Sort(K.OTHER, "other", "_c", {"_ct": POOL + 1})}
    trace = draw(
        """
        host main | M0------
        host main |  P5
        host pool |    Q5--
        """,
        other,
    )

    assert members(trace)["other"] == [-1]


@pytest.mark.parametrize("consumer", [(1 << 64) - 2, -2])
def test_ids_above_2_to_the_63_are_equal_in_both_integer_types(consumer: int) -> None:
    sorts = {
        "Q": Sort(K.OTHER, "produce", stats={"_pt": POOL, "_p": (1 << 64) - 2}),
        "Z": Sort(K.OTHER, "consume", stats={"_ct": POOL, "_c": consumer}),
    }
    trace = draw(
        """
        host main | M0------
        host main |  Q-
        host pool |    Z---
        """,
        sorts,
    )

    assert members(trace)["consume"] == [0]


def test_a_wait_for_input_belongs_to_the_executor_run_it_was_made_for() -> None:
    run = {"id": -5}
    sorts = {
        "E": Sort(K.EXECUTOR, "executor", "iter_num", run),
        "I": Sort(K.INPUT_WAIT, "wait", "iter_num", run),
        "Q": Sort(K.INPUT_WAIT, "other run", "iter_num", {"id": 6}),
    }
    trace = draw(
        """
        host main | M0--------- M1---------
        host main |  E3-------   E4-------
        host pool |    I3--        I4--
        host pool |        Q3-         I9-
        """,
        sorts,
    )

    assert members(trace)["wait"] == [0, 1, -1]
    assert members(trace)["other run"] == [-1]


# A program and its runs as JAX records them on a CPU: calls on the loop's thread, runs on one of XLA's.
RUNS = {
    "F": Sort(K.TRACED_FUNCTION, "PjitFunction(train)"),
    "f": Sort(K.TRACED_FUNCTION, "PjitFunction(<lambda>)"),
    "r": Sort(K.OP, "dot", "run_id", {"hlo_module": "jit_train"}),
    "q": Sort(K.OP, "tanh", "run_id", {"hlo_module": "jit__lambda_"}),
    "l": Sort(K.OP, "tanh", "run_id", {"hlo_module": "jit__lambda"}),  # as JAX 0.10 writes it
}


@gallery("""
    a run that the run before it starts belongs to the call that made it
        # The second call waits for the result of the first: the thread that is done with that one starts it.
        host main | M0---- M1---- M2----
        host main |  F      F      F
        host main |  P1
        host xla  |   S1!    T!S2!    T!S3! T!
        host xla  |   r1--      r2--    r3--
        host xla  |        P2!      P3!
        dot = [0, 1, 2]
    runs that no producer is known of belong to the calls in their order
        host main | M0--------- M1---------
        host main |  F f         F f
        host xla  |    q1 r2-- r2-   q3 r4--
        dot = [0, 0, 1]
        tanh = [0, 1]
    runs of programs whose calls nobody recorded follow one another
        # As TensorFlow runs the clusters of one function.
        host main | M0-------------- M1--------
        host main |  P1               P3
        host xla  |   S1!  T!S2!  T!   S3!  T!
        host xla  |   q1--   r2--      q3--
        host xla  |     P2
        tanh = [0, 1]
        dot = [0]
    a step ends when the runs that it called end
        host main | M0M1--M2--------
        host main | F F   F
        host xla  |   r1--r2----r3--
        steps = [("train 0", 0, 6), ("train 1", 6, 12), ("train 2", 12, 16)]
    work that was called before the recording belongs to none of the steps in which it runs
        host main |  M0M1M2M3M4
        host main |  F F F F F
        host xla  | r9-r9-r9-r9-r1--r2--
        dot = [-1, -1, -1, -1, 0, 1]
        complete = [True, False, False, False, False]
    steps without work are usual among those with work and cut at the end
        host main | M0--M1--M2--M3--
        host main | F       F
        host xla  |  r1-     r2-
        complete = [True, True, True, False]
""")
def test_runs_belong_to_the_calls_that_made_them(picture: str, expected: dict[str, Any]) -> None:
    found = figures(draw(picture, RUNS))

    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("op", ["q", "l"])
def test_runs_of_a_function_without_a_name_belong_to_its_calls(op: str) -> None:
    trace = draw(
        f"""
        host main | M0--M1--M2--------
        host main | f   f   f
        host xla  |  {op}1---{op}2---{op}3---
        """,
        RUNS,
    )

    assert members(trace)["tanh"] == [0, 1, 2]


def test_a_run_that_was_called_before_the_recording_belongs_to_no_step_and_moves_no_other() -> None:
    trace = draw(
        """
        host main | M0--------- M1---------
        host main |    F          F
        host xla  | r9--  r1---     r2---
        """,
        RUNS,
    )

    assert members(trace)["dot"][1:] == [0, 1]


@pytest.mark.parametrize(
    ("calls", "complete"),
    [
        ("M0M1M2M3M4", [True, True, False, False, False]),  # with marks
        ("F F F F F ", [True, True, False, False, False]),  # inferred
    ],
    ids=["marked", "inferred"],
)
def test_steps_whose_work_had_not_run_when_the_capture_ended_are_cut(calls: str, complete: list[bool]) -> None:
    trace = draw(
        f"""
        host main | {calls}
        host main | F F F F F
        host xla  |  r1--r2--r3-
        """
        if calls.startswith("M")
        else f"""
        host main | {calls}
        host xla  |  r1--r2--r3-
        """,
        RUNS,
    )

    assert steps_of(trace).complete.tolist() == complete  # nothing tells whether all of r3 was recorded


def test_steps_follow_each_other_unless_their_numbers_say_that_others_lie_between() -> None:
    steps = steps_of(draw("host main | M0-- M1--      M3-- M4--"))

    assert (steps.length_ps // MS).tolist() == [5, 4, 5, 4]
    assert is_usual(draw("host main | M0-- M1--      M3-- M4--")).tolist() == [True, False, True, False]


def test_steps_of_devices_with_more_time_between_than_in_them_do_not_follow_each_other() -> None:
    trace = draw("tpu0 Steps | W0---            W1---\ntpu0 ops   | k----            k----")

    assert (steps_of(trace).length_ps // MS).tolist() == [5, 5]
    assert is_usual(trace).all()


def test_steps_that_are_inferred_from_calls_end_when_the_runs_of_the_calls_end_too() -> None:
    trace = draw(
        """
        host main | F F F F
        host xla  |  r1--r2--r3--r4--
        """,
        RUNS,
    )

    assert steps_of(trace).source == "inferred"
    assert [(begin, end) for _, begin, end in spans(trace)] == [(0, 5), (5, 9), (9, 13), (13, 17)]
    assert members(trace)["dot"] == [0, 1, 2, 3]


def test_a_jax_program_that_runs_ahead_of_its_computation_has_the_steps_of_its_own_clock(
    bottleneck_captures: Path,
) -> None:
    profile = stepscope.load(bottleneck_captures / "jax_dense" / "slow")
    trace = profile.trace(profile.hosts[0])
    steps = steps_of(trace)

    ops = trace.events.kind == K.OP
    assert np.bincount(steps.label[ops] + 1).tolist() == [0, *[37] * 10]
    assert np.diff(steps.end_ps).mean() / MS == pytest.approx(23.3, rel=0.05)  # which the program measured itself


BESIDE = """
    host main | M0-------M1-------M2-------
    host main | a-----L3 a-----L4 a-----L5
    gpu0 s    |        K3---    K4---    K5----
"""


def test_marks_stay_the_steps_where_the_device_has_nothing_left_to_do_when_it_is_given_more() -> None:
    """Its work ends after the marks and holds nobody up: the loop would take as long without it."""
    steps = steps_of(draw(BESIDE))

    assert (steps.start_ps // MS).tolist() == [0, 9, 18]
    assert (steps.until_ps // MS).tolist() == [9, 18, 27]


def test_a_step_is_not_cut_at_one_end_only_where_a_device_still_has_work_of_before() -> None:
    """K2 was launched before the mark; the loop waits for its own work, so it waits for that as well."""
    steps = steps_of(
        draw("""
        host main | L2M0-------
        host main |    L3 a----
        gpu0 s    | K2---K3--
    """)
    )

    assert (steps.start_ps // MS).tolist() == [2]
    assert (steps.until_ps // MS).tolist() == [11]


@pytest.mark.parametrize(
    ("lengths", "warm_up"),
    [([40, 5, 6, 5, 5], 1), ([14, 5, 6, 5, 5], 0), ([40, 5, 30, 5, 5], 0), ([40, 5, 5], 0)],
    ids=["three times the longest other", "not as long", "others stall, too", "too few others to tell"],
)
def test_a_first_step_much_longer_than_any_other_starts_things_up(lengths: list[int], warm_up: int) -> None:
    marks = "".join(f"M{at}".ljust(length, "-") for at, length in enumerate(lengths))

    assert count_warm_up_steps(draw(f"host main | {marks}")) == warm_up


def test_what_repeats_in_a_small_part_of_a_recording_is_no_loop_unless_the_host_says_so() -> None:
    """Twelve layers of one call: the host launched them in a burst, and the rest of the recording is other things."""
    layers = draw("""
        host main | x-----------------------------------------------------------------------
        gpu0 s    | abababababababababababab
    """)
    loop = draw("gpu0 s | abababababababababababab")

    assert steps_of(layers).source == "none"
    assert steps_of(loop).source == "inferred"


def test_two_repetitions_that_differ_much_are_no_loop() -> None:
    assert steps_of(draw("gpu0 s | ab--------------------ab--ab")).source == "none"


def test_device_work_without_a_launch_belongs_to_the_step_of_the_work_before_it() -> None:
    trace = draw("""
        host main | M0---- M1----
        host main |  L1     L2
        gpu0 s    |   K1  K   K2 K
        gpu1 s    |    K
    """)

    by_line = [steps_of(trace).label[trace.lines.event_begin[row] :][:4].tolist() for row in (1, 2)]
    assert by_line[0] == [0, 0, 1, 1]
    assert by_line[1][:1] == [-1]  # nothing before it on its own device


# -- bounds ------------------------------------------------------------------------------------------------------


@gallery("""
    steps abut where the device lags
        host main | M0-M1-M2-
        host main |  L1 L2 L3
        gpu0 s    |    K1-----K2----K3-----
        steps = [("train 0", 0, 10), ("train 1", 10, 16), ("train 2", 16, 23)]
    steps are their marks where the host waits for the device
        host main | M0------- M1-------
        host main |  L1        L2
        gpu0 s    |    K1--      K2--
        steps = [("train 0", 0, 9), ("train 1", 10, 19)]
    a step ends with its slowest device
        host main | M0---      M1---
        host main |  L1L2       L3L4
        gpu0 s    |    K1         K3
        gpu1 s    |      K2-         K4---
        steps = [("train 0", 0, 8), ("train 1", 11, 22)]
    overlapping steps of a device share no time
        host main | M0---M1---
        host main |  L1   L2
        gpu0 s    |     K1--------
        gpu0 t    |        K2--
        steps = [("train 0", 0, 14), ("train 1", 14, 14)]
""")
def test_bounds_of_steps_with_a_device(picture: str, expected: dict[str, Any]) -> None:
    found = figures(draw(picture))

    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("kernels", "complete"),
    [
        (["KKKKK", "KKKKK", "KKKKK"], [True, True, True]),
        (["KKKKK", "KKKKK", "KKKK"], [True, True, True]),  # 4 of 5 is 80 %
        (["KKK", "KKKKK", "KKKKK"], [False, True, True]),
        (["KKKKK", "KKKKK", "K"], [True, True, False]),
        (["KKKKK", "K", "KKKKK"], [True, True, True]),  # in the middle nothing cuts
        (["KKKKK", "K"], [True, True]),  # two steps do not tell what is usual
    ],
)
def test_a_step_cut_by_the_edge_has_too_little_device_work(kernels: list[str], complete: list[bool]) -> None:
    marks = " ".join(f"M{at}-----" for at in range(len(kernels)))
    launches = " ".join(f" L{at + 1}    " for at in range(len(kernels)))
    work = " ".join(f"K{at + 1}{(text[1:]):<5} " for at, text in enumerate(kernels))
    trace = draw(f"""
        host main | {marks}
        host main | {launches}
        gpu0 s    |   {work}
    """)

    assert steps_of(trace).complete.tolist() == complete


def test_steps_that_the_edge_cuts_are_left_out_of_averages() -> None:
    trace = draw("""
        host main | M0----- M1----- M2----- M3-----
        host main |  L1      L2      L3      L4
        gpu0 s    |   K1      K2KKK   K3KKK   K4K
    """)
    steps, whole = steps_of(trace), whole_steps(trace)

    assert steps.complete.tolist() == [False, True, True, False]
    assert [whole.number.tolist(), whole.name, whole.complete.tolist()] == [[1, 2], ("train 1", "train 2"), [True] * 2]
    assert whole.start_ps.tolist() == steps.start_ps[1:3].tolist()
    assert whole.end_ps.tolist() == steps.end_ps[1:3].tolist()
    assert whole.label.tolist() == [{1: 0, 2: 1}.get(label, -1) for label in steps.label.tolist()]


def test_every_complete_step_counts() -> None:
    trace = draw("host main | M0-- M1-- M2-- M3-- M4-- M5-- M6--")  # XProf drops the first and the last of these

    assert len(spans(trace)) == 7
    assert steps_of(trace).complete.all()


# -- steps that the file's writer derived ------------------------------------------------------------------------

GROUPED = {
    "a": Sort(K.KERNEL, "a", "group_id"),
    "b": Sort(K.KERNEL, "b", "group_id"),
    "o": Sort(K.OP, "o", "group_id"),
}


@gallery("""
    steps of a grouped file
        host main  | o0----  o1----
        gpu0 Steps |   W0------W1----
        gpu0 s     |   a0- b0- a1-b1-
        steps = [("0", 2, 10), ("1", 10, 16)]
        source = "markers"
        o = [0, 1]
        step = [0, 1]
        a = [0, 1]
        b = [0, 1]
    a grouped step is as long as on its slowest device
        gpu0 Steps | W0--   W1---------
        gpu1 Steps | W0---- W1---
        gpu0 s     | a0     a1
        steps = [("0", 0, 6), ("1", 7, 18)]
    of a group that appears twice the longest event is the step
        gpu0 Steps | W0- W1-- W0------
        gpu0 s     | a0  a1   b0
        steps = [("1", 4, 8), ("0", 9, 17)]
""")
def test_steps_that_the_writer_of_the_file_grouped(picture: str, expected: dict[str, Any]) -> None:
    found = figures(draw(picture, GROUPED))

    assert {name: found[name] for name in expected} == expected


def test_tpu_steps_are_told_by_the_numbers_that_name_them() -> None:
    steps = {"x": Sort(K.DEVICE_STEP, "41"), "y": Sort(K.DEVICE_STEP, "42")}
    trace = draw(
        """
        tpu0 Steps | x---- y----
        tpu0 ops   | a--b  a--b
        """,
        steps,
    )

    assert spans(trace) == [("41", 0, 5), ("42", 6, 11)]
    assert members(trace)["a"] == [0, 1]


def test_marks_on_the_host_win_over_steps_of_the_writer() -> None:
    trace = draw("""
        host main  | M5--- M6---
        gpu0 Steps |  W0-- W1--
    """)

    assert [name for name, _, _ in spans(trace)] == ["train 5", "train 6"]


# -- nothing to go by --------------------------------------------------------------------------------------------


def test_without_marks_and_cycles_the_capture_is_one_span() -> None:
    trace = draw("host main |   a-- b-  c-----  ")

    assert spans(trace) == [("capture", 2, 16)]
    assert steps_of(trace).source == "none"
    assert steps_of(trace).complete.all()
    assert "the whole capture counts as one span" in steps_of(trace).how


@pytest.mark.parametrize("text", ["", "host main |", "gpu0 s |", "host main | M0!", "gpu0 s | K!"])
def test_where_nothing_takes_time_there_are_no_steps(text: str) -> None:
    trace = draw(text)

    assert spans(trace) == []
    assert steps_of(trace).how == "the profile holds no events that take time"
    assert breakdown(trace, steps_of(trace)).per_step_ps.shape[0] == 0


def test_the_steps_tool_says_where_steps_come_from() -> None:
    report = steps_tool.merge([steps_tool.partial(draw("host main |   a-- b-  c-----  "))])

    assert (report.steps_source, report.confidence) == ("none", None)
    assert "the whole capture counts as one span" in report.warnings[0]


def test_the_steps_tool_names_cut_steps() -> None:
    trace = draw("""
        host main | M0------ M1------ M2------
        host main |  L1       L2       L3
        gpu0 s    |   K1KKK    K2KKK    K3
    """)
    report = steps_tool.merge([steps_tool.partial(trace)])

    assert [row["complete"] for row in report.rows] == [True, True, False]
    assert report.warnings == ("1 step is cut by the edge of the capture and left out of the statistics",)


# -- always ------------------------------------------------------------------------------------------------------


@given(traces())
@settings(max_examples=300, deadline=None)
def test_the_parts_of_every_step_add_up_to_it_and_none_is_negative(trace: HostTrace) -> None:
    steps = steps_of(trace)
    parts = breakdown(trace, steps).categories_ps()

    assert list(parts) == list(CATEGORIES)
    assert (sum(parts.values()) == steps.length_ps).all()
    assert all((part >= 0).all() for part in parts.values())


@given(traces())
@settings(max_examples=200, deadline=None)
def test_steps_are_in_order_of_time_and_labels_name_steps(trace: HostTrace) -> None:
    steps = steps_of(trace)

    assert (steps.end_ps >= steps.start_ps).all()
    assert (np.diff(steps.start_ps) >= 0).all()
    assert len(steps.name) == len(steps.complete) == len(steps.number) == len(steps.start_ps)
    assert steps.label.max(initial=-1) < len(steps.name)
    assert steps.source != "none" or len(steps.name) <= 1


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=2, max_size=6))
@settings(max_examples=100, deadline=None)
def test_parts_add_up_where_steps_overlap_each_other(bounds: list[tuple[int, int]]) -> None:
    trace = draw("gpu0 s | a--b--a---b  a")
    start = np.sort(np.array([start for start, _ in bounds])) * MS
    end = start + np.array([length for _, length in bounds]) * MS
    label = np.arange(len(trace.events), dtype=np.int32) % len(bounds)
    steps: HostSteps = replace(
        steps_of(trace),
        number=np.arange(len(bounds)),
        name=tuple(map(str, range(len(bounds)))),
        start_ps=start,
        end_ps=end,
        complete=np.ones(len(bounds), np.bool_),
        label=label,
    )
    steps = close_gaps(steps)
    parts = breakdown(trace, steps).categories_ps()

    assert (sum(parts.values()) == steps.length_ps).all()
    assert all((part >= 0).all() for part in parts.values())


@pytest.mark.parametrize("name", ["²", "9" * 30], ids=["a digit that is no number", "more than 64 bits"])
def test_names_that_are_no_step_numbers_tell_no_steps(name: str) -> None:
    trace = draw(
        """
        tpu0 Steps | x----
        tpu0 ops   | a--b
        """,
        {"x": Sort(K.DEVICE_STEP, name)},
    )

    assert steps_of(trace).source == "none"


# -- servers of language models --------------------------------------------------------------------------------------


def test_each_batch_that_a_server_names_is_a_step() -> None:
    sorts = {
        letter: Sort(EventKind.ANNOTATION, name)
        for letter, name in {
            "p": "execute_context_2(6144)_generation_0(0)",
            "q": "execute_context_1(512)_generation_2(2)",
            "d": "execute_context_0(0)_generation_3(3)",
            "f": "gpu_model_runner: forward",
        }.items()
    }
    trace = mark_named_steps(draw("host main | p----- q----- d---\nhost main |  f---   f---   f--", sorts))
    steps = steps_of(trace)

    assert steps.source == "markers"
    assert steps.name == (
        "execute_context_2(6144)_generation_0(0) 0",
        "execute_context_1(512)_generation_2(2) 1",
        "execute_context_0(0)_generation_3(3) 2",
    )


def test_one_batch_of_a_server_is_a_step() -> None:
    served = {"d": Sort(EventKind.ANNOTATION, "execute_context_0(0)_generation_3(3)")}
    steps = steps_of(mark_named_steps(draw("host main | d-----", served)))

    assert (steps.source, len(steps.number)) == ("markers", 1)


def test_a_row_says_what_is_in_the_batch_of_its_step() -> None:
    sorts = {
        letter: Sort(EventKind.ANNOTATION, name)
        for letter, name in {
            "v": "execute_context_1(512)_generation_2(2)",  # vLLM
            "e": "step[EXTEND bs=4 toks=96]",  # SGLang
            "d": "step[DECODE bs=8]",
            "m": "step[MIXED bs=5 toks=70]",
        }.items()
    }
    trace = mark_named_steps(draw("host main | v-- e-- d-- m-- d--", sorts))
    report = steps_tool.merge([steps_tool.partial(trace)])

    assert {"requests", "tokens", "prefill", "decode"} <= set(str(report).split())
    assert [[row[name] for name in ("requests", "tokens", "prefill", "decode")] for row in report.rows] == [
        [3, 514, 1, 2],
        [4, 96, 4, 0],
        [8, None, 0, 8],
        [5, 70, None, None],
        [8, None, 0, 8],
    ]

    assert [row.batch for row in steps_of_host(take_steps(trace, [1, 3])).rows] == [
        Batch("EXTEND", 4, 96, 4, 0),
        Batch("MIXED", 5, 70),
    ]


def test_a_mark_without_length_is_no_step() -> None:
    trace = draw("host main | M1! M2--- M3---")

    assert [name for name, _, _ in spans(trace)] == ["train 2", "train 3"]


def test_marks_may_repeat_their_numbers() -> None:
    trace = draw("host main | M0-- M1-- M0-- M1--")  # two epochs that both count from 0

    assert [name for name, _, _ in spans(trace)] == ["train 0", "train 1", "train 0", "train 1"]
    assert len(steps_tool.merge([steps_tool.partial(trace)]).rows) == 4
