"""How well kernels fill their devices: drawn, and beside what PyTorch's TensorBoard plugin showed for a real job."""

from __future__ import annotations

from pathlib import Path

import pytest
from draw import Sort, draw

import stepscope
from stepscope.analysis.ops.device_use import DeviceUse, device_uses
from stepscope.model import EventKind


def kernel(blocks: float, occupancy: int) -> Sort:
    facts = {"blocks per SM": blocks, "est. achieved occupancy %": occupancy}
    return Sort(EventKind.KERNEL, "kernel", "", facts)


SORTS = {"K": kernel(0.75, 50), "H": kernel(0.5, 20), "N": Sort(EventKind.COLLECTIVE, "nccl")}


def test_blocks_of_kernels_that_run_at_once_add_up_to_one_at_most():
    [use] = device_uses(
        draw("""
            host main | M0-------
            gpu0 s    | K---
            gpu0 t    |   H---  N
        """, SORTS)
    )  # fmt: skip

    # 0.75 for 2 ms, 1 for 2, 0.5 for 2; nothing is known of the collective.
    assert use == DeviceUse("GPU:0", 9 * 10**9, pytest.approx(7 / 9), pytest.approx((1.5 + 2 + 1) / 9), 0.35)


def test_what_is_not_recorded_is_unknown():
    [use] = device_uses(draw("host main | M0---\ngpu0 s | k-"))
    assert (use.utilization, use.sm_efficiency, use.occupancy) == (pytest.approx(0.4), None, None)
    assert device_uses(draw("host main | M0---")) == []


def test_each_device_tells_what_its_own_kernels_tell():
    uses = device_uses(draw("host main | M0---\ngpu0 s | K---\ngpu1 s | k---", SORTS))
    assert [(use.sm_efficiency, use.occupancy) for use in uses] == [(pytest.approx(0.6), 0.5), (None, None)]


@pytest.mark.parametrize("garbage", [float("inf"), -1.0, 1e300])
def test_figures_that_no_device_has_are_unknown(garbage: float):
    sorts = {"K": Sort(EventKind.KERNEL, "kernel", "", dict.fromkeys(SORTS["K"].stats, garbage))}
    [use] = device_uses(draw("host main | M0---\ngpu0 s | K---", sorts))
    assert (use.sm_efficiency, use.occupancy) == (None, None)


def test_a_real_job_has_the_figures_of_the_plugin(corpus: Path) -> None:
    """ResNet-50 on a V100: 55.5 %, 54.7 % and 49.13 % in `torch_tb_profiler` 0.4, which bounds steps by their device
    work; here the host sets the pace, and steps are the marks.
    """
    [row] = stepscope.load(corpus / "torch-v100-resnet50-workers0").report("kernel-stats").to_dict()["devices"]
    assert row["utilization_percent"] == pytest.approx(54.9, abs=0.1)
    assert row["sm_efficiency_percent"] == pytest.approx(54.1, abs=0.1)
    assert row["occupancy_percent"] == pytest.approx(49.05, abs=0.01)
