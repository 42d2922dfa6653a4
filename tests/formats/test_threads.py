"""Threads that the system refuses: the work is done all the same."""

import threading

import pytest

from stepscope.formats.threads import Workers
from stepscope.meanwhile import computing


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


@pytest.mark.usefixtures("no_threads")
def test_who_submits_a_task_does_it_where_no_thread_starts() -> None:
    with Workers(2) as workers:
        tasks = [workers.submit(lambda number=number: (number, threading.current_thread())) for number in range(3)]
        assert [task.result() for task in tasks] == [(number, threading.main_thread()) for number in range(3)]


@pytest.mark.usefixtures("no_threads")
def test_nothing_goes_on_meanwhile_where_no_thread_starts() -> None:
    done = []
    with computing(lambda: done.append("meanwhile")):
        done.append("here")
    assert done == ["here"]
