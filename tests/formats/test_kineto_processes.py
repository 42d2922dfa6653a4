"""Trace JSON whose rows tell what they are by their process, and ids as writers spell them: small traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.analysis.trace.grouping import forest
from stepscope.formats.kineto.reader import read, read_hosts
from stepscope.model import EventKind, HostTrace, PlaneKind


def row(name: str, pid: object, tid: object, ts: float, dur: float = 1, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, **more}


def called(pid: object, name: str, tid: object = None) -> dict[str, Any]:
    kind = "process_name" if tid is None else "thread_name"
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid or 0, "args": {"name": name}}


def arrow(cat: str, number: int, start: tuple[object, object, float], end: tuple[object, object, float]) -> Any:
    places = zip("sf", (start, end), strict=True)
    shared = {"cat": cat, "name": cat, "id": number}
    return [{"ph": ph, **shared, "pid": pid, "tid": tid, "ts": ts} for ph, (pid, tid, ts) in places]


def load(*events: Any, **top: Any) -> HostTrace:
    trace = read(json.dumps({**top, "traceEvents": list(events)}).encode(), "x.json", "h")
    trace.check()
    return trace


def work(trace: HostTrace) -> dict[str, tuple[str, str, str]]:
    """The plane, line and kind of each event by its name."""
    found = {}
    for event in range(len(trace.events)):
        line = int(trace.events.line[event])
        plane = trace.plane_name(int(trace.lines.plane[line]))
        kind = EventKind(trace.events.kind[event]).name
        found[trace.name_of(event)] = (plane, trace.strings[int(trace.lines.name[line])], kind)
    return found


def op_of(trace: HostTrace, name: str) -> object:
    event = next(event for event in range(len(trace.events)) if trace.name_of(event) == name)
    return trace.stats_of_event(event).get("tf_op")


# -- roles of processes ------------------------------------------------------------------------------------------------


def test_what_torch_npu_writes_is_work_of_a_device_that_ops_launched() -> None:
    trace = load(
        *(called(pid, name) for pid, name in ((7, "python3"), (8, "CANN"), (9, "Ascend Hardware"))),
        *(called(pid, name) for pid, name in ((10, "Overlap Analysis"), (11, "Communication"))),
        called(9, "Stream 2", 2), called(11, "Group g Communication", 4), called(11, "Plane 0", 5),
        row("aten::mm", 7, 7, 10, 5, cat="cpu_op"),
        row("AscendCL@aclnnMm", 8, 7, 11, 2, args={"connection_id": 3}),
        row("MatMulV3", 9, 2, 20, 8, args={"Task Type": "AI_CORE", "connection_id": 3}),
        row("EVENT_WAIT", 9, 2, 28, 4), row("Computing", 10, 0, 20, 8),
        row("hcom_allReduce__1", 11, 4, 30, 3), row("Reduce_Inline", 11, 5, 30, 3),
        *arrow("async_npu", 1, (7, 7, 10), (9, 2, 20)),
        schemaVersion=1,
    )  # fmt: skip
    assert work(trace) == {
        "aten::mm": ("/host:CPU", "thread 7", "OP"),
        "AscendCL@aclnnMm": ("/host:CPU", "thread 7", "RUNTIME_CALL"),
        "MatMulV3": ("/device:NPU:0", "Stream #2(Compute)", "KERNEL"),
        "EVENT_WAIT": ("/device:NPU:0", "Stream #2 waits", "OTHER"),
        "hcom_allReduce__1": ("/device:NPU:0", "Stream #4(Collective)", "COLLECTIVE"),
    }
    assert op_of(trace, "MatMulV3") == "aten::mm"
    assert trace.problems == ()


ALL_REDUCE = [row("AllReduce-op1_0", 11, 70000, 10, 50)]


@pytest.mark.parametrize(("wholes", "kinds"), [(ALL_REDUCE, {"AllReduce-op1_0"}), ([], {"Plane 1", "Plane 2"})])
def test_tasks_of_ascend_that_are_parts_of_a_collective_are_communication_by_their_planes(
    wholes: list[Any], kinds: set[str]
) -> None:
    """A part is drawn on a plane of the collectives and on its stream: what it is called says nothing."""
    parts = [("Reduce_Inline", "REDUCE_ASYNC_V2", 10, 20), ("Memcpy", "MEMCPY_ASYNC", 30.25, 29.75)]
    trace = load(
        called(9, "Ascend Hardware"), called(9, "Stream 2", 2), called(9, "Stream 12", 12),
        called(11, "HCCL"), called(11, "Communication Kernel", 70000),
        called(11, "Plane 1", 71), called(11, "Plane 2", 72),
        row("MatMul", 9, 2, 0, 10), row("MEMCPY_ASYNC", 9, 2, 60, 4),
        *(row(task, 9, 12, start, length) for _, task, start, length in parts),
        *(row(f"Plane {at}", 11, 70 + at, start, length) for at, (_, _, start, length) in enumerate(parts, start=1)),
        *wholes,
    )  # fmt: skip
    found = {name: kind for name, (_, _, kind) in work(trace).items()}
    assert found == {"MatMul": "KERNEL", "MEMCPY_ASYNC": "COPY_OTHER", **dict.fromkeys(kinds, "COLLECTIVE")}
    assert len(trace.events) == 2 + len(kinds)


def test_the_exporter_of_pytorch_1_5_names_processes_and_draws_a_line_for_each_device() -> None:
    trace = load(
        row("addmm", "CPU functions", 0, 10, 20), row("sgemm", "CUDA functions", 1, 15, 40),
        *arrow("cpu_to_cuda", 5, ("CPU functions", 0, 10), ("CUDA functions", 1, 15)),
    )  # fmt: skip
    assert work(trace) == {
        "addmm": ("/host:CPU", "thread 0", "OP"),
        "sgemm": ("/device:GPU:1", "Stream #0(Compute)", "KERNEL"),
    }
    assert op_of(trace, "sgemm") == "addmm"


def test_what_the_exporter_of_pytorch_1_5_repeats_of_a_range_on_a_device_is_no_work() -> None:
    trace = load(
        row("predict", "CPU functions", 0, 0, 50), row("aten::mm", "CPU functions", 0, 10, 20),
        row("predict", "CUDA functions", 1, 10, 60), row("aten::mm", "CUDA functions", 1, 15, 40),
    )  # fmt: skip

    assert {kind for name, (plane, _, kind) in work(trace).items() if "GPU" in plane} == {"KERNEL", "SCOPE"}


@pytest.mark.parametrize("place", [{"pid": "CPU functions"}, {"pid": 7, "cat": "Operator"}], ids=["1.5", "1.8"])
def test_a_range_of_the_program_that_is_written_like_an_op_is_none(place: dict[str, Any]) -> None:
    def wrote(name: str, ts: int, dur: int, **args: Any) -> dict[str, Any]:
        return row(name, ts=ts, dur=dur, tid=0, args=args, **place)

    trace = load(
        wrote("predict", 0, 50), wrote("aten::linear", 10, 20), wrote("aten::addmm", 12, 10),
        wrote("AddmmBackward", 60, 20), wrote("aten::mm", 62, 10),
        wrote("MyFunction", 90, 20, **{"Sequence number": 3}), wrote("aten::exp", 92, 10),
        wrote("lone", 120, 20),
    )  # fmt: skip

    assert {name: kind for name, (_, _, kind) in work(trace).items() if "aten" not in name} == {
        "predict": "ANNOTATION", "AddmmBackward": "OP", "MyFunction": "OP", "lone": "OP"
    }  # fmt: skip


def test_the_timeline_of_tensorflow_1_has_a_process_for_each_stream_of_a_device() -> None:
    op, whole = {"cat": "Op"}, "/job:localhost/replica:0/task:0/device:GPU:0 Compute"
    names = {1: whole, 2: whole.replace("GPU", "CPU")}
    names |= {number: f"/device:GPU:0/{stream} Compute" for number, stream in (
        (3, "stream:13"), (4, "stream:14"), (5, "stream:all"), (6, "memcpy"))}  # fmt: skip
    trace = load(
        *(called(pid, name) for pid, name in names.items()),
        row("MatMul", 1, 0, 0, 5, **op), row("NoOp", 2, 0, 0, 1, **op), row("Conv2D", 3, 0, 6, 9, **op),
        row("MEMCPYHtoD", 4, 0, 5, 1, **op), row("Conv2D ", 5, 0, 6, 9, **op), row("MEMCPYHtoD ", 6, 0, 5, 1, **op),
    )  # fmt: skip

    assert trace.framework == "tensorflow"
    assert {name: (plane, kind) for name, (plane, _, kind) in work(trace).items()} == {
        "MatMul": ("/host:CPU", "OP"), "NoOp": ("/host:CPU", "OP"),
        "Conv2D": ("/device:GPU:0", "KERNEL"), "MEMCPYHtoD": ("/device:GPU:0", "COPY_HOST_TO_DEVICE"),
    }  # fmt: skip


def test_work_of_a_stream_of_tensorflow_1_is_started_by_the_op_of_its_node_and_copies_by_whose_result_they_move() -> (
    None
):
    op = {"cat": "Op"}
    trace = load(
        called(1, "/job:a/task:0/gpu:0 Compute"), called(2, "/job:a/task:0/cpu:0 Compute"),
        called(3, "/device:GPU:0/stream:7 Compute"),
        row("Conv2D", 1, 0, 10, 5, args={"name": "net/conv", "op": "Conv2D"}, **op),
        row("IteratorGetNext", 2, 0, 0, 8, args={"name": "next", "op": "IteratorGetNext"}, **op),
        row("Conv2D ", 3, 0, 12, 9, args={"name": "net/conv", "op": "Conv2D"}, **op),
        row("MEMCPYHtoD", 3, 0, 9, 1, args={"name": "edge_84_next", "op": "MEMCPYHtoD"}, **op),
    )  # fmt: skip

    kinds = {name: kind for name, (_, _, kind) in work(trace).items()}
    assert kinds == {
        "Conv2D": "OP", "IteratorGetNext": "INPUT_WAIT", "Conv2D ": "KERNEL", "MEMCPYHtoD": "COPY_HOST_TO_DEVICE"
    }  # fmt: skip
    cause = {trace.name_of(event): int(by) for event, by in enumerate(forest(trace).cause.tolist())}
    assert trace.name_of(cause["Conv2D "]) == "Conv2D"
    assert trace.name_of(cause["MEMCPYHtoD"]) == "IteratorGetNext"
    assert op_of(trace, "Conv2D ") == "Conv2D"


def test_ops_of_all_devices_of_tensorflow_1_are_on_one_line_as_far_as_they_fit() -> None:
    """The writer's lines are no threads: what the CPU does before an op of a device is what that waits for."""
    op = {"cat": "Op"}
    trace = load(
        called(1, "/job:a/task:0/gpu:0 Compute"), called(2, "/job:a/task:0/cpu:0 Compute"),
        row("IteratorGetNext", 2, 0, 0, 8, **op), row("Const", 1, 0, 1, 1, **op), row("Conv2D", 1, 0, 10, 5, **op),
        row("NcclAllReduce", 1, 1, 12, 9, **op),
    )  # fmt: skip

    line = {trace.name_of(at): int(trace.events.line[at]) for at in range(len(trace.events))}
    assert line["IteratorGetNext"] == line["Const"] == line["NcclAllReduce"] != line["Conv2D"]


