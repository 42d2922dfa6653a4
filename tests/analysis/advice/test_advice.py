"""Advice: each rule on a picture, the ranking, what-if by hand, and the programs whose bottleneck is known."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from draw import MS, Sort, draw
from framework_captures import FrameworkCapture, skip_unless_regular
from reporting import context_of

import stepscope
from stepscope.analysis import advice as advising
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.account.statements import Statement
from stepscope.analysis.advice import CLASSES, Advice, Context, Rule, advise, register
from stepscope.analysis.advice import rule as rule_module
from stepscope.analysis.advice.rule import own_rules, predict_without
from stepscope.analysis.advice.rules import checkpoint, dispatch, waiting
from stepscope.analysis.advice.whatif import what_if_advised
from stepscope.analysis.input.pipeline_advice import suggestion
from stepscope.analysis.overview import advice_tool as tool
from stepscope.analysis.overview import overview_tool as overview
from stepscope.errors import UsageError
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder, Trait

K = EventKind


def advice_of(*hosts: HostTrace) -> list[tuple[str, float | None]]:
    """Class and predicted speed-up of all advice, first things first."""
    return [(item.kind, item.predicted_speedup) for item in advise(context_of(*hosts)).items]


# -- every rule on a picture ---------------------------------------------------------------------------------------

SORTS = {
    "c": Sort(K.OP, "aten::cat"),
    "d": Sort(K.OP, "aten::detach"),
    "e": Sort(K.OP, "p:EagerPyFunc"),
    "f": Sort(K.ITERATOR, "Iterator::Root::Prefetch::TFRecord", traits=Trait.FILE_READ),
    "g": Sort(K.OP, "aten::mm", "Sequence number"),
    "h": Sort(K.INPUT_HANDOVER, "PrefetchProduce"),
    "l": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "m": Sort(K.OP, "aten::mm", "Sequence number"),
    "n": Sort(K.OP, "aten::mm"),
    "o": Sort(K.OP, "aten::set_"),
    "p": Sort(K.PYTHON_CALL, "$metrics.py:7 rank"),
    "q": Sort(K.OP, "aten::mul"),
    "r": Sort(K.OP, "pure_callback.1"),
    "s": Sort(K.PYTHON_CALL, "$utils.py:3 save_weights"),
    "i": Sort(K.OP, "MatrixInverse:MatrixInverse"),
    "k": Sort(K.OP, "copy", stats={"hlo_module": "jit_stage"}),
    "t": Sort(K.OP, "aten::to"),
    "u": Sort(K.OP, "dense/MatMul:MatMul"),
    "v": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: AssignVariableOp"),
    "w": Sort(K.TRACED_FUNCTION, "PjitFunction(stage)"),
    "x": Sort(K.INPUT_CALLBACK, "InstantiatedCapturedFunction::Run"),
    "y": Sort(K.OP, "gradient_tape/dense/MatMul:MatMul"),
    "z": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: ConcatV2"),
    "B": Sort(K.BACKWARD, "autograd::engine::evaluate_function: MmBackward0", "Sequence number"),
    "V": Sort(K.COPY_HOST_TO_DEVICE_CALL, "DevicePut"),
}
MOST_FILES = 14  # may only fall
DRAWN: dict[str, tuple[str, str, float | None]] = {
    "waits of unknown cause": (
        """
        host main | M0--------M1--------
        host main | I-----a---I-----a---
        """,
        "input_preprocessing", 2.5,
    ),
    "a stage behind the last hand-over": (
        """
        host main    | M0--------M1--------
        host main    | I---a-----I---a-----
        host main    | J--       J--
        host main    | x--       x--
        host tf_data | h         h
        """,
        "input_no_prefetch", 1.67,
    ),
    "iterators that take turns with the step": (
        """
        host main | M0--------M1--------
        host main | I---a-----I---a-----
        host main | J--       J--
        """,
        "input_no_prefetch", 1.67,
    ),
    "files": (
        """
        host main   | M0--------M1--------
        host main   | I-----a---I-----a---
        host tf_data| h
        host tf_data| f-------- f--------
        """.replace("tf_data|", "tf_data |"),
        "input_file_read", 2.5,
    ),
    "Python functions of a dataset": (
        """
        host main         | M0--------M1--------
        host main         | I-----a---I-----a---
        host main         | J--       J--
        host tf_data_pool | e---      e---
        """,
        "input_python", 2.5,
    ),
    "a DataLoader in the training process": (
        """
        host main | M0--------M1--------
        host main | l-----m1--l-----m2--
        """,
        "input_python", 2.5,
    ),
    "a DataLoader whose samples are made of stored bytes": (
        """
        host main | M0--------M1--------
        host main | l-----m1--l-----m2--
        host main |  o         o
        """,
        "input_file_read", 2.5,
    ),
    "a DataLoader that transforms tensors": (
        """
        host main | M0--------M1--------
        host main | l-----m1--l-----m2--
        host main |  c---      c---
        """,
        "input_preprocessing", 2.5,
    ),
    "copies to the device": (
        """
        host main | M0--------M1--------
        host main | V-----a---V-----a---
        """,
        "input_transfer", 2.5,
    ),
    "conversions": (
        """
        host main | M0--------M1--------
        host main | t-----a---t-----a---
        """,
        "input_transfer", 2.5,
    ),
    "an array that JAX takes in by a program of its own": (
        """
        host main | M0--------M1--------
        host main | w-----F---w-----F---
        host main |  k---  m   k---  m
        """,
        "input_transfer", 2.5,
    ),
    "compilation": (
        """
        host main | M0--------M1--------
        host main | F---------F---------
        host main | X-----a---X-----a---
        """,
        "recompilation", 2.5,
    ),
    "a save": (
        """
        host main | M0--------M1--------
        host main | a---s-----a---s-----
        """,
        "checkpoint_stall", 2.5,
    ),
    "Python in the step": (
        """
        host main | M0--------M1--------
        host main | a---p-----a---p-----
        """,
        "python_overhead", 2.33,
    ),
    "Python between steps": (
        """
        host main | M0--      M1--      M2--
        host main | a---p-----a---p-----a---
        """,
        "python_overhead", 2.33,
    ),
    "collectives": (
        """
        host main | M0--------M1--------
        host main | a---G-----a---G-----
        """,
        "communication_bound", 2.5,
    ),
    "work without gradients, more than all that is trained": (
        """
        host main | M0--------M1--------
        host main | g1n-----B1g2n-----B2
        host main |         n-        n-
        """,
        "redundant_compute", 2.5,
    ),
    "copies in memory": (
        """
        host main | M0--------M1--------
        host main | a---c-----a---c-----
        """,
        "memory_churn", 2.5,
    ),
    "a forward pass that no backward pass follows, longer than those that are trained": (
        """
        host main | M0--------M1--------
        host main | g1g5----B1g2g6----B2
        host main |         n-        n-
        """,
        "redundant_compute", 2.5,
    ),
    "a matrix that is inverted and that nothing learns from": (
        """
        host main | M0--------M1--------
        host main | i----u-y--i----u-y--
        """,
        "redundant_compute", None,  # whether it changes is not recorded
    ),
    "averages that are made anew without gradients": (
        """
        host main | M0--------M1--------
        host main | q---g1B1--q---g2B2--
        host main |       n--       n--
        """,
        "memory_churn", 1.67,
    ),
    "TensorFlow ops outside of a graph, between the steps": (
        """
        host main | M0--      M1--      M2--
        host main | Fm--z-----Fm--z-----Fm--
        """,
        "memory_churn", 2.5,
    ),
    "an array that a variable takes in after it was copied": (
        """
        host main | M0--------M1--------
        host main | V--v---a--V--v---a--
        """,
        "input_transfer", 3.33,
    ),
    "a compiled program that calls Python back": (
        """
        host main | M0--------M1--------
        host main | F---------F---------
        host main | r-----m---r-----m---
        """,
        "python_overhead", 2.5,
    ),
    "a state_dict that is sent to other ranks": (
        """
        host main | M0--------M1--------
        host main | a---dddd  a---dddd
        host main |         G-        G-
        """,
        "none", None,
    ),
    "nothing": (
        """
        host main | M0--------M1--------
        host main | a---------a---------
        """,
        "none", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_what_a_rule_says_of_a_picture(name: str) -> None:
    picture, kind, speedup = DRAWN[name]

    assert advice_of(draw(picture, SORTS))[0] == (kind, speedup)


@pytest.mark.parametrize("name", DRAWN)
def test_rules_of_the_files_that_are_not_asked_have_nothing_to_say(name: str) -> None:
    context = context_of(draw(DRAWN[name][0], SORTS))
    asked = {rule.id for rule in own_rules(context)}

    assert [rule.id for rule in own_rules() if rule.id not in asked and rule(context) is not None] == []


@pytest.mark.parametrize("name", DRAWN)
def test_from_facts_to_advice_few_files_are_visited(name: str) -> None:
    """A person who asks where a sentence comes from reads these."""
    context = context_of(draw(DRAWN[name][0], SORTS))
    advise(context)  # what is imported on first use is no visit
    visited: set[str] = set()
    sys.setprofile(lambda frame, event, _: visited.add(frame.f_code.co_filename) if event == "call" else None)
    advise(context)
    sys.setprofile(None)

    assert len([file for file in visited if "stepscope/analysis/" in file]) <= MOST_FILES


# -- what samples are made of --------------------------------------------------------------------------------------

LOADED = {
    "l": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "x": Sort(K.OP, "aten::lift_fresh"),
    "f": Sort(K.PYTHON_CALL, "torch/utils/data/_utils/fetch.py(49): fetch"),
    "o": Sort(K.PYTHON_CALL, "<built-in method read of _io.BufferedReader object at 0x7f>"),
    "b": Sort(K.PYTHON_CALL, "<built-in method read of _io.BytesIO object at 0x7f>"),
}
STEP_THAT_LOADS = """
    host main | M0--------M1--------
    host main | l-----a---l-----a---
    host main |      x         x
