"""Reads what AMD's rocprofv3 writes with `--output-format json` (`*_results.json`).

    {"rocprofiler-sdk-tool": [process]}
    process = {"metadata": {"pid"}, "agents": [{"id": {"handle"}, "type", "node_id", "cu_count"}],
               "strings": {"buffer_records": [{"kind", "operations": [name]}], "marker_api": [{"key", "value"}]},
               "kernel_symbols": [{"kernel_id", "formatted_kernel_name"}],
               "buffer_records": {"kernel_dispatch": [record], "memory_copy": [record], "hip_api": [record], ...}}
    record  = {"kind", "operation", "thread_id", "correlation_id": {"internal"}, "start_timestamp", "end_timestamp"}

Times are ns of a clock that starts with the machine.  A record's kind and operation are places in the lists of
`strings`; a kernel and a copy have the correlation id of the call that asked for them, and a range of ROCTx that of its
text.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from stepscope.errors import UnreadableError
from stepscope.formats.compressed import unpack
from stepscope.model import EventKind, HostTrace, LineBuilder, LineKind, PlaneKind, StatValue, TraceBuilder, Trait
from stepscope.model.stat_names import BLOCK, BYTES_COPIED, CORRELATION_ID, GRID, STEP_NUM
from stepscope.vocabulary import devices, nvtx, precision, torch
from stepscope.vocabulary.tables import KindRule

_TOOL = "rocprofiler-sdk-tool"
_HINT = "give a file that rocprofv3 wrote with --output-format json"
_GPU = 2  # of rocprofiler_agent_type_t
_CALLS = ("hip_api", "hsa_api")  # the calls of HSA are those that calls of HIP make, and tell nothing more
_COPIES = (
    ("HOST_TO_HOST", EventKind.COPY_HOST_TO_HOST),
    ("HOST_TO_DEVICE", EventKind.COPY_HOST_TO_DEVICE),
    ("DEVICE_TO_HOST", EventKind.COPY_DEVICE_TO_HOST),
    ("DEVICE_TO_DEVICE", EventKind.COPY_DEVICE_TO_DEVICE),
)
_OF_MARKER = "roctxMark"
_PS_PER_NS = 1000
_LONGEST_NS = 1 << 62
_MOST_BYTES = 1 << 30  # unpacked: as objects of Python more would not fit into the memory of most machines

Record = Mapping[str, Any]


def read(data: bytes, source: str, host: str) -> HostTrace:
    """Reads the first process of a file; usually there is one.

    Args:
        data: the file's bytes, plain or compressed with gzip.

    Raises:
        UnreadableError: rocprofv3 did not write it, or it holds neither kernels, copies, calls nor ranges.
    """
    return _read_process(_processes_of(data, source)[0], source, host)


def read_hosts(data: bytes, source: str, host: str) -> tuple[HostTrace, ...]:
    """Reads all processes of a file: a trace for each.

    Args, Raises: as for `read`; a process of several is named by its number.
    """
    processes = _processes_of(data, source)
    if len(processes) == 1:
        return (_read_process(processes[0], source, host),)
    numbers = [_number(_mapping(process.get("metadata")).get("pid")) for process in processes]
    names = [str(number or place) for place, number in enumerate(numbers)]
    return tuple(_read_process(each, source, f"process {name}") for each, name in zip(processes, names, strict=True))


def _read_process(process: Record, source: str, host: str) -> HostTrace:
    builder = TraceBuilder(host or "localhost")
    builder.source = source
    _Process(builder, process).add_all()
    trace = builder.build()
    if not len(trace.events):
        raise UnreadableError(
            "it holds neither kernels, copies, calls nor ranges with a time",
            code="no-events", path=source, lost="everything", hint="record with rocprofv3 --sys-trace",
        )  # fmt: skip
    return trace


def _processes_of(data: bytes, source: str) -> list[Record]:
    """The processes of a file, at least one."""
    try:
        found = _mapping(json.loads(unpack(data, _MOST_BYTES))).get(_TOOL)
    except (ValueError, RecursionError, zlib.error) as error:
        reason = f"the JSON cannot be read: {error}"
        raise UnreadableError(reason, code="json", path=source, lost="everything", hint=_HINT) from error
    processes: list[Record] = [each for each in _sequence(found) if isinstance(each, dict)]
    if not processes:
        raise UnreadableError("rocprofv3 did not write this", code="unknown-format", path=source, hint=_HINT)
    return processes


class _Process:
    """Adds what one process recorded to a trace."""

    def __init__(self, builder: TraceBuilder, process: Record) -> None:
        self._builder = builder
        self._records = _mapping(process.get("buffer_records"))
        strings = _mapping(process.get("strings"))
        self._operations = [
            _sequence(_mapping(each).get("operations")) for each in _sequence(strings.get("buffer_records"))
        ]
        self._texts = {
            _number(_mapping(each).get("key")): str(_mapping(each).get("value", ""))
            for each in _sequence(strings.get("marker_api"))
        }
        self._kernels = dict(_kernel_names(process.get("kernel_symbols")))
        self._agents = _gpus(process.get("agents"))
        self._host = builder.plane("/host:CPU", PlaneKind.HOST)
        self._planes: dict[int, int] = {}
        self._lines: dict[tuple[object, ...], LineBuilder] = {}
        starts = [start for name in self._records for _, start, _ in self._timed(name)]
        self._first = min(starts, default=0)

    def add_all(self) -> None:
        """Adds kernels, copies, calls and ranges."""
        self._add_kernels()
        self._add_copies()
        for name in next(([name] for name in _CALLS if self._records.get(name)), []):
            self._add_calls(name)
        self._add_ranges()

    def _timed(self, name: str) -> Iterator[tuple[Record, int, int]]:
        """The records of a kind that have a time, each with its start and end in ns."""
        for each in _sequence(self._records.get(name)):
            record = _mapping(each)
            start, end = _number(record.get("start_timestamp")), _number(record.get("end_timestamp"))
            if 0 < start <= end:
                yield record, start, end

    def _span(self, start: int, end: int) -> tuple[int, int]:
        return (start - self._first) * _PS_PER_NS, (end - start) * _PS_PER_NS

    def _add_kernels(self) -> None:
        for record, start, end in self._timed("kernel_dispatch"):
            info = _mapping(record.get("dispatch_info"))
            name = self._kernels.get(_number(info.get("kernel_id")), "unknown")
            line = self._line_of_device(_handle(info.get("agent_id")), "Compute", _handle(info.get("queue_id")))
            sizes = {GRID[0]: _blocks(info), BLOCK[0]: _sides(info.get("workgroup_size"))}
            stats = _correlation(record) | {name: text for name, text in sizes.items() if text}
            traits = Trait.COMPUTES_16BIT if _is_narrow(name) else Trait.NONE
            line.event(name, *self._span(start, end), _kind_of(name, torch.KERNEL_KINDS), stats, traits)

    def _add_copies(self) -> None:
        for record, start, end in self._timed("memory_copy"):
            operation = self._operation(record)
            kind = next((kind for words, kind in _COPIES if words in operation), EventKind.COPY_OTHER)
            ends = _handle(record.get("dst_agent_id")), _handle(record.get("src_agent_id"))
            gpu = next((agent for agent in ends if agent in self._agents), ends[0])
            stats = _correlation(record)
            if size := _number(record.get("bytes")):
                stats[BYTES_COPIED[0]] = size
            line = self._line_of_device(gpu, "Memcpy", int(kind))
            line.event(operation, *self._span(start, end), kind, stats)

    def _add_calls(self, name: str) -> None:
        for record, start, end in self._timed(name):
            call = self._operation(record)
            kind = _kind_of(call, devices.RUNTIME_CALLS)
            self._line_of_thread(record).event(call, *self._span(start, end), kind, _correlation(record))

    def _add_ranges(self) -> None:
        for record, start, end in self._timed("marker_api"):
            operation = self._operation(record)
            text = self._texts.get(_number(_mapping(record.get("correlation_id")).get("internal")), operation)
            name, number = nvtx.split_range(text)
            is_mark = operation.startswith(_OF_MARKER)
            kind = EventKind.OTHER if is_mark else _kind_of(name, nvtx.KINDS) if number is None else EventKind.STEP_MARK
            stats: dict[str, StatValue] = {} if number is None else {STEP_NUM[0]: number}
            self._line_of_thread(record).event(name, *self._span(start, start if is_mark else end), kind, stats)

    def _operation(self, record: Record) -> str:
        """The name of what a record is of."""
        if isinstance(name := record.get("operation"), str):  # as tools that write the same layout have it
            return name
        kind, operation = _number(record.get("kind")), _number(name)
        names = self._operations[kind] if kind < len(self._operations) else ()
        return str(names[operation]) if operation < len(names) else "unknown"

    def _line_of_thread(self, record: Record) -> LineBuilder:
        thread = _number(record.get("thread_id"))
        if (thread,) not in self._lines:
            self._lines[(thread,)] = self._builder.line(self._host, f"thread {thread}", thread)
        return self._lines[(thread,)]

    def _line_of_device(self, agent: int, what: str, queue: int) -> LineBuilder:
        if (agent, what, queue) not in self._lines:
            if agent not in self._planes:
                ordinal, facts = self._agents.get(agent, (len(self._agents) + len(self._planes), {}))
                self._planes[agent] = self._builder.plane(f"/device:GPU:{ordinal}", PlaneKind.GPU, ordinal, stats=facts)
            number = sum(key[0] == agent for key in self._lines if len(key) > 1)
            name = f"Stream #{number}({what})"
            self._lines[agent, what, queue] = self._builder.line(self._planes[agent], name, number, LineKind.STREAM)
        return self._lines[agent, what, queue]


def _gpus(agents: object) -> dict[int, tuple[int, dict[str, StatValue]]]:
    """The GPUs by their handle: the number of each, in the order of their nodes, and what is known of it."""
    found = [each for each in map(_mapping, _sequence(agents)) if each.get("type") == _GPU]
    found.sort(key=lambda each: _number(each.get("node_id")))
    return {_handle(each.get("id")): (number, _facts_of(each)) for number, each in enumerate(found)}


def _facts_of(gpu: Record) -> dict[str, StatValue]:
    name, cores = str(gpu.get("product_name") or gpu.get("name") or ""), _number(gpu.get("cu_count"))
    known: dict[str, StatValue] = {"device_vendor": "AMD", "gpu_device_name": name, "core_count": cores}
    return {fact: value for fact, value in known.items() if value}


def _kernel_names(symbols: object) -> Iterator[tuple[int, str]]:
    """The number and the name of each kernel."""
    for place, symbol in enumerate(map(_mapping, _sequence(symbols))):
        names = (symbol.get(f"{form}kernel_name") for form in ("formatted_", "demangled_", ""))
        name = next((str(name) for name in names if name), "")
        if name:
            yield _number(symbol.get("kernel_id", place)), name.removesuffix(".kd")


def _correlation(record: Record) -> dict[str, StatValue]:
    number = _number(_mapping(record.get("correlation_id")).get("internal"))
    return {CORRELATION_ID[0]: number} if number else {}


def _blocks(info: Record) -> str:
    """The grid in blocks, as other writers have it: rocprofv3 counts its threads."""
    threads, block = _mapping(info.get("grid_size")), _mapping(info.get("workgroup_size"))
    pairs = [(_number(threads.get(side)), _number(block.get(side))) for side in "xyz"]
    return _written(-(-whole // part) for whole, part in pairs) if all(part for _, part in pairs) else ""


def _sides(size: object) -> str:
    sides = [_number(_mapping(size).get(side)) for side in "xyz"]
    return _written(sides) if all(sides) else ""


def _written(sizes: Iterable[int]) -> str:
    """Sizes along three axes as text, as Kineto writes them."""
    return f"[{', '.join(map(str, sizes))}]"


@cache
def _kind_of(name: str, rules: tuple[KindRule, ...]) -> EventKind:
    return next((kind for pattern, kind, _ in rules if re.match(pattern, name)), EventKind.OTHER)


@cache
def _is_narrow(name: str) -> bool:
    return bool(precision.kernel_computes_16bit(name))


def _handle(value: object) -> int:
    return _number(_mapping(value).get("handle"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: object) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _number(value: object) -> int:
    """A whole number that is not negative; 0 for anything else."""
    return value if isinstance(value, int) and 0 <= value < _LONGEST_NS * 4 else 0
