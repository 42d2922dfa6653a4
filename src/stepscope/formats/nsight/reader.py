"""Reads exports of Nsight Systems: tables in, columns out.

The tables and their columns are those of NVIDIA's "SQLite Schema Reference" in the user guide of Nsight Systems.  Files
of older and newer releases lack some columns and tables: what is needed is named if it is missing, the rest is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from stepscope.errors import Problem, UnreadableError, counted
from stepscope.formats import store
from stepscope.formats.nsight.parts import (
    DEVICE_BITS,
    OF_THREAD,
    PROCESS_SHIFT,
    STREAM_BITS,
    Assembled,
    Lane,
    Names,
    StatColumn,
    TablePart,
    assemble,
    device_of,
    process_number,
    process_of,
    process_of_all,
    stream_key,
)
from stepscope.formats.nsight.samples import sampled_parts
from stepscope.formats.nsight.tables import MISSING, ParquetTables, Tables, open_sqlite
from stepscope.formats.xspace.classify import detect_framework
from stepscope.model import EventKind, HostTrace, Stats, StatTag, StatValue, Strings, Trait
from stepscope.model.arrays import I64, U8, Mask, distinct, last_below
from stepscope.model.stat_names import (
    BLOCK,
    BYTES_COPIED,
    CORRELATION_ID,
    GRAPH_ID,
    GRAPH_NODE_ID,
    GRAPH_ORIGINAL_NODE_ID,
    GRID,
    RANK,
    REGISTERS,
    SHARED_MEMORY,
    STEP_NUM,
    WAITS_FOR_RECORD,
    WAITS_FOR_STREAM,
)
from stepscope.records import dataclass
from stepscope.vocabulary import devices, nvtx, precision, torch
from stepscope.vocabulary.nsight import why_no_device
from stepscope.vocabulary.tables import KindRule

K = EventKind
Columns = dict[str, I64]

_KERNELS, _COPIES, _SETS = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
_CALLS, _SYNCS, _GRAPHS = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("RUNTIME", "SYNCHRONIZATION", "GRAPH_TRACE"))
_RECORDS, _RANGES, _NODES = "CUPTI_ACTIVITY_KIND_CUDA_EVENT", "NVTX_EVENTS", "CUDA_GRAPH_NODE_EVENTS"

_TIMES = ("start", "end")
_ON_DEVICE = (*_TIMES, "deviceId", "streamId")
_NEEDED: dict[str, tuple[str, ...]] = {
    _KERNELS: (*_ON_DEVICE, "demangledName"),
    _COPIES: (*_ON_DEVICE, "copyKind"),
    _SETS: _ON_DEVICE,
    _GRAPHS: _ON_DEVICE,
    _SYNCS: (*_ON_DEVICE, "syncType"),
    _CALLS: (*_TIMES, "globalTid", "nameId"),
    _RANGES: ("start", "end", "globalTid"),
    _NODES: (*_TIMES, "globalTid", "nameId", "graphNodeId"),
}
"""The tables with events, and the columns without which they say nothing."""

_OF_GRAPH = ("graphNodeId", "graphId")
_SIZES = tuple(f"{side}{axis}" for side in ("grid", "block") for axis in "XYZ")
_USED: dict[str, tuple[str, ...]] = {
    _KERNELS: (
        *_OF_GRAPH, *_SIZES, "shortName", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory",
    ),
    _COPIES: (*_OF_GRAPH, "srcKind", "dstKind", "bytes"),
    _SETS: (*_OF_GRAPH, "memKind", "bytes"),
    _GRAPHS: ("graphId",),
    _SYNCS: ("eventId", "eventSyncId"),
    _CALLS: (),
    _RANGES: ("eventType", "textId"),
    _NODES: ("originalGraphNodeId",),
}  # fmt: skip
"""What else is read of them; also the ids of processes and the correlation ids of all."""

_IDS = ("globalPid", "correlationId")

# What CUPTI's numbers mean, as in the tables ENUM_CUDA_MEMCPY_OPER, ENUM_CUDA_MEM_KIND and ENUM_CUPTI_SYNC_TYPE; the
# names are those that Kineto writes, so that the vocabulary has one set of rules.
_COPY_NAMES = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP",
    11: "HtoD", 12: "DtoH", 13: "DtoD",
}  # fmt: skip
_MIGRATIONS = (11, 12, 13)  # pages of unified memory, which the driver moves to where they are used
_MEMORY_NAMES = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown")
_SYNC_NAMES = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
_STREAM_WAIT = 2
_MARK, _RANGE, _RANGE_OF_ANY_THREAD = 34, 59, 60  # ENUM_NSYS_EVENT_TYPE
_RANGE_TYPES = (_MARK, _RANGE, _RANGE_OF_ANY_THREAD)

_CORRELATION_BITS = 40  # ids count up in each process
_MOST_DEVICES = 1 << 15
_LONGEST_NAME = 16_384
_LONGEST_WORDS = 200  # characters of what a program wrote
_API_VERSION = re.compile(r"_v\d{4,5}(?=$|_)")
_WARNS = ("Warning", "Error")
_READ_OF = {Lane.THREAD: "NVTX", Lane.STREAM: "CUDA", Lane.WAIT: "CUDA"}  # in the words of Nsight's messages
_TOPIC = re.compile(
    r"No (?P<missing>.+) events collected|Not all (?P<partly>.+) events might"
    r"|(?P<unsure>.+) profiling might have not been started"
)
_OF_TORCH = (b"at::native", b"c10::")
_GPU_FACTS = {
    "name": "gpu_device_name", "totalMemory": "memory_size", "smCount": "core_count",
    "computeMajor": "compute_cap_major", "computeMinor": "compute_cap_minor",
}  # fmt: skip


def read_sqlite(data: bytes | Iterator[bytes], source: str, host: str) -> HostTrace:
    """Reads a database that `nsys export --type sqlite` wrote.

    Raises:
        UnreadableError: it is not such a database, or holds no events that can be read.
    """
    with open_sqlite(data, source) as tables:
        return _Reader(tables, source).read(host)


def read_hosts_of_sqlite(data: bytes | Iterator[bytes], source: str, host: str) -> tuple[HostTrace, ...]:
    """The same as `read_sqlite`, a trace for each process whose work a device did."""
    with open_sqlite(data, source) as tables:
        return _Reader(tables, source).read_hosts(host)


def read_hosts_of_parquet(data: bytes, source: str, host: str) -> tuple[HostTrace, ...]:
    """The same as `read_parquet`, a trace for each process whose work a device did."""
    return _Reader(ParquetTables(store.parent(source) or ".", {"StringIds": data}), source).read_hosts(host)


def read_parquet(data: bytes, source: str, host: str) -> HostTrace:
    """Reads a folder that `nsys export --type parquetdir` wrote, given its file of texts.

    Raises:
        UnreadableError: the folder holds no events that can be read.
    """
    return _Reader(ParquetTables(store.parent(source) or ".", {"StringIds": data}), source).read(host)


def refuse_report(data: bytes, source: str, host: str) -> HostTrace:
    """Raises UnreadableError: only Nsight can read its reports."""
    raise UnreadableError(
        "this is a report of Nsight Systems, which only Nsight can read",
        code="not-exported",
        path=source,
        hint=f"export it: `nsys export --type sqlite {store.basename(source)}`, and give the .sqlite",
    )


@dataclass(frozen=True)
class _Texts:
    """The texts of StringIds, by id: both int64 of shape (n,), ids ascending, and rows of texts."""

    ids: I64
    rows: I64

    def __call__(self, ids: I64) -> I64:
        """The row of each id's text; 0 for an id that is not there."""
        if not len(self.ids):
            return np.zeros(len(ids), np.int64)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, self.rows[at], 0)


