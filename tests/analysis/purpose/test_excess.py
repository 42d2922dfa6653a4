"""Work that a step does not need: each kind on a small picture, beside the program that needs it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from helpers.draw import MS, Sort, draw

from stepscope.analysis.purpose.excess import Excess, excesses_of
from stepscope.analysis.purpose.forward import forward_only_of, recomputed_ops
from stepscope.analysis.purpose.sizes import computes_in_64_bits, sizes_of
from stepscope.model import EventKind

K = EventKind
_NODE = "autograd::engine::evaluate_function: "

AUTOGRAD = {
    "f": Sort(K.OP, "aten::addmm", "Sequence number"),
    "l": Sort(K.OP, "aten::nll_loss", "Sequence number"),
    "B": Sort(K.BACKWARD, f"{_NODE}AddmmBackward0", "Sequence number"),
    "m": Sort(K.OP, "aten::mm"),
    "n": Sort(K.OP, "aten::mm", "Sequence number"),
    "A": Sort(K.BACKWARD, f"{_NODE}torch::autograd::AccumulateGrad"),
    "g": Sort(K.OP, "torch::autograd::AccumulateGrad"),
    "p": Sort(K.OP, "aten::add_"),
    "c": Sort(K.OP, "aten::clone"),
    "o": Sort(K.OP, "aten::ones_like"),
    "q": Sort(K.OP, "aten::isnan"),
    "y": Sort(K.OP, "aten::_is_any_true"),
    "a": Sort(K.OP, "aten::argmax"),
    "e": Sort(K.OP, "aten::eq"),
    "h": Sort(K.OP, "aten::one_hot"),
    "t": Sort(K.OP, "aten::to"),
    "U": Sort(K.ANNOTATION, "Optimizer.step#SGD.step"),
    "V": Sort(K.ANNOTATION, "Optimizer.step#Adam.step"),
}


def excess_of(picture: str, sorts: Mapping[str, Sort] = AUTOGRAD) -> list[tuple[str, float]]:
    """The kinds of excess in a picture and their time in ms."""
    return [(each.kind, each.ps / MS) for each in _found(picture, sorts)]


def _found(picture: str, sorts: Mapping[str, Sort]) -> tuple[Excess, ...]:
    return excesses_of(draw(picture, sorts))


# -- how often gradients are computed ------------------------------------------------------------------------------


def test_a_second_backward_pass_over_the_same_ops_is_not_needed() -> None:
    picture = """
        host main | M0----------------------------------
        host main | f1---l2-l3-oB2-B1--A-o B3-B1--A-U-
        host main |                    g-         g-
    """

    assert excess_of(picture) == [("repeated_backward", 6.0)]  # the second B1, and what it adds


@pytest.mark.parametrize(
    "between",
    ["U-o", "c-o"],
    ids=[
        "an update between them, as with two optimizers",
        "gradients that are kept, as to compare those of two losses",
    ],
)
def test_backward_passes_whose_gradients_are_used_by_themselves_are_needed(between: str) -> None:
    picture = f"""
        host main | M0----------------------------------
        host main | f1---l2-l3-oB2-B1--A-{between} B3-B1--A-U-
        host main |                    g-           g-
    """

    assert excess_of(picture) == []


def test_a_gradient_of_a_gradient_needs_a_second_pass() -> None:
    picture = """
        host main | M0----------------------------------
        host main | f1---l2-l3-oB2-B1------A-o B3-B1--A-U-
        host main |                m------ g-         g-
        host main |                  n7-
    """

    assert excess_of(picture) == []


def test_gradients_that_are_taken_and_not_added_to_parameters_are_needed() -> None:
    picture = """
        host main | M0----------------------------------
        host main | f1---l2-l3-oB2-B1--o B3-B1--U-
    """

    assert excess_of(picture) == []


# -- whether gradients are used ------------------------------------------------------------------------------------

_STEPS = "M0-----------------M1-----------------M2-----------------"


def _in_each(step: str) -> str:
    return "".join(step.format(*range(9 * at, 9 * at + 9)).ljust(19) for at in range(3))


def test_gradients_that_nothing_resets_are_not_used() -> None:
    # The second parameter's gradient is added to what the step before left; the first begins anew.
    lines = [
        f"host main | {_STEPS}",
        f"host main | {_in_each('f1-f2-oB2-A-B1-A-U-')}",
        f"host main | {_in_each('          g-   g-  ')}",
        f"host main | {_in_each('               p   ')}",
    ]
    found = excess_of("\n".join(_numbered(lines)))

    assert found == [("unused_gradients", 2 * 5.0)]  # from the second step on: what came before the first is not known


def _numbered(lines: list[str]) -> list[str]:
    """Three equal steps with numbers of their own: 1 and 2, then 3 and 4, then 5 and 6."""
    at = lines[1].index("|") + 2
    body = lines[1][at:]
    steps = [body[19 * each : 19 * (each + 1)] for each in range(3)]
    changed = [
        step.replace("1", str(2 * each + 1)).replace("f2", f"f{2 * each + 2}").replace("B2", f"B{2 * each + 2}")
        for each, step in enumerate(steps)
    ]
    return [lines[0], lines[1][:at] + "".join(changed), *lines[2:]]


def test_gradients_that_are_accumulated_over_several_passes_are_used() -> None:
    picture = """
        host main | M0-----------------M1-----------------
        host main | f1-oB1-A-f2-oB2-AU-f3-oB3-A-f4-oB4-AU-
        host main |        g-       g         g-       g
        host main |                 p                  p
    """

    assert excess_of(picture) == []


def test_with_two_optimizers_it_is_not_known_who_resets_a_gradient() -> None:
    lines = [
        f"host main | {_STEPS}",
        f"host main | {_in_each('f1-f2-oB2-A-B1-A-UV')}",
        f"host main | {_in_each('          g-   g-  ')}",
        f"host main | {_in_each('               p   ')}",
    ]

    assert excess_of("\n".join(_numbered(lines))) == []


def _with_sizes(of_update: str) -> Mapping[str, Sort]:
    def op(name: str, dims: str, number: str = "") -> Sort:
        return Sort(K.OP, name, number, {"Input Dims": dims, "Input type": "['float', 'float', 'float']"})

    return AUTOGRAD | {
        "f": op("aten::linear", "[[8,4],[6,4],[6]]", "Sequence number"),
        "n": op("aten::linear", "[[8,6],[2,6],[2]]", "Sequence number"),
        "g": op("torch::autograd::AccumulateGrad", "[[2,6]]"),
        "d": op("torch::autograd::AccumulateGrad", "[[6,4]]"),
        "p": op("aten::add_", of_update),
    }


@pytest.mark.parametrize(
    ("of_update", "expected"),
    [
        ("[[2,6],[2,6],[]]", [("unused_gradients", 5.0)]),
        ("[[[2,6],[6,4]],[[2,6],[6,4]],[]]", []),
        ("[[24],[24],[]]", []),
    ],
    ids=["the update knows one of two", "a list of both", "a flat buffer: which is updated is not known"],
)
def test_gradients_of_sizes_that_no_update_works_on(of_update: str, expected: list[tuple[str, float]]) -> None:
    picture = """
        host main | M0------------------
        host main | f1-n2-oB2-A-B1-A-U--
        host main |           g-   d-p-
    """

    assert excess_of(picture, _with_sizes(of_update)) == expected


@pytest.mark.parametrize(
    ("facts", "update", "expected"),
    [
        ({"zero_gradient:0": "6,4\t1"}, "U---", [("unused_gradients", 5.0)]),
        ({"zero_gradient:0": "6,4\t1"}, "U-z-", []),
        ({"zero_gradient:0": "9,9\t1"}, "U---", []),
        ({"zero_gradient:0": "6,-4\t1", "zero_gradient:1": "1"}, "U---", []),
    ],
    ids=["those of one layer", "an op resets them after the update", "of another size", "damaged"],
)
def test_gradients_that_are_zeros_when_the_update_reads_them(
    facts: Mapping[str, str], update: str, expected: list[tuple[str, float]]
) -> None:
    picture = f"""
        host main | M0-------------------
        host main | f1-n2-oB2-A-B1-A-{update}
        host main |           g-   d-p-
    """
    sorts = _with_sizes("[[[2,6],[6,4]],[[2,6],[6,4]],[]]")
    sorts = sorts | {"z": Sort(K.OP, "aten::zero_", "", {"Input Dims": "[[6,4]]"})}
    found = excesses_of(draw(picture, sorts, facts=facts))

    assert [(each.kind, each.ps / MS) for each in found] == expected
    assert all("they are set to zero before the update" in each.fact for each in found)


def _two_parts(of_first: str = "[[6,4],[6,4],[]]") -> Mapping[str, Sort]:
    """A generator `f` and a critic `n`, with an optimizer each."""

    def op(name: str, dims: str, number: str = "") -> Sort:
        return Sort(K.OP, name, number, {"Input Dims": dims})

    return AUTOGRAD | {
        "f": op("aten::linear", "[[8,4],[6,4],[]]", "Sequence number"),
        "n": op("aten::linear", "[[8,6],[2,6],[]]", "Sequence number"),
        "d": op("torch::autograd::AccumulateGrad", "[[6,4]]"),
        "g": op("torch::autograd::AccumulateGrad", "[[2,6]]"),
        "i": op("torch::autograd::AccumulateGrad", "[[8,4]]"),
        "w": op("aten::add_", "[[2,6],[2,6],[]]"),
        "x": op("aten::add_", of_first),
        "k": op("aten::clone", "[[6,4],[]]"),
    }


_CRITIC = """
    host main | M0------------------M1------------------M2------------------M3------------------M4-
    host main | f1-n2-oB2-A-B1-A-U- f3-n4-oB4-A-B3-A-V- f5-n6-oB6-A-B5-A-U- f7-n8-oB8-A-B7-A-V-
    host main |           g-   d-w-           g-   d-x-           g-   d-w-           g-   d-x-
