"""How kernels were launched: registers, shared memory, grid, block, occupancy, from whichever stats a trace holds.

A figure that no device can have is garbage that a tracer left in its record, and unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I32, I64, number_pairs
from stepscope.records import dataclass

T = TypeVar("T")
Dimensions = tuple[int, int, int]

MOST_REGISTERS = 512  # a thread on AMD's matrix devices; NVIDIA's limit is 255
MOST_SHARED_BYTES = 1 << 20
_LONGEST_DIMENSION = 1 << 40
_MOST_COPIED_BYTES = 1 << 56  # more is torn, and may not fit into 64 bits
_MOST_WARPS = 64  # of a multiprocessor

_TOKEN = re.compile(r"(\w+):(\S+)")


@dataclass(frozen=True)
class Launch:
    """How a kernel was launched; unknown is None.

    Attributes:
        registers: a thread.
        shared_bytes: static and dynamic shared memory of a block together.
        block, grid: threads of a block and blocks of the grid in x, y, z, as the tracer counts them.
        occupancy_percent: warps that can be, or as PyTorch estimates are, active, of those the device has room for.
    """

    registers: int | None = None
    shared_bytes: int | None = None
    block: Dimensions | None = None
    grid: Dimensions | None = None
    occupancy_percent: float | None = None


def launches_of(trace: HostTrace, rows: I64) -> tuple[I32, list[Launch]]:
    """How each of some kernels was launched: place in the list, int32 of shape (n,), and the different launches."""
    columns = _columns(trace, rows)
    if not columns:
        return np.zeros(len(rows), np.int32), [Launch()]
    number, first = number_pairs(next(iter(columns.values())), np.zeros(len(rows), np.int64))
    for column in list(columns.values())[1:]:
        number, first = number_pairs(number, column)
    found = [_launch(trace, {name: int(column[at]) for name, column in columns.items()}) for at in first.tolist()]
    return number, found


def _columns(trace: HostTrace, rows: I64) -> dict[str, I64]:
    """The stats that this trace has, as int64 of shape (n,): texts as string rows, doubles as their bits."""
    texts, integers, doubles = trace.stat_strings, trace.stat_ints, trace.stat_doubles
    readers: dict[str, tuple[tuple[str, ...], Callable[..., NDArray[np.generic]]]] = {
        "details": (stat_names.KERNEL_DETAILS, texts),
        "grid": (stat_names.GRID, texts),
        "block": (stat_names.BLOCK, texts),
        "registers": (stat_names.REGISTERS, integers),
        "shared": (stat_names.SHARED_MEMORY, integers),
        "estimate": (stat_names.ESTIMATED_OCCUPANCY, integers),
        "estimate_bits": (stat_names.ESTIMATED_OCCUPANCY, doubles),
        "warps_bits": (stat_names.WARPS_PER_SM, doubles),
        "theory_bits": (stat_names.THEORETICAL_OCCUPANCY, doubles),
    }
    return {
        key: column(names, rows=rows).view(np.int64)
        for key, (names, column) in readers.items()
        if trace.has_stat(names)
    }


def _launch(trace: HostTrace, stats: dict[str, int]) -> Launch:
    details = parse_details(trace.strings[stats["details"]]) if stats.get("details", -1) > 0 else Launch()
    theory = _occupancy(_double(stats, "theory_bits"))
    return Launch(
        registers=_first(details.registers, _registers(stats.get("registers"))),
        shared_bytes=_first(details.shared_bytes, _bytes(stats.get("shared"))),
        block=_first(details.block, _listed(trace, stats.get("block", -1))),
        grid=_first(details.grid, _listed(trace, stats.get("grid", -1))),
        occupancy_percent=_first(details.occupancy_percent, theory, _estimate(stats)),
    )


def _estimate(stats: dict[str, int]) -> float | None:
    """PyTorch's estimate, a rounded number.

    It is 0 for a grid that leaves the device nearly empty, and also where the estimate failed, as it does for kernels
    that ask for more shared memory than a block has by default; the warps that the grid brings tell the two apart.
    """
    value = _double(stats, "estimate_bits")
    if value is None and stats.get("estimate", -1) >= 0:
        value = float(stats["estimate"])
    if value != 0:
        return _occupancy(value)
    warps = _double(stats, "warps_bits")
    return value if warps is not None and 100 * warps / _MOST_WARPS < 0.5 else None


def _first(*values: T | None) -> T | None:
    return next((value for value in values if value is not None), None)


def _double(stats: dict[str, int], key: str) -> float | None:
    value = float(np.int64(stats[key]).view(np.float64)) if key in stats else float("nan")
    return value if value == value else None


def _listed(trace: HostTrace, text: int) -> Dimensions | None:
    """Dimensions written as `[2,1,1]`."""
    try:
        return _dimensions(json.loads(trace.strings[text])) if text > 0 else None
    except (ValueError, RecursionError):
        return None


def parse_details(text: str) -> Launch:
    """Reads the text that CUPTI's and rocprofiler's collectors write for a kernel.

    >>> parse_details("regs:32 static_shared:0 dynamic_shared:1024 grid:2,1,1 block:128,1,1 occ_pct:50")
    Launch(registers=32, shared_bytes=1024, block=(128, 1, 1), grid=(2, 1, 1), occupancy_percent=50.0)
    """
    tokens = dict(_TOKEN.findall(text))
    registers = _integer(tokens.get("regs"))
    shared = [_integer(tokens[key]) for key in ("static_shared", "dynamic_shared", "shm", "group_mem") if key in tokens]
    # Registers and shared memory come from one record: where the one is garbage, so is the other.
    torn = registers is not None and not 0 <= registers <= MOST_REGISTERS
    whole = not torn and shared and all(part is not None and part >= 0 for part in shared)
    return Launch(
        registers=_registers(registers),
        shared_bytes=_bytes(sum(part or 0 for part in shared)) if whole else None,
        block=_dimensions(tokens.get("block", "").split(",")),
        grid=_dimensions(tokens.get("grid", "").split(",")),
        occupancy_percent=_occupancy(_number(tokens.get("occ_pct"))),
    )


def copied_bytes(text: str) -> int | None:
    """Bytes that a copy moved, from the text that the collectors write for it.

    >>> copied_bytes("kind_src:pinned kind_dst:device size:4096 dest:0 async:1")
    4096
    """
    tokens = dict(_TOKEN.findall(text))
    size = _integer(tokens.get("size", tokens.get("num_bytes")))
    return size if size is not None and 0 <= size <= _MOST_COPIED_BYTES else None


def stated_bytes(trace: HostTrace, rows: I64, with_copies: bool = True) -> I64 | None:
    """Bytes that each event accesses or, `with_copies`, copies: int64 of shape (n,), -1 where the trace does not state
    it; None if it never does."""
    out = None
    for names in (stat_names.BYTES_COPIED, stat_names.BYTES_ACCESSED) if with_copies else (stat_names.BYTES_ACCESSED,):
        if trace.has_stat(names):
            stated = trace.stat_ints(names, rows=rows)
            out = stated if out is None else np.where(stated >= 0, stated, out)
    if with_copies and trace.has_stat(stat_names.COPY_DETAILS):
        text = trace.stat_strings(stat_names.COPY_DETAILS, rows=rows)
        at = np.flatnonzero(text > 0)
        out = np.full(len(rows), -1, np.int64) if out is None else out
        different, which = np.unique(text[at], return_inverse=True)
        size = [copied_bytes(trace.strings[row]) for row in different.tolist()]
        out[at] = np.array([-1 if value is None else value for value in size], np.int64)[which.reshape(-1)]
    return out


def _integer(text: str | None) -> int | None:
    value = _number(text)
    return int(value) if value is not None else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else float("nan")
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def _registers(value: int | None) -> int | None:
    return value if value is not None and 0 < value <= MOST_REGISTERS else None  # no kernel does without registers


def _bytes(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= MOST_SHARED_BYTES else None


def _occupancy(value: float | None) -> float | None:
    return value if value is not None and 0 < value <= 100 else None


def _dimensions(values: object) -> Dimensions | None:
    if not isinstance(values, list) or len(values) != 3:
        return None
    found = [_integer(str(value)) for value in values]
    x, y, z = (value if value is not None and 0 < value < _LONGEST_DIMENSION else None for value in found)
    return None if x is None or y is None or z is None else (x, y, z)