"""


def test_samples_that_no_op_makes_may_be_read_or_unpacked_where_no_python_was_recorded() -> None:
    first = advise(context_of(draw(STEP_THAT_LOADS, LOADED))).items[0]

    assert (first.kind, first.confidence) == ("input_file_read", 0.4)
    assert "read from files or unpacked in memory, and this profile does not show which" in first.evidence
    assert first.title == "Prepare samples ahead of the step, in other processes"
    assert any("with_stack=True" in action for action in first.actions)


def test_a_loader_that_sleeps_needs_workers() -> None:
    sorts = {"l": LOADED["l"], "s": Sort(K.PYTHON_CALL, "<built-in function sleep>"), "f": LOADED["f"]}
    picture = """
        host main | M0--------M1--------
        host main | l-----a---l-----a---
        host main | f----     f----
        host main |  s---      s---
    """

    first = advise(context_of(draw(picture, sorts))).items[0]

    assert first.kind == "input_no_prefetch"
    assert "for 80 % of the wait the loop's thread sleeps" in first.evidence


@pytest.mark.parametrize("is_own", [False, True])
def test_a_busy_machine_is_said_in_one_way_whoever_keeps_it_busy(monkeypatch, is_own) -> None:
    picture = """
        host main | M0--------M1--------
        host main | a---      a---
    """
    context = context_of(draw(picture, {"a": Sort(K.OP, "aten::mm")}, usage=[(0, 20, 12, 8)]))
    monkeypatch.setattr("stepscope.analysis.advice.ranking._uses_most_cores", lambda context: is_own)

    said = advise(context).warnings

    assert [line for line in said if line.startswith("the machine was busy: the loop waited 40.0 % of each step")]
    assert said.count("the program's own threads used most of the cores") == is_own


def test_worker_processes_that_start_again_and_again_are_to_live_on() -> None:
    code = "site-packages/torch/utils/data/dataloader.py"
    sorts = {
        "l": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
        "e": Sort(K.PYTHON_CALL, f"{code}(1606): _shutdown_workers"),
        "s": Sort(K.PYTHON_CALL, f"{code}(1101): __init__"),
    }
    picture = """
        host main | M0-----------M1-----------
        host main | s--l------a--s--l------a--
        host main |    e---         e---
    """

    elsewhere = "\n        host worker | s------------------------"  # a worker's stack shows for ever what made it
    advised = [advise(context_of(draw(each, sorts))).items[0] for each in (picture, picture.rstrip() + elsewhere)]
    first = advised[0]

    assert advised[1].evidence == first.evidence
    assert (first.kind, first.predicted_speedup) == ("input_no_prefetch", 4.33)
    assert "the loader's worker processes start 2 times in the captured steps" in first.evidence
    assert "persistent_workers=True" in first.actions[0]


def test_products_in_64_bits_gain_half_of_their_time_in_32() -> None:
    product = {"m": Sort(K.OP, "aten::mm", stats={"Input type": "['double', 'double']"})}
    first = advise(
        context_of(draw("host main | M0--------M1--------\nhost main | m-------a-m-------a-", product))
    ).items[0]

    assert (first.kind, first.step_time_ms, first.predicted_step_time_ms) == ("low_precision", 10.0, 6.0)


@pytest.mark.parametrize(("ran", "queued", "waits_ms"), [(8, 0, 6.0), (8, 6, 3.0), (17, 0, 1.5), (20, 0, None)])
def test_only_what_the_thread_sleeps_is_waiting_for_workers(ran: int, queued: int, waits_ms: float | None) -> None:
    sorts = {"l": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")}
    picture = "host main | M0--------M1--------\nhost main | l-----a---l-----a---"

    advice = waiting.RULES[0](context_of(draw(picture, sorts, usage=[(0, 20, ran, queued)])))

    assert (advice.rows[0].value_ms if advice else None) == waits_ms


@pytest.mark.parametrize(
    ("call", "kind", "why"),
    [
        ("o", "input_file_read", "most of the wait is reading files in the training process"),
        ("b", "input_preprocessing", "samples are NumPy arrays; 0 % of the wait is reading files"),
    ],
    ids=["from a file", "from memory"],
)
def test_python_that_was_recorded_tells_where_samples_come_from(call: str, kind: str, why: str) -> None:
    python = f"host main |  f----     f----\nhost main |  {call}---      {call}---"

    first = advise(context_of(draw(STEP_THAT_LOADS + python, LOADED))).items[0]

    assert first.kind == kind
    assert why in first.evidence


# -- input that is ready and still costs time ----------------------------------------------------------------------


def busy_input(made_by: str, late: str = " ") -> HostTrace:
    """Steps that wait for nothing; in three of five the input's thread works, and the ops take four times as long."""
    sorts = SORTS | {"y": Sort(K.ITERATOR, "Iterator::Root::Prefetch::Map"), "q": Sort(K.OP, "decode:DecodePng")}
    sorts["j"] = Sort(K.OP, "ReadFile:ReadFile")
    return draw(
        f"""
        host main         | M0--------M1--------M2--------M3--------M4--------
        host main         | Fm-  {late}    Fm-       Fm------- Fm------- Fm-------
        host tf_data_pool |                     y-------- y-------- y--------
        host tf_data_pool |                     {made_by}-------  {made_by}-------  {made_by}-------
        """,
        sorts,
    )


