"""Doubts stand beside an answer, and an end of the job before any share of time."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from draw import Sort, draw
from reporting import context_of

import stepscope
from stepscope.analysis.advice import advise
from stepscope.analysis.overview.overview_tool import merge, partial
from stepscope.analysis.trust.checks import doubts_of
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder

K = EventKind
SORTS = {
    "L": Sort(K.RUNTIME_CALL, "cudaLaunchKernel", "correlation_id"),
    "h": Sort(K.RUNTIME_CALL, "hipLaunchKernel", "correlation_id"),
}


# -- a busy machine ------------------------------------------------------------------------------------------------

LOOP = """
    host main | M0------------------M1------------------M2------------------M3------------------
    host main | I--x----------------I--x----------------I--x----------------I--x----------------
"""


@pytest.mark.parametrize("queued", [0, 12])
def test_a_busy_machine_takes_nothing_from_the_shares_of_the_program(queued: int) -> None:
    """Input takes 3 of the 20 ms, and of the 8 ms that are the program's own it takes as much less."""
    usage = [(20 * at, 20 * at + 20, 20 - queued, queued) for at in range(4)]
    context = context_of(draw(LOOP, usage=usage))
    first = advise(context).items[0]

    assert first.kind.startswith("input")
    assert first.evidence.startswith("15.0 % of each step without contention" if queued else "15.0 % of each step")


# -- work that is not needed ---------------------------------------------------------------------------------------

GRAPH = {"p": Sort(K.OP, "matmul:MatMul"), "c": Sort(K.OP, "matmul/CheckNumericsV2:CheckNumericsV2")}


def test_counted_work_that_is_not_needed_is_said_though_steps_differ_by_more() -> None:
    """Steps take 30 to 90 ms, and each checks its results for 11 ms."""
    steps = [(f"p{'-' * (at * 20 + 9)}c{'-' * 10}   ") for at in (0, 3, 1, 2, 3, 0, 2, 3)]
    marks = "".join(f"M{at}".ljust(len(step), "-") for at, step in enumerate(steps))
    trace = replace(draw(f"host main | {marks}\nhost main | {''.join(steps)}", GRAPH), framework="tensorflow")

    first = advise(context_of(trace)).items[0]
    assert (first.title, first.may_gain_nothing) == ("Turn checks for NaN off", True)


# -- clocks --------------------------------------------------------------------------------------------------------


def early(launch: str, ticks: int) -> HostTrace:
    """Two launches, of which the second has its kernel some ticks before it."""
    lines = f"host main | M0{'-' * 40}\nhost main | {launch}1{' ' * 18}{launch}2\n"
    return draw(f"{lines}gpu0 s    |   K1----{' ' * (12 - ticks)}K2---", SORTS)


def test_a_doubt_weighs_by_the_time_that_it_may_move() -> None:
    (doubt,) = [each for each in doubts_of(early("L", 4)) if each.check == "starts_before_launch"]
    (smaller,) = [each for each in doubts_of(early("L", 2)) if each.check == "starts_before_launch"]

    assert doubt.of_step > smaller.of_step > 1.0


@pytest.mark.parametrize(("launch", "fix"), [("L", "update the driver and CUPTI"), ("h", "update ROCm and its tracer")])
def test_what_to_update_belongs_to_the_maker_of_the_device(launch: str, fix: str) -> None:
    assert [each.fix for each in doubts_of(early(launch, 4)) if each.check == "starts_before_launch"] == [fix]


# -- a job that hung or crashed ------------------------------------------------------------------------------------


def calls_of_rank(last: int, line: int) -> list[dict[str, Any]]:
    """The collectives of a rank up to a number; the second one never ends."""
    return [
        {
            "process_group": ("0", "default_pg"), "collective_seq_id": number, "profiling_name": "nccl:all_reduce",
            "time_created_ns": number * 1_000_000, "time_discovered_completed_ns": number * 1_000_000 + 500_000,
            "input_sizes": [[4]], "input_dtypes": ["Float"], "state": "completed" if number < 2 else "started",
            "frames": [{"name": "train", "filename": "/home/me/train.py", "line": line}],
        }
        for number in range(1, last + 1)
    ]  # fmt: skip


def test_a_hang_is_the_headline_before_any_share(tmp_path: Path) -> None:
    for rank, calls in enumerate((calls_of_rank(2, 20), calls_of_rank(1, 15), calls_of_rank(2, 20))):
        content = {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}}
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps({**content, "entries": calls}))
    found = stepscope.load(tmp_path).overview().to_dict()

    assert found["verdict_text"] == "hang: rank 1 did not come to all_reduce #2"
    assert [item["class"] for item in found["advice"]] == ["none"]
    assert "rank 1 was last seen in train (/home/me/train.py:15)" in found["advice"][0]["actions"][0]


def test_memory_that_ran_out_is_the_headline_and_the_shares_follow() -> None:
    headline, held = "GPU 0 was out of memory: 2,000 bytes were refused and 10 were free", "most is 65 MB in `history`"
    said = (f"{headline}; {held}",)
    trace = replace(draw("host main | M0--------M1--------M2--------\nhost main | x-------- x-------- x--------"),
                    recorder_messages=said)  # fmt: skip
    advised = advise(context_of(trace))

    assert advised.verdict.sentence == "ran out of memory: GPU 0 was asked for 1.953 KiB and had 10 B left"
    assert advised.verdict.evidence == (held,)
    assert [item.id for item in advised.items] == ["job.out-of-memory"]


