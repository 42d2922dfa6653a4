"""How long work takes after a change: what the trace tells of it."""

from __future__ import annotations

import numpy as np
import pytest
from draw import Sort, draw

from stepscope.analysis.facts.factors import (
    estimate_32_bits,
    estimate_attention,
    estimate_fused,
    estimate_update,
    estimate_workers,
)
from stepscope.model import EventKind as K
from stepscope.model import HostTrace, TraceBuilder
from stepscope.model.arrays import I64

ADD = Sort(K.KERNEL, "vectorized_elementwise_kernel<4, add>", "correlation_id")
BMM, SOFTMAX = Sort(K.OP, "aten::bmm"), Sort(K.OP, "aten::softmax")
UPDATE = Sort(K.ANNOTATION, "Optimizer.step#Adam.step")


def named(trace: HostTrace, name: str) -> I64:
    return np.array([row for row in range(len(trace.events)) if trace.name_of(row) == name], np.int64)


def test_a_chain_of_elementwise_kernels_reads_and_writes_once():
    trace = draw("gpu0 s | aaaakkaaaa".replace("a", "E"), {"E": ADD})
    found = estimate_fused(trace, named(trace, ADD.name))

    assert found.low == pytest.approx(1 / 4)
    assert found.high == pytest.approx(6 / 12)
    assert found.low < found.usual < found.high


def test_elementwise_kernels_alone_stay_as_they_are():
    trace = draw("gpu0 s | EkEk\ngpu0 t | E", {"E": ADD})
    found = estimate_fused(trace, named(trace, ADD.name))

    assert (found.low, found.usual, found.high) == (1, 1, 1)


def test_fused_attention_still_takes_its_products():
    trace = draw(
        """
        host main | M0----------
        host main | P-Q-R-
        host main | L1L2L3
        gpu0 s    |  K1-K2--K3-
        """,
        {"P": BMM, "Q": SOFTMAX, "R": BMM},
    )
    found = estimate_attention(trace, named(trace, "kernel"))

    assert found.usual == pytest.approx(6 / 10)
    assert (found.low, found.high) == (0.25, 1)


@pytest.mark.parametrize(("launches", "least", "most"), [(20, 1 / 20, 1 / 20), (40, 2 / 40, 2 / 40)])
def test_an_update_launches_kernels_for_lists_of_parameters(launches, least, most):
    calls = "".join(f"L{number:<3}" for number in range(10, 10 + launches))
    kernels = "".join(f"K{number:<3}" for number in range(10, 10 + launches))
    trace = draw(
        f"""
        host main | M0{"-" * 4 * launches}
        host main | O{"-" * 4 * launches}
        host main | {calls}
        gpu0 s    |  {kernels}
        """,
        {"O": UPDATE},
    )
    found = estimate_update(trace, named(trace, UPDATE.name))

    assert (found.low, found.high) == (pytest.approx(least), pytest.approx(most))


def test_an_update_of_one_kernel_cannot_be_fused():
    trace = draw("host main | O---\nhost main | L1\ngpu0 s    |  K1-", {"O": UPDATE})

    assert estimate_update(trace, named(trace, UPDATE.name)).low == 1


@pytest.mark.parametrize(("cores", "workers"), [(None, (2, 4, 8)), (16, (2, 4, 8)), (3, (2, 3, 3)), (1, (1, 1, 1))])
def test_there_are_no_more_workers_than_processors(cores: int | None, workers: tuple[int, int, int]):
    builder = TraceBuilder("host")
    builder.plane("/stepscope:capture", stats={} if cores is None else {"cores": cores})
    found = estimate_workers(builder.build())

    assert (found.low, found.usual, found.high) == workers


@pytest.mark.parametrize(
    ("op", "usual", "says"),
    [("aten::mkldnn_convolution", 0.2, True), ("aten::mm", 0.5, False), ("aten::add", 0.5, False)],
)
def test_what_onednn_computes_in_32_bits_alone_takes_a_fifth(op: str, usual: float, says: bool):
    trace = draw("host main | W---", {"W": Sort(K.OP, op)})
    found = estimate_32_bits(trace, named(trace, op))

    assert found.usual == pytest.approx(usual)
    assert ("oneDNN" in found.source) == says