def test_python_of_the_input_that_takes_cores_from_the_step_is_told() -> None:
    first = advise(context_of(busy_input("e"))).items[0]

    assert first.kind == "input_python"
    assert "the step does not wait for its input, but Python prepares it on other threads for 54 %" in first.evidence
    assert first.predicted_speedup is None
    assert first.reasoning.startswith("not predictable from this recording, because the input's threads run")


@pytest.mark.parametrize(("late", "waits_ms"), [(" ", 0.0), ("I", 0.2)])
def test_input_that_takes_cores_tells_how_long_steps_wait_for_it(late: str, waits_ms: float) -> None:
    (row,) = advise(context_of(busy_input("e", late))).items[0].rows

    assert (row.tool, row.key, row.value_ms) == ("overview", "input", waits_ms)


def test_files_that_are_read_beside_the_step_are_told() -> None:
    first = advise(context_of(busy_input("j"))).items[0]

    assert (first.id, first.kind) == ("input.reading-competes", "input_file_read")
    assert "its files are read on other threads for 54 % of the time" in first.evidence


@pytest.mark.parametrize(
    ("op", "cached"),
    [("stft/rfft:RFFT", True), ("random_uniform/RandomUniform:RandomUniform", False)],
)
def test_what_is_prepared_in_parallel_and_not_at_random_can_be_cached(op: str, cached: bool) -> None:
    sorts = {"h": Sort(K.INPUT_HANDOVER, "ParallelMapProduce"), "p": Sort(K.ITERATOR, "Iterator::Root::ParallelMapV2")}
    picture = """
        host main         | M0--------M1--------
        host main         | I-----a---I-----a---
        host tf_data_pool | h         h
        host tf_data_pool | p-------- p--------
        host tf_data_pool | x--       x--
        host tf_data_pool | o--       o--
    """
    context = context_of(draw(picture, sorts | {"x": SORTS["x"], "o": Sort(K.OP, op)}))

    first = advise(replace(context, framework="tensorflow")).items[0]

    assert first.kind == "input_preprocessing"
    assert first.actions[0].startswith(".cache()") == cached


def slow_stage(iterator: str, op: str, handover: bool = True) -> Context:
    """Steps that wait for a pipeline, of which the tool tf-data found this stage the slowest."""
    sorts = {"h": Sort(K.INPUT_HANDOVER, "Prefetch"), "p": Sort(K.ITERATOR, f"Iterator::Root::{iterator}")}
    picture = """
        host main         | M0--------M1--------
        host main         | I-----a---I-----a---
        host tf_data_pool | h         h
        host tf_data_pool | p-----    p-----
    """
    drawn = draw(picture if handover else picture.replace("h         h", ""), sorts)
    stage = {"iterator": iterator, "dataset_op": op, "suggestion": suggestion(iterator, op, on_device=False)}
    return replace(context_of(drawn), framework="tensorflow", read=lambda _: SimpleNamespace(bottleneck=stage))


