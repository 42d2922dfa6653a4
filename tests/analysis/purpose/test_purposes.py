"""What the computing of a step is for: by the numbers of autograd, by ranges, and by names in graphs and programs."""

from __future__ import annotations

import pytest
from helpers.draw import MS, Sort, draw

from stepscope.analysis.purpose.purposes import purposes_of
from stepscope.model import EventKind
from stepscope.vocabulary.purposes import purpose_of_op

K = EventKind

SORTS = {
    "f": Sort(K.OP, "aten::mm", "Sequence number"),
    "l": Sort(K.OP, "aten::cross_entropy_loss", "Sequence number"),
    "B": Sort(K.BACKWARD, "autograd::engine::evaluate_function: MmBackward0", "Sequence number"),
    "m": Sort(K.OP, "aten::mm"),
    "p": Sort(K.OP, "aten::add_"),
    "c": Sort(K.OP, "aten::copy_"),
    "x": Sort(K.OP, "aten::topk"),
    "U": Sort(K.ANNOTATION, "Optimizer.step#SGD.step"),
    "s": Sort(K.CHECKPOINT, "save model"),
    "t": Sort(K.OP, "net/dense/MatMul:MatMul"),
    "g": Sort(K.OP, "gradient_tape/net/dense/MatMul:MatMul"),
    "a": Sort(K.OP, "Adam/mul:Mul"),
    "L": Sort(K.RUNTIME_CALL, "launch", "correlation_id"),
    "K": Sort(K.KERNEL, "kernel", "correlation_id"),
}


def purposes(picture: str) -> dict[str, float]:
    """The time of each purpose in ms."""
    return {name: ps / MS for name, ps in purposes_of(draw(picture, SORTS)).items()}


def test_ops_of_autograd() -> None:
    picture = """
        host main | M0-----------------------------
        host main | f1---l2-B2-B1----U--c-s----x-
        host main |         m-  m--  p-    c---
    """

    assert purposes(picture) == {
        "forward": 5, "loss": 3, "backward": 5, "update": 2, "saving": 4, "moving": 2, "unknown": 2,
    }  # fmt: skip


def test_a_teacher_and_what_is_computed_again() -> None:
    picture = """
        host main | M0-----------------------------
        host main | m-----f1---f2--B2-B1-----U--
        host main |                   f3-m-  p-
    """

    assert purposes(picture) == {"forward": 9, "forward_only": 6, "recomputing": 3, "backward": 2, "update": 2}


def test_scopes_of_a_graph() -> None:
    picture = """
        host main | M0-----------
        host main | t---g-----a-x
    """

    assert purposes(picture) == {"forward": 4, "backward": 6, "update": 2, "unknown": 1}


def test_work_of_a_device_is_for_what_launched_it() -> None:
    picture = """
        host main | M0-----------------
        host main | f7--B7--U--
        host main | L1  L2  p--
        host main |         L3
        gpu0 s    |  K1--K2------K3-
    """

    assert purposes(picture) == {"forward": 4, "backward": 8, "update": 3}


@pytest.mark.parametrize(
    ("name", "purpose"),
    [
        ("jit(step)/jit(main)/transpose(jvp(Net))/Dense_0/dot_general:", "backward"),
        ("jit(step)/jit(main)/jvp(Net)/Dense_0/dot_general:", "forward"),
        ("jit(step)/add:", ""),
        ("compile_loss/mse/sub:Sub", "loss"),
        ("metrics/accuracy/Equal:Equal", "metrics"),
        ("ResourceApplyAdam:ResourceApplyAdam", "update"),
        ("aten::mm", ""),
    ],
)
def test_what_a_name_says(name: str, purpose: str) -> None:
    assert purpose_of_op(name) == purpose
