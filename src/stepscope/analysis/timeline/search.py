"""Search over the names of all events of a trace, and of the scopes of its programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepscope.analysis.timeline.index import is_drawn
from stepscope.analysis.timeline.projection import projection_of, times_of
from stepscope.errors import UsageError
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I32, I64, Mask, look_up
from stepscope.records import dataclass

LONGEST_QUERY = 500


@dataclass(frozen=True)
class Matches:
    """The events and scopes whose name matches.

    Attributes:
        types: bool of shape (event types and names of scopes,), which of them match.
        rows: int64 of shape (n,), the events, in the order of the table; then the numbers of the scopes.
    """

    types: Mask
    rows: I64


@dataclass(frozen=True)
class MatchPlace:
    """One of those found: its row or the scope's number, and which one it is in order of time, counted from 1."""

    event: int
    number: int


def find_events(trace: HostTrace, text: str, regex: bool = False) -> Matches:
    """The events whose full or short name contains a text, or matches a regular expression, and such scopes.

    Case is ignored.  Regular expressions are RE2's: none takes longer than proportional to the text that it searches.

    Raises:
        UsageError: the text is empty or too long, or not a valid regular expression.
    """
    if not text or len(text) > LONGEST_QUERY:
        raise UsageError(f"a search needs 1 to {LONGEST_QUERY} characters, not {len(text)}")
    last: dict[tuple[str, bool], Matches] = trace.derived("timeline search", lambda _: {})
    found = last.get((text, regex))
    if found is None:
        types = trace.event_types
        matches = _match_names(trace, types.name, text, regex) | _match_names(trace, types.display_name, text, regex)
        events = np.flatnonzero(look_up(matches, trace.events.type) & is_drawn(trace))
        scopes = _match_scopes(trace, text, regex)
        found = Matches(np.append(matches, scopes), np.append(events, _scopes_named(trace, scopes)))
        last.clear()  # stepping from match to match repeats the same search
        last[text, regex] = found
    return found


def _match_scopes(trace: HostTrace, text: str, regex: bool) -> Mask:
    """Which names of scopes match: bool of shape (names of scopes,)."""
    import pyarrow as pa

    names = [name.encode("utf-8", "replace") for name in projection_of(trace).scopes]
    return _match(pa.array(names, pa.large_binary()), text, regex)


def _scopes_named(trace: HostTrace, named: Mask) -> I64:
    """The numbers of the scopes whose name is one of those marked."""
    found = projection_of(trace)
    scopes = np.flatnonzero(found.kind == EventKind.SCOPE)
    chosen: I64 = scopes[named[found.type[scopes] - len(trace.event_types)]] if named.any() else scopes[:0]
    return len(trace.events) + chosen


def _match_names(trace: HostTrace, strings: I32, text: str, regex: bool) -> Mask:
    import pyarrow as pa  # importing it takes long and 30 MB, and many users never search

    names, place = np.unique(strings, return_inverse=True)
    table = trace.strings
    # Binary, not text: names come from files and need not be valid UTF-8.
    every = pa.Array.from_buffers(
        pa.large_binary(), len(table), [None, pa.py_buffer(table.offsets), pa.py_buffer(table.blob)]
    )
    hit: Mask = _match(every.take(pa.array(names)), text, regex)[place]
    return hit


def _match(names: Any, text: str, regex: bool) -> Mask:
    """Which texts of a binary Arrow array match: bool of its shape."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        match = pc.match_substring_regex if regex else pc.match_substring
        found = match(names, pattern=text, ignore_case=True)
    except pa.ArrowInvalid as error:
        raise UsageError(f"{text!r} is not a valid regular expression: {error}") from None
    hit: Mask = found.to_numpy(zero_copy_only=False)
    return hit


def find_nearest(trace: HostTrace, found: Matches, from_ps: int, from_event: int, forward: bool) -> MatchPlace | None:
    """The match after or before a moment; the first or last match of the trace if there is none; None without matches.

    They are in order of their start; those with equal starts are in order of their rows, scopes last.

    Args:
        trace: the trace.
        found: what `find_events` found.
        from_ps: the moment.
        from_event: the row to continue from if several matches start at that moment; -1 to take the first of them.
        forward: False to go backwards.
    """
    if not len(found.rows):
        return None
    start, _ = times_of(trace, found.rows)
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
    return MatchPlace(event, before + 1)


def match_histogram(trace: HostTrace, found: Matches, begin_ps: int, end_ps: int, bins: int) -> I64:
    """The number of matches that start in each of `bins` equal parts of a time span: int64 of shape (bins,)."""
    start = times_of(trace, found.rows)[0] - begin_ps
    inside = start[(start >= 0) & (start < end_ps - begin_ps)]
    return np.bincount((inside / max(1, end_ps - begin_ps) * bins).astype(np.int64), minlength=bins)[:bins]
