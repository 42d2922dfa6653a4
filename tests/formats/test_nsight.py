"""Exports of Nsight Systems, made by NVIDIA's reference of their tables, against tables worked out by hand."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nsight_build import PID, PROCESS, THREAD, NsightExport, training

import stepscope
from stepscope.analysis.registry import all_tools
from stepscope.analysis.trace.attribution import HowKnown, attribute
from stepscope.errors import UnreadableError
from stepscope.formats.base import format_of
from stepscope.formats.nsight.tables import SqliteTables
from stepscope.model import EventKind, HostTrace, LineKind

K = EventKind


def read(path: Path) -> HostTrace:
    """The trace of a file, as a session's reader makes it."""
    name = "StringIds.parquet" if path.is_dir() else path.name
    file = path / name if path.is_dir() else path
    found = format_of(name)
    assert found is not None
    trace = found.read(file.read_bytes(), str(file), "host")
    trace.check()
    return trace


def events(trace: HostTrace) -> list[tuple[str, str, str, int, int]]:
    """Line, name, kind, start and duration in us of each event, in order of lines and time."""
    return [
        (
            trace.line_name(int(trace.events.line[row])),
            trace.name_of(row),
            K(int(trace.events.kind[row])).name,
            int(trace.events.start_ps[row]) // 10**6,
            int(trace.events.duration_ps[row]) // 10**6,
        )
        for row in range(len(trace.events))
    ]


