"""Work of PyTorch's ops that the sizes of their operands show to be more than its result needs, each beside the program
that needs it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.draw import MS, Sort, draw

from stepscope.analysis.purpose.autograd import ops_per_parameter
from stepscope.analysis.purpose.excess import excesses_of
from stepscope.analysis.purpose.tensors import ops_with_sizes, product_order, products_of_larger_side
from stepscope.model import EventKind, HostTrace

K = EventKind
_NODE = "autograd::engine::evaluate_function: "
_BACKWARD = Sort(K.BACKWARD, f"{_NODE}Backward0", "Sequence number")


def _op(name: str, *sizes: str, kind: EventKind = K.OP) -> Sort:
    return Sort(kind, name, "Sequence number", {"Input Dims": "[" + ",".join(f"[{each}]" for each in sizes) + "]"})


def _trace(picture: str, **sorts: Sort) -> HostTrace:
    return draw(picture, {"B": _BACKWARD, **sorts})


def _excess(picture: str, **sorts: Sort) -> list[tuple[str, float, float]]:
    """The kinds of excess in a picture, their time in ms, and how much of that is needed."""
    return [(each.kind, each.ps / MS, each.keeps) for each in excesses_of(_trace(picture, **sorts))]


# linear over 32 positions, an activation, one position, and the way back; f1 has something else that is trained
_HEAD = """
    host main | M0--------------------------------------
    host main | f1--l2---r3-s4-B4-B3-B2------B1--
    host main |                z4m5
"""
_HEAD_SORTS = {
    "f": _op("aten::layer_norm", "48,32,96"),
    "l": _op("aten::linear", "48,32,96", "3000,96", "3000"),
    "r": _op("aten::relu", "48,32,3000"),
    "s": _op("aten::select", "48,32,3000", "", ""),
    "z": _op("SelectBackward0", "48,3000"),
    "m": _op("aten::select_backward", "48,3000"),
}


def test_a_product_over_positions_of_which_one_is_taken() -> None:
    # l2, r3 and the way back through both
    assert _excess(_HEAD, **_HEAD_SORTS) == [("picked_after", 5.0 + 3.0 + 3.0 + 8.0, 1 / 32)]


@pytest.mark.parametrize(
    "changed",
    [
        {"z": _op("SelectBackward0", "48,24,3000")},
        {"r": _op("aten::add", "48,32,3000", "48,32,3000")},
        {"f": _op("aten::layer_norm", "48,32,96"), "l": _op("aten::gru", "48,32,96", "1,48,96", "288,96")},
    ],
    ids=["most positions are taken", "what is added comes from elsewhere", "each position needs those before"],
)
def test_a_product_over_positions_that_are_needed(changed: dict[str, Sort]) -> None:
    assert _excess(_HEAD, **_HEAD_SORTS | changed) == []


# two convolutions with an activation, of which the middle is cut in two steps, and the way back
_CUT = """
    host main | M0----------------------------------------------------
    host main | c1--r2-d3--s4--t5--e6-B6-B5---B4---B3-B2-B1-----
    host main |                       y5   z4
"""
_CUT_SORTS = {
    "c": _op("aten::conv2d", "4,3,160,160", "24,3,3,3", "24"),
    "r": _op("aten::relu", "4,24,160,160"),
    "d": _op("aten::conv2d", "4,24,160,160", "2,24,3,3", "2"),
    "s": _op("aten::slice", "4,2,160,160", "", "", "", ""),
    "t": _op("aten::slice", "4,2,48,160", "", "", "", ""),
    "e": _op("aten::cross_entropy_loss", "4,2,48,48", "4,48,48", "", "", ""),
    "y": _op("aten::slice_backward", "4,2,48,48"),
    "z": _op("aten::slice_backward", "4,2,48,160"),
}


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, [("picked_after", pytest.approx((52 / 160) ** 2))]),
        ({"d": _op("aten::conv2d", "4,24,160,160", "2,24,81,81", "2")}, []),
        ({"d": _op("aten::conv2d", "4,24,80,80", "2,24,3,3", "2")}, []),
        ({"z": _op("aten::slice_backward", "4,2,160,140"), "s": _op("aten::slice", "4,2,160,160")}, []),
        ({"e": _op("aten::mse_loss", "4,2,160,160", "4,2,160,160")}, []),
    ],
    ids=["the middle", "filters reach far", "other sides before", "hardly anything is cut", "all of it is used, too"],
)
def test_pictures_of_which_a_part_is_cut_after_convolutions(
    changed: dict[str, Sort], found: list[tuple[str, float]]
) -> None:
    assert [(kind, kept) for kind, _, kept in _excess(_CUT, **_CUT_SORTS | changed)] == found


def test_a_recording_of_an_update_alone_has_no_work_of_the_model() -> None:
    trace = _trace(
        """
        host main | O------------
        host main | m3--m3--m3--
        """,
        O=Sort(K.ANNOTATION, "Optimizer.step#CustomAdam.step"),
        m=_op("aten::mul_", "960,960", ""),
    )

    assert (ops_with_sizes(trace), excesses_of(trace)) == ([], ())


_CHAIN = """
    host main | M0-----------------------
    host main | a1---v2b3---B3---B2B1---