class _Reader:
    """Makes a trace of the tables of one export."""

    def __init__(self, tables: Tables, source: str) -> None:
        self.tables = tables
        self.source = source
        self.text = self._read_texts()
        self.texts = tables.texts
        self._listed: list[bytes] = []
        self.process: dict[int, int] = {}
        self.gpu_of = self._find_gpus()
        self.problems: list[Problem] = []
        self.begin_ns = 0  # the first event's, in the session's time

    # -- the whole ---------------------------------------------------------------------------------------------------

    def read(self, host: str) -> HostTrace:
        """The trace.  Raises UnreadableError if no table with events can be read."""
        return self._trace(host, self._parts(), self._gpu_facts())

    def read_hosts(self, host: str) -> tuple[HostTrace, ...]:
        """A trace for each process whose work a device did; one of all where only one has such work."""
        parts, gpus = self._parts(), self._gpu_facts()
        on_device = [part.line for part in parts if part.place == Lane.STREAM]
        keys = [distinct(each) for each in on_device]
        used: dict[int, set[int]] = {}
        for key in np.concatenate(keys).tolist() if keys else []:
            used.setdefault(process_number(key), set()).add(device_of(key))
        if len(used) < 2:
            return (self._trace(host, parts, gpus),)
        pid_of = {number: pid for pid, number in self.process.items()}
        number_of = self._numbers_by_process(used, pid_of)
        names = self._names()
        left_out = {process_of(line) for line in np.concatenate([p.line for p in parts if p.place == Lane.THREAD])}
        left_out -= {pid_of[number] for number in used}
        traces = []
        for number, own_gpus in sorted(used.items(), key=lambda each: number_of.get(each[0], min(each[1]))):
            pid = pid_of[number]
            rank = number_of.get(number)
            name = f"rank {rank}" if rank is not None else f"{names.processes.get(pid) or 'process'} {pid}"
            own = [part.take(_is_of(part, pid, number)) for part in parts]
            facts = {device: gpus[device] for device in own_gpus if device in gpus}
            traces.append(self._trace(name, [part for part in own if len(part.name)], facts, rank))
        told = self._tell_processes([trace.host for trace in traces], bool(number_of), len(left_out))
        return tuple(replace(trace, problems=(told, *trace.problems)) for trace in traces)

    def _numbers_by_process(self, used: Mapping[int, set[int]], pid_of: Mapping[int, int]) -> dict[int, int]:
        """A number for each process that works on one device of its own: what it calls that device, else which GPU it
        is where all of them call theirs the same; empty where neither tells them apart.

        Args:
            used: the GPUs of each process, by its own number; pid_of: what the system calls it.
        """
        if any(len(gpus) > 1 for gpus in used.values()):
            return {}
        gpu = {number: next(iter(gpus)) for number, gpus in used.items()}
        called = {(pid, of): number for (pid, number), of in self.gpu_of.items()}
        for numbers in ({number: called.get((pid_of[number], of), of) for number, of in gpu.items()}, gpu):
            if len(set(numbers.values())) == len(used):
                return numbers
        return {}

    def _tell_processes(self, names: Sequence[str], by_device: bool, left_out: int) -> Problem:
        how = "ranks by the numbers of their devices" if by_device else "their ranks were not recorded"
        return Problem(
            "several-processes",
            f"the export holds {len(names)} processes, each read as a host: {', '.join(names)} ({how})",
            path=self.source,
            lost=f"{counted(left_out, 'process')} without work on a device" if left_out else None,
            hint=None,
        )

    def _parts(self) -> list[TablePart]:
        """The events of all tables.  Raises UnreadableError if none can be read."""
        makers: dict[str, Callable[[Columns], TablePart]] = {
            _CALLS: self._calls, _RANGES: self._ranges, _NODES: self._node_calls, _KERNELS: self._kernels,
            _COPIES: self._copies, _SETS: self._sets, _GRAPHS: self._graphs, _SYNCS: self._syncs,
        }  # fmt: skip
        parts = [part for table, make in makers.items() if (part := self._make(table, make)) is not None]
        if not parts:
            raise self._no_tables()
        pids = [distinct(process_of_all(part.line)) for part in parts if part.place == Lane.THREAD]
        for part in sampled_parts(self.tables, self.text, self._string) if pids else ():
            parts.append(part.take(np.isin(process_of_all(part.line), np.concatenate(pids))))
        parts = self._from_first_event([part for part in parts if len(part.line)])
        work = [part.line for part in parts if part.place == Lane.STREAM]
        return [_move_to_device_of_work(part, work) if part.place == Lane.WAIT and work else part for part in parts]

    def _from_first_event(self, parts: Sequence[TablePart]) -> list[TablePart]:
        """The events counted from the first one: Nsight counts from the start of its session, which may be a minute
        before what it was told to record."""
        starts = np.concatenate([part.start_ns for part in parts])
        self.begin_ns = begin = int(starts[starts >= 0].min()) if (starts >= 0).any() else 0

        def moved(times: I64) -> I64:
            return np.where(times >= 0, times - begin, times)  # those below 0 are damage

        return [replace(part, start_ns=moved(part.start_ns), end_ns=moved(part.end_ns)) for part in parts]

    def _trace(
        self,
        host: str,
        parts: Sequence[TablePart],
        gpus: Mapping[int, Mapping[str, StatValue]],
        rank: int | None = None,
    ) -> HostTrace:
        """The trace of some events."""
        made = assemble(parts, self.texts, self._names(), gpus, {} if rank is None else {RANK[0]: rank})
        strings = Strings.build(self.texts.rows)
        start = self._start_unix_ns()
        start = None if start is None else start + self.begin_ns
        end = int((made.events.start_ps + made.events.duration_ps).max(initial=0)) // 1000
        problems = (*self.tables.problems, *self.problems, *self._note_dropped(made))
        return HostTrace(
            host=host or "localhost",
            planes=made.planes,
            lines=made.lines,
            events=made.events,
            event_types=made.event_types,
            event_stats=made.event_stats,
            type_stats=Stats.empty(len(made.event_types)),
            plane_stats=made.plane_stats,
            strings=strings,
            start_unix_ns=start,
            stop_unix_ns=None if start is None else start + end,
            source=self.source,
            problems=problems,
            partial=any(problem.code in ("damaged", "schema") for problem in problems),
            recorder_messages=self._messages(parts),
            framework=detect_framework(strings) or self._framework(strings),
            recorder="nsight",
        )

    def _make(self, table: str, make: Callable[[Columns], TablePart]) -> TablePart | None:
        """The events of a table; None if it is not there, empty, or of a schema that says too little."""
        has = self.tables.columns_of(table)
        missing = [name for name in _NEEDED[table] if name not in has]
        if not has:
            return None
        if missing:
            self.problems.append(self._schema_problem(table, missing))
            return None
        wanted = (*_NEEDED[table], *_USED[table], *_IDS)
        columns = self.tables.columns(table, wanted, "text" if table == _RANGES else "")
        return make(columns) if len(columns["start"]) else None

    def _schema_problem(self, table: str, missing: Sequence[str]) -> Problem:
        version = self._version()
        return Problem(
            "schema",
            f"the table {table} has no column {', '.join(missing)}{f' (schema {version})' if version else ''}",
            path=self.source,
            kept="the other tables",
            lost="its events",
            hint="export the report again with a current `nsys export --type sqlite`",
        )

    def _no_tables(self) -> UnreadableError:
        lost = "; ".join(problem.reason for problem in (*self.tables.problems, *self.problems))
        expected = ", ".join((_KERNELS, _CALLS, _RANGES))
        said = self._last_words()
        tables = f"none of the tables {expected} and the like is there, or all are empty"
        lost = lost or f"the export has no events: {tables}"
        if (known := why_no_device(self._all_messages())) is not None:
            return UnreadableError(f"{lost}; {known[0]}", code="no-events", path=self.source, hint=known[1])
        return UnreadableError(
            f"{lost}; the program's last words: {said}" if said else lost,
            code="no-events",
            path=self.source,
            hint="let the program run to its work on the device, and record it again"
            if said
            else "record with `nsys profile --trace=cuda,nvtx`, and export the report with `nsys export --type sqlite`",
        )

    def _last_words(self) -> str:
        """The last line that the recorded program wrote to its standard error; empty where none was kept."""
        texts = dict(self.tables.records("StringIds", ("id", "value")))
        streams = self.tables.records("ProcessStreams", ("filenameId", "contentId"))
        written = [str(texts.get(content) or "") for name, content in streams if "stderr" in str(texts.get(name))]
        lines = [line.strip() for each in written for line in each.splitlines() if line.strip()]
        return lines[-1][:_LONGEST_WORDS] if lines else ""

    def _version(self) -> str:
        facts = dict(self.tables.records("META_DATA_EXPORT", ("name", "value")))
        return str(facts.get("EXPORT_SCHEMA_VERSION") or "")

    def _note_dropped(self, made: Assembled) -> Iterator[Problem]:
        if made.dropped:
            reason = f"{counted(made.dropped, 'event')} with impossible times"
            yield Problem("impossible-times", reason, path=self.source, kept="nothing of these")

    # -- texts and ids -----------------------------------------------------------------------------------------------

    def _read_texts(self) -> _Texts:
        found = self.tables.columns("StringIds", ("id",), "value")
        if "id" not in found or "value" not in found:
            return _Texts(np.empty(0, np.int64), np.empty(0, np.int64))
        order = np.argsort(found["id"], kind="stable")
        return _Texts(found["id"][order], found["value"][order])

    def _string(self, row: int) -> str:
        """One text, by its row."""
        if row >= len(self._listed):
            self._listed = list(self.texts.rows)
        return self._listed[row].decode("utf-8", "replace")

    def _distinct(self, rows: I64) -> tuple[I64, I64]:
        """Distinct texts and the place of each row's among them, as `np.unique`, which would sort."""
        place = np.full(len(self.texts.rows), MISSING, np.int64)
        place[rows] = 0
        distinct = np.flatnonzero(place == 0)
        place[distinct] = np.arange(len(distinct))
        return distinct, place[rows]

    def _renamed(self, rows: I64, rename: Callable[[str], str]) -> I64:
        """The rows of renamed texts; each text is renamed once."""
        distinct, place = self._distinct(rows)
        names = [self.texts.add(rename(self._string(row))) for row in distinct.tolist()]
        return np.array(names, np.int64)[place]

    def _kinds(self, rows: I64, rules: Sequence[KindRule]) -> tuple[U8, U8]:
        """The kinds and traits of events by their names; each name is judged once."""
        compiled = [(re.compile(pattern), kind, traits) for pattern, kind, traits in rules]
        distinct, place = self._distinct(rows)
        found = []
        for row in distinct.tolist():
            name = self._string(row)[:_LONGEST_NAME]
            kind, traits = next(((kind, traits) for rule, kind, traits in compiled if rule.match(name)), (K.OTHER, 0))
            found.append((int(kind), int(traits)))
        columns = np.array(found, np.uint8).reshape(-1, 2)
        return columns[place, 0], columns[place, 1]

    def _process(self, columns: Columns) -> I64:
        """The process of each event, numbered from 0 in order of appearance."""
        ids = columns.get("globalPid", columns.get("globalTid"))
        if ids is None:
            return np.zeros(len(columns["start"]), np.int64)
        distinct, place = np.unique(np.where(ids > 0, ids >> 24 & 0xFFFFFF, 0), return_inverse=True)
        numbers = [self.process.setdefault(process, len(self.process)) for process in distinct.tolist()]
        return np.array(numbers, np.int64)[place]

    def _correlation(self, columns: Columns) -> StatColumn:
        """Ids that join calls with their work; they count up in each process."""
        ids = columns.get("correlationId", np.zeros(len(columns["start"]), np.int64))
        values = self._process(columns) << _CORRELATION_BITS | ids & ((1 << _CORRELATION_BITS) - 1)
        return StatColumn(CORRELATION_ID[0], StatTag.INT, values, ids > 0)

    # -- devices -----------------------------------------------------------------------------------------------------

    def _find_gpus(self) -> dict[tuple[int, int], int]:
        """The GPU that a process means by a number."""
        rows = self.tables.records("TARGET_INFO_CUDA_DEVICE", ("pid", "cudaId", "gpuId"))
        return {(row[0], row[1]): row[2] for row in rows if all(isinstance(each, int) for each in row)}

    def _gpu_facts(self) -> dict[int, dict[str, StatValue]]:
        """The facts of each GPU, of those that CUDA can use where the export says which."""
        usable = set(self.gpu_of.values())
        rows = self.tables.records("TARGET_INFO_GPU", ("id", *_GPU_FACTS))
        found: dict[int, dict[str, StatValue]] = {}
        for number, *values in rows:
            if isinstance(number, int) and 0 <= number < _MOST_DEVICES and (not usable or number in usable):
                named = zip(_GPU_FACTS.values(), values, strict=True)
                facts = {name: value for name, value in named if isinstance(value, int | str) and value != MISSING}
                found[number] = {"device_vendor": "Nvidia", **facts}
        return found

    def _stream(self, columns: Columns) -> I64:
        """The key of the stream of each event."""
        process, device = self._process(columns), columns["deviceId"]
        if self.gpu_of:
            pids = columns.get("globalPid", np.zeros(len(device), np.int64)) >> 24 & 0xFFFFFF
            pairs, place = np.unique(np.stack([pids, device]), axis=1, return_inverse=True)
            gpus = [self.gpu_of.get((pid, number), number) for pid, number in pairs.T.tolist()]
            device = np.array(gpus, np.int64)[place.reshape(-1)]
        return stream_key(process, np.clip(device, 0, _MOST_DEVICES - 1), columns["streamId"])

    def _on_device(
        self, columns: Columns, name: I64, rules: Sequence[KindRule], stats: Sequence[StatColumn], place: Lane
    ) -> TablePart:
        kind, traits = self._kinds(name, rules)
        stats = (
            self._correlation(columns),
            StatColumn("device", StatTag.INT, columns["deviceId"]),
            StatColumn("stream", StatTag.INT, columns["streamId"]),
            *stats,
        )
        return TablePart(columns["start"], columns["end"], name, kind, traits, place, self._stream(columns), stats)

    def _of_graph(self, columns: Columns) -> list[StatColumn]:
        """The node of a graph that work replays, and the node that this one was copied from."""
        node = columns.get("graphNodeId")
        if node is None or not (node > 0).any():
            return []
        graph = columns.get("graphId", np.full(len(node), MISSING, np.int64))
        graph = np.where(graph > 0, graph, node >> 32)  # the id of a node holds that of its graph
        stats = [_number(GRAPH_NODE_ID[0], node), StatColumn(GRAPH_ID[0], StatTag.INT, graph, (node > 0) & (graph > 0))]
        nodes = self.tables.columns(_NODES, ("graphNodeId", "originalGraphNodeId"))
        if len(nodes) == 2 and len(nodes["graphNodeId"]):
            order = np.argsort(nodes["graphNodeId"], kind="stable")
            ids = nodes["graphNodeId"][order]
            at = np.minimum(np.searchsorted(ids, node), len(ids) - 1)
            original = np.where(ids[at] == node, nodes["originalGraphNodeId"][order][at], MISSING)
            stats.append(_number(GRAPH_ORIGINAL_NODE_ID[0], original))
        return stats

    def _kernels(self, columns: Columns) -> TablePart:
        name = self.text(columns["demangledName"])
        name = np.where(name > 0, name, self.text(columns.get("shortName", columns["demangledName"])))
        stats = [*self._of_graph(columns)]
        if "registersPerThread" in columns:
            stats += [_number(REGISTERS[0], columns["registersPerThread"], 0)]
        if "staticSharedMemory" in columns and "dynamicSharedMemory" in columns:
            shared = columns["staticSharedMemory"] + columns["dynamicSharedMemory"]
            stats += [StatColumn(SHARED_MEMORY[0], StatTag.INT, shared)]
        for stat, letter in ((GRID[0], "grid"), (BLOCK[0], "block")):
            sizes = [columns[f"{letter}{axis}"] for axis in "XYZ" if f"{letter}{axis}" in columns]
            if len(sizes) == len("XYZ"):
                stats += [StatColumn(stat, StatTag.STRING, self._sizes(np.stack(sizes)))]
        part = self._on_device(columns, name, torch.KERNEL_KINDS, stats, Lane.STREAM)
        part.traits[self._is_narrow(name)] |= np.uint8(Trait.COMPUTES_16BIT)
        return part

    def _sizes(self, sizes: I64) -> I64:
        """Sizes along three axes as text, as Kineto writes them."""
        distinct, place = np.unique(sizes, axis=1, return_inverse=True)
        rows = [self.texts.add(f"[{x}, {y}, {z}]") for x, y, z in distinct.T.tolist()]
        return np.array(rows, np.int64)[place.reshape(-1)]

    def _is_narrow(self, name: I64) -> Mask:
        distinct, place = self._distinct(name)
        narrow = [bool(precision.kernel_computes_16bit(self._string(row)[:_LONGEST_NAME])) for row in distinct.tolist()]
        return np.array(narrow, np.bool_)[place]

    def _copies(self, columns: Columns) -> TablePart:
        unknown = np.full(len(columns["start"]), MISSING, np.int64)
        sides = [columns.get(name, unknown) for name in ("srcKind", "dstKind")]
        distinct, place = np.unique(np.stack([columns["copyKind"], *sides]), axis=1, return_inverse=True)
        rows = [self.texts.add(_copy_name(*kinds)) for kinds in distinct.T.tolist()]
        name = np.array(rows, np.int64)[place.reshape(-1)]
        stats = [*self._of_graph(columns), _number(BYTES_COPIED[0], columns.get("bytes", unknown))]
        return self._on_device(columns, name, devices.COPIES, stats, Lane.STREAM)

    def _sets(self, columns: Columns) -> TablePart:
        unknown = np.full(len(columns["start"]), MISSING, np.int64)
        distinct, place = np.unique(columns.get("memKind", unknown), return_inverse=True)
        rows = [self.texts.add(f"Memset ({_memory_name(kind)})") for kind in distinct.tolist()]
        stats = [*self._of_graph(columns), _number(BYTES_COPIED[0], columns.get("bytes", unknown))]
        name = np.array(rows, np.int64)[place]
        return self._on_device(columns, name, ((r"", K.MEMSET, Trait.NONE),), stats, Lane.STREAM)

    def _graphs(self, columns: Columns) -> TablePart:
        """Whole launches of graphs: what is recorded unless nodes are asked for."""
        unknown = np.full(len(columns["start"]), MISSING, np.int64)
        graph = columns.get("graphId", unknown)
        distinct, place = np.unique(graph, return_inverse=True)
        rows = [self.texts.add(f"graph {number}" if number >= 0 else "graph") for number in distinct.tolist()]
        stats = [_number(GRAPH_ID[0], graph)]
        name = np.array(rows, np.int64)[place]
        return self._on_device(columns, name, ((r"", K.GRAPH_LAUNCH, Trait.NONE),), stats, Lane.STREAM)

    def _syncs(self, columns: Columns) -> TablePart:
        """Waits of streams and of the host, with the record of the event that they wait for."""
        names = [self.texts.add(_SYNC_NAMES.get(kind, "Unknown Sync")) for kind in range(max(_SYNC_NAMES) + 1)]
        kind = np.where((columns["syncType"] >= 0) & (columns["syncType"] < len(names)), columns["syncType"], 0)
        records = self._awaited_records(columns)
        stream, record = (np.where(records >= 0, column[records], MISSING) for column in self._records(columns))
        stats = [
            _number(WAITS_FOR_STREAM[0], stream, 0),
            _number(WAITS_FOR_RECORD[0], record),
        ]
        is_wait = np.isin(kind, (1, _STREAM_WAIT))
        stats = [
            StatColumn(each.name, each.tag, each.values, each.has & is_wait) for each in stats if each.has is not None
        ]
        return self._on_device(columns, np.array(names, np.int64)[kind], devices.WAITS, stats, Lane.WAIT)

    def _records(self, columns: Columns) -> tuple[I64, I64]:
        """The stream and the correlation id of each record of an event, with one more for none."""
        found = self._event_records()
        if not found:
            return np.full(1, MISSING, np.int64), np.full(1, MISSING, np.int64)
        correlation = self._correlation(found).values
        return np.append(found["streamId"], MISSING), np.append(correlation, MISSING)

    def _event_records(self) -> Columns:
        wanted = ("streamId", "correlationId", "globalPid", "eventId", "eventSyncId")
        found = self.tables.columns(_RECORDS, wanted)
        if not {"streamId", "correlationId"} <= found.keys():
            return {}
        return found | {"start": np.zeros(len(found["streamId"]), np.int64)}

    def _awaited_records(self, columns: Columns) -> I64:
        """The record that each wait is for, -1 if it is not known: by the id that joins both, which newer releases
        write, or the last record of the same event that was called before."""
        found, none = self._event_records(), np.full(len(columns["start"]), MISSING, np.int64)
        if not found or not len(found["streamId"]):
            return none
        if "eventSyncId" in found and "eventSyncId" in columns and (columns["eventSyncId"] > 0).any():
            return _last_before(found["eventSyncId"], None, columns["eventSyncId"], None)
        if "eventId" not in found or "eventId" not in columns or "correlationId" not in columns:
            return none
        # Ids of calls count up, so that they tell the order of the calls of a process.
        key, wanted = (
            self._process(each) << _CORRELATION_BITS | each["eventId"] & ((1 << _CORRELATION_BITS) - 1)
            for each in (found, columns)
        )
        return _last_before(key, found["correlationId"], wanted, columns["correlationId"])

    # -- threads -----------------------------------------------------------------------------------------------------

    def _on_thread(
        self,
        columns: Columns,
        name: I64,
        rules: Sequence[KindRule],
        stats: Sequence[StatColumn],
        end: I64 | None = None,
    ) -> TablePart:
        kind, traits = self._kinds(name, rules)
        ends = columns["end"] if end is None else end
        return TablePart(columns["start"], ends, name, kind, traits, Lane.THREAD, columns["globalTid"], stats)

    def _calls(self, columns: Columns) -> TablePart:
        name = self._renamed(self.text(columns["nameId"]), lambda text: _API_VERSION.sub("", text))
        return self._on_thread(columns, name, devices.RUNTIME_CALLS, [self._correlation(columns)])

    def _node_calls(self, columns: Columns) -> TablePart:
        """The calls that recorded the nodes of graphs: what is around them names the work of every replay."""
        name = self.text(columns["nameId"])
        original = columns.get("originalGraphNodeId", np.full(len(name), MISSING, np.int64))
        stats = [_number(GRAPH_NODE_ID[0], columns["graphNodeId"]), _number(GRAPH_ORIGINAL_NODE_ID[0], original)]
        return self._on_thread(columns, name, ((r"", K.RUNTIME_CALL, Trait.NONE),), stats)

    def _ranges(self, columns: Columns) -> TablePart:
        """Ranges and marks of NVTX.  Those that never end last until the last one that does."""
        kind = columns.get("eventType", np.full(len(columns["start"]), _RANGE, np.int64))
        rows = np.flatnonzero(np.isin(kind, _RANGE_TYPES))
        columns = {name: column[rows] for name, column in columns.items()}
        kind = kind[rows]
        last = int(columns["end"].max(initial=0))
        open_end = (columns["end"] < 0) & (kind != _MARK)
        if open_end.any():
            reason = f"{counted(int(open_end.sum()), 'range')} of NVTX never ended"
            self.problems.append(Problem("unmatched-begins", reason, path=self.source, kept="these, to the last end"))
        end = np.where(kind == _MARK, columns["start"], np.where(open_end, last, columns["end"]))
        own = columns.get("text", np.zeros(len(rows), np.int64))
        registered = self.text(columns["textId"]) if "textId" in columns else np.zeros(len(rows), np.int64)
        full = np.where(own > 0, own, registered)
        name, number = self._split_ranges(full)
        part = self._on_thread(columns, name, nvtx.KINDS, [_number(STEP_NUM[0], number)], end)
        part.kind[(number >= 0) & (kind == _RANGE)] = K.STEP_MARK
        part.kind[kind == _MARK] = K.OTHER
        part.traits[kind == _RANGE_OF_ANY_THREAD] |= np.uint8(Trait.ASYNC)
        return part

    def _split_ranges(self, rows: I64) -> tuple[I64, I64]:
        """The names of ranges without what differs from call to call, and the numbers of counted steps."""
        distinct, place = self._distinct(rows)
        found = [nvtx.split_range(self._string(row)) for row in distinct.tolist()]
        names = np.array([self.texts.add(name) for name, _ in found], np.int64)
        numbers = np.array([MISSING if number is None else number for _, number in found], np.int64)
        return names[place], numbers[place]

    # -- facts -------------------------------------------------------------------------------------------------------

    def _names(self) -> Names:
        threads = self.tables.columns("ThreadNames", ("globalTid", "nameId"))
        found: dict[int, str] = {}
        if len(threads) == 2:
            rows = self.text(threads["nameId"])
            found = {
                thread: self._string(row)
                for thread, row in zip(threads["globalTid"].tolist(), rows.tolist(), strict=True)
            }
        processes = self.tables.records("PROCESSES", ("globalPid", "name"))
        return Names(
            found, {process_of(row[0]): str(row[1]) for row in processes if isinstance(row[0], int) and row[1]}
        )

    def _start_unix_ns(self) -> int | None:
        rows = self.tables.records("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
        found = rows[0][0] if rows else None
        return found if isinstance(found, int) and 0 < found < 1 << 62 else None

    def _messages(self, parts: Sequence[TablePart]) -> tuple[str, ...]:
        """What Nsight itself warned of: of the processes that have events, or of none; of what it traces only what is
        read of it, and not that something is missing which is there."""
        has = {_READ_OF[part.place] for part in parts if part.place in _READ_OF}
        pids = {process_of(line) for part in parts if part.place == Lane.THREAD for line in distinct(part.line)}
        pids = pids if any(part.place == Lane.STREAM for part in parts) else set()  # else it may be of any
        said = self._all_messages(pids)
        return tuple(text for text in said if _is_about_this(text, has))

    def _all_messages(self, pids: Set[int] = frozenset()) -> list[str]:
        """The warnings and errors of Nsight itself on some processes, or on none; on all if `pids` is empty."""
        labels = dict(self.tables.records("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", ("id", "label")))
        rows = self.tables.records("DIAGNOSTIC_EVENT", ("severity", "text", "globalPid"))
        said = [
            str(text)
            for level, text, pid in rows
            if labels.get(level) in _WARNS and text
            and not (pids and isinstance(pid, int) and pid > 0 and process_of(pid) not in pids)
        ]  # fmt: skip
        return list(dict.fromkeys(said))

    def _framework(self, strings: Strings) -> str:
        """PyTorch by its kernels, where no range of NVTX names one of its ops."""
        blob = strings.blob.tobytes()
        return "pytorch" if any(name in blob for name in _OF_TORCH) else ""


def _is_about_this(message: str, has: set[str]) -> bool:
    """Whether a message of Nsight's says something of what is read: not that rows are missing which are there, nor
    something of tracing that is not read."""
    topic = _TOPIC.match(message)
    if topic is None:
        return True
    traced = topic["missing"] or topic["unsure"] or topic["partly"]
    return traced in _READ_OF.values() and (topic["partly"] is not None or traced not in has)


def _is_of(part: TablePart, pid: int, number: int) -> Mask:
    """Which events of a part are of a process."""
    on_thread = part.place in OF_THREAD
    found: Mask = process_of_all(part.line) == pid if on_thread else (part.line >> PROCESS_SHIFT) == number
    return found


def _move_to_device_of_work(waits: TablePart, work: Sequence[I64]) -> TablePart:
    """Waits, on the device of their process where all of its work is on one: rows of waits may state another one.

    Args:
        work: keys of streams.
    """
    used = distinct(np.concatenate(work) >> STREAM_BITS)
    process, first, count = np.unique(used >> DEVICE_BITS, return_index=True, return_counts=True)
    at = np.minimum(np.searchsorted(process, waits.line >> PROCESS_SHIFT), len(process) - 1)
    known = (process[at] == waits.line >> PROCESS_SHIFT) & (count[at] == 1)
    stream = waits.line & ((1 << STREAM_BITS) - 1)
    return replace(waits, line=np.where(known, used[first[at]] << STREAM_BITS | stream, waits.line))


def _number(name: str, values: I64, least: int = 1) -> StatColumn:
    """A stat of the events whose number is `least` or more."""
    return StatColumn(name, StatTag.INT, values, values >= least)


def _copy_name(kind: int, source: int, target: int) -> str:
    if kind in _MIGRATIONS:
        return f"Unified memory {_COPY_NAMES[kind]}"
    sides = f" ({_memory_name(source)} -> {_memory_name(target)})" if source >= 0 and target >= 0 else ""
    return f"Memcpy {_COPY_NAMES.get(kind, 'Unknown')}{sides}"


def _memory_name(kind: int) -> str:
    return _MEMORY_NAMES[kind] if 0 <= kind < len(_MEMORY_NAMES) else "Unknown"


def _last_before(keys: I64, times: I64 | None, wanted: I64, before: I64 | None) -> I64:
    """The last row of equal key and a smaller time, -1 for none: int64 of the shape of `wanted`."""
    order = np.lexsort((np.zeros(len(keys)) if times is None else times, keys))
    ordered = keys[order]
    if times is None or before is None:
        at = np.searchsorted(ordered, wanted, side="right") - 1
    else:
        low, high = np.searchsorted(ordered, wanted), np.searchsorted(ordered, wanted, side="right")
        at = last_below(times[order], low, high, before)
    found = np.maximum(at, 0)
    return np.where((at >= 0) & (wanted > 0) & (ordered[found] == wanted), order[found], MISSING)
