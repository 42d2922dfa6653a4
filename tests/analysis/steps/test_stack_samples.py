"""Sampled stacks: which function a thread was in where its calls were not recorded."""

from __future__ import annotations

import numpy as np
import pytest
from draw import MS, K, draw

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.shown import cause_sentence
from stepscope.analysis.advice.rules import waiting
from stepscope.analysis.overview import overview_tool as overview
from stepscope.analysis.steps.stack_samples import main_function, spans_of_others
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace, PlaneKind, TraceBuilder

LIBRARY = "/usr/lib/python3.11/queue.py(154): get"
STEPS = 6
LENGTH = 20  # ms of a step: an op of 4, then Python


def sampled(*frames: tuple[str, int, int]) -> HostTrace:
    """Steps on a thread, and the sampled frames of the same thread in each of them: name, from, to in ms."""
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "thread 7 (python)", 7)
    samples = builder.line(
        builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE), "MainThread", 7
    )
    for step in range(STEPS):
        start = LENGTH * step
        main.event("train", start * MS, LENGTH * MS, K.STEP_MARK, {"step_num": step})
        main.event("aten::mm", start * MS, 4 * MS, K.OP)
        for name, begin, end in frames:
            samples.event(name, (start + begin) * MS, (end - begin) * MS, K.PYTHON_CALL)
    return builder.build()


def the_gaps() -> Spans:
    start = np.arange(STEPS) * LENGTH * MS
    return Spans.union(start + 4 * MS, start + LENGTH * MS)


def test_the_innermost_function_that_holds_most_of_the_time_is_named():
    trace = sampled(("$train.py:1 main", 0, 20), ("$train.py:9 report", 4, 16), ("$train.py:5 save", 16, 20))

    found = main_function(trace, 0, the_gaps())

    assert found is not None
    assert trace.name_of(found.frame) == "$train.py:9 report"
    assert (found.share, found.inside) == (0.75, -1)


def test_a_library_is_named_inside_the_function_that_calls_it():
    trace = sampled(("$train.py:9 report", 4, 20), (LIBRARY, 5, 20))

    found = main_function(trace, 0, the_gaps())

    assert found is not None
    assert [trace.name_of(found.frame), trace.name_of(found.inside)] == ["$train.py:9 report", LIBRARY]


def test_the_account_names_the_line_and_no_number_of_calls():
    account = account_of(sampled(("$train.py:9 report", 4, 20)))

    assert account is not None
    assert cause_sentence(account, account.rows[0]) == (
        "80.0 % of each step is Python of the loop: `train.py:9 report` (16.00 ms by samples of the stack)"
    )
    culprit = account.rows[0].culprit
    assert culprit is not None
    assert (culprit.file, culprit.line, culprit.calls) == ("train.py", 9, None)


@pytest.mark.parametrize(("name", "other_ms"), [("$train.py:9 next_batch", 0), ("$train.py:9 report", 16)])
def test_samples_show_when_functions_run_that_make_no_input(name: str, other_ms: int):
    assert spans_of_others(sampled((name, 4, 20)), 0).total == STEPS * other_ms * MS


def test_too_little_time_says_nothing_and_neither_does_a_trace_without_samples():
    short = Spans.union(np.array([4 * MS]), np.array([20 * MS]))

    assert main_function(sampled(("$train.py:9 report", 4, 20)), 0, short) is None
    assert main_function(draw("host main | M0--M1--"), 0, the_gaps()) is None
    assert spans_of_others(draw("host main | M0--M1--"), 0).total == 0


def sampled_beside_short_input() -> HostTrace:
    """Steps of 60 ms that wait 10 ms for a batch; the samples, 10 ms apart, meet its function in five of six steps, and
    place it 5 ms too early."""
    builder = TraceBuilder("host")
    builder.framework = "jax"
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "thread 7 (python)", 7)
    samples = builder.line(
        builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE), "MainThread", 7
    )
    samples.event("$train.py:45 step", 0, (60 * STEPS + 10) * MS, K.PYTHON_CALL)
    for step in range(STEPS):
        start = 60 * step + 10
        main.event("train", start * MS, 60 * MS, K.STEP_MARK, {"step_num": step})
        main.event("load batch", start * MS, 10 * MS, K.INPUT_WAIT)
        main.event("PjitFunction(train_step)", (start + 10) * MS, 50 * MS, K.OP)
        if step > 0:
            samples.event("$data.py:33 batches", (start - 5) * MS, 10 * MS, K.PYTHON_CALL)
            samples.event("$data.py:24 prepare", (start - 5) * MS, 10 * MS, K.PYTHON_CALL)
    return builder.build()


def test_the_function_that_makes_short_input_is_named_and_not_the_loop_around_it():
    account = account_of(sampled_beside_short_input())

    assert account is not None
    culprit = next(row.culprit for row in account.rows if row.cause == "input")
    assert culprit is not None
    assert (culprit.name, culprit.file, culprit.line) == ("prepare", "data.py", 24)


def test_advice_on_sampled_input_does_not_say_that_nothing_was_recorded():
    report = overview.merge([overview.partial(sampled_beside_short_input())])
    assert isinstance(report, overview.OverviewReport)

    first = waiting.RULE(report.context)

    assert first is not None
    assert first.culprit is not None
    assert first.culprit.file == "data.py"
    assert "not recorded is whether in Python or in compiled code" in first.evidence
    assert "how the input is prepared was not recorded" not in first.evidence
