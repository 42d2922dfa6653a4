"""The names of the views, for those who need no more of them: the views themselves import the analyses."""

from __future__ import annotations

import re

VIEW_NAMES = (
    "events",
    "kernels",
    "launches",
    "ops",
    "steps",
    "causes",
    "memory",
    "counters",
    "tracks",
    "strings",
    "hosts",
    "stats",
)

_VIEW = re.compile(rf"\b(?:{'|'.join(VIEW_NAMES)}|nested_under|self_time|by_step|busy|overlapped)\b", re.IGNORECASE)


def may_read_events(query: str) -> bool:
    """Whether a query may need a trace; the tables of tools may come from the cache."""
    return _VIEW.search(query) is not None