CRASH = (
    "after this capture the program ran out of memory: asked for 9.0 GiB in Loader.load (data.py:12); in use: resident "
    "1.88 GB; what holds most: 900 MB of arrays with their graph in `history` (train.py:7)"
)


def crashed(*facts: tuple[str, str], said: str = CRASH) -> HostTrace:
    """Six steps, and what was counted: `count bytes dtype shape holder place kind`."""
    builder = TraceBuilder(host="vm")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main", 1)
    for step in range(6):
        line.event("train", step * 10**10, 10**10, EventKind.STEP_MARK, {"step_num": step})
    builder.plane("/stepscope:capture", stats={key: text.replace(" | ", "\t") for key, text in facts})
    builder.recorder_messages.append(said)
    return builder.build()


@pytest.mark.parametrize(("picture", "first", "verdict"), [
    ("host main | x--------", "job.failed", "ended early: the program ended with KeyError in train.py:3: 'lr'"),
    ("host main | M0--------M1--------M2--------\nhost main | x-------- x-------- x--------", "none", None),
], ids=["no step", "after steps"])  # fmt: skip
def test_a_program_that_an_exception_ended_before_a_step_has_that_as_its_headline(picture, first, verdict) -> None:
    trace = replace(draw(picture), recorder_messages=("the program ended with KeyError in train.py:3: 'lr'",))
    advised = advise(context_of(trace))

    assert advised.items[0].id == first
    assert verdict is None or advised.verdict.sentence == verdict


HISTORY = "900 | 900000000 | float32 | [500, 500] | history | train.py:7 | arrays with their graph"
ADAM = "2 | 100000000 | float32 | [500, 500] |  |  | state of the optimizer"
ADDED = "6 | 6000000 | float32 | [500, 500] | history | train.py:7 | arrays with their graph"


def test_what_filled_the_memory_is_counted_and_what_each_step_adds_to_it_is_the_advice() -> None:
    trace = crashed(("full:0", HISTORY), ("full:1", ADAM), ("kept:0", ADDED))
    report = merge([partial(trace)])
    found = report.to_dict()

    assert found["verdict_text"] == "ran out of memory in Loader.load (data.py:12): it asked for 9.0 GiB"
    assert found["verdict_evidence"] == ["in use: resident 1.88 GB", "the capture had ended before"]
    names = ("holder", "place", "held_bytes", "percent", "kind", "bytes_per_step")
    assert [tuple(row[name] for name in names) for row in found["filled"]] == [
        ("history", "train.py:7", 900_000_000, 90.0, "activations", 1_000_000),
        (None, None, 100_000_000, 10.0, "optimizer_state", None),
    ]
    first = found["advice"][0]
    assert first["title"] == "Keep less in history (train.py:7)"
    assert first["evidence"].startswith("`history` (train.py:7) holds 858.3 MiB of the 953.7 MiB that was counted")
    assert "tensor.detach()" in first["actions"][0]
    lines = report.summary_lines()
    assert "filled by  `history` (train.py:7) 90.0 %, optimizer state 10.0 %" in lines
    assert not any("keeps" in line or "what holds most" in line for line in lines), "said once"


@pytest.mark.parametrize(
    ("free", "title"),
    [
        ("; free: 4.0 GiB", "Compute in pieces: Loader.load (data.py:12) asks for 9.00 GiB at once"),
        ("; free: 8.0 GiB", "Keep less in history (train.py:7)"),
        ("", "Keep less in history (train.py:7)"),
    ],
    ids=["more than all", "what is freed makes room", "not known"],
)
def test_a_request_that_is_larger_than_what_is_free_and_in_use_is_the_advice(free: str, title: str) -> None:
    """The program uses 1.88 GB and asks for 9 GiB."""
    said = CRASH.replace("1.88 GB", f"1.88 GB{free}")
    found = merge([partial(crashed(("full:0", HISTORY), ("kept:0", ADDED), said=said))]).to_dict()

    assert found["advice"][0]["title"] == title
    assert (found["too_large_request"] is not None) == (not found["filled"]) == title.startswith("Compute")


def test_memory_that_no_growing_variable_fills_needs_smaller_batches() -> None:
    found = merge([partial(crashed(("full:0", ADAM), ("full:1", HISTORY)))]).to_dict()

    assert found["advice"][0]["title"] == "Make the program fit into memory"
    assert "smaller batch" in found["advice"][0]["actions"][0]


ALLOCATED = {"action": "alloc", "addr": 1 << 20, "size": 4096, "time_us": 10, "stream": 0}
REFUSED = {"action": "oom", "addr": 0, "size": 1 << 30, "device_free": 10, "time_us": 20, "stream": 0}


@pytest.mark.parametrize(
    ("more", "verdict", "title"),
    [
        ([REFUSED], "ran out of memory: GPU 0 was asked for 1.00 GiB and had 10 B left", "Make the program"),
        ([], "memory only: 4 KiB in use at the peak, and no step was recorded", "See what fills the memory"),
    ],
    ids=["ran out", "is as it was"],
)
def test_a_snapshot_of_memory_is_answered_by_what_fills_it(tmp_path: Path, more, verdict, title) -> None:
    allocated = ALLOCATED | {"frames": [{"filename": "/home/me/train.py", "line": 9, "name": "train"}]}
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [[allocated, *more]]}))
    found = stepscope.load(tmp_path).overview().to_dict()

    assert found["verdict_text"] == verdict
    assert [(row["holder"], row["place"], row["held_bytes"]) for row in found["filled"]] == [(None, "train.py:9", 4096)]
    assert found["advice"][0]["title"].startswith(title)
    assert not any("no step marks" in warning or "missing here" in warning for warning in found["warnings"])
