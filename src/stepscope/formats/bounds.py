"""Bounds what no profile has and a damaged or hostile file may have: endless names, a million lines.

It is done once, when a file is read, and reported.  Whatever looks at a name or goes through the lines afterwards then
has a bounded task.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from stepscope.errors import Problem, counted
from stepscope.model.arrays import distinct

if TYPE_CHECKING:
    from stepscope.model import HostTrace, Strings
    from stepscope.model.arrays import I32

LONGEST_NAME = 16 << 10
"""Bytes of a name.  The longest in real profiles, the text of an HLO instruction, has some thousands."""

MOST_LINES = 20_000
"""Threads and streams of a host.  A large job has some hundreds."""


def apply_bounds(trace: HostTrace) -> HostTrace:
    """The trace with names and lines within the bounds, and a problem for each bound that it exceeded."""
    return cut_long_names(drop_excess_lines(trace))


def drop_excess_lines(trace: HostTrace) -> HostTrace:
    """The trace with at most MOST_LINES lines, those with the most events, and a problem that counts the others."""
    count = len(trace.lines)
    if count <= MOST_LINES:
        return trace
    from stepscope.model.taking import take_events

    sizes = trace.lines.event_end - trace.lines.event_begin
    kept = np.sort(np.argsort(-sizes, kind="stable")[:MOST_LINES])
    place = np.full(count, -1, np.int32)
    place[kept] = np.arange(MOST_LINES, dtype=np.int32)
    rows = np.flatnonzero(place[trace.events.line] >= 0)
    part, _ = take_events(trace, rows, trace.events.start_ps[rows], trace.events.duration_ps[rows])
    columns = {field.name: getattr(part.lines, field.name)[kept] for field in fields(part.lines)}
    problem = Problem(
        "too-many-lines",
        f"{counted(count, 'line')} in one host, where a job has some hundreds of threads and streams",
        path=trace.source,
        kept=f"the {MOST_LINES:,} with the most events",
        lost=counted(len(trace.events) - len(rows), "event"),
        hint="the file is probably damaged; record again",
    )
    return replace(
        part,
        lines=type(part.lines)(**columns),
        events=replace(part.events, line=place[part.events.line]),
        problems=(*trace.problems, problem),
        partial=True,
    )


def cut_long_names(trace: HostTrace) -> HostTrace:
    """The trace with names of at most LONGEST_NAME bytes, and a problem that counts those that were cut.

    Names are those of event types, lines and planes.  Stats keep their texts: they hold whole programs.
    """
    columns = {
        "event_types": ("name", "display_name"),
        "lines": ("name", "display_name"),
        "planes": ("name",),
    }
    names = [getattr(getattr(trace, table), column) for table, names_of in columns.items() for column in names_of]
    long = _long_rows(trace.strings, names)
    if not len(long):
        return trace
    strings, new_row = _cut_texts(trace.strings, long)
    tables = {
        table: replace(
            getattr(trace, table), **{column: new_row[getattr(getattr(trace, table), column)] for column in names_of}
        )
        for table, names_of in columns.items()
    }
    return replace(trace, strings=strings, problems=(*trace.problems, _cut_problem(trace, long)), **tables)


def _long_rows(strings: Strings, names: list[I32]) -> I32:
    lengths = np.diff(strings.offsets)
    if lengths.max(initial=0) <= LONGEST_NAME:
        return np.empty(0, np.int32)
    rows: I32 = distinct(np.concatenate(names))
    return rows[lengths[rows] > LONGEST_NAME]


def _cut_texts(strings: Strings, long: I32) -> tuple[Strings, I32]:
    """The table with a cut text added for each long one, and the row of each text's replacement."""
    from stepscope.model import Strings

    added = [_cut_text(strings.raw(row)) for row in long.tolist()]
    blob = np.concatenate([strings.blob, np.frombuffer(b"".join(added), np.uint8)])
    ends = strings.offsets[-1] + np.cumsum([len(text) for text in added])
    new_row = np.arange(len(strings), dtype=np.int32)
    new_row[long] = len(strings) + np.arange(len(long), dtype=np.int32)
    return Strings(blob, np.append(strings.offsets, ends)), new_row


def _cut_text(text: bytes) -> bytes:
    """The start of a text, and a hash of all of it: names that differ at their ends stay different."""
    import hashlib

    mark = f"\N{HORIZONTAL ELLIPSIS} [cut, {len(text):,} bytes, {hashlib.blake2b(text, digest_size=4).hexdigest()}]"
    tail = mark.encode()
    start = text[: LONGEST_NAME - len(tail)].decode("utf-8", "ignore")
    return start.encode() + tail


def _cut_problem(trace: HostTrace, long: I32) -> Problem:
    longest = int(np.diff(trace.strings.offsets)[long].max())
    return Problem(
        "long-names",
        f"{counted(len(long), 'name')} longer than {LONGEST_NAME:,} bytes, up to {longest:,}",
        path=trace.source,
        kept="their start",
        lost="the rest of each",
        hint="give shorter names to annotations if the ends of these matter",
    )
