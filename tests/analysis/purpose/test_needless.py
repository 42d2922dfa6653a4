"""What programs compute for nothing: times zero, the same in every step, rounds that only their limit ends."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hlo_build import S32, Op, array, computation, f32, fusion, metadata, op, parameter, program, tuple_of
from xla_traces import Ran, trace_of
from xspace_build import number, text, varint

from stepscope.analysis.purpose import needless
from stepscope.analysis.purpose.excess import excesses_of
from stepscope.model import HostTrace

US = 1_000_000
WEIGHT = f32(8, 8)


def literal(payload: bytes, field: int = 8) -> bytes:
    """The numbers of a constant."""
    return text(8, text(field, payload))


def traced(proto: bytes, times: dict[str, int], rounds: int = 1, within: tuple[str, ...] = (),
           facts: Mapping[str, str] | None = None) -> HostTrace:  # fmt: skip
    """Two marked steps of a program, with the microseconds that instructions take, in a loop in each round."""
    events, at = [], 0
    for step in range(2):
        begin = at
        ran = [each for each in times if each not in within] + [each for _ in range(rounds) for each in within]
        for name in ran:
            stats = {"hlo_op": name, "hlo_module": "jit_step", "program_id": 1}
            events.append(Ran("python", name, at, times[name], stats))
            at += times[name]
        events.append(Ran("python", "train", begin, at - begin, {"step_num": step, "_r": 1}))
    return trace_of({"jit_step(1)": proto}, events, device="cpu", captured=facts)


def shown(trace: HostTrace) -> list[tuple[str, float, str]]:
    return [(each.kind, each.ps / US / 2, each.asked_by) for each in excesses_of(trace)]


@pytest.mark.parametrize(("factor", "expected"), [
    (b"\0\0\0\0", [("times_zero", 50.0, "$train.py:9")]),
    (b"\0\0\x80\x3f", []),
    (b"", []),
])  # fmt: skip
def test_a_gradient_that_only_a_product_with_zero_takes(factor: bytes, expected: list[tuple[str, float, str]]) -> None:
    """The product lies in the fusion that updates the parameter, and that is needed."""
    updates = computation(
        "updates",
        parameter("old", WEIGHT), parameter("slope", WEIGHT, 1),
        op("mask", "constant", f32(), extra=literal(factor) if factor else b""),
        op("masks", "broadcast", WEIGHT, "mask"),
        op("masked", "multiply", WEIGHT, "slope", "masks", extra=metadata("jit(step)/mul", "train.py", 9)),
        op("new", "subtract", WEIGHT, "old", "masked"),
    )  # fmt: skip
    main = computation(
        "main",
        parameter("w", WEIGHT), parameter("x", WEIGHT, 1),
        op("dot.1", "dot", WEIGHT, "x", "x", extra=metadata("jit(step)/transpose(jvp())/dot", "train.py", 5)),
        fusion("update", WEIGHT, "w", "dot.1", calls="updates"),
    )  # fmt: skip
    proto = program(updates, main, name="jit_step")

    assert [each for each in shown(traced(proto, {"dot.1": 50, "update": 20})) if each[0] == "times_zero"] == expected


def test_a_gradient_that_something_else_takes_too_is_needed() -> None:
    main = computation(
        "main",
        parameter("w", WEIGHT),
        op("dot.1", "dot", WEIGHT, "w", "w"),
        op("mask", "constant", f32(), extra=literal(b"\0\0\0\0")),
        op("masks", "broadcast", WEIGHT, "mask"),
        op("masked", "multiply", WEIGHT, "dot.1", "masks"),
        op("both", "tuple", tuple_of(WEIGHT, WEIGHT), "masked", "dot.1"),
    )
    found = needless.multiplied_by_zero(traced(program(main, name="jit_step"), {"dot.1": 50, "masked": 5}))

    assert found is not None
    assert len(found.work.rows) == 2  # the product alone, in two steps


TABLE = f32(16, 4)


def of_constants(*makes: Op) -> bytes:
    main = computation(
        "main",
        parameter("x", f32(8, 16)),
        op("counts", "iota", TABLE),
        *makes,
        op("dot.1", "dot", f32(8, 4), "x", makes[-1].name),
    )
    return program(main, name="jit_step")


SINE = op("sine", "sine", TABLE, "counts")
CHANCE = op("sine", "rng", TABLE, "counts", "counts")
OF_BATCH = op("sine", "dot", TABLE, "x", "counts")


@pytest.mark.parametrize(("makes", "expected"), [(SINE, 30.0), (CHANCE, None), (OF_BATCH, None)])
def test_what_is_made_of_constants_alone_is_the_same_in_every_step(makes: Op, expected: float | None) -> None:
    found = [
        each for each in shown(traced(of_constants(makes), {"sine": 30, "dot.1": 70})) if each[0] == "constant_work"
    ]

    assert [each[1] for each in found] == ([expected] if expected else [])


def test_a_program_without_an_argument_runs_for_something_else() -> None:
    main = computation("main", op("counts", "iota", TABLE), SINE)

    assert needless.same_in_every_step(traced(program(main, name="jit_step"), {"sine": 30})) is None


NUMBER = array(S32)
CARRIED = tuple_of(NUMBER, WEIGHT)


def element(name: str, shape: bytes, of: str, place: int) -> Op:
    return op(name, "get-tuple-element", shape, of, extra=number(13, place))


def to_a_limit(condition: str) -> bytes:
    """A loop of at most 6 rounds, that ends before where an error is small."""
    asks = computation(
        "asks",
        parameter("state", CARRIED),
        element("i", NUMBER, "state", 0),
        element("z", WEIGHT, "state", 1),
        op("most", "constant", NUMBER, extra=literal(varint(6), 4)),
        op("few", "compare", array(1), "i", "most"),
        op("error", "reduce", f32(), "z"),
        op("small", "constant", f32(), extra=literal(b"\1\0\0\0")),
        op("far", "compare", array(1), "error", "small"),
        op("goes", "and", array(1), "far", "few"),
        op("open", "constant", array(1)),
        op("flagged", "and", array(1), "open", "few"),
        op("goes_on", "copy", array(1), condition),
    )
    body = computation(
        "body",
        parameter("given", CARRIED),
        element("count", NUMBER, "given", 0),
        element("value", WEIGHT, "given", 1),
        op("dot.1", "dot", WEIGHT, "value", "value"),
        op("after", "tuple", CARRIED, "count", "dot.1"),
    )
    main = computation(
        "main",
        parameter("first", CARRIED),
        op("loop", "while", CARRIED, "first", calls=("asks", "body"), extra=metadata("while", "train.py", 7)),
        element("result", WEIGHT, "loop", 1),
        op("end", "negate", WEIGHT, "result"),
    )
    return program(asks, body, main, name="jit_step")


@pytest.mark.parametrize(("condition", "rounds", "expected"), [
    ("goes", 6, [("loop_limit", 60.0)]),
    ("goes", 5, []),  # the error ended it
    ("few", 6, []),  # nothing else could
    ("flagged", 6, []),  # a text that goes on
])  # fmt: skip
def test_a_loop_that_only_its_limit_ends(condition: str, rounds: int, expected: list[tuple[str, float]]) -> None:
    trace = traced(to_a_limit(condition), {"dot.1": 10, "end": 9}, rounds, within=("dot.1",))

    assert [each[:2] for each in shown(trace) if each[0] == "loop_limit"] == expected


ONCE, SPREAD = f32(4, 8), f32(4, 3, 8)


def repeated(rows: Op, weight: Op) -> bytes:
    main = computation(
        "main",
        parameter("x", ONCE), parameter("w", WEIGHT, 1), parameter("ws", f32(12, 8, 8), 2),
        rows,
        op("flat", "reshape", f32(12, 8), rows.name),
        weight,
        op("high", "tanh", f32(12, 8), "dot.1"),
        op("dot.2", "dot", f32(12, 8), "high", "w", extra=metadata("jit(step)/jvp()/dot", "train.py", 6)),
    )  # fmt: skip
    return program(main, name="jit_step")


BY_WEIGHT = op("dot.1", "dot", f32(12, 8), "flat", "w", extra=metadata("jit(step)/jvp()/dot", "train.py", 5))


@pytest.mark.parametrize(("rows", "weight", "expected"), [
    (op("many", "broadcast", SPREAD, "x", extra=number(14, 0) + number(14, 2)), BY_WEIGHT, [("repeated_rows", 80.0)]),
    (op("many", "broadcast", SPREAD, "x", extra=number(14, 0) + number(14, 2)),
     op("dot.1", "dot", f32(12, 8), "flat", "ws"), []),  # each row has weights of its own
    (op("many", "tanh", f32(12, 8), "x"), BY_WEIGHT, []),
])  # fmt: skip
def test_products_of_weights_with_rows_that_were_repeated(rows: Op, weight: Op, expected: list) -> None:
    trace = traced(repeated(rows, weight), {"many": 2, "dot.1": 40, "high": 5, "dot.2": 40})

    assert [each[:2] for each in shown(trace) if each[0] == "repeated_rows"] == expected


def test_a_batch_of_tokens_that_is_filled_up_for_a_compiled_program() -> None:
    """What is of all tokens counts, and not what is of rows alone."""
    tokens = array(S32, 4, 40)
    main = computation(
        "main",
        parameter("tokens", tokens), parameter("w", f32(8, 16), 1),
        op("gather.1", "gather", f32(4, 40, 8), "w", "tokens"),
        op("dot.1", "dot", f32(160, 16), "gather.1", "w"),
        op("fold", "reduce", f32(4, 16), "dot.1"),
        op("dot.3", "dot", f32(4, 16), "fold", "w"),
    )  # fmt: skip
    times = {"gather.1": 10, "dot.1": 50, "fold": 5, "dot.3": 40}
    trace = traced(program(main, name="jit_step"), times, facts={"padded:0": "4,40\t10\t6"})

    assert shown(trace) == [("padding", 65.0, "")]
