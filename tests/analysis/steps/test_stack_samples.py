"""Sampled stacks: which function a thread was in where its calls were not recorded."""

from __future__ import annotations

import numpy as np
import pytest
from draw import MS, K, draw

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.account_text import cause_sentence
from stepscope.analysis.advice.rules import waiting
from stepscope.analysis.overview import overview_tool as overview
from stepscope.analysis.steps.stack_samples import main_function, spans_of_others
from stepscope.analysis.trace.spans import Spans
from stepscope.formats.spool.layout import SAMPLE_TIMES_PLANE
from stepscope.model import HostTrace, LineKind, PlaneKind, TraceBuilder

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


def test_the_line_of_a_script_that_calls_a_function_is_around_it_though_it_takes_less_time():
    lines = [("$train.py:20 <module>", 4, 12), ("$train.py:30 <module>", 12, 20), ("$train.py:9 report", 5, 20)]
    trace = sampled(*lines)
    start = np.arange(STEPS) * LENGTH * MS

    found = main_function(trace, 0, Spans.union(start + 11 * MS, start + 20 * MS))

    assert found is not None
    assert trace.name_of(found.frame) == "$train.py:9 report"


def test_the_account_names_the_line_and_no_number_of_calls():
    account = account_of(sampled(("$train.py:9 report", 4, 20)))

    assert account is not None
    assert cause_sentence(account, account.rows[0]) == (
        "80.0 % of each step is Python in the loop: `train.py:9 report`"
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


def sampled_beside_short_input(adapter: str = "$data.py:33 batches") -> HostTrace:
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
            samples.event(adapter, (start - 5) * MS, 10 * MS, K.PYTHON_CALL)
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

    first = waiting.RULES[0](report.context)

    assert first is not None
    assert first.culprit is not None
    assert first.culprit.file == "data.py"
    assert "in Python or compiled code" in first.evidence
    assert "how the input is prepared was not recorded" not in first.evidence


KERAS = (
    "/usr/lib/python3.11/site-packages/keras/src/trainers/data_adapters/py_dataset_adapter.py(257): _finite_generator"
)


def test_a_dataset_of_keras_is_told_of_its_own_workers_and_not_of_another_library():
    actions = []
    for adapter in (KERAS, "$data.py:33 batches"):
        report = overview.merge([overview.partial(sampled_beside_short_input(adapter))])
        assert isinstance(report, overview.OverviewReport)
        first = waiting.RULES[0](report.context)
        assert first is not None
        actions.append(first.actions)

    keras, other = actions
    # How many cores are free was not recorded: less work gains whatever they are, so that comes first.
    assert keras[0].startswith("make what `__getitem__` of the PyDataset does cheaper")
    assert keras[1].startswith("keras.utils.PyDataset(workers=N, use_multiprocessing=True")
    assert not any("thread" in action or "grain" in action for action in keras)
    assert not any("PyDataset" in action for action in other)


LOADER = "/usr/lib/python3.11/site-packages/torch/utils/data/dataloader.py(720): __next__"
COLLATE = "/usr/lib/python3.11/site-packages/torch/utils/data/_utils/collate.py(246): collate_tensor_fn"


def released(*stacks: tuple[str, ...]) -> HostTrace:
    """A loop in a module's own code, one step of 20 ms each and another: it waits 16 ms for input, in whose last ms the
    one sample of the step is taken, with some frames inside line 18 of the module; then it computes, at line 21, where
    the last step is sampled."""
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "thread 7 (python)", 7)
    samples = builder.line(
        builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE), "MainThread", 7
    )
    times = builder.line(builder.plane(SAMPLE_TIMES_PLANE, PlaneKind.CUSTOM_DEVICE), "samples", kind=LineKind.OTHER)
    for step, stack in enumerate((*stacks, None)):
        start = 20 * step
        main.event("train", start * MS, 20 * MS, K.STEP_MARK, {"step_num": step})
        main.event("next batch", start * MS, 16 * MS, K.INPUT_WAIT)
        main.event("aten::mm", (start + 16) * MS, 4 * MS, K.OP)
        times.event("sample", (start + 15 + 4 * (stack is None)) * MS, 0, K.OTHER)
        begin, length = max(start + 5, 15), 20 if step else 10  # up to halfway between two samples
        for name in ("$train.py:21 <module>",) if stack is None else ("$train.py:18 <module>", *stack):
            samples.event(name, begin * MS, length * MS, K.PYTHON_CALL)
    return builder.build()


MAKES, PUTS_TOGETHER = (LOADER, "$train.py:10 __getitem__"), (LOADER, COLLATE)


@pytest.mark.parametrize(
    ("stacks", "expected", "share"),
    [
        ((MAKES,) * 3 + (PUTS_TOGETHER,) * 5, "__getitem__", 0.375),  # a good part
        ((MAKES,) * 1 + (PUTS_TOGETHER,) * 7, "<module>", 1.0),  # hardly any
        ((MAKES,) * 3 + ((),) * 5, "<module>", 1.0),  # the loop's own code takes more
        ((MAKES,) * 3 + (PUTS_TOGETHER,) * 3 + (("$data.py:5 collate",),) * 2, "__getitem__", 0.375),
    ],
)
def test_a_loop_is_named_only_if_samples_hardly_show_a_function_that_it_calls(stacks, expected, share):
    trace = released(*stacks)
    start = np.arange(len(stacks)) * 20 * MS

    found = main_function(trace, 0, Spans.union(start, start + 16 * MS))

    assert found is not None
    assert trace.name_of(found.frame).split(" ")[1] == expected
    assert found.share == pytest.approx(share, abs=0.06)  # the first and last sample stand for other lengths


def test_samples_count_where_they_were_taken_though_their_frames_last_longer():
    trace = released(*(MAKES,) * 6)  # one frame from the first sample to the last
    start = np.arange(6) * 20 * MS

    assert main_function(trace, 0, Spans.union(start, start + 16 * MS)) is not None
    assert main_function(trace, 0, Spans.union(start + 16 * MS, start + 20 * MS)) is None
