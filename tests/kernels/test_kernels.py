"""The compiled loops over events, held against the slow and obvious way to say the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stepscope.analysis.account.innermost import places_around
from stepscope.kernels import intervals, nesting, ops, replay
from stepscope.model import Strings

BEGIN, END, PLAIN = 1, 2, 0

Span = tuple[int, int]  # start, duration


def parents(spans: list[Span], kinds: list[int] | None = None, apart: frozenset[int] = frozenset()) -> list[int]:
    """The parent of each event of one line."""
    return nest(spans, kinds, apart)[0]


def nest(
    spans: list[Span], kinds: list[int] | None = None, apart: frozenset[int] = frozenset()
) -> tuple[list[int], list[int]]:
    """Parent and extent of each event of one line; `apart` are the asynchronous ones."""
    n = len(spans)
    start, duration = (np.array([span[at] for span in spans], np.int64) for at in (0, 1))
    parent, extent = np.full(n, -7, np.int32), duration.copy()
    is_async = np.array([row in apart for row in range(n)], np.bool_)
    nesting.parents(
        start, duration, np.array([0]), np.array([n]), np.array(kinds or [PLAIN] * n, np.uint8), is_async, BEGIN, END,
        parent, extent,
    )  # fmt: skip
    return parent.tolist(), extent.tolist()


# -- nesting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spans", "parent"),
    [
        #  0---------
        #   1---- 4--
        #   2-
        #      3-
        ([(0, 10), (1, 5), (1, 2), (4, 2), (7, 3)], [-1, 0, 1, 1, 0]),
        ([(0, 5), (2, 0), (2, 0), (6, 0)], [-1, 0, 1, -1]),  # points
        ([(0, 4), (0, 4), (0, 4)], [-1, 0, 1]),  # equal ones
        ([(0, 5), (5, 5), (10, 5)], [-1, -1, -1]),  # neighbours
        #  0----
        #    1------
        #     2-
        ([(0, 5), (2, 7), (3, 2)], [-1, -1, 1]),
    ],
)
def test_an_event_lies_in_the_innermost_that_encloses_it(spans: list[Span], parent: list[int]) -> None:
    assert parents(spans) == parent


def test_neither_asynchronous_events_nor_an_end_without_a_begin_enclose() -> None:
    assert parents([(0, 10), (1, 8), (2, 3), (3, 1)], apart=frozenset({1, 3})) == [-1, -1, 0, -1]
    assert parents([(0, 10), (2, 0), (3, 2)], [PLAIN, END, PLAIN]) == [-1, 0, 0]


def test_a_region_encloses_what_lies_between_its_marks() -> None:
    #        a  (  b-- c  )  d
    spans = [(0, 2), (3, 0), (4, 3), (8, 1), (10, 0), (12, 1)]
    kinds = [PLAIN, BEGIN, PLAIN, PLAIN, END, PLAIN]

    assert nest(spans, kinds) == ([-1, -1, 1, 1, -1, -1], [2, 7, 3, 1, 0, 1])


def test_a_region_may_lie_in_an_event_and_in_a_region() -> None:
    #        a--------------------
    #         (  (  b  )  c  )  d
    spans = [(0, 30), (1, 0), (4, 0), (7, 1), (10, 0), (13, 1), (16, 0), (19, 1)]
    kinds = [PLAIN, BEGIN, BEGIN, PLAIN, END, PLAIN, END, PLAIN]
    parent, extent = nest(spans, kinds)

    assert parent == [-1, 0, 1, 2, 1, 1, 0, 0]
    assert extent[1:3] == [15, 6]


def test_a_region_that_never_ends_holds_the_rest_of_the_line_only() -> None:
    start = np.array([0, 1, 0, 1], np.int64)
    duration = np.array([0, 1, 3, 1], np.int64)
    parent, extent = np.full(4, -7, np.int32), np.zeros(4, np.int64)
    kind, is_async = np.array([BEGIN, PLAIN, PLAIN, PLAIN], np.uint8), np.zeros(4, np.bool_)
    nesting.parents(start, duration, np.array([0, 2]), np.array([2, 4]), kind, is_async, BEGIN, END, parent, extent)

    assert parent.tolist() == [-1, 0, -1, 2]


def test_lines_that_are_not_asked_for_are_left_alone() -> None:
    start, duration = np.array([0, 1, 0, 1], np.int64), np.array([5, 1, 5, 1], np.int64)
    parent, extent = np.full(4, -7, np.int32), np.zeros(4, np.int64)
    kind, is_async = np.zeros(4, np.uint8), np.zeros(4, np.bool_)
    nesting.parents(start, duration, np.array([2]), np.array([4]), kind, is_async, BEGIN, END, parent, extent)

    assert parent.tolist() == [-7, -7, -1, 2]


_spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), max_size=40)


def in_order(spans: list[Span]) -> list[Span]:
    """As on a line: by start, at one start the longer first."""
    return sorted(spans, key=lambda span: (span[0], -span[1]))


@given(_spans)
@settings(max_examples=300, deadline=None)
def test_a_parent_precedes_and_encloses_its_children(spans: list[Span]) -> None:
    spans = in_order(spans)
    for child, parent in enumerate(parents(spans)):
        if parent >= 0:
            assert parent < child
            assert spans[parent][0] <= spans[child][0]
            assert sum(spans[child]) <= sum(spans[parent])


@st.composite
def trees(drawn: st.DrawFn, start: int = 0, depth: int = 3) -> list[tuple[Span, int]]:
    """Properly nested events: a span and the index of its parent in the list."""
    found: list[tuple[Span, int]] = []
    at = start
    for _ in range(drawn(st.integers(1, 3))):
        at += drawn(st.integers(1, 3))
        inner = drawn(trees(at + 1, depth - 1)) if depth and drawn(st.booleans()) else []
        end = max([sum(span) for span, _ in inner], default=at) + drawn(st.integers(1, 3))
        first = len(found) + 1
        found.append(((at, end - at), -1))
        found += [(span, first - 1 if parent < 0 else first + parent) for span, parent in inner]
        at = end
    return found


@given(trees())
@settings(max_examples=200, deadline=None)
def test_properly_nested_events_are_recognised(tree: list[tuple[Span, int]]) -> None:
    assert parents([span for span, _ in tree]) == [parent for _, parent in tree]


@given(trees(), st.data())
@settings(max_examples=200, deadline=None)
def test_self_times_of_what_counts_add_up_to_the_outermost_of_it(
    tree: list[tuple[Span, int]], data: st.DataObject
) -> None:
    parent = [parent for _, parent in tree]
    counts = np.array(data.draw(st.lists(st.booleans(), min_size=len(tree), max_size=len(tree))), np.bool_)
    duration, rows = np.array([span[1] for span, _ in tree], np.int64), np.flatnonzero(counts)
    own = np.zeros(len(rows), np.int64)
    nesting.self_times(rows, duration, np.array(parent, np.int32), counts, own)

    def is_inside(row: int) -> bool:
        return parent[row] >= 0 and (counts[parent[row]] or is_inside(parent[row]))

    outermost = [row for row in range(len(tree)) if counts[row] and not is_inside(row)]
    assert own.sum() == duration[outermost].sum()
    assert (own >= 0).all()


# -- membership --------------------------------------------------------------------------------------------------


def spread(label: list[int], parent: list[int], link: list[int]) -> list[int]:
    """Labels after they have spread."""
    out, n = np.array(label, np.int32), len(label)
    links = np.array(parent, np.int32), np.array(link, np.int32)
    nesting.spread(out, *links, np.zeros(n, np.uint8), np.empty(n + 1, np.int32))
    return out.tolist()


def test_labels_spread_to_what_is_inside_and_to_what_is_caused() -> None:
    #   0 (label 5) > 1 > 2;   2 causes 3 > 4;   5 stands alone
    assert spread([5, -1, -1, -1, -1, -1], [-1, 0, 1, -1, 3, -1], [-1, -1, -1, 2, -1, -1]) == [5, 5, 5, 5, 5, -1]


def test_an_own_label_stays_and_the_parent_goes_before_the_cause() -> None:
    assert spread([1, 2, 3, -1], [-1, 0, -1, 0], [-1, 2, -1, 2]) == [1, 2, 3, 1]


def test_the_cause_speaks_where_the_parent_knows_nothing() -> None:
    assert spread([-1, 7, -1], [-1, -1, 0], [-1, -1, 1]) == [-1, 7, 7]


def test_circles_end() -> None:
    assert spread([-1, -1, -1], [1, 2, 0], [-1, -1, -1]) == [-1, -1, -1]
    assert spread([-1, -1, -1, 4], [-1, -1, -1, -1], [1, 2, 0, 0]) == [-1, -1, -1, 4]
    assert spread([-1], [0], [0]) == [-1]


@given(st.data(), st.integers(1, 12))
@settings(max_examples=300, deadline=None)
def test_a_label_comes_from_somewhere(data: st.DataObject, n: int) -> None:
    rows = st.lists(st.integers(-1, n - 1), min_size=n, max_size=n)
    label = data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))
    parent, link = data.draw(rows), data.draw(rows)
    out = spread(label, parent, link)

    for row in range(n):
        near = {out[at] for at in (parent[row], link[row]) if at >= 0}
        assert out[row] == label[row] if label[row] >= 0 else out[row] == -1 or out[row] in near


# -- intervals ---------------------------------------------------------------------------------------------------

Interval = tuple[int, int, int, int]  # group, rank, start, length
_intervals = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 30), st.integers(1, 10)), max_size=25
)


def columns(rows: list[Interval]) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Group, rank, start and end, sorted by start."""
    rows = sorted(rows, key=lambda row: row[2])
    table = np.array(rows, np.int64).reshape(-1, 4)
    return table[:, 0].astype(np.int32), table[:, 1].astype(np.uint8), table[:, 2].copy(), table[:, 2] + table[:, 3]


