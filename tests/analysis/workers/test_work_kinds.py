"""Which pass of training each kernel is of: by ranges around launches, by names, by what launched it."""

from __future__ import annotations

import numpy as np
import pytest
from draw import Sort, draw

from stepscope.analysis.account.graph import NodeKind
from stepscope.analysis.account.model import model_of
from stepscope.analysis.workers.work_kinds import kinds_of_nodes
from stepscope.model import EventKind as K

RANGES = {
    "I": Sort(K.ANNOTATION, "PP:0I1"),
    "W": Sort(K.ANNOTATION, "PP:0W1"),
    "k": Sort(K.KERNEL, "gemm", "correlation_id"),
    "d": Sort(K.KERNEL, "gemm_dgrad", "correlation_id"),
    "w": Sort(K.KERNEL, "gemm_wgrad", "correlation_id"),
}
BY_RANGE = """
host main | M0--------------M1--------------
host main | I---W-----      I---W-----
host side | L1L2L3L4L5S-----L6L7L8L9L0S-----
gpu0 s7   |   k1k2k3k4k5      k6k7k8k9k0
"""
BY_NAME = """
host main | M0--------------M1--------------
host side | L1L2L3L4L5S-----L6L7L8L9L0S-----
gpu0 s7   |   d1d2w3w4w5      d6d7w8w9w0
"""
LAYER_BY_LAYER = """
host main | M0--------------M1--------------
host side | L1L2L3L4L5S-----L6L7L8L9L0S-----
gpu0 s7   |   d1w2d3w4w5      d6w7d8w9w0
"""


@pytest.mark.parametrize(
    ("picture", "first_step"),
    [(BY_RANGE, "bbwww"), (BY_NAME, "bbwww"), (LAYER_BY_LAYER, "bbbbb")],
    ids=["ranges of a pipeline's schedule", "names of kernels", "weights of one layer after the other"],
)
def test_gradients_of_weights_are_a_pass_of_their_own_where_many_come_in_a_row(picture: str, first_step: str) -> None:
    model = model_of(draw(picture, RANGES))
    assert model is not None
    names, kind = kinds_of_nodes(model)
    kernels = np.flatnonzero(model.graph.kind == NodeKind.WORK)
    assert "".join(names[at][0] for at in kind[kernels].tolist())[:5] == first_step


@pytest.mark.parametrize("runs", ["k", "N"])
def test_a_silent_thread_is_of_one_kind_whatever_the_device_does_meanwhile(runs: str) -> None:
    sorts = {"N": Sort(K.COLLECTIVE, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")}
    model = model_of(draw(f"host main | M0--------M1--------\ngpu0 s7   | {runs}------- {runs}-------", sorts))
    assert model is not None
    names, kind = kinds_of_nodes(model)
    threads = np.flatnonzero((model.graph.kind == NodeKind.SEGMENT) & (model.graph.own_ps > 0))
    assert {names[at] for at in kind[threads].tolist()} == {"unknown"}
