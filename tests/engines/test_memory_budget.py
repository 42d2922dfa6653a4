"""A set size of memory: large columns lie on disk, and every result is the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import stepscope
from stepscope.analysis.registry import TOOLS
from stepscope.engines import spilling
from stepscope.engines.budget import MEMORY_OF_FILE, UNPACKED, default_budget, free_bytes, memory_of
from stepscope.errors import AccessError
from stepscope.formats.base import FORMATS
from stepscope.formats.session import HostFile
from stepscope.report.export import to_json

sessions = pytest.importorskip("bench.sessions", reason="the bench is in the checkout alone")

can_spill = pytest.mark.skipif(not spilling.is_possible(), reason="needs Linux")

UNKNOWN_FIELD = b"\x7a"  # number 15, with a length
PADDING = 40 << 20


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """160 thousand events, in a file that is too large for 64 MiB of memory: most of it is a field to be skipped."""
    path = tmp_path_factory.mktemp("large") / "host.xplane.pb"
    content = sessions.write(sessions.repeat_steps(sessions.drawn_rank(kernels=400), 400))
    length = bytes([PADDING & 127 | 128, PADDING >> 7 & 127 | 128, PADDING >> 14 & 127 | 128, PADDING >> 21])
    path.write_bytes(content + UNKNOWN_FIELD + length + bytes(PADDING))
    return Path(path)


class Ran(NamedTuple):
    """What a script printed: the hash of each report, the bytes in files at the end, and how often pages left."""

    reports: list[str]
    spilled: int
    trims: int


EVERY_TOOL = """
import hashlib, sys
from stepscope.kernels import memory
started = int(sys.argv[2]) and memory.keep_within("/var/tmp", int(sys.argv[2]))
import stepscope
from stepscope.analysis.registry import TOOLS
from stepscope.report.export import to_json
profile = stepscope.load(sys.argv[1])
for tool in TOOLS:
    print(tool.name, hashlib.sha256(to_json(profile.report(tool.name))).hexdigest())
print("spilled", *memory.figures())
"""


def run_every_tool(profile: Path, limit: int) -> Ran:
    environment = os.environ | {"STEPSCOPE_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", EVERY_TOOL, str(profile), str(limit)],
        capture_output=True, text=True, timeout=300, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *reports, last = done.stdout.splitlines()
    _, spilled, trims = last.split()
    return Ran(reports, int(spilled), int(trims))


@can_spill
def test_every_tool_gives_the_same_report_with_its_columns_on_disk(profile: Path) -> None:
    usual, kept = run_every_tool(profile, 0), run_every_tool(profile, 64 << 20)
    assert kept.reports == usual.reports
    assert len(kept.reports) == len(TOOLS)
    assert (usual.spilled, usual.trims) == (0, 0)
    assert kept.spilled > 1 << 20
    assert kept.trims > 0


@can_spill
def test_a_command_keeps_to_its_memory(profile: Path) -> None:
    environment = os.environ | {"STEPSCOPE_CACHE": "off"}
    command = [sys.executable, "-m", "stepscope", "overview", str(profile), "--format", "json"]
    usual = subprocess.run(command, capture_output=True, check=True, env=environment).stdout
    kept = subprocess.run([*command, "--memory", "64MiB"], capture_output=True, check=True, env=environment)
    assert kept.stdout == usual


@can_spill
def test_a_file_too_large_for_this_process_is_analysed_by_one_that_spills(profile: Path) -> None:
    expected = to_json(stepscope.load(profile).steps())
    loaded = stepscope.load(profile, memory="64MiB")
    assert to_json(loaded.overview()) == to_json(stepscope.load(profile).overview())
    assert to_json(loaded.steps()) == expected


@can_spill
def test_what_needs_the_trace_itself_says_so_before_it_starts(profile: Path) -> None:
    loaded = stepscope.load(profile, memory="64MiB")
    with pytest.raises(
        AccessError, match=r"it needs about 0.1 GB of memory, and 0.1 GB may be used; a command with --memory"
    ):
        loaded.trace()
    assert loaded.events_read == 0


def test_too_little_space_on_the_disk_is_said_before_it_starts(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: full)
    with pytest.raises(AccessError, match=r"it needs about 0.1 GB; 0.1 GB of memory may be used.*STEPSCOPE_SPILL_DIR"):
        stepscope.load(profile, memory="64MiB").trace()


BLOCKS = """
import random
import numpy as np
from stepscope.kernels import memory
assert memory.keep_within("/var/tmp", 30 << 20)
rng = random.Random(1)
blocks, expected = [], []
for turn in range(150):
    size = rng.choice([0, 10, 5000, (1 << 20) - 5, 1 << 20, 3_000_000, 9_000_000])
    choice = rng.random()
    if choice < 0.45 or not blocks:
        fill = rng.randrange(1, 256)
        blocks.append(np.full(size, fill, np.uint8))
        expected.append((size, fill))
    elif choice < 0.75:
        at = rng.randrange(len(blocks))
        old, fill = expected[at]
        blocks[at].resize(old + size, refcheck=False)
        blocks[at][old:] = fill
        expected[at] = (old + size, fill)
    else:
        at = rng.randrange(len(blocks))
        del blocks[at], expected[at]
    while sum(size for size, _ in expected) > 150 << 20:
        del blocks[0], expected[0]
