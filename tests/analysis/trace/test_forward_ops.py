"""The forward op of each piece of backward work, on drawn traces; the digits are autograd's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from draw import Sort, draw

from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.forward_ops import forward_events
from stepscope.model import EventKind as K

SORTS = {
    "s": Sort(K.OP, "aten::select", "Sequence number"),
    "r": Sort(K.OP, "aten::rnn_layer", "Sequence number"),
    "l": Sort(K.OP, "aten::linear", "Sequence number"),
    "t": Sort(K.OP, "aten::t", "Sequence number"),
    "B": Sort(K.BACKWARD, "autograd::engine::evaluate_function: SomeBackward0", "Sequence number"),
}


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        # What has no gradient makes no node, and has the number of the op that makes the next one.
        (
            """
            host main | s7s7r7------B7----
            """,
            "aten::rnn_layer",
        ),
        # The op that the program calls stands for what makes the node inside of it.
        (
            """
            host main | l7------B7----
            host main | t7-
            """,
            "aten::linear",
        ),
        # Both at once; numbers on another thread are of its own.
        (
            """
            host main   | s7l7------B7----
            host main   |   t7-
            host loader | s7--------
            """,
            "aten::linear",
        ),
    ],
)
def test_the_op_that_made_the_node_is_the_last_with_its_number(picture: str, expected: str) -> None:
    trace = draw(picture, SORTS)
    rows = events_of_kind(trace, K.BACKWARD).astype(np.int64)

    assert [trace.name_of(row) for row in forward_events(trace, rows)] == [expected]
