"""The workbench: longest events, histograms of durations, call trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draw import MS

from stepscope.analysis.timeline import workbench
from stepscope.analysis.timeline.index import has_library_calls, index_of
from stepscope.errors import UsageError
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder

LIBRARY = "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py(7): _call_impl"
PICTURE = """
    train.py(3): step   0  20
    LIBRARY             1  18
    train.py(9): layer  2  10
    aten::mm            3   4
    aten::mm            8   3
    aten::add          13   2
"""


def nested() -> HostTrace:
    """One thread: lines of the picture are name, start and duration in ms."""
    builder = TraceBuilder("vm")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main", 1)
    for row in PICTURE.strip().splitlines():
        name, start, length = row.rsplit(None, 2)
        name = name.strip().replace("LIBRARY", LIBRARY)
        kind = EventKind.OP if name.startswith("aten") else EventKind.PYTHON_CALL
        line.event(name, int(start) * MS, int(length) * MS, kind)
    return builder.build()


def everything(trace: HostTrace) -> workbench.Selected:
    return workbench.select_events(trace, 0, 100 * MS, range(len(trace.lines)))


def paths(trace: HostTrace, tree: workbench.CallTree) -> dict[str, tuple[int, float, float]]:
    """Events, total and own ms of each node, by the names from the root to it."""
    found: dict[int, str] = {}
    nodes: dict[str, tuple[int, float, float]] = {}
    for at in range(len(tree.parent)):
        name = trace.strings[tree.name[at]].replace(LIBRARY, "LIBRARY").split(": ")[-1]
        above = int(tree.parent[at])
        assert above < at
        found[at] = f"{found[above]} > {name}" if above >= 0 else name
        nodes[found[at]] = (int(tree.events[at]), tree.total_ps[at] / MS, tree.self_ps[at] / MS)
    return nodes


def test_a_call_tree_merges_equal_names_below_equal_names():
    trace = nested()
    assert paths(trace, workbench.build_call_tree(trace, everything(trace))) == {
        "step": (1, 20, 2),
        "step > LIBRARY": (1, 18, 6),
        "step > LIBRARY > layer": (1, 10, 3),
        "step > LIBRARY > layer > aten::mm": (2, 7, 7),
        "step > LIBRARY > aten::add": (1, 2, 2),
    }


def test_what_is_folded_or_hidden_leaves_its_time_to_what_encloses_it():
    trace = nested()
    own = paths(trace, workbench.build_call_tree(trace, everything(trace), own_code=True))
    assert own["step"] == (1, 20, 8)
    assert set(own) == {"step", "step > layer", "step > layer > aten::mm", "step > aten::add"}
    hidden = ["train.py(9): layer", "aten::add"]
    without = paths(trace, workbench.build_call_tree(trace, everything(trace), hidden=hidden))
    assert without["step > LIBRARY"] == (1, 18, 11)
    assert set(without) == {"step", "step > LIBRARY", "step > LIBRARY > aten::mm"}


def test_an_inverted_tree_goes_from_own_time_to_the_callers():
    trace = nested()
    tree = paths(trace, workbench.build_call_tree(trace, everything(trace), inverted=True))
    assert tree["aten::mm"] == (2, 7, 7)
    assert tree["aten::mm > layer > LIBRARY > step"] == (2, 7, 0)
    roots = [times for path, times in tree.items() if " > " not in path]
    assert sum(own for _, _, own in roots) == 20


def test_a_window_counts_only_the_time_inside_it():
    trace = nested()
    found = workbench.select_events(trace, 5 * MS, 9 * MS, [0])
    tree = paths(trace, workbench.build_call_tree(trace, found))
    assert tree["step > LIBRARY > layer > aten::mm"] == (2, 3, 3)
    assert "step > LIBRARY > aten::add" not in tree


def test_the_longest_events_and_their_histogram_are_those_of_a_search():
    trace = nested()
    found = workbench.select_events(trace, 0, 100 * MS, [0], "aten::")
    names = [trace.name_of(event) for event in workbench.longest_events(trace, found.rows, 2)]
    assert names == ["aten::mm", "aten::mm"]
    histogram = workbench.duration_histogram(trace, found.rows)
    assert histogram.counts.sum() == 3
    assert histogram.edges_ps[0] <= 2 * MS < 4 * MS < histogram.edges_ps[-1]
    assert len(workbench.duration_histogram(trace, found.rows[:0]).counts) == 0
    with pytest.raises(UsageError):
        workbench.select_events(trace, 5, 5, [0])


def test_a_large_tree_keeps_the_nodes_of_most_time(monkeypatch):
    trace = nested()
    monkeypatch.setattr(workbench, "MOST_NODES", 3)
    tree = workbench.build_call_tree(trace, everything(trace))
    assert set(paths(trace, tree)) == {"step", "step > LIBRARY", "step > LIBRARY > layer"}
    assert tree.left_out == 2


def test_folded_calls_take_no_row_of_the_timeline():
    trace: Any = nested()
    assert has_library_calls(trace)
    whole, own = index_of(trace).lane, index_of(trace, own_code=True).lane
    assert whole.tolist() == [0, 1, 2, 3, 3, 2]
    assert own.tolist() == [0, -1, 1, 2, 2, 1]
    assert index_of(trace, own_code=True).row_count(0) == 3
    assert np.array_equal(index_of(trace, own_code=False).lane, whole)