for block, (size, fill) in zip(blocks, expected, strict=True):
    assert len(block) == size and (block == fill).all(), (len(block), size)
zeros = np.zeros(7_000_000, np.uint8)
assert not zeros.any()
in_files, trims = memory.figures()
assert in_files > 0 and trims > 0
blocks.clear()
del zeros, block
assert memory.figures()[0] == 0, memory.figures()
"""


@can_spill
def test_blocks_keep_what_is_in_them_while_they_grow_and_leave_memory() -> None:
    done = subprocess.run([sys.executable, "-c", BLOCKS], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


WRITERS = """
import sys, threading
import numpy as np
from stepscope.kernels import memory
assert memory.keep_within("/var/tmp", 64 << 20)
content = np.arange(1 << 20)
content.tofile(sys.argv[1])
wrong = []

def work(seed):
    for turn in range(5):
        column = np.empty(1 << 20, np.int64)
        left = memoryview(column).cast("B")
        with open(sys.argv[1], "rb", buffering=0) as file:
            while count := file.readinto(left):
                left = left[count:]
        column += seed
        column *= 3
        if not np.array_equal(column, (content + seed) * 3):
            wrong.append((seed, turn))

threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong
assert memory.figures()[1] > 0
"""


@can_spill
def test_threads_and_the_system_write_to_blocks_while_their_pages_leave(tmp_path: Path) -> None:
    """The process takes more than it may from the start, so pages leave it all the time."""
    words = [sys.executable, "-c", WRITERS, str(tmp_path / "content")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_program_of_a_user_does_not_spill() -> None:
    assert not spilling.is_allowed()


def test_a_folder_in_memory_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_SPILL_DIR", "/dev/shm")
    kind = spilling._file_system("/dev/shm")
    assert spilling.spill_folder() == ("/var/tmp" if kind == "tmpfs" else "/dev/shm")
    assert spilling._file_system("/") != ""


def test_what_a_file_needs_is_estimated_from_its_size() -> None:
    def need(path: str) -> int:
        return memory_of(HostFile("h", path, FORMATS[0], 1000))

    assert need("a.xplane.pb") == 1000 * MEMORY_OF_FILE
    assert need("a.trace.json.gz") == 1000 * MEMORY_OF_FILE * UNPACKED
    assert memory_of(HostFile("h", "s3://bucket/a", FORMATS[0], None)) == 0


def test_the_default_is_half_of_what_is_free() -> None:
    free = free_bytes()
    assert 0 < default_budget() <= free
    assert default_budget() == pytest.approx(free / 2, rel=0.5)  # others use memory meanwhile