"""


@pytest.mark.parametrize(
    ("a", "v", "b", "found"),
    [
        (_op("aten::repeat", "8,1,64", ""), _op("aten::view", "8,50,64"), _op("aten::linear", "8,50,64", "32,64"),
         [("repeated_rows", 20.0, 1 / 50)]),
        (_op("aten::repeat", "8,1,64", ""), _op("aten::view", "8,50,64"), _op("aten::linear", "8,50,96", "32,96"), []),
        (_op("aten::sub", "400,1,64", "1,300,64"), _op("aten::pow", "400,300,64"), _op("aten::sum", "400,300,64"),
         [("spread_pairs", 24.0, 0.0)]),
        (_op("aten::sub", "400,300,64", "1,300,64"), _op("aten::pow", "400,300,64"), _op("aten::sum", "400,300,64"),
         []),
        (_op("aten::matmul", "900,8", "8,900"), _op("aten::view", "900,900"), _op("aten::matmul", "900,900", "900,4"),
         [("product_order", 20.0, pytest.approx(0.0059, abs=1e-4))]),
        (_op("aten::matmul", "900,8", "8,4"), _op("aten::view", "900,4"), _op("aten::matmul", "900,4", "4,900"), []),
    ],
)  # fmt: skip
def test_ops_that_follow_each_other(a: Sort, v: Sort, b: Sort, found: list[tuple[str, float, float]]) -> None:
    assert _excess(_CHAIN, a=a, v=v, b=b) == found


_LOW_RANK = """
    host main | M0-----------------------------
    host main | a1---m2-p3-b4--B4--B3-B2-B1---
"""


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, [("product_order", 5.0 + 3 + 3 + 3 + 3 + 5, pytest.approx(0.133, abs=1e-3))]),
        ({"b": _op("aten::linear", "2000,640", "1920,640", "")}, []),
        ({"m": _op("aten::mul", "1920,640", "1920,640")}, []),
        ({"m": _op("aten::softmax", "1920,640", "", "")}, []),
    ],
    ids=["a change of low rank to a weight", "many rows", "each number by another", "not linear"],
)
def test_thin_matrices_that_are_made_wide(changed: dict[str, Sort], found: list[tuple[str, float, float]]) -> None:
    sorts = {
        "a": _op("aten::matmul", "1920,8", "8,640"),
        "m": _op("aten::mul", "1920,640", ""),
        "p": _op("aten::add", "1920,640", "1920,640", ""),
        "b": _op("aten::linear", "4,16,640", "1920,640", ""),
    }

    assert _excess(_LOW_RANK, **sorts | changed) == found


def test_a_product_with_a_matrix_that_is_nearly_empty() -> None:
    picture = "host main | M0------------\nhost main | l1---B1--"
    sorts = {"B": _BACKWARD, "l": _op("aten::mm", "2600,2600", "2600,48")}

    (excess,) = excesses_of(draw(picture, sorts, facts={"empty:0": "float32\t2600,2600\t5"}))
    assert (excess.kind, excess.ps / MS, excess.keeps) == ("mostly_zero", 9.0, 0.025)
    assert excess.fact == "multiplies with dense [2600,2600], of which 0.5 % is not zero"
    assert excesses_of(draw(picture, sorts, facts={"empty:0": "float32\t2600,48\t?"})) == ()


_SEQUENCE = """
    host main | M0--------------------------------------------
    host main | e---a-e---b-e---c-e---d-e---f-e---g-----------
