"""Which tensors a capture says that ops take."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import numpy as np
import pytest
from draw import Sort, draw

from stepscope.capture.tracers import kineto_files
from stepscope.capture.tracers.torch_tensors import Tensors
from stepscope.model import EventKind, stat_names


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def test_lasting_tensors_are_told_from_those_that_come_and_go(torch: Any) -> None:
    weight, constant, hidden = torch.nn.Parameter(torch.ones(4, 4)), torch.ones(4, 4), torch.ones(4)
    gc.collect()  # they have been there for some time
    tensors = Tensors()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as native:
        product = torch.tril(weight.detach() @ constant)
        with torch.no_grad():
            weight.add_(product)
            torch.neg(constant[0], out=hidden)
            torch.abs(hidden)

    told = json.loads(tensors.describe(native, None) or b"{}")
    words = [text.split() for text in told["operands"] if text]

    kinds = ["".join(word[0] for word in each) for each in words]
    # detach, matmul of what it gives, tril, add_, select, neg into hidden, abs
    assert kinds == ["w", "tc", "t", "wt", "c", "tu", "u"]
    assert words[1][1] == words[4][0] and words[0][0] == words[3][0]
    assert words[1][0].partition(".")[2] == words[0][0].partition(".")[2]  # the storage of the weight
    assert len(told["ids"]) == len(told["operands"]) == len(set(told["ids"]))
    assert tensors.describe(native, 10**9) is None


@pytest.mark.parametrize("length", [8, 1 << 19])
def test_an_array_that_is_filled_again_is_told_from_one_that_stays(torch: Any, length: int) -> None:
    """Both are tensors that Python holds all the time, and PyTorch counts no write to either."""
    filled, stays = np.zeros(length, np.float32), np.zeros(length, np.float32)
    batch, table = torch.from_numpy(filled), torch.from_numpy(stays)
    own = torch.zeros(length)
    gc.collect()
    tensors = Tensors()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as native:
        torch.abs(batch)
        filled += 1
        torch.abs(table)
        own.numpy()[:] = 1  # from here on it is shared
        torch.abs(own)

    told = json.loads(tensors.describe(native, None) or b"{}")

    assert [text[:1] for text in told["operands"] if text][:2] == ["u", "c"]
    assert [text[:1] for text in told["operands"] if text][-1] == "u"


def test_no_tensor_is_kept_alive(torch: Any) -> None:
    tensor = torch.ones(3)
    gone = weakref.ref(tensor)
    gc.collect()
    tensors = Tensors()
    del tensor

    assert gone() is None and tensors.describe(object(), 0) is None


def test_no_mode_of_the_program_sees_that_tensors_are_asked(torch: Any) -> None:
    seen = []

    class Watching(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function)
            return function(*args, **(kwargs or {}))

    weight = torch.ones(4, 4)
    gc.collect()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as native:
        tensors = Tensors()
        torch.tril(weight)
    with Watching():
        Tensors()
        told = tensors.describe(native, None)

    assert told is not None and seen == []


def test_what_is_told_becomes_a_stat_of_the_ops() -> None:
    drawn = draw("host main | a5-- b3-- c4--", {x: Sort(EventKind.OP, x, "External id", {"x": 1}) for x in "abc"})
    trace = kineto_files.add_operands(drawn, {"ids": [3, 9, 5], "operands": ["w1.1", "t0.0", "w1.1 c2.2"]})

    rows = range(len(trace.events))
    told = {trace.name_of(row): trace.stats_of_event(row).get(stat_names.INPUT_TENSORS[0]) for row in rows}
    assert told == {"a": "w1.1 c2.2", "b": "w1.1", "c": None}
    assert all(trace.stats_of_event(row)["x"] == 1 for row in rows)
