"""Makes exports of Nsight Systems by NVIDIA's "SQLite Schema Reference", as databases and as folders of Parquet files.

    export = NsightExport()
    export.call("cudaLaunchKernel_v7000", 10, 12, correlation=1)
    export.kernel("gemm", 20, 30, correlation=1)
    export.write_sqlite(path)

Times are in microseconds.  Columns have the names, types and meanings of the reference; tests may add and drop some.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PID, TID = 4711, 4711
THREAD = PID << 24 | TID
PROCESS = PID << 24

ON_DEVICE = ("start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId", "globalPid")
COLUMNS: dict[str, tuple[str, ...]] = {
    "StringIds": ("id", "value"),
    "ThreadNames": ("nameId", "priority", "globalTid"),
    "PROCESSES": ("globalPid", "pid", "name"),
    "META_DATA_EXPORT": ("name", "value"),
    "TARGET_INFO_SESSION_START_TIME": ("utcEpochNs", "utcTime", "localTime"),
    "TARGET_INFO_GPU": ("vmId", "id", "name", "totalMemory", "smCount", "cuDevice", "computeMajor", "computeMinor"),
    "TARGET_INFO_CUDA_DEVICE": ("gpuId", "cudaId", "pid"),
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": ("id", "label"),
    "DIAGNOSTIC_EVENT": ("severity", "text", "globalPid"),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        *ON_DEVICE, "demangledName", "shortName", "mangledName", "registersPerThread", "gridX", "gridY", "gridZ",
        "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory", "graphNodeId",
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (*ON_DEVICE, "bytes", "copyKind", "srcKind", "dstKind", "graphNodeId"),
    "CUPTI_ACTIVITY_KIND_MEMSET": (*ON_DEVICE, "value", "bytes", "graphNodeId", "memKind"),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (*ON_DEVICE, "graphId", "graphExecId"),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (*ON_DEVICE, "syncType", "eventId", "eventSyncId"),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (*ON_DEVICE[2:], "eventId", "eventSyncId"),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue",
    ),
    "CUDA_GRAPH_NODE_EVENTS": (
        "start", "end", "eventClass", "globalTid", "nameId", "graphNodeId", "originalGraphNodeId",
    ),
    "COMPOSITE_EVENTS": ("id", "start", "cpu", "threadState", "globalTid", "cpuCycles"),
    "SAMPLING_CALLCHAINS": ("id", "symbol", "module", "unresolved", "stackDepth"),
    "NVTX_EVENTS": ("start", "end", "eventType", "rangeId", "text", "globalTid", "textId", "domainId"),
}  # fmt: skip
TEXT = {"name", "label", "text", "utcTime", "localTime"}


class NsightExport:
    """Collects rows of tables."""

    def __init__(self) -> None:
        self.tables: dict[str, list[Mapping[str, Any]]] = {}
        self.columns = dict(COLUMNS)
        self.strings: dict[str, int] = {}
        self.add("META_DATA_EXPORT", name="EXPORT_SCHEMA_VERSION", value="3.16.1")
        self.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_700_000_000_000_000_000)

    def add(self, table: str, **values: Any) -> None:
        """Adds a row; columns that are not given are NULL."""
        self.tables.setdefault(table, []).append(values)

    def string(self, text: str) -> int:
        """The id of a text."""
        return self.strings.setdefault(text, len(self.strings) + 1)

    def gpu(self, number: int, name: str, **facts: Any) -> None:
        self.add("TARGET_INFO_GPU", vmId=0, id=number, name=name, cuDevice=number, **facts)

    def thread(self, name: str, thread: int = THREAD) -> None:
        self.add("ThreadNames", nameId=self.string(name), globalTid=thread)

    def call(self, name: str, start: float, end: float, correlation: int | None = None, thread: int = THREAD) -> None:
        self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME", **_times(start, end), eventClass=0, globalTid=thread,
            correlationId=correlation, nameId=self.string(name), returnValue=0,
        )  # fmt: skip

    def range(self, text: str, start: float, end: float | None, thread: int = THREAD, kind: int = 59) -> None:
        ends = None if end is None else round(end * 1000)
        self.add("NVTX_EVENTS", start=round(start * 1000), end=ends, eventType=kind, text=text, globalTid=thread)

    def kernel(self, name: str, start: float, end: float, correlation: int, **values: Any) -> None:
        defaults = {"gridX": 4, "gridY": 1, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1,
                    "registersPerThread": 32, "staticSharedMemory": 0, "dynamicSharedMemory": 1024}  # fmt: skip
        text = self.string(name)
        self._work(
            "KERNEL", start, end, correlation, demangledName=text, shortName=text, **{**defaults, **values}
        )  # fmt: skip

    def copy(self, kind: int, start: float, end: float, correlation: int, **values: Any) -> None:
        self._work("MEMCPY", start, end, correlation, copyKind=kind, **{"bytes": 4096, **values})

    def memset(self, start: float, end: float, correlation: int, **values: Any) -> None:
        self._work("MEMSET", start, end, correlation, **{"value": 0, "bytes": 64, "memKind": 2, **values})

    def graph(self, start: float, end: float, correlation: int, graph: int) -> None:
        self._work("GRAPH_TRACE", start, end, correlation, graphId=graph, graphExecId=graph + 1)

    def wait(self, kind: int, start: float, end: float, correlation: int, **values: Any) -> None:
        self._work("SYNCHRONIZATION", start, end, correlation, syncType=kind, **{"eventId": 0, **values})

    def sample(self, time: float, *frames: tuple[str, str], thread: int = THREAD) -> None:
        """A sample of the processor; symbol and file of each frame, innermost first."""
        number = len(self.tables.get("COMPOSITE_EVENTS", ())) + 1
        self.add("COMPOSITE_EVENTS", id=number, start=round(time * 1000), globalTid=thread)
        for depth, (symbol, module) in enumerate(frames):
            self.add(
                "SAMPLING_CALLCHAINS", id=number, symbol=self.string(symbol), module=self.string(module),
                unresolved=0, stackDepth=depth,
            )  # fmt: skip

    def _work(self, kind: str, start: float, end: float, correlation: int, **values: Any) -> None:
        place = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": PROCESS, "correlationId": correlation}
        self.add(f"CUPTI_ACTIVITY_KIND_{kind}", **_times(start, end), **{**place, **values})

    def _rows(self) -> Iterable[tuple[str, tuple[str, ...], list[tuple[Any, ...]]]]:
        strings = [{"id": number, "value": text} for text, number in self.strings.items()]
        for table, rows in {"StringIds": strings, **self.tables}.items():
            columns = self.columns[table]
            yield table, columns, [tuple(row.get(name) for name in columns) for row in rows]

    def write_sqlite(self, path: Path) -> Path:
        """The export as one database."""
        connection = sqlite3.connect(path)
        for table, columns, rows in self._rows():
            types = ", ".join(f'"{name}" {"TEXT" if _is_text(table, name) else "INTEGER"}' for name in columns)
            connection.execute(f"CREATE TABLE {table} ({types})")
            connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)
        connection.commit()
        connection.close()
        return path

    def write_parquet(self, folder: Path) -> Path:
        """The export as a folder with a file for each table."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        folder.mkdir(parents=True)
        for table, columns, rows in self._rows():
            arrays = [
                pa.array([row[at] for row in rows], pa.string() if _is_text(table, name) else pa.int64())
                for at, name in enumerate(columns)
            ]
            pq.write_table(pa.table(arrays, names=list(columns)), folder / f"{table}.parquet")
        return folder