"""


@pytest.mark.parametrize(
    ("encodes", "grows", "found"),
    [
        (_op("aten::conv2d", "4,3,64,64", "8,3,3,3", ""), 1, [("encoded_again", 5 * 4.0, 1 / 5)]),
        (_op("aten::gru", "4,1,8", "1,4,8", "24,8"), 1, []),
        (_op("aten::conv2d", "4,3,64,64", "8,3,3,3", ""), 0, []),
        (_op("aten::linear", "4,64,8", "16,8", ""), 1, []),
    ],
    ids=["a picture", "the newest position", "what is joined does not grow", "one product, as for keys and values"],
)
def test_layers_that_run_again_for_each_position(
    encodes: Sort, grows: int, found: list[tuple[str, float, float]]
) -> None:
    joins = {
        letter: Sort(K.OP, "aten::cat", "", {"Input Dims": f"[[[4,{3 + grows * at}],[4,1]],[]]"})
        for at, letter in enumerate("abcdfg")
    }

    assert _excess(_SEQUENCE, e=encodes, **joins) == found


def test_a_matrix_that_is_taken_apart_without_a_gradient() -> None:
    picture = """
        host main | M0-----------------------
        host main | i----f1--B1----
    """
    sorts = {"i": _op("aten::linalg_inv", "300,300"), "f": _op("aten::linear", "8,4", "4,4")}

    assert _excess(picture, **sorts) == [("factoring", 5.0, 0.0)]


def test_an_inverse_with_a_gradient_is_another_one_in_each_step() -> None:
    picture = """
        host main | M0-----------------------
        host main | i1---f2--B2--B1---
    """
    sorts = {"i": _op("aten::linalg_inv", "300,300"), "f": _op("aten::linear", "8,4", "4,4")}

    assert _excess(picture, **sorts) == [("inverse", 10.0, 0.0)]


def test_what_is_found_in_one_of_equal_steps_counts_in_all_of_them() -> None:
    c = _op("aten::linalg_cholesky", "512,512")
    trace = _trace("host main | M0----M1----M2----M3----\nhost main | cc    cc    cc    c", c=c)

    (found,) = excesses_of(trace)

    assert (found.kind, len(found.rows)) == ("factoring", 7)
    assert len(ops_with_sizes(trace)) == 3  # of the first step, and of the one that differs


def test_nothing_is_said_without_sizes() -> None:
    assert product_order(_trace(_CHAIN, a=Sort(K.OP, "aten::matmul", "Sequence number"))) is None


_BRANCH = """
    host main | M0-----------------------------M1-----
    host main | f1--h3--r4-h5--{}c7-B7-B1--    f8--
"""
_BRANCH_SORTS = {
    "f": _op("aten::linear", "8,4", "16,4"),
    "h": _op("aten::linear", "8,16", "4,16"),
    "r": _op("aten::relu", "8,4"),
    "d": _op("aten::detach", "8,4"),
    "c": _op("aten::cross_entropy_loss", "8,16", "8"),
}


def test_a_branch_whose_result_no_op_takes() -> None:
    # f8 takes an input of that size, in the next step
    assert _excess(_BRANCH.format("   "), **_BRANCH_SORTS) == [("dead_branch", 4.0 + 3.0 + 4.0, 0.0)]


def test_a_branch_that_is_detached_to_be_a_target_is_needed() -> None:
    assert _excess(_BRANCH.format("d6-"), **_BRANCH_SORTS) == []


def test_a_branch_that_ends_in_a_convolution_is_taken_by_what_has_its_batch_and_as_many_axes() -> None:
    sorts = {
        **_BRANCH_SORTS,
        "h": _op("aten::conv_transpose2d", "8,3,9,9", "3,4,2,2"),
        "r": _op("aten::relu", "8,4,9,9"),
    }
    taken = {**sorts, "c": _op("aten::mse_loss", "8,4,18,18", "8,4,18,18")}

    assert _excess(_BRANCH.format("   "), **sorts) == [("dead_branch", 4.0 + 3.0 + 4.0, 0.0)]
    assert _excess(_BRANCH.format("   "), **taken) == []


@pytest.mark.parametrize(("cut", "share"), [(31, 0.25), (16, None)], ids=["without the last", "a half of it"])
def test_rows_whose_labels_the_loss_ignores(cut: int, share: float | None) -> None:
    """Each position predicts the next one, so that the last one is left out; the capture has read the labels."""
    sorts = {
        "B": _BACKWARD,
        "l": _op("aten::linear", "8,32,96", "3000,96"),
        "s": _op("aten::slice", "8,32,3000", "", "", "", ""),
        "r": _op("aten::reshape", f"8,{cut},3000", ""),
        "c": _op("aten::cross_entropy_loss", f"{8 * cut},3000", f"{8 * cut}", "", "", "", ""),
    }
    picture = "host main | M0-----------------------\nhost main | l1--s2r3c4-B4-B3-B2-B1--"
    facts: dict[str, str | int] = {"ignored:0": "8,32\t750", "ignored:1": "8,16\t750"}
    found = excesses_of(draw(picture, sorts, facts=facts))

    assert [each.keeps for each in found] == ([] if share is None else [share])


@pytest.mark.parametrize(("n", "k", "kept"), [(600, 100, 0.05), (100, 600, None), (100, 100, None)])
def test_squares_of_the_larger_side_of_a_matrix(n: int, k: int, kept: float | None) -> None:
    """As of Newton-Schulz in an update: x @ x.T, that squared and added up, and times x again."""
    picture = """
        host main | M0------------------M1------------------
        host main | U-----------------  U-----------------
        host main | g---s-m-q---a-p---  g---s-m-q---a-p---
    """
    sorts = {
        "U": Sort(EventKind.ANNOTATION, "Optimizer.step#Muon.step"),
        "g": _op("aten::mm", f"{n},{k}", f"{k},{n}"),
        "s": _op("aten::mul", f"{n},{k}", ""),
        "m": _op("aten::mul", f"{n},{n}", ""),
        "q": _op("aten::mm", f"{n},{n}", f"{n},{n}"),
        "a": _op("aten::add", f"{n},{n}", f"{n},{n}", ""),
        "p": _op("aten::mm", f"{n},{n}", f"{n},{k}"),
    }
    found = products_of_larger_side(_trace(picture, **sorts))

    assert (None if found is None else round(found.kept, 2)) == kept


# -- padding -----------------------------------------------------------------------------------------------------------

# four rows are copied into longer ones, a layer computes all, and the way back
_PADDED = """
    host main | M0------------------M1------------------
    host main | scscscsc--l1--B1----scscscsc--l2--B2----
