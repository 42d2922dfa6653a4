"""The step that stands for the others: stalls that do not recur stand apart."""

from __future__ import annotations

import pytest

from stepscope.analysis.account.account import account_of
from stepscope.model import EventKind, Trait
from tests.helpers.draw import Sort, draw

_START_UP = "M0" + "-" * 400
_COMPILES = "M0" + "-" * 120
_USUAL, _PYTHON_STALL, _LONG_OPS = "M0-------", "M0" + "-" * 60, "M0" + "-" * 70


def _loop(kinds: str) -> str:
    """Steps in a row: `u` a usual one, `s` one that starts things up, `p` one that stalls in Python, `o` one
    whose ops take long, `l` one that is a little longer."""
    marks, ops = "", ""
    for each in kinds:
        mark = {"u": _USUAL, "s": _START_UP, "p": _PYTHON_STALL, "o": _LONG_OPS, "l": "M0" + "-" * 13}[each]
        marks += mark
        ops += ("a" + "-" * (5 if each != "o" else 66)).ljust(len(mark))
    return f"host main | {marks}\nhost main | {ops}"


@pytest.mark.parametrize("kinds", ["uupuouuuuu", "puuuuuuuuo", "uuuuuuuupu", "suuuupuuuup", "uuuluuluus"])
def test_an_account_is_of_a_usual_step_whatever_stalls(kinds: str) -> None:
    account = account_of(draw(_loop(kinds)))

    assert account is not None
    assert account.is_median
    assert account.step_ps == 9 * 10**9
    assert account.rows[0].cause == "host_compute"


def test_long_steps_that_recur_and_take_most_of_the_time_are_accounted_for() -> None:
    account = account_of(draw(_loop("upupupupup")[: 10**6]))

    assert account is not None
    assert account.step_ps == 62 * 10**9


@pytest.mark.parametrize(("second", "cause"), [("T", "compile"), ("E", "host_compute")], ids=["again", "another"])
def test_two_long_steps_are_accounted_for_if_they_trace_the_same_function(second: str, cause: str) -> None:
    traced, marks, ops, builds = {"tf_function_call": "traced-nonXla"}, "", "", ""
    for letter in ("", "", "T", "", "", "", second, "", "", ""):
        step = _PYTHON_STALL if letter else _USUAL
        marks += step
        ops += (f"{letter}{'-' * 50}a-----" if letter else "a-----").ljust(len(step))
        builds += (f"B{'-' * 49}" if letter else "").ljust(len(step))
    names = {"T": "train_step", "E": "evaluate"}
    sorts = {each: Sort(EventKind.TRACED_FUNCTION, name, stats=traced) for each, name in names.items()}
    sorts["B"] = Sort(EventKind.COMPILE, "tf.function-graph_building", traits=Trait.COMPILES)
    account = account_of(draw(f"host main | {marks}\nhost main | {ops}\nhost main | {builds}", sorts))

    assert account is not None
    assert account.is_median == (cause != "compile")
    assert account.rows[0].cause == cause


@pytest.mark.parametrize(("called", "cause"), [("FF", "compile"), ("EE", "host_compute")], ids=["before", "another"])
def test_one_long_step_is_accounted_for_if_it_compiles_what_ran_before(called: str, cause: str) -> None:
    marks, ops, builds = "", "", ""
    for letter in f"{called}T" + " " * 7:
        step = _COMPILES if letter == "T" else _USUAL
        marks += step
        usual = f"{letter}-a----" if letter.strip() else "  a----"
        ops += (f"F{'-' * 110}a-----" if letter == "T" else usual).ljust(len(step))
        builds += (f" B{'-' * 108}" if letter == "T" else "").ljust(len(step))
    sorts = {
        "F": Sort(EventKind.TRACED_FUNCTION, "PjitFunction(train_step)"),
        "E": Sort(EventKind.TRACED_FUNCTION, "PjitFunction(evaluate)"),
        "B": Sort(EventKind.COMPILE, "CpuCompiler::RunBackend", stats={"name": "jit_train_step"}),
    }
    account = account_of(draw(f"host main | {marks}\nhost main | {ops}\nhost main | {builds}", sorts))

    assert account is not None
    assert account.is_median == (cause != "compile")
    assert account.rows[0].cause == cause