def test_a_device_whose_streams_are_recorded_together_has_them_on_one_line() -> None:
    trace = load(called(5, "/device:GPU:1/stream:all Compute"), row("Conv2D", 5, 0, 6, 9, cat="Op"))

    assert work(trace)["Conv2D"][::2] == ("/device:GPU:1", "KERNEL")


def test_rows_of_a_process_that_nobody_knows_are_counted_and_are_no_program_of_the_host() -> None:
    trace = load(
        row("aten::mm", 7, 7, 10, 5, cat="cpu_op"),
        called(9, "Foo Accelerator"), row("foo_mm", 9, 0, 12, 3000), row("foo_add", 9, 0, 4000, 500),
        schemaVersion=1,
    )  # fmt: skip
    [problem] = trace.problems
    assert problem.code == "unknown-rows"
    assert "2 rows of the process 'Foo Accelerator', 3.5 ms" in problem.reason
    kinds = {trace.plane_name(plane): PlaneKind(trace.planes.kind[plane]) for plane in range(len(trace.planes))}
    assert kinds == {"/host:CPU": PlaneKind.HOST, "Foo Accelerator [9]": PlaneKind.OTHER}


def test_processes_with_names_and_no_events_are_not_counted() -> None:
    assert load(row("aten::mm", 7, 7, 10, cat="cpu_op"), called(0, "python"), schemaVersion=1).problems == ()


