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


_POOL = """
import random
import numpy as np
from stepscope.kernels import memory
file = np.asarray(memory.Memory(8 << 20))
begin = file.__array_interface__["data"][0]
lies_in_file = lambda array: begin <= array.__array_interface__["data"][0] < begin + (8 << 20)
pool = memory.ArrayPool()
pool.receive(memoryview(file.base))
with pool:
    early = np.full(1 << 17, 1)
    file = None
    reused = np.full(1 << 17, 2)
    small, large = np.arange(10), np.arange(2 << 20)
print(lies_in_file(early), lies_in_file(reused), lies_in_file(small), lies_in_file(large))
print(lies_in_file(np.arange(1 << 17)))

chosen = random.Random(1)
kept = {}
with pool:
    for number in range(2000):
        size = chosen.randrange(1 << 17)
        kept[number] = np.zeros(size)
        assert not kept[number].any()
        kept[number][:] = number
        if chosen.random() < 0.3:
            kept[number].resize(chosen.randrange(size, 2 * size + 1), refcheck=False)
            kept[number][size:] = number
        while len(kept) > 12:
            dropped = chosen.choice(list(kept))
            assert (kept.pop(dropped) == dropped).all()
    kept.clear()
    assert (early == 1).all() and (reused == 2).all()
    early = reused = None
    whole = np.zeros((8 << 20) - 4096, np.uint8)
    print(lies_in_file(whole), whole.any())
    whole = None
    late = np.full(1 << 17, 3)
del pool
print(int(late.sum()), lies_in_file(late))
"""


def test_arrays_of_a_pool_lie_in_what_a_file_was_read_into() -> None:
    """Only while the context lasts, once the file is dropped, and where they fit; all of it can be used again, and they
    hold what was written to them, also when the pool is gone."""
    done = subprocess.run([sys.executable, "-c", _POOL], capture_output=True, text=True)

    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "False True False False",
        "False",
        "True False",
        f"{3 << 17} True",
    ]
