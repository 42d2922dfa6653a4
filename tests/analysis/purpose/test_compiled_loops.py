"""Loops inside compiled programs: whose rounds need each other, and whose do not."""

from __future__ import annotations

import pytest
from hlo_build import S32, Op, array, computation, f32, op, parameter, program, tuple_of
from xla_traces import Ran, trace_of
from xspace_build import number

from stepscope.analysis.purpose.compiled import compilers_moves
from stepscope.analysis.purpose.excess import excesses_of
from stepscope.analysis.purpose.loops import independent_rounds
from stepscope.model import HostTrace

US = 1_000_000
ROUNDS = 10
NUMBER, ROWS, STATE = array(S32), f32(64, 4), f32(4)
ALL = tuple_of(NUMBER, ROWS, ROWS, STATE)


def element(name: str, shape: bytes, of: str, place: int) -> Op:
    """An element of a tuple."""
    return op(name, "get-tuple-element", shape, of, extra=number(13, place))


def looping(*state: Op) -> bytes:
    """A program whose loop takes a row in each round, writes what it computes into the row's place, and hands on a
    state."""
    body = computation(
        "body",
        parameter("all", ALL),
        element("i", NUMBER, "all", 0),
        element("rows", ROWS, "all", 1),
        element("out", ROWS, "all", 2),
        element("state", STATE, "all", 3),
        op("none", "constant", NUMBER),
        op("next", "add", NUMBER, "i", "i"),
        op("row", "dynamic-slice", f32(1, 4), "rows", "i", "none"),
        op("value", "tanh", f32(1, 4), "row"),
        op("flat", "reshape", STATE, "value"),
        op("kept", "dynamic-update-slice", ROWS, "out", "value", "i", "none"),
        *state,
        op("given", "tuple", ALL, "next", "rows", "kept", state[-1].name if state else "state"),
    )
    condition = computation("condition", parameter("all_again", ALL), op("goes", "constant", array(1)))
    main = computation(
        "main",
        parameter("first", ALL),
        op("loop", "while", ALL, "first", calls=("condition", "body")),
        element("result", ROWS, "loop", 2),
    )
    return program(condition, body, main, name="jit_step")


def ran(made: bytes, us: int = 5) -> HostTrace:
    """Two steps of ten rounds."""
    events, at = [], 0
    for step in range(2):
        begin = at
        for _ in range(ROUNDS):
            for name in ("value", "kept"):
                events.append(Ran("python", name, at, us, {"hlo_op": name, "hlo_module": "jit_step", "program_id": 1}))
                at += us
        events.append(Ran("python", "train", begin, at - begin, {"step_num": step, "_r": 1}))
    return trace_of({"jit_step(1)": made}, events, device="cpu")


SUM = op("sum", "add", STATE, "state", "flat")
CHAIN = (op("mixed", "multiply", STATE, "state", "flat"),)
GROWS = (op("half", "multiply", STATE, "state", "flat"), op("grown", "add", STATE, "state", "half"))


def test_a_round_needs_the_one_before_where_a_loop_inside_it_changes_the_state() -> None:
    """What the inner loop gives has the place in its tuple that the state has in that of the outer one."""
    inner = op("inner", "while", ALL, "all", calls=("condition", "body"))

    assert independent_rounds(ran(looping(inner, element("changed", STATE, "inner", 3)))) is None


def test_rounds_that_choose_a_branch_are_no_rounds_to_compute_at_once() -> None:
    """All of them at once would run both branches: `lax.map` keeps a choice that `vmap` turns into a `select`."""
    chosen = op("chosen", "conditional", STATE, "i", "flat", "flat")

    assert independent_rounds(ran(looping(chosen, SUM))) is None


def test_rounds_that_do_not_need_each_other() -> None:
    found = independent_rounds(ran(looping()))

    assert found is not None
    assert (len(found.rows), found.rounds) == (4 * ROUNDS, ROUNDS)
    (excess,) = excesses_of(ran(looping()))
    assert (excess.kind, excess.ps / US / 2) == ("one_by_one", 100.0)
    assert excess.fact.startswith("goes through 10 rounds of a loop")


def test_a_sum_over_the_rounds_keeps_none_waiting() -> None:
    assert independent_rounds(ran(looping(SUM))) is not None


@pytest.mark.parametrize("state", [CHAIN, GROWS])
def test_rounds_that_need_the_state_of_the_one_before(state: tuple[Op, ...]) -> None:
    assert independent_rounds(ran(looping(*state))) is None


def test_rounds_of_long_ops_are_well_as_they_are() -> None:
    assert independent_rounds(ran(looping(), us=50)) is None


def test_what_a_loop_takes_and_keeps_for_a_round_is_the_compilers_to_move() -> None:
    trace = ran(looping(*CHAIN))

    assert {trace.name_of(row) for row in compilers_moves(trace).tolist()} == {"value", "kept"}
