"""What the loop's thread does, what the steps compute, and how input comes to them: pictures and figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from draw import MS, Sort, draw, traces
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.every_step import every_step
from stepscope.analysis.facts.feeding import feed_of
from stepscope.analysis.facts.loop import loop_of, loop_time_of
from stepscope.analysis.facts.work import work_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.spans import Spans
from stepscope.model import EventKind, HostTrace, Trait
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.traits import OpTrait

K = EventKind


def spans(*pairs: tuple[int, int]) -> Spans:
    """The instants that the pairs cover."""
    return Spans.union(np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))


def pairs(found: Spans) -> list[tuple[int, int]]:
    """The intervals of a set."""
    return list(zip(found.start.tolist(), found.end.tolist(), strict=True))


# -- sets of instants ----------------------------------------------------------------------------------------------


_points = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)


@given(_points, _points)
@settings(deadline=None)
def test_sets_of_instants_are_sets(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    one, other = ({at for low, high in each for at in range(low, high)} for each in (a, b))

    for found, wanted in (
        (spans(*a) & spans(*b), one & other),
        (spans(*a) - spans(*b), one - other),
        (spans(*a) | spans(*b), one | other),
    ):
        assert {at for low, high in pairs(found) for at in range(low, high)} == wanted
        assert found.total == len(wanted)
    assert spans(*a).overlap_ps(np.array([3]), np.array([20])).tolist() == [len(one & set(range(3, 20)))]


# -- the loop ------------------------------------------------------------------------------------------------------


def test_without_marks_the_thread_that_calls_the_programs_is_the_loop() -> None:
    trace = draw("""
        host pool |  aaaaa  aaaaa  aaaaa  aaaaa
        host main | F------F------F------F------
    """)
    found = loop_of(trace)

    assert steps_of(trace).line < 0
    assert found is not None
    assert [each.name for each in found.programs] == ["train_step"]


def causes(trace: HostTrace, column_ps: int = MS) -> dict[str, float]:
    """What the steps are spent on by the account, in columns of the picture, all steps together."""
    found = every_step(trace)
    assert found is not None
    spent = enumerate(found.causes_ps().sum(axis=0).tolist())
    return {Cause(at).name.lower(): ps / column_ps for at, ps in spent if ps}


QUICK_PS = 30_000_000  # a column in which a call that is ten of them long is a dispatch, and nothing else


def python_ms(trace: HostTrace) -> float:
    """The long stretches of Python while nothing computes."""
    loop = loop_of(trace)
    assert loop is not None
    return loop.python_ps / MS


def runs(ms: int) -> list[tuple[int, int, int, int]]:
    """The thread of the loop was seen to run all the time: where nothing else is recorded of it, that is Python."""
    return [(0, ms, ms, 0)]


@pytest.mark.parametrize(("usage", "ms"), [([(0, 10, 6, 0)], 10.0 - 4.0), ([], 0.0)], ids=["seen", "silent"])
def test_a_gap_while_another_thread_computes_is_waiting(usage: list[tuple[int, int, int, int]], ms: float) -> None:
    trace = draw(
        """
        host main | M0--------
        host main |  P1
        host pool |    S1----T
        host pool |     o---
        """,
        usage=usage,
    )

    assert python_ms(trace) == ms


def test_a_program_of_xla_runs_on_a_cpu_also_where_none_of_its_ops_is_recorded() -> None:
    trace = draw(
        """
        host main | M0--------
        host main |  P
        host pool |   x-----
        host pool |   o
        """,
        {"x": Sort(K.OTHER, "ThunkExecutor::Execute (wait for completion)")},
        usage=[(0, 10, 4, 0)],
    )

    assert python_ms(trace) == 10.0 - 6.0


def test_a_wait_for_input_inside_a_program_is_input() -> None:
    picture = """
        host main | M0--------
        host main | F---------
        host main |   I---
    """

    assert causes(draw(picture, column_ps=QUICK_PS), QUICK_PS) == {"input": 4.0, "launch": 6.0}
    # Starting a program takes no 2 ms: what the call does in all that time, nothing says.
    assert causes(draw(picture)) == {"input": 4.0, "unknown": 6.0}


FETCHING = {
    "f": Sort(K.OP, "aten::addmm"),
    "u": Sort(K.ANNOTATION, "Optimizer.step#Adam.step"),
    "a": Sort(K.OP, "aten::select"),
    "i": Sort(K.OP, "aten::item"),
    "s": Sort(K.OP, "aten::std"),
}


@pytest.mark.parametrize(
    ("rows", "fetches", "columns"),
    [
        # What the optimizer fetches is its own work.
        ("f--B--u----       f--B--u----       \nhost main |        i i               i i", 0, 0),
        # One value a step: nothing but the fetch itself goes with it, although the steps are short.
        ("f--B--u----i      f--B--u----i      \nhost main |        i i               i i", 2, 2),
        # Value by value: the way to the next value goes, too; what the step computes in between stays.
        ("f--ia-ia-iB--u--- f--ia-ia-iB--u---", 6, 14),
        ("f--i  f--i B--u--if--i  f--i B--u--i", 6, 6),
        # An op that reads a number that it was given.
        ("f-s---B--u----     f-s---B--u----     \nhost main |    i                  i", 0, 0),
    ],
)
def test_fetches_are_those_of_the_program_and_the_way_between_them(rows: str, fetches: int, columns: int) -> None:
    column_ps = 10_000_000
    trace = draw(f"host main | M0----------------M1----------------\nhost main | {rows}", FETCHING, column_ps=column_ps)
    loop = loop_of(trace)

    assert loop is not None
    assert (loop.calls["sync"], loop.fetches_ps / column_ps) == (fetches, columns)


PYTHON = {
    "n": Sort(K.PYTHON_CALL, "$loader.py:12 next_batch"),
    "s": Sort(K.PYTHON_CALL, "$utils.py:3 save_weights"),
    "t": Sort(K.PYTHON_CALL, "$main.py:9 train_batch"),
    "r": Sort(K.PYTHON_CALL, "$numpy fromfile"),
    "w": Sort(K.PYTHON_CALL, "$metrics.py:7 rank"),
    "v": Sort(K.PYTHON_CALL, "$array.py:615 _value"),
}


def test_names_of_python_functions_give_their_activity() -> None:
    trace = draw(
        """
        host main | M0-------------
        host main | n---F---s--w---
        host main | r--
        """,
        PYTHON,
        column_ps=QUICK_PS,
    )
    loop = loop_of(trace)

    assert causes(trace, QUICK_PS) == {"input": 4.0, "launch": 4.0, "checkpoint": 3.0, "python": 4.0}
    assert loop is not None
    assert loop.input_reads_files_percent == 75.0


def test_a_function_that_runs_programs_is_no_input_whatever_its_name() -> None:
    trace = draw(
        """
        host main | M0--------
        host main | n---------
        host main |   F-------
        """,
        PYTHON,
        column_ps=QUICK_PS,
    )

    assert causes(trace, QUICK_PS) == {"launch": 8.0, "python": 2.0}


def test_a_function_that_trains_a_batch_is_no_input() -> None:
    assert "input" not in causes(draw("host main | M0----\nhost main | t-----", PYTHON))


TORCH = {
    "d": Sort(K.OP, "aten::detach"),
    "m": Sort(K.OP, "aten::mm"),
    "c": Sort(K.OP, "aten::cat"),
    "f": Sort(K.OP, "aten::item"),
}


SAVE = {
    "s": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: SaveV2"),
    "r": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: ReadVariableOp"),
    "n": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: Norm"),
}


@pytest.mark.parametrize("letters", ["r r r r  ", "r r r    ", "rnrnrnrn "])
def test_variables_that_are_read_in_a_row_between_long_gaps_are_not_saved(letters: str) -> None:
    trace = draw(f"host main | M0----------------\nhost main | F---   {letters}", SAVE)

    assert "checkpoint" not in causes(trace)


@pytest.mark.parametrize(("usage", "silent"), [(runs(11), False), ([], True)], ids=["seen", "silent"])
def test_memory_given_back_after_an_op_that_moves_data(usage: list[tuple[int, int, int, int]], silent: bool) -> None:
    loop = loop_of(draw("host main | M0---------\nhost main | c---  m--", TORCH, usage=usage))

    assert loop is not None
    assert loop.after_moves_ps / MS == 2.0
    assert (loop.python_ps / MS, loop.silent_ps / MS, loop.after_silent_ps / MS) == (
        (0.0, 4.0, 2.0) if silent else (4.0, 0.0, 0.0)
    )


def test_gaps_before_the_first_work_of_a_step() -> None:
    picture = "host main | M0------M1------\nhost main |    m-      m-"
    seen, silent = loop_of(draw(picture, TORCH, usage=runs(16))), loop_of(draw(picture, TORCH))

    assert seen is not None
    assert silent is not None
    assert seen.before_program_ps / MS == 6.0
    assert silent.before_program_ps == 0  # neither a call nor an array says that a batch is made there


def test_a_gap_after_marks_that_have_their_number_in_their_name_is_in_the_same_place_of_each_step() -> None:
    sorts = {str(at): Sort(K.STEP_MARK, f"ProfilerStep#{at}", "step_num") for at in range(5)}
    letters = dict(zip("NOPQR", sorts.values(), strict=True))
    marks = "".join(f"{letter}{at}-----" for at, letter in enumerate(letters))

    loop = loop_of(draw(f"host main | {marks}\nhost main | {'    aaa' * 5}", letters, usage=runs(35)))

    assert loop is not None
    assert loop.python_ps / MS == 5 * 4


TAKING_IN = {"V": Sort(K.COPY_HOST_TO_DEVICE_CALL, "DevicePut"), "f": Sort(K.OP, "aten::item")}


@pytest.mark.parametrize(
    ("calls", "copies", "python_ms", "silent_ms"),
    [
        ("F---    F---    F---", "V       V       V", 2 * 4, 2 * 4),
        ("F---    F---    F---", "", 0, 0),
        ("F---f   F---f   F---", "V       V       V", 0, 0),
        # Nothing is copied in for the first step: there, only Python before its first work is taken for input.
        (" F---   F---    F---", "        V       V", 1 + 3 + 4, 3 + 4),
    ],
    ids=["made between the marks", "nothing is copied in", "a value is read before", "in the mark and before it"],
)
def test_gaps_between_marks_are_input_if_the_next_step_takes_an_array_in(
    calls: str, copies: str, python_ms: int, silent_ms: int
) -> None:
    picture = f"host main | M0---   M1---   M2---\nhost main | {calls}\nhost main | {copies}"
    seen, silent = loop_of(draw(picture, TAKING_IN, usage=runs(21))), loop_of(draw(picture, TAKING_IN))

    assert seen is not None
    assert silent is not None
    assert (seen.before_program_ps / MS, seen.before_silent_ps) == (python_ms, 0)
    assert (silent.before_program_ps / MS, silent.before_silent_ps / MS) == (silent_ms, silent_ms)


@pytest.mark.parametrize(
    ("ran", "queued", "percent"), [(7, 0, 75.0), (16, 0, 0.0), (7, 9, 0.0)], ids=["sleeps", "runs", "ready"]
)
def test_how_much_of_the_input_the_thread_sleeps(ran: int, queued: int, percent: float) -> None:
    picture = "host main | M0------M1------\nhost main | I-----a-I-----a-"
    loop = loop_of(draw(picture, usage=[(0, 16, ran, queued)]))

    assert loop is not None
    assert loop.input_sleeps_percent == percent


def test_a_tensor_made_of_python_numbers_is_not_the_first_work() -> None:
    sorts = TORCH | {"e": Sort(K.OP, "aten::empty"), "t": Sort(K.OP, "aten::lift_fresh")}
    picture = "host main | M0--------M1--------\nhost main |  e  t   m- e  t   m-"
    loop = loop_of(draw(picture, sorts, usage=runs(20)))

    assert loop is not None
    assert loop.before_program_ps / MS == 2 * (1 + 2 + 3)


@pytest.mark.parametrize(("freed", "given_back"), [(4 * 10**6, 0.0), (16 * 10**6, 3.0)], ids=["4 MB", "16 MB"])
def test_memory_given_back_where_as_much_is_freed_as_takes_that_long(freed: int, given_back: float) -> None:
    sorts = TORCH | {"x": Sort(K.DEALLOCATION, "[memory]", stats={"Bytes": freed})}
    loop = loop_of(draw("host main | M0------\nhost main | mmmmm\nhost main |      x!", sorts, usage=runs(8)))

    assert loop is not None
    assert loop.python_ps / MS == 3.0
    assert loop.after_moves_ps / MS == given_back


def test_an_executor_ends_with_its_last_op() -> None:
    sorts = {"x": Sort(K.EXECUTOR, "ExecutorState::Process")}
    picture = """
        host main | M0----------
        host main | F---
        host main | P1
        host pool |  S1--------T
        host pool |  x--------
        host pool |  m-m--
    """

    # Its thread has nothing to do after 6 ms and only waits for a core; what the loop's thread does then is Python.
    assert python_ms(draw(picture, sorts, usage=[(0, 6, 4, 0), (6, 12, 6, 0)])) == 6.0


@pytest.mark.parametrize(("holds", "input_ms"), [("y---------", 4.0), ("y-----", 1.0), ("x---------", None)])
def test_a_call_that_waits_for_the_lock_which_the_dataset_holds_waits_for_input(
    holds: str, input_ms: float | None
) -> None:
    sorts = {
        "c": Sort(K.OTHER, "TFE_Py_ExecuteCancelable"),
        "e": Sort(K.EAGER_EXECUTE, "EagerExecute"),
        "y": Sort(K.OP, "PyFunc:PyFunc"),
        "x": Sort(K.OP, "decode:DecodePng"),
    }
    picture = f"""
        host main         | M0---------
        host main         | F--------
        host main         |  c-------
        host main         |  e---
        host tf_data_pool | {holds}
    """

    assert causes(draw(picture, sorts)).get("input") == input_ms


@pytest.mark.parametrize(
    ("dispatched", "transfer_ms"), [("      e--", 5.0), (" e     e-", 5.0), (" e-------", None), ("         ", None)]
)
def test_a_call_of_tensorflow_converts_its_arguments_before_it_dispatches_its_op(
    dispatched: str, transfer_ms: float | None
) -> None:
    """A NumPy array becomes a tensor in the call, by a constant that is dispatched in it as well."""
    sorts = {"c": Sort(K.OTHER, "TFE_Py_FastPathExecute_C"), "e": Sort(K.EAGER_EXECUTE, "EagerExecute")}
    picture = f"""
        host main | M0---------
        host main |  c-------
        host main | {dispatched}
    """

    assert causes(draw(picture, sorts)).get("transfer") == transfer_ms


def test_python_that_fills_whole_steps_is_not_taken_for_the_gap_of_one_step() -> None:
    found = loop_time_of(draw("host main | M0----M1----M2----M3----M4----M5----", usage=runs(36)))

    assert found is not None
    assert found.spans["python"].total == 36 * MS


def test_without_steps_there_is_no_loop() -> None:
    assert loop_of(draw("host main | a---")) is None


@settings(max_examples=40, deadline=None)
@given(traces())
def test_facts_hold_on_any_trace(trace: HostTrace) -> None:
    loop, work, feed = loop_of(trace), work_of(trace), feed_of(trace)

    if loop is not None:
        assert 0 <= loop.python_ps <= loop.python_ps + loop.silent_ps <= loop.observed_ps
        for part_ps, silent_ps in (
            (loop.before_program_ps, loop.before_silent_ps),
            (loop.after_moves_ps, loop.after_silent_ps),
        ):
            assert 0 <= silent_ps <= loop.silent_ps
            assert 0 <= part_ps - silent_ps <= loop.python_ps
        assert 0 <= loop.input_from_python_ps <= loop.input_ps <= loop.observed_ps
    assert 0 <= work.moves_ps <= work.self_ps
    assert 0 <= work.contention_ps <= max(work.self_ps, 0)
    assert feed.file_read_ps >= 0


# -- the work ------------------------------------------------------------------------------------------------------


def later(trace: HostTrace, by_ps: int) -> HostTrace:
    """The same on a clock that starts earlier by so much."""
    events = replace(trace.events, start_ps=trace.events.start_ps + by_ps)
    return replace(trace, events=events, _derived={})


CONVERSIONS = """
    host main | M0----------------------------
    host main | c-----------------
    host b    | B--------------
    host b    |  c-----------
