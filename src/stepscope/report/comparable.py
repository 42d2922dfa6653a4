"""Declares which parts of a tool's report can be compared between two sessions.

A tool declares this beside its fields, as `COMPARABLES` of its module.  `stepscope.analysis.compare` reads it; no tool
imports that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal

from stepscope.records import dataclass
from stepscope.report.fields import Field

Joined = Literal["sum", "largest", "mean"]
"""How the measures of rows with equal keys are combined: their sum, the largest, or their weighted mean."""


@dataclass(frozen=True, kw_only=True)
class Comparable:
    """A table in which two sessions are compared row by row.

    Attributes:
        id: the id of the section, unique among all tools, and the key of its rows in JSON: `idle`, `tf_data_iterators`.
        title: its heading.
        keys: the columns that are equal in two rows about the same thing.
        measure: the column that is compared, with its unit and its meaning.  Microseconds are shown as milliseconds.
        rows: the rows of a report, each with the keys and the measure.  A row whose measure is unknown does not count.
        count: the column that counts how often it happened; empty if there is none.
        samples: the key of the values whose mean is the measure; empty if there are none.  With samples a difference
            can be distinguished from noise.
        is_total: whether the measure adds up over the capture.  It is then divided by the number of steps, since
            captures differ in length, and counts only the steps if much ran before or after them.
        is_ordered: whether rows keep their order; otherwise the largest difference comes first.
        is_neutral: whether more of it is neither better nor worse.
        joined: how rows with equal keys are combined.
        weight: the column that a mean is weighted by.
        carried: further columns to show, taken from the row after, else from the row before.
        sentences: makes the sentences above the numbers, from the report before and the one after.
        empty: the sentence to show if neither side has a row.
    """

    id: str
    title: str
    keys: tuple[Field, ...]
    measure: Field
    rows: Callable[[Any], Iterable[Mapping[str, Any]]] = attrgetter("rows")
    count: str = ""
    samples: str = ""
    is_total: bool = False
    is_ordered: bool = False
    is_neutral: bool = False
    joined: Joined = "sum"
    weight: str = ""
    carried: tuple[Field, ...] = ()
    sentences: Callable[[Any, Any], Sequence[str]] | None = None
    empty: str = "neither side has anything to compare"
