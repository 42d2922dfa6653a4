"""How a model is spread over ranks: by what its groups are called, else by what they mostly do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draw import Sort, draw

from stepscope.analysis.facts.strategy import sent_buffers, strategy_of
from stepscope.model import EventKind

K = EventKind
SORTS = {
    "g": Sort(K.COLLECTIVE_CALL, "nccl:_all_gather_base"),
    "s": Sort(K.COLLECTIVE_CALL, "nccl:_reduce_scatter_base"),
    "r": Sort(K.COLLECTIVE_CALL, "nccl:all_reduce"),
    "p": Sort(K.COLLECTIVE_CALL, "nccl:send 0->1"),
    "a": Sort(K.COLLECTIVE_CALL, "nccl:all_to_all"),
    "m": Sort(K.OP, "aten::mm"),
    "b": Sort(K.BACKWARD, "autograd::engine::evaluate_function: MmBackward0"),
    "d": Sort(K.ANNOTATION, "DistributedDataParallel.forward"),
}


@pytest.mark.parametrize(
    ("calls", "framework", "strategy"),
    [
        ("g--s--r", "pytorch", "fsdp"),
        ("r--r--g", "pytorch", ""),
        ("p--p-r", "pytorch", "pipeline"),
        ("a--a-r", "pytorch", "exchange"),
        ("a-g-r-a-r", "pytorch", "exchange"),
        ("r--mr--m", "pytorch", "tensor"),
        ("r--mr--b", "pytorch", ""),
        ("d-r-r-", "pytorch", "ddp"),
        ("d-r-a--", "pytorch", "exchange"),
        ("r--r--", "tensorflow", "mirrored"),
        ("x--x--", "pytorch", ""),
    ],
)
def test_what_takes_most_of_the_communication_says_how_the_model_is_spread(
    calls: str, framework: str, strategy: str
) -> None:
    trace = replace(draw(f"host main | M0------\nhost main | {calls}", SORTS), framework=framework)

    assert strategy_of(trace) == strategy


@pytest.mark.parametrize(
    ("around", "sent", "share"),
    [("D--------", "c", 0.75), (" ", " ", None), (" S-------", "c", None)],
    ids=["before the forward pass", "nothing is sent", "the program sends itself"],
)
def test_buffers_that_ddp_sends(around: str, sent: str, share: float | None) -> None:
    sorts = {
        "D": Sort(K.ANNOTATION, "DistributedDataParallel.forward"),
        "S": Sort(K.ANNOTATION, "sync"),
        "C": Sort(K.COLLECTIVE_CALL, "c10d::broadcast_"),
        "B": Sort(K.COLLECTIVE_CALL, "gloo:broadcast"),
        "R": Sort(K.COLLECTIVE_CALL, "gloo:all_reduce"),
    }
    trace = draw(
        f"""
        host main | M0-----------
        host main | {around}
        host main |   {sent.upper()}
        host gloo |    {'B-----' if sent.strip() else ' '}    R-
        """, sorts,
    )  # fmt: skip
    found = sent_buffers(trace)

    assert (None if found is None else round(found.share, 2)) == share
