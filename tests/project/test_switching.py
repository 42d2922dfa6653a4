"""Threads switch sooner while a profile is analysed, and the process is left as it was."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from stepscope.switching import SECONDS, switching_quickly


@pytest.fixture(autouse=True)
def usual() -> Iterator[float]:
    """The process's own interval, put back after the test."""
    before = sys.getswitchinterval()
    yield before
    sys.setswitchinterval(before)


def test_it_is_short_inside_and_as_before_outside(usual: float) -> None:
    with switching_quickly(), switching_quickly():
        assert sys.getswitchinterval() == pytest.approx(SECONDS)
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
    assert sys.getswitchinterval() == pytest.approx(SECONDS)
    may_leave.set()
    thread.join()
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_a_shorter_one_is_kept_to_the_microsecond() -> None:
    sys.setswitchinterval(0.0001)  # which Python keeps as 99 microseconds
    kept = sys.getswitchinterval()
    for _ in range(5):
        with switching_quickly():
            assert sys.getswitchinterval() == kept
    assert sys.getswitchinterval() == kept


def test_what_somebody_else_sets_meanwhile_stays() -> None:
    with switching_quickly():
        sys.setswitchinterval(0.02)
    assert sys.getswitchinterval() == pytest.approx(0.02)


def test_an_error_leaves_nothing_changed(usual: float) -> None:
    with pytest.raises(ZeroDivisionError), switching_quickly():
        raise ZeroDivisionError
    assert sys.getswitchinterval() == pytest.approx(usual)