# -- ids ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spell",
    [int, str, lambda number: number + 2**63, lambda number: str(number + 2**63), lambda number: f" {number} "],
    ids=["number", "text", "beyond-63-bits", "text-beyond", "spaces"],
)
def test_ids_link_work_to_launches_however_they_are_spelled(spell: Any) -> None:
    trace = load(
        row("aten::mm", 7, 7, 10, 5, cat="cpu_op", args={"External id": spell(2)}),
        row("aten::add", 7, 7, 20, 5, cat="cpu_op", args={"External id": spell(3)}),
        row("cudaLaunchKernel", 7, 7, 11, 2, cat="cuda_runtime",
            args={"External id": spell(2), "correlation": spell(41)}),
        row("gemm", 0, 20, 30, 8, cat="kernel", args={"correlation": spell(41)}),
        schemaVersion=1,
    )  # fmt: skip
    assert op_of(trace, "gemm") == "aten::mm"
    rows, ids = trace.events_with_int(("correlation_id",), least=1)
    assert len(rows) == 2
    assert len(set(ids.tolist())) == 1


def test_text_that_is_no_number_is_no_id() -> None:
    launch = row("cudaLaunchKernel", 7, 7, 11, 2, cat="cuda_runtime", args={"correlation": "n/a"})
    trace = load(launch, row("gemm", 0, 20, 30, 8, cat="kernel", args={"correlation": "n/a"}), schemaVersion=1)
    assert len(trace.events_with_int(("correlation_id",), least=1)[0]) == 0


