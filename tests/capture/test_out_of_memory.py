"""A program that runs out of memory: its profile holds what filled the memory, with the variable and the line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stepscope
from stepscope.capture import files
from stepscope.capture.out_of_memory import describe_failure, find_full_memory, is_out_of_memory
from stepscope.capture.recorder import RECORDER

pytestmark = pytest.mark.usefixtures("only_objects_of_this_test")

MESSAGES = [
    MemoryError(),
    RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes."),
]


class Loader:
    def __init__(self):
        self.cache = {}

    def load(self, at):
        self.cache[at] = np.ones((500, 1000))


def die_with(loader: Loader) -> None:
    for at in range(5):
        loader.load(at)
    raise MemoryError("Unable to allocate 9.0 GiB for an array")


LINE = Loader.load.__code__.co_firstlineno + 1


def rows_of(logdir: Path) -> list[tuple[object, ...]]:
    names = ("holder", "place", "count", "held_bytes", "kind", "dtype", "shape")
    report = stepscope.load(logdir).memory_profile().to_dict()
    return [tuple(row[name] for name in names) for row in report["full"] if row["holder"] == "cache"]


CACHE = ("cache", f"test_out_of_memory.py:{LINE}", 5, 20_000_000, "arrays", "float64", "[500, 1000]")


@pytest.mark.parametrize("error", MESSAGES, ids=["python", "cuda", "torch on a CPU", "xla"])
def test_the_frameworks_ways_to_say_it_are_known(error):
    assert is_out_of_memory(error)
    assert not is_out_of_memory(RuntimeError("the loss is not finite"))


def test_a_capture_that_the_exception_ends_says_what_filled_the_memory(tmp_path):
    with pytest.raises(MemoryError), stepscope.Profile(tmp_path):
        die_with(Loader())

    (said,) = [each for each in stepscope.load(tmp_path).overview().warnings if "out of memory" in each]
    assert said.startswith("the program ran out of memory: asked for 9.0 GiB in die_with (test_out_of_memory.py:")
    assert f"20 MB of arrays in `cache` (test_out_of_memory.py:{LINE})" in said
    assert rows_of(tmp_path) == [CACHE]


def test_a_profile_that_was_written_before_gets_it_when_the_program_dies(tmp_path, monkeypatch):
    with stepscope.Profile(tmp_path), stepscope.step(7):
        pass
    with pytest.raises(MemoryError) as died:
        die_with(Loader())
    monkeypatch.setattr(sys, "last_value", died.value, raising=False)

    assert RECORDER.keep_full_memory()
    assert RECORDER.keep_full_memory() is None, "once for an exception"

    session = stepscope.load(tmp_path)
    assert any(each.startswith("after this capture the program ran out of") for each in session.overview().warnings)
    assert rows_of(tmp_path) == [CACHE]
    assert [row["step"] for row in session.steps().to_dict()["rows"]] == [7]


@pytest.mark.skipif(sys.platform != "linux", reason="the system keeps no limit of addresses")
def test_under_a_limit_of_addresses_there_are_some_left_to_count_with(tmp_path):
    program = """
import resource, stepscope, numpy
with stepscope.Profile("logs"):
    objects = [[each] for each in range(1_000_000)]
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 4_000_000,) * 2)
    cache = []
    while True:
        cache.append(numpy.ones(100_000))
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ended.returncode == 1
    assert "MemoryError" in ended.stderr
    said = stepscope.load(tmp_path / "logs").overview().warnings
    assert any("of arrays in `cache`" in each for each in said), said


def test_without_a_profile_the_logdir_says_it(tmp_path):
    files.leave_reason(tmp_path, "the program ran out of memory: asked for 9.0 GiB", "keep less")

    with pytest.raises(stepscope.StepscopeError, match=r"ran out of memory: asked for 9\.0 GiB"):
        stepscope.load(tmp_path).overview()


def test_an_array_without_a_container_has_its_variable_and_what_views_share_counts_once():
    try:
        batch = np.ones((501, 1000))
        halves = [batch[:250], batch[250:]]
        raise MemoryError
    except MemoryError:
        full = find_full_memory()

    line = sys._getframe().f_code.co_firstlineno + 2
    assert full is not None
    (found,) = [text for text in full.facts.values() if "[501, 1000]" in str(text)]
    assert str(found).split("\t")[:2] == ["1", "4008000"]
    assert str(found).split("\t")[4:6] == ["batch", f"test_out_of_memory.py:{line}"]
    assert len(halves) == 2 and not any("[250, 1000]" in str(text) for text in full.facts.values())


def test_tensors_are_told_by_their_use():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(1000, 1000)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 1000)).sum().backward()
    optimizer.step()
    try:
        raise torch.OutOfMemoryError("out of memory")
    except RuntimeError:
        full = find_full_memory()

    assert full is not None
    uses = {str(text).split("\t")[6]: str(text).split("\t")[:2] for text in full.facts.values()}
    assert uses["parameters"] == ["1", "4000000"]
    assert uses["gradients"] == ["1", "4000000"]
    assert uses["state of the optimizer"] == ["2", "8000000"]


@pytest.mark.parametrize(("error", "said"), [
    (KeyError("lr"), "the program ended with KeyError: 'lr'"),
    (SystemExit(1), ""),
    (KeyboardInterrupt(), ""),
])  # fmt: skip
def test_the_exception_that_ended_the_program_is_told(error, said, monkeypatch):
    monkeypatch.delattr(sys, "ps1", raising=False)
    monkeypatch.setattr(sys, "last_value", error, raising=False)

    assert describe_failure() == said


def test_other_exceptions_leave_nothing():
    try:
        raise ValueError("out of memory")
    except ValueError:
        assert find_full_memory() is None
