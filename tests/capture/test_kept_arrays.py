"""Arrays that a program keeps from step to step, with what holds them and the line that adds to it."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import weakref
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import stepscope
from stepscope.capture import kept_arrays, running
from stepscope.capture.kept_arrays import KeptArrays, find_empty, find_same, shapes_of_numpy

pytestmark = pytest.mark.usefixtures("only_objects_of_this_test")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


class Trainer:
    def __init__(self, weights):
        self.weights, self.losses = weights, []

    def step(self):
        self.losses.append(self.weights * 2)


def test_arrays_of_an_object_have_its_attribute_and_the_line_that_appends(torch):
    trainer = Trainer(torch.ones(3, requires_grad=True))
    trainer.step()
    before = KeptArrays()
    for _ in range(7):
        trainer.step()
    line = Trainer.step.__code__.co_firstlineno + 1

    (kept,) = before.find().values()

    assert kept.split("\t") == [
        *("7", "84", "float32", "[3]", "losses", f"test_kept_arrays.py:{line}", "arrays with their graph")
    ]


def test_modules_with_very_many_variables_hide_no_object_of_a_function(torch, monkeypatch):
    """The tests of a whole suite took all the variables that were looked at."""
    large = ModuleType("large")
    vars(large).update({f"name_{number}": f"{number}" for number in range(5000)}, __file__=__file__)
    monkeypatch.setitem(sys.modules, "large", large)
    trainer, before = Trainer(torch.ones(3, requires_grad=True)), KeptArrays()
    for _ in range(7):
        trainer.step()

    (kept,) = before.find().values()

    assert "losses" in kept.split("\t")


def test_arrays_of_a_local_variable_have_its_name(torch):
    seen = {}
    before = KeptArrays()
    for at in range(7):
        seen[at] = torch.zeros(2, 2)

    (kept,) = before.find().values()

    assert kept.startswith("7\t112\tfloat32\t[2, 2]\tseen\ttest_kept_arrays.py:")
    assert kept.endswith("\tarrays")


@pytest.mark.parametrize("record", [lambda loss: (loss, 1), lambda loss: {"loss": loss}], ids=["tuple", "dict"])
def test_arrays_in_what_a_list_holds_have_the_name_of_the_list(torch, record):
    history, before = [], KeptArrays()
    for _ in range(7):
        history.append(record(torch.zeros(4)))

    (kept,) = before.find().values()

    assert kept.startswith("7\t112\tfloat32\t[4]\thistory\ttest_kept_arrays.py:")


def test_arrays_that_are_made_anew_in_each_step_are_not_kept(torch):
    state = [torch.zeros(5) for _ in range(9)]
    before = KeptArrays()
    for _ in range(7):
        state = [each + 1 for each in state]

    assert before.find() == {}


def test_a_list_of_another_length_in_each_step_keeps_nothing(torch):
    moves = [torch.zeros(5) for _ in range(8)]
    before = KeptArrays()
    moves = [torch.zeros(5) for _ in range(20)]

    assert before.find() == {}
    assert len(moves) == 20


def test_looking_at_variables_does_not_keep_them(torch):
    kept, before = [], KeptArrays()
    for _ in range(7):
        kept.append(torch.zeros(6))
    before.find()
    kept.clear()

    after = KeptArrays()
    assert not after.find()
    assert not [kind for kind in after._before if kind[1] == (6,)]


def test_a_function_that_was_looked_at_while_it_ran_ends_with_its_variables(torch):
    """Its frame was kept by one that held itself, until the garbage collector came."""

    def train():
        trainer = Trainer(torch.ones(3))
        held.append(weakref.ref(trainer))
        KeptArrays().find_last()

    held: list[Any] = []
    gc.disable()
    try:
        train()
        assert held[0]() is None
    finally:
        gc.enable()


def test_what_a_function_kept_that_has_returned_is_known_from_the_last_look(torch, monkeypatch):
    before = KeptArrays()

    def train():
        history = [torch.zeros(7) for _ in range(8)]
        before.look()
        return len(history)

    train()
    gc.collect()
    assert before.find_last() == {}  # this test still runs, and keeps nothing

    monkeypatch.setattr(kept_arrays, "frames_of_program", list)
    (kept,) = before.find_last().values()
    assert kept.startswith("8\t224\tfloat32\t[7]\thistory\t")


def test_what_only_a_graph_holds_has_the_name_of_its_results(torch):
    weights, losses, before = torch.ones(3, requires_grad=True), [], KeptArrays()
    for _ in range(7):
        hidden = weights * 2
        losses.append(hidden.pow(2).sum())
    del hidden

    kept = [each.split("\t")[3:5] for each in before.find().values()]

    assert sorted(kept) == [["[3]", "losses"], ["[]", "losses"]]


def test_only_young_objects_are_looked_at_until_the_garbage_collector_makes_some_old(torch, monkeypatch):
    asked, list_objects = [], kept_arrays.list_objects

    def list_asked(types, generation=None, most=0):
        asked.append(generation)
        return list_objects(types, generation, most)

    before, kept = KeptArrays(), []
    monkeypatch.setattr(kept_arrays, "list_objects", list_asked)

    before.find()
    assert asked == [0, 1]

    gc.collect()
    kept += [torch.zeros(8) for _ in range(7)]
    (found,) = before.find().values()
    assert asked[2:] == [None]
    assert found.startswith("7\t")


def test_looking_runs_no_code_of_the_program_and_leaves_its_variables_alone(torch):
    """`locals()` is one dict for each call of a function, before Python 3.13; others fill it by asking the frame."""
    touched = []

    class Careful(list):
        def __getattribute__(self, name):
            touched.append(name)
            return super().__getattribute__(name)

        def __reversed__(self):
            touched.append("__reversed__")
            return super().__reversed__()

    def train(rate=0.1):
        names = locals()
        kept, before = Careful(), KeptArrays()
        kept += [torch.zeros(11) for _ in range(7)]
        touched.clear()
        (found,) = before.find().values()
        return names, found

    names, found = train()

    assert names.keys() == {"rate", "Careful", "torch", "touched"}
    assert touched == []
    assert "\tkept\t" in found


def test_tensors_may_be_swapped_and_modes_see_nothing_while_arrays_are_counted(torch):
    from torch.overrides import TorchFunctionMode

    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    one, other = torch.zeros(3), torch.ones(3)
    with Mode():
        before = KeptArrays()
        before.find()
    torch.utils.swap_tensors(one, other)

    assert seen == []
    assert one.tolist() == [1, 1, 1]


def test_a_capture_that_another_thread_starts_lists_no_objects_beside_the_running_step(torch, tmp_path, monkeypatch):
    """TensorFlow's program failed in one of fifty captures over the network: "Error while creating shape"."""
    counted = []
    monkeypatch.setattr(running, "KeptArrays", lambda: counted.append("counted"))
    stepscope.start(tmp_path)
    stepscope.stop(save=False)
    assert counted == ["counted"]

    run_in_thread(stepscope.start, tmp_path)
    stepscope.stop(save=False)
    assert counted == ["counted"]


