"""What goes on while a file is read."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from stepscope.meanwhile import collecting_later


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
