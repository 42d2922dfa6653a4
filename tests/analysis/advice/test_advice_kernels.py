"""Advice on devices that run many kernels where a few would do."""

from __future__ import annotations

import pytest
from draw import Sort, draw

from stepscope.analysis.advice import Advice, advise
from stepscope.analysis.overview import overview_tool as overview
from stepscope.model import EventKind, HostTrace

K = EventKind

SORTS = {
    "e": Sort(K.KERNEL, "void vectorized_elementwise_kernel<4, Add<float> >(int)", "correlation_id"),
    "b": Sort(K.OP, "aten::bmm"),
    "s": Sort(K.OP, "aten::_softmax"),
    "f": Sort(K.OP, "aten::_scaled_dot_product_flash_attention"),
    "w": Sort(K.SYNC, "cudaDeviceSynchronize"),
    "o": Sort(K.ANNOTATION, "Optimizer.step#Adam.step"),
    "y": Sort(K.STEP_MARK, "train", "step_num"),
}


def said(trace: HostTrace) -> dict[str, Advice]:
    context = overview.merge([overview.partial(trace)]).context
    return {item.id: item for item in advise(context).items}


def test_chains_of_elementwise_kernels_want_a_compiler() -> None:
    n = 22  # kernels of 9 ms, which are launched every 2 ms and waited for
    length = 10 * n
    marks = "".join(f"y{step}".ljust(length, "-") for step in range(3))
    launches = "".join(
        ("".join(f"L{n * step + at}".ljust(4) for at in range(n)) + "w").ljust(length, "-") for step in range(3)
    )
    kernels = "".join(
        "    " + "".join(f"e{n * step + at}".ljust(9, "-") for at in range(n)).ljust(length - 4) for step in range(3)
    )
    found = said(draw(f"host main | {marks}\nhost main | {launches}\ngpu0 s    | {kernels}", SORTS))

    assert "kernels.elementwise" in found
    item = found["kernels.elementwise"]
    assert item.culprit is not None
    assert item.culprit.calls == n


@pytest.mark.parametrize(("ops", "speaks"), [("b---s---b---", True), ("f---f---f---", False)])
def test_attention_in_pieces_wants_one_kernel(ops: str, speaks: bool) -> None:
    def row(step: int) -> str:
        return "".join(f"L{3 * step + at}".ljust(4) for at in range(3)) + "w-------"

    marks = "".join(f"y{step}".ljust(20, "-") for step in range(3))
    kernels = "".join(f"   {''.join(f'K{3 * step + at}----'[:5] for at in range(3))}  " for step in range(3))
    lines = [marks, "".join(f"{ops:<20}" for _ in range(3)), "".join(row(step) for step in range(3))]
    text = "\n".join([*(f"host main | {line}" for line in lines), f"gpu0 s    | {kernels}"])

    assert ("kernels.attention" in said(draw(text, SORTS))) == speaks


@pytest.mark.parametrize(("launches", "speaks"), [(60, True), (20, False)])
def test_an_update_parameter_by_parameter_wants_a_fused_optimizer(launches: int, speaks: bool) -> None:
    length = 4 * launches + 40
    marks = "".join(f"y{step}".ljust(length, "-") for step in range(3))
    update = ("o" + "-" * (4 * launches - 1)).ljust(length) * 3
    calls = "".join(
        "".join(f"L{step * launches + at}".ljust(4) for at in range(launches)).ljust(length) for step in range(3)
    )
    kernels = "".join(
        " " * 3 + "".join(f"K{step * launches + at}".ljust(4)[:4] for at in range(launches)).ljust(length - 3)
        for step in range(3)
    )
    text = "\n".join([f"host main | {row}" for row in (marks, update, calls)] + [f"gpu0 s    | {kernels}"])

    assert ("optimizer.per-parameter" in said(draw(text, SORTS))) == speaks
