"""Ranks compared: on drawn traces, on a training that two processes run while the test waits, and on real ones."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch_programs
from draw import Sort, draw
from reporting import overview_of, reporter

import stepscope
from stepscope.analysis.advice.no_advice import find_slow_rank
from stepscope.analysis.workers import distributed_tool as distributed
from stepscope.analysis.workers.collectives import _input_bytes
from stepscope.analysis.workers.job_report import _percent_of_gain
from stepscope.formats.kineto.reader import read
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder
from stepscope.vocabulary.collectives import operation_of

if TYPE_CHECKING:
    from framework_captures import FrameworkCapture

MB = 1_000_000
REDUCE = {
    "Collective name": "allreduce", "In msg nelems": MB, "Out msg nelems": MB, "dtype": "Float", "Group size": 2,
    "Process Group Name": "0", "Process Group Ranks": "[0, 1]",
}  # fmt: skip
SORTS = {"N": Sort(EventKind.COLLECTIVE, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "correlation_id", REDUCE)}


compared = reporter(distributed)


def rank(number: int, picture: str, sorts: dict[str, Sort] = SORTS) -> HostTrace:
    return draw(picture, sorts, host=f"rank{number}")


def test_the_parts_of_one_rank():
    report = compared(
        rank(0, """
            host main | M0------------------
            gpu0 s7   | k---  k---    u-
            gpu0 s20  |    N-----   N---
        """)
    )  # fmt: skip

    [row] = report.rows
    wanted = {
        "rank": 0, "span_ms": 16, "compute_ms": 8 + 2, "communication_ms": 6 + 4, "overlap_ms": 4 + 2,
        "exposed_ms": 4, "other_work_ms": 0, "idle_ms": 2, "overlap_percent": 60, "waiting_ms": None,
    }  # fmt: skip
    assert {key: row[key] for key in wanted} == wanted
    assert [(row["step"], row["compute_ms"], row["exposed_ms"], row["idle_ms"]) for row in report.steps] == [
        (0, 10, 4, 6)
    ]
    assert report.job["slowest_rank"] is None
    assert report.warnings == ("only 1 of 2 ranks is present: waiting between ranks is unknown",)


def test_ranks_come_in_their_order_and_hosts_without_a_rank_last():
    picture = "host main | M0---\ngpu0 s7   | k---"
    found = compared(draw(picture, host="here"), rank(10, picture), rank(9, picture))

    assert [(row["rank"], row["host"]) for row in found.rows] == [(9, "rank9"), (10, "rank10"), (None, "here")]
    assert found.hosts == ("here", "rank10", "rank9")


FAST = """
    host main | M0--------- M1---------
    gpu0 s7   | k-          k-
    gpu0 s20  |   N-------    N-------
"""
SLOW = """
    host main | M0--------- M1---------
    gpu0 s7   | k-----      k-----
    gpu0 s20  |       N---        N---
"""


def test_collectives_of_different_sizes_are_not_the_same():
    """One rank reduces 3 KiB first and then 4 MB, the other the other way round: nobody waits for anybody."""
    small = {**REDUCE, "In msg nelems": 768, "Out msg nelems": 768}
    sorts = {**SORTS, "Q": Sort(EventKind.COLLECTIVE, SORTS["N"].name, "correlation_id", small)}
    picture = "host main | M0-----------\ngpu0 s7   | k-\ngpu0 s20  |   {}\n"
    swapped = compared(rank(0, picture.format("Q- N-----"), sorts), rank(1, picture.format("N----- Q-"), sorts))
    apart = compared(rank(0, picture.format("Q-"), sorts), rank(1, picture.format("N-----"), sorts))

    assert [(row["waiting_ms"], row["last_count"]) for row in swapped.rows] == [(0, 0), (0, 0)]
    assert swapped.warnings == ()
    assert [row["waiting_ms"] for row in apart.rows] == [None, None]
    assert apart.warnings[0].startswith("2 collectives differ between ranks")


def test_who_waits_for_whom():
    """The slow rank needs 4 ms longer, which the fast one spends inside the collective."""
    report = compared(rank(0, FAST), rank(1, SLOW))

    assert [(row["rank"], row["waiting_ms"], row["held_up_ms"], row["last_count"]) for row in report.rows] == [
        (0, 8, 0, 0),
        (1, 0, 8, 2),
    ]
    assert [tuple(row.values()) for row in report.waits] == [("rank0", "rank1", 8)]
    assert report.job["slowest_rank"] == "rank 1"
    assert report.findings[0] == "the others wait 4.00 ms of a step for rank 1: that is 100 % of all waiting"
    [row] = report.collectives
    wanted = {
        "operation": "all_reduce", "ranks": 2, "group": "0 [0, 1]", "bytes": 4 * MB, "count": 4, "avg_us": 6000,
        "transfer_us": 4000, "waiting_us": 2000, "last": "rank 1",
    }  # fmt: skip
    assert {key: row[key] for key in wanted} == wanted
    # 2 (n - 1) / n = 1: 4 MB in 4 ms.
    assert row["bus_gb_per_s"] == pytest.approx(1.0)
    assert [(row["step"], row["rank"], row["waiting_ms"]) for row in report.steps] == [
        (0, 0, 4), (0, 1, 0), (1, 0, 4), (1, 1, 0),
    ]  # fmt: skip


BIT_SLOWER = """
    host main | M0--------- M1---------
    gpu0 s7   | k--         k--
    gpu0 s20  |    N------     N------