@pytest.fixture(params=["sqlite", "parquetdir"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def write(export: NsightExport, form: str, folder: Path) -> Path:
    return export.write_sqlite(folder / "t.sqlite") if form == "sqlite" else export.write_parquet(folder / "t_pqtdir")


def test_each_table_gives_its_events(form: str, tmp_path: Path) -> None:
    export = NsightExport()
    export.thread("python")
    export.range("step 3", 0, 100)
    export.range("aten::mm, seq = 4, op_id = 9", 5, 30)
    export.range("a mark", 6, None, kind=34)
    export.call("cudaLaunchKernel_v7000", 10, 12, 1)
    export.call("cudaDeviceSynchronize_v3020", 40, 90, 2)
    export.kernel("ncclDevKernel_AllReduce", 20, 50, 1)
    export.copy(2, 50, 60, 3, streamId=13, srcKind=2, dstKind=1)
    export.memset(60, 61, 4, streamId=13)
    export.graph(62, 80, 5, graph=6)
    export.wait(4, 41, 89, 2, streamId=0xFFFFFFFF)

    assert events(read(write(export, form, tmp_path))) == [
        ("python", "step", "STEP_MARK", 0, 100),
        ("python", "aten::mm", "OP", 5, 25),
        ("python", "a mark", "OTHER", 6, 0),
        ("python", "cudaLaunchKernel", "RUNTIME_CALL", 10, 2),
        ("python", "cudaDeviceSynchronize", "SYNC", 40, 50),
        ("Stream #7(Collective)", "ncclDevKernel_AllReduce", "COLLECTIVE", 20, 30),
        ("Stream #7(Collective)", "graph 6", "GRAPH_LAUNCH", 62, 18),
        ("Stream #13(MemcpyD2H,Memset)", "Memcpy DtoH (Device -> Pinned)", "COPY_DEVICE_TO_HOST", 50, 10),
        ("Stream #13(MemcpyD2H,Memset)", "Memset (Device)", "MEMSET", 60, 1),
        ("waits for all streams", "Context Sync", "SYNC", 41, 48),
    ]


def test_samples_are_frames_of_their_threads(tmp_path: Path) -> None:
    """A thread that does not run is not sampled: from 30 to 90 us it does nothing."""
    export, home, libc = NsightExport(), "/home/me/trainer", "/usr/lib/libc.so.6"
    export.thread("main")
    export.call("cudaMalloc_v3020", 0, 2)
    for time, inner in ((10, "memset"), (20, "memset"), (30, "0x7f01"), (90, "0x7f02"), (100, "memset")):
        export.sample(time, (inner, libc), ("fill(float*, int)", home), ("main", home), ("[Max depth]", "[Max depth]"))
    export.sample(50, ("_PyEval_EvalFrameDefault", "/usr/bin/python3.11"), thread=THREAD + 1)
    trace = read(export.write_sqlite(tmp_path / "t.sqlite"))
    found = [
        (trace.plane_name(int(trace.lines.plane[trace.events.line[row]])), *event)
        for row, event in enumerate(events(trace))
    ]

    assert [(line, name, start, length) for plane, line, name, _, start, length in found if "CPU stack" in plane] == [
        ("main", "main @ trainer", 5, 30),
        ("main", "fill @ trainer", 5, 30),
        ("main", "<memset @ libc.so.6>", 5, 20),
        ("main", "<libc.so.6>", 25, 10),
        ("main", "main @ trainer", 85, 20),
        ("main", "fill @ trainer", 85, 20),
        ("main", "<libc.so.6>", 85, 10),
        ("main", "<memset @ libc.so.6>", 95, 10),
        ("thread 4712", "<_PyEval_EvalFrameDefault @ python3.11>", 45, 10),
    ]
    assert {(line, name) for plane, line, name, *_ in found if "Interpreter" in plane} == {
        ("main", "call"),
        ("thread 4712", "python"),
    }


def test_time_of_the_host_that_samples_show_is_its_computation(tmp_path: Path) -> None:
    """Nothing but two calls of CUDA was recorded of the host; between them it draws numbers."""
    export, home = NsightExport(), "/home/me/trainer"
    export.thread("main")
    export.gpu(0, "NVIDIA H100")
    export.call("cudaMalloc_v3020", 0, 100)
    for time in range(1_000, 900_000, 2_000):
        export.sample(time, ("std::mt19937::operator()", home), ("draw(float*, int)", home), ("main", home))
    export.call("cudaLaunchKernel_v7000", 900_000, 900_010, 1)
    export.kernel("gemm", 900_020, 900_520, 1)
    overview = stepscope.load(export.write_sqlite(tmp_path / "t.sqlite")).overview().to_dict()
    (first, *_) = overview["account"]

    assert (first["cause"], first["culprit"]["name"]) == ("host_compute", "draw @ trainer")
    assert first["percent"] > 90


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Installed CUDA driver version (13.1) is not supported by this build of Nsight Systems. CUDA trace will be"
         " collected using libraries for driver version 12.8", "does not know the CUDA driver 13.1"),
        ("CUDA profiling might have not been started correctly.", "CUDA was not recorded"),
    ],
)  # fmt: skip
def test_nsight_says_itself_why_the_device_is_missing(said: str, why: str, tmp_path: Path) -> None:
    export = NsightExport()
    export.add("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", id=2, label="Warning")
    export.add("DIAGNOSTIC_EVENT", severity=2, text=said, globalPid=PROCESS + (1 << 24))
    with pytest.raises(UnreadableError, match=why):
        read(export.write_sqlite(tmp_path / "empty.sqlite"))
    export.call("cudaGetDeviceProperties_v12000", 0, 500_000)
    overview = stepscope.load(export.write_sqlite(tmp_path / "t.sqlite")).overview().to_dict()

    assert why in overview["verdict_text"]
    assert "Nsight Systems" in overview["advice"][0]["actions"][0]


def test_kernels_that_were_not_recorded_are_no_idle_device(tmp_path: Path) -> None:
    export = NsightExport()
    export.gpu(0, "NVIDIA H100")
    export.call("cuModuleLoadData", 0, 900)
    for at in range(10):
        export.call("cuMemcpyHtoDAsync_v2", 1_000 * (at + 1), 1_000 * (at + 1) + 10, at + 1)
        export.copy(1, 1_000 * (at + 1) + 20, 1_000 * (at + 1) + 60, at + 1, srcKind=0, dstKind=2)
    overview = stepscope.load(export.write_sqlite(tmp_path / "t.sqlite")).overview().to_dict()

    assert "none of them was recorded" in overview["verdict_text"]


def test_times_count_from_the_first_event(tmp_path: Path) -> None:
    """The program was told to record a minute after its session began."""
    export = NsightExport()
    export.thread("python")
    export.range("nccl:all_to_all, op_id = 999469", 60_000, 60_100)
    export.call("cudaLaunchKernel_v7000", 60_010, 60_012, 1)

    assert events(read(write(export, "sqlite", tmp_path))) == [
        ("python", "nccl:all_to_all", "COLLECTIVE_CALL", 0, 100),
        ("python", "cudaLaunchKernel", "RUNTIME_CALL", 10, 2),
    ]


