"""Graphs contracted to their meetings: whatever time these take, the rest comes as in the whole graph."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope import kernels
from stepscope.model.arrays import offsets_of

NODES, ORIGIN = 14, -1


@st.composite
def graphs(draw):
    """A graph whose nodes are in order, some of which are meetings, and longer meetings."""
    small = st.integers(0, 9)
    previous = [draw(st.integers(-1, node - 1)) for node in range(NODES)]
    edges = [
        (source, target, draw(st.integers(-3, 9)), draw(st.booleans()))
        for target in range(1, NODES)
        for source in draw(st.sets(st.integers(0, target - 1), max_size=3))
    ]
    own, pause = ([draw(small) for _ in range(NODES)] for _ in range(2))
    meetings = sorted(draw(st.sets(st.integers(0, NODES - 2), max_size=6)))
    longer = [draw(st.integers(0, 30)) for _ in meetings]
    return previous, edges, own, pause, meetings, longer


def replay(graph, own):
    previous, edges, _, pause, _, _ = graph
    into = offsets_of(np.bincount([edge[1] for edge in edges], minlength=NODES))
    columns = list(zip(*edges, strict=True)) or [(), (), (), ()]
    order = np.arange(NODES, dtype=np.int32)
    start, end = np.zeros(NODES, np.int64), np.zeros(NODES, np.int64)
    arrays = (
        order, np.array(previous, np.int32), np.array(pause, np.int64), np.array(own, np.int64), into,
        np.array(columns[0], np.int32), np.array(columns[2], np.int64), np.array(columns[3], np.uint8),
    )  # fmt: skip
    kernels.replay.replay(*arrays, start, end)
    return arrays, start, end


def contracted(graph, most=NODES, window=8):
    """Of each node its ways as a dict from source to length, and how many had no room."""
    meetings = graph[4]
    arrays, _, end = replay(graph, graph[2])
    meets = np.full(NODES, -1, np.int32)
    meets[meetings] = np.arange(len(meetings))
    source, weight = np.zeros((NODES, most), np.int32), np.zeros((NODES, most), np.int64)
    count = np.zeros(NODES, np.uint8)
    size = len(meetings) + 1
    lost = kernels.ranks.contract(
        *arrays, meets, meets, np.append(end[meetings], 0), source, weight, count, np.zeros((size, window), np.int64),
        np.zeros((4, size), np.int64), np.zeros(size, np.int32),
    )  # fmt: skip
    ways = [
        dict(zip(source[node, :number].tolist(), weight[node, :number].tolist(), strict=True))
        for node, number in enumerate(count.tolist())
    ]
    return ways, lost


@given(graphs())
@settings(max_examples=100)
def test_a_contracted_graph_replays_as_the_whole_one_whatever_time_meetings_take(graph):
    *_, own, _, meetings, longer = graph
    ways, lost = contracted(graph)
    changed = np.array(own)
    changed[meetings] = longer
    _, start, _ = replay(graph, changed)

    done = {ORIGIN: 0}
    for number, node in enumerate(meetings):
        arrives = max(done[source] + weight for source, weight in ways[node].items())
        assert arrives == start[node]
        done[number] = arrives + longer[number]
    last = NODES - 1
    assert max(done[source] + weight for source, weight in ways[last].items()) == start[last]
    assert lost == 0


@given(graphs())
@settings(max_examples=50)
def test_with_too_little_room_the_latest_ways_stay_and_the_others_are_counted(graph):
    ways, lost = contracted(graph, most=1)
    whole, none = contracted(graph)

    assert none == 0
    assert (lost > 0) == any(len(each) > 1 for each in whole)
    _, start, end = replay(graph, graph[2])
    done = {ORIGIN: 0} | {number: int(end[node]) for number, node in enumerate(graph[4])}
    first = next((node for node, each in enumerate(whole) if len(each) > 1), NODES)
    for node in range(min(first + 1, NODES)):
        assert max(done[source] + weight for source, weight in ways[node].items()) == start[node]


def test_a_meeting_starts_when_the_last_of_its_ranks_has_come():
    # Two ranks with two meetings each; the second rank comes first to the first and last to the second.
    into = np.array([0, 1, 2, 3, 4], np.int64)
    source, weight = np.array([-1, 0, -1, 0], np.int32), np.array([5, 1, 2, 7], np.int64)
    arrival, done = np.zeros(4, np.int64), np.zeros(2, np.int64)

    kernels.ranks.meet(
        np.array([0, 1], np.int32), np.array([0, 2, 4], np.int64), np.array([0, 2, 1, 3], np.int32),
        into, source, weight, np.array([10, 10, 20, 21], np.int64), arrival, done,
    )  # fmt: skip

    assert (arrival.tolist(), done.tolist()) == ([5, 16, 2, 22], [15, 43])