"""


@pytest.mark.parametrize(("second", "much"), [(SLOW, True), (BIT_SLOWER, False), (FAST, None)])
def test_a_late_rank_may_hold_up_little(second: str, much: bool | None):
    """Of steps of 12 ms the others wait 4, 1 and 0 ms: a headline is about the first alone."""
    slow = find_slow_rank(overview_of(rank(0, FAST), rank(1, second)).context)

    assert (slow and (slow.name, slow.holds_up_much)) == (None if much is None else ("rank 1", much))


@pytest.mark.parametrize(
    ("other", "rows", "causes"),
    [("vm_72", 64, []), ("wm_72", 64, ["slow_machine"]), ("vm_72", 32, ["more_data"]), ("wm_72", 32, ["more_data"])],
)
def test_two_processes_of_one_machine_are_no_slow_and_fast_machine_nor_is_who_has_more_data_slow(
    other: str, rows: int, causes: list[str]
) -> None:
    def process(host: str, computes: str, rows: int) -> HostTrace:
        sorts = {"a": Sort(EventKind.OP, "aten::linear", stats={"Input Dims": f"[[{rows},8],[8,8],[8]]"})}
        return draw(f"host main | M0--------M1--------\nhost main | {computes * 2}", sorts, host=host)

    report = compared(process("vm_71", "a-------G-", 64), process(other, "a---G-----", rows))

    assert [row["cause"] for row in report.causes] == causes


def test_ranks_that_wait_for_each_other_equally_are_not_blamed():
    report = compared(rank(0, FAST), rank(1, FAST))

    assert report.job["slowest_rank"] is None
    assert report.findings[0].startswith("no rank and no stage is a straggler")


def test_steps_of_one_number_are_told_apart_by_their_order():
    report = compared(
        rank(0, """
            host main | M0--- M1--- M0--- M1---
            gpu0 s20  |  N-     N--  N--- N----
        """),
        rank(1, """
            host main | M0--- M1--- M0--- M1---
            gpu0 s20  | N--   N---- N---- N----
        """),
    )  # fmt: skip
    assert [(row["step"], row["rank"], row["communication_ms"], row["waiting_ms"]) for row in report.steps] == [
        (0, 0, 2, 0), (0, 1, 3, 1), (1, 0, 3, 0), (1, 1, 5, 2), (0, 0, 4, 0), (0, 1, 5, 1), (1, 0, 5, 0), (1, 1, 5, 0),
    ]  # fmt: skip


CALLS = SORTS | {"M": Sort(EventKind.STEP_MARK, "train")}  # steps that the program does not number


def test_steps_without_numbers_are_told_apart_by_the_clock():
    """The second rank's capture begins one step later; it needs 2 ms longer in each of its steps."""
    report = compared(
        draw("""
            host main | M------ M------ M------
            gpu0 s20  |   N-     N-----  N-----
        """, CALLS, host="rank0", start_unix_ns=10**18),
        draw("""
            host main |         M------ M------
            gpu0 s20  |            N---    N---
        """, CALLS, host="rank1", start_unix_ns=10**18),
    )  # fmt: skip
    assert [(row["rank"], row["waiting_ms"], row["last_count"]) for row in report.rows] == [(0, 4, 0), (1, 0, 2)]
    assert [(row["step"], row["rank"], row["waiting_ms"]) for row in report.steps] == [
        (0, 0, 0), (1, 0, 2), (1, 1, 0), (2, 0, 2), (2, 1, 0),
    ]  # fmt: skip