def test_both_forms_are_one_trace(tmp_path: Path) -> None:
    one, other = (read(write(training(), form, tmp_path)) for form in ("sqlite", "parquetdir"))

    assert events(one) == events(other)
    for row in range(len(one.events)):
        assert one.stats_of_event(row) == other.stats_of_event(row)


def test_a_kernel_has_its_sizes_and_its_device_the_facts_of_the_machine(tmp_path: Path) -> None:
    trace = read(training().write_sqlite(tmp_path / "t.sqlite"))
    (kernel, *_) = np.flatnonzero(trace.events.kind == K.KERNEL).tolist()

    assert trace.stats_of_event(kernel) == {
        "correlation_id": 2,
        "device": 0,
        "stream": 7,
        "registers per thread": 32,
        "shared memory": 1024,
        "grid": "[4, 1, 1]",
        "block": "[128, 1, 1]",
    }
    (plane,) = trace.device_planes()
    assert trace.stats_of_plane(plane) == {
        "device_vendor": "Nvidia",
        "gpu_device_name": "NVIDIA H100",
        "memory_size": 80 << 30,
        "core_count": 132,
        "compute_cap_major": 9,
        "compute_cap_minor": 0,
    }
    assert (trace.framework, trace.start_unix_ns) == ("pytorch", 1_700_000_000_000_000_000)


def test_counted_ranges_are_steps_and_work_belongs_to_the_op_whose_range_launched_it(tmp_path: Path) -> None:
    profile = stepscope.load(training().write_sqlite(tmp_path / "t.sqlite"))

    overview = profile.overview().to_dict()
    assert (overview["steps_source"], overview["step_time_ms"]["count"]) == ("markers", 4)
    assert [row["duration_ms"] for row in profile.steps().to_dict()["rows"]] == [1.0, 1.0, 1.0, 0.99]  # to the next one
    assert overview["step_time_ms"]["mean"] == pytest.approx((3 * 1.0 + 0.99) / 4)
    rows = {row["name"]: row for row in profile.op_stats().to_dict()["rows"] if row["side"] == "device"}
    assert {name: (row["occurrences"], row["total_self_us"]) for name, row in rows.items()} == {
        "aten::mm": (4, 1600.0),
        "aten::relu": (4, 400.0),
        "aten::copy_": (4, 400.0),
    }


def test_every_tool_answers(form: str, tmp_path: Path) -> None:
    profile = stepscope.load(write(training(), form, tmp_path))

    for tool in all_tools():
        json.dumps(profile.report(tool.name).to_dict())


def test_a_stream_waits_for_the_last_record_of_its_event_that_was_called_before(tmp_path: Path) -> None:
    export = NsightExport()
    for correlation, stream in ((1, 7), (3, 9), (6, 7)):
        export.add(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT", deviceId=0, contextId=1, streamId=stream, globalPid=PROCESS,
            correlationId=correlation, eventId=5,
        )  # fmt: skip
    export.wait(2, 40, 41, 5, streamId=13, eventId=5)
    trace = read(export.write_sqlite(tmp_path / "t.sqlite"))

    facts = trace.stats_of_event(0)
    assert (facts["wait_on_stream"], facts["wait_on_cuda_event_record_corr_id"], facts["stream"]) == (9, 3, 13)


def test_a_replayed_kernel_belongs_to_the_op_that_recorded_its_node(tmp_path: Path) -> None:
    export = NsightExport()
    export.range("aten::mm", 0, 20)
    export.add(
        "CUDA_GRAPH_NODE_EVENTS", start=5_000, end=6_000, eventClass=0, globalTid=THREAD,
        nameId=export.string("Kernel node"), graphNodeId=(3 << 32) | 1,
    )  # fmt: skip
    export.add(
        "CUDA_GRAPH_NODE_EVENTS", start=30_000, end=31_000, eventClass=0, globalTid=THREAD,
        nameId=export.string("Kernel node"), graphNodeId=(4 << 32) | 1, originalGraphNodeId=(3 << 32) | 1,
    )  # fmt: skip
    export.call("cudaGraphLaunch_v10000", 100, 110, 8)
    export.kernel("gemm", 120, 150, 8, graphNodeId=(4 << 32) | 1)
    trace = read(export.write_sqlite(tmp_path / "t.sqlite"))

    found = attribute(trace)
    assert [(found.ops[op], HowKnown(how).name) for op, how in zip(found.op, found.source, strict=True)] == [
        (("aten::mm", "mm"), "GRAPH")
    ]
    assert trace.stats_of_event(int(found.rows[0]))["graph id"] == 4


