"""Functions of Python that are in compiled code, as far as samples tell.

calls     | Y--------------------|      a call of a function
samples   | call-----------------|      what they find its thread at
"""

from __future__ import annotations

import pytest

from stepscope.analysis.account.causes import Cause, event_causes
from stepscope.analysis.account.compiled_code import compiled_calls, compiled_time
from stepscope.formats.spool.layout import (
    EITHER,
    IN_CALL,
    INTERPRETING_PLANE,
    QUEUED_NS,
    RAN_NS,
    RUNS_PYTHON,
    SAMPLE_TIMES_PLANE,
    USAGE_PLANE,
)
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder
from stepscope.vocabulary.python import PLAIN

MS = 10**9


def _trace(*found: str, each_ms: int = 20, calls: int = 10) -> HostTrace:
    """A thread with calls of one function, and what samples find in each of them in turn."""
    builder = TraceBuilder("host")
    builder.framework = PLAIN
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST, -1), "MainThread", kind=LineKind.THREAD)
    samples = builder.line(
        builder.plane(INTERPRETING_PLANE, PlaneKind.CUSTOM_DEVICE), "MainThread", kind=LineKind.OTHER
    )
    for at in range(calls):
        begin = at * each_ms * MS
        line.event("$train.py:1 work", begin, each_ms * MS, EventKind.PYTHON_CALL)
        samples.event(found[at % len(found)], begin, each_ms * MS, EventKind.OTHER)
    return builder.build()


@pytest.mark.parametrize(
    ("found", "compiled"),
    [((IN_CALL,), 10), ((IN_CALL, RUNS_PYTHON), 0), ((RUNS_PYTHON,), 0), (("either",), 0)],
    ids=["a product of NumPy", "a loop with long calls", "a loop", "not known"],
)
def test_functions_in_compiled_code(found: tuple[str, ...], compiled: int) -> None:
    trace = _trace(*found)

    assert len(compiled_calls(trace, 0)) == compiled
    assert set(event_causes(trace)[trace.events.kind == EventKind.PYTHON_CALL].tolist()) == {
        int(Cause.HOST_COMPUTE if compiled else Cause.PYTHON)
    }


def test_short_calls_are_python_though_samples_find_calls_in_them() -> None:
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST, -1), "MainThread", kind=LineKind.THREAD)
    samples = builder.line(
        builder.plane(INTERPRETING_PLANE, PlaneKind.CUSTOM_DEVICE), "MainThread", kind=LineKind.OTHER
    )
    for at in range(5000):
        line.event("$train.py:1 square", at * MS // 50, MS // 50, EventKind.PYTHON_CALL)
    samples.event(IN_CALL, 0, 100 * MS, EventKind.OTHER)

    assert len(compiled_calls(builder.build(), 0)) == 0


def test_without_samples_nothing_is_said() -> None:
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST, -1), "MainThread", kind=LineKind.THREAD)
    line.event("$train.py:1 work", 0, 200 * MS, EventKind.PYTHON_CALL)

    assert len(compiled_calls(builder.build(), 0)) == 0


def _sampled(found: str, ran_ms: int | None = None) -> HostTrace:
    """Steps of 10 ms in which nothing was recorded, a sample each ms, which shows `main` at what `found` says; `ran_ms`
    is what the thread used of the processors in each, None where that was not recorded."""
    builder = TraceBuilder("host")
    thread = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python", 7, kind=LineKind.THREAD)
    frames = builder.line(
        builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE), "MainThread", 7
    )
    samples = builder.line(builder.plane(INTERPRETING_PLANE, PlaneKind.CUSTOM_DEVICE), "MainThread", 7)
    times = builder.line(builder.plane(SAMPLE_TIMES_PLANE, PlaneKind.CUSTOM_DEVICE), "samples")
    frames.event("$train.py:1 main", 0, 60 * MS, EventKind.PYTHON_CALL)
    names = {"c": IN_CALL, "e": EITHER, "p": RUNS_PYTHON}
    used = builder.line(builder.plane(USAGE_PLANE, PlaneKind.CUSTOM_DEVICE), "MainThread", 7)
    for step in range(6):
        thread.event("train", 10 * step * MS, 10 * MS, EventKind.STEP_MARK, {"step_num": step})
        if ran_ms is not None:
            stats = {RAN_NS: ran_ms * 10**6, QUEUED_NS: 0}
            used.event("usage", 10 * step * MS, 10 * MS, EventKind.OTHER, stats)
        for at, what in enumerate(found):
            samples.event(names[what], (10 * step + at) * MS, MS, EventKind.OTHER)
            times.event("sample", (10 * step + at) * MS + MS // 2, 0, EventKind.OTHER)
    return builder.build()


@pytest.mark.parametrize(
    ("found", "compiled_ms"),
    [("cccccccccc", 60), ("ccceeeeeee", 60), ("eeeeeeeeee", 0), ("ccccceeepp", 0)],
    ids=["products", "products and long calls", "calls that may be short", "a loop of Python"],
)
def test_time_in_compiled_code_where_no_call_was_recorded(found: str, compiled_ms: int) -> None:
    assert compiled_time(_sampled(found), 0).total / MS == pytest.approx(compiled_ms, abs=1)


@pytest.mark.parametrize(("ran_ms", "compiled_ms"), [(10, 60), (0, 0)], ids=["computes", "sleeps"])
def test_a_function_that_sleeps_in_its_calls_is_in_no_compiled_code(ran_ms: int, compiled_ms: int) -> None:
    assert compiled_time(_sampled("cccccccccc", ran_ms), 0).total / MS == pytest.approx(compiled_ms, abs=1)