@pytest.mark.parametrize(("calls", "whole"), [(8, True), (1, False)])
def test_python_that_a_dataset_calls_for_each_element_is_to_make_whole_batches(calls: int, whole: bool) -> None:
    sorts = {
        "h": Sort(K.INPUT_HANDOVER, "Prefetch"),
        "p": Sort(K.ITERATOR, "Iterator::Root::Prefetch::Generator"),
        "e": Sort(K.OP, "PyFunc:PyFunc"),
    }
    python = ("e" * calls).ljust(10)
    picture = f"""
        host main         | M0--------M1--------
        host main         | I-------a-I-------a-
        host tf_data_pool | h         h
        host tf_data_pool | p-------  p-------
        host tf_data_pool | {python}{python}
    """
    actions = advise(replace(context_of(draw(picture, sorts)), framework="tensorflow")).items[0].actions

    assert actions[0].startswith(f"let Python make a whole batch at once, instead of {calls} calls") == whole


def test_what_tf_data_suggests_for_a_stage_is_not_said_again_without_it() -> None:
    serial, *others = advise(slow_stage("Map", "MapDataset:2")).items[0].actions

    assert serial.startswith("the .map() in Map (MapDataset:2)")
    assert others == []  # whole batches, parallel calls and the cache are all said of the stage


def test_what_is_not_said_of_the_stage_is_said_in_general() -> None:
    actions = advise(slow_stage("Shuffle", "ShuffleDatasetV3:2")).items[0].actions

    assert [action.partition(" ")[0] for action in actions] == ["filling", "map", ".map(fn,", ".cache()"]


def test_where_prefetching_is_enough_it_comes_first() -> None:
    first = advise(slow_stage("Map", "MapDataset:2", handover=False)).items[0]

    assert first.kind == "input_no_prefetch"
    assert [action[:22] for action in first.actions] == ["put .prefetch(tf.data.", "the .map() in Map (Map"]


def test_a_program_of_another_framework_that_tf_data_feeds_is_told_of_tf_data() -> None:
    context = replace(slow_stage("Map", "MapDataset:2", handover=False), framework="jax", read=lambda _: None)

    assert advise(context).items[0].actions[0].startswith("put .prefetch(tf.data.AUTOTUNE)")


@pytest.mark.parametrize("iterator", ["Prefetch", "Root"])
def test_a_stage_that_waited_for_nothing_that_was_recorded_is_no_action(iterator: str) -> None:
    actions = advise(slow_stage(iterator, "PrefetchDataset:5")).items[0].actions

    assert not [action for action in actions if "PrefetchDataset" in action]


def test_ops_of_the_input_have_to_run_anyway() -> None:
    assert "input_python" not in [kind for kind, _ in advice_of(busy_input("q"))]


# -- a first compilation -------------------------------------------------------------------------------------------

COMPILED = {"x": Sort(K.COMPILE, "backend_compile")}
FOUR_STEPS = "host main | M0--------M1--------M2--------M3--------\n"


@pytest.mark.parametrize(
    ("compiles", "warned", "kind"),
    [
        ("x------   a---------a---------a---------", True, "none"),
        ("x------   a---------x------   a---------", False, "recompilation"),
        ("x------   x------   a---------a---------", False, "recompilation"),
        ("a---------a---------x------   x------   ", False, "recompilation"),
    ],
    ids=["first step only", "again", "half of the steps", "later"],
)
def test_a_first_compilation_is_warm_up_and_one_that_comes_again_is_not(compiles: str, warned: bool, kind: str) -> None:
    report = overview.merge([overview.partial(draw(f"{FOUR_STEPS}host main | {compiles}", COMPILED))])

    assert report.advice[0].kind == kind
    assert any("leave out this warm-up" in warning for warning in report.warnings) == warned
    assert report.step_time_ms["count"] == (3 if warned else 4)


# -- how sure a gain is --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "then", "expected"),
    [
        (10.0, 5.0, (1.54, 2.86)),  # 5 ms may be 3.5 or 6.5
        (100.0, 1.0, (10.94, None)),  # an error of 8 % in what goes is many times what stays
        (10.0, 9.9, (1.0, 1.3)),
        (10.0, None, None),
    ],
)
def test_what_to_expect_of_a_gain(now: float, then: float | None, expected: tuple[float, float | None] | None) -> None:
    advice = Advice(
        id="a", kind="none", title="", evidence="", predicted_speedup=then and round(now / then, 2), actions=(),
        tool="steps", step_time_ms=now, predicted_step_time_ms=then,
    )  # fmt: skip

    assert advice.speedup_range == expected


def test_advice_in_words_says_what_to_expect_and_when_to_doubt_it() -> None:
    doubtful, sure = (
        "\n".join(tool.merge([overview.partial(draw(picture, sorts))]).sections()[1].lines)  # type: ignore[attr-defined]
        for picture, sorts in ((STEP_THAT_LOADS, LOADED), (DRAWN["a save"][0], SORTS))
    )

    assert "about 2.5x faster (likely 1.87x to 3.79x)" in doubtful
    assert doubtful.endswith("confidence 40 %, so check the evidence before you change anything")
    assert sure.endswith("confidence 90 %")


def test_where_the_error_is_as_large_as_what_is_left_only_the_certain_end_is_said() -> None:
    """1 of 25 ms is left, and 24 of them may be 8 % longer: at most 3.14 ms."""
    host = draw(
        """
        host main | M0-----------------------M1-----------------------
        host main | assssssssssssssssssssssssassssssssssssssssssssssss
        """,
        SORTS,
    )
    report = tool.merge([overview.partial(host)])
    item = report.to_dict()["advice"][0]

    assert (item["step_time_ms"], item["predicted_step_time_ms"]) == (25.0, 3.14)
    assert (item["predicted_speedup"], item["predicted_speedup_least"]) == (7.96, 7.96)
    assert item["predicted_speedup_most"] is None
    assert "predicted  at least 7.96x faster: 25.00 -> at most 3.14 ms in the median step" in "\n".join(
        report.sections()[1].lines
    )
    assert "-> at most 3.14 ms in the median step without saving" in item["reasoning"]
    asked = what_if_advised(report.items[0], report.context).figures
    names = ("predicted_step_time_ms", "predicted_speedup")
    assert [asked[name] for name in names] == [item[name] for name in names]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # 9 and 4 of 10: if both had 6.5, the step would take 7.5.
        ("a--------G", "a---G-----", ("straggler", 1.33)),
        ("a---b----G", "a---G-----", ("straggler", 2.0)),  # it does something else, too
        ("a---G-----", "a---G-----", ("communication_bound", 2.5)),
    ],
)
def test_who_works_longer_than_the_others_is_a_straggler(one: str, other: str, expected: tuple[str, float]) -> None:
    hosts = [
        draw(f"host main | M0--------M1--------\nhost main | {work * 2}", host=name)
        for name, work in (("a", one), ("b", other))
    ]

    assert advice_of(*hosts)[0] == expected


