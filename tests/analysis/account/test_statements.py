"""The statement that holds most of a function's time, by samples that say where in it the thread was."""

from __future__ import annotations

import numpy as np
from draw import MS, K
from sampling import sampled_thread

from stepscope.analysis.account.statements import (
    Statement,
    loop_around,
    loop_in,
    main_statement,
    statement_that_calls,
    takes_result,
)
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import observed_time
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace, TraceBuilder

STEPS = 6
MAKE, READ = "$train.py:9 make", "$data.py:3 read"


def sampled(statements: dict[str, str]) -> HostTrace:
    """Steps of 10 ms, a sample each ms, in which the function `make` runs.

    Args:
        statements: what the samples of a step show, outermost first, a character for each sample that shows it.
    """
    builder = TraceBuilder("host")
    thread, frames, where, times = sampled_thread(builder)
    frames.event(MAKE, 0, 10 * STEPS * MS, K.PYTHON_CALL)
    for step in range(STEPS):
        thread.event("train", 10 * step * MS, 10 * MS, K.STEP_MARK, {"step_num": step})
        for at in range(10):
            start = (10 * step + at) * MS
            times.event("sample", start + MS // 2, 0, K.OTHER)
            for name, samples in statements.items():
                if samples[at] != " ":
                    where.event(name, start, MS, K.OTHER)
    return builder.build()


def found(statements: dict[str, str]) -> Statement | None:
    trace = sampled(statements)
    return main_statement(trace, threads_of(trace).main, MAKE, observed_time(trace))


def test_the_line_that_most_samples_show():
    said = {f"{MAKE} @10 ": "xxx       ", f"{MAKE} @12 self.db.execute": "   xxxxxxx"}
    assert found(said) == Statement("train.py", 12, "self.db.execute", 0.7)


def test_no_line_holds_most():
    assert found({f"{MAKE} @10 ": "xxxxx     ", f"{MAKE} @12 ": "     xxxxx"}) is None


def test_calls_of_one_line_are_one_statement_and_its_call_is_the_one_that_takes_most_of_it():
    said = {f"{MAKE} @12 self.db.execute": "xx        ", f"{MAKE} @12 fetchone": "  xxxxxxxx"}
    assert found(said) == Statement("train.py", 12, "fetchone", 1.0)


def test_the_line_furthest_in_of_a_function_of_the_program_that_is_called_there():
    said = {"$train.py:1 main @30 make": "x" * 10, f"{MAKE} @12 read": "x" * 10, f"{READ} @5 open": " xxxxxxxx "}
    assert found(said) == Statement("data.py", 5, "open", 0.8)


def test_what_calls_the_function_is_no_statement_of_it():
    assert found({"$train.py:1 main @30 make": "x" * 10}) is None


def test_a_function_that_is_called_with_what_the_training_gives():
    loop = "$train.py:9 make"
    said = {
        f"{loop} @10 step to=11,12": "xxx       ",
        f"{loop} @11 update": "   xxxxxxx",
        "$update.py:3 update @4 ": "   xxxxxxx",
    }
    trace, line = sampled(said), threads_of(sampled(said)).main
    training = Spans.union(10 * MS * np.arange(STEPS), 10 * MS * np.arange(STEPS) + 3 * MS)

    assert takes_result(trace, line, "$update.py:3 update", training)
    assert not takes_result(trace, line, "$update.py:3 update", observed_time(trace) - training)


def test_the_loop_that_calls_a_function_is_none_over_steps():
    said = {
        "$train.py:1 main @20 label loop=18 to=21": "xxxxxxx   ",
        "$train.py:5 label @7 overlap loop=6 carries=boxes to=": "xxxxxxx   ",
        "$train.py:9 overlap @10 to=": "xxxxxxx   ",
        "$train.py:1 main @21 backward loop=18 to=": "       xxx",
    }
    trace = sampled(said)
    line, every = threads_of(trace).main, 10 * MS * np.arange(STEPS)
    training = Spans.union(every + 7 * MS, every + 10 * MS)

    assert loop_around(trace, line, "$train.py:9 overlap", training) == ("line 6 of label (train.py)", "boxes")
    assert loop_around(trace, line, "$train.py:5 label", training) == ("", "")


def test_the_loop_over_steps_is_nearly_all_of_them_and_one_at_an_edge_is_none():
    def is_of_steps(shown: str) -> bool:
        said = found({f"{MAKE} @10 work loop=9 to=": shown})
        return said is not None and said.is_of_steps

    assert [is_of_steps(shown) for shown in ("x" * 10, "xx  xxxxxx", " xxxxxxxx ")] == [True, False, False]


def test_of_two_calls_of_a_function_the_one_that_holds_some_time():
    said = {
        f"{MAKE} @20 teacher to=22": "xxxxx     ",
        f"{MAKE} @21 student to=22": "     xxxxx",
        "$net.py:3 forward @4 to=return": "xxxxxxxxxx",
    }
    trace, every = sampled(said), 10 * MS * np.arange(STEPS)
    line, spans = threads_of(trace).main, Spans.union(every, every + 4 * MS)

    assert statement_that_calls(trace, line, "$net.py:3 forward", spans) == (
        MAKE,
        Statement("train.py", 20, "teacher", 1.0),
    )
    assert statement_that_calls(trace, line, "$net.py:9 other", spans) is None


def test_a_loop_is_that_of_all_its_lines_and_needs_what_one_of_them_does():
    said = {
        f"{MAKE} @23 loop=22 to=24": "xxxx      ",
        f"{MAKE} @24 loop=22 carries=running to=25": "    xxxx  ",
        f"{MAKE} @30 to=return": "        xx",
    }
    trace = sampled(said)
    line, spans = threads_of(trace).main, observed_time(trace)

    loop = loop_in(trace, line, MAKE, spans)
    assert loop is not None and (loop.line, loop.carries, loop.needs) == (22, "", "running")
    assert loop_in(trace, line, "$data.py:3 read", spans) is None
