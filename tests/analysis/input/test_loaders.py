"""Loaders and copies to the device in the tool input-pipeline, on traces drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from draw import Sort, draw
from reporting import table

from stepscope.analysis.input import input_pipeline_tool as input_pipeline
from stepscope.analysis.input.loaders import Loader, add_loaders
from stepscope.analysis.trace.host_copies import memory_of
from stepscope.model import EventKind, HostTrace

K = EventKind
SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
MULTI = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"

SORTS = {
    "Z": Sort(K.INPUT_WAIT, SINGLE),
    "W": Sort(K.INPUT_WAIT, MULTI),
    "Y": Sort(K.PYTHON_CALL, "torch/utils/data/dataloader.py(1101): __init__"),
    "O": Sort(K.PYTHON_CALL, "multiprocessing/process.py(110): start"),
    "Q": Sort(K.PYTHON_CALL, "torch/utils/data/_utils/pin_memory.py(58): pin_memory"),
    "A": Sort(K.OP, "aten::pin_memory"),
    "U": Sort(K.COPY_HOST_TO_DEVICE, "Memcpy HtoD (Pageable -> Device)", "correlation_id", {"bytes": 3_000_000}),
    "H": Sort(K.COPY_HOST_TO_DEVICE, "Memcpy HtoD (Pinned -> Device)", "correlation_id", {"bytes": 1_000_000}),
    "D": Sort(K.COPY_HOST_TO_DEVICE, "MemcpyH2D", "correlation_id"),
    "E": Sort(
        K.COPY_HOST_TO_DEVICE, "MemcpyH2D", "", {"memcpy_details": "kind_src:pinned kind_dst:device size:500 dest:0"}
    ),
}


def body(*pictures: str) -> dict[str, Any]:
    traces: Sequence[HostTrace] = [draw(text, SORTS, host=f"host{at}") for at, text in enumerate(pictures)]
    return input_pipeline.merge([input_pipeline.partial(trace) for trace in traces]).to_dict()


# -- loaders -----------------------------------------------------------------------------------------------------


def test_the_exact_wait_of_each_step_whatever_a_device_does_meanwhile() -> None:
    found = body(
        """
        host main | M1--------M2--------M3--------
        host main | Z-----L1  Z---L2    Z!
        host cuda | L3
        gpu0 s    |   K3------K2--------
        """
    )
    assert table(found["steps"], "step", "fetch_ms", "input_ms") == [(1, 6, 6), (2, 4, 4), (3, 0, 0)]
    assert table(found["loaders"], "loader", "calls", "total_ms", "avg_ms", "max_ms", "step_percent") == [
        (SINGLE, 3, 10, pytest.approx(10 / 3, abs=1e-5), 6, pytest.approx(100 / 3, abs=1e-3))
    ]


def test_a_wait_inside_a_wait_counts_once_and_one_after_a_mark_counts_in_its_step() -> None:
    found = body(
        """
        host main |    M1----   M2----
        host main | Z--     Z---Z-
        host main |  Z        Z
        """
    )
    assert table(found["loaders"], "calls", "total_ms", "step_percent") == [(3, 9, pytest.approx(100 * 6 / 15))]
    assert table(found["steps"], "fetch_ms") == [(4,), (2,)]


@pytest.mark.parametrize(
    ("picture", "workers"),
    [
        ("host main | M----\nhost main | Z-", 0),
        ("host main | M----\nhost main | W-", None),
        ("host main | M----------\nhost main | Y-----W-\nhost main |  O-O-", 2),
        ("host main | M---------------\nhost main | Y--W-Y-----W\nhost main |  O    OO", None),
        ("host main | M------\nhost main | O-O-W-", None),
    ],
    ids=["none_but_the_loop", "not_seen", "seen_to_start", "loaders_differ", "processes_of_someone_else"],
)
def test_the_number_of_workers_is_known_where_they_were_seen(picture: str, workers: int | None) -> None:
    (loader,) = body(picture)["loaders"]
    assert loader["workers"] == workers


@pytest.mark.parametrize(
    ("picture", "pinning"),
    [
        ("host main | M----------\nhost main | Z---Z---\nhost main |  AA  A ", ("in the calls", 3, 3)),
        ("host main | M------\nhost main | W---\nhost pin  | Q-- Q--\nhost pin  |  Q   A", ("on another thread", 2, 6)),
        ("host main | M----------\nhost main | W---AA", (None, None, None)),
        ("host main | M----------\nhost main | Z---", (None, None, None)),
    ],
    ids=["single_process", "thread", "by_the_program_itself", "not_recorded"],
)  # fmt: skip
def test_where_batches_are_pinned(picture: str, pinning: tuple[object, ...]) -> None:
    assert table(body(picture)["loaders"], "pinning", "pins", "pin_ms") == [pinning]


def test_loaders_of_several_hosts_add_up_and_disagreement_is_unknown() -> None:
    quiet = "host main | M---------\nhost main | W---"
    seen = "host main | M---------\nhost main | Y--W--\nhost main |  O"
    assert table(body(quiet, seen)["loaders"], "calls", "total_ms", "step_percent", "workers") == [(2, 7, 35, None)]


def test_calls_of_less_than_a_hundredth_of_the_longest_are_left_out() -> None:
    def loader(name: str, total: int) -> Loader:
        return Loader(name, 1, total, total, total, None, "", 0, 0)

    found = add_loaders([loader("pass it on", 9), loader("wait", 500), loader("hand over", 10), loader("wait", 500)])

    assert [(each.name, each.calls, each.total_ps) for each in found] == [("wait", 2, 1000), ("hand over", 1, 10)]


# -- copies to the device ----------------------------------------------------------------------------------------


def test_copies_by_the_memory_that_they_come_from() -> None:
    found = body(
        """
        host main | M--------------
        host main | L1--L2L3
        gpu0 s    |  U1   K3----
        gpu0 t    |     H2---
        """
    )
    columns = ("memory", "count", "bytes", "total_ms", "gigabytes_per_s", "exposed_ms", "call_ms")
    assert table(found["copies"], *columns) == [
        ("pinned", 1, 1_000_000, 5, 0.2, 2, 2),
        ("pageable", 1, 3_000_000, 2, 1.5, 2, 4),
    ]


def test_what_a_trace_does_not_tell_of_a_copy_is_unknown() -> None:
    found = body("host main | M----\ngpu0 s    | D--E")
    assert table(found["copies"], "memory", "count", "bytes", "gigabytes_per_s") == [
        (None, 1, None, None),
        ("pinned", 1, 500, 0.001),
    ]


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("Memcpy HtoD (Pinned -> Device)", "pinned"),
        ("Memcpy HtoD (Pageable -> Device)", "pageable"),
        ("Memcpy HtoD (Host -> Device)", ""),
        ("kind_src:pageable kind_dst:device size:4", "pageable"),
        ("kind_src:device kind_dst:pinned size:4", ""),
    ],
)
def test_sorts_of_memory(text: str, memory: str) -> None:
    assert memory_of(text) == memory
