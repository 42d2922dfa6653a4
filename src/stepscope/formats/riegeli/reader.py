"""Reads profiles in Riegeli files: each record is a part of an XSpace, and all of them together are one.

Chunk after chunk is unpacked into one buffer, which the reader of XSpace files decodes as it does theirs, and gives
back while it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np

from stepscope import kernels
from stepscope.errors import Problem, UnreadableError, counted
from stepscope.formats.kineto.text import LIMIT_VARIABLE, size_limit
from stepscope.formats.riegeli.blocks import BlockWalk, RiegeliChunk, chunk_data, find_chunks, is_sound
from stepscope.formats.riegeli.chunks import decode_chunk
from stepscope.formats.xspace import reader as xspace
from stepscope.model import HostTrace, Stats, take_events
from stepscope.model.arrays import I32, I64, U8, number_pairs
from stepscope.records import dataclass

_AGAIN = "copy the file again, or record again if the capture was interrupted"
_OF_PARTS = frozenset({"repeated-planes"})  # what is wrong in one XSpace and usual in parts of one


@dataclass
class RiegeliLosses:
    """What could not be read.

    Attributes:
        cut_at: where the last chunk starts, if the file ends inside; None if it does not.
        places: where damaged headers and chunks are, in order, with the reason of each.
    """

    cut_at: int | None
    places: list[tuple[int, str]]


def read(data: bytes | Iterator[bytes | memoryview], source: str, host: str) -> HostTrace:
    """Reads one profile.

    Args:
        data: the file's bytes; any size.  If it is an iterator over one buffer, only the reader holds that buffer.
        source: the name to use in messages.
        host: the host's name; if empty, the name in the file is used.

    Returns:
        The trace.  If the file is cut or damaged, it holds all that can be read, with `partial` and `problems` set.

    Raises:
        UnreadableError: no chunk holds a part of an XSpace, or they unpack to more than compressed traces may.
    """
    content = next(data) if isinstance(data, Iterator) else data
    space, losses = _unpack(np.frombuffer(content, np.uint8), source)
    del data, content
    found = list(_problems(losses, source))
    if not len(space):
        raise _unreadable_error(losses, source)
    try:
        trace = xspace.read(iter([space]), source, host, may_be_joined=False)
    except UnreadableError:
        raise _unreadable_error(losses, source) from None
    trace = _join_planes(trace)
    theirs = [problem for problem in trace.problems if problem.code not in _OF_PARTS]
    if losses.cut_at is not None:
        theirs = [problem for problem in theirs if problem.code != "truncated"]
    return replace(trace, problems=(*found, *theirs), partial=trace.partial or bool(found))


def _unpack(data: U8, source: str) -> tuple[memoryview, RiegeliLosses]:
    """The records of a file, one after the other, and what is lost of them."""
    walk = BlockWalk([])
    chunks = [chunk for chunk in find_chunks(data, walk) if chunk.has_records]
    size = sum(chunk.decoded_bytes for chunk in chunks)
    if size > size_limit(len(data)):
        raise UnreadableError(
            f"{len(data):,} compressed bytes unpack to {size:,} bytes",
            code="too-large",
            path=source,
            hint=f"if you trust the file, set {LIMIT_VARIABLE} to a larger number of bytes",
        )
    memory = memoryview(kernels.memory.Memory(size))
    out = np.frombuffer(memory, np.uint8)
    places = [(at, "a header with a wrong checksum") for at in walk.damaged_at]
    done = 0
    for chunk in chunks:
        written, damage = _decode_chunk(data, chunk, out[done : done + chunk.decoded_bytes], chunk.begin == walk.cut_at)
        done += written
        if damage and chunk.begin != walk.cut_at:
            places.append((chunk.begin, damage))
    return memory[:done], RiegeliLosses(walk.cut_at, sorted(places))


def _decode_chunk(data: U8, chunk: RiegeliChunk, out: U8, is_cut: bool) -> tuple[int, str]:
    content = chunk_data(data, chunk)
    if not is_cut and not is_sound(chunk, content):
        return 0, "a chunk with a wrong checksum"
    written, damage = decode_chunk(chunk, content, out)
    return (written, damage) if is_cut or not damage else (0, damage)


def _problems(losses: RiegeliLosses, source: str) -> Iterator[Problem]:
    if losses.cut_at is not None:
        yield Problem(
            "truncated",
            "the file ends inside the chunk that starts here",
            path=source,
            offset=losses.cut_at,
            kept="the chunks before, and the start of this one",
            lost="what followed",
            hint="if the file is still being written, open it again later; else copy it again",
        )
    if losses.places:
        at, reason = losses.places[0]
        yield Problem(
            "damaged",
            f"{counted(len(losses.places), 'chunk')} could not be read; the first is {reason}",
            path=source,
            offset=at,
            kept="all other chunks",
            lost="what these chunks hold",
            hint=_AGAIN,
        )


def _unreadable_error(losses: RiegeliLosses, source: str) -> UnreadableError:
    reason = f": {losses.places[0][1]}" if losses.places else ""
    if losses.cut_at is not None:
        reason = ": it ends inside its first chunk"
    return UnreadableError(
        f"the file holds no part of an XSpace that can be read{reason}",
        path=source,
        offset=0,
        lost="everything",
        hint="check that this is a *.xplane.riegeli file and that it was copied completely",
    )


# -- planes that were written in several parts, as profiles beyond the limit of a message are --------------------------


def _join_planes(trace: HostTrace) -> HostTrace:
    """The trace with one plane of each name, and in a plane one line of each number and name."""
    plane_of, first_planes = _number_in_order(trace.planes.name.astype(np.int64), np.zeros(len(trace.planes), np.int64))
    if len(first_planes) == len(trace.planes):
        return trace
    of_lines = plane_of[trace.lines.plane]
    names, _ = number_pairs(trace.lines.line_id, trace.lines.name.astype(np.int64))
    line_of, first_lines = _number_in_order(of_lines.astype(np.int64), names.astype(np.int64))
    moved = replace(trace, events=replace(trace.events, line=line_of[trace.events.line]), _derived={})
    rows = np.arange(len(trace.events))
    part, _ = take_events(moved, rows, trace.events.start_ps, trace.events.duration_ps)
    lines = {field.name: getattr(part.lines, field.name)[first_lines] for field in fields(trace.lines)}
    lines["plane"] = of_lines[first_lines]
    lines["event_begin"] = part.lines.event_begin[: len(first_lines)].copy()
    lines["event_end"] = part.lines.event_end[: len(first_lines)].copy()
    planes = {field.name: getattr(trace.planes, field.name)[first_planes] for field in fields(trace.planes)}
    types = replace(
        trace.event_types,
        plane=plane_of[trace.event_types.plane],
        metadata_id=np.arange(1, len(trace.event_types) + 1, dtype=np.int64),  # those of the parts clash
    )
    return replace(
        part,
        planes=type(trace.planes)(**planes),
        lines=type(trace.lines)(**lines),
        event_types=types,
        plane_stats=_join_stats(trace.plane_stats, plane_of, len(first_planes)),
        _derived={},
    )


def _number_in_order(outer: I64, inner: I64) -> tuple[I32, I64]:
    """Numbers distinct pairs by their first rows, those of one `outer` together: the number of each row, first rows."""
    pairs, first = number_pairs(outer, inner)
    groups, first_of_group = number_pairs(outer, np.zeros(len(outer), np.int64))
    order = np.lexsort((first, first_of_group[groups[first]]))
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place[pairs], first[order]


def _join_stats(stats: Stats, owner_of: I32, owners: int) -> Stats:
    """The stats with the owners that are one now."""
    owner = np.repeat(owner_of, np.diff(stats.offsets))
    order = np.argsort(owner, kind="stable")
    offsets = np.searchsorted(owner[order], np.arange(owners + 1)).astype(np.int64)
    return Stats(name=stats.name[order], tag=stats.tag[order], value=stats.value[order], offsets=offsets)