"""


def _padded(length: int, row: int) -> list[str]:
    sorts = {
        "s": _op("aten::slice", f"{length}", "", "", "", ""),
        "c": _op("aten::copy_", f"{row}", f"{row}", ""),
        "l": _op("aten::linear", f"4,{length},16", "8,16"),
    }
    return [each.fact for each in excesses_of(_trace(_PADDED, **sorts))]


def test_batches_that_are_filled_up_to_more_than_their_longest_row() -> None:
    assert _padded(40, 10) == [
        "computes batches that are filled up to 40 from rows of 10 on average, at most 10: 25 % of that is what the"
        " longest row of a batch needs"
    ]
    assert _padded(40, 36) == []


def test_tokens_that_are_filled_up_with_no_op() -> None:
    """As with NumPy; the capture has read a batch of them."""
    picture = "host main | M0------------------\nhost main | e---l1--------B1----"
    sorts = {
        "B": _BACKWARD,
        "e": _op("aten::embedding", "90,16", "4,40", "", "", ""),
        "l": _op("aten::linear", "4,40,16", "8,16"),
    }

    (excess,) = excesses_of(draw(picture, sorts, facts={"padded:0": "4,40\t10\t6"}))
    assert excess.fact.startswith(
        "computes batches that are filled up to 40 from rows of 6 on average, at most 10: 25 %"
    )
    for other in ("4,40\t36\t20", "4,50\t10\t6", "4,40\t?\t6"):
        assert excesses_of(draw(picture, sorts, facts={"padded:0": other})) == ()


def test_labels_that_the_loss_is_to_ignore_are_no_padding() -> None:
    """`labels[:10] = -1` writes a number over the prompt; the rows themselves are all of one length."""
    sorts = {
        "s": _op("aten::slice", "40", "", "", "", ""),
        "c": _op("aten::copy_", "10", "", ""),
        "l": _op("aten::linear", "4,40,16", "8,16"),
    }

    assert excesses_of(_trace(_PADDED, **sorts)) == ()


def test_what_else_is_copied_as_a_whole_is_no_row_of_the_batch() -> None:
    """Positions of the full length, which a model cuts and copies, are wider than a row."""
    sorts = {
        "s": _op("aten::slice", "40", "", "", "", ""),
        "c": _op("aten::copy_", "10", "10", ""),
        "p": _op("aten::slice", "40,16", "", "", "", ""),
        "q": _op("aten::copy_", "40,16", "40,16", ""),
        "l": _op("aten::linear", "4,40,16", "8,16"),
    }
    with_positions = _PADDED.replace("scscscsc--", "scscscscpq")

    assert "from rows of 10 on average, at most 10" in excesses_of(_trace(with_positions, **sorts))[0].fact


def test_the_used_part_of_a_buffer_is_no_row_that_is_filled_up() -> None:
    """A server takes 10 tokens in one step and 20 in the next, of up to 40."""
    sorts = {
        "s": _op("aten::slice", "40", "", "", "", ""),
        "c": _op("aten::copy_", "10", "10", ""),
        "d": _op("aten::copy_", "20", "20", ""),
        "l": _op("aten::linear", "40,16", "8,16"),
    }

    assert excesses_of(_trace(_PADDED.replace("scscscsc--l2", "sdsdsdsd--l2"), **sorts)) == ()


# -- updates -----------------------------------------------------------------------------------------------------------


def test_ops_that_are_as_many_for_each_parameter() -> None:
    """As in an update that is written out: two ops for each of two parameters, and one for the loss."""
    sorts = {
        "A": Sort(K.BACKWARD, f"{_NODE}torch::autograd::AccumulateGrad"),
        "a": Sort(K.OP, "torch::autograd::AccumulateGrad", "", {"Input Dims": "[[8,4]]"}),
        "l": _op("aten::linear", "2,4", "8,4"),
        "m": _op("aten::mul", "8,4", ""),
        "n": _op("aten::mul", "1", ""),
    }
    trace = _trace("""
        host main | M0----------------------
        host main | l1-B1A-A---mmmm-nn------
        host main |      a a
    """, **sorts)  # fmt: skip
    by_name = {
        name: np.flatnonzero([trace.name_of(row) == f"aten::{name}" for row in range(len(trace.events))])
        for name in ("mul", "linear")
    }

    assert ops_per_parameter(trace, by_name["mul"]) == 2
    assert ops_per_parameter(trace, by_name["linear"]) == 0


# -- Jacobians -----------------------------------------------------------------------------------------------------


def test_a_gradient_for_each_column_of_a_result() -> None:
    picture = """
        host main | M0--------------------------------------
        host main | f1--s2B2-B1-s3B3-B1-s4B4-B1-s5B5-B1-
    """
    sorts = {"f": _op("aten::tanh", "32,4"), "s": _op("aten::select", "32,4", "", "")}

    assert _excess(picture, **sorts) == [("jacobian", 8 * 3.0, 1 / 4)]
    assert _excess(picture, **sorts | {"s": _op("aten::select", "32,7", "", "")}) == []  # of four columns of seven


# -- the same in every step --------------------------------------------------------------------------------------------


def _typed(sort: Sort, types: str) -> Sort:
    return replace(sort, stats={**sort.stats, "Input type": types, "Concrete Inputs": types.replace("float", "")})


@pytest.mark.parametrize(("kept", "expected"), [
    # the layer over the table, and what follows it alone; not over queries, nor the product of both
    ({"same_tensors:0": "90,16\t1", "same_tensors:1": "8,16\t1", "same_tensors:2": "8\t1"}, [("constant_work", 21.0)]),
    ({"same_tensors:0": "90,16\t1", "same_tensors:1": "8,16\t1"}, []),  # the bias may be written
    ({}, []),
])  # fmt: skip
def test_what_is_made_of_tensors_that_the_program_keeps(kept: dict[str, str], expected: list[object]) -> None:
    picture = """
        host main | M0------------M1------------M2------------
        host main | l----g-q-p----l----g-q-p----l----g-q-p----
    """
    sorts = {
        "l": _typed(_op("aten::linear", "90,16", "8,16", "8"), '["float","float","float"]'),
        "g": _typed(_op("aten::gelu", "90,8"), '["float"]'),
        "q": _typed(_op("aten::linear", "4,16", "8,16", "8"), '["float","float","float"]'),
        "p": _typed(_op("aten::mm", "4,8", "8,90"), '["float","float"]'),
    }
    found = excesses_of(draw(picture, sorts, facts={**kept}))

    assert [(each.kind, each.ps / MS) for each in found if each.kind == "constant_work"] == expected


@pytest.mark.parametrize("other", [
    _typed(_op("aten::index", "70,8", ""), '["float",""]'),  # rows of something, which may be as many
    _typed(_op("aten::linear", "90,5", "8,5"), '["float","float"]'),  # of what the step is given
])  # fmt: skip
def test_a_size_that_something_else_makes_tells_nothing(other: Sort) -> None:
    picture = """
        host main | M0------------M1------------M2------------
        host main | l-o-g---------l-o-g---------l-o-g---------
    """
    sorts = {
        "l": _typed(_op("aten::linear", "90,16", "8,16"), '["float","float"]'),
        "g": _typed(_op("aten::gelu", "90,8"), '["float"]'),
        "o": other,
    }
    facts: dict[str, str | int] = {"same_tensors:0": "90,16\t1", "same_tensors:1": "8,16\t1"}
    found = excesses_of(draw(picture, sorts, facts=facts))

    assert [(each.kind, each.ps / MS) for each in found] == [("constant_work", 6.0)]  # linear alone
