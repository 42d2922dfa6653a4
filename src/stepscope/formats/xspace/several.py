"""Profiles of several processes in one file: XSpaces that were joined, which is a valid XSpace again.

Each process has a host plane of its own.  Its profile begins with the first plane whose name the one before has.
No numpy here until a trace is made: whether there are several is asked before reading starts.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

from stepscope.errors import Problem, UnreadableError
from stepscope.formats.naming import join_names, unique_names
from stepscope.formats.protobuf import DELIMITED, read_fields, read_varint
from stepscope.formats.store.local import open_at_once
from stepscope.formats.xspace import schema

if TYPE_CHECKING:
    from stepscope.model import HostTrace

_HEAD_BYTES = 512  # of a plane: its number and name stand before its lines
_OWN_WORDS = ("joined", "repeated-planes")  # codes of problems that a profile read alone does not have
_MOST_PLANES = 10_000
_MOST_ENVIRONMENT_BYTES = 1 << 20  # it holds a few numbers and options


def holds_several(path: str) -> bool:
    """Whether a file of this machine holds several host planes; only the heads of its planes are read."""
    with suppress(OSError), _opened(path) as (file, size):
        return [name for *_, name in _planes_of(file, size)].count(schema.HOST_PLANE) > 1
    return False


def recorded_span(path: str) -> tuple[int, int] | None:
    """When the recording in a file of this machine began and ended, in ns since the epoch; None if it does not say.
    Only the heads of its planes are read, and the plane that says it."""
    from stepscope.formats.xspace.reader import read

    with suppress(OSError), _opened(path) as (file, size):
        for begin, end, name in _planes_of(file, size):
            if name == schema.ENVIRONMENT_PLANE and end - begin < _MOST_ENVIRONMENT_BYTES:
                file.seek(begin)
                with suppress(UnreadableError):
                    trace = read(file.read(end - begin), path, "")
                    if trace.start_unix_ns is not None and trace.stop_unix_ns is not None:
                        return trace.start_unix_ns, trace.stop_unix_ns
    return None


@contextmanager
def _opened(path: str) -> Iterator[tuple[BinaryIO, int]]:
    """A file and its size; an empty one in place of what is no file.  Raises OSError."""
    # Opening a pipe without a writer would wait for one.
    with open(path, "rb", opener=open_at_once) as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode):
            yield file, status.st_size
        else:
            yield BytesIO(), 0


def _planes_of(file: BinaryIO, size: int) -> Iterator[tuple[int, int, str]]:
    """Where each plane begins and ends, and its name."""
    at = 0
    for _ in range(_MOST_PLANES):
        if at >= size:
            return
        file.seek(at)
        head = file.read(_HEAD_BYTES)
        length, start = read_varint(head, 1)
        if not head or head[0] & 7 != DELIMITED or length is None:
            return
        if head[0] >> 3 == schema.SPACE_PLANES:
            yield at, at + start + length, _name_of(head[start : start + length])
        at += start + length


def _name_of(plane: bytes) -> str:
    """A plane's name, if it stands at its start."""
    try:
        for number, wire, value in read_fields(memoryview(plane)):
            if number == schema.PLANE_NAME and wire == DELIMITED:
                return bytes(value).decode("utf-8", "replace")
    except ValueError:
        pass  # the plane goes on behind its head
    return ""


def read_hosts(data: bytes, source: str, host: str) -> tuple[HostTrace, ...]:
    """Reads a file, a trace for each of its processes.

    Raises:
        UnreadableError: none of them can be read.
    """
    from stepscope.formats.xspace.reader import read

    planes = list(_planes_of(BytesIO(data), len(data)))
    begins, seen, before = [0], set[str](), 0
    names_first = bool(planes) and planes[0][0] > 0  # of hosts; other writers put them behind the planes
    for at, end, name in planes:
        if name and name in seen and schema.HOST_PLANE in seen:
            begins.append(before if names_first else at)
            seen = set()
        seen.add(name)
        before = end
    if len(begins) < 2:
        return (read(data, source, host),)
    traces, lost = [], []
    for begin, end in zip(begins, [*begins[1:], len(data)], strict=True):
        try:
            traces.append(read(data[begin:end], source, ""))
        except UnreadableError as error:
            lost.append(error)
    if not traces:
        raise lost[0]
    names = unique_names([trace.host for trace in traces])
    told = Problem(
        "several-processes",
        f"the file holds the profiles of {len(begins)} processes, each read as a host: {join_names(names, limit=8)}",
        path=source,
        lost="; ".join(str(error.problem.reason) for error in lost) or None,
    )
    return tuple(
        replace(
            trace,
            host=name,
            problems=(told, *(problem for problem in trace.problems if problem.code not in _OWN_WORDS)),
        )
        for trace, name in zip(traces, names, strict=True)
    )
