"""How a command's process gets its memory."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.kernels import memory

_PROGRAM = """
import mmap
from stepscope.kernels import memory
def large_pages_kb():
    kept = [line.split()[1] for line in open("/proc/self/smaps") if line.startswith("AnonHugePages:")]
    return sum(map(int, kept))
assert memory.prefer_large_heap() and memory.prefer_large_heap()
view = memoryview(memory.Memory(40 << 20))
view[:] = bytes(len(view))
del view
print(large_pages_kb())
asked = mmap.mmap(-1, 40 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
asked.madvise(mmap.MADV_HUGEPAGE)
before = large_pages_kb()
asked.write(bytes(len(asked)))
print(large_pages_kb() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another one")
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizer has a heap of its own")
def test_the_heap_keeps_what_is_freed_in_large_pages() -> None:
    if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        pytest.skip("this system has no large pages")

    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)

    in_heap, on_demand = map(int, done.stdout.split())
    if on_demand < 36 << 10:
        pytest.skip("this system has no large pages left, whoever asks for them")
    assert in_heap >= 36 << 10  # in KB


@pytest.mark.parametrize("size", [0, 1, 5 << 20])
def test_memory_is_as_long_as_was_asked_for_and_can_be_written(size: int) -> None:
    view = memoryview(memory.Memory(size))

    view[:] = b"x" * size

    assert (len(view), view.format, bytes(view)) == (size, "B", b"x" * size)


def test_released_memory_is_still_there_but_not_what_it_held() -> None:
    if sys.platform != "linux":
        pytest.skip("this system has no such call")
    block = memory.Memory(5 << 20)
    view = memoryview(block)
    view[:] = b"x" * len(view)

    block.release(1 << 20, 3 << 20)

    kept = [view[at] == ord("x") for at in (0, (1 << 20) - 1, 3 << 20, (5 << 20) - 1)]
    assert kept == [True] * 4
    assert not any(view[(1 << 20) + 4096 : (3 << 20) - 4096])


@pytest.mark.parametrize(("first", "stop"), [(-1, 2), (2, 1), (0, 11)])
def test_only_what_is_inside_can_be_released(first: int, stop: int) -> None:
    with pytest.raises(IndexError, match="no part of 10 bytes"):
        memory.Memory(10).release(first, stop)