def ticks(rows: list[Interval]) -> set[tuple[int, int, int]]:
    """Every (group, rank, tick) that some interval covers."""
    return {(group, rank, at) for group, rank, start, length in rows for at in range(start, start + length)}


@given(_intervals)
@settings(max_examples=300, deadline=None)
def test_united_intervals_cover_the_same_and_do_not_touch(rows: list[Interval]) -> None:
    n = len(rows)
    out = (np.empty(n, np.int32), np.empty(n, np.uint8), np.empty(n, np.int64), np.empty(n, np.int64))
    count = intervals.merge_runs(*columns(rows), np.full((3, 4), -1), *out)
    group, rank, start, end = (column[:count].tolist() for column in out)
    united = [(g, r, s, e - s) for g, r, s, e in zip(group, rank, start, end, strict=True)]

    assert ticks(united) == ticks(rows)
    assert len(ticks(rows)) == sum(length for _, _, _, length in united)
    joints = [(g, r, s) for g, r, s, _ in united]
    assert not set(joints) & {(g, r, s + length) for g, r, s, length in united}


@given(_intervals, _intervals)
@settings(max_examples=300, deadline=None)
def test_what_intervals_share_with_a_set_is_counted_tick_by_tick(rows: list[Interval], asked: list[Interval]) -> None:
    _, _, start, end = columns(rows)
    begins, ends = map(np.asarray, intervals.union(start, end))
    before = np.append(0, np.cumsum(ends - begins))
    begin = np.array([at for _, _, at, _ in asked], np.int64)  # in any order
    stop = begin + np.array([length - 1 for _, _, _, length in asked], np.int64)  # and some of them empty
    shared = np.full(len(asked), -7, np.int64)
    intervals.overlap(begins, ends, before, begin, stop, shared)

    covered = {at for _, _, at in ticks(rows)}
    expected = [len(covered & set(range(*each))) for each in zip(begin.tolist(), stop.tolist(), strict=True)]
    assert shared.tolist() == expected


