"""What graphs of TensorFlow do without need, by names, order and the sizes of results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.draw import MS, Sort, draw

from stepscope.analysis.facts.changes import changes_of
from stepscope.analysis.purpose.excess import excesses_of
from stepscope.analysis.purpose.operands import ops_in_64_bits
from stepscope.analysis.purpose.purposes import purposes_of
from stepscope.model import EventKind, HostTrace
from stepscope.vocabulary.tensorflow import HALF_TYPE

K = EventKind

FLOAT, DOUBLE = 1, 2


def made(op: str, shape: str, data_type: int = FLOAT) -> Sort:
    """Memory that an op takes for its result."""
    return Sort(K.ALLOCATION, "MemoryAllocation", stats={"tf_op": op, "shape": shape, "data_type": data_type})


SORTS = {
    "h": Sort(K.OP, "one_hot:OneHot"),
    "r": Sort(K.OP, "Cast:Cast"),
    "p": Sort(K.OP, "matmul:MatMul"),
    "q": Sort(K.OP, "gradient_tape/matmul/MatMul_1:MatMul"),
    "t": Sort(K.OP, "Tanh:Tanh"),
    "c": Sort(K.OP, "matmul/CheckNumericsV2:CheckNumericsV2"),
    "g": Sort(K.OP, "Gather:ResourceGather"),
    "s": Sort(K.OP, "adam/UnsortedSegmentSum:UnsortedSegmentSum"),
    "u": Sort(K.OP, "adam/Mul:Mul"),
    "v": Sort(K.OP, "adam/AssignSubVariableOp:AssignSubVariableOp"),
    "x": Sort(K.OP, "gradient_tape/net/UnsortedSegmentSum/Gather:GatherV2"),
    "y": Sort(K.OP, "net/UnsortedSegmentSum:UnsortedSegmentSum"),
    "H": made("one_hot", "[64,1000]"),
    "I": made("one_hot", "[64,10]"),
    "Q": made("gradient_tape/matmul/MatMul_1", "[1000,32]"),
    "P": made("gradient_tape/matmul/MatMul_1", "[500,32]"),
    "D": made("matmul", "[64,32]", DOUBLE),
}


def drawn(picture: str) -> HostTrace:
    """The trace of a picture, as TensorFlow would have written it."""
    return replace(draw(picture, SORTS), framework="tensorflow")


def excess_of(picture: str) -> list[tuple[str, float, float]]:
    """The kinds of excess in a picture, their time in ms, and what of it is needed, in percent."""
    return [(each.kind, each.ps / MS, round(100 * each.keeps, 1)) for each in excesses_of(drawn(picture))]


# -- one-hot rows --------------------------------------------------------------------------------------------------


def test_one_hot_rows_and_the_product_that_takes_them() -> None:
    picture = """
        host main | M0----------M1----------
        host main | R1---------  R2---------
        host main | h-rp--t-q---h-rp--t-q--
        host main | H       Q   H       Q
    """

    assert excess_of(picture) == [("one_hot", 17.0, 0.0)]  # h, p and q; the last q is a ms shorter


def test_rows_for_a_loss_are_not_those_of_the_next_product() -> None:
    of_loss = """
        host main | M0----------M1----------
        host main | R1---------  R2---------
        host main | h-rp--t-q---h-rp--t-q--
        host main | H       P   H       P
    """
    few = of_loss.replace("H", "I").replace("P", "Q")

    assert excess_of(of_loss) == [("one_hot", 4.0, 0.0)]  # writing them alone
    assert excess_of(few) == []


# -- checks --------------------------------------------------------------------------------------------------------


def test_checks_of_every_result() -> None:
    assert excess_of("host main | M0--------\nhost main | R1--------\nhost main | p--c-t--c-") == [("checks", 4.0, 0.0)]


# -- tables --------------------------------------------------------------------------------------------------------


def test_a_gradient_that_is_written_as_a_whole_table() -> None:
    reads = f"g{'s' + '-' * 99}{'u' + '-' * 49}v{'-' * 79}t-"
    (found,) = excess_of(f"host main | M0{'-' * 230}\nhost main | R1{'-' * 230}\nhost main | {reads}")

    assert found == ("whole_table", 230.0, 1.0)  # s, u and v; reading takes a hundredth of writing


def test_sums_that_the_model_makes_itself_are_no_gradients_of_look_ups() -> None:
    sums = f"g{'y' + '-' * 99}{'u' + '-' * 49}v{'-' * 79}x-"

    assert excess_of(f"host main | M0{'-' * 230}\nhost main | R1{'-' * 230}\nhost main | {sums}") == []


# -- what leaving it out gives ---------------------------------------------------------------------------------------


def test_without_it_no_less_goes_than_the_time_in_which_it_runs() -> None:
    """Checks run for 4 of the 16 ms of each step; ops run for 10, so that at best two fifths of the computing go."""
    step = "p--cc   t--cc   "
    picture = f"host main | {''.join(f'M{at}'.ljust(16, '-') for at in range(4))}\nhost main | {4 * step}"
    changes = changes_of(drawn(picture))

    assert changes is not None
    found = changes.predicted["checks"]
    assert found.then_ps / MS <= 12
    assert found.least_ps <= found.then_ps <= found.most_ps


# -- types and purposes --------------------------------------------------------------------------------------------


def test_ops_that_take_memory_for_doubles_compute_in_64_bits() -> None:
    trace = drawn("host main | M0------\nhost main | R1------\nhost main | p--t--\nhost main |  D")
    ops = np.flatnonzero(trace.events.kind == K.OP)

    found = ops[ops_in_64_bits(trace, ops)]
    assert [trace.name_of(row) for row in found.tolist()] == ["matmul:MatMul"]


def test_products_of_which_most_that_are_known_are_in_half_precision() -> None:
    sorts = {
        "m": Sort(K.OP, "matmul:MatMul"),
        "n": Sort(K.OP, "matmul_1:MatMul"),
        "a": made("matmul", "[64,32]", HALF_TYPE),
        "b": made("Cast", "[64,32]"),
        "d": made("matmul", "[64,32]"),
    }

    def found(picture: str) -> list[str]:
        picture = f"host main | M0-----------\nhost main | {picture}"
        return [each.kind for each in excesses_of(replace(draw(picture, sorts), framework="tensorflow"))]

    assert found("m--a!n--b!") == ["half"]  # what other ops make does not count
    assert found("m--d!n--b!") == []


def test_an_op_with_a_gradient_is_forward() -> None:
    trace = drawn("host main | M0------\nhost main | R1------\nhost main | p--t-q-")

    assert {name: ps / MS for name, ps in purposes_of(trace).items()} == {"forward": 3, "unknown": 2, "backward": 2}


def test_a_product_with_a_matrix_that_is_nearly_empty() -> None:
    sorts = {"m": Sort(K.OP, "StatefulPartitionedCall/graph/matmul:MatMul"), "n": Sort(K.OP, "graph/matmul_1:MatMul")}
    facts = {"empty:0": "float32\t2000,2000\t4", "takes:2000,2000": "graph/matmul\nother"}
    trace = replace(draw("host main | M0---------\nhost main | m---n--", sorts, facts=facts), framework="tensorflow")

    (excess,) = excesses_of(trace)
    assert (excess.kind, excess.ps / MS, excess.keeps) == ("mostly_zero", 4.0, 0.02)


# -- gradients of one op, again ------------------------------------------------------------------------------------

_AGAIN = {
    "f": Sort(K.OP, "net/conv:Conv2D"),
    "a": Sort(K.OP, "gradient_tape/net/conv/Conv2DBackpropFilter:Conv2DBackpropFilter"),
    "b": Sort(K.OP, "gradient_tape/net/conv/Conv2DBackpropFilter_1:Conv2DBackpropFilter"),
    "c": Sort(K.OP, "gradient_tape/net/conv/Conv2DBackpropInput:Conv2DBackpropInput"),
    "d": Sort(K.OP, "gradient_tape/net/conv/Conv2DBackpropInput_1:Conv2DBackpropInput"),
    "m": Sort(K.OP, "net/dense:MatMul"),
    "i": Sort(K.OP, "gradient_tape/net/dense/MatMul:MatMul"),
    "j": Sort(K.OP, "gradient_tape/net/dense/MatMul_1:MatMul"),
    "k": Sort(K.OP, "gradient_tape/net/dense/MatMul_2:MatMul"),
    "W": made("gradient_tape/net/dense/MatMul", "[8,4]"),
    "X": made("gradient_tape/net/dense/MatMul_1", "[2,8]"),
    "Y": made("gradient_tape/net/dense/MatMul_2", "[2,8]"),
}


@pytest.mark.parametrize(
    ("ops", "found"),
    [
        ("f-a--b--c--d--", [("repeated_backward", 12.0, 50.0)]),
        ("f-a--c--d--", []),
        ("m-i-W!j-X!k-Y!", []),
        ("m-i--j--k-", []),
        ("m-i-W!j-X!", []),
    ],
    ids=[
        "two losses, each by itself", "one loss", "a second loss passes through a product: it needs none of the weight",
        "sizes are not known", "both gradients of one product",
    ],
)  # fmt: skip
def test_gradients_that_a_tape_is_asked_for_again(ops: str, found: list[tuple[str, float, float]]) -> None:
    trace = replace(draw(f"host main | M0-------------------\nhost main | {ops}", _AGAIN), framework="tensorflow")

    assert [(each.kind, each.ps / MS, round(100 * each.keeps, 1)) for each in excesses_of(trace)] == found


# -- Jacobians -----------------------------------------------------------------------------------------------------


def test_a_tape_that_is_asked_for_a_whole_jacobian() -> None:
    picture = """
        host main | M0------------
        host main | t2-j8-------w-
        host main |    J!
    """
    sorts = {
        "j": Sort(K.OP, "gradient_tape/net/TanhGrad/pfor/TanhGrad:TanhGrad"),
        "J": made("gradient_tape/net/TanhGrad/pfor/TanhGrad", "[20,128,64]"),
        "w": Sort(K.OP, "einsum/Einsum:Einsum"),
        "z": Sort(K.OP, "LogMatrixDeterminant:LogMatrixDeterminant"),
    }

    def found(drawn: str) -> list[tuple[str, float, float]]:
        trace = replace(draw(drawn, SORTS | sorts), framework="tensorflow")
        return [(each.kind, each.ps / MS, each.keeps) for each in excesses_of(trace)]

    assert found(picture) == [("jacobian", 9.0, 1 / 20)]
    assert "jacobian" not in [
        kind for kind, _, _ in found(picture.replace("w-", "z-"))
    ]  # a determinant needs all of it


# -- a model that runs again after its gradients -------------------------------------------------------------------

_TWICE = {
    "f": Sort(K.OP, "net_1/conv/convolution:Conv2D"),
    "b": Sort(K.OP, "gradient_tape/net_1/conv/convolution/Conv2DBackpropFilter:Conv2DBackpropFilter"),
    "g": Sort(K.OP, "net_3/conv/convolution:Conv2D"),
    "r": Sort(K.OP, "net_3/conv/Relu:Relu"),
    "h": Sort(K.OP, "teacher_3/conv/convolution:Conv2D"),
    "k": Sort(K.OP, "gradient_tape/net_3/conv/convolution/Conv2DBackpropInput:Conv2DBackpropInput"),
}


@pytest.mark.parametrize(
    ("ops", "found"),
    [
        ("f---b-----g--r-", [("after_update", 5.0)]),
        ("f---g--r-b-----", []),  # before: a target network's may be needed
        ("f---b-----h---", []),  # another model
        ("f---b-----g--k-", []),  # it has a gradient of its own
    ],
)
def test_a_model_that_runs_again_after_its_gradients(ops: str, found: list[tuple[str, float]]) -> None:
    trace = replace(draw(f"host main | M0-------------------\nhost main | {ops}", _TWICE), framework="tensorflow")

    assert [(each.kind, each.ps / MS) for each in excesses_of(trace)] == found


# -- padding -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("padded", "expected"), [
    ("4,40\t10\t6", [("padding", 15.0, 25.0)]),  # the gather, the product and its gradient; not the update
    ("4,40\t36\t20", []),
    ("", []),
])  # fmt: skip
def test_a_batch_of_tokens_that_is_filled_up_in_the_pipeline(padded: str, expected: list[object]) -> None:
    picture = "host main | M0------------------\nhost main | er---p----q----a----"
    sorts = {
        "e": Sort(K.OP, "net/embedding/GatherV2:GatherV2"),
        "r": Sort(K.OP, "net/embedding/GatherV2/ReadVariableOp:ReadVariableOp"),
        "p": Sort(K.OP, "net/dense/MatMul:MatMul"),
        "q": Sort(K.OP, "gradient_tape/net/dense/MatMul:MatMul"),
        "a": Sort(K.OP, "adam/Mul:Mul"),
    }
    trace = replace(draw(picture, sorts, facts={"padded:0": padded}), framework="tensorflow")

    assert [(each.kind, each.ps / MS, 100 * each.keeps) for each in excesses_of(trace)] == expected
