"""How a command's process gets its memory."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import ctypes
from stepscope.kernels import memory
assert memory.prefer_large_heap() and memory.prefer_large_heap()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
block = libc.malloc(8 << 20)
ctypes.memset(block, 1, 8 << 20)
libc.free(block)
kept = [line.split()[1] for line in open("/proc/self/smaps") if line.startswith("AnonHugePages:")]
print(sum(map(int, kept)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another one")
def test_the_heap_keeps_what_is_freed_in_large_pages() -> None:
    if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        pytest.skip("this system has no large pages")

    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)

    assert int(done.stdout) >= 6 << 10  # in KB