def _lists(columns: Iterable[memoryview]) -> list[list[int]]:
    return [np.asarray(each).tolist() for each in columns]


def _settle(rows: list[Interval]) -> list[NDArray[np.int64]]:
    """Starts and ends of the instants of some intervals."""
    _, _, start, end = columns(sorted(rows, key=lambda row: row[2]))
    return [*map(np.asarray, intervals.union(start, end))]


@given(_intervals, _intervals)
@settings(deadline=None)
def test_either_of_two_sets_is_the_union_of_all_their_intervals(rows: list[Interval], others: list[Interval]) -> None:
    one, other = _settle(rows), _settle(others)
    start, end = (np.concatenate(both) for both in zip(one, other, strict=True))
    found, expected = intervals.either(*one, *other), intervals.union(start, end)
    assert _lists(found) == _lists(expected)


@given(_intervals, _intervals)
@settings(deadline=None)
def test_shared_parts_are_those_that_a_search_for_each_interval_finds(
    rows: list[Interval], others: list[Interval]
) -> None:
    _, _, start, end = columns(rows)
    low, high = _settle(others)
    first, last = np.searchsorted(high, start, side="right"), np.searchsorted(low, end, side="left")
    expected = [
        (i, at, max(low[at], start[i]), min(high[at], end[i]))
        for i in range(len(start))
        for at in range(first[i], last[i])
    ]
    assert [tuple(row) for row in np.asarray(intervals.intersect(start, end, low, high)).tolist()] == expected


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=6).map(sorted), max_size=4),
    st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 10)), max_size=12),
    st.booleans(),
)
def test_places_on_lines_are_those_that_a_search_on_each_finds(
    lines: list[list[int]], asked: list[tuple[int, int]], before: bool
) -> None:
    first, out = np.cumsum([0, *map(len, lines)]), np.empty(len(asked), np.int64)
    values = np.array([value for each in lines for value in each], np.int64)
    line, limits = np.array([each for each, _ in asked], np.int32), np.array([each for _, each in asked], np.int64)
    intervals.find_by_line(values, first, line, limits, before, first.copy(), out)

    expected = []
    for on, limit in asked:
        mine = lines[on] if 0 <= on < len(lines) else []
        good = [at for at, value in enumerate(mine) if (value <= limit if before else value >= limit)]
        expected.append(first[on] + (good[-1] if before else good[0]) if good else -1)
    assert out.tolist() == expected