"""


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        (_CRITIC, [("dropped_gradients", 2 * (3.0 + 2.0) + 2.0)]),
        (_CRITIC.replace("d-w-", "d-wx"), []),
        (_CRITIC.replace("A-U- ", "A-U-k"), []),
        (_CRITIC.replace("d-w-", "i-w-").replace("d-x-", "i-x-"), []),
        (_CRITIC.replace("A-U- ", "A-U-x"), []),
    ],
    ids=[
        "the critic's loss goes back through the generator, whose gradients begin anew; there the critic's are",
        "an update of both", "the program keeps the gradient", "gradients of the input",
        "the program updates the other part itself",
    ],
)  # fmt: skip
def test_gradients_that_begin_anew_before_an_update(picture: str, expected: list[tuple[str, float]]) -> None:
    assert excess_of(picture, _two_parts()) == expected


# -- checks, metrics and one-hot rows ------------------------------------------------------------------------------


def test_checks_between_the_nodes_of_a_backward_pass_are_anomaly_detection() -> None:
    picture = """
        host main | M0------------------
        host main | f1-f2-oB2---B1-----U
        host main |        m-qy m--qqy
    """

    assert excess_of(picture) == [("checks", 5.0)]


def test_a_program_that_checks_its_loss_itself_wants_to() -> None:
    assert excess_of("host main | M0-----------\nhost main | f1-q--oB1---U-") == []


@pytest.mark.parametrize(
    ("after", "expected"),
    [("ae", [("measures", 7.0)]), ("a-", []), ("--", []), ("e-", [])],
    ids=["an accuracy", "an action or a target network", "a teacher", "a mask for the next model"],
)
def test_a_forward_pass_whose_result_is_compared_with_labels_measures(
    after: str, expected: list[tuple[str, float]]
) -> None:
    picture = f"""
        host main | M0---------------------
        host main | m----{after}f1---oB1----U--
    """

    assert excess_of(picture) == expected


@pytest.mark.parametrize(("grows", "expected"), [(1, []), (0, ["measures"])], ids=["it samples", "a list of batches"])
def test_what_makes_a_sequence_position_by_position_is_no_metric(grows: int, expected: list[str]) -> None:
    joins = {
        letter: Sort(K.OP, "aten::cat", "", {"Input Dims": f"[[4,{5 + grows * at}],[4,1]]"})
        for at, letter in enumerate("ghijkl")
    }
    model = {"m": Sort(K.OP, "aten::mm", "", {"Input Dims": "[[4,8],[8,8]]"})}
    picture = """
        host main | M0------------------------
        host main | mgmhmimjmkmlaef1---oB1----U--
    """

    assert [kind for kind, _ in excess_of(picture, AUTOGRAD | joins | model) if kind == "measures"] == expected


def test_what_runs_after_the_update_of_its_step_cannot_reach_it() -> None:
    picture = """
        host main | M0---------------------
        host main | f1---oB1----U--m----
    """

    assert excess_of(picture) == [("after_update", 5.0)]


def test_frozen_layers_that_autograd_passes_over_come_first() -> None:
    # An op that needs a gradient gets the number that they were given, too.
    found = forward_only_of(draw("host main | M0-----------------\nhost main | f7---f7---f7---B7--", AUTOGRAD))

    assert found is not None
    assert (found.every.tolist(), found.first.tolist()) == ([True, True, False], [True, True, False])


def test_checkpointing_computes_again_on_purpose() -> None:
    picture = """
        host main | M0---------------------
        host main | f1---f2--oB2-B1-------U
        host main |              f3---m-
    """

    assert len(recomputed_ops(draw(picture, AUTOGRAD))) == 1
    assert excess_of(picture) == []


def test_one_hot_rows_with_their_conversion() -> None:
    assert excess_of("host main | M0-------------\nhost main | h---t--f1--oB1-") == [("one_hot", 7.0)]


# -- sizes ---------------------------------------------------------------------------------------------------------


def _of_table(rows_of_table: int, ids: int, tied: bool = False) -> Mapping[str, Sort]:
    table = f"[{rows_of_table},4]"

    def op(name: str, dims: str, number: str = "") -> Sort:
        return Sort(K.OP, name, number, {"Input Dims": dims, "Input type": "['float', 'float']"})

    head = f"[[8,4],{table}]" if tied else "[[8,4],[3,4]]"
    return AUTOGRAD | {
        "f": op("aten::embedding", f"[{table},[{ids}],[]]", "Sequence number"),
        "n": op("aten::linear", head, "Sequence number"),
        "s": op("aten::embedding_dense_backward", f"[[{ids},4],[{ids}],[]]"),
        "z": op("aten::zero_", f"[{table}]"),
        "p": op("aten::add_", f"[{table},{table},[]]"),
    }


@pytest.mark.parametrize(
    ("sorts", "expected"),
    [
        (_of_table(100_000, 10), [("whole_table", 9.0)]),
        (_of_table(100_000, 80_000), []),
        (_of_table(1000, 10), []),
        (_of_table(100_000, 10, tied=True), []),
    ],
    ids=["few of many rows", "most rows", "a small table", "the output multiplies with the table, too"],
)
def test_a_table_of_which_a_step_reads_few_rows(sorts: Mapping[str, Sort], expected: list[tuple[str, float]]) -> None:
    picture = """
        host main | M0------------------
        host main | f1-n2-oB2-B1---U----
        host main |           s--- p---
        host main |           z-
    """

    assert excess_of(picture, sorts) == expected


def test_what_is_left_of_a_table_is_what_a_step_reads() -> None:
    picture = "host main | M0---------------\nhost main | f1-n2-oB2-B1---U----\nhost main |           s--- p---"
    picture += "\nhost main |           z-"

    (found,) = _found(picture, _of_table(100_000, 1000))

    assert found.keeps == 0.01
    assert "all 100,000 rows of a table (100,000 x 4), of which the step reads at most 1,000" in found.fact


def test_without_sizes_zeros_show_a_table_of_which_few_rows_are_read() -> None:
    sorts = AUTOGRAD | {
        "f": Sort(K.OP, "aten::embedding", "Sequence number"),
        "s": Sort(K.OP, "aten::embedding_dense_backward"),
        "z": Sort(K.OP, "aten::zero_"),
    }
    picture = """
        host main | M0------------------
        host main | f1-n2-oB2-B1---U----
        host main |           s---
        host main |           z--
    """

    (found,) = _found(picture, sorts)

    assert (found.kind, found.keeps) == ("whole_table", 0.25)


@pytest.mark.parametrize(
    ("dims", "types", "wide"),
    [
        ("[[8,4],[4,2]]", "['double', 'double']", True),
        ("[[8,4],[]]", "['float', 'double']", False),
        ("[[8,4],[]]", "['double', 'Scalar']", True),
        ("", "['double', 'double']", True),
        ("", "['float', 'double']", False),
    ],
    ids=["both", "a number of Python", "one with a number", "without sizes", "without sizes, mixed"],
)
def test_what_computes_in_64_bits(dims: str, types: str, wide: bool) -> None:
    assert computes_in_64_bits(dims, types) == wide


def test_sizes_of_impossible_tensors_are_none() -> None:
    assert sizes_of("[[9999999999999999,4],[2]]") == ((2,),)


# -- graphs that are kept from step to step ------------------------------------------------------------------------


def test_backward_work_of_an_earlier_step_is_not_needed() -> None:
    """The loss is summed up with its graph: the second step goes back through both."""
    picture = """
        host main | M0-------------M1-------------------
        host main | f1---l2-B2-B1--f3---l4-B4-B3-B2-B1--
    """

    assert excess_of(picture) == [("earlier_steps", 7.0)]
