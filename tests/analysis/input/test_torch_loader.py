"""A PyTorch DataLoader with and without worker processes: the tools beside the loop's own clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
import torch_programs

import stepscope

if TYPE_CHECKING:
    from framework_captures import FrameworkCapture


def loader_waits(capture: FrameworkCapture) -> tuple[list[str], list[float]]:
    """Names of the loaders, and the wait for each batch in ms, as the trace holds them."""
    trace = stepscope.load(capture.logdir).trace()
    waits = [row for row in range(len(trace.events)) if trace.name_of(row).startswith("enumerate(DataLoader)#")]
    outer = [row for row in waits if trace.events.duration_ps[row] > 0]
    return [trace.name_of(row) for row in outer], [int(trace.events.duration_ps[row]) / 1e9 for row in outer]


def assert_near(waits: Sequence[float], clock: Sequence[float]) -> None:
    """Waits as the loop's clock has them.  It is read around them, and a busy machine may take the CPU away in between:
    none is longer than the clock says, and one may be shorter."""
    pairs = list(zip(waits, clock, strict=True))
    assert all(wait <= most * 1.01 + 0.1 for wait, most in pairs), pairs
    assert sum(wait != pytest.approx(most, abs=2.0, rel=0.1) for wait, most in pairs) <= 1, pairs


def assert_sum_is_near(found: float, clock: Sequence[float]) -> None:
    """The same of all waits together."""
    assert 0.9 * (sum(clock) - max(clock)) - 2.0 <= found <= sum(clock) * 1.01 + 2.0, (found, clock)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_wait_for_each_batch_is_that_of_the_loop_s_clock(workers: int, request: pytest.FixtureRequest) -> None:
    fixture = "torch_loader_workers_capture" if workers else "torch_loader_alone_capture"
    capture: FrameworkCapture = request.getfixturevalue(fixture)

    names, waits = loader_waits(capture)

    process = "MultiProcessing" if workers else "SingleProcess"
    assert all(f"_{process}DataLoaderIter" in name for name in names)
    assert len(waits) == torch_programs.ACTIVE
    assert_near(waits, capture.step_ms)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_page_has_the_wait_of_each_step_and_the_number_of_workers(
    workers: int, request: pytest.FixtureRequest
) -> None:
    fixture = "torch_loader_workers_capture" if workers else "torch_loader_alone_capture"
    capture: FrameworkCapture = request.getfixturevalue(fixture)

    report: dict[str, Any] = stepscope.load(capture.logdir).input_pipeline().to_dict()

    (loader,) = report["loaders"]
    known = None if workers else 0  # other processes started before the capture
    waits = [step["fetch_ms"] for step in report["steps"]]
    assert_near(waits, capture.step_ms)
    assert loader["total_ms"] == pytest.approx(sum(waits), rel=1e-3)
    assert (loader["calls"], loader["workers"]) == (torch_programs.ACTIVE, known)


def test_a_loader_that_starts_under_the_profiler_with_stacks_tells_its_workers(
    torch_epoch_capture: FrameworkCapture,
) -> None:
    report: dict[str, Any] = stepscope.load(torch_epoch_capture.logdir).input_pipeline().to_dict()

    (loader,) = report["loaders"]
    assert loader["workers"] == torch_programs.WORKERS
    assert loader["calls"] == len(torch_epoch_capture.step_ms)
    assert_sum_is_near(loader["total_ms"], torch_epoch_capture.step_ms)


def test_a_loader_without_workers_binds_the_steps(torch_loader_alone_capture: FrameworkCapture) -> None:
    report: dict[str, Any] = stepscope.load(torch_loader_alone_capture.logdir).input_pipeline().to_dict()

    assert (report["verdict"], report["level"]) == ("input_bound", "highly")
    waited = sum(step["input_ms"] for step in report["steps"])
    assert_sum_is_near(waited, torch_loader_alone_capture.step_ms)