# -- several processes in one file -------------------------------------------------------------------------------------


def rank(pid: object, gpu: object, step_us: int) -> list[dict[str, Any]]:
    """Two steps of one process: an op, its launch and a kernel that fills the rest; all ranks number them alike."""
    events = []
    for step in range(2):
        start = step * step_us
        events += [
            row(f"ProfilerStep#{step}", pid, pid, start, step_us, cat="user_annotation"),
            row("aten::mm", pid, pid, start + 1, 5, cat="cpu_op", args={"External id": step + 1}),
            row("cudaLaunchKernel", pid, pid, start + 2, 2, cat="cuda_runtime",
                args={"External id": step + 1, "correlation": step + 7}),
            row("gemm", gpu, 7, start + 10, step_us - 20, cat="kernel", args={"correlation": step + 7}),
        ]  # fmt: skip
    return events


def hosts(*events: Any) -> dict[str, tuple[list[str], float]]:
    """The planes of each host and how long its kernels take in us."""
    content = json.dumps({"schemaVersion": 1, "traceEvents": list(events)}).encode()
    found = {}
    for trace in read_hosts(content, "x.json", "h"):
        trace.check()
        kernels = trace.events.duration_ps[trace.events.kind == EventKind.KERNEL]
        found[trace.host] = [trace.plane_name(each) for each in range(len(trace.planes))], kernels.sum() / 1e6
        assert all(op_of(trace, "gemm") == "aten::mm" for _ in kernels)
    return found


