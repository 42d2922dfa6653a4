"""Ops of which sizes show that another way costs a fraction, each beside the program that needs them as they are."""

from __future__ import annotations

import json

import pytest
from helpers.draw import MS, Sort, draw

from stepscope.analysis.purpose.excess import FILTER, PARTLY, ROWS_AGAIN, UPDATE, excesses_of
from stepscope.model import EventKind, HostTrace

K = EventKind
_BACKWARD = Sort(K.BACKWARD, "autograd::engine::evaluate_function: Backward0", "Sequence number")


def _op(name: str, *sizes: str, plain: tuple[str, ...] = ()) -> Sort:
    stats = {
        "Input Dims": "[" + ",".join(f"[{each}]" for each in sizes) + "]",
        "Concrete Inputs": json.dumps(plain, separators=(",", ":")),
    }
    return Sort(K.OP, f"aten::{name}", "Sequence number", stats)


def _found(picture: str, **sorts: Sort) -> list[tuple[str, float]]:
    """The kinds of excess in a picture, of those that this is about, and their time in ms."""
    trace: HostTrace = draw(picture, {"B": _BACKWARD, **sorts})
    return [
        (each.kind, each.ps / MS) for each in excesses_of(trace) if each.kind in (FILTER, PARTLY, ROWS_AGAIN, UPDATE)
    ]


_ONE = """
    host main | M0----------------
    host main | c5----l2-B2-B5----
"""
_LINEAR = _op("linear", "16,64", "12,64")


def _convolution(image: str, kernel: str, stride: str = "1") -> Sort:
    return _op("conv1d", image, kernel, plain=("", "", "", f"[{stride}]", "[0]", "[1]", "1"))


@pytest.mark.parametrize(
    ("convolution", "found"),
    [
        (_convolution("16,1,17999", "1,1,2000"), [("long_filter", 12.0)]),
        (_convolution("16,1,16000", "64,1,80", "16"), []),
        (_convolution("16,64,1000", "64,64,65"), []),
    ],
    ids=["a room's echo", "of each 16th place", "many channels, which share the transforms of no filter"],
)
def test_a_filter_that_transforms_apply_faster(convolution: Sort, found: list[tuple[str, float]]) -> None:
    assert _found(_ONE, c=convolution, l=_LINEAR) == found


_BLUR = """
    host main | M0----------------
    host main | c-----l2-B2-------
"""


def test_a_filter_over_two_axes_that_nothing_trains() -> None:
    wide = _op("conv2d", "16,3,96,96", "3,1,25,25", plain=("", "", "", "[1, 1]", "[12, 12]", "[1, 1]", "3"))

    assert _found(_BLUR, c=wide, l=_LINEAR) == [("long_filter", 6.0)]
    assert _found(_ONE, c=wide, l=_LINEAR) == []  # it is learned, as of a ConvNeXt


_RANKS = """
    host main | M0----------------
    host main | l2-a---b---c-B2---
"""


@pytest.mark.parametrize(
    ("a", "b", "c", "found"),
    [
        (_op("argsort", "8,900"), _op("argsort", "8,900"), _op("lt", "8,900", "8,1"), [("partly_taken", 8.0)]),
        (_op("argsort", "8,900"), _op("argsort", "8,900"), _op("mul", "8,900", "8,900"), []),
        (_op("sort", "900"), _op("slice", "900", plain=("", "0", "0", "90", "1")), _op("sum", "90"),
         [("partly_taken", 4.0)]),
        (_op("sort", "900"), _op("slice", "900", plain=("", "0", "0", "800", "1")), _op("sum", "800"), []),
        (_op("randperm", "", plain=("900",)), _op("slice", "900", plain=("", "0", "", "9", "1")), _op("add", "9"), []),
        (_op("linalg_svdvals", "300,300"), _op("select", "300", "", ""), _op("mul", "", ""), [("partly_taken", 4.0)]),
        (_op("linalg_svdvals", "300,300"), _op("log", "300"), _op("select", "300", "", ""), []),
    ],
    ids=["ranks below a number", "ranks", "the first tenth", "most", "an end that is not told", "the largest value",
         "all values"],
)  # fmt: skip
def test_a_part_of_what_was_put_in_order(a: Sort, b: Sort, c: Sort, found: list[tuple[str, float]]) -> None:
    assert _found(_RANKS, a=a, b=b, c=c, l=_LINEAR) == found


_FROZEN = """
    host main | M0----------------------
    host main | i-c-----r-h--l2-B2------
"""
_FROZEN_SORTS = {
    "i": _op("index", "128,3,96,96", ""),
    "c": _op("conv2d", "16,3,96,96", "32,3,3,3", plain=("", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "1")),
    "r": _op("relu", "16,32,48,48"),
    "h": _op("conv2d", "16,32,48,48", "4,32,3,3", plain=("", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1")),
    "l": _op("linear", "16,576", "10,576"),
}


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, [("rows_encoded_again", 11.0)]),
        ({"r": _op("dropout", "16,32,48,48", plain=("", "0.1", "False"))}, [("rows_encoded_again", 11.0)]),
        ({"r": _op("dropout", "16,32,48,48", plain=("", "0.1", "True"))}, [("rows_encoded_again", 6.0)]),
        ({"i": _op("rand", "", plain=("[16, 3, 96, 96]",))}, []),
        ({"l": _op("linear", "16,32,3,3", "32,3,3,3"), "h": _op("relu", "16,32,48,48")}, []),
    ],
    ids=["rows that stay", "dropout in evaluation", "what comes before a chance", "rows that are new",
         "weights that may be a copy of those that are trained"],
)  # fmt: skip
def test_layers_that_nothing_trains_over_rows_that_the_program_keeps(
    changed: dict[str, Sort], found: list[tuple[str, float]]
) -> None:
    assert _found(_FROZEN, **_FROZEN_SORTS | changed) == found


_UPDATE = """
    host main | M0-------------------------------
    host main | l2-B2------------O---------------
    host main |                  m-e-m-e-m-e-m-e-
"""


def _update(name: str, size: str) -> dict[str, Sort]:
    optimizer = Sort(K.ANNOTATION, f"Optimizer.step#{name}.step")
    return {"O": optimizer, "m": _op("mul_", size, ""), "e": _op("addcmul_", size, size, size), "l": _LINEAR}


def test_an_update_that_goes_over_parameters_several_times() -> None:
    updates = {key: _op(name, "900,900", "") for key, name in {"a": "lerp_", "s": "sqrt"}.items()}
    picture = _UPDATE.replace("m-e-m-e-m-e-m-e-", "m-e-a-s-m-e-a-s-")

    assert _found(picture, **_update("AdamW", "900,900"), **updates) == [("update_in_passes", 16.0)]
    assert _found(picture, **_update("AdamW", "30,30"), **{key: _op("sqrt", "30,30") for key in "as"}) == []
    assert _found(picture, **_update("Rprop", "900,900"), **updates) == []  # of which PyTorch has no fused form
