"""What goes on while a file is read and analysed."""

from __future__ import annotations

import contextvars
import gc
import threading
from collections.abc import Iterator

import pytest

from stepscope.formats.threads import Workers
from stepscope.meanwhile import collecting_later, computing


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


@pytest.fixture
def few_made() -> Iterator[None]:
    """Python looks for garbage as it does in a program; the tests keep their own objects out, and do it seldom."""
    usual = gc.get_threshold()
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*usual)
    gc.unfreeze()
    gc.freeze()


@pytest.mark.parametrize("on", [True, False])
def test_garbage_is_collected_again_once_the_last_file_is_read(on: bool) -> None:
    (gc.enable if on else gc.disable)()
    seen = []

    with collecting_later():
        with pytest.raises(ValueError, match="damaged"), collecting_later():
            raise ValueError("damaged")
        seen.append(gc.isenabled())

    assert [*seen, gc.isenabled()] == [False, on]


@pytest.mark.parametrize(("is_frozen", "generations"), [(False, []), (True, [0])])
def test_what_is_made_meanwhile_is_old_afterwards_unless_the_program_keeps_objects_out(
    is_frozen: bool, generations: list[int], few_made: None
) -> None:
    looked: list[int] = []

    def note(phase: str, facts: dict[str, int]) -> None:
        if phase == "start":
            looked.append(facts["generation"])

    gc.enable()
    if is_frozen:
        gc.freeze()
    with collecting_later():
        made: list[list[object]] = [[] for _ in range(5_000)]
        gc.callbacks.append(note)
    after: list[list[object]] = [[] for _ in range(10)]
    gc.callbacks.remove(note)

    assert looked == generations
    assert bool(gc.get_freeze_count()) == is_frozen
    assert (gc.is_tracked(made[0]), len(after)) == (True, 10)


def test_another_thread_works_in_the_same_context_and_its_errors_are_nobodys() -> None:
    place = contextvars.ContextVar("place", default="elsewhere")
    place.set("here")
    seen = []

    with computing(lambda: 1 // 0, lambda: seen.append((place.get(), threading.current_thread().name))):
        seen.append((place.get(), threading.current_thread().name))

    assert sorted(seen) == [("here", threading.current_thread().name), ("here", "stepscope-meanwhile")]


# -- threads that the system refuses: the work is done all the same ---------------------------------------------------


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
