"""The bandwidth of collectives by operation, algorithm and size.

Bandwidth is that of the bus as NCCL's tests define it: data by transfer time, times 2 (n - 1) / n for an all-reduce
among n ranks, (n - 1) / n for all-gather, reduce-scatter and all-to-all, 1 for the rest.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator

from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role, round_us

FIELDS: tuple[Field, ...] = (
    Field("operation", "text", "its operation: all_reduce, all_gather, ...", "str", role=Role.LABEL),
    Field("algorithm", "text", "algorithm and protocol, as the kernel's name states them", "str", role=Role.LABEL),
    Field("least_bytes", "bytes", "the sizes of this row start here; those of the next at twice as much", "int"),
    Field("count", "count", "collectives, each counted once for all its ranks", "int"),
    Field("bytes", "bytes", "median size"),
    Field("transfer_us", "us", "median transfer time; with a single rank, of the whole time"),
    Field("bus_gb_per_s", "GB/s", "median bus bandwidth"),
    Field("least_gb_per_s", "GB/s", "the lowest of any of them"),
    Field("most_gb_per_s", "GB/s", "the highest of any of them"),
)


@dataclass(frozen=True)
class Transfer:
    """One collective: what it moved, and how long that took."""

    operation: str
    algorithm: str
    bytes: int
    ranks: int
    time_ps: int


def bus_bandwidth(operation: str, size: int, ranks: int, time_ps: float) -> float | None:
    """The bus bandwidth in GB/s; None if size, ranks or time are unknown."""
    if not size or ranks < 2 or time_ps <= 0:
        return None
    share = (ranks - 1) / ranks
    factor = {"all_reduce": 2 * share, "all_gather": share, "reduce_scatter": share, "all_to_all": share}
    return round(size * factor.get(operation, 1.0) / time_ps * 1e3, 6)


def bandwidth_rows(transfers: Iterable[Transfer]) -> Iterator[dict[str, Cell]]:
    """A row for each operation, algorithm and power of two of the size, in that order."""
    alike: dict[tuple[str, str, int], list[tuple[Transfer, float]]] = {}
    for transfer in transfers:
        rate = bus_bandwidth(transfer.operation, transfer.bytes, transfer.ranks, transfer.time_ps)
        if rate is not None:
            key = transfer.operation, transfer.algorithm, 1 << (transfer.bytes.bit_length() - 1)
            alike.setdefault(key, []).append((transfer, rate))
    for (operation, algorithm, least), found in sorted(alike.items()):
        rates = [rate for _, rate in found]
        yield {
            "operation": operation,
            "algorithm": algorithm or None,
            "least_bytes": least,
            "count": len(found),
            "bytes": statistics.median(transfer.bytes for transfer, _ in found),
            "transfer_us": round_us(statistics.median(transfer.time_ps for transfer, _ in found)),
            "bus_gb_per_s": statistics.median(rates),
            "least_gb_per_s": min(rates),
            "most_gb_per_s": max(rates),
        }