@pytest.mark.parametrize(
    ("first", "second", "names", "gpus"),
    [
        ((41, 0), (42, 1), ("rank 0", "rank 1"), (0, 1)),
        (("rank 3: 41", "rank 3: GPU 0"), ("rank 4: 42", "rank 4: GPU 0"), ("rank 3", "rank 4"), (0, 0)),
        (("0_41", "0_0"), ("1_42", "1_0"), ("rank 0", "rank 1"), (0, 0)),
        ((41, 0), (42, 0), ("process 41", "process 42"), (0, 0)),
    ],
    ids=["a-gpu-each", "text", "prefix", "gpus-of-one-number"],
)
def test_processes_in_one_file_are_hosts_each_with_its_own_ids(
    first: Any, second: Any, names: tuple[str, str], gpus: tuple[int, int]
) -> None:
    assert hosts(*rank(*first, 100), *rank(*second, 200)) == {
        names[0]: (["/host:CPU", f"/device:GPU:{gpus[0]}"], 160.0),
        names[1]: (["/host:CPU", f"/device:GPU:{gpus[1]}"], 360.0),
    }


def test_rows_of_processes_that_alternate_are_told_apart_by_when_their_work_was_launched() -> None:
    both = sorted([*rank(41, 0, 100), *rank(42, 1, 230)], key=lambda event: float(event["ts"]))
    assert [took for _, took in hosts(*both).values()] == [160.0, 420.0]


def test_a_file_of_one_process_is_one_host() -> None:
    assert list(hosts(*rank(41, 0, 100))) == ["h"]


def document(rank: int | None, base: int, step_us: int) -> bytes:
    """What one rank wrote: its process has the number 1, as in a container."""
    job = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 2}}
    events = [called(1, f"trainer {rank}")]
    events += [row(f"ProfilerStep#{at}", 1, 1, at * step_us, step_us, cat="user_annotation") for at in range(3)]
    events += [row("aten::mm", 1, 1, at * step_us + 1, step_us - 2, cat="cpu_op") for at in range(3)]
    return json.dumps({"baseTimeNanoseconds": base, **job, "traceEvents": events}).encode()


def test_documents_of_ranks_after_one_another_are_hosts_on_one_clock() -> None:
    """Equal numbers of processes, which would otherwise be one process that does two things at once."""
    base = 1_790_857_026_000_000_000
    text = document(1, base, 30) + b"\n" + document(0, base + 5_000, 20)

    first, second = read_hosts(text, "x.json", "h")

    starts = [(trace.host, trace.start_unix_ns) for trace in (first, second)]
    assert starts == [("rank 0", base + 5_000), ("rank 1", base)]
    assert [len(trace.events) for trace in (first, second)] == [6, 6]
    assert [problem.code for problem in first.problems] == ["several-processes"]
    for trace in (first, second):
        trace.check()


@pytest.mark.parametrize("ranks", [(None, None), (0, 0), (0, None)])
def test_documents_that_do_not_say_that_they_are_ranks_are_one_trace(ranks: tuple[int | None, int | None]) -> None:
    text = b"".join(document(rank, 10**18, 20) for rank in ranks)

    (trace,) = read_hosts(text, "x.json", "h")

    assert (len(trace.events), [problem.code for problem in trace.problems]) == (12, ["concatenated"])


def test_what_stepscope_shows_of_a_file_of_two_ranks(tmp_path: Path) -> None:
    path = tmp_path / "merged.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [*rank(41, 0, 100), *rank(42, 1, 200)]}))
    profile = stepscope.load(path)
    report = profile.distributed().to_dict()

    assert profile.hosts == ("rank 0", "rank 1")
    assert [row["rank"] for row in report["rows"]] == [0, 1]
    assert report["slowest_rank"] == "rank 1"
    assert any("the file holds 2 processes" in warning for warning in report["warnings"])
    assert [row["duration_ms"] for row in stepscope.load(path, host="rank 1").steps().to_dict()["rows"]] == [0.2, 0.2]


@pytest.mark.parametrize(("name", "framework"), [("aten::mm", "pytorch"), ("PjitFunction(step)", "jax")])
def test_what_stepscope_exported_keeps_the_framework(name: str, framework: str) -> None:
    assert load(row(name, 7, 7, 10, cat="op,stepscope")).framework == framework
