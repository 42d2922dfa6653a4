"""The log of a thread's calls: what is kept of calls that start, pause and end, by a clock that is read at each."""

from __future__ import annotations

import _thread
import itertools
import sys
import time

import pytest
from collectors import collecting_at_each_object

from stepscope.kernels.calls import CallLog


def f() -> None: ...
def g() -> None: ...


CODES = {"f": f.__code__, "g": g.__code__}


def kept(events: str, least_ns: int = 0, most_depth: int = 9) -> list[tuple[str, int, int]]:
    """Name, start and end of each call kept.  `f` starts a call of f, `f.` ends one; the clock ticks at each."""
    log = CallLog(itertools.count(1).__next__, least_ns, most_depth)
    for event in events.split():
        (log.leave if event.endswith(".") else log.enter)(CODES[event[0]])
    return [(code.co_name, begin, end) for code, begin, end in zip(*log.take(), strict=True)]


@pytest.mark.parametrize(
    ("events", "calls"),
    [
        ("f g g. f.", [("g", 2, 3), ("f", 1, 4)]),
        ("f f f. f.", [("f", 2, 3), ("f", 1, 4)]),
        ("f. g. f f.", [("f", 3, 4)]),  # calls that were open before
        ("f g g f.", [("f", 1, 4)]),  # ends that were missed
        ("f g.", []),
        ("f", []),
    ],
)
def test_a_call_is_kept_when_it_ends(events: str, calls: list[tuple[str, int, int]]) -> None:
    assert kept(events) == calls


def test_short_and_deep_calls_are_left_out() -> None:
    assert kept("f g g. g g. f.", least_ns=2) == [("f", 1, 6)]
    assert kept("f g f f. g. f.", most_depth=2) == [("g", 2, 5), ("f", 1, 6)]


def test_what_was_taken_is_gone_and_calls_go_on() -> None:
    log = CallLog(itertools.count(1).__next__, 0, 999)
    for _ in range(200):
        log.enter(CODES["f"])
    for _ in range(100):
        log.leave(CODES["f"])

    assert log.calls == 200
    assert len(log) == len(log.take()[0]) == 100
    assert log.take() == ([], [], [])
    log.leave(CODES["f"])
    assert log.take()[1:] == ([100], [301])


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there the interpreter has sys.monitoring")
def test_the_interpreters_hook_ends_itself_with_the_recording() -> None:
    log = CallLog(itertools.count(1).__next__, 0, 9)
    log.install()
    f()
    log.recording = False
    f()

    assert sys.getprofile() is None
    assert [code.co_name for code in log.take()[0]] == ["f"]


def test_a_clock_that_fails_ends_the_recording_and_not_the_program() -> None:
    def fail() -> int:
        raise OSError

    log = CallLog(fail, 0, 9)
    log.install()
    f()
    sys.setprofile(None)

    assert not log.recording


def test_the_hook_goes_with_the_last_call_of_a_thread() -> None:
    """What the interpreter does after it, at the program's end, may be done with an exception that nobody handles."""
    log = CallLog(itertools.count(1).__next__, 0, 9)
    references = sys.getrefcount(log)
    installed = []

    def thread() -> None:
        log.install()
        installed.append(sys.getrefcount(log) > references)
        f()

    _thread.start_new_thread(thread, ())
    while not installed or sys.getrefcount(log) > references:
        time.sleep(0.01)

    assert installed == [True]
    assert [code.co_name for code in log.take()[0]] == ["f"]


def test_calls_that_end_while_the_log_is_taken_are_kept_once() -> None:
    """Whenever an object is made the collector may run, in it code of the program, and other threads meanwhile."""
    log = CallLog(itertools.count(1).__next__, 0, 9)

    def call_often() -> None:
        for _ in range(1000):
            log.enter(CODES["f"])
            log.leave(CODES["f"])

    call_often()
    with collecting_at_each_object(call_often):
        taken = log.take()
    taken = [one + other for one, other in zip(taken, log.take(), strict=True)]

    assert log.calls > 1000
    assert [len(each) for each in taken] == 3 * [log.calls]
    assert [*itertools.chain(*zip(*taken[1:], strict=True))] == [*range(1, 2 * log.calls + 1)]
