"""Functions that a step could leave out: who they are, what lies inside, and of which kind that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from draw import MS, Sort, draw
from reporting import context_of
from sampling import sampled_thread

from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.account.model import model_of
from stepscope.analysis.account.statements import Statement
from stepscope.analysis.advice import advise
from stepscope.analysis.advice.rules.lines import (
    actions_of,
    is_model,
    is_needed,
    kind_of,
    percent_of_account,
    waits_for_result,
)
from stepscope.analysis.advice.rules.waiting import act_on_input
from stepscope.analysis.advice.whatif import REMOVE, Change, what_if
from stepscope.analysis.facts.lines import LineFacts, lines_of, usual_rows
from stepscope.analysis.facts.work import OpShare, WorkFacts, split_programs, training_program
from stepscope.formats.spool.layout import SAMPLE_TIMES_PLANE
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder

K = EventKind
SORTS = {
    "f": Sort(K.OP, "aten::mm", "Sequence number"),
    "b": Sort(K.BACKWARD, "autograd::engine::evaluate_function: MmBackward0", "Sequence number"),
    "u": Sort(K.ANNOTATION, "Optimizer.step#Adam.step"),
    "m": Sort(K.OP, "aten::mm"),
    "x": Sort(K.OP, "aten::exp"),
    "l": Sort(K.OP, "aten::lift_fresh"),
    "p": Sort(K.PYTHON_CALL, "$train.py:7 draw_preview"),
    "q": Sort(K.PYTHON_CALL, "$train.py:20 on_step"),
    "n": Sort(K.PYTHON_CALL, "$net.py:3 forward"),
    "t": Sort(K.PYTHON_CALL, "$train.py:30 sort_tokens"),
    "r": Sort(K.PYTHON_CALL, "$train.py:40 main"),
    "w": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "k": Sort(K.PYTHON_CALL, "$train.py:50 look_up"),
    "z": Sort(K.PYTHON_CALL, "$train.py:44 <module>"),
    "h": Sort(K.PYTHON_CALL, "$train.py:60 forward"),
}


def steps(*threads: str, count: int = 4, column_ps: int = MS) -> HostTrace:
    """Steps that are all the same, but for the number of the forward op, written as 1; marks are the program's."""
    length = max(map(len, threads))
    marks = "".join(f"M{at}".ljust(length, "-") for at in range(count))
    numbered = ["".join(text.replace("1", str(at)).ljust(length) for at in range(count)) for text in threads]
    rows = [f"host main | {text}" for text in (marks, *numbered)]
    return replace(draw("\n".join(rows), SORTS, column_ps=column_ps), framework="pytorch")


def names(trace: HostTrace) -> list[tuple[str, str]]:
    return [(line.name, line.owner) for line in lines_of(trace)]


def test_a_function_beside_the_training_is_a_candidate_and_the_model_is_none() -> None:
    """Its two forward passes are a part of it, whichever cause they have."""
    trace = steps("n--- b1--u-p---------", "f1--      m--- m---")

    (line,) = lines_of(trace)
    assert (line.name, line.file, line.line, line.ps / MS, line.calls) == ("draw_preview", "train.py", 7, 10, 1.0)
    assert [(op.name, op.calls) for op in line.ops] == [("aten::mm", 4)]
    assert kind_of(line) == "redundant_compute"


def test_of_nested_functions_the_outermost_counts_and_the_one_that_holds_nearly_all_of_it_names_it() -> None:
    trace = steps("f1--b1--u-q---------", "          p--------")

    assert names(trace) == [("draw_preview", "on_step")]


def test_what_holds_a_whole_step_or_its_training_is_none() -> None:
    assert names(steps("r--------------------", "f1--b1--u-x------")) == []


def test_a_line_outside_of_functions_is_one_only_where_it_computes_in_python() -> None:
    """Else the loop waits there for what its step started."""
    assert names(steps("f1--b1--u-z---------", "          xxxxxxxx--")) == []
    assert names(steps("f1--b1--u-z---------", "          x")) == [("<module>", "")]


def test_what_a_closure_of_the_optimizer_does_is_no_training() -> None:
    """As in Lightning, whose optimizer is given a function that holds both passes and all hooks."""
    assert names(steps("u-------------------", "f1--b1--p-------x-x-")) == [("draw_preview", "")]


