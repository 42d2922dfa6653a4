"""Small whole files to start from: one of each make, with every kind of field that the format has."""

from __future__ import annotations

import json
import pickle
import sqlite3
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from stepscope.export import perfetto
from stepscope.formats.xspace.encode import varint
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, PlaneKind
from stepscope.model.builder import TraceBuilder

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "helpers"))

from nsight_build import training
from riegeli_build import riegeli_file, simple_chunk, transposed_chunk


def xspaces() -> Iterator[bytes]:
    """XSpace files: as Stepscope writes them, and by hand with what it does not write."""
    builder = TraceBuilder(host="a", start_unix_ns=1_700_000_000_000_000_000)
    plane = builder.plane("/host:CPU", PlaneKind.HOST, stats={"count": 3, "name": "x", "share": 0.5})
    line = builder.line(plane, "main")
    for step in range(4):
        start = step * 1_000_000
        line.event("train", start, 900_000, EventKind.STEP_MARK, {"step_num": step, "_r": 1})
        line.event("MatMul", start + 1000, 5000, EventKind.OP, {"shape": "f32[2,3]", "bytes": 2**63, "raw": b"\0\1"})
        line.event("MatMul", start + 1000, 4000, EventKind.OP, {"flops": -1, "share": 1.5})
    yield write(builder.build())
    yield _space(_message(3, _number(1, 7), _text(2, b"main"), _number(3, 5), *map(_event, range(6)), _number(9, 99)))
    yield _space(*(_message(3, _number(1, line), _event(line)) for line in range(5)))
    yield _space(_message(3, _event(1 << 40), _event(2)), _number(99, 1), _text(98, b"unknown"))


def _space(*fields: bytes) -> bytes:
    names = (_message(4, _number(1, key), _message(2, _number(1, key), _text(2, b"op%d" % key))) for key in range(4))
    texts = (_message(5, _number(1, key), _message(2, _number(1, key), _text(2, b"stat"))) for key in range(1, 4))
    return _message(1, _number(1, 1), _text(2, b"/device:GPU:0"), *fields, *names, *texts)


