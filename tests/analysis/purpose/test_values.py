"""What a step computes again from the same tensors, where a recording tells which tensors its ops take."""

from __future__ import annotations

import pytest
from helpers.draw import MS, Sort, draw
from helpers.reporting import context_of

from stepscope.analysis.advice import advise
from stepscope.analysis.advice.rule import own_rules
from stepscope.analysis.purpose.computing import computing_of
from stepscope.analysis.purpose.excess import excesses_of
from stepscope.analysis.purpose.tensors import feeds_training, rows_that_generate
from stepscope.analysis.purpose.values import takes_what_steps_write
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


def test_nothing_is_said_of_compiled_code_which_writes_without_ops() -> None:
    compiled = Sort(K.ANNOTATION, "Torch-Compiled Region: 0/0")

    assert "equal_work" not in _again(_ROUNDS + "    host side | C-----", C=compiled, **_SORTS)


def test_other_threads_have_tensors_of_their_own() -> None:
    picture = """
        host main | M0---------------
        host main | a-i--h-
        host side |         a-i--h-
    """

    assert "equal_work" not in _again(picture, **_SORTS)


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


def test_what_is_computed_of_another_part_in_each_step_changes() -> None:
    picture = """
        host main | M0------M1------M2------M3------
        host main | a-x---  b-x---  c-x---  d-x---
    """
    parts = {name: _op("slice", "c7.7", "900,4", plain=f'["0","{at}"]') for at, name in enumerate("abcd")}

    assert _again(picture, x=_op("bincount", "t1.7", "9,4"), **parts) == {}
    same = dict.fromkeys("abcd", parts["a"])
    assert _again(picture, x=_op("bincount", "t1.7", "9,4"), **same) == {"constant_work": 24.0}


def test_a_metric_of_what_is_trained_on_needs_no_pass_of_its_own() -> None:
    """The same weights and the same batch: the second pass has no backward pass."""
    first = _op("linear", "t2.2 w1.1", "64,64", "64,64")
    trained = Sort(K.OP, first.name, "Sequence number", first.stats)
    picture = """
        host main | M0--------------------------
        host main | d-f1----e-l----e-B1----U----
        host main |                        u--
    """
    sorts = {
        "d": _op("randn", "", "", plain='["[64, 64]"]'), "f": trained, "l": first, "e": _op("sum", "t3.3", "64,64"),
        "B": Sort(K.BACKWARD, "autograd::engine::evaluate_function: MmBackward0", "Sequence number"),
    }  # fmt: skip

    assert _again(picture, **sorts)["equal_work"] == 7.0  # and the sum of it


def test_what_samples_the_model_is_no_metric() -> None:
    """Its result flows into what is trained, so that it is neither left out nor prepared ahead."""
    made = _op("linear", "c2.2 w1.1", "64,64", "64,64")
    trains = _op("linear", "t3.3 w1.1", "64,64", "64,64")
    picture = """
        host main | M0-------------------
        host main | g----f1----B1----U---
        host main |                  u--
    """
    trace = draw(picture, {
        "g": made, "f": Sort(K.OP, trains.name, "Sequence number", trains.stats), "U": _UPDATE, "u": _ADDS,
        "B": Sort(K.BACKWARD, "autograd::engine::evaluate_function: MmBackward0", "Sequence number"),
    })  # fmt: skip

    work, feeds = computing_of(trace), feeds_training(trace)
    assert feeds is not None
    assert [trace.name_of(row) for row in work.rows[feeds]] == ["aten::linear"] and feeds.sum() == 1
    assert takes_what_steps_write(trace).tolist() == [True, True, True]  # both products, and the update itself


