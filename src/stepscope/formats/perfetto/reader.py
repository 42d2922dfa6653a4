"""Reads Perfetto's traces: bytes in, columns out.

packets (unpacked, decoded to the rows of trace JSON) -> tracks -> what trace JSON goes through
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.errors import Problem, counted
from stepscope.formats.kineto.document import Raw
from stepscope.formats.kineto.lines import Labels
from stepscope.formats.kineto.reader import FindDamage, build_trace, build_traces
from stepscope.formats.perfetto.packets import Losses, decode
from stepscope.formats.perfetto.tracks import place_rows
from stepscope.model import HostTrace

_AGAIN = "copy the file again, or record again if the capture was interrupted"


def read(data: bytes | Iterator[bytes | memoryview], source: str, host: str) -> HostTrace:
    """Reads one Perfetto trace.

    Args:
        data: the file's bytes, plain or compressed with gzip; any size.  If it is an iterator over one buffer, only the
            reader holds that buffer, and drops it before it builds the columns.
        source: the name to use in messages.
        host: the host's name.

    Returns:
        The trace.  If the file is cut or damaged, it holds all that can be read, with `partial` and `problems` set.

    Raises:
        UnreadableError: the file holds no packets, or unpacks to more than the limit for compressed traces.
    """
    return build_trace(*_rows(data, source, host))


def read_hosts(data: bytes | Iterator[bytes | memoryview], source: str, host: str) -> tuple[HostTrace, ...]:
    """Reads one Perfetto trace of one or several processes: a trace for each.

    Args, Raises: as for `read`; a process of several has a name of its own.
    """
    return build_traces(*_rows(data, source, host))


def _rows(
    data: bytes | Iterator[bytes | memoryview], source: str, host: str
) -> tuple[Raw, Labels, str, str, FindDamage]:
    """The rows of a file as trace JSON has them, and what else makes a trace of them."""
    content = next(data) if isinstance(data, Iterator) else data
    decoded = decode(content, source)
    del data, content
    labels = place_rows(decoded.raw, decoded.tracks)
    losses = decoded.losses

    def find_damage(raw: Raw, events: int, source: str) -> list[Problem]:
        return list(_problems(losses, raw, events, source))

    return decoded.raw, labels, source, host, find_damage


def _problems(losses: Losses, raw: Raw, events: int, source: str) -> Iterator[Problem]:
    """What the file lacks."""
    kept = counted(events, "event")
    if losses.cut_at is not None:
        where = f", at byte {losses.cut_at:,} of what is unpacked" if raw.compressed else ""
        yield Problem(
            "truncated",
            losses.cut_because + where,
            path=source,
            offset=None if raw.compressed else losses.cut_at,
            kept=kept,
            lost="what followed",
            hint="if the file is still being written, open it again later; else copy it again",
        )
    if losses.damaged:
        yield Problem(
            "damaged",
            f"{counted(losses.damaged, 'packet')} could not be read",
            path=source,
            offset=None if raw.compressed else losses.damaged_at,
            kept=f"{kept}, before and after",
            lost="what these packets hold",
            hint=_AGAIN,
        )
    if losses.locked:
        reason = f"{losses.locked_because}; {counted(losses.locked, 'block')} of packets like that"
        yield Problem("damaged", reason, path=source, kept=kept, lost="the rest of these blocks", hint=_AGAIN)
    if losses.lost or losses.skipped:
        yield Problem(
            "lost-packets",
            f"the recorder lost packets {counted(losses.lost, 'time')}",
            path=source,
            kept=kept,
            lost=f"these packets, and {counted(losses.skipped, 'packet')} that cannot be understood without them",
            hint="record with a larger buffer, or for a shorter time",
        )
    if losses.unnamed:
        yield Problem(
            "undefined-names",
            f"{counted(losses.unnamed, 'reference')} to names that the file does not define",
            path=source,
            kept=f"{kept}, some without a name",
            lost="these names",
            hint=_AGAIN,
        )
    if losses.unknown_clocks:
        yield Problem(
            "unknown-clock",
            f"{counted(losses.unknown_clocks, 'time')} on a clock that the file does not relate to the others",
            path=source,
            kept=f"{kept}, as if on the trace's own clock",
            lost="when these happened",
            hint="record again with clock snapshots",
        )