def _event(key: int) -> bytes:
    stats = _number(4, key), _number(3, 1 << 63), _text(5, b"text"), _text(6, b"bytes"), _number(7, 2)
    double = varint(2 << 3 | 1) + b"\0\0\0\0\0\0\xf0\x3f"
    inside = (_message(4, _number(1, 1 + row % 3), value) for row, value in enumerate((*stats, double)))
    return _message(4, _number(1, key), _number(2, 1000 * key), _number(3, 900), *inside, _number(5, key))


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def _text(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def _message(field: int, *fields: bytes) -> bytes:
    return _text(field, b"".join(fields))


def traces() -> Iterator[bytes]:
    """Traces as JSON: whole events, pairs, flows, counters, names, and odd spellings of all."""
    events = [
        {"ph": "X", "name": "aten::mm", "cat": "cpu_op", "pid": 1, "tid": 2, "ts": 1.5, "dur": 10, "args": {"a": [1]}},
        {"ph": "X", "name": "gemm", "cat": "kernel", "pid": 0, "tid": 7, "ts": 5, "dur": 3, "args": {"correlation": 9}},
        {"ph": "X", "name": "cudaLaunchKernel", "cat": "cuda_runtime", "pid": 1, "tid": 2, "ts": "2", "dur": 1e0},
        {"ph": "B", "name": "ProfilerStep#1", "cat": "user_annotation", "pid": 1, "tid": 2, "ts": 0},
        {"ph": "E", "pid": 1, "tid": 2, "ts": 20},
        {"ph": "s", "id": 4, "name": "fwdbwd", "cat": "fwdbwd", "pid": 1, "tid": 2, "ts": 3},
        {"ph": "f", "id": 4, "name": "fwdbwd", "cat": "fwdbwd", "pid": 1, "tid": 3, "ts": 9, "bp": "e"},
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python \\u00e9 \U0001f600"}},
        {"ph": "C", "name": "memory", "pid": 1, "ts": 4, "args": {"bytes": -12.25, "none": None, "yes": True}},
        {"ph": "i", "name": "mark", "s": "t", "pid": 1, "tid": 2, "ts": 8},
    ]
    whole = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": events}
    yield json.dumps(whole).encode()
    yield json.dumps(whole, indent=1, ensure_ascii=False).encode()
    yield json.dumps(events).encode()
    yield json.dumps({**whole, "displayTimeUnit": "ms", "baseTimeNanoseconds": 17 * 10**17}).encode()


def packets() -> Iterator[bytes]:
    """Perfetto's traces: our export, and by hand names, nested values, clocks, work of GPUs and compressed packets."""
    builder = TraceBuilder(host="a", start_unix_ns=1_700_000_000_000_000_000)
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for step in range(3):
        line.event("train", step * 1_000_000, 900_000, EventKind.STEP_MARK, {"step_num": step})
        line.event("MatMul", step * 1_000_000 + 1000, 5000, EventKind.OP, {"shape": "f32[2,3]", "share": 1.5})
    yield b"".join(perfetto.pieces([builder.build()]))
    named = [_message(2, _number(1, 1), _text(2, b"op")), _message(1, _number(1, 1), _text(2, b"cpu_op"))]
    stages = [_message(24, _number(1, key), _text(2, text)) for key, text in ((1, b"Kernel"), (9, b"[7] stream 7"))]
    clock = _message(6, _message(1, _number(1, 6), _number(2, 99)), _message(1, _number(1, 64), _number(3, 1)))
    nested = _message(4, _text(10, b"dims"), _message(12, _message(12, _number(4, 2)), _message(12, _text(6, b"x"))))
    begin = _message(11, _number(9, 1), _number(11, 5), _number(10, 1), _number(3, 1), nested)
    extra = _message(6, _text(1, b"correlation"), _text(2, b"12"))
    launch = _message(21, _message(1, _number(1, 8)), _message(3, _text(2, b"args"), _number(4, 3)))
    stage = _message(53, _number(2, 30), _number(11, 1), _number(13, 9), _number(14, 1), launch, extra)
    counters = _message(
        52, _message(1, _message(1, _number(1, 2), _text(2, b"W"))), _message(2, _number(1, 2), _number(2, 7))
    )
    content = b"".join(
        (
            _packet(_message(60, _number(1, 5), _message(4, _number(1, 3), _number(2, 4), _text(5, b"main")))),
            _packet(_number(13, 1), _message(12, *named, *stages), clock),
            *(_packet(_number(8, 10 * k), _number(13, 2), begin) for k in range(3)),
            *(_packet(_number(8, 10 * k + 5), _message(11, _number(9, 2), _number(11, 5))) for k in range(3)),
            *(_packet(_number(8, 40 + k), _number(13, 2), part) for k, part in enumerate((stage, stage, counters))),
        )
    )
    yield content
    yield content + _message(1, _text(50, zlib.compress(content)))


def _packet(*fields: bytes) -> bytes:
    return _message(1, _number(10, 1), *fields)


def riegelis() -> Iterator[bytes]:
    """Riegeli files with an XSpace in simple and transposed chunks."""
    whole = list(xspaces())
    messages = ((1,), (1, 3), (1, 3, 4), (1, 3, 4, 4), (1, 4), (1, 4, 2), (1, 5))
    for codec in ("none", "zstd"):
        yield riegeli_file([simple_chunk(whole[:1], codec), simple_chunk(whole[1:2], codec)], padded=False)
        yield riegeli_file([transposed_chunk(whole[:1], codec, messages)], padded=False)


def databases() -> Iterator[bytes]:
    """Nsight's export of a training, in small pages."""
    with tempfile.TemporaryDirectory() as folder:
        path = training(2).write_sqlite(Path(folder) / "a.sqlite")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA page_size = 512")
            connection.execute("VACUUM")
            yield connection.serialize()


def dumps() -> Iterator[bytes]:
    """Dumps of the flight recorder: pickles of several protocols, and JSON."""
    frames = [{"name": "train", "filename": "train.py", "line": 7}]
    calls = [
        {"process_group": ("0", "default_pg"), "collective_seq_id": number, "profiling_name": "nccl:all_reduce",
         "time_created_ns": 10**18 + 1000 * number, "time_discovered_completed_ns": 10**18 + 1000 * number + 500,
         "input_sizes": [[4, 8]], "input_dtypes": ["Float"], "state": "completed", "frames": frames}
        for number in range(3)
    ]  # fmt: skip
    groups = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    dump = {"version": "2.10", "pg_config": groups, "entries": calls}
    yield from (pickle.dumps(dump, protocol) for protocol in (2, 4, 5))
    yield json.dumps(dump).encode()


MAKERS: dict[str, Callable[[], Iterator[bytes]]] = {
    "xspace": xspaces,
    "trace_json": traces,
    "perfetto": packets,
    "riegeli": riegelis,
    "nsight": databases,
    "flight_recorder": dumps,
}