def test_positions_that_are_computed_again_for_each_next_one() -> None:
    def gru(tensor: int, number: int) -> Sort:
        return _op("gru", f"t{tensor}.{tensor} c1.1", f"4,{number},8", "24,8")

    picture = "host main | M0---------------------------------\nhost main | a-b-c-d-e-f-g-h-----"

    grown = {letter: gru(number, number) for number, letter in enumerate("abcdefgh", start=2)}
    assert _again(picture, **grown) == {"grown_prefix": 20.0}
    assert _again(picture, **{letter: gru(number, 5) for number, letter in enumerate("abcdefgh", start=2)}) == {}

    # In each of two layers, and once more over all positions by what trains on the sequence.
    def second(number: int) -> Sort:
        return _op("gru", f"t{number + 20}.1 c2.2", f"4,{number},8", "24,8")

    picture = "host main | M0---------------------------------\nhost main | aAbBcCdDeEfFgGhHy--------"
    upper = {letter: second(number) for number, letter in enumerate("ABCDEFGH", start=2)}
    layers = grown | upper | {"y": _op("gru", "t50.1 c1.1", "4,9,8", "24,8")}
    assert _again(picture, **layers) == {"grown_prefix": 16.0}

    # Where nothing is trained, a round may be a step.
    picture = "host main | M0-M1-M2-M3-M4-M5-M6-M7-\nhost main | a--b--c--d--e--f--g--h--"
    grown = {letter: gru(number, number) for number, letter in enumerate("abcdefgh", start=2)}
    assert _again(picture, **grown) == {"grown_prefix": 24.0}


def test_layers_over_positions_as_rows_and_what_lies_between_them_compute_positions_again() -> None:
    """As `Conv1D` of transformers does, which views a batch of sequences as rows; the next request has another
    length."""

    def op(name: str, *sizes: str) -> Sort:
        return Sort(K.OP, f"aten::{name}", "", {"Input Dims": "[" + ",".join(f"[{each}]" for each in sizes) + "]"})

    sorts = {}
    for length, letters in enumerate(zip("abcdefghi", "jklnopqrs", "ABCDEFGHI", strict=True), start=5):
        view, product, activation = letters
        sorts[view] = op("view", f"1,{length},8", "")
        sorts[product] = op("addmm", "24", f"{length},8", "8,24")
        sorts[activation] = op("gelu", f"1,{length},24")
    picture = """
        host main | M0---------------------------------------M1---------------------------------------
        host main | ajAajbkBbkclCcldnDdneoEeofpFfpgqGgqhrHhr bkBbkclCcldnDdneoEeofpFfpgqGgqhrHhrisIis
    """

    (found,) = excesses_of(draw(picture, sorts))

    # of each round all but the first view
    assert (found.kind, found.ps / MS, found.keeps) == ("grown_prefix", 64.0, (12 + 13) / (68 + 76))
    assert found.fact == (
        "computes positions again: its layers run over 6, 7, ... 13 positions from the first one on, 76 instead of 13,"
        " and so for other sequences"
    )
    flat = {letter: op("gelu", "1,5,8") for letter in "abcdefghi"}
    assert _again(picture, **sorts | flat) == {}  # rows that nothing shows to be positions


def test_what_makes_a_sequence_position_by_position_samples_the_model() -> None:
    joins = {letter: _op("cat", "", f"4,{number}", "4,1") for number, letter in enumerate("abcdefgh", start=2)}
    trace = draw(
        "host main | M0-------------------\nhost main | lalblcldlelflglhl",
        {**joins, "l": _op("linear", "", "4,8", "8,8")},
    )

    starts_ms = [trace.events.start_ps[row] // MS for row in rows_that_generate(trace)]
    assert starts_ms == list(range(1, 15))  # from the first join to before the last one


def test_the_first_thing_to_do_names_the_op() -> None:
    (first, *_) = advise(context_of(draw(_ROUNDS, {"U": _UPDATE, "u": _ADDS, **_SORTS})), rules=own_rules()).items

    assert first.id == "compute.equal-work"
    assert first.actions[0].startswith("compute `matrix_exp` and what it is made of once per step, before the loop")
