"""Which large matrices of a program a capture finds to be nearly empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stepscope.capture.kept_arrays import (
    KeptArrays,
    describe_zero_gradients,
    find_empty,
    find_ignored,
    find_padded,
    find_zero_gradients,
)

KIND = "float32", (600, 500)


def _array(every: int) -> np.ndarray[Any, Any]:
    array = np.zeros(600 * 500, np.float32)
    array[::every] = 2.0
    return array.reshape(600, 500)


@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_a_matrix_that_is_nearly_empty(framework: str) -> None:
    module: Any = pytest.importorskip(framework)
    make = {
        "torch": lambda array: module.from_numpy(array),
        "jax": lambda array: module.numpy.asarray(array).block_until_ready(),
        "tensorflow": lambda array: module.constant(array),
    }
    arrays = [make[framework](_array(every)) for every in (300_000, 100, 10)]

    ((text, _),) = find_empty({KIND: arrays[:2]})
    assert text.split("\t")[:2] == ["float32", "600,500"] and 5 <= int(text.split("\t")[2]) < 20
    assert find_empty({KIND: arrays}) == []  # another of that size is not empty
    assert find_empty({("float32", (60, 50)): arrays[:1], ("int32", (600, 500)): arrays[:1]}) == []


def test_what_lies_elsewhere_or_not_in_one_piece_is_not_read() -> None:
    torch = pytest.importorskip("torch")
    whole = torch.from_numpy(_array(100))
    sparse, turned = whole.to_sparse(), whole.reshape(500, 600).t()

    assert find_empty({KIND: [sparse]}) == find_empty({KIND: [turned]}) == []
    assert find_empty({KIND: [object()]}) == []


def test_a_batch_that_is_made_anew_in_each_step_does_not_stay() -> None:
    torch = pytest.importorskip("torch")
    graph, batch = torch.from_numpy(_array(100)), torch.from_numpy(_array(200))
    stays, changes = find_empty({KIND: [graph], ("float32", (500, 600)): [batch.view(500, 600)]})
    batch.copy_(torch.from_numpy(_array(300)))

    assert (stays.is_as_before(), changes.is_as_before()) == (True, False)


def test_labels_that_a_loss_ignores() -> None:
    torch = pytest.importorskip("torch")
    words = torch.arange(1, 4 * 150 + 1).view(4, 150)
    labels = words.clone()
    labels[:, :120] = -100
    kind = "int64", (4, 150)

    assert find_ignored({kind: [words, labels]}) == {"ignored:0": "4,150\t800"}
    assert find_ignored({kind: [words], ("int64", (2, 3)): [labels[:2, :3]]}) == {}
    assert find_ignored({("int64", (20_000,)): [torch.full((20_000,), -100)]}) == {"ignored:0": "20000\t1000"}


def test_batches_that_are_filled_up() -> None:
    torch = pytest.importorskip("torch")
    tokens = torch.zeros(4, 100, dtype=torch.int64)
    for row, length in zip(tokens, (10, 40, 20, 30), strict=True):
        row[:length] = torch.arange(1, length + 1)
    types, whole, kind = torch.zeros_like(tokens), torch.arange(400).view(4, 100), ("int64", (4, 100))

    assert find_padded({kind: [tokens, types]}) == {"padded:0": "4,100\t40\t25"}
    assert find_padded({kind: [tokens.flip(1).contiguous()]}) == {"padded:0": "4,100\t40\t25"}  # at their starts
    assert find_padded({kind: [tokens, whole]}) == find_padded({kind: [types]}) == {}
    assert find_padded({("int64", (2, 100)): [tokens[:2]]}) == {}


def test_gradients_that_are_zeros_beside_others() -> None:
    torch = pytest.importorskip("torch")
    frozen, late, trained, plain = (torch.nn.Parameter(torch.ones(40, 50)) for _ in range(4))
    frozen.grad, trained.grad = -0.0 * torch.ones(40, 50), torch.ones(40, 50)
    late.grad = torch.zeros(40, 50)
    late.grad[39, 49] = 1.0  # not among the numbers that are read first
    kind, other = ("float32", (40, 50)), ("float32", (4,))

    found = find_zero_gradients({kind: [frozen, late, trained, plain, object()]})
    assert describe_zero_gradients(found) == {"zero_gradient:0": "40,50\t1"}
    assert find_zero_gradients({kind: [frozen, plain]}) == {}  # all gradients have been reset
    assert find_zero_gradients({other: [torch.zeros(4)], kind: [trained]}) == {}


def test_a_gradient_that_is_zeros_for_one_step_is_left_out() -> None:
    torch = pytest.importorskip("torch")
    frozen, at_times, trained = (torch.nn.Parameter(torch.ones(7)) for _ in range(3))
    frozen.grad, at_times.grad, trained.grad = torch.zeros(7), torch.zeros(7), torch.ones(7)
    arrays = KeptArrays()
    at_times.grad.add_(1.0)

    assert arrays.held["zero_gradient:0"] == "7\t1"
