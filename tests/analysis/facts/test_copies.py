"""What asks for copies: the op furthest out of those around a copy that copy, and what is said of each kind."""

from __future__ import annotations

import numpy as np
from draw import MS, K

from stepscope.analysis.facts.work import sum_copies
from stepscope.model import HostTrace, LineKind, PlaneKind, TraceBuilder


def nested(*ops: tuple[str, ...]) -> HostTrace:
    """Ops of 1 ms after each other, each inside the one named before it."""
    builder = TraceBuilder("host")
    thread = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python", 7, kind=LineKind.THREAD)
    for at, names in enumerate(ops):
        for depth, name in enumerate(names):
            thread.event(name, at * MS + depth, MS - 2 * depth, K.OP)
    return builder.build()


def asked(*ops: tuple[str, ...]) -> dict[str, int]:
    """The ms of the innermost ops by what asks for them."""
    trace = nested(*ops)
    inner = {names[-1] for names in ops}
    rows = np.array([row for row in range(len(trace.events)) if trace.name_of(row) in inner], np.int64)
    found = sum_copies(trace, rows, np.full(len(rows), MS, np.int64))
    return {kind: ps // MS for kind, ps in found.items()}


def test_a_copy_within_contiguous_is_for_another_layout() -> None:
    assert asked(("aten::contiguous", "aten::clone", "aten::copy_")) == {"layout": 1}


def test_a_copy_that_a_backward_pass_asks_for_is_what_calls_it_there() -> None:
    chain = ("aten::native_layer_norm_backward", "aten::contiguous", "aten::clone", "aten::copy_")
    assert asked(chain) == {"layout": 1}


def test_kinds_are_told_apart_and_the_longest_comes_first() -> None:
    clone, to = ("aten::clone", "aten::copy_"), ("aten::to", "aten::_to_copy", "aten::copy_")
    assert list(asked(clone, to, clone).items()) == [("copy", 2), ("convert", 1)]
    assert asked(("aten::cat",), ("aten::index_put_",)) == {"join": 1, "": 1}