def test_a_name_alone_makes_no_input() -> None:
    """A function whose name could make a batch, after the update: other ops may lie between it and the next step."""
    (line,) = lines_of(steps("f1--b1--u-t-------x-"))
    assert (line.is_input, kind_of(line)) == (False, "python_overhead")

    (line,) = lines_of(steps("f1--b1--u-t---------"))
    assert (line.is_input, kind_of(line)) == (True, "input_python")


def test_what_runs_while_the_loop_waits_for_its_batch_makes_it_whatever_its_name() -> None:
    """Its place in the step does not matter: here work lies between the wait and the training."""
    (line,) = lines_of(steps("w---------x-f1--b1--u-", " k-------"))

    assert (line.name, line.is_input, kind_of(line)) == ("look_up", True, "input_python")


def test_what_a_forward_pass_calls_is_a_part_of_the_model_whose_result_is_needed() -> None:
    """The same function beside the model is a candidate."""
    (inside,) = lines_of(steps("h-------b1--u-", "p---f1--", "m---"))
    (beside,) = lines_of(steps("h---p---b1--u-", "f1--m---"))

    assert (inside.name, inside.is_needed, is_model(inside)) == ("draw_preview", True, True)
    assert (beside.name, beside.is_needed, is_model(beside)) == ("draw_preview", False, False)


def test_python_within_a_layer_is_no_report() -> None:
    """As that which makes the same boxes in each step: what follows needs them."""
    trace = steps("n-------------------b1--u-", "f1--p---------------")
    first = advise(context_of(trace)).items[0]

    assert (first.title, first.kind) == ("Speed up draw_preview (train.py:7) or run it less often", "python_overhead")
    assert first.actions[0].startswith("if it computes the same in every step: once, before the loop")
    assert not any("metrics" in action for action in first.actions)


def test_advice_verdict_and_what_if_of_a_function_are_one_figure() -> None:
    trace = steps("f1--b1--u-p---------", "          m-- m---m-")
    first = advise(context_of(trace)).items[0]
    model = model_of(trace)
    assert model is not None
    found = what_if([model], [Change(REMOVE, "train.py:7")], lambda kind: []).figures

    assert (first.kind, first.culprit and first.culprit.place) == ("redundant_compute", ("draw_preview", "train.py", 7))
    assert first.predicted_speedup == found["predicted_speedup"] == 2.0


LINE = LineFacts("f", "a.py", 1, "", 1.0, 100 * MS, {}, [], 0.0, 0, 0, 0, 0.0, 0.0, False)


@pytest.mark.parametrize(("called", "is_told"), [("env.f", False), ("json.dumps", True)])
def test_the_loop_over_steps_is_not_told_to_be_faster_in_a_line_that_calls_a_function(
    called: str, is_told: bool
) -> None:
    """After compiled code that keeps the interpreter a sample shows the line behind it, that of the call."""
    context = context_of(draw("host main | M0--------M1--------\nhost main | r-------- r--------", SORTS))
    statement = Statement("train.py", 44, called, 0.8, loop=43)
    culprit = Culprit("main", "train.py", 40, None, None, None, 8 * MS, statement=statement, holds_steps=True)
    row = replace(context.pace.culprits["python"], culprit=culprit)
    host = replace(context.pace, culprits={"python": row}, lines=[LINE])

    advised = advise(replace(context, framework="pytorch", hosts=[host]))

    assert ("python.gaps" in [item.id for item in advised.items]) is is_told


# 160 rounds, each with an op on a whole map of 256 x 256 numbers
LARGE_ROUNDS: Mapping[str, object] = {"often": [OpShare("aten::exp", 160, 16 * MS)], "often_size": (256, 256)}


def test_rounds_that_work_on_large_arrays_are_not_told_to_be_done_at_once() -> None:
    context = replace(context_of(draw("host main | M0--------M1--------", SORTS)), framework="pytorch")
    draws = replace(LINE, causes={"host_compute": 90 * MS}, starts=600.0, feeds=True, **LARGE_ROUNDS)  # type: ignore[arg-type]

    (said,) = [each for each in actions_of(context, kind_of(draws), draws) if "round" in each]
    assert said.startswith("let each round do less: it starts `aten::exp` 80 times on 256 x 256, so that all rounds")
    assert not is_needed(context, draws)


