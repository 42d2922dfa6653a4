"""A capture of calls that happen once: what starts up or ends says nothing of the steps after it."""

from __future__ import annotations

import pytest
from draw import Sort, draw

from stepscope.analysis.advice import advise
from stepscope.analysis.overview import overview_tool as overview
from stepscope.model import EventKind as K

SORTS = {
    "L": Sort(K.RUNTIME_CALL, "cudaLaunchKernel", "correlation_id"),
    "K": Sort(K.KERNEL, "gemm", "correlation_id"),
    "R": Sort(K.KERNEL, "relu", "correlation_id"),
    "Q": Sort(K.KERNEL, "sum", "correlation_id"),
    "U": Sort(K.RUNTIME_CALL, "cuModuleUnload"),
}
LOADS_A_MODULE = """
    host main | L1---------------------------------L2-L3-
    gpu0 s    |                                   K1-R2-Q3-
"""
LOADS_IT_LATER = """
    host main | L1-L2---------------------------------L3-
    gpu0 s    |    K1-                               R2-Q3-
"""
UNLOADS = """
    host main | L1-L2-L3-U---------U---------U---------
    gpu0 s    |    K1-R2-Q3-
"""
LOADS_EACH_KERNEL = """
    host main | L1---------L2-----------L3----------L4-L5-L6-
    gpu0 s    |           K1          R2           Q3-K4-R5-Q6-
"""
MAKES_THE_DATA = """
    host main | L1-                        L2-L3-L4-
    gpu0 s    |  R1-----------------------  K2-K3-K4
"""
LAUNCHES_SLOWLY = """
    host main | L1-----L2------L3-----
    gpu0 s    |        K1      K2     K3-
"""


@pytest.mark.parametrize(
    ("picture", "name"),
    [
        (LOADS_A_MODULE, "cudaLaunchKernel"),
        (LOADS_IT_LATER, "cudaLaunchKernel"),
        (LOADS_EACH_KERNEL, "cudaLaunchKernel"),
        (UNLOADS, "cuModuleUnload"),
        (MAKES_THE_DATA, "relu"),
    ],
)
def test_calls_that_take_long_once_are_no_dispatching(picture: str, name: str) -> None:
    context = overview.merge([overview.partial(draw(picture, SORTS))]).context
    advised = advise(context)

    assert (advised.verdict.name, advised.items[0].id) == ("unknown", "capture.first-calls")
    assert advised.verdict.sentence.endswith(f"of the capture is calls that happen once, above all `{name}`")


def test_capturing_graphs_happens_once() -> None:
    """A pass in which vLLM captured its graphs was called host-bound, as it ran Python."""
    sorts = {"B": Sort(K.RUNTIME_CALL, "hipStreamBeginCapture"), "E": Sort(K.RUNTIME_CALL, "hipStreamEndCapture")}
    picture = """
        host main | L1-B-L2-L3----E-B---L4-L5--E-L6-
        gpu0 s    |   K1-                          K6-
    """
    advised = advise(overview.merge([overview.partial(draw(picture, SORTS | sorts))]).context)

    assert advised.items[0].id == "capture.first-calls"
    assert advised.verdict.sentence.endswith("of the capture is what happens once, above all capturing 2 graphs")


def test_the_longest_of_these_calls_is_told_with_its_op() -> None:
    picture = """
        host main | o------------------------------------p-q-
        host main |  L1---------------------------------- L2-L3-
        gpu0 s    |                                     K1-R2-Q3-
    """
    sorts = SORTS | {"o": Sort(K.OP, "aten::embedding"), "p": Sort(K.OP, "aten::mm"), "q": Sort(K.OP, "aten::sum")}
    context = overview.merge([overview.partial(draw(picture, sorts))]).context

    assert advise(context).verdict.sentence.endswith("above all `cudaLaunchKernel` in `aten::embedding`")