@pytest.mark.parametrize(
    ("slow", "fast", "rows", "kind"),
    [
        ("vm_71", "vm_72", 64, "none"),  # two processes of one machine share its cores
        ("vm_71", "vm_72", 32, "straggler"),  # one of them has twice as much to compute
        ("vm_71", "wm_72", 64, "straggler"),  # a machine of its own is slow
    ],
)
def test_who_computes_as_much_on_the_same_machine_is_no_straggler(slow: str, fast: str, rows: int, kind: str) -> None:
    def rank(host: str, computes: str, rows: int) -> HostTrace:
        sorts = {"a": Sort(K.OP, "aten::linear", stats={"Input Dims": f"[[{rows},8],[8,8],[8]]"})}
        return draw(f"host main | M0--------M1--------\nhost main | {computes * 2}", sorts, host=host)

    first = advise(context_of(rank(slow, "a-------G-", 64), rank(fast, "a---G-----", rows))).items[0]
    assert first.kind == kind
    assert ("its products take 2.0 times as much data" in first.evidence) == (rows == 32)


@pytest.mark.parametrize(
    ("fast", "queued_ms", "is_late"),
    [("vm_72", 0, True), ("vm_72", 8, False), ("wm_72", 8, True)],
    ids=["quiet", "busy", "two machines"],
)
def test_what_a_process_waits_for_cores_that_it_shares_is_no_extra_work(
    fast: str, queued_ms: int, is_late: bool
) -> None:
    """The slow one is silent for six of ten milliseconds, or waits for a core in them."""
    marks = "".join(f"M{step}--------" for step in range(4))
    ends = [(10 * step, 10 * step + 10, 2, queued_ms) for step in range(4)]
    slow = draw(f"host main | {marks}\nhost main | {'a      G--' * 4}", host="vm_71", usage=ends)
    other = draw(f"host main | {marks}\nhost main | {'aG--------' * 4}", host=fast)

    assert ("straggler" in [item.kind for item in advise(context_of(slow, other)).items]) is is_late


def test_a_small_part_of_what_a_late_rank_does_more_is_not_what_makes_it_late() -> None:
    """It is silent for six of ten milliseconds more than the other, and computes for one more."""
    marks = "".join(f"M{step}--------" for step in range(4))
    slow = draw(f"host main | {marks}\nhost main | {'u-      G-' * 4}", SORTS, host="a")
    fast = draw(f"host main | {marks}\nhost main | {'uG--------' * 4}", SORTS, host="b")

    first = advise(context_of(slow, fast)).items[0]

    assert (first.kind, first.culprit) == ("straggler", None)
    assert first.actions[-1].startswith("to see the line, record ")


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("a-------Ga-------Ga-------Ga-------Ga-------Ga-------G", "aG-------" * 6, "straggler"),
        ("aG-------a-------G" * 3, "a-------GaG-------" * 3, "communication_bound"),
        ("a-------GaG-------" * 3, "a---G----" * 6, "communication_bound"),
    ],
    ids=["always one", "in turns", "every other step"],
)
def test_who_is_slow_in_some_steps_only_is_no_straggler(one: str, other: str, kind: str) -> None:
    marks = "".join(f"M{step}-------" for step in range(6))
    hosts = [draw(f"host main | {marks}\nhost main | {work}", SORTS, host=work) for work in (one, other)]

    assert advice_of(*hosts)[0][0] == kind


@pytest.mark.parametrize(
    ("training", "multiplying", "said"),
    [
        ([], [], "is spent in jit_solve besides the training program jit_step"),
        (["jit_step"], ["jit_step", "jit_solve"], "is spent in jit_solve besides the training program jit_step"),
        (["jit_step"], ["jit_step"], None),
        (["jit_solve"], ["jit_solve"], None),
        (["jit_solve", "jit_step"], ["jit_solve", "jit_step"], "is spent in jit_solve besides the training program"),
    ],
    ids=["not known", "a forward pass", "no product", "the gradient and its update", "two gradients"],
)
def test_a_program_beside_the_one_that_trains(training: list[str], multiplying: list[str], said: str | None) -> None:
    sorts = {
        "s": Sort(K.OP, "dot.1", stats={"hlo_module": "jit_solve"}),
        "t": Sort(K.OP, "dot.2", stats={"hlo_module": "jit_step"}),
    }
    context = context_of(draw("host main | M0--------M1--------\nhost main | s---t-----s---t-----", sorts))
    (host,) = context.hosts
    work = replace(host.work, training=training, multiplying=multiplying)
    (first, *_) = advise(replace(context, hosts=(replace(host, work=work),))).items

    assert (first.kind == "redundant_compute") == (said is not None)
    assert said is None or said in first.evidence


def test_a_program_that_waits_for_an_array_to_be_copied_in_copies() -> None:
    sorts = {
        "F": Sort(K.TRACED_FUNCTION, "PjitFunction(gather)"),
        "k": Sort(K.OP, "copy", "run_id", {"hlo_module": "jit_stage"}),
        "t": Sort(K.OTHER, "ThunkExecutor::Execute (wait for completion)"),
    }
    picture = """
        host main | M0--------M1--------
        host main | F--------aF--------a
        host xla  | k1t----   k2t----
    """

    # The op copies for 2 ms of each step, and XLA copies on for 5 ms when it has ended.
    assert advice_of(draw(picture, sorts))[0] == ("input_transfer", 3.33)