@pytest.mark.parametrize(("file", "percent"), [("a.py", 40.0), ("b.py", None)])
def test_a_function_has_the_share_that_the_account_of_the_median_step_gives_it(
    file: str, percent: float | None
) -> None:
    """Which is more than that of all time, where a few long steps hold something else."""
    context = context_of(draw("host main | M0--------M1--------\nhost main | x---------x---------", SORTS))
    account = context.account
    assert account is not None
    culprit = Culprit("f", file, 1, None, None, 4, 4 * MS)
    account = replace(account, rows=(replace(account.rows[0], culprit=culprit),))

    assert percent_of_account(replace(context, hosts=[replace(context.hosts[0], account=account)]), LINE) == percent


def test_what_goes_over_far_more_rows_than_the_step_trains_on_is_said_though_its_result_is_needed() -> None:
    context = SimpleNamespace(work=SimpleNamespace(rows=64, ops=[]), per_step=float)
    draws = replace(LINE, causes={"host_compute": 90 * MS}, feeds=True, ops=[OpShare("aten::mul", 1, 60 * MS)])
    brief = replace(
        draws, goes_over=6_400, ops=[OpShare("aten::copy_", 1, 1 * MS)]
    )  # one observation, put into a tensor

    needed = [is_needed(context, replace(draws, goes_over=rows)) for rows in (0, 64, 6_400)]  # type: ignore[arg-type]
    assert [*needed, is_needed(context, brief)] == [True, True, False, True]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("percent", "starts", "needed"), [(60.0, 0.0, False), (60.0, 0.5, False), (60.0, 3.0, True), (40.0, 0.0, True)]
)
def test_what_starts_nothing_of_the_framework_and_takes_most_of_the_step_is_said_though_its_result_is_needed(
    percent: float, starts: float, needed: bool
) -> None:
    context = SimpleNamespace(work=SimpleNamespace(rows=64, ops=[1]), percent=lambda _: percent, quiet=1.0)
    draws = replace(LINE, causes={"host_compute": 90 * MS}, feeds=True, starts=starts)

    assert is_needed(context, draws) is needed  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("framework", "called", "asleep", "waits"),
    [
        ("jax", "float", 0.7, True),
        ("jax", "np.asarray", 0.7, True),
        ("jax", "float", 0.2, False),  # it works on many values
        ("jax", "requests.get", 0.7, False),
        ("pytorch", "float", 0.7, False),  # which computes on the thread that asks: it lacks a core
    ],
)
def test_a_function_that_waits_for_a_value_that_is_computed_is_nothing_to_leave_out(
    framework: str, called: str, asleep: float, waits: bool
) -> None:
    said = Statement("a.py", 3, called, 0.9)
    line = replace(LINE, causes={"python": 90 * MS}, asleep=asleep, statement=said, is_input=True)

    assert waits_for_result(SimpleNamespace(framework=framework), line) is waits  # type: ignore[arg-type]


def test_what_draws_numbers_is_not_done_once_and_kept() -> None:
    context = replace(context_of(draw("host main | M0--------M1--------", SORTS)), framework="pytorch")

    kept, anew = (act_on_input(context, "input_python", (), draws=draws) for draws in (False, True))
    assert [each for each in kept if each not in anew] == [
        "do the work of __getitem__ once, before training, and store tensors"
    ]


def test_rows_that_ops_go_over_are_those_that_take_half_of_their_time() -> None:
    sorts = {
        "s": Sort(K.OP, "aten::softmax", stats={"Input Dims": "[[50000],[]]"}),
        "i": Sort(K.OP, "aten::index", stats={"Input Dims": "[[32,4],[]]"}),
    }
    trace = draw("host main | M0----------\nhost main | s-----i---", sorts)

    assert usual_rows(trace, np.flatnonzero(trace.events.kind == K.OP)) == 50_000


def sampled(*shown: str) -> HostTrace:
    """Steps of 60 ms that train from 20 to 32 ms; a sample of the stack each 10 ms, from 5 ms on, shows `draw_preview`
    for `p`, `on_step` for `q`, and always `main`."""
    builder = TraceBuilder("host")
    thread = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python", 7, kind=LineKind.THREAD)
    plane = builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    frames, times = (
        builder.line(plane, "MainThread", 7),
        builder.line(builder.plane(SAMPLE_TIMES_PLANE, PlaneKind.CUSTOM_DEVICE), "samples"),
    )
    frames.event(SORTS["r"].name, 0, 60 * len(shown) * MS, K.PYTHON_CALL)
    for step, each in enumerate(shown):
        thread.event("train", 60 * step * MS, 60 * MS, K.STEP_MARK, {"step_num": step})
        for at, sort in ((20, SORTS["f"]), (24, SORTS["b"]), (28, SORTS["u"])):
            number = {sort.number: step} if sort.number else {}
            thread.event(sort.name, (60 * step + at) * MS, 4 * MS, sort.kind, number)
        for at, letter in enumerate(each):
            times.event("sample", (60 * step + 10 * at + 5) * MS, 0, K.OTHER)
            if letter != " ":
                frames.event(SORTS[letter].name, (60 * step + 10 * at) * MS, 10 * MS, K.PYTHON_CALL)
    return replace(builder.build(), framework="pytorch")