def test_processes_of_one_recording_have_planes_and_ids_of_their_own(tmp_path: Path) -> None:
    export = NsightExport()
    for at, pid in enumerate((PID, PID + 1)):
        export.call("cudaLaunchKernel_v7000", 10, 12, 1, thread=pid << 24 | pid)
        export.kernel(f"of_process_{at}", 20 + at, 30, 1, globalPid=pid << 24)
    trace = read(export.write_sqlite(tmp_path / "t.sqlite"))

    names = [trace.plane_name(row) for row in range(len(trace.planes))]
    assert names == [f"process [{PID}]", f"process [{PID + 1}]", "/device:GPU:0"]
    found = attribute(trace)
    calls = trace.events.line[found.call].tolist()
    assert [trace.name_of(int(row)) for row in found.rows] == ["of_process_0", "of_process_1"]
    assert calls == [0, 1]


# -- what may be wrong -------------------------------------------------------------------------------------------------


def refusal(path: Path) -> UnreadableError:
    with pytest.raises(UnreadableError) as caught:
        read(path)
    return caught.value


def test_a_report_says_how_to_export_it(tmp_path: Path) -> None:
    path = tmp_path / "train.nsys-rep"
    path.write_bytes(b"\x00" * 64)

    assert "nsys export --type sqlite train.nsys-rep" in str(refusal(path))


