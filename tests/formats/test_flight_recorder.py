"""Dumps of PyTorch's flight recorder: a small job in which a rank does not come to a collective."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.errors import UnreadableError
from stepscope.formats.base import format_of
from stepscope.formats.flight_recorder.reader import read
from stepscope.model import EventKind

START = 1_700_000_000_000_000_000


def call(number: int, operation: str, line: int, done: bool = True) -> dict[str, Any]:
    created = START + number * 1_000_000
    return {
        "process_group": ("0", "default_pg"), "collective_seq_id": number, "profiling_name": f"nccl:{operation}",
        "time_created_ns": created, "time_discovered_completed_ns": created + 500_000 if done else None,
        "input_sizes": [[4, 8]], "input_dtypes": ["Float"], "state": "completed" if done else "started",
        "frames": [
            {"name": "all_reduce", "filename": "/usr/lib/python3/site-packages/torch/distributed/x.py", "line": 1},
            {"name": "train", "filename": "/home/me/train.py", "line": line},
        ],
    }  # fmt: skip


def dump(*calls: dict[str, Any], ranks: str = "[0, 1, 2]") -> dict[str, Any]:
    groups = {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}}
    return {"version": "2.10", "pg_config": groups, "entries": list(calls)}


def write(folder: Path, *dumps: dict[str, Any], as_json: bool = False) -> Path:
    for rank, each in enumerate(dumps):
        content = json.dumps(each).encode() if as_json else pickle.dumps(each)
        (folder / f"nccl_trace_rank_{rank}").write_bytes(content)
    return folder


@pytest.mark.parametrize("as_json", [False, True])
def test_the_rank_that_did_not_come_is_named_with_its_line(as_json: bool, tmp_path: Path) -> None:
    came = dump(call(1, "all_reduce", 10), call(2, "all_gather", 20, done=False))
    stayed = dump(call(1, "all_reduce", 15))
    report = stepscope.load(write(tmp_path, came, stayed, came, as_json=as_json)).distributed().to_dict()

    assert [(row["rank"], row["operation"], row["number"], row["what"]) for row in report["missing"]] == [
        (1, "all_gather", 2, "did not arrive; its last is all_reduce #1")
    ]
    assert report["findings"][0] == (
        "rank 1 did not arrive; its last is all_reduce #1, at /home/me/train.py(15): train: "
        "the others wait in all_gather #2 of process group 0 (default_pg)"
    )


def test_a_rank_that_came_with_another_operation_and_one_without_a_dump(tmp_path: Path) -> None:
    came, other = dump(call(7, "all_reduce", 10, done=False)), dump(call(7, "broadcast", 11, done=False))
    ranks = "[0, 1, 2, 3]"
    dumps = [each | {"pg_config": dump(ranks=ranks)["pg_config"]} for each in (came, other, came)]
    report = stepscope.load(write(tmp_path, *dumps)).distributed().to_dict()

    assert [(row["rank"], row["what"]) for row in report["missing"]] == [
        (1, "arrived with broadcast instead"),
        (3, "left no dump"),
    ]


def test_a_job_that_went_on_has_nobody_missing(tmp_path: Path) -> None:
    one, other = dump(call(1, "all_reduce", 10), call(2, "all_reduce", 10)), dump(call(1, "all_reduce", 10))

    assert stepscope.load(write(tmp_path, one, other, one)).distributed().to_dict()["missing"] == []


def test_a_dump_is_a_trace_of_calls() -> None:
    trace = read(pickle.dumps(dump(call(1, "all_reduce", 10))), "nccl_trace_rank_3", "nccl_trace_rank_3")

    assert trace.events.kind.tolist() == [EventKind.COLLECTIVE_CALL]
    assert trace.events.duration_ps.tolist() == [500_000_000]
    facts = trace.stats_of_event(0)
    assert (facts["Collective name"], facts["In msg nelems"], facts["Seq"]) == ("all_reduce", 32, 1)
    assert trace.stats_of_plane(0) == {"rank": 3}


class _Runs:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch executed",)


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(_Runs()), pickle.dumps({"entries": [_Runs()]}), pickle.dumps([1, 2]), b"\x80\x04", b"{", b"",
        b'{"a": 1}', pickle.dumps(dump(call(1, "all_reduce", 10)))[:40],
    ],
)  # fmt: skip
def test_what_is_no_dump_of_plain_values_has_a_reason_and_runs_nothing(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UnreadableError) as refused:
        read(content, "nccl_trace_rank_0", "x")
    if b"system" in content:
        assert "system, which is never imported" in refused.value.problem.reason
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("name", ["nccl_trace_rank_0", "comm_lib_trace_rank_12", "nccl_trace_rank_3.json"])
def test_names_of_dumps(name: str) -> None:
    found = format_of(name)

    assert found is not None
    assert found.name == "flight-recorder"


@pytest.mark.parametrize(
    "entry", [{}, {"time_created_ns": -1}, {"time_created_ns": 5, "process_group": 7, "frames": 3}]
)
def test_odd_entries_are_no_obstacle(entry: dict[str, Any]) -> None:
    read(pickle.dumps(dump() | {"entries": [entry]}), "nccl_trace_rank_0", "x")