def stating(*stated: str, beside: tuple[tuple[int, int], ...] = ()) -> HostTrace:
    """Steps of 100 ms that train for 12 ms; from 20 ms on samples show `draw_preview`, each 10 ms in the statement that
    is named, and ops run beside that, in ms from and for."""
    builder = TraceBuilder("host")
    thread, frames, where, times = sampled_thread(builder)
    name = SORTS["p"].name
    frames.event(SORTS["r"].name, 0, 400 * MS, K.PYTHON_CALL)
    for step in range(4):
        begin = 100 * step
        thread.event("train", begin * MS, 100 * MS, K.STEP_MARK, {"step_num": step})
        for at, sort in ((0, SORTS["f"]), (4, SORTS["b"]), (8, SORTS["u"])):
            thread.event(sort.name, (begin + at) * MS, 4 * MS, sort.kind, {sort.number: step} if sort.number else {})
        for at, length in beside:
            thread.event("aten::mm", (begin + at) * MS, length * MS, K.OP)
        for at in range(10):
            times.event("sample", (begin + 10 * at + 5) * MS, 0, K.OTHER)
            if 0 <= at - 2 < len(stated):
                frames.event(name, (begin + 10 * at) * MS, 10 * MS, K.PYTHON_CALL)
                where.event(f"{name} {stated[at - 2]}", (begin + 10 * at) * MS, 10 * MS, K.OTHER)
    return replace(builder.build(), framework="pytorch")


def test_of_a_function_that_is_mostly_python_the_known_work_that_most_of_it_is_counts_before_a_longer_line() -> None:
    """Of 70 ms a copy takes 30 and a call of a network 40, of which an op takes 25."""
    (line,) = lines_of(stating(*["@9 copy.deepcopy"] * 3, *["@10 net"] * 4, beside=((52, 25),)))
    assert (line.name, line.share("python")) == ("draw_preview", 45 / 70)
    assert line.statement is not None
    assert (line.statement.line, line.statement.called) == (9, "copy.deepcopy")
    assert line.statement.share < 0.5


def test_where_no_line_holds_most_of_a_function_the_longest_are_its_parts() -> None:
    (line,) = lines_of(stating(*["@9"] * 2, *["@11 rng.choice"] * 3, *["@10 weight.sum", "@10"]))

    assert line.statement is None
    assert [(part.line, part.called, round(7 * part.share)) for part, _ in line.parts] == [
        (11, "rng.choice", 3),
        (9, "", 2),
        (10, "weight.sum", 2),
    ]


def test_a_function_that_most_samples_of_the_training_show_holds_it_however_little_it_is_of_the_function() -> None:
    assert names(sampled(*["qqqqqp"] * 6)) == [("draw_preview", "")]


def test_a_function_needs_samples_beside_the_training() -> None:
    assert names(sampled("   q  ", "   q  ", "  qq  ", *["      "] * 3)) == []
    assert names(sampled("   q  ", "   qq ", "   qq ", *["      "] * 3)) == [("on_step", "")]


def test_a_sample_amid_the_steps_that_does_not_show_a_function_tells_it_from_the_loop() -> None:
    """One at an edge does not: it may be of what runs before or after the loop."""
    assert names(sampled("qqqqqq", "qq qqq", "qqqqqq")) == [("on_step", "")]
    assert names(sampled("qqqqqq", "qqqqqq", "qqqqq ")) == []


@pytest.mark.parametrize(("training", "found"), [(["jit_update"], "jit_update"), ([], "jit_act")])
def test_of_many_programs_the_one_with_a_backward_pass_trains_however_long_others_are(
    training: list[str], found: str
) -> None:
    small = [OpShare(f"jit_{name}", 10, 1) for name in "abcdefgh"]
    work = WorkFacts(self_ps=108, modules=[OpShare("jit_act", 90, 70), OpShare("jit_update", 9, 30), *small])

    program = training_program(replace(work, training=training), is_named=False)

    assert program is not None and program.name == found


