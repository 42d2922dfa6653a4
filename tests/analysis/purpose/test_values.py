"""What a step computes again from the same tensors, where a recording tells which tensors its ops take."""

from __future__ import annotations

import pytest
from helpers.draw import MS, Sort, draw

from stepscope.analysis.purpose.excess import excesses_of
from stepscope.model import EventKind

K = EventKind


def _op(name: str, tensors: str, *sizes: str, plain: str = "") -> Sort:
    known = {"Input Dims": "[" + ",".join(f"[{each}]" for each in sizes) + "]", "Input tensors": tensors}
    return Sort(K.OP, f"aten::{name}", "", known | ({"Concrete Inputs": plain} if plain else {}))


_UPDATE = Sort(K.ANNOTATION, "Optimizer.step#SGD.step")
_ADDS = _op("add_", "w1.1 t9.9", "64,64", "64,64")


def _again(picture: str, **sorts: Sort) -> dict[str, float]:
    """What is computed for nothing, in ms."""
    trace = draw(picture, {"U": _UPDATE, "u": _ADDS, **sorts})
    return {each.kind: each.ps / MS for each in excesses_of(trace)}


_ROUNDS = """
    host main | M0-----------------------------
    host main | a-i----h-l-a-i----h-l-U-------
    host main |                       u----
"""
_SORTS = {
    "a": _op("tril", "w1.1", "64,64", ""),
    "i": _op("matrix_exp", "t2.2", "64,64"),
    "h": _op("linear", "t4.4 t3.3", "8,64", "64,64", ""),
    "l": _op("relu", "t5.5", "8,64"),
}


def test_a_chain_from_a_weight_that_nothing_writes_runs_again() -> None:
    # the second tril and matrix_exp; the product takes another state each time
    assert _again(_ROUNDS, **_SORTS) == {"equal_work": 7.0}


def test_it_is_told_what_runs_again_and_how_often() -> None:
    (found,) = excesses_of(draw(_ROUNDS, {"U": _UPDATE, "u": _ADDS, **_SORTS}))

    assert found.fact == (
        "`matrix_exp` of [64,64] runs 2 times per step on equal tensors; 1 more op computes the same again"
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"a": _op("tril", "t1.1", "64,64", "")},
        {"a": _op("tril", "u1.1", "64,64", "")},
        {"a": _op("dropout", "w1.1", "64,64", "")},
        {"l": _ADDS},
    ],
    ids=[
        "an address that another tensor may have", "something writes it that no op shows", "another value each time",
        "an op writes it between",
    ],
)  # fmt: skip
def test_nothing_is_said_where_the_value_may_be_another(changed: dict[str, Sort]) -> None:
    assert "equal_work" not in _again(_ROUNDS, **_SORTS | changed)


def test_after_an_update_weights_are_others() -> None:
    picture = """
        host main | M0-----------------------------
        host main | a-i----h-U--l--a-i----h-------
        host main |          u-
    """

    assert _again(picture, **_SORTS) == {}


def test_of_two_results_none_is_said_to_be_taken() -> None:
    picture = """
        host main | M0-------------------------
        host main | a--b--i----a--b--i----h----
    """
    other = _op("triu", "c8.8", "64,64", "")

    assert _again(picture, **_SORTS, b=other)["equal_work"] == 6.0  # not matrix_exp


_STEPS = """
    host main | M0------M1------M2------M3------
    host main | a---l-- b---l-- c---l-- d---l--
"""


def _takes(text: str, plain: str = "") -> Sort:
    return _op("bincount", text, "900", plain=plain)


def test_what_is_the_same_in_all_steps() -> None:
    rest = _op("relu", "t5.5", "8,64")

    same = {name: _takes("c7.7") for name in "abcd"}
    assert _again(_STEPS, l=rest, **same) == {"constant_work": 16.0}
    # parts of a data set, one after another
    others = {name: _takes(f"c{number}.7") for number, name in enumerate("abcd")}
    assert _again(_STEPS, l=rest, **others) == {}
    numbers = {name: _takes("c7.7", f'["{number}"]') for number, name in enumerate("abcd")}
    assert _again(_STEPS, l=rest, **numbers) == {}