@given(_intervals, st.lists(_intervals, min_size=3, max_size=3), st.lists(st.booleans(), min_size=3, max_size=3))
@settings(deadline=None)
def test_pieces_give_way_to_the_first_cause_of_work_that_runs_tick_by_tick(
    rows: list[Interval], sets: list[list[Interval]], yielding: list[bool]
) -> None:
    start, end = _settle(rows)
    cause = (np.arange(len(start)) % 3).astype(np.uint8)
    found = sorted((a, b, number) for number, each in enumerate(sets) for *_, a, length in each for b in [a + length])
    begun, done, does = (np.array([each[at] for each in found], np.int64) for at in range(3))
    yields = np.zeros((1, 16), np.uint8)
    yields[0, :3] = yielding
    order = np.array([[2, 0, 1]], np.uint8)
    parts = intervals.give_way(
        start, end, cause, np.array([0, 1000]), np.zeros(1, np.uint8), yields, order, np.arange(len(found)),
        does.astype(np.uint8), begun, done,
    )  # fmt: skip

    expected = {}
    for place in range(len(start)):
        for at in range(start[place], end[place]):
            running = [each for each in (2, 0, 1) if any(a <= at < b and each == what for a, b, what in found)]
            given = yielding[cause[place]] and running
            expected[at] = (place, running[0] if given else cause[place], bool(given))
    table = list(zip(*(np.asarray(each).tolist() for each in parts), strict=True))
    assert {at: (place, each, node >= 0) for place, a, b, node, each in table for at in range(a, b)} == expected
    assert all(does[node] == each and begun[node] <= a for _, a, _, node, each in table if node >= 0)
    assert all(last <= first for (_, _, last, *_), (_, first, *_) in pairwise(table))


@given(_intervals, _intervals)
@settings(deadline=None)
def test_an_interval_lies_in_the_only_one_that_holds_both_its_bounds(
    rows: list[Interval], others: list[Interval]
) -> None:
    _, _, start, end = columns(rows)
    low, high = _settle(others)
    around = (low <= start[:, None]) & (end[:, None] <= high)
    assert places_around(low, high, start, end).tolist() == [int(np.argmax(row)) if row.any() else -1 for row in around]


def test_columns_of_other_lengths_are_refused() -> None:
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    with pytest.raises(IndexError):
        intervals.overlap(one, one, one, one, one, one)
    with pytest.raises(IndexError):
        intervals.overlap(one, one, two, one, two, one)
    with pytest.raises(IndexError):
        ops.sum_by_pair(two, np.zeros(1, np.uint8), two, np.zeros((1, 1), np.int64))


# -- what is around an event -------------------------------------------------------------------------------------


def around(parent: list[int], row: int) -> list[int]:
    """An event and those around it, from the inside out."""
    return [row, *around(parent, parent[row])] if row >= 0 else []