"""


@pytest.mark.parametrize("by_ms", [0, 100, -3, -100])
def test_facts_are_the_same_wherever_the_clock_starts(by_ms: int) -> None:
    work = work_of(later(draw(CONVERSIONS, {"c": Sort(K.OP, "aten::to")}), by_ms * MS))
    assert (work.casts_ps, work.start_ps) == (18 * MS, 30_000_000)  # a backward pass converts no data

    assert (
        causes(later(draw("host main | M0------------\nhost main | F---  s--", SAVE), by_ms * MS))["checkpoint"] == 10
    )


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        ("aten::cat", True),
        ("aten::add", False),
        ("model/concat:ConcatV2", True),
        ("model/add:AddV2", False),
        ("slice_concatenate_fusion.2", True),
        ("copy.3", True),
        ("add_copy_fusion", False),
        ("dot.1", False),
    ],
)
def test_ops_that_only_move_data(name: str, moves: bool) -> None:
    assert name_has(name, OpTrait.MOVES_DATA) == moves


NETWORK = {
    "f": Sort(K.OP, "aten::mm", "Sequence number"),
    "b": Sort(K.OP, "aten::mm"),
    "B": Sort(K.BACKWARD, "autograd::engine::evaluate_function: MmBackward0", "Sequence number"),
    "g": Sort(K.OP, "aten::mm"),
}


def test_forward_backward_and_what_has_no_gradient() -> None:
    work = work_of(
        draw(
            """
            host main | M0-------------------
            host main | f7-- g---- B7-------
            host main |            b-------
            """,
            NETWORK,
        )
    )

    assert (work.forward_ps / MS, work.backward_ps / MS) == (9.0, 8.0)
    assert work.forward_only_ps == 5 * MS
    assert work.backward_passes == 1


def test_what_a_layer_moves_for_itself_is_not_the_programs() -> None:
    sorts = NETWORK | {
        "r": Sort(K.OP, "aten::gru"),
        "u": Sort(K.OP, "aten::unbind", "Sequence number"),
        "c": Sort(K.OP, "aten::cat"),
        "U": Sort(K.BACKWARD, "autograd::engine::evaluate_function: UnbindBackward0", "Sequence number"),
    }
    picture = """
        host main | M0-----------------------------
        host main | r-------c---B1--U2-----
        host main | u2f1--c-        c----
    """

    assert work_of(draw(picture, sorts)).moves_ps == 4 * MS  # the one that the program calls


@pytest.mark.parametrize(("types", "doubles_ms"), [("['double', 'double']", 3.0), ("['float', 'float']", 0.0)])
def test_products_in_64_bits(types: str, doubles_ms: float) -> None:
    product = {"m": Sort(K.OP, "aten::mm", stats={"Input type": types})}
    work = work_of(draw("host main | M0--------\nhost main | m--", product))

    assert work.doubles_ps / MS == doubles_ms


@pytest.mark.parametrize(
    ("outer", "inner", "narrow"), [("l-", "h---", True), ("l---", "h-", False), ("l---", "", False)]
)
def test_products_in_16_bits_are_those_that_take_the_time(outer: str, inner: str, narrow: bool) -> None:
    """A layer takes floats of 32 bits, converts them, and holds the product of 16 bits."""
    sorts = {
        "l": Sort(K.OP, "aten::linear", stats={"Input type": '["float","float"]'}),
        "h": Sort(K.OP, "aten::mm", stats={"Input type": '["c10::BFloat16","c10::BFloat16"]'}),
    }
    own = "-" * (len(inner) + 1)
    picture = f"host main | M0{'-' * 12}\nhost main | {outer}{own}\nhost main | {' ' * len(outer)}{inner}"

    assert work_of(draw(picture, sorts)).in_16_bits == narrow


def test_what_ops_lose_to_others_is_the_time_beyond_their_best_quarter() -> None:
    work = work_of(
        draw("""
            host main | M0-----M1-----M2-----M3-----M4-----
            host main | a--    a--    a--    a----- a-----
        """)
    )

    assert work.contention_ps / MS == (3 + 3 + 3 + 6 + 6) - 5 * 3


# -- the input -----------------------------------------------------------------------------------------------------

DATA = {
    "p": Sort(K.OP, "EagerPyFunc:EagerPyFunc"),
    "q": Sort(K.OP, "resize:Resize"),
    "e": Sort(K.OP, "ReadFile:ReadFile"),
    "k": Sort(K.ITERATOR, "Iterator::Root::Prefetch::TFRecord", traits=Trait.FILE_READ),
    "h": Sort(K.INPUT_HANDOVER, "PrefetchProduce"),
    "l": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "x": Sort(K.OP, "aten::lift_fresh"),
    "y": Sort(K.OP, "aten::detach_"),
}


@pytest.mark.parametrize(
    ("below", "skipped"),
    [
        ("Prefetch::MapAndBatch", ("FiniteSkip", 5, 7)),
        ("MapAndBatch", ("FiniteSkip", 5, 7)),
        ("TensorSlice", ("", 0, 0)),
    ],
)
def test_elements_that_tf_data_makes_and_passes_over(below: str, skipped: tuple[str, int, int]) -> None:
    name = "Iterator::Root::FiniteSkip"
    sorts = {
        "k": Sort(K.ITERATOR, name),
        "p": Sort(K.ITERATOR, f"{name}::{below}"),
        "r": Sort(K.ITERATOR, "Iterator::Root"),
    }
    feed = feed_of(
        draw(
            """
            host main | M0--------
            host main |  r----- r-
            host main |  k----- k-
            host main |  pppppp p-
            """,
            sorts,
        )
    )

    assert (feed.skipped_by, feed.skipped, feed.made_below) == skipped


def test_stages_of_tf_data() -> None:
    feed = feed_of(
        draw(
            """
            host main         | M0--------
            host main         |  J---
            host tf_data_pool | p--q-e
            host tf_data_next | k---- h
            """,
            DATA,
        )
    )

    assert (feed.has_iterators, feed.has_prefetch, feed.in_parallel) == (True, True, False)
    assert (feed.ops_ps / MS, feed.python_ps / MS, feed.reading_ps / MS) == (6.0, 3.0, 1.0)
    assert feed.file_read_ps / MS == 5.0
    assert feed.threads == 1


def test_how_often_worker_processes_start_in_the_steps_and_how_long_that_takes() -> None:
    code = "site-packages/torch/utils/data/dataloader.py"
    sorts = {
        "l": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
        "s": Sort(K.PYTHON_CALL, f"{code}(1101): __init__"),
        "e": Sort(K.PYTHON_CALL, f"{code}(1606): _shutdown_workers"),
    }
    feed = feed_of(draw("host main | M0-----------M1-----------\nhost main | s--l---a-e-- s--l---a-e--", sorts))

    assert (feed.loader, feed.starts, feed.starting_ps / MS) == (
        "multi",
        2,
        2 * (3 + 4 + 3),
    )  # with the wait for the first batch


def test_what_a_dataloader_makes_its_tensors_of() -> None:
    feed = feed_of(draw("host main | M0--------\nhost main | l------\nhost main |  xyxyx", DATA))

    assert (feed.loader, feed.made_tensors, feed.from_arrays) == ("single", 2, 1)
    assert feed.loader_ops_ps / MS == 5.0
