"""What if: changes of a user's choice on drawn traces, and through the API and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw import MS, Sort, draw
from framework_captures import FrameworkCapture

import stepscope
from stepscope.analysis.account.model import StepModel, model_of
from stepscope.analysis.account.selection import part_with_work
from stepscope.analysis.advice.whatif import (
    MOVE,
    OVERLAP,
    REMOVE,
    SCALE,
    Change,
    WhatIfReport,
    what_if,
    what_if_of_class,
)
from stepscope.analysis.overview import overview_tool as overview
from stepscope.errors import InputError, UsageError
from stepscope.model import EventKind as K

STEPS = """
    host main | M0--      M1--      M2--
    host main | I---a---b-I---a---b-I---
"""
CODE = """
    host main | M0--      M1--      M2--
    host main | Y---Z-----Y---Z-----Y---
    host main |  a-    b-  a-    b-  a-
"""
DEVICE_BOUND = """
    host main | M0---------M1---------
    host main | L1L2S------L3L4S------
    gpu0 s    |   a1-b2---   a3-b4---
"""
LAUNCH_BOUND = """
    host main | M0--------M1--------
    host main | L1---L2---L3---L4---
    gpu0 s    |      a1-  b2-- a3-  b4-
"""
HELPED = """
    host main | M0--------M1--------M2--------
    host main | aR------  aR------  aR------
    host pool |   P!        P!        P!
    host pool |    o--u-     o--u-     o--u-
"""
FETCHED = """
    host main | M0--------M1--------M2--------M3
    host main | L1F---Z---L2F---Z---L3F---Z---L4
    host main |   S---      S---      S---
    gpu0 s    |  K1---     K2---     K3---
"""
UNCONNECTED = """
    tpu0 Steps | W0------W1------
    tpu0 ops   | k--    kk--    k