@pytest.mark.parametrize(
    ("numbers", "modules"),
    [
        ((1, 2), [("jit__lambda (program 1)", 16), ("jit__lambda (program 2)", 12)]),
        (
            (-7, -5),
            [("jit__lambda (program -7)", 16), ("jit__lambda (program -5)", 12)],
        ),  # fingerprints may be negative
        ((1, 1), [("jit__lambda", 28)]),
    ],
    ids=["two functions", "fingerprints", "one function"],
)
def test_functions_of_one_name_that_run_in_most_steps_are_told_apart(
    numbers: tuple[int, int], modules: list[tuple[str, int]]
) -> None:
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for step in range(4):
        line.event("train", 10 * step * MS, 10 * MS, K.STEP_MARK, {"step_num": step})
        for at, number in enumerate(numbers):
            stats = {"hlo_module": "jit__lambda", "program_id": number}
            line.event("dot", (10 * step + 4 * at) * MS, (4 - at) * MS, K.OP, stats)

    work = context_of(builder.build()).work

    assert work is not None
    assert [(module.name, module.total_ps // MS) for module in work.modules] == modules


@pytest.mark.parametrize(("starts_ms", "kind"), [(9, "small_batch"), (2, "none")])
def test_a_loop_within_a_graph_whose_ops_hardly_do_more_than_start(starts_ms: int, kind: str) -> None:
    context = context_of(draw("host main | M0--------M1--------\nhost main | Fa--------Fa--------"))
    assert context.work is not None
    work = replace(context.work, start_in_programs_ps=2 * starts_ms * MS, brief_ps=2 * starts_ms * MS,
                   ops_in_programs=2000, op_types_in_programs=10)  # fmt: skip
    looping = replace(context, framework="tensorflow", hosts=[replace(host, work=work) for host in context.hosts])

    assert advise(looping).items[0].kind == kind


def test_tiny_ops_are_a_hint_alone_where_most_of_the_step_computes() -> None:
    sorts = SORTS | {"z": Sort(K.EAGER_EXECUTE, "EagerExecute")}
    picture = """
        host main | M0--------M1--------
        host main | zzzzzzz   zzzzzzz
        host pool | a-------- a--------
    """
    context = context_of(draw(picture, sorts))
    assert context.work is not None
    work = replace(context.work, short_ps=16 * MS)
    tiny = replace(context, framework="tensorflow", hosts=[replace(host, work=work) for host in context.hosts])

    first = advise(tiny).items[0]

    assert (first.kind, first.beside) == ("none", "")
    assert 'perhaps "Give each call more to compute"' in first.evidence


def test_a_function_beside_the_one_that_trains_may_be_needed() -> None:
    sorts = SORTS | {"g": Sort(K.TRACED_FUNCTION, "metric")}
    picture = """
        host main | M0------------------M1------------------
        host main | F-------g-----------F-------g-----------
        host main | u-y-----u-------    u-y-----u-------
    """
    context = replace(context_of(draw(picture, sorts)), framework="tensorflow")

    first = advise(context).items[0]

    assert first.kind == "none"  # a metric, or what the next batch is made of
    assert 'perhaps "Compute what has no backward pass once or rarely' in first.evidence
    assert "(about 2.50x)" in first.evidence  # all 12 ms of it go, of 20


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("u-y-u-y-G", ("the same amount of data", "with equal work on all workers: ")),
        ("u-u-u-y-G", ("evaluate, log and save rarely", "without that work: ")),  # the replay leaves it out
    ],
    ids=["forward and backward", "forward alone"],
)
def test_a_worker_whose_backward_work_grows_with_its_ops_has_more_data(more: str, said: tuple[str, str]) -> None:
    slow = draw(f"host main | M0-------M1-------\nhost main | {more * 2}", SORTS, host="a")
    fast = draw("host main | M0-------M1-------\nhost main | u-y-G----u-y-G----", SORTS, host="b")

    first = advise(context_of(slow, fast)).items[0]

    assert first.kind == "straggler"
    assert said[0] in first.actions[0]
    assert said[1] in first.reasoning


# Steps in which so many things start that starting them is all there is.
@pytest.mark.parametrize(
    ("work", "kind"), [("F" * 16, "small_batch"), ("z" * 20, "eager_dispatch"), ("Fv" * 12, "host_sync")],
    ids=["a program again and again", "single ops", "fetches"],
)  # fmt: skip
def test_steps_of_many_small_things(work: str, kind: str) -> None:
    sorts = {"z": Sort(K.EAGER_EXECUTE, "EagerExecute"), "v": Sort(K.PYTHON_CALL, "$array.py:615 _value")}
    marks = "".join(f"M{step}{'-' * (len(work) - 2)}" for step in range(2))

    found = dispatch.RULES[0](context_of(draw(f"host main | {marks}\nhost main | {work * 2}", sorts)))

    assert found is not None
    assert found.kind == kind


def test_what_starts_once_for_all_rounds_gains_at_least_what_starting_takes() -> None:
    marks = "".join(f"M{step}{'-' * 14}" for step in range(2))

    found = dispatch.RULES[0](context_of(draw(f"host main | {marks}\nhost main | {'F' * 32}")))

    assert found is not None
    # 16 starts of 1 ms become one, and predictions are off by 22 % of what is left and 8 % of what goes.
    assert (found.predicted_step_time_ms, found.least_step_time_ms) == (pytest.approx(1 + 0.22 + 0.08 * 15), 0.0)


@pytest.mark.parametrize(
    ("framework", "fetches", "computes", "kind"),
    [
        ("pytorch", 16, 40, "host_sync"),
        ("pytorch", 16, 120, "none"),  # 12 % of the step
        ("pytorch", 8, 20, "none"),  # a few are usual
        ("jax", 16, 40, "none"),  # they wait for what is computed anyway
    ],
)
def test_many_fetches_count_beside_computation_too(framework: str, fetches: int, computes: int, kind: str) -> None:
    sorts = {"i": Sort(K.OP, "aten::item")}
    marks = "".join(f"M{step}{'-' * (computes + fetches - 2)}" for step in range(2))
    trace = draw(f"host main | {marks}\nhost main | {2 * ('a' + '-' * (computes - 1) + 'i' * fetches)}", sorts)

    assert advise(replace(context_of(trace), framework=framework)).items[0].kind == kind


# -- thresholds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "said"), [(9, True), (33, True), (34, False)])
def test_input_counts_from_the_least_gain_that_is_advised(length: int, said: bool) -> None:
    picture = f"host main | M0{'-' * (length - 2)}\nhost main | Ia{'-' * (length - 2)}"

    assert (waiting.RULES[0](context_of(draw(picture))) is not None) == said


