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

    def problem(code: str, reason: str, lost: str, hint: str, also: str = "", at: int | None = None) -> Problem:
        kept, offset = f"{counted(events, 'event')}{also}", None if raw.compressed else at
        return Problem(code, reason, path=source, offset=offset, kept=kept, lost=lost, hint=hint)

    if losses.cut_at is not None:
        where = f", at byte {losses.cut_at:,} of what is unpacked" if raw.compressed else ""
        hint = "if the file is still being written, open it again later; else copy it again"
        yield problem("truncated", losses.cut_because + where, "what followed", hint, at=losses.cut_at)
    if losses.damaged:
        reason, also = f"{counted(losses.damaged, 'packet')} could not be read", ", before and after"
        yield problem("damaged", reason, "what these packets hold", _AGAIN, also, losses.damaged_at)
    if losses.locked:
        reason = f"{losses.locked_because}; {counted(losses.locked, 'block')} of packets like that"
        yield problem("damaged", reason, "the rest of these blocks", _AGAIN)
    if losses.lost or losses.skipped:
        reason = f"the recorder lost packets {counted(losses.lost, 'time')}"
        lost = f"these packets, and {counted(losses.skipped, 'packet')} that cannot be understood without them"
        yield problem("lost-packets", reason, lost, "record with a larger buffer, or for a shorter time")
    if losses.unnamed:
        reason = f"{counted(losses.unnamed, 'reference')} to names that the file does not define"
        yield problem("undefined-names", reason, "these names", _AGAIN, ", some without a name")
    if losses.unknown_clocks:
        reason = f"{counted(losses.unknown_clocks, 'time')} on a clock that the file does not relate to the others"
        hint, also = "record again with clock snapshots", ", as if on the trace's own clock"
        yield problem("unknown-clock", reason, "when these happened", hint, also)
