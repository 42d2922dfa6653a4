"""Reads what PyTorch's flight recorder dumps when a collective hangs: one file for each rank, a pickle or JSON.

    dump  = {"version", "pg_config": {id: {"name", "desc", "ranks"}}, "entries": [entry, ...]}
    entry = {"process_group": (name, description), "collective_seq_id", "profiling_name", "state", "time_created_ns",
             "time_discovered_completed_ns", "input_sizes", "input_dtypes", "frames": [{"name", "filename", "line"}]}

The recorder is a ring buffer: a dump holds the last calls only.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from stepscope.errors import Problem, UnreadableError, counted
from stepscope.formats.plain_pickle import load_plain
from stepscope.model import EventKind, HostTrace, LineBuilder, PlaneKind, StatValue, TraceBuilder, Trait
from stepscope.model.stat_names import (
    CALL_STACK,
    CALL_STATE,
    COLLECTIVE_IN,
    COLLECTIVE_NAME,
    COLLECTIVE_NUMBER,
    COLLECTIVE_TYPE,
    GROUP_DESCRIPTION,
    GROUP_NAME,
    GROUP_RANKS,
    RANK,
)

_HINT = "give a file that torch.distributed wrote when a collective timed out (TORCH_NCCL_DUMP_ON_TIMEOUT=1)"
_RANK_IN_NAME = re.compile(r"(\d{1,9})(?:\.\w+)?$")
_LATEST_NS = 1 << 62
_LONGEST_PS = 1 << 61
_MOST_FRAMES = 40


def read(data: bytes, source: str, host: str) -> HostTrace:
    """Reads one rank's dump; nothing in it is executed.

    Raises:
        UnreadableError: it is not a dump, or a pickle of more than plain values.
    """
    dump = _load(data, source)
    entries = [each for each in _list(dump.get("entries")) if isinstance(each, dict) and _time(each) is not None]
    groups = {str(name): facts for name, facts in _mapping(dump.get("pg_config")).items() if isinstance(facts, dict)}
    first = min((_time(entry) or 0 for entry in entries), default=0)
    last = max((max(_time(entry) or 0, _completed(entry) or 0) for entry in entries), default=0)
    builder = TraceBuilder(host or "localhost", first or None, last or None)
    builder.source, builder.framework = source, "pytorch"
    found = _RANK_IN_NAME.search(source)
    plane = builder.plane("/host:CPU", PlaneKind.HOST, stats={RANK[0]: int(found[1])} if found else {})
    lines: dict[str, LineBuilder] = {}
    for entry in entries:
        name, description = _group_of(entry)
        label = f"process group {name}{f' ({description})' if description else ''}"
        if label not in lines:
            lines[label] = builder.line(plane, label)
        _add_call(lines[label], entry, groups.get(name, {}), first, last)
    lost = len(_list(dump.get("entries"))) - len(entries)
    if lost:
        builder.problems.append(
            Problem("no-time", f"{counted(lost, 'call')} without a time", path=source, kept="nothing")
        )
    if not entries:
        builder.problems.append(Problem("no-events", "the dump holds no calls", path=source, hint=_HINT))
    return builder.build()


def _load(data: bytes, source: str) -> Mapping[str, Any]:
    if data.lstrip()[:1] == b"{":
        try:
            found: object = json.loads(data)
        except (ValueError, RecursionError) as error:
            reason = f"the JSON cannot be read: {error}"
            raise UnreadableError(reason, code="json", path=source, lost="everything", hint=_HINT) from error
    else:
        found = load_plain(data, source, _HINT)
    if not isinstance(found, dict) or not {"entries", "pg_config"} & found.keys():
        raise UnreadableError(
            "this is not a dump of the flight recorder", code="unknown-format", path=source, hint=_HINT
        )
    return found


def _add_call(line: LineBuilder, entry: Mapping[str, Any], group: Mapping[str, Any], first: int, last: int) -> None:
    start, end = _time(entry) or first, _completed(entry) or last
    name, description = _group_of(entry)
    text = str(entry.get("profiling_name") or "unknown")
    stats: dict[str, StatValue] = {
        COLLECTIVE_NAME[0]: text.rpartition(":")[2],
        CALL_STATE[0]: str(entry.get("state") or "unknown"),
        GROUP_NAME[0]: name,
        GROUP_DESCRIPTION[0]: description,
        GROUP_RANKS[0]: _ranks(group.get("ranks")),
        CALL_STACK[0]: ";".join(_frames(entry)),
    }
    number = entry.get("collective_seq_id")
    if isinstance(number, int) and not entry.get("is_p2p"):
        stats[COLLECTIVE_NUMBER[0]] = number
    sizes = [size for size in _list(entry.get("input_sizes")) if isinstance(size, list | tuple)]
    if sizes and all(isinstance(each, int) and 0 <= each < 1 << 40 for size in sizes for each in size):
        stats[COLLECTIVE_IN[0]] = sum(math.prod(size) for size in sizes)
    types = [each for each in _list(entry.get("input_dtypes")) if isinstance(each, str)]
    if types:
        stats[COLLECTIVE_TYPE[0]] = types[0]
    duration = min(max(end - start, 0) * 1000, _LONGEST_PS)
    at = min((start - first) * 1000, _LONGEST_PS)
    line.event(text, at, duration, EventKind.COLLECTIVE_CALL, stats, Trait.ASYNC)


def _time(entry: Mapping[str, Any]) -> int | None:
    found = entry.get("time_created_ns")
    return found if isinstance(found, int) and 0 <= found < _LATEST_NS else None


def _completed(entry: Mapping[str, Any]) -> int | None:
    found = entry.get("time_discovered_completed_ns")
    return found if isinstance(found, int) and 0 <= found < _LATEST_NS else None


def _group_of(entry: Mapping[str, Any]) -> tuple[str, str]:
    found = entry.get("process_group")
    parts = [str(each) for each in found[:2]] if isinstance(found, list | tuple) else [str(entry.get("pg_id", "0"))]
    return parts[0] if parts else "0", parts[1] if len(parts) > 1 else ""


def _ranks(value: object) -> str:
    """The members of a group as PyTorch writes them to its traces: `[0, 1]`."""
    return json.dumps(value) if isinstance(value, list) else str(value or "")


def _frames(entry: Mapping[str, Any]) -> Iterator[str]:
    for frame in _list(entry.get("frames"))[:_MOST_FRAMES]:
        if isinstance(frame, dict):
            yield f"{frame.get('filename')}({frame.get('line')}): {frame.get('name')}"


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
