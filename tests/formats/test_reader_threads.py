"""Tasks on other threads."""

from __future__ import annotations

import threading

import pytest

from stepscope.formats.threads import Workers


def test_tasks_are_done_and_their_results_kept() -> None:
    with Workers(2) as workers:
        tasks = [workers.submit(lambda at=at: at * at) for at in range(20)]  # type: ignore[misc]

        assert [task.result() for task in tasks] == [at * at for at in range(20)]


def test_tasks_run_side_by_side() -> None:
    first, second = threading.Event(), threading.Event()

    def meet(own: threading.Event, other: threading.Event) -> bool:
        own.set()
        return other.wait(60)

    with Workers(2) as workers:
        tasks = [workers.submit(lambda: meet(first, second)), workers.submit(lambda: meet(second, first))]

        assert [task.result() for task in tasks] == [True, True]


def test_an_error_is_raised_where_the_result_is_asked_for_and_the_other_tasks_are_done() -> None:
    done: list[int] = []
    with Workers(1) as workers:
        broken = workers.submit(lambda: [][0])
        workers.submit(lambda: done.append(1))

        with pytest.raises(IndexError):
            broken.result()

    assert done == [1]
