"""What steps make anew that could be made once: each kind on a small picture, beside the program that makes it once."""

from __future__ import annotations

from helpers.draw import MS, Sort, draw

from stepscope.analysis.purpose.excess import excesses_of
from stepscope.analysis.purpose.setup import set_up_of
from stepscope.model import EventKind, HostTrace

K = EventKind
_EAGER = "EagerLocalExecute: "

LOADER = {
    "I": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "s": Sort(K.OP, "aten::random_"),
    "r": Sort(K.OP, "aten::randperm"),
    "l": Sort(K.OP, "aten::resolve_neg"),
    "b": Sort(K.OP, "aten::stack"),
    "f": Sort(K.OP, "aten::addmm"),
}
PIPELINE = {
    "R": Sort(K.EAGER_EXECUTE, f"{_EAGER}RangeDataset"),
    "P": Sort(K.EAGER_EXECUTE, f"{_EAGER}ParallelMapDatasetV2"),
    "B": Sort(K.EAGER_EXECUTE, f"{_EAGER}MakeIterator"),
    "t": Sort(K.FUNCTION_RUN, "FunctionRun"),
    "f": Sort(K.OP, "step/MatMul:MatMul"),
}
CALLS = {
    "o": Sort(K.PYTHON_CALL, "torch/optim/adam.py(33): __init__"),
    "j": Sort(K.PYTHON_CALL, "threading.py(945): start"),
    "v": Sort(K.PYTHON_CALL, "torch/serialization.py(840): save"),
    "f": Sort(K.OP, "aten::addmm"),
}


def made_in(trace: HostTrace) -> tuple[str, float, int] | None:
    """What is made anew, for how many ms in all steps, and in how many of them it shows."""
    found = set_up_of(trace)
    return None if found is None else (found.what, found.spans.total / MS, found.steps)


def test_a_loader_that_draws_the_order_of_its_samples_before_each_batch_starts_anew() -> None:
    trace = draw(
        """
        host main | M0------------M1------------M2------------M3------------
        host main | I--------f----I--------f----I--------f----I--------f----
        host main | srrl---bb     srrl---bb     srrl---bb     srrl---bb
        """,
        LOADER,
    )

    assert made_in(trace) == ("loader", 28.0, 4)  # 7 ms of each wait: also the order as a list, before the batch
    assert [each.kind for each in excesses_of(trace)] == ["set_up"]


def test_a_loader_starts_anew_with_an_epoch() -> None:
    trace = draw(
        """
        host main | M0------------M1-------M2-------M3-------
        host main | I--------f----I---f----I---f----I---f----
        host main | srrl---bb     bb       bb       bb
        """,
        LOADER,
    )

    assert made_in(trace) is None


def test_an_order_that_a_data_set_draws_for_its_own_sample_starts_no_loader() -> None:
    trace = draw(
        """
        host main | M0------------M1------------M2------------M3------------
        host main | I--------f----I--------f----I--------f----I--------f----
        host main | bsrr---bb     bsrr---bb     bsrr---bb     bsrr---bb
        """,
        LOADER,
    )

    assert made_in(trace) is None


def test_a_pipeline_of_tf_data_that_is_built_between_two_steps() -> None:
    trace = draw(
        """
        host main | R-P--B-M0---   R-P--B-M1---   R-P--B-M2---   R-P--B-M3---
        host main |        t---           t---           t---           t---
        host pool |         f-             f-             f-             f-
        """,
        PIPELINE,
    )

    assert made_in(trace) == ("pipeline", 21.0, 3)  # between the first mark and the last one


def test_a_pipeline_that_is_built_once() -> None:
    trace = draw(
        """
        host main | R-P--B-M0---   M1---   R-P--B-M2---   M3---   M4---
        host main |        t---    t---           t---    t---    t---
        host pool |         f-      f-             f-      f-      f-
        """,
        PIPELINE,
    )

    assert made_in(trace) is None


def test_an_optimizer_that_is_made_in_each_step() -> None:
    trace = draw(
        """
        host main | M0------M1------M2------M3------
        host main | o----f--o----f--o----f--o----f--
        """,
        CALLS,
    )

    assert made_in(trace) == ("optimizer", 20.0, 4)


def test_an_optimizer_that_is_made_in_one_step() -> None:
    trace = draw(
        """
        host main | M0----M1------M2----M3----
        host main |   f---o----f----f-----f---
        """,
        CALLS,
    )

    assert made_in(trace) is None


def test_what_a_saver_makes_to_compare_with_is_part_of_saving() -> None:
    trace = draw(
        """
        host main | M0------M1------M2------M3------
        host main | v----f--v----f--v----f--v----f--
        host main | o---    o---    o---    o---
        """,
        CALLS,
    )

    assert made_in(trace) is None


def test_threads_that_are_started_in_each_step() -> None:
    trace = draw(
        """
        host main | M0------M1------M2------M3------
        host main | j-j--f--j-j--f--j-j--f--j-j--f--
        """,
        CALLS,
    )

    assert made_in(trace) == ("threads", 20.0, 4)


def test_the_start_of_the_process_that_runs_the_loop_is_around_it() -> None:
    """A forked process has its parent's frames above its own."""
    trace = draw(
        """
        host main | M0------M1------M2------M3------
        host main | j-------------------------------
        host main |   ff      ff      ff      ff
        """,
        CALLS,
    )

    assert made_in(trace) is None
