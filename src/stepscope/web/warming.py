"""Gets the process ready for its first profile while the browser starts.

Importing the readers and the first tool takes a while, and so does loading the compiled kernels: each is read from the
disk when it is first called.  So a trace of a few events goes the way of a real one, from bytes to the timeline.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable

from stepscope.analysis.registry import tool_named
from stepscope.formats.base import FORMATS
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder

_MS = 10**9


def warm_up(first_tool: str, formats: Iterable[str] = ()) -> None:
    """Reads and analyses a trace of a few events; a failure is logged and costs only time later.

    Args:
        first_tool: the tool that is asked first.
        formats: names of the formats that will be read; all if there are none.
    """
    wanted = set(formats) or {kind.name for kind in FORMATS}
    try:
        for kind in FORMATS:
            if kind.name in wanted and kind.name in _SAMPLES:
                trace = kind.read(_SAMPLES[kind.name](), f"a sample of {kind.name}", "sample")
                tool_named(first_tool).partial(trace)
                _draw(trace)
    except Exception as error:
        logging.getLogger(__name__).warning("the first profile will open more slowly: %s", error)


def _draw(trace: HostTrace) -> None:
    from stepscope.analysis.timeline import index, tracks
    from stepscope.analysis.timeline.load import load

    begin, end = trace.span_ps()
    level = index.level_for(begin, end, 100)
    index.window(trace, begin, end, range(index.index_of(trace).n_rows), 100, 1000)
    for group in tracks.groups_of(trace):
        load(trace, group, begin, 100, level)


def _xspace() -> bytes:
    from stepscope.formats.xspace import writer

    builder = TraceBuilder("sample")
    thread = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU, 0), "Stream #1", kind=LineKind.STREAM)
    for step in range(3):
        begin = 10 * step * _MS
        thread.event("train", begin, 9 * _MS, EventKind.STEP_MARK, {"step_num": step, "_r": 1})
        thread.event("MatMul:MatMul", begin + _MS, 3 * _MS, EventKind.OP)
        thread.event("cuLaunchKernel", begin + 2 * _MS, _MS, EventKind.RUNTIME_CALL, {"correlation_id": step + 1})
        stream.event("gemm", begin + 4 * _MS, 2 * _MS, EventKind.KERNEL, {"correlation_id": step + 1})
    return writer.write(builder.build())


def _kineto() -> bytes:
    def event(category: str, name: str, line: int, begin_ms: float, ms: float, **arguments: int) -> dict[str, object]:
        told = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": line, "ts": begin_ms * 1e3, "dur": ms * 1e3}
        return told | {"args": arguments}

    events = []
    for step in range(3):
        begin = 10.0 * step
        events.append(event("user_annotation", f"ProfilerStep#{step}", 1, begin, 9))
        events.append(event("cpu_op", "aten::mm", 1, begin + 1, 3))
        events.append(event("cuda_runtime", "cudaLaunchKernel", 1, begin + 2, 1, correlation=step + 1))
        events.append(event("kernel", "gemm", 7, begin + 4, 2, correlation=step + 1, device=0, stream=7))
    return json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}).encode()


_SAMPLES: dict[str, Callable[[], bytes]] = {"xspace": _xspace, "kineto": _kineto}