def run_in_thread(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


def test_memory_that_is_freed_while_it_is_looked_at_is_no_end_of_the_program():
    class Donated:
        def devices(self):
            return [SimpleNamespace(platform="cpu")]

        def is_ready(self):
            return True

        def unsafe_buffer_pointer(self):
            return 8  # nothing is there

    assert find_empty({("float32", (1000, 1000)): [Donated()]}) == []


class Kept:
    """An array of JAX on a host, as far as it is asked."""

    dtype, shape, nbytes = "float32", (64, 4), 1024

    def __init__(self, numbers):
        self.numbers = numbers

    def devices(self):
        return [SimpleNamespace(platform="cpu")]

    def is_ready(self):
        return True

    def unsafe_buffer_pointer(self):
        return self.numbers.ctypes.data


def test_arrays_that_hold_something_else_by_then_are_not_the_same():
    numbers, others = np.zeros((64, 4), np.float32), np.ones((64, 4), np.float32)
    (same,) = find_same({("float32", (64, 4)): [Kept(numbers), Kept(others)]})

    assert (same.text, same.is_as_before()) == ("64,4\t2", True)
    numbers += 1
    assert not same.is_as_before()


def test_tensors_that_are_written_by_then_are_not_the_same():
    torch = pytest.importorskip("torch")
    table, trained = torch.ones(64, 4), torch.nn.Linear(4, 8)
    trained(table).sum().backward()
    groups = {("float32", (64, 4)): [table], ("float32", (8, 4)): [trained.weight]}

    (same,) = find_same(groups)  # what has a gradient is trained
    assert (same.kind, same.text) == ("same_tensors:", "64,4\t1")
    table += 0.0
    (written,) = find_same(groups)
    assert same.arrays != written.arrays


def test_shapes_that_an_array_of_the_loop_has_too_are_known():
    batch, rest = np.zeros((8, 3)), {"x": np.zeros((5, 3))}
    found = shapes_of_numpy([inspect.currentframe()])

    assert {batch.shape, rest["x"].shape} <= found