def test_a_rank_that_began_its_capture_earlier_than_the_first_counts_no_step_below_zero():
    report = compared(
        draw("host main |         M------ M------", CALLS, host="rank0", start_unix_ns=10**18),
        draw("host main | M------ M------ M------", CALLS, host="rank1", start_unix_ns=10**18),
    )
    assert [(row["step"], row["rank"]) for row in report.steps] == [(0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


def test_a_rank_without_steps_stands_beside_no_step_of_the_others():
    report = compared(rank(0, FAST), rank(1, SLOW), rank(2, "gpu0 s20  | N-      N--"))

    assert [(row["step"], row["rank"]) for row in report.steps] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [row["last_count"] for row in report.rows] == [0, 2, None]
    assert report.warnings == ("no steps from rank2",)


def test_where_a_collective_takes_all_ranks_as_long_nobody_came_last():
    picture = "host main | M0--- M1---\ngpu0 s20  | N---  N---"
    report = compared(rank(0, picture), rank(1, picture))
    assert [row["last_count"] for row in report.rows] == [0, 0]
    assert [(row["transfer_us"], row["waiting_us"], row["last"]) for row in report.collectives] == [(4000, 0, None)]


def test_collectives_that_not_all_ranks_recorded_are_not_compared():
    cut = """
        host main | M0--------- M1---------
        gpu0 s20  |       N---    N-N
    """
    report = compared(rank(0, FAST), rank(1, cut))

    assert [row["last_count"] for row in report.rows] == [0, 1]  # step 0 alone
    assert "2 collectives differ between ranks, as if some were not recorded; they are not compared" in (
        report.warnings
    )


def test_without_devices_the_library_s_record_is_the_collective():
    """The call that hands the work over returns at once and is none."""
    sorts = {
        "G": Sort(
            EventKind.COLLECTIVE_CALL, "gloo:all_reduce", "", {"Input Dims": "[[500]]", "Input type": '["double"]'}
        ),
        "Q": Sort(EventKind.COLLECTIVE_CALL, "c10d::allreduce_"),
    }  # fmt: skip
    trace = rank(3, """
        host main | M0-----------
        host main | a--Q b---
        host gloo |     G------
    """, sorts)  # fmt: skip
    report = compared(trace)

    assert [(row["operation"], row["bytes"], row["count"], row["total_us"]) for row in report.collectives] == [
        ("all_reduce", 4000, 1, 7000)
    ]
    assert (report.rows[0]["compute_ms"], report.rows[0]["overlap_ms"], report.rows[0]["exposed_ms"]) == (7, 4, 3)


def test_facts_stand_with_the_calls_around_a_launch():
    """PyTorch before 2.2: the kernel says nothing of its collective, `record_param_comms` does."""
    base: dict[str, Any] = {"ph": "X", "pid": 7, "tid": 7, "cat": "cpu_op"}
    events = [
        base | {"name": "c10d::allreduce_", "ts": 0, "dur": 9, "args": {"External id": 1}},
        base | {"name": "record_param_comms", "ts": 1, "dur": 7, "args": {"External id": 2} | REDUCE},
        base | {"name": "nccl:all_reduce", "ts": 2, "dur": 5, "cat": "user_annotation"},
        base | {"name": "cudaLaunchKernel", "ts": 3, "dur": 1, "cat": "cuda_runtime", "args": {"correlation": 5}},
        base | {"name": "ncclDevKernel_Generic(x)", "ts": 5, "dur": 8, "cat": "kernel", "pid": 0,
                "args": {"correlation": 5, "device": 0, "stream": 7}},
    ]  # fmt: skip
    data = json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": 4}, "traceEvents": events}).encode()
    report = compared(read(data, "x", "machine"))

    assert [(row["operation"], row["bytes"], row["ranks"]) for row in report.collectives] == [("all_reduce", 4 * MB, 2)]
    assert report.rows[0]["rank"] == 4


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "all_reduce"),
        ("nccl:_all_gather_base", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "send_recv"),
        ("all-to-all.3", "all_to_all"),
        ("collective-permute", "send_recv"),
        ("wait", "wait"),
    ],
)
def test_operations_by_name(name, operation):
    assert operation_of(name) == operation


