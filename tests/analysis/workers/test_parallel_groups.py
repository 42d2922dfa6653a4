"""Process groups and pipelines, on drawn traces."""

from __future__ import annotations

import json
from typing import Any

import pytest
from draw import Sort, draw
from reporting import reporter

from stepscope.analysis.workers import distributed_tool as distributed
from stepscope.formats.kineto.reader import read
from stepscope.model import EventKind, HostTrace

PICTURE = {
    # P sends or receives, k computes, N reduces gradients.
    0: """
        host main | M0------------------
        gpu0 s7   | k-k-    k-  k-  N---
        gpu0 s20  |     P---  P-
    """,
    1: """
        host main | M0------------------
        gpu0 s7   |    k---k-  N-------
        gpu0 s20  | P--
    """,
}


def facts(operation: str, group: str, ranks: str, description: str) -> dict[str, Any]:
    return {
        "Collective name": operation, "In msg nelems": 1000, "dtype": "Float", "Group size": ranks.count(",") + 1,
        "Process Group Name": group, "Process Group Ranks": ranks, "Process Group Description": description,
    }  # fmt: skip


def stage(rank: int, pipeline: str = "mesh_pp", picture: str | None = None) -> HostTrace:
    passed = facts("send", "3", "[0, 1]", pipeline)
    sorts = {
        "P": Sort(EventKind.COLLECTIVE, "ncclDevKernel_SendRecv", "correlation_id", passed),
        "N": Sort(EventKind.COLLECTIVE, "ncclDevKernel_AllReduce", "correlation_id",
                  facts("allreduce", "1", f"[{rank}, {rank + 2}]", "mesh_dp")),
    }  # fmt: skip
    return draw(picture or PICTURE[rank], sorts, host=f"rank{rank}")


report = reporter(distributed)


def test_the_bubble_is_the_part_of_the_step_without_other_work() -> None:
    rows = report(stage(1), stage(0)).pipeline

    assert [(row["group"], row["stage"], row["rank"]) for row in rows] == [("3 [0, 1]", 0, 0), ("3 [0, 1]", 1, 1)]
    assert [(row["step_ms"], row["bubble_ms"], row["transfers"]) for row in rows] == [(20, 8, 2), (20, 6, 1)]
    assert [row["bubble_percent"] for row in rows] == [40.0, 30.0]


def test_a_sentence_says_how_much_the_pipeline_stands_still() -> None:
    findings = report(stage(0), stage(1)).findings
    [said] = [each for each in findings if "pipeline" in each]
    assert said.startswith(
        "the pipeline is idle 35.0 % of the step on average, from 30.0 % (rank 1) to 40.0 % (rank 0)"
    )


def test_groups_are_named_with_what_they_are_for() -> None:
    rows = {row["group"]: row for row in report(stage(0), stage(1)).groups if row["members"] != "[1, 3]"}
    assert (rows["3"]["parallelism"], rows["3"]["description"], rows["3"]["members"]) == (
        "pipeline",
        "mesh_pp",
        "[0, 1]",
    )
    assert (rows["1"]["parallelism"], rows["1"]["operations"], rows["1"]["ranks"]) == ("data", "all_reduce", 2)
    assert (rows["3"]["count"], rows["3"]["total_us"]) == (3, 9000)


@pytest.mark.parametrize(
    ("description", "stages"), [("default_pg", 1), ("", 1), ("mesh_cp", 0), ("MOE_EXPERT_GROUP", 0)]
)
def test_sends_of_a_group_for_something_else_are_no_pipeline(description: str, stages: int) -> None:
    assert len(report(stage(0, description)).pipeline) == stages


def test_what_an_exchange_runs_as_sends_is_no_pipeline() -> None:
    """The program asked for all of its exchanges; of the last one only the kernel was recorded."""
    sorts = {
        "A": Sort(EventKind.COLLECTIVE, "ncclDevKernel_SendRecv", stats={"Collective name": "all_to_all"}),
        "P": Sort(EventKind.COLLECTIVE, "ncclDevKernel_SendRecv"),
    }
    assert report(draw("host main | M0----\ngpu0 s7   | kA-kP-", sorts)).pipeline == ()


def test_without_sends_there_is_no_pipeline() -> None:
    found = report(stage(0, picture="host main | M0------\ngpu0 s7   | k-N---"))
    assert found.pipeline == ()
    assert not any("pipeline" in each for each in found.findings)


# ---- groups that a recording describes -------------------------------------------------------------------------------

GROUPS = [
    {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "ranks": [], "group_size": 4},
    {"pg_name": "1", "pg_desc": "mesh_tp", "backend_config": "cuda:nccl", "ranks": [0, 1], "pg_size": 2},
    {"pg_name": "2", "pg_desc": "undefined", "ranks": [0, 2]},
]


def recorded(groups: object, **args: object) -> distributed.DistributedReport:
    """One all-reduce of a rank whose recording describes its groups."""
    kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "pid": 0, "tid": 7}
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 9, "tid": 9, "ts": 1, "dur": 2}
    job = {"backend": "nccl", "rank": 0, "world_size": 4, "pg_config": groups}
    event = kernel | {"ts": 5, "dur": 8, "args": {"device": 0, "stream": 7, "correlation": 5, **args}}
    data = json.dumps({"schemaVersion": 1, "distributedInfo": job, "traceEvents": [op, event]}).encode()
    return report(read(data, "x", "machine"))


def test_what_a_collective_leaves_out_of_its_group_comes_from_the_recording() -> None:
    found = recorded(GROUPS, **{"Process Group Name": "1"})
    assert dict(found.groups[0]) == {
        "group": "1", "description": "mesh_tp", "parallelism": "tensor", "members": "[0, 1]", "ranks": 2,
        "operations": "all_reduce", "count": 1, "total_us": 8.0,
    }  # fmt: skip
    assert [(row["ranks"], row["group"]) for row in found.collectives] == [(2, "1 [0, 1]")]


def test_groups_in_which_nothing_ran_are_listed_as_well() -> None:
    rows = recorded(GROUPS, **{"Process Group Name": "1"}).groups[1:]
    assert [(row["group"], row["description"], row["members"], row["ranks"]) for row in rows] == [
        ("0", "default_pg", None, 4),
        ("2", None, "[0, 2]", 2),
    ]
    assert {(row["operations"], row["count"], row["total_us"]) for row in rows} == {(None, 0, 0.0)}


@pytest.mark.parametrize(("groups", "named"), [(GROUPS, None), (GROUPS[:1], "0")])
def test_a_collective_without_a_group_is_of_the_only_one(groups: object, named: str | None) -> None:
    assert recorded(groups).collectives[0]["group"] == named


@pytest.mark.parametrize(
    "groups", ["no list", [1, None], [{"pg_name": None}], [{"pg_name": "", "ranks": "all"}], {"pg_name": "0"}]
)
def test_groups_that_are_described_otherwise_are_unknown(groups: object) -> None:
    assert recorded(groups).groups == ()


def test_a_few_sends_of_a_group_without_a_purpose_are_no_pipeline() -> None:
    sorts = {
        "P": Sort(EventKind.COLLECTIVE, "ncclDevKernel_SendRecv", "correlation_id", facts("send", "0", "[0, 1]", "")),
        "N": Sort(EventKind.COLLECTIVE, "ncclDevKernel_A2A", "correlation_id", facts("all_to_all", "0", "[0, 1]", "")),
    }
    picture = """
        host main | M0--------------
        gpu0 s7   | k-N-k-N-k-P-k-N-
    """

    assert report(draw(picture, sorts, host="rank0"), draw(picture, sorts, host="rank1")).pipeline == ()