def test_another_schema_is_answered_with_the_column_that_it_lacks(tmp_path: Path) -> None:
    export = training()
    kernels = "CUPTI_ACTIVITY_KIND_KERNEL"
    export.columns[kernels] = tuple(name for name in export.columns[kernels] if name != "demangledName")
    trace = read(export.write_sqlite(tmp_path / "t.sqlite"))

    assert [str(problem.reason) for problem in trace.problems] == [
        f"the table {kernels} has no column demangledName (schema 3.16.1)"
    ]
    assert trace.partial
    assert not (trace.events.kind == K.KERNEL).any()


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00", b"SQLite format 3\x00" + b"\xff" * 4096, b"x" * 5000])
def test_what_is_no_database_has_a_reason(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(content)

    assert refusal(path).problem.reason


def test_a_database_of_something_else_has_a_reason(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "t.sqlite")
    connection.execute("CREATE TABLE runs (id INTEGER)")
    connection.commit()
    connection.close()

    assert "no events" in str(refusal(tmp_path / "t.sqlite"))


def test_of_a_program_that_failed_its_last_words_are_told(tmp_path: Path) -> None:
    export = NsightExport()
    export.columns["ProcessStreams"] = ("globalPid", "filenameId", "contentId")
    words = export.string("Traceback\npython: can't open file 'bench.py'\n")
    export.add("ProcessStreams", globalPid=1, filenameId=export.string("/tmp/1-stderr.log"), contentId=words)

    refused = str(refusal(export.write_sqlite(tmp_path / "t.sqlite")))
    assert "the program's last words: python: can't open file 'bench.py'" in refused
    assert "nsys profile" not in refused


def test_a_cut_database_keeps_what_can_be_read(tmp_path: Path) -> None:
    path = training(2000).write_sqlite(tmp_path / "t.sqlite")
    whole = read(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    trace = read(path)

    assert 0 < len(trace.events) < len(whole.events)
    assert {problem.code for problem in trace.problems} == {"damaged"}
    assert trace.partial


def test_damage_whose_reason_is_no_text_is_a_reason(tmp_path: Path) -> None:
    path = training().write_sqlite(tmp_path / "a.sqlite")
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE T\x8dBLE"))

    assert "cannot be read" in refusal(path).problem.reason


def test_a_length_of_gigabytes_is_a_reason() -> None:
    """SQLite answers so to a row of its list of tables that claims to be that long."""

    class Damaged:
        def create_function(self, *_: object) -> None: ...

        def execute(self, *_: object) -> None:
            raise MemoryError

    tables = SqliteTables(Damaged(), "a.sqlite")  # type: ignore[arg-type]

    assert tables.columns_of("StringIds") == frozenset()
    assert "it asks for more memory than there is" in tables.problems[0].reason


def test_a_page_of_zeros_ends_the_reading_of_its_table(tmp_path: Path) -> None:
    """A hole in a copied file: all rows of the page have the number 0, so going on behind the last gives them again."""
    path = training().write_sqlite(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name LIKE '%_RUNTIME'").fetchone()
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    begin = (page - 1) * size
    first = int.from_bytes(content[begin + 5 : begin + 7], "big")
    content[begin + first : begin + size] = bytes(size - first)
    path.write_bytes(content)
    trace = read(path)

    assert "RUNTIME cannot be read: the numbers of its rows do not ascend" in trace.problems[0].reason
    assert (trace.events.kind == K.KERNEL).any()


def test_views_and_virtual_tables_are_not_run(tmp_path: Path) -> None:
    path = training().write_sqlite(tmp_path / "t.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
    connection.execute(
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        ' SELECT i AS start, i AS "end", 0 AS deviceId, 0 AS streamId, 1 AS demangledName FROM n'
    )
    connection.commit()
    connection.close()

    assert not (read(path).events.kind == K.KERNEL).any()


@pytest.mark.parametrize("value", ["text", 1.5e300, -(2**63), 2**63 - 1, b"blob"])
def test_values_of_other_types_are_no_times(value: Any, tmp_path: Path) -> None:
    path = training().write_sqlite(tmp_path / "t.sqlite")
    connection = sqlite3.connect(path)
    connection.execute('UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = ?, "end" = ?, streamId = ?', (value,) * 3)
    connection.commit()
    connection.close()

    trace = read(path)
    assert (trace.events.start_ps >= 0).all() and (trace.events.duration_ps >= 0).all()


def test_a_large_database_is_read_from_its_file_and_not_written(tmp_path: Path) -> None:
    path = training(5_000).write_sqlite(tmp_path / "t.sqlite")
    before = path.read_bytes()
    found = format_of(path.name)
    assert found is not None and found.takes_pieces

    def pieces() -> Any:
        raise AssertionError("the pieces are not needed where the file is there")
        yield b""

    trace = found.read(pieces(), str(path), "host")
    assert (trace.events.kind == K.STEP_MARK).sum() == 5_000
    assert [each.name for each in tmp_path.iterdir()] == ["t.sqlite"]
    assert path.read_bytes() == before
    assert len(trace.lines_of(LineKind.STREAM)) == 1


def test_a_folder_of_exports_is_a_session_of_its_own(tmp_path: Path) -> None:
    training().write_sqlite(tmp_path / "train.sqlite")

    assert stepscope.load(tmp_path).hosts == ("train",)


def test_a_folder_with_a_report_alone_says_how_to_export_it(tmp_path: Path) -> None:
    (tmp_path / "train.nsys-rep").write_bytes(b"\x00" * 64)

    with pytest.raises(stepscope.StepscopeError, match="nsys export --type sqlite"):
        stepscope.load(tmp_path)


def test_an_export_is_found_wherever_the_names_of_its_tables_stand(tmp_path: Path) -> None:
    path = training().write_sqlite(tmp_path / "train.sqlite")
    moved = tmp_path / "late" / "train.sqlite"
    moved.parent.mkdir()
    with closing(sqlite3.connect(moved)) as late:
        # Other tables fill the first page of names, and a megabyte stands before the next.
        late.execute("PRAGMA page_size = 512")
        late.executescript("".join(f"CREATE TABLE other_{number} (value TEXT);" for number in range(20)))
        late.execute("INSERT INTO other_0 VALUES (?)", ("x" * (1 << 20),))
        late.execute("ATTACH ? AS found", (str(path),))
        for (name,) in late.execute("SELECT name FROM found.sqlite_master WHERE type = 'table'").fetchall():
            late.execute(f"CREATE TABLE main.{name} AS SELECT * FROM found.{name}")
        late.commit()
    assert b"CUPTI_ACTIVITY" not in moved.read_bytes()[: 64 << 10]

    assert stepscope.load(moved.parent).hosts == ("train",)


def test_a_table_may_have_a_version(form: str, tmp_path: Path) -> None:
    export = training()
    for table in ("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME"):
        export.tables[f"{table}_V2"] = export.tables.pop(table)
        export.columns[f"{table}_V2"] = export.columns[table]
    plain = read(training().write_sqlite(tmp_path / "plain.sqlite"))
    assert events(read(write(export, form, tmp_path))) == events(plain)


@pytest.mark.parametrize(("gpus", "names"), [((0, 1), ("rank 0", "rank 1")), ((0, 0), ("python 4711", "python 4712"))])
def test_each_process_with_work_on_a_device_is_a_host(
    gpus: tuple[int, int], names: tuple[str, str], tmp_path: Path
) -> None:
    export = NsightExport()
    export.range("launcher", 0, 5, thread=99 << 24 | 99)
    for at, pid in enumerate((PID, PID + 1)):
        export.add("PROCESSES", globalPid=pid << 24, pid=pid, name="python")
        export.call("cudaLaunchKernel_v7000", 10, 12, 1, thread=pid << 24 | pid)
        export.kernel(f"of_process_{at}", 20, 30 + at, 1, globalPid=pid << 24, deviceId=gpus[at])
    profile = stepscope.load(export.write_sqlite(tmp_path / "t.sqlite"))

    assert profile.hosts == names
    for at, host in enumerate(names):
        trace = profile.trace(host)
        planes = [trace.plane_name(row) for row in range(len(trace.planes))]
        assert planes == ["/host:CPU", f"/device:GPU:{gpus[at]}"]
        found = attribute(trace)
        assert [trace.name_of(int(row)) for row in found.rows] == [f"of_process_{at}"]
        assert found.call.tolist() == [0]
        assert [problem.lost for problem in trace.problems] == ["1 process without work on a device"]


def test_a_process_has_the_number_that_it_gives_its_device_and_its_waits_are_on_that(tmp_path: Path) -> None:
    """The GPUs are numbered the other way round by the machine, and one of three computes for no process."""
    export = NsightExport()
    for gpu, name in enumerate(("NVIDIA H100", "NVIDIA H100", "Basic Render Driver")):
        export.gpu(gpu, name)
    for cuda in (0, 1):
        pid = PID + cuda
        for each in (0, 1):
            export.add("TARGET_INFO_CUDA_DEVICE", gpuId=1 - each, cudaId=each, pid=pid)
        export.add("PROCESSES", globalPid=pid << 24, pid=pid, name="python")
        export.call("cudaLaunchKernel_v7000", 10, 12, 1, thread=pid << 24 | pid)
        export.kernel(f"of_cuda_{cuda}", 20, 30, 1, globalPid=pid << 24, deviceId=cuda)
        export.wait(4, 20, 31, 2, globalPid=pid << 24, deviceId=0)
    profile = stepscope.load(export.write_sqlite(tmp_path / "t.sqlite"))

    assert profile.hosts == ("rank 0", "rank 1")
    for cuda, trace in enumerate(map(profile.trace, profile.hosts)):
        assert f"of_cuda_{cuda}" in [trace.name_of(row) for row in range(len(trace.events))]
        planes = [trace.plane_name(row) for row in range(len(trace.planes))]
        assert planes == ["/host:CPU", f"/device:GPU:{1 - cuda}"]


def test_messages_are_of_the_processes_that_are_shown_and_deny_nothing_that_is_there(tmp_path: Path) -> None:
    export, ours, other = training(), PROCESS, 99 << 24
    for number, label in ((1, "Information"), (2, "Warning")):
        export.add("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", id=number, label=label)
    for severity, text, pid in (
        (1, "CUDA injection initialized successfully.", ours),
        (2, "No CUDA events collected. Does the process use CUDA?", other),
        (2, "CUDA profiling might have not been started correctly.", ours),
        (2, "No OpenGL events collected. Does the process use OpenGL?", ours),
        (2, "Not all CUDA events might have been collected.", ours),
        (2, "Unable to collect CPU samples.", None),
    ):
        export.add("DIAGNOSTIC_EVENT", severity=severity, text=text, globalPid=pid)

    assert read(export.write_sqlite(tmp_path / "t.sqlite")).recorder_messages == (
        "Not all CUDA events might have been collected.", "Unable to collect CPU samples.",
    )  # fmt: skip