def _is_text(table: str, column: str) -> bool:
    return column in TEXT or (column == "value" and table != "CUPTI_ACTIVITY_KIND_MEMSET")


def _times(start: float, end: float) -> dict[str, int]:
    return {"start": round(start * 1000), "end": round(end * 1000)}


def training(steps: int = 4) -> NsightExport:
    """A small training job: each step of 1000 us copies a batch, runs two kernels of ops, and waits for the device."""
    export = NsightExport()
    export.gpu(0, "NVIDIA H100", totalMemory=80 << 30, smCount=132, computeMajor=9, computeMinor=0)
    export.thread("python")
    for step in range(steps):
        at, ids = step * 1000, 10 * step
        export.range(f"step {step}", at, at + 990)
        export.range("aten::copy_, seq = 1, op_id = 2", at + 10, at + 60)
        export.call("cudaMemcpyAsync_v3020", at + 20, at + 50, ids + 1)
        export.copy(1, at + 40, at + 140, ids + 1, srcKind=1, dstKind=2)
        for number, name in enumerate(("at::native::gemm_half", "at::native::relu")):
            export.range(
                f"aten::{'mm' if number == 0 else 'relu'}, seq = 4", at + 100 + 50 * number, at + 140 + 50 * number
            )
            export.call("cudaLaunchKernel_v7000", at + 110 + 50 * number, at + 130 + 50 * number, ids + 2 + number)
            start = at + (200, 600)[number]
            export.kernel(name, start, start + (400, 100)[number], ids + 2 + number)
        export.call("cudaStreamSynchronize_v3020", at + 300, at + 720, ids + 5)
        export.wait(3, at + 310, at + 715, ids + 5)
    return export
