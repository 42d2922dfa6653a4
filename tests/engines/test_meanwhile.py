"""What goes on while a file is read and analysed."""

from __future__ import annotations

import contextvars
import gc
import threading
from collections.abc import Iterator

import pytest

from stepscope.meanwhile import collecting_later, computing


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


@pytest.mark.parametrize("on", [True, False])
def test_garbage_is_collected_again_once_the_last_file_is_read(on: bool) -> None:
    (gc.enable if on else gc.disable)()
    seen = []

    with collecting_later():
        with pytest.raises(ValueError, match="damaged"), collecting_later():
            raise ValueError("damaged")
        seen.append(gc.isenabled())

    assert [*seen, gc.isenabled()] == [False, on]


def test_another_thread_works_in_the_same_context_and_its_errors_are_nobodys() -> None:
    place = contextvars.ContextVar("place", default="elsewhere")
    place.set("here")
    seen = []

    with computing(lambda: 1 // 0, lambda: seen.append((place.get(), threading.current_thread().name))):
        seen.append((place.get(), threading.current_thread().name))

    assert sorted(seen) == [("here", threading.current_thread().name), ("here", "stepscope-meanwhile")]