def test_launches_of_one_kernel_that_all_take_long_are_dispatching() -> None:
    context = overview.merge([overview.partial(draw(LAUNCHES_SLOWLY, SORTS))]).context

    assert context.first_calls is None
    assert advise(context).verdict.name == "launch_bound"


def test_a_slow_call_of_the_only_step_is_start_up_if_others_of_its_name_are_fast() -> None:
    marked = """
    host main | M0----------------------------------------
    host main | L1---------------------------------L2-L3-
    gpu0 s    |                                   K1-R2-Q3-
    """
    advised = advise(overview.merge([overview.partial(draw(marked, SORTS))]).context)

    assert advised.verdict.name == "unknown"
    assert advised.verdict.sentence.endswith("of the step is calls that happen once, above all `cudaLaunchKernel`")


MAKES_PARAMETERS = """
    host main | a-b-a-b-a-b-a-b-a-b-a-b-                                       c-
"""
RUNS_A_MODEL = """
    host main | a-b-a-b-a-b-a-b-a-b-a-b-
"""
AWAITED = {"steps_awaited_s": 31.0}


def test_what_repeats_in_a_part_of_a_window_for_which_steps_were_awaited_is_the_set_up() -> None:
    advised = advise(overview.merge([overview.partial(draw(MAKES_PARAMETERS, facts=AWAITED))]).context)

    assert advised.verdict.sentence == "unknown: the training loop had not begun"
    assert [item.title for item in advised.items] == ["Record later steps"]
    assert advised.items[0].predicted_speedup is None
    assert advised.items[0].evidence.startswith(
        "no step of a training loop came in the 31 s before the capture, nor in it; "
    )


@pytest.mark.parametrize(("picture", "facts"), [(MAKES_PARAMETERS, {}), (RUNS_A_MODEL, AWAITED)])
def test_what_repeats_is_a_loop_where_none_was_awaited_or_it_fills_the_window(picture, facts) -> None:
    assert overview.merge([overview.partial(draw(picture, facts=facts))]).context.has_steps


def test_programs_that_are_compiled_for_several_shapes_before_a_loop_that_was_awaited_are_first_calls() -> None:
    compiles = Sort(K.COMPILE, "CpuCompiler::RunBackend", stats={"name": "jit_multiply"})
    picture = "host main | X------X------X------a-"

    found = [
        overview.merge([overview.partial(draw(picture, {"X": compiles}, facts=facts))]).context.first_calls
        for facts in ({}, AWAITED)
    ]

    assert found[0] is None and found[1] is not None
    assert found[1].awaited_s == 31.0 and found[1].percent > 80


ENDS_IN_A_WAIT = """
    host main | L1---------------------L2-L3-W---
    gpu0 s    |                       K1-R2-Q3---
"""
NO_KERNELS = """
    host main | oF---------------L2-L3-W---------
"""


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        # What waits for a working device at the end is no start-up.
        (ENDS_IN_A_WAIT, "start-up: 66.7 % of the capture is calls that happen once, above all `cudaLaunchKernel`"),
        # Nor is any wait where nothing says what the device does.
        (NO_KERNELS, "start-up: 48.5 % of the capture is calls that happen once, above all `cudaFree`"),
    ],
)
def test_waits_for_devices_are_no_start_up(picture: str, said: str) -> None:
    sorts = SORTS | {"W": Sort(K.SYNC, "cudaDeviceSynchronize"), "F": Sort(K.RUNTIME_CALL, "cudaFree")}
    context = overview.merge([overview.partial(draw(picture, sorts))]).context

    assert advise(context).verdict.sentence == said


def test_a_start_beside_work_that_takes_longer_is_a_warning() -> None:
    picture = """
        host main | L1---------L2-L3
        gpu0 s    |           K1-R2-Q3-------------
    """
    report = overview.merge([overview.partial(draw(picture, SORTS))])

    assert report.verdict.name == "compute_bound"
    assert report.warnings[-1] == (
        "32.3 % of the recording is calls that happen once, above all `cudaLaunchKernel` (10.00 ms):"
        " run a few steps before it starts"
    )
