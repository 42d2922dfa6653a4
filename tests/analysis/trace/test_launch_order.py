"""Links between the work of devices and calls, where no id links them."""

from __future__ import annotations

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace
from tests.helpers.draw import MS, Sort, draw

_SORTS = {
    "L": Sort(EventKind.RUNTIME_CALL, "cudaLaunchKernel"),
    "K": Sort(EventKind.KERNEL, "gemm"),
    "Q": Sort(EventKind.TRACED_FUNCTION, "PjitFunction(train_step)"),
    "Z": Sort(EventKind.MODULE, "jit_train_step(7)"),
}


def links(trace: HostTrace, name: str) -> list[int]:
    """When the cause of each event of a name starts, in ms; -1 without one."""
    rows = [row for row in range(len(trace.events)) if trace.name_of(row) == name]
    cause = forest(trace).cause[rows]
    return [int(trace.events.start_ps[each]) // MS if each >= 0 else -1 for each in cause.tolist()]


def bounds(trace: HostTrace) -> list[tuple[int, int]]:
    """Start and end of each step in ms."""
    found = steps_of(trace)
    return list(zip((found.start_ps // MS).tolist(), (found.end_ps // MS).tolist(), strict=True))


def test_kernels_without_ids_belong_to_the_launches_in_their_order() -> None:
    trace = draw(
        """
            host main | M0-M1-M2-
            host main | L- L- L-
            gpu0 s    |  K-----K-----K-----
        """,
        _SORTS,
    )
    assert links(trace, "gemm") == [0, 3, 6]
    assert bounds(trace) == [(0, 7), (7, 13), (13, 19)]


def test_kernels_that_start_before_the_launches_of_their_place_have_none() -> None:
    trace = draw(
        """
            host main | M0----M1----M2----
            host main |     L-    L-    L-
            gpu0 s    | K-----K-----K-----
        """,
        _SORTS,
    )
    assert links(trace, "gemm") == [-1, -1, -1]


def test_ops_of_a_tpu_belong_to_the_call_of_the_run_in_which_they_lie() -> None:
    trace = draw(
        """
            host main    | M0-M1-M2-
            host main    | Q- Q- Q-
            tpu0 Modules |  Z-----Z-----Z-----
            tpu0 ops     |  a--b--a--b--a--b--
        """,
        _SORTS,
    )
    assert links(trace, "jit_train_step(7)") == [0, 3, 6]
    assert links(trace, "b") == [0, 3, 6]
    assert bounds(trace) == [(0, 7), (7, 13), (13, 19)]
