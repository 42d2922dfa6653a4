"""What is said of work by what it computes, on recordings of Nsight Systems that show one thing each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from draw import Sort, draw
from nsight_build import NsightExport
from reporting import context_of

import stepscope
from stepscope.analysis.advice import advise
from stepscope.analysis.advice.by_work import work_actions
from stepscope.model import EventKind as K


def overview(export: NsightExport, folder: Path) -> dict[str, Any]:
    export.gpu(0, "NVIDIA H100")
    return dict(stepscope.load(export.write_sqlite(folder / "t.sqlite")).overview().to_dict())


@pytest.mark.parametrize(
    ("name", "place", "framework", "said"),
    [
        ("aten::convolution_backward", "device", "pytorch", "channels_last"),
        ("aten::mkldnn_convolution", "host", "pytorch", "torch.compile"),
        ("<libnvrtc.so.13.3.33>", "host", "", "ahead of time"),
        ("aten::exp", "device", "pytorch", ""),
    ],
)
def test_what_makes_a_kind_of_work_cheaper(name: str, place: str, framework: str, said: str) -> None:
    assert (
        (said in " ".join(work_actions(name, place, framework))) if said else not work_actions(name, place, framework)
    )


def test_copies_to_memory_that_is_not_pinned(tmp_path: Path) -> None:
    export = NsightExport()
    export.call("cudaMemcpy_v3020", 0, 900, 1)
    export.copy(2, 10, 890, 1, srcKind=2, dstKind=0)
    export.call("cudaLaunchKernel_v7000", 900, 905, 2)
    export.kernel("gemm", 910, 1000, 2)
    found = overview(export, tmp_path)

    assert found["verdict"] == "copy_bound" or found["verdict_cause"] == "copy"
    assert found["advice"][0]["id"] == "copies.pageable"


def test_pages_of_unified_memory_have_a_name(tmp_path: Path) -> None:
    export = NsightExport()
    export.call("cudaLaunchKernel_v7000", 0, 5, 1)
    export.kernel("add", 10, 60, 1)
    for at in range(20):
        export.copy(11, 70 + 40 * at, 100 + 40 * at, 0)
    found = overview(export, tmp_path)

    assert found["top_ops"][0]["name"] == "Unified memory HtoD"
    assert "copies.migrations" in [item["id"] for item in found["advice"]]


def test_what_is_silent_before_the_first_work_is_starting_up(tmp_path: Path) -> None:
    export = NsightExport()
    export.call("cuInit", 0, 10)
    export.call("cudaMalloc_v3020", 500_000, 800_000)
    export.call("cudaLaunchKernel_v7000", 800_010, 800_015, 1)
    export.kernel("add", 800_020, 801_000, 1)

    assert overview(export, tmp_path)["verdict_text"] == (
        "start-up: 99.9 % of the capture is what comes before the first work of a device, and calls that happen once,"
        " above all `cudaMalloc`"
    )


def test_pages_that_move_do_not_hide_what_comes_before_them(tmp_path: Path) -> None:
    """No call asks for pages of unified memory: they follow the launch whose kernel touches them."""
    export = NsightExport()
    export.call("cudaMallocManaged_v6000", 0, 800_000)
    export.call("cudaLaunchKernel_v7000", 900_000, 900_015, 1)
    export.kernel("add", 900_020, 901_000, 1)
    export.copy(11, 900_100, 900_200, 0)
    causes = {row["cause"]: row["percent"] for row in overview(export, tmp_path)["account"]}

    assert causes["launch"] > 80


def test_the_longest_silence_is_named_by_the_calls_around_it(tmp_path: Path) -> None:
    export = NsightExport()
    export.call("cudaLaunchKernel_v7000", 0, 5, 1)
    export.kernel("add", 10, 20, 1)
    export.call("cudaMemcpy_v3020", 30, 40, 2)
    export.call("cudaMemset_v3020", 900_000, 900_010, 3)
    found = overview(export, tmp_path)

    assert found["account"][0]["culprit"]["name"] == "from cudaMemcpy to cudaMemset"


@pytest.mark.parametrize(
    ("step", "title"),
    [
        ("f-o---------", "Make the update of the parameters cheaper: it is 83 % of each step"),
        ("f---g--o----", "Nothing stands out"),  # the largest of three parts is no news
    ],
)
def test_an_update_that_is_most_of_the_step_is_what_to_make_cheaper(step: str, title: str) -> None:
    sorts = {
        "o": Sort(K.ANNOTATION, "Optimizer.step#Adam.step"),
        "a": Sort(K.OP, "aten::addcdiv_"),
        "f": Sort(K.OP, "aten::linear"),
        "g": Sort(K.OP, "aten::relu"),
    }
    at = step.index("o")
    trace = draw(
        f"""
        host main | M0----------M1----------
        host main | {step}{step}
        host main | {2 * (" " * at + "a" + step[at + 1 :])}
        """,
        sorts,
    )
    (first,) = advise(context_of(trace)).items

    assert (first.kind, first.title) == ("none", title)