"""
SORTS = {
    "S": Sort(K.SYNC, "cudaStreamSynchronize"),
    "Y": Sort(K.PYTHON_CALL, "data/set.py(9): __getitem__"),
    "Z": Sort(K.PYTHON_CALL, "$train.py:20 train_step"),
    "F": Sort(K.PYTHON_CALL, "train.py(9): log_loss"),
    "x": Sort(K.OTHER, "H2D Dispatch"),
}


def model(picture: str) -> StepModel:
    found = model_of(draw(picture, SORTS))
    assert found is not None
    return found


def ask(picture: str, *changes: Change, ops: Sequence[str] = ()) -> WhatIfReport:
    return what_if([model(picture)], changes, lambda _: ops)


def then(picture: str, part: str, scale: float = 0.0) -> Any:
    """The step after one part was scaled."""
    return ask(picture, Change(SCALE, part, scale)).figures["predicted_step_time_ms"]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("input", 6.0),  # a cause, and a category
        ("kernel_launch", 10.0),  # a category that no time has
        ("input_file_read", 6.0),  # a class of advice
        ("a", 6.0),  # an op
        ("host_compute", 4.0),
    ],
)
def test_a_part_is_a_cause_a_category_a_class_or_an_op(part: str, expected: float) -> None:
    assert then(STEPS, part) == expected


@pytest.mark.parametrize(
    "part", ["__getitem__", "data/set.py:9", "set.py:9", "data/set.py(9): __getitem__", "data/set.py:9 __getitem__"]
)
def test_a_part_is_a_function_or_a_place_in_the_code(part: str) -> None:
    assert then(CODE, part) == 6.0


def test_a_part_may_take_less_or_more_of_its_time() -> None:
    assert (then(STEPS, "a", 0.5), then(STEPS, "a", 2.0)) == (8.0, 14.0)


def test_several_changes_act_together() -> None:
    found = ask(STEPS, Change(REMOVE, "a"), Change(SCALE, "b", 0.5), Change(MOVE, "input", 4))

    assert found.figures["predicted_step_time_ms"] == 1.0
    assert [(row["change"], row["part"], row["number"], row["part_ms"]) for row in found.changes] == [
        ("remove", "a", None, 4.0),
        ("scale", "b", 0.5, 2.0),
        ("move", "input", 4, 4.0),
    ]


def test_input_on_one_worker_takes_at_least_as_long_as_before() -> None:
    fast = Change(SCALE, "host_compute", 0.1)

    assert ask(STEPS, Change(MOVE, "input", 1), fast).figures["predicted_step_time_ms"] == 4.0
    assert ask(STEPS, Change(OVERLAP, "input"), fast).figures["predicted_step_time_ms"] == 4.0
    assert ask(STEPS, Change(MOVE, "input", 4), fast).figures["predicted_step_time_ms"] == 1.0


def test_what_a_class_without_a_cause_stands_for_are_the_ops_of_its_advice() -> None:
    assert ask(STEPS, Change(REMOVE, "memory_churn"), ops=["b"]).figures["predicted_step_time_ms"] == 8.0


def test_a_kernel_on_the_critical_path_gains_what_it_takes() -> None:
    assert (then(DEVICE_BOUND, "b"), then(DEVICE_BOUND, "b", 2.0)) == (6.0, 16.0)


def test_a_kernel_that_the_host_outlasts_gains_nothing() -> None:
    assert ask(LAUNCH_BOUND, Change(REMOVE, "a")).figures["removed_ms"] == 0.0


def test_an_op_that_another_thread_computes_gains_what_the_loop_waits_for_it() -> None:
    assert (then(HELPED, "o"), then(HELPED, "u")) == (7.0, 8.0)  # 3 ms and 2 ms


@pytest.mark.parametrize("name", ["log_loss", "train.py:9", "train.py:9 log_loss", "cudaStreamSynchronize"])
def test_a_function_that_only_waits_gains_the_wait(name: str) -> None:
    """The line that a verdict named removed 0 ms: its time is waiting for the device, and no time of its own."""
    assert then(FETCHED, name) == 6.0


def test_whatever_was_recorded_can_be_removed_by_its_name() -> None:
    """A table named `H2D Dispatch`, which is no op and no function."""
    assert then("host main | M0--      M1--      M2--\nhost main | a---x-----a---x-----a---", "H2D Dispatch") == 4.0


def test_what_is_left_is_no_less_than_the_error_of_a_prediction() -> None:
    """1 of 25 ms is left: a hundredth or three times as much looks the same."""
    found = ask(
        """
        host main | M0-----------------------M1-----------------------
        host main | aIIIIIIIIIIIIIIIIIIIIIIIIaIIIIIIIIIIIIIIIIIIIIIIII
        """,
        Change(REMOVE, "input"),
    ).figures

    assert (found["predicted_least_ms"], found["predicted_step_time_ms"], found["predicted_most_ms"]) == (0, 3.14, 3.14)
    assert found["predicted_speedup"] == 7.96


def test_the_report_says_what_is_critical_then_and_why() -> None:
    found = ask(STEPS, Change(REMOVE, "input")).to_dict()

    assert found["critical"] == [{"cause": "host_compute", "ms": 6.0, "percent": 100.0}]
    assert found["predicted_least_ms"] <= found["predicted_step_time_ms"] <= found["predicted_most_ms"]
    assert found["reasoning"] == (
        "the recorded steps were replayed with the changes made; most of the step is then spent on computation on the"
        " host; replay of 2 steps, off by 0.0 %; `stepscope prove` narrows the range: it measures the gain"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Change(REMOVE, "c"), "'c' is not a cause, a class of advice, a category, an op, a function or a place"),
        (Change(REMOVE, "redundant_compute"), "no advice of the class redundant_compute names an op"),
        (Change(SCALE, "a", -1.0), "negative"),
        (Change(SCALE, "a", float("nan")), "not a number"),
        (Change(MOVE, "a", 0), "0 is not a number of workers"),
    ],
)
def test_wrong_changes_are_refused(change: Change, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ask(STEPS, change)


def test_a_class_without_advice_plays_the_change_of_it_that_gives_most_or_says_that_there_is_none() -> None:
    context = overview.merge([overview.partial(draw(STEPS, SORTS))]).context
    waits, saves = (what_if_of_class(kind, context) for kind in ("input_file_read", "checkpoint_stall"))

    assert waits.figures["predicted_speedup"] == ask(STEPS, Change(REMOVE, "input")).figures["predicted_speedup"]
    assert (saves.figures["removed_ms"], saves.figures["predicted_speedup"]) == (0, 1)
    assert saves.reasoning == (
        "no advice of that class is given",
        "the step waits for nothing of that kind, or for less than 3 % of its time",
    )


def test_a_part_that_runs_beside_other_work_is_said_to() -> None:
    picture = """
        host main | M0---------M1---------M2---------
        host main | I-------L1 I-------L2 I-------L3
        gpu0 s    |           K1-------  K2-------  K3-------
    """
    found = ask(picture, Change(REMOVE, "input"))

    assert found.figures["removed_ms"] == 2
    assert found.reasoning[-1] == (
        "most of that part runs in parallel with other work; the step is then spent on"
        " computation on the device instead"
    )


def test_a_change_a_step_and_a_model_that_carries_are_needed() -> None:
    with pytest.raises(UsageError, match="no change is given"):
        ask(STEPS)
    with pytest.raises(UsageError, match="the profile holds no steps"):
        what_if([], [Change(REMOVE, "input")], lambda _: ())
    with pytest.raises(
        InputError, match=r"cannot be replayed well enough to predict a change: 50\.0 % of the step is unexplained"
    ):
        ask(UNCONNECTED, Change(REMOVE, "k"))


def test_similar_names_are_offered() -> None:
    with pytest.raises(UsageError, match="similar names: input"):
        ask(STEPS, Change(REMOVE, "inptu"))


@pytest.mark.parametrize("part", ["kernel launch", "device compute"])
def test_a_category_has_the_name_that_the_summary_gives_it(part: str) -> None:
    assert then(DEVICE_BOUND, part) == then(DEVICE_BOUND, part.replace(" ", "_")) < 11.0


def test_of_several_hosts_the_one_that_is_longest_then_counts() -> None:
    slow = model(STEPS)
    fast = model("host main | M0--  M1--  M2--\nhost main | I---a-I---a-I---")

    found = what_if([slow, fast], [Change(REMOVE, "input")], lambda _: ())

    assert found.figures["step_time_ms"] == 10.0
    assert "of 2 hosts, host has the longest step then" in found.reasoning


# -- the cost of recording -----------------------------------------------------------------------------------------


def test_what_is_left_of_a_step_is_that_of_steps_without_a_profiler(monkeypatch) -> None:
    from stepscope.analysis.account import predict
    from stepscope.analysis.steps.profiling_cost import ProfilingCost

    monkeypatch.setattr(predict, "profiling_cost", lambda _: ProfilingCost(5.0, 10.0, 20, 10))
    found = ask(STEPS, Change(REMOVE, "input"))

    assert found.figures["step_time_ms"] == 10.0
    assert found.figures["predicted_speedup"] == pytest.approx(5 / 3, rel=0.01)
    assert "steps were shorter before the capture, so the work of threads counts 0.50 times" in found.reasoning


# -- captures ------------------------------------------------------------------------------------------------------


def test_what_if_of_a_fresh_capture_through_the_api(tf_slow_map_capture: FrameworkCapture) -> None:
    profile = stepscope.load(tf_slow_map_capture.logdir)

    found = profile.whatif("input_python").to_dict()
    half = profile.whatif("input_python", 0.5).to_dict()

    assert found["predicted_step_time_ms"] == pytest.approx(found["step_time_ms"] - found["removed_ms"], abs=0.01)
    assert 1 < half["predicted_speedup"] < found["predicted_speedup"]
    advised = next(row for row in profile.advice().rows if row["class"] == "input_python")
    assert advised["predicted_speedup"] == found["predicted_speedup"]


def test_what_if_through_the_api(bottleneck_captures: Path) -> None:
    profile = stepscope.load(bottleneck_captures / "torch_memory_bank" / "slow")

    found = profile.whatif("aten::cat").to_dict()
    half = profile.whatif("memory_churn", 0.5).to_dict()
    both = profile.whatif(scales={"aten::cat": 0.5}, move={"input": 2}).to_dict()

    assert found["removed_ms"] == pytest.approx(40.0, abs=0.5)
    assert found["predicted_step_time_ms"] == pytest.approx(found["step_time_ms"] - found["removed_ms"], abs=0.01)
    assert 1.4 < half["predicted_speedup"] < 1.8
    assert both["predicted_step_time_ms"] < found["step_time_ms"] - 18


def test_workers_of_a_real_job_are_predicted(corpus: Path) -> None:
    """The same job was recorded without workers (176 ms the median step) and with four (127 ms)."""
    profile = stepscope.load(corpus / "torch-v100-resnet50-workers0")
    found = profile.whatif(move={"input": 4}).to_dict()

    assert found["step_time_ms"] == 176.146
    assert found["predicted_step_time_ms"] == pytest.approx(126.2, rel=0.1)


def test_an_op_goes_with_what_it_starts_on_the_threads_of_a_pool_and_what_that_starts() -> None:
    model = model_of(
        draw(
            """
            host main  | M0----------M1----------
            host main  | a---------  a---------
            host main  |  P1          P3
            host pool1 |   S1----T     S3----T
            host pool1 |    P2          P4
            host pool2 |      S2--T       S4--T
            """
        )
    )
    assert model is not None

    ops = np.flatnonzero([model.trace.name_of(row) == "a" for row in range(len(model.trace.events))])
    part = part_with_work(model, ops)

    by_line = [part.own_ps.sum_by_node()[model.graph.line == line].sum() / MS for line in (0, 1, 2)]
    assert by_line == [2 * 10, 2 * 6, 2 * 4]


def test_a_thread_that_waits_for_the_rest_of_a_program_goes_on_once_that_is_left_out() -> None:
    sorts = {
        "w": Sort(K.OTHER, "ThunkExecutor::Execute (wait for completion)"),
        "n": Sort(K.OTHER, "np.asarray(jax.Array)"),
    }
    picture = """
        host main   | M0----------M1----------M2----------
        host main   | F-n--------aF-n--------aF-n--------a
        host main   |  P1          P3          P5
        host client |   S1------T   S3------T   S5------T
        host client |    w-----      w-----      w-----
        host pool   |    b-----      b-----      b-----
    """
    model = model_of(draw(picture, sorts))
    assert model is not None

    found = what_if([model], [Change(REMOVE, "b")], lambda _: ()).to_dict()

    assert found["step_time_ms"] - found["predicted_step_time_ms"] == pytest.approx(6.0, abs=0.5)
