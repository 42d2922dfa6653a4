"""Threads switch sooner while a profile is analysed, and the process is left as it was."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator

import pytest

from stepscope.kernels.observe import switch_interval
from stepscope.switching import SECONDS, switching_quickly


@pytest.fixture(autouse=True)
def usual() -> Iterator[float]:
    """The process's own interval, put back after the test."""
    before = sys.getswitchinterval()
    yield before
    sys.setswitchinterval(before)


def test_it_is_short_inside_and_as_before_outside(usual: float) -> None:
    with switching_quickly(), switching_quickly():
        assert switch_interval() == pytest.approx(SECONDS)
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_it_stays_short_until_the_last_thread_is_outside(usual: float) -> None:
    is_inside, may_leave = threading.Event(), threading.Event()

    def compute() -> None:
        with switching_quickly():
            is_inside.set()
            may_leave.wait(120)

    thread = threading.Thread(target=compute)
    with switching_quickly():
        thread.start()
        assert is_inside.wait(120)
    assert switch_interval() == pytest.approx(SECONDS)
    may_leave.set()
    thread.join()
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_a_shorter_one_is_kept_to_the_microsecond() -> None:
    sys.setswitchinterval(0.0001)  # which Python keeps as 99 microseconds
    kept = sys.getswitchinterval()
    for _ in range(5):
        with switching_quickly():
            assert switch_interval() == kept
    assert sys.getswitchinterval() == kept


def test_what_somebody_else_sets_meanwhile_stays() -> None:
    with switching_quickly():
        sys.setswitchinterval(0.02)
    assert sys.getswitchinterval() == pytest.approx(0.02)


def test_an_error_leaves_nothing_changed(usual: float) -> None:
    with pytest.raises(ZeroDivisionError), switching_quickly():
        raise ZeroDivisionError
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_the_program_reads_its_own_and_may_set_that_again(usual: float) -> None:
    with switching_quickly():
        read = sys.getswitchinterval()
        sys.setswitchinterval(0.02)
        meanwhile = sys.getswitchinterval()
        sys.setswitchinterval(read)
    assert (read, meanwhile) == (pytest.approx(usual), pytest.approx(0.02))
    assert switch_interval() == pytest.approx(usual)


def test_the_function_that_reads_it_stays_what_it_is() -> None:
    reader, before = sys.getswitchinterval, repr(sys.getswitchinterval)
    with switching_quickly():
        assert sys.getswitchinterval is reader
        assert repr(reader) == before
        with pytest.raises(TypeError, match="takes no arguments"):
            reader(1)  # type: ignore[call-arg]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:os.fork")  # JAX's, where another test has imported it
def test_a_forked_child_has_the_interval_of_the_program(usual: float) -> None:
    with switching_quickly():
        child = os.fork()
        if child == 0:
            os._exit(int(1e4 * switch_interval() + 0.5))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == round(1e4 * usual)