@given(trees(), st.data())
@settings(max_examples=200, deadline=None)
def test_labels_marks_and_the_outermost_mark_are_those_of_the_events_around(
    tree: list[tuple[Span, int]], data: st.DataObject
) -> None:
    n, parent = len(tree), [parent for _, parent in tree]
    kind = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.uint8)
    mark = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)), np.uint8)
    label, counts, links = np.zeros(256, np.uint8), np.zeros(256, np.uint8), np.array(parent, np.int32)
    label[[1, 2]], counts[[2, 3]] = [10, 20], 1
    labels, marks, outer = np.empty(n, np.uint8), mark.copy(), np.empty(n, np.uint8)
    nesting.inherit_by_kind(kind, links, label, 99, labels)
    nesting.mark_ancestors(marks, links)
    nesting.outermost_mark(kind, links, counts, mark, outer)

    for row in range(n):
        ways = around(parent, row)
        assert labels[row] == next((label[kind[at]] for at in ways if label[kind[at]]), 99)
        assert marks[row] == any(mark[at] for at in range(n) if row in around(parent, at))
        assert outer[row] & 1 == mark[next((at for at in reversed(ways) if counts[kind[at]]), row)]


@given(
    trees(),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=6),
    st.lists(st.integers(0, 20), max_size=4).map(lambda times: np.array(sorted(times), np.int64)),
)
@settings(max_examples=300, deadline=None)
def test_stretches_are_cut_wherever_the_innermost_event_changes_and_at_given_times(
    tree: list[tuple[Span, int]], steps: list[tuple[int, int]], cuts: NDArray[np.int64]
) -> None:
    start, length = (np.array([span[at] for span, _ in tree], np.int64) for at in (0, 1))
    parent = np.array([parent for _, parent in tree], np.int32)
    bounds = np.cumsum(np.array(steps).ravel())
    begin, stop = bounds[0::2].copy(), bounds[1::2].copy()  # some of them empty, or side by side
    first, last = int(np.searchsorted(start, begin[0], "right")), int(np.searchsorted(start, stop[-1]))
    open_before = [row for row in range(first) if start[row] + length[row] > begin[0]]
    parts = replay.cut(first, max(first, last), max(open_before, default=-1), start, length, parent, begin, stop, cuts)
    rows = [*zip(*(np.asarray(part).tolist() for part in parts), strict=True)]

    found = {at: (place, event) for place, low, high, event in rows for at in range(low, high)}
    inner = {at: row for row in range(len(tree)) for at in range(start[row], start[row] + length[row])}
    expected = {at: (each, inner.get(at, -1)) for each in range(len(begin)) for at in range(begin[each], stop[each])}
    assert found == expected
    assert sum(high - low for _, low, high, _ in rows) == len(expected)
    assert not any(low < at < high for _, low, high, _ in rows for at in cuts.tolist())
    changes = {at for row in range(len(tree)) for at in (start[row], start[row] + length[row])}
    assert all(high in (*changes, *cuts.tolist(), *stop.tolist()) for _, _, high, _ in rows)


@given(trees(), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=6), st.data())
@settings(max_examples=300, deadline=None)
def test_time_by_label_is_counted_tick_by_tick(
    tree: list[tuple[Span, int]], steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    start, length = (np.array([span[at] for span, _ in tree], np.int64) for at in (0, 1))
    parent = np.array([parent for _, parent in tree], np.int32)
    begin, stop = np.cumsum(np.array(steps).ravel()).reshape(-1, 2).T.copy()
    known = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6), st.integers(0, 9)), max_size=4))
    low, high = np.cumsum(np.array(known, np.int64).reshape(-1, 3)[:, :2].ravel()).reshape(-1, 2).T.copy()
    cause = np.array([each for *_, each in known], np.uint8)
    label = np.array(data.draw(st.lists(st.integers(0, 29), min_size=len(tree), max_size=len(tree))), np.uint8)

    found = replay.time_by_label(
        0, len(tree), start, length, parent, label, begin, stop, 3, low, high, cause, 10,
    )  # fmt: skip

    inner = {at: label[row] or 3 for row in range(len(tree)) for at in range(start[row], start[row] + length[row])}
    told = {at: each for a, b, each in zip(low, high, cause.tolist(), strict=True) for at in range(a, b)}
    expected: dict[tuple[int, int], int] = {}
    for place in range(len(begin)):
        for at in range(begin[place], stop[place]):
            of_event = int(inner.get(at, 3))
            key = place, of_event - of_event % 10 + told[at] if at in told else of_event
            expected[key] = expected.get(key, 0) + 1
    rows = list(zip(*(np.asarray(column).tolist() for column in found), strict=True))
    assert {(place, of_label): ps for place, of_label, ps in rows} == expected
    assert len(rows) == len(expected)
    assert [place for place, *_ in rows] == sorted(place for place, *_ in rows)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30))