@pytest.mark.parametrize(
    ("dims", "types", "size"),
    [
        ("[[16,2]]", '["float"]', 128),
        ("[[8],[4]]", '["c10::BFloat16","long"]', 48),
        ("[[],[]]", '["float","Scalar"]', 0),
        ("garbage", '["float"]', 0),
        ("[[3]]", '["mystery"]', 0),
        ("[" * 100_000, '["float"]', 0),
        (f"[[{2**40}, {2**40}]]", '["float"]', 0),
    ],
    ids=["matrix", "two types", "scalar", "no JSON", "unknown type", "nested without end", "more than there can be"],
)
def test_bytes_of_inputs(dims, types, size):
    assert _input_bytes(dims, types) == size


# -- real ones -----------------------------------------------------------------------------------------------------


def test_two_processes_of_which_one_is_slow(torch_ddp_capture: FrameworkCapture) -> None:
    report = stepscope.load(torch_ddp_capture.logdir).report("distributed")
    assert isinstance(report, distributed.DistributedReport)

    assert report.job["slowest_rank"] == "rank 1"
    fast, slow = report.rows
    # Rank 1 sleeps in each step.
    assert float(str(fast["waiting_ms"])) > 2 / 3 * torch_programs.ACTIVE * torch_programs.SLOW_SECONDS * 1e3
    assert float(str(slow["waiting_ms"])) < float(str(fast["waiting_ms"])) / 2
    assert {row["operation"] for row in report.collectives} == {"all_reduce"}
    assert {row["bytes"] for row in report.collectives} == {4 * 2 * (256 * 256 + 256)}
    assert [row["last"] for row in report.collectives] == ["rank 1"]


_OF_TYPE = {"Float": 4, "BFloat16": 2, "Long": 8, "Byte": 1}
_LINK_SHARE = {"allreduce": lambda n: 2 * (n - 1) / n, "broadcast": lambda n: 1.0}


@pytest.mark.parametrize(
    "name", ["torch-nccl/nccl.pt.trace.json.gz", "torch-mi300-resnet/resnet_act_checkpoint.pt.trace.json.gz"]
)
def test_collectives_are_what_their_kernels_say(corpus: Path, name: str) -> None:
    """Count, bytes, time and bus bandwidth of each sort of collective, against a direct sum over the file."""
    document = json.loads(gzip.decompress((corpus / name).read_bytes()), strict=False)
    wanted: dict[tuple[str, int], list[float]] = defaultdict(list)
    for event in document["traceEvents"]:
        args = event.get("args") or {}
        if event.get("cat") == "kernel" and "Collective name" in args:
            size = max(args["In msg nelems"], args["Out msg nelems"]) * _OF_TYPE[args["dtype"]]
            wanted[args["Collective name"], size].append(event["dur"])
            ranks = args["Group size"]

    rows = stepscope.load(corpus / name).report("distributed").to_dict()["collectives"]

    found = {(row["operation"].replace("_", ""), row["bytes"]): row for row in rows if row["bytes"]}
    assert found.keys() == wanted.keys()
    for (operation, size), times in wanted.items():
        row = found[operation, size]
        assert (row["count"], row["ranks"]) == (len(times), ranks)
        assert row["total_us"] == pytest.approx(sum(times), abs=1e-3)
        bandwidth = size * _LINK_SHARE[operation](ranks) / (sum(times) / len(times)) / 1e3
        assert row["bus_gb_per_s"] == pytest.approx(bandwidth, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("stated", "shown"), [(3, 3), ("3", 3), ("²", None), (-1, None), (2**64 - 1, None)])
def test_a_rank_is_a_number_that_a_job_can_have(stated: int | str, shown: int | None) -> None:
    builder = TraceBuilder("host")
    builder.plane("/host:CPU", PlaneKind.HOST, stats={"rank": stated})

    assert compared(builder.build()).rows[0]["rank"] == shown


def test_a_world_of_more_ranks_than_there_are_is_unknown() -> None:
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST, stats={"world_size": 2**64 - 1}), "main")
    line.event("gloo:all_reduce", 0, 5, EventKind.COLLECTIVE_CALL)

    assert compared(builder.build()).collectives[0]["ranks"] is None


@pytest.mark.parametrize(("share", "said"), [(0.5, 50.0), (1.0, 100.0), (1.008, 100.0)])
def test_no_part_explains_more_than_the_whole_gain(share: float, said: float) -> None:
    assert _percent_of_gain(share) == said
