"""How kernels were launched: registers, shared memory, grid, block, occupancy, from whichever stats a trace holds.

A value that no device can have is garbage from the tracer and counts as unknown.
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
_MOST_COPIED_BYTES = 1 << 56  # a larger value is damaged, and may not fit into 64 bits
_MOST_WARPS = 64  # per multiprocessor

_TOKEN = re.compile(r"(\w+):(\S+)")


@dataclass(frozen=True)
class Launch:
    """How a kernel was launched; unknown is None.

    Attributes:
        registers: per thread.
        shared_bytes: static plus dynamic shared memory per block.
        block, grid: threads per block and blocks per grid in x, y, z, as the tracer reports them.
        occupancy_percent: share of the device's warps that can be active; an estimate in PyTorch traces.
    """

    registers: int | None = None
    shared_bytes: int | None = None
    block: Dimensions | None = None
    grid: Dimensions | None = None
    occupancy_percent: float | None = None


def launches_of(trace: HostTrace, rows: I64) -> tuple[I32, list[Launch]]:
    """How each kernel was launched: an index per kernel, int32 of shape (n,), and the distinct launches."""
    columns = _stat_columns(trace, rows)
    if not columns:
        return np.zeros(len(rows), np.int32), [Launch()]
    number, first = number_pairs(next(iter(columns.values())), np.zeros(len(rows), np.int64))
    for column in list(columns.values())[1:]:
        number, first = number_pairs(number, column)
    found = [_read_launch(trace, {name: int(column[at]) for name, column in columns.items()}) for at in first.tolist()]
    return number, found


def _stat_columns(trace: HostTrace, rows: I64) -> dict[str, I64]:
    """The launch stats of this trace as int64 of shape (n,): texts as string rows, doubles as their bits."""
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


def _read_launch(trace: HostTrace, stats: dict[str, int]) -> Launch:
    details = parse_details(trace.strings[stats["details"]]) if stats.get("details", -1) > 0 else Launch()
    theory = _valid_occupancy(_read_double(stats, "theory_bits"))
    return Launch(
        registers=_first_known(details.registers, _valid_registers(stats.get("registers"))),
        shared_bytes=_first_known(details.shared_bytes, _valid_bytes(stats.get("shared"))),
        block=_first_known(details.block, _read_dimensions(trace, stats.get("block", -1))),
        grid=_first_known(details.grid, _read_dimensions(trace, stats.get("grid", -1))),
        occupancy_percent=_first_known(details.occupancy_percent, theory, _estimated_occupancy(stats)),
    )


def _estimated_occupancy(stats: dict[str, int]) -> float | None:
    """PyTorch's estimate, a rounded percentage.

    It is 0 for a grid that leaves the device nearly empty.  It is also 0 where the estimate failed, as for kernels that
    need more shared memory than a block has by default.  The number of warps separates the two cases.
    """
    value = _read_double(stats, "estimate_bits")
    if value is None and stats.get("estimate", -1) >= 0:
        value = float(stats["estimate"])
    if value != 0:
        return _valid_occupancy(value)
    warps = _read_double(stats, "warps_bits")
    return value if warps is not None and 100 * warps / _MOST_WARPS < 0.5 else None


def _first_known(*values: T | None) -> T | None:
    return next((value for value in values if value is not None), None)


def _read_double(stats: dict[str, int], key: str) -> float | None:
    value = float(np.int64(stats[key]).view(np.float64)) if key in stats else float("nan")
    return value if value == value else None


def _read_dimensions(trace: HostTrace, text: int) -> Dimensions | None:
    """Dimensions written as `[2,1,1]`."""
    try:
        return _valid_dimensions(json.loads(trace.strings[text])) if text > 0 else None
    except (ValueError, RecursionError):
        return None


def parse_details(text: str) -> Launch:
    """Reads the text that the CUPTI and rocprofiler collectors write for a kernel.

    >>> parse_details("regs:32 static_shared:0 dynamic_shared:1024 grid:2,1,1 block:128,1,1 occ_pct:50")
    Launch(registers=32, shared_bytes=1024, block=(128, 1, 1), grid=(2, 1, 1), occupancy_percent=50.0)
    """
    tokens = dict(_TOKEN.findall(text))
    registers = _parse_integer(tokens.get("regs"))
    shared = [
        _parse_integer(tokens[key]) for key in ("static_shared", "dynamic_shared", "shm", "group_mem") if key in tokens
    ]
    # Registers and shared memory come from one record: if one is garbage, so is the other.
    torn = registers is not None and not 0 <= registers <= MOST_REGISTERS
    whole = not torn and shared and all(part is not None and part >= 0 for part in shared)
    return Launch(
        registers=_valid_registers(registers),
        shared_bytes=_valid_bytes(sum(part or 0 for part in shared)) if whole else None,
        block=_valid_dimensions(tokens.get("block", "").split(",")),
        grid=_valid_dimensions(tokens.get("grid", "").split(",")),
        occupancy_percent=_valid_occupancy(_parse_number(tokens.get("occ_pct"))),
    )


def copied_bytes(text: str) -> int | None:
    """Bytes that a copy moved, from the text that the collectors write.

    >>> copied_bytes("kind_src:pinned kind_dst:device size:4096 dest:0 async:1")
    4096
    """
    tokens = dict(_TOKEN.findall(text))
    size = _parse_integer(tokens.get("size", tokens.get("num_bytes")))
    return size if size is not None and 0 <= size <= _MOST_COPIED_BYTES else None


def stated_bytes(trace: HostTrace, rows: I64, with_copies: bool = True) -> I64 | None:
    """Bytes that each event accesses, or copies if `with_copies`: int64 of shape (n,), -1 where not stated.

    None if the trace states no sizes at all.
    """
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


def _parse_integer(text: str | None) -> int | None:
    value = _parse_number(text)
    return int(value) if value is not None else None


def _parse_number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else float("nan")
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def _valid_registers(value: int | None) -> int | None:
    return value if value is not None and 0 < value <= MOST_REGISTERS else None  # every kernel uses registers


def _valid_bytes(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= MOST_SHARED_BYTES else None


def _valid_occupancy(value: float | None) -> float | None:
    return value if value is not None and 0 < value <= 100 else None


def _valid_dimensions(values: object) -> Dimensions | None:
    if not isinstance(values, list) or len(values) != 3:
        return None
    found = [_parse_integer(str(value)) for value in values]
    x, y, z = (value if value is not None and 0 < value < _LONGEST_DIMENSION else None for value in found)
    return None if x is None or y is None or z is None else (x, y, z)