def test_times_are_sorted_by_cause_without_those_that_are_0(drawn: list[tuple[int, int]]) -> None:
    cause, ps = np.array([each for each, _ in drawn], np.uint8), np.array([each for _, each in drawn], np.int64)
    offsets, nodes, times = np.zeros(257, np.int64), np.empty(len(drawn), np.int32), np.empty(len(drawn))
    replay.sort_times(np.arange(len(drawn)), cause, ps, offsets, nodes, times)
    for each in range(4):
        here = slice(offsets[each], offsets[each + 1])
        expected = [(node, float(ps)) for node, (of, ps) in enumerate(drawn) if of == each and ps]
        assert list(zip(nodes[here].tolist(), times[here].tolist(), strict=True)) == expected


_PIECES = st.sampled_from(["a", "Z", "9", "_", "/", ".", "-", ">", ":", "::", "Mat", "_Recv", " ", "(", "\n", "\u00e9"])


@given(st.lists(st.lists(_PIECES, max_size=8).map("".join), max_size=6))
def test_parts_of_names_of_ops_are_those_that_a_pattern_finds(texts: list[str]) -> None:
    strings = Strings.build([b"", *dict.fromkeys(text.encode() for text in texts if text)])
    form = re.compile(r"([A-Za-z0-9.][\w./>-]*(?<!/)):_?[A-Z]\w*", re.ASCII)
    found = [form.fullmatch(text) for text in strings]

    colon, slash = strings.find_types(np.arange(len(strings)))

    assert colon.tolist() == [len(one[1]) if one else -1 for one in found]
    assert [at for at, one in zip(slash.tolist(), found, strict=True) if one] == [
        one[1].rfind("/") for one in found if one
    ]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-5, 5)), max_size=30))
def test_values_are_added_up_by_row_and_column(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, np.int64).reshape(-1, 3)
    found, expected = np.zeros((3, 4), np.int64), np.zeros((3, 4), np.int64)
    ops.sum_by_pair(table[:, 0].copy(), table[:, 1].astype(np.uint8), table[:, 2].copy(), found)
    for row, column, value in rows:
        expected[row, column] += value

    assert found.tolist() == expected.tolist()
    with pytest.raises(IndexError):
        ops.sum_by_pair(np.array([3]), np.zeros(1, np.uint8), np.array([1]), found)


# -- columns in one pass -------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(-2, 5))), st.booleans())
@settings(max_examples=200, deadline=None)
def test_united_intervals_hold_the_same_moments(spans: list[Span], in_order: bool) -> None:
    spans = sorted(spans) if in_order else spans
    start = np.array([span[0] for span in spans], np.int64)
    length = np.array([span[1] for span in spans], np.int64)
    united = [*zip(*_lists(intervals.union(start, start + length)), strict=True)]
    moments = {at for first, length in spans for at in range(first, first + length)}
    assert {at for first, last in united for at in range(first, last)} == moments
    assert all(one[1] < other[0] for one, other in pairwise(united))
    turned = np.arange(len(spans))[::-1].copy()
    assert _lists(intervals.union_of(start, length, turned)) == _lists(intervals.union(start, start + length))
    with pytest.raises(IndexError):
        intervals.union_of(start, length, np.array([len(spans)]))


def test_nesting_may_be_deep() -> None:
    depth = 1000

    assert parents([(at, 2 * (depth - at)) for at in range(depth)]) == list(range(-1, depth - 1))


def test_chains_may_be_long() -> None:
    n = 100_000
    label = [3] + [-1] * (n - 1)

    assert set(spread(label, list(range(-1, n - 1)), [-1] * n)) == {3}
    assert set(spread(label[::-1], [-1] * n, [*range(1, n), -1])) == {3}


@given(st.lists(st.binary(min_size=1, max_size=6), unique=True, max_size=6), st.data())
def test_texts_of_many_rows_are_those_of_each(table: list[bytes], data: st.DataObject) -> None:
    strings = Strings.build([b"", *table])
    rows = data.draw(st.lists(st.integers(-1, len(table))))
    assert strings.texts(np.array(rows, np.int64)) == [strings[row] for row in rows]
