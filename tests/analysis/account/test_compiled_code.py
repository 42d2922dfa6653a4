"""Functions of Python that are in compiled code, as far as samples tell.

calls     | Y--------------------|      a call of a function
samples   | call-----------------|      what they find its thread at
"""

from __future__ import annotations

import pytest

from stepscope.analysis.account.causes import Cause, event_causes
from stepscope.analysis.account.compiled_code import compiled_calls
from stepscope.formats.spool.layout import IN_CALL, INTERPRETING_PLANE, RUNS_PYTHON
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
