"""Search over the names of all events of a trace."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.timeline.index import is_drawn
from stepscope.errors import UsageError
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, Mask, look_up
from stepscope.records import dataclass

LONGEST_QUERY = 500


@dataclass(frozen=True)
class Found:
    """The events whose name matches.

    Attributes:
        types: bool of shape (event types,), which types match.
        rows: int64 of shape (n,), the events, in the order of the table.
    """

    types: Mask
    rows: I64


@dataclass(frozen=True)
class Place:
    """One of the events found: its row, and its number in order of time, counted from 1."""

    event: int
    number: int


def find_events(trace: HostTrace, text: str, regex: bool = False) -> Found:
    """The events whose full or short name contains a text, or matches a regular expression; case is ignored.

    Regular expressions are RE2's: none takes longer than proportional to the text that it searches.

    Raises:
        UsageError: the text is empty or too long, or not a valid regular expression.
    """
    if not text or len(text) > LONGEST_QUERY:
        raise UsageError(f"a search needs 1 to {LONGEST_QUERY} characters, not {len(text)}")
    last: dict[tuple[str, bool], Found] = trace.derived("timeline search", lambda _: {})
    found = last.get((text, regex))
    if found is None:
        types = trace.event_types
        matches = _match_names(trace, types.name, text, regex) | _match_names(trace, types.display_name, text, regex)
        found = Found(matches, np.flatnonzero(look_up(matches, trace.events.type) & is_drawn(trace)))
        last.clear()  # stepping from match to match repeats the same search
        last[text, regex] = found
    return found


def _match_names(trace: HostTrace, strings: I32, text: str, regex: bool) -> Mask:
    import pyarrow as pa  # importing it takes long and 30 MB, and many users never search
    import pyarrow.compute as pc

    names, place = np.unique(strings, return_inverse=True)
    table = trace.strings
    # Binary, not text: names come from files and need not be valid UTF-8.
    every = pa.Array.from_buffers(
        pa.large_binary(), len(table), [None, pa.py_buffer(table.offsets), pa.py_buffer(table.blob)]
    )
    wanted = every.take(pa.array(names))
    try:
        match = pc.match_substring_regex if regex else pc.match_substring
        found = match(wanted, pattern=text, ignore_case=True)
    except pa.ArrowInvalid as error:
        raise UsageError(f"{text!r} is not a valid regular expression: {error}") from None
    hit: Mask = found.to_numpy(zero_copy_only=False)[place]
    return hit


def find_nearest(trace: HostTrace, found: Found, from_ps: int, from_event: int, forward: bool) -> Place | None:
    """The match after or before a moment; the first or last match of the trace if there is none; None without matches.

    Events are in order of their start; those with equal starts are in order of their rows.

    Args:
        trace: the trace.
        found: what `find` found.
        from_ps: the moment.
        from_event: the row to continue from if several matches start at that moment; -1 to take the first of them.
        forward: False to go backwards.
    """
    if not len(found.rows):
        return None
    start = trace.events.start_ps[found.rows]
    earlier = (start < from_ps) | ((start == from_ps) & (found.rows < from_event))
    same = found.rows == from_event
    candidates = np.flatnonzero(~earlier & ~same if forward else earlier)
    if not len(candidates):
        candidates = np.arange(len(start))
    edge = start[candidates].min() if forward else start[candidates].max()
    ties = candidates[start[candidates] == edge]
    chosen = int(ties[0] if forward else ties[-1])
    event = int(found.rows[chosen])
    before = int((start < edge).sum() + ((start == edge) & (found.rows < event)).sum())
    return Place(event, before + 1)


def match_histogram(trace: HostTrace, found: Found, begin_ps: int, end_ps: int, bins: int) -> I64:
    """The number of matches that start in each of `bins` equal parts of a time span: int64 of shape (bins,)."""
    start = trace.events.start_ps[found.rows] - begin_ps
    inside = start[(start >= 0) & (start < end_ps - begin_ps)]
    return np.bincount((inside / max(1, end_ps - begin_ps) * bins).astype(np.int64), minlength=bins)[:bins]
