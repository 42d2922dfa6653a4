"""Relations: rows counted on hosts, put together, and shown."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from stepscope.records import dataclass
from stepscope.report import Field, Role
from stepscope.report.relation import Counted, Relation, fold_hosts

CALLS = Relation(
    ("call", "shape"), ("calls", "total_ps", "min_ps", "max_ps"), order=("-total_ps", "call", "shape"), most=3
)
BY_CALL = Relation(("call",), ("calls", "total_ps"), order=("-total_ps", "call"))
FIELDS = (
    Field("call", "text", "the call", role=Role.NAME),
    Field("calls", "count", "how many", "int"),
    Field("total_us", "us", "time of all"),
    Field("avg_us", "us", "time of one"),
    Field("percent", "percent", "share of the time"),
)
NAMES = {7: "read", 8: "write", 9: ""}
SHAPES = {0: (2, (3, 4)), 1: None}


def count(*events: tuple[int, int, int]) -> Counted:
    """Events with the numbers of their name and shape, and their time in us, as a host keeps them."""
    name, shape, us = np.array(events, np.int64).reshape(-1, 3).T
    time = us * 10**6
    part = CALLS.count(
        {"call": (name, NAMES.__getitem__), "shape": (shape, SHAPES.get)},
        {"total_ps": time, "min_ps": time, "max_ps": time},
    )
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(part), type=Counted)
    assert kept == part
    return kept


def test_events_of_equal_keys_are_one_row_and_the_longest_comes_first() -> None:
    found = CALLS.merge([count((7, 0, 1), (8, 1, 5), (7, 0, 2), (9, 1, 4))])

    assert found.columns == {
        "call": ["write", "", "read"],
        "shape": [None, None, (2, (3, 4))],
        "calls": [1, 1, 2],
        "total_ps": [5_000_000, 4_000_000, 3_000_000],
        "min_ps": [5_000_000, 4_000_000, 1_000_000],
        "max_ps": [5_000_000, 4_000_000, 2_000_000],
    }


def test_a_table_has_rounded_times_means_and_shares_and_no_empty_text() -> None:
    found = CALLS.merge([count((7, 0, 1), (7, 0, 2), (9, 1, 1))])
    rows = found.table(FIELDS, avg_us=found.mean("total_ps", "calls"), percent=found.share("total_ps"))

    assert rows == (
        {"call": "read", "calls": 2, "total_us": 3.0, "avg_us": 1.5, "percent": 75.0},
        {"call": None, "calls": 1, "total_us": 1.0, "avg_us": 1.0, "percent": 25.0},
    )


def test_rows_beyond_the_limit_are_the_rest_and_shares_count_them() -> None:
    found = CALLS.merge([count((7, 0, 4), (8, 0, 3), (9, 0, 2), (7, 1, 1)), count((7, 0, 10))])

    assert found["total_ps"] == [14_000_000, 3_000_000, 2_000_000]
    assert (found.left_out, found.rest["calls"], found.rest["total_ps"]) == (1, 1, 1_000_000)
    assert found.total("total_ps") == 20_000_000
    assert found.share("total_ps") == [70.0, 15.0, 10.0]


def test_fewer_keys_put_rows_together_and_carry_what_the_longest_had() -> None:
    found = CALLS.merge([count((7, 1, 4), (7, 0, 3), (8, 0, 5))]).regroup(BY_CALL, "shape")

    assert found.columns == {
        "call": ["read", "write"],
        "calls": [2, 1],
        "total_ps": [7_000_000, 5_000_000],
        "shape": [None, (2, (3, 4))],
    }


def test_an_amount_that_one_host_does_not_know_is_unknown() -> None:
    copies = Relation(("memory",), ("size",), order=("memory",))

    found = copies.merge([copies.keep([("pinned", 8), ("", 1)]), copies.keep([("pinned", None), ("", 2)])])

    assert found.columns == {"memory": ["", "pinned"], "size": [3, None]}


def test_hosts_may_be_folded_in_any_tree() -> None:
    hosts = [Host(count((7, at % 2, at), (8, 1, 1))) for at in range(1, 6)]
    first = fold_hosts(hosts[:3], {"calls": CALLS})
    nested = fold_hosts([*first, *fold_hosts(hosts[3:], {"calls": CALLS})], {"calls": CALLS})

    assert CALLS.merge([host.calls for host in nested]) == CALLS.merge([host.calls for host in hosts])
    assert len(CALLS.merge([host.calls for host in nested[1:]])) == 0


def test_no_events_are_no_rows() -> None:
    found = CALLS.merge([count(), replace(count(), left_out=0)])

    assert found.table(FIELDS, avg_us=[], percent=found.share("total_ps")) == ()


@dataclass(frozen=True)
class Host:
    """What a host contributes."""

    calls: Counted