@pytest.mark.parametrize(("length", "said"), [(33, True), (34, False)])
def test_a_save_counts_from_the_least_gain_that_is_advised(length: int, said: bool) -> None:
    picture = f"host main | M0{'-' * (length - 2)}\nhost main | sa{'-' * (length - 2)}"

    assert (checkpoint.RULES[0](context_of(draw(picture, SORTS))) is not None) == said


def small_gain(context: Context, percent: float) -> Advice:
    """Advice that saves this much of each step."""
    gain = predict_without(context, context.period_ms * percent / 100, "little")
    return gain.advice(
        rule="x", kind="python_overhead", title="Do less", evidence="", actions=("log less",), tool="steps",
        confidence=1.0,
    )  # fmt: skip


@pytest.mark.parametrize(("percent", "kind"), [(2.9, "none"), (3.1, "python_overhead")])
def test_what_saves_less_than_three_percent_is_no_bottleneck(percent: float, kind: str) -> None:
    context = replace(context_of(draw("host main | M0--------\nhost main | a---------")), has_device=True)
    rule = Rule("x", 0.0, lambda context, _: small_gain(context, percent))

    assert [item.kind for item in advise(context, [rule]).items] == [kind]


@pytest.mark.parametrize(("percent", "kind"), [(19.0, "none"), (20.0, "python_overhead")])
def test_what_may_be_the_error_of_predictions_is_no_advice_and_no_remark(percent: float, kind: str) -> None:
    context = context_of(draw("host main | M0--------\nhost main | a---------"))
    rule = Rule("x", 0.0, lambda context, _: small_gain(context, percent))

    (item,) = advise(context, [rule]).items

    assert item.kind == kind
    assert "perhaps" not in item.evidence
    assert ("log less" in item.actions) == (kind != "none")  # else it would read as advice


@pytest.mark.parametrize(("step", "kind"), [("I--a------", "input_python"), ("a---------", "none")])
def test_a_small_gain_is_a_remark_unless_its_cause_takes_a_large_share_of_the_step(step: str, kind: str) -> None:
    item = Advice(
        id="x", kind="input_python", title="Do less", evidence="", predicted_speedup=1.18, actions=(), tool="steps",
        step_time_ms=10.0, predicted_step_time_ms=8.5, most_step_time_ms=10.0, change="input",
    )  # fmt: skip

    said = advise(context_of(draw(f"host main | M0--------\nhost main | {step}")), [Rule("x", 0.0, lambda *_: item)])

    assert [each.kind for each in said.items] == [kind]


@pytest.mark.parametrize(("most_ms", "is_said"), [(9.8, False), (8.6, True)])
def test_a_remark_is_what_gains_something_by_the_whole_of_its_range(most_ms: float, is_said: bool) -> None:
    item = Advice(
        id="x", kind="python_overhead", title="Do less", evidence="", predicted_speedup=1.18, actions=(), tool="steps",
        step_time_ms=10.0, predicted_step_time_ms=8.5, least_step_time_ms=6.0, most_step_time_ms=most_ms,
    )  # fmt: skip

    context = context_of(draw("host main | M0--------\nhost main | a---------"))
    (said,) = advise(context, [Rule("x", 0.0, lambda *_: item)]).items

    assert said.kind == "none"
    assert ('perhaps "Do less" (about 1.18x)' in said.evidence) == is_said


@pytest.mark.parametrize(("called", "is_told"), [("np.random.choice", True), ("self.forward", False)])
def test_without_steps_a_cheaper_form_of_what_takes_most_is_told(called: str, is_told: bool) -> None:
    context = context_of(draw("host main | a---------"))
    account = context.account
    assert account is not None and not context.has_steps
    line = Statement("pole.py", 23, called, 1.0)
    culprit = Culprit("sample", "pole.py", 22, None, None, 4, account.step_ps, statement=line)
    account = replace(account, rows=(replace(account.rows[0], culprit=culprit),))

    (said,) = advise(replace(context, hosts=[replace(context.hosts[0], account=account)]), []).items

    assert said.title == "Shorten `pole.py:22 sample`: it is 100 % of the capture"
    assert any("shuffle=False" in action for action in said.actions) == is_told


# -- ranking -------------------------------------------------------------------------------------------------------


def _rule(name: str, kind: str, gain_ms: float | None, yields_to: tuple[str, ...] = ()) -> Rule:
    """A rule that always says the same."""
    then = None if gain_ms is None else 10.0 - gain_ms
    item = Advice(
        id=name, kind=kind, title=name, evidence="", predicted_speedup=None, actions=(), tool="steps",
        step_time_ms=10.0, predicted_step_time_ms=then,
    )  # fmt: skip
    return Rule(name, 0.0, lambda context, threshold: item, yields_to=yields_to)


@pytest.fixture
def healthy() -> Context:
    return context_of(draw("host main | M0--------\nhost main | a---------"))


def names(context: Context, *rules: Rule) -> list[str]:
    """What is said, in order."""
    return [item.id for item in advise(context, rules).items]


def test_the_largest_gain_comes_first_and_unknown_gains_last(healthy: Context) -> None:
    rules = (_rule("a", "host_sync", 1.0), _rule("b", "low_precision", None), _rule("c", "straggler", 4.0))

    assert names(healthy, *rules) == ["c", "a", "b"]


def test_a_rule_that_raises_is_a_warning_and_the_others_answer(healthy: Context) -> None:
    def fails(context: Context, threshold: float) -> Advice | None:
        raise ZeroDivisionError("no steps")

    said = advise(healthy, [Rule("broken", 0.0, fails), _rule("a", "host_sync", 1.0)])

    assert [item.id for item in said.items] == ["a"]
    assert said.warnings == ("the rule 'broken' failed and was left out: ZeroDivisionError: no steps",)


def test_rules_have_names_of_their_own_and_classes_of_the_contract() -> None:
    assert len({rule.id for rule in own_rules()}) == len(own_rules())
    assert all(kind in CLASSES for rule in own_rules() for kind in rule.yields_to)


# -- rules of others -----------------------------------------------------------------------------------------------


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_module, "_registered", {})


@pytest.mark.usefixtures("registered")
def test_a_registered_rule_speaks_everywhere() -> None:
    rule = register(_rule("acme.cable", "python_overhead", 9.0))
    report = overview.merge([overview.partial(draw("host main | M0--------\nhost main | a---------"))])

    assert rule in advising.rules()[0]
    assert [item.id for item in report.advice] == ["acme.cable"]