def test_of_two_programs_with_a_backward_pass_neither_can_be_left_out_where_no_name_says_which_trains() -> None:
    def beside(*names: str) -> list[str]:
        work = WorkFacts(modules=[OpShare(name, 9 - at, 50) for at, name in enumerate(names)])
        work = replace(work, training=[*names[:2]], multiplying=[*names])
        return [module.name for module in split_programs(work)[1]]

    assert beside("jit_plan", "jit_imitate", "jit_evaluate") == ["jit_evaluate"]
    assert beside("jit_plan", "jit_train_step") == ["jit_plan"]


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"causes": {"compile": 60 * MS, "launch": 40 * MS}}, "recompilation"),
        ({"causes": {"compile": 30 * MS, "launch": 45 * MS, "python": 25 * MS}}, "python_overhead"),
        ({"causes": {"launch": 60 * MS, "python": 40 * MS}, "starts": 600.0}, "eager_dispatch"),
        # What holds up nothing for half of its time: of small ops that is theirs, of large ones it says nothing.
        ({"causes": {"launch": 20 * MS, "python": 30 * MS}, "starts": 600.0}, "eager_dispatch"),
        ({"causes": {"launch": 20 * MS, "python": 30 * MS}, "starts": 60.0}, "python_overhead"),
        ({"causes": {"host_compute": 90 * MS}, "starts": 600.0, **LARGE_ROUNDS}, "redundant_compute"),
        ({"causes": {"host_compute": 90 * MS}, "starts": 600.0, **LARGE_ROUNDS, "often_size": (16, 16)},
         "eager_dispatch"),
        ({"causes": {"checkpoint": 90 * MS, "python": 10 * MS}}, "checkpoint_stall"),
        ({"causes": {"python": 60 * MS, "host_compute": 40 * MS}, "starts": 900.0, "fetches": 200.0,
          "fetches_ps": 50 * MS}, "host_sync"),
        ({"causes": {"host_compute": 90 * MS}, "heavy_ps": 50 * MS}, "redundant_compute"),
        ({"causes": {"host_compute": 90 * MS}, "moves_ps": 60 * MS}, "memory_churn"),
        ({"causes": {"python": 90 * MS, "host_compute": 10 * MS}, "starts": 60.0}, "python_overhead"),
        ({"causes": {"transfer": 20 * MS}, "moves_ps": 60 * MS, "copies_in": True}, "input_transfer"),
        ({"causes": {"python": 10 * MS, "checkpoint": 10 * MS, "contention": 80 * MS}}, "checkpoint_stall"),
        ({"causes": {"communication": 2 * MS}, "peers_ps": 80 * MS}, "communication_bound"),
        ({"causes": {"python": 2 * MS}, "waits_ps": 80 * MS}, "host_sync"),
    ],
)  # fmt: skip
def test_the_class_describes_what_takes_most_of_the_function(facts: Mapping[str, object], kind: str) -> None:
    assert kind_of(replace(LINE, **facts)) == kind  # type: ignore[arg-type]


def test_what_starts_small_ops_is_the_limit_that_its_advice_shortens() -> None:
    """Its events are computation; that is said as starting work, and the advice beside it is about nothing else."""
    trace = steps("f1--b1--u-p" + "-" * 240, " " * 11 + "x-- " * 60, column_ps=5_000_000)
    advised = advise(context_of(trace))

    assert (advised.verdict.name, advised.items[0].kind) == ("launch_bound", "eager_dispatch")
    assert advised.items[0].beside == ""
    assert not any("waiting for launches" in action for action in advised.items[0].actions)


def test_an_op_that_a_function_starts_many_times_is_to_be_started_once_for_all() -> None:
    """Here 60 times in a step, with Python around each; 30 times would be no loop over elements."""

    def actions(count: int) -> list[str]:
        trace = steps("f1--b1--u-p" + "-" * (4 * count), " " * 11 + "x   " * count)
        return [action for action in advise(context_of(trace)).items[0].actions if "one op for all rounds" in action]

    (said,) = actions(60)
    assert said.startswith("replace its loop by one op for all rounds, if they are independent, instead of `aten::exp`")
    assert actions(30) == []
