"""The view `stats`: events with each recorded stat as a column of its own type.

Its columns depend on what was recorded, so they are found in the traces.  A stat becomes a column only when a query
names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from stepscope.model import HostTrace, StatTag
from stepscope.model.arrays import Mask
from stepscope.report import Role
from stepscope.sql.arrow import numbers, string_rows
from stepscope.sql.event_views import EVENTS
from stepscope.sql.views import Compute, View, ViewColumn, number, real, text

NAME = "stats"
DOC = (
    "The events, and each stat that was recorded for them or for their type as a column under its own name. "
    "`DESCRIBE stats` lists them. A stat whose name is a column of `events` already has `stat_` before it."
)

_TAGS = 8  # more than StatTag has members
_WHOLE = (StatTag.INT, StatTag.UINT)
_KINDS: tuple[tuple[str, tuple[StatTag, ...]], ...] = (
    ("text", (StatTag.STRING,)),
    ("float", (StatTag.DOUBLE,)),
    ("int", _WHOLE),
)


def stats_view(traces: Iterable[HostTrace]) -> View:
    """The view for the stats that these traces hold."""
    found: dict[str, set[str]] = {}
    for trace in traces:
        for name, kinds in _recorded_stats(trace):
            found.setdefault(name, set()).update(kinds)
    columns = [column for name in sorted(found) for column in _columns(name, found[name])]
    return View(NAME, DOC, (*EVENTS.columns, *_make_names_unique(columns)), EVENTS.prepare, EVENTS.length)


def _recorded_stats(trace: HostTrace) -> Iterator[tuple[str, list[str]]]:
    """Each name of a stat, and the kinds of values that it has."""
    seen = np.zeros((len(trace.strings), _TAGS), np.bool_)
    for stats in (trace.event_stats, trace.type_stats):
        seen[stats.name, stats.tag] = True
    for row in np.flatnonzero(seen[1:].any(axis=1)).tolist():
        kinds = [kind for kind, tags in _KINDS if seen[row + 1, list(tags)].any()]
        if kinds:
            yield trace.strings[row + 1], kinds


def _columns(name: str, kinds: set[str]) -> list[ViewColumn]:
    """A column, or one for each kind of value if a stat has several."""
    makers = {"text": _text_column, "float": _float_column, "int": _int_column}
    return [makers[kind](name if len(kinds) == 1 else f"{name}_{kind}", name) for kind, _ in _KINDS if kind in kinds]


def _doc(stat: str, kind: str) -> str:
    return f"the stat `{stat}`{kind}; NULL where an event has none"


def _text_column(name: str, stat: str) -> ViewColumn:
    return text(name, _doc(stat, ""), lambda trace, _: string_rows(trace, trace.stat_strings((stat,))), Role.LABEL)


def _float_column(name: str, stat: str) -> ViewColumn:
    def compute(trace: HostTrace, _: object) -> pa.Array:
        values = trace.stat_doubles((stat,))
        return numbers(values, ~np.isnan(values))

    return real(name, "", _doc(stat, ""), compute)


def _int_column(name: str, stat: str) -> ViewColumn:
    return number(name, "", _doc(stat, ", of unsigned ones the same 64 bits"), _read_whole_numbers(stat), Role.MEASURE)


def _read_whole_numbers(stat: str) -> Compute:
    def compute(trace: HostTrace, _: object) -> pa.Array:
        values, others = trace.stat_ints((stat,), 0), trace.stat_ints((stat,), 1)
        known: Mask = values == others  # whatever stands for none, only one of the two can be a value
        return numbers(values, known)

    return compute


def _make_names_unique(columns: list[ViewColumn]) -> Iterator[ViewColumn]:
    """SQL does not tell upper case from lower case."""
    from dataclasses import replace

    taken = {column.name for column in EVENTS.columns}
    for column in columns:
        name = column.name
        while name.lower() in taken:
            name = f"stat_{name}"
        taken.add(name.lower())
        yield column if name == column.name else replace(column, name=name)