@pytest.mark.usefixtures("registered")
def test_what_is_no_rule_or_takes_the_name_of_one_is_refused() -> None:
    with pytest.raises(UsageError, match="is not a rule"):
        register("look busy")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="is taken"):
        register(replace(_rule("a", "none", None), id=own_rules()[0].id))


_ENTRY_POINTS = """[stepscope.rules]
good = acme_cables:cable
bad = acme_cables:missing
text = acme_cables:words
"""


@pytest.mark.usefixtures("new_plugins")
def test_entry_points_give_rules_and_bad_ones_give_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "acme_cables-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-cables\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(_ENTRY_POINTS)
    (tmp_path / "acme_cables.py").write_text(
        "from stepscope.analysis.advice import Rule\n"
        "cable = Rule('acme.cable', 9.0, lambda context, threshold: None)\n"
        "words = 'hello'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    found, warnings = rule_module.rules()

    assert found[-1].id == "acme.cable"
    assert warnings == (
        "the rule 'bad' of acme_cables:missing cannot be loaded: module 'acme_cables' has no attribute 'missing'",
        "the entry point 'text' of acme_cables:words is not a rule",
    )


# -- the tool ------------------------------------------------------------------------------------------------------


def test_the_tool_says_what_the_overview_says_and_asks_others_for_details() -> None:
    picture, _, _ = DRAWN["iterators that take turns with the step"]
    partial = overview.partial(draw(picture, SORTS))
    asked = []

    def read(name: str) -> SimpleNamespace:
        asked.append(name)
        return SimpleNamespace(bottleneck={"suggestion": "cache it"})

    report = tool.merge([partial])
    finished = tool.finish(report, read)

    assert [row["class"] for row in report.rows] == [item.kind for item in overview.merge([partial]).advice]
    assert set(asked) == {"trust", "tf-data", "op-stats"}
    assert [action[:13] for action in finished.rows[0]["actions"][:2]] == ["put .prefetch", "cache it"]


def test_an_item_in_json() -> None:
    report = tool.merge([overview.partial(draw(DRAWN["a save"][0], SORTS))])
    (item,) = json.loads(json.dumps(report.to_dict()))["advice"]

    assert item | {"actions": item["actions"][:1]} == {
        "rank": 1,
        "id": "checkpoint.stall",
        "class": "checkpoint_stall",
        "title": "Save less often, or in the background",
        "evidence": "60.0 % of each step is saving or restoring state: `utils.py:3 save_weights`",
        "predicted_speedup": 2.5,
        "predicted_speedup_least": 1.87,
        "predicted_speedup_most": 3.79,
        "actions": ["save every few hundred steps, and in the background"],
        "tool": "steps",
        "confidence": 0.9,
        "step_time_ms": 10.0,
        "predicted_step_time_ms": 4.0,
        "reasoning": "10.00 -> 4.00 ms in the median step without saving; replay of 2 steps, off by 0.0 %; the cost of"
        " recording was subtracted from both; `stepscope prove` narrows the range: it measures the gain",
        "change": "checkpoint",
        "beside": None,
        "measured": None,
        "prove": "stepscope prove --ablate checkpoint SCRIPT",
        "rows": [{"tool": "overview", "key": "checkpoint", "value_ms": 6.0}],
        "intervals": [
            {"host": "host", "name": "$utils.py:3 save_weights", "start_ms": 4.0, "end_ms": 10.0},
            {"host": "host", "name": "$utils.py:3 save_weights", "start_ms": 14.0, "end_ms": 20.0},
        ],
        "docs": "advice.md#checkpoint_stall",
        "culprit": {
            "name": "save_weights", "file": "utils.py", "line": 3, "op": None, "layer": None, "calls": 1, "ms": 6.0,
            "inside": None, "statement": None,
        },
    }  # fmt: skip


# -- programs whose bottleneck is known ----------------------------------------------------------------------------

EXPECTED = {
    "tf_fit_augment": "input_preprocessing",
    "tf_file_per_record": "input_file_read",
    "tf_serial_decode": "input_no_prefetch",
    "tf_micro_batches": "small_batch",
    "tf_schedule_argument": "recompilation",
    "tf_save_every_step": "checkpoint_stall",
    "tf_convnet": "none",
    "jax_table_argument": "input_transfer",
    "jax_unjitted_step": "eager_dispatch",
    "jax_gradient_stats": "host_sync",
    "jax_python_report": "python_overhead",
    "jax_dense": "none",
    "torch_rank_zero_report": "straggler",
    "torch_reduce_each_tensor": "communication_bound",
    "torch_python_dataset": "input_python",
    "torch_zero_weight_teacher": "redundant_compute",
    "torch_memory_bank": "memory_churn",
    "torch_transformer": "none",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_first_advice_is_the_bottleneck_and_once_fixed_there_is_none(bottleneck_captures: Path, name: str) -> None:
    slow, fixed = (stepscope.load(bottleneck_captures / name / variant).overview() for variant in ("slow", "fixed"))

    assert slow.to_dict()["advice"][0]["class"] == EXPECTED[name]
    assert [item["class"] for item in fixed.to_dict()["advice"]] == ["none"]


def test_the_first_advice_on_a_fresh_slow_map_is_its_python_function(tf_slow_map_capture: FrameworkCapture) -> None:
    overview = stepscope.load(tf_slow_map_capture.logdir).overview().to_dict()

    assert overview["advice"][0]["class"] == "input_python"


def test_a_fresh_healthy_capture_has_no_advice_on_its_input(tf_healthy_capture: FrameworkCapture) -> None:
    skip_unless_regular(tf_healthy_capture)

    advice = stepscope.load(tf_healthy_capture.logdir).overview().to_dict()["advice"]

    assert [item["class"] for item in advice if item["class"].startswith("input_")] == []


def test_a_training_without_marks_of_its_gradients_is_not_taken_for_inference(corpus: Path) -> None:
    """PyTorch 1.9 records no `autograd::engine` events: only the ops' names tell that the model is trained."""
    first = stepscope.load(corpus / "torch-v100-resnet50-workers0").advice().to_dict()["advice"][0]

    assert first["actions"][0].endswith("DataLoader(num_workers=4 or more, persistent_workers=True)")
