"""The memory of a large XSpace file goes back to the system while the file is decoded; nothing is lost by it."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from xspace_build import event, event_name, line, plane, stat, stat_name

from stepscope.formats.xspace import lines, pages
from stepscope.formats.xspace.pages import Pages
from stepscope.formats.xspace.reader import read
from stepscope.kernels.memory import Memory
from stepscope.model import HostTrace

# Texts of events, which stand in lines, are in the table only if the reader kept them; names stand between lines.
FILE = b"".join(
    plane(
        f"/device:GPU:{number}",
        line("stream 1", *(event(1, at=at, stats=[stat(1, f"text {at % 40} of {number}")]) for at in range(3000))),
        event_name(1, f"kernel of {number}"),
        line("stream 2", *(event(1, at=at, stats=[stat(1, "x" * 3000)]) for at in range(9))),
        stat_name(1, "what"),
    )
    for number in range(3)
)


def read_handed_over() -> HostTrace:
    """The trace of `FILE`, in memory that only the reader has."""
    view = memoryview(Memory(len(FILE)))
    view[:] = FILE
    data = [view]
    del view
    return read((data.pop() for _ in range(1)), "f", "h")


def require_equal(one: HostTrace, other: HostTrace) -> None:
    for name in ("start_ps", "duration_ps", "type", "line", "kind"):
        assert np.array_equal(getattr(one.events, name), getattr(other.events, name)), name
    assert list(one.strings) == list(other.strings)
    last = len(one.events) - 1
    assert one.stats_of_event(last) == other.stats_of_event(last) == {"what": "x" * 3000}


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("_LARGE_FILE_BYTES", 1), ("_WORTH_BYTES", 4096), ("_LARGE_PAGE_BYTES", 4096)):
        monkeypatch.setattr(pages, name, size)
    monkeypatch.setattr(lines, "_PART_BYTES", 10_000)  # many parts, on several threads


def test_nobody_reads_what_was_released(small_pages: None, monkeypatch: pytest.MonkeyPatch) -> None:
    released = []

    def spoil(self: Pages, memory: Memory) -> None:
        released.append(self._end - self._begin)
        memoryview(memory)[self._begin : self._end] = b"\xff" * released[-1]
        self._begin = self._end

    monkeypatch.setattr(Pages, "_give_back", spoil)

    require_equal(read_handed_over(), read(FILE, "f", "h"))
    assert sum(released) > 0.8 * len(FILE)


@pytest.mark.skipif(sys.platform != "linux", reason="this system has no such call")
def test_whole_pages_go_back_to_the_system(small_pages: None, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = []
    give_back = Pages._give_back

    def watch(self: Pages, memory: Memory) -> None:
        begin, page = self._begin, pages._LARGE_PAGE_BYTES
        give_back(self, memory)
        gone.append(not any(memoryview(memory)[begin + 2 * page : max(self._begin - page, 0)]))

    monkeypatch.setattr(Pages, "_give_back", watch)

    require_equal(read_handed_over(), read(FILE, "f", "h"))
    assert gone
    assert all(gone)


def test_the_bytes_of_a_caller_are_left_alone(small_pages: None) -> None:
    view = memoryview(Memory(len(FILE)))
    view[:] = FILE

    read(view, "f", "h")  # type: ignore[arg-type]

    assert bytes(view) == FILE


def test_what_stands_between_ranges_is_kept(small_pages: None) -> None:
    memory = memoryview(Memory(40_000))
    memory[:] = b"x" * len(memory)
    kept = Pages(memory)

    kept.release(np.array([0, 9000, 30_000]), np.array([9000, 20_000, 40_000]))
    kept.release(np.array([39_000]), np.array([40_000]))

    assert set(memory[20_000:30_000]) == {ord("x")}
