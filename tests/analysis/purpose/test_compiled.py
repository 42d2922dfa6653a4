"""Work that compiled programs do without need, each beside a program that needs it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hlo_build import S32, Op, array, axes, computation, f32, fusion, metadata, op, parameter, program, tuple_of
from xla_traces import Ran, trace_of
from xspace_build import number, text

from stepscope.analysis.purpose.compiled import compiled_callback
from stepscope.analysis.purpose.excess import Excess, excesses_of
from stepscope.analysis.purpose.forward import recomputed_ops
from stepscope.analysis.purpose.pairs import pairs_of
from stepscope.analysis.purpose.purposes import purposes_of
from stepscope.model import HostTrace

US = 1_000_000
FORWARD, BACKWARD, UPDATE = (
    metadata(f"jit(step)/{path}", "train.py", 9) for path in ("jvp()/dot", "transpose(jvp())/dot", "sub")
)


def ints(*dims: int) -> bytes:
    return array(S32, *dims)


def found(programs: Mapping[str, tuple[bytes, Mapping[str, int]]]) -> tuple[Excess, ...]:
    """The excesses of two steps of some programs, given with the microseconds that their instructions take."""
    return excesses_of(two_steps(programs))


def two_steps(programs: Mapping[str, tuple[bytes, Mapping[str, int]]]) -> HostTrace:
    """Two marked steps in which each program runs once."""
    events, at = [], 0
    for step in range(2):
        begin = at
        for place, (name, (_, times)) in enumerate(programs.items(), start=1):
            for instruction, us in times.items():
                stats = {"hlo_op": instruction, "hlo_module": name, "program_id": place}
                events.append(Ran("python", instruction, at, us, stats))
                at += us
        events.append(Ran("python", "train", begin, at - begin, {"step_num": step, "_r": 1}))
    made = {f"{name}({number})": proto for number, (name, (proto, _)) in enumerate(programs.items(), start=1)}
    return trace_of(made, events, device="cpu")


def _of(programs: Mapping[str, tuple[bytes, Mapping[str, int]]]) -> list[tuple[str, float]]:
    return [(each.kind, each.ps / US / 2) for each in found(programs)]


# -- one-hot rows --------------------------------------------------------------------------------------------------


def one_hot(classes: int, left: Op) -> tuple[bytes, dict[str, int]]:
    """A product that takes rows which compare numbers with 0, 1, 2, ..."""
    rows = (8, classes)
    writes = computation(
        "writes",
        parameter("n", ints(8)),
        op("numbers", "broadcast", ints(*rows), "n"),
        left,
        op("same", "compare", array(1, *rows), "numbers", left.name),
        op("floats", "convert", f32(*rows), "same"),
    )
    main = computation(
        "main",
        parameter("labels", ints(8), 0),
        parameter("table", f32(classes, 4), 1),
        fusion("rows", f32(*rows), "labels", calls="writes"),
        op("dot.1", "dot", f32(8, 4), "rows", "table", extra=FORWARD),
        op("out", "negate", f32(8, 4), "dot.1"),
    )
    return program(writes, main, name="jit_step"), {"rows": 10, "dot.1": 60, "out": 30}


def test_a_product_with_one_hot_rows() -> None:
    (excess,) = found({"jit_step": one_hot(1000, op("counts", "iota", ints(8, 1000)))})

    assert (excess.kind, excess.ps / US / 2) == ("one_hot", 70.0)  # rows and dot.1
    assert "(8 numbers as 8 x 1,000)" in excess.fact


@pytest.mark.parametrize(
    "programs",
    [one_hot(16, op("counts", "iota", ints(8, 16))), one_hot(1000, op("others", "constant", ints(8, 1000)))],
    ids=["few classes", "a mask"],
)
def test_other_comparisons_are_no_one_hot_rows(programs: tuple[bytes, dict[str, int]]) -> None:
    assert _of({"jit_step": programs}) == []


# -- tables --------------------------------------------------------------------------------------------------------


def table(rows: int, *more: Op) -> tuple[bytes, dict[str, int]]:
    """The update of a table of which a step reads eight rows."""
    main = computation(
        "main",
        parameter("table", f32(rows, 4), 0),
        parameter("labels", ints(8, 1), 1),
        parameter("changes", f32(8, 4), 2),
        op("zero", "constant", f32()),
        op("zeros", "broadcast", f32(rows, 4), "zero"),
        op("scatter", "scatter", f32(rows, 4), "zeros", "labels", "changes", extra=BACKWARD),
        op("rest", "tanh", f32(8, 4), "changes"),
        *more,
        op("updated", "subtract", f32(rows, 4), "table", "scatter", extra=UPDATE),
    )
    return program(main, name="jit_step"), {"zeros": 20, "scatter": 5, "rest": 35, "updated": 40}


def test_a_table_of_which_few_rows_are_read() -> None:
    (excess,) = found({"jit_step": table(10_000)})

    assert (excess.kind, excess.ps / US / 2, excess.keeps) == ("whole_table", 65.0, 0.0008)
    assert "all 10,000 rows of a table (10,000 x 4), of which the step reads at most 8" in excess.fact


def test_tables_that_are_needed() -> None:
    output = op("logits", "dot", f32(8, 10_000), "changes", "table", extra=FORWARD)

    assert _of({"jit_step": table(100)}) == []  # a twelfth of the rows are read
    assert _of({"jit_step": table(10_000, output)}) == []  # the output of the model needs all of them


# -- gradients that nothing takes ----------------------------------------------------------------------------------


def signature(result: bytes, *taken: bytes) -> bytes:
    """The shapes that a program takes and gives."""
    return text(4, b"".join(text(1, each) for each in taken) + text(2, result))


ALL = tuple_of(f32(), f32(16, 16), f32(8, 4))
GRADIENTS = program(
    computation(
        "main",
        parameter("x", f32(8, 8), 0),
        op("body", "dot", f32(8, 16), "x", "x", extra=BACKWARD),
        op("inner", "dot", f32(16, 16), "body", "body", extra=BACKWARD),
        op("head", "dot", f32(8, 4), "x", "x", extra=BACKWARD),
        op("loss", "tanh", f32(), "x", extra=FORWARD),
        op("all", "tuple", ALL, "loss", "inner", "head"),
    ),
    name="jit_grads",
    schedule=signature(ALL, f32(8, 8)),
)


def with_update(*sizes: tuple[int, int]) -> dict[str, tuple[bytes, dict[str, int]]]:
    """The program that gives gradients, and one that takes parameters and gradients of some sizes."""
    taken = [f32(*size) for size in sizes for _ in ("parameter", "gradient")]
    ops = [parameter(f"p{at}", shape, at) for at, shape in enumerate(taken)]
    main = computation("main", *ops, op("new", "negate", taken[0], "p0"))
    update = program(main, name="jit_update", schedule=signature(taken[0], *taken))
    times = {"body": 30, "inner": 20, "head": 20, "loss": 20}
    return {"jit_grads": (GRADIENTS, times), "jit_update": (update, {"new": 10})}


def test_gradients_that_no_program_takes() -> None:
    (excess,) = found(with_update((8, 4)))

    assert (excess.kind, excess.ps / US / 2) == ("unused_gradients", 50.0)  # inner, and body that only it needs
    assert "1 gradients (f32[16,16])" in excess.fact


def test_gradients_that_all_are_taken_or_none() -> None:
    assert _of(with_update((8, 4), (16, 16))) == []
    assert _of(with_update((3, 3))) == []  # then the loop takes them itself


def test_an_update_that_gives_parameters_back_as_they_are_takes_no_gradients_of_them() -> None:
    """As of frozen parameters, which go through an update that adds zeros."""
    given = tuple_of(f32(8, 4), f32(16, 16))
    main = computation(
        "main",
        parameter("head", f32(8, 4), 0), parameter("slope", f32(8, 4), 1), parameter("inner", f32(16, 16), 2),
        op("new", "negate", f32(8, 4), "head"), op("all", "tuple", given, "new", "inner"),
    )  # fmt: skip
    update = program(main, name="jit_update", schedule=signature(given, f32(8, 4), f32(8, 4), f32(16, 16)))
    programs = with_update((8, 4)) | {"jit_update": (update, {"new": 10})}

    assert _of(programs) == [("unused_gradients", 50.0)]


# -- arguments that are copied -------------------------------------------------------------------------------------


def cache(copies: str) -> tuple[bytes, dict[str, int]]:
    """A program that writes one row of an argument."""
    first = op("whole", copies, f32(1000, 8), "cache")
    main = computation(
        "main",
        parameter("cache", f32(1000, 8), 0),
        parameter("row", f32(1, 8), 1),
        op("place", "constant", ints()),
        first,
        op("written", "dynamic-update-slice", f32(1000, 8), "whole", "row", "place", "place"),
    )
    return program(main, name="jit_step"), {"whole": 60, "written": 40}


def test_an_argument_that_is_copied_to_write_a_part_of_it() -> None:
    (excess,) = found({"jit_step": cache("copy")})

    assert (excess.kind, excess.ps / US / 2) == ("copied_arguments", 60.0)
    assert "(the largest has 0.0 MB)" in excess.fact
    assert _of({"jit_step": cache("negate")}) == []


def test_a_copy_that_was_asked_for_is_none() -> None:
    """As `jnp.array` of an array makes one: giving the array away would spare nothing."""
    main = computation("main", parameter("x", f32(1000, 8), 0), op("whole", "copy", f32(1000, 8), "x"))

    assert _of({"jit_copy": (program(main, name="jit_copy"), {"whole": 60})}) == []


# -- the model, run again for a value ------------------------------------------------------------------------------


def training(*more: Op) -> tuple[bytes, dict[str, int]]:
    """A forward and a backward product of weights and a batch, and what the loop is given."""
    main = computation(
        "main",
        parameter("w", f32(16, 4), 0),
        parameter("x", f32(8, 16), 1),
        op("out", "dot", f32(8, 4), "x", "w", extra=FORWARD),
        op("slope", "dot", f32(16, 4), "x", "out", extra=BACKWARD),
        *more,
        op("updated", "subtract", f32(16, 4), "w", "slope", extra=UPDATE),
    )
    schedule = signature(f32(16, 4), f32(16, 4), f32(8, 16))
    return program(main, name="jit_step", schedule=schedule), {"out": 20, "slope": 40, "updated": 10}


def value(batch: int, result: bytes) -> tuple[bytes, dict[str, int]]:
    """The forward product alone."""
    taken = f32(16, 4), f32(batch, 16)
    main = computation(
        "main",
        parameter("w", taken[0], 0),
        parameter("x", taken[1], 1),
        op("out", "dot", f32(batch, 4), "x", "w", extra=metadata("jit(loss)/dot", "train.py", 4)),
        op("mean", "tanh", result, "out"),
    )
    return program(main, name="jit_loss", schedule=signature(result, *taken)), {"out": 20, "mean": 10}


def test_a_model_that_runs_again_for_a_value() -> None:
    (excess,) = found({"jit_step": training(), "jit_loss": value(8, f32())})

    assert (excess.kind, excess.ps / US / 2) == ("measures", 30.0)
    assert excess.fact.startswith("runs the model again in jit_loss")


@pytest.mark.parametrize(("of_held", "expected"), [("held", [("measures", 60.0)]), ("out", [])])
def test_a_model_that_runs_inside_the_step_for_a_number_that_is_only_reported(
    of_held: str, expected: list[tuple[str, float]]
) -> None:
    """A validation in each step; a number made of the output that is trained on costs no product."""
    given = tuple_of(f32(16, 4), f32())
    main = computation(
        "main",
        parameter("w", f32(16, 4), 0), parameter("x", f32(8, 16), 1), parameter("held", f32(64, 16), 2),
        op("out", "dot", f32(8, 4), "x", "w", extra=FORWARD),
        op("slope", "dot", f32(16, 4), "x", "out", extra=BACKWARD),
        op("held_out", "dot", f32(64, 4), "held", "w", extra=metadata("jit(step)/dot", "train.py", 12)),
        op("error", "tanh", f32(), "held_out" if of_held == "held" else "out"),
        op("updated", "subtract", f32(16, 4), "w", "slope", extra=UPDATE),
        op("all", "tuple", given, "updated", "error"),
    )  # fmt: skip
    schedule = signature(given, f32(16, 4), f32(8, 16), f32(64, 16))
    times = {"out": 20, "slope": 40, "updated": 10, "held_out": 50, "error": 10}
    if of_held == "out":
        del times["held_out"]  # nothing takes it

    assert _of({"jit_step": (program(main, name="jit_step", schedule=schedule), times)}) == expected


@pytest.mark.parametrize(("inside", "expected"), [("mul", [("part_without_layers", 110.0)]), ("dot_general", [])])
def test_a_line_that_takes_most_of_the_step_and_multiplies_no_weight(
    inside: str, expected: list[tuple[str, float]]
) -> None:
    path = f"jvp()/{inside}"
    forward, backward = (metadata(f"jit(step)/{each}", "train.py", 20) for each in (path, f"transpose({path[:5]})/mul"))
    main = computation(
        "main",
        parameter("w", f32(16, 4), 0), parameter("x", f32(8, 16), 1),
        op("out", "dot", f32(8, 4), "x", "w", extra=FORWARD),
        op("wide", "dot" if inside != "mul" else "multiply", f32(8, 4), "out", "out", extra=forward),
        op("back", "multiply", f32(8, 4), "wide", "out", extra=backward),
        op("slope", "dot", f32(16, 4), "x", "back", extra=BACKWARD),
        op("updated", "subtract", f32(16, 4), "w", "slope", extra=UPDATE),
    )  # fmt: skip
    schedule = signature(f32(16, 4), f32(16, 4), f32(8, 16))
    times = {"out": 20, "wide": 50, "back": 60, "slope": 40, "updated": 10}

    assert _of({"jit_step": (program(main, name="jit_step", schedule=schedule), times)}) == expected


def test_attention_in_a_kernel_of_a_library_is_a_layer_and_a_loss_without_more_products_no_metric() -> None:
    """The last product is taken by the loss alone, a sum, and has a backward pass at its line."""
    given = tuple_of(f32(), f32(16, 4))
    forward, backward = (
        metadata(f"jit(step)/{path}/te_fused_attn_{way}_ffi", "train.py", 20)
        for path, way in (("jvp()", "forward"), ("transpose(jvp())", "backward"))
    )
    main = computation(
        "main",
        parameter("w", f32(16, 4), 0), parameter("x", f32(8, 16), 1),
        op("attention", "custom-call", f32(8, 16), "x", extra=forward),
        op("out", "dot", f32(8, 4), "attention", "w", extra=FORWARD),
        op("loss", "reduce", f32(), "out"),
        op("back", "custom-call", f32(8, 16), "x", extra=backward),
        op("slope", "dot", f32(16, 4), "back", "x", extra=BACKWARD),
        op("all", "tuple", given, "loss", "slope"),
    )  # fmt: skip
    schedule = signature(given, f32(16, 4), f32(8, 16))
    times = {"attention": 50, "out": 20, "loss": 5, "back": 90, "slope": 20}

    assert _of({"jit_step": (program(main, name="jit_step", schedule=schedule), times)}) == []


def test_gradients_of_one_forward_pass_in_several_programs() -> None:
    """As of one program for each argument: all but the longest could leave their forward pass to that."""
    longer = training(op("more", "negate", f32(16, 4), "slope", extra=BACKWARD))
    (excess,) = found({"jit_first": training(), "jit_second": (longer[0], longer[1] | {"more": 30})})

    assert (excess.kind, excess.ps / US / 2) == ("repeated_backward", 30.0)
    assert excess.fact.startswith("computes one forward pass in 2 programs")


def passes(*more: Op) -> tuple[bytes, dict[str, int]]:
    """A program with a forward product and its two gradients, and more."""
    x, w, out = f32(8, 16), f32(16, 4), f32(8, 4)
    main = computation(
        "main",
        parameter("w", w, 0),
        parameter("x", x, 1),
        op("out", "dot", out, "x", "w", extra=FORWARD),
        op("one", "tanh", out, "out", extra=BACKWARD),
        op("slope", "dot", w, "x", "one", extra=BACKWARD),
        op("before", "dot", x, "one", "w", extra=BACKWARD),
        op("two", "negate", out, "out", extra=BACKWARD),
        *more,
    )
    return program(main, name="jit_step"), {"out": 20, "slope": 20, "before": 20} | {each.name: 20 for each in more}


def test_backward_passes_of_one_forward_pass_in_one_program() -> None:
    slope = op("slope2", "dot", f32(16, 4), "x", "two", extra=BACKWARD)
    before = op("before2", "dot", f32(8, 16), "two", "w", extra=BACKWARD)

    (excess,) = found({"jit_step": passes(slope, before)})
    assert (excess.kind, excess.ps / US / 2, excess.keeps) == ("repeated_backward", 80.0, 0.5)
    assert excess.fact.startswith("has 2 backward passes for 1 products of one forward pass, as that at train.py:9")
    assert _of({"jit_step": passes()}) == []
    assert _of({"jit_step": passes(before)}) == []  # another loss that only passes through, as a generator's


PRIMAL, TANGENTS, TAKES = (
    metadata(f"jit(step)/jvp({path})/dot_general", "train.py", line)
    for path, line in (("vmap()", 9), ("vmap(vmap(jvp()))", 9), ("vmap()", 12))
)


def jacobian(directions: int, taken: int, flat: int = 3) -> tuple[bytes, dict[str, int]]:
    """A layer of 4 sides for 8 points, its slopes in some directions at each, and what is summed up of these; the
    program is given a vector, too."""
    slopes, result = f32(8 * directions, 16), f32(8, taken)
    main = computation(
        "main",
        parameter("x", f32(8, 4), 0),
        parameter("w", f32(4, 16), 1),
        parameter("flat", f32(flat), 2),
        op("out", "dot", f32(8, 16), "x", "w", extra=PRIMAL),
        op("slopes", "dot", slopes, "x", "w", extra=TANGENTS),
        op("sum", "reduce", result, "slopes", "x", extra=TAKES),
    )
    schedule = signature(result, f32(8, 4), f32(4, 16), f32(flat))
    return program(main, name="jit_step", schedule=schedule), {"out": 10, "slopes": 40, "sum": 5}


def test_a_jacobian_of_which_a_product_is_taken() -> None:
    (excess,) = found({"jit_step": jacobian(directions=4, taken=16)})

    assert (excess.kind, excess.ps / US / 2, excess.keeps) == ("jacobian", 40.0, 1 / 4)
    assert _of({"jit_step": jacobian(directions=4, taken=64)}) == []  # all of it goes on
    assert _of({"jit_step": jacobian(directions=5, taken=16)}) == []  # not as many directions as x has sides
    assert _of({"jit_step": jacobian(directions=5, taken=16, flat=5)}) == [("jacobian", 40.0)]  # of all parameters


@pytest.mark.parametrize(("given", "takes_given"), [("labels", True), ("params", False), ("out", False)])
def test_a_call_of_python_that_takes_what_the_program_is_given(given: str, takes_given: bool) -> None:
    """The program gives `params` back, and `out` is computed of them."""
    main = computation(
        "main",
        parameter("params", f32(4, 16), 0),
        parameter("labels", f32(8, 2), 1),
        op("out", "dot", f32(8, 16), "labels", "params", extra=FORWARD),
        op("call", "custom-call", f32(8), given, extra=metadata("jit(step)/jvp()/pure_callback", "train.py", 7)),
        op("all", "tuple", tuple_of(f32(4, 16), f32(8)), "params", "call"),
    )
    schedule = signature(tuple_of(f32(4, 16), f32(8)), f32(4, 16), f32(8, 2))
    trace = two_steps({"jit_step": (program(main, name="jit_step", schedule=schedule), {"out": 5, "call": 50})})

    assert compiled_callback(trace) == ("train.py:7", takes_given)


def thin(rows: int, *, is_sum: bool = True, inner: int = 8) -> tuple[bytes, dict[str, int]]:
    """A product of two thin matrices, which is scaled, added to a weight, and multiplied with some rows."""
    wide = f32(600, 400)
    main = computation(
        "main",
        parameter("up", f32(600, inner), 0),
        parameter("down", f32(inner, 400), 1),
        parameter("w", wide, 2),
        parameter("x", f32(rows, 600), 3),
        op("made", "dot", wide, "up", "down", extra=FORWARD),
        op("half", "constant", f32()),
        op("halves", "broadcast", wide, "half"),
        op("scaled", "multiply", wide, "made", "halves"),
        op("weight", "add", wide, "w", "scaled"),
        op("out", "dot", f32(rows, 400), "x", "weight" if is_sum else "scaled", extra=FORWARD),
    )
    return program(main, name="jit_step"), {"made": 30, "weight": 10, "out": 20}


def test_thin_matrices_that_are_made_wide_for_a_few_rows() -> None:
    (excess,) = found({"jit_step": thin(32)})

    assert (excess.kind, excess.ps / US / 2, excess.is_part) == ("product_order", 40.0, True)
    assert excess.fact.startswith("multiplies [600,8] by [8,400], adds that to another matrix, then with 32 rows;")
    assert _of({"jit_step": thin(32, is_sum=False)}) == [("product_order", 50.0)]
    assert _of({"jit_step": thin(512)}) == []
    assert _of({"jit_step": thin(32, inner=300)}) == []  # no thin ones, as of activations


def test_another_batch_or_a_result_that_the_training_takes_is_none() -> None:
    assert _of({"jit_step": training(), "jit_loss": value(32, f32())}) == []
    assert _of({"jit_step": training(), "jit_loss": value(8, f32(8, 16))}) == []


# -- what is computed again ----------------------------------------------------------------------------------------


def test_activations_that_are_computed_again() -> None:
    again = metadata("jit(step)/transpose(jvp())/checkpoint/rematted_computation/dot")
    main = computation(
        "main",
        parameter("x", f32(8, 8), 0),
        op("first", "dot", f32(8, 8), "x", "x", extra=FORWARD),
        op("again", "dot", f32(8, 8), "x", "x", extra=again),
        op("back", "dot", f32(8, 8), "again", "x", extra=BACKWARD),
    )
    trace = two_steps({"jit_step": (program(main, name="jit_step"), {"first": 10, "again": 20, "back": 30})})

    assert [trace.name_of(row) for row in recomputed_ops(trace).tolist()] == ["again"] * 2
    assert {name: ps / US for name, ps in purposes_of(trace).items()} == {
        "forward": 10, "recomputing": 20, "backward": 30,
    }  # fmt: skip


# -- arrays of all pairs -------------------------------------------------------------------------------------------


def all_pairs(opcode: str, rows: int = 64, is_summed: bool = True, spread: bool = True, summed: int = 2) -> object:
    """Two arrays of (rows, 32), spread over each other in 30 us, and summed in 60; other work takes 10."""
    large, small = f32(rows, rows, 32), f32(rows, 32)
    main = computation(
        "main",
        parameter("x", small, 0),
        parameter("y", small if spread else large, 1),
        op("one", "broadcast", large, "x", extra=axes(0, 2)),
        op("other", "broadcast" if spread else "negate", large, "y", extra=axes(1, 2)),
        op("all", opcode, large, "one", "other"),
        op("sums", "reduce" if is_summed else "slice", f32(rows, rows), "all", extra=axes(summed)),
        op("out", "negate", f32(rows, rows), "sums"),
    )
    trace = two_steps({"jit_step": (program(main, name="jit_step"), {"all": 30, "sums": 60, "out": 10})})
    found = pairs_of(trace)
    return found and (found.shape, found.of, found.is_difference, {trace.name_of(row) for row in found.rows.tolist()})


def test_differences_of_all_pairs_that_are_summed():
    assert all_pairs("subtract") == ("f32[64,64,32]", ("f32[64,32]", "f32[64,32]"), True, {"all", "sums"})


def test_products_of_all_pairs_that_are_summed():
    assert all_pairs("multiply") == ("f32[64,64,32]", ("f32[64,32]", "f32[64,32]"), False, {"all", "sums"})


@pytest.mark.parametrize(
    "healthy",
    [{"is_summed": False}, {"spread": False}, {"rows": 8}, {"summed": 0}],
    ids=["not summed", "a mean taken off", "few rows", "a weight for each row"],
)
def test_these_are_no_pairs_that_a_product_saves(healthy: dict[str, int]):
    assert all_pairs("subtract", **healthy) is None


def test_the_outer_product_of_a_gradient_is_no_array_of_pairs():
    main = computation(
        "main",
        parameter("x", f32(768), 0),
        parameter("w", f32(640), 1),
        op("one", "broadcast", f32(768, 640), "x", extra=axes(0)),
        op("other", "broadcast", f32(768, 640), "w", extra=axes(1)),
        op("outer", "multiply", f32(768, 640), "one", "other"),
        op("bias", "reduce", f32(640), "outer", extra=axes(0)),
    )

    assert pairs_of(two_steps({"jit_step": (program(main, name="jit_step"), {"outer": 60, "bias": 40})})) is None


def frames(*calls: tuple[str, int]) -> bytes:
    """A table of stack frames of `train.py`, each called by the one before; their numbers start at 1."""
    found = text(1, "train.py")
    for place, (function, line) in enumerate(calls, start=1):
        found += text(2, function) + text(3, number(1, 1) + number(2, place) + number(3, line))
        found += text(4, number(1, place) + number(2, place - 1))
    return text(17, found)


@pytest.mark.parametrize(("choice", "expected"), [("vmap()/select_n", 60.0), ("vmap(jit(_where))/select_n", None)])
def test_branches_that_a_batch_computes_both(choice: str, expected: float | None) -> None:
    """`lax.cond(done, reset, keep)` in line 5, whose branch `reset` computes in line 9."""

    def at(name: str, frame: int) -> bytes:
        return text(7, text(2, f"jit(step)/{name}") + number(15, frame))

    main = computation(
        "main",
        parameter("x", f32(8, 16), 0), parameter("done", f32(8), 1),
        op("made", "tanh", f32(8, 16), "x", extra=at("vmap()/tanh", 2)),
        op("chosen", "select", f32(8, 16), "done", "made", "x", extra=at(choice, 1)),
        op("rest", "negate", f32(8, 16), "chosen"),
    )  # fmt: skip
    proto = program(main, name="jit_step", schedule=frames(("step", 5), ("reset", 9)))
    excesses = found({"jit_step": (proto, {"made": 60, "chosen": 5, "rest": 20})})

    assert [(each.kind, each.ps / US / 2) for each in excesses] == ([("both_branches", expected)] if expected else [])
    assert all(each.asked_by == "$train.py:5 step" for each in excesses)
