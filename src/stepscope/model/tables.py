"""The tables of a trace.

Each column is declared here once, with its type, unit and meaning.  The docs are generated from these declarations,
and `check` compares data with them.

A table is a frozen dataclass of numpy arrays of equal length.  Tables refer to each other by row number, and to text
by its row of the string table.  -1 means "none".
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any

import numpy as np

from stepscope.model.arrays import I32, I64, U8, offsets_of, run_rows
from stepscope.records import dataclass


def column(dtype: type[np.generic], unit: str, doc: str) -> Any:
    """Declares one column of a table."""
    return field(metadata={"dtype": np.dtype(dtype), "unit": unit, "doc": doc})


def unequal(doc: str) -> Any:
    """Declares an array of a table whose length differs from that of the columns."""
    return field(metadata={"doc": doc})


@dataclass(frozen=True)
class Column:
    """The declaration of a column, for docs and checks."""

    name: str
    dtype: np.dtype[Any]
    unit: str
    doc: str


@dataclass(frozen=True)
class Table:
    """The base of all tables: length, declarations and a check."""

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self.__dataclass_fields__))))

    @classmethod
    def columns(cls) -> tuple[Column, ...]:
        """The declarations, in order."""
        return tuple(
            Column(f.name, f.metadata["dtype"], f.metadata["unit"], f.metadata["doc"])
            for f in fields(cls)
            if "dtype" in f.metadata
        )

    def check(self) -> None:
        """Raises ValueError if the type or length of a column differs from its declaration."""
        for declared in self.columns():
            data = getattr(self, declared.name)
            if data.dtype != declared.dtype or data.shape != (len(self),):
                raise ValueError(
                    f"{type(self).__name__}.{declared.name}: expected {declared.dtype} of shape ({len(self)},), "
                    f"got {data.dtype} of shape {data.shape}"
                )


@dataclass(frozen=True)
class Events(Table):
    """What happened.  Events of a line are contiguous and sorted by start; of equal starts the longer comes first."""

    start_ps: I64 = column(np.int64, "ps", "start, from the session's start; may be negative")
    duration_ps: I64 = column(np.int64, "ps", "duration, never negative; for an aggregate the sum of its occurrences")
    type: I32 = column(np.int32, "row", "row of `event_types`")
    line: I32 = column(np.int32, "row", "row of `lines`")
    kind: U8 = column(np.uint8, "EventKind", "what the event is")
    traits: U8 = column(np.uint8, "Trait", "facts beyond the kind, one bit each")


@dataclass(frozen=True)
class EventTypes(Table):
    """What events of one type share: their name and constant stats."""

    name: I32 = column(np.int32, "string", "full name; 0 if the file lacks it")
    display_name: I32 = column(np.int32, "string", "short name; 0 if there is none")
    plane: I32 = column(np.int32, "row", "row of `planes` that the type belongs to")
    metadata_id: I64 = column(np.int64, "id", "the file's id of the type, unique in its plane")


@dataclass(frozen=True)
class Lines(Table):
    """Tracks: a host thread, a device stream, or a derived line.  Lines of one plane are contiguous."""

    plane: I32 = column(np.int32, "row", "row of `planes`")
    line_id: I64 = column(np.int64, "id", "the file's id: a thread or stream number, or a hash")
    name: I32 = column(np.int32, "string", "name")
    display_name: I32 = column(np.int32, "string", "name to show; 0 if there is none")
    display_id: I64 = column(np.int64, "id", "id to show; 0 if there is none")
    start_ns: I64 = column(np.int64, "ns", "the line's own zero as stored; `start_ps` of events already includes it")
    duration_ps: I64 = column(np.int64, "ps", "declared duration; 0 if not declared")
    kind: U8 = column(np.uint8, "LineKind", "what the line holds")
    event_begin: I64 = column(np.int64, "row", "first row of `events`")
    event_end: I64 = column(np.int64, "row", "one past the last row of `events`")


@dataclass(frozen=True)
class Planes(Table):
    """Groups of lines: the threads of a host, or one device."""

    plane_id: I64 = column(np.int64, "id", "the file's id; the ordinal on device planes")
    name: I32 = column(np.int32, "string", "name")
    kind: U8 = column(np.uint8, "PlaneKind", "what the plane describes")
    ordinal: I32 = column(np.int32, "number", "device number; -1 for planes that are not a device")


@dataclass(frozen=True)
class Stats(Table):
    """Key-value facts about owners (events, event types or planes), as compressed sparse rows.

    Owner `i` has the rows `offsets[i]:offsets[i + 1]`.  A stat becomes a dense column only on request.
    """

    name: I32 = column(np.int32, "string", "the stat's name; 0 if the file lacks it")
    tag: U8 = column(np.uint8, "StatTag", "how to read `value`")
    value: I64 = column(np.int64, "by tag", "integer, bits of a double or unsigned integer, or row of the string table")
    offsets: I64 = unequal("int64 of shape (owners + 1,), ascending")

    @classmethod
    def empty(cls, owners: int) -> Stats:
        """A table without any stats for `owners` owners."""
        return cls(
            name=np.empty(0, np.int32),
            tag=np.empty(0, np.uint8),
            value=np.empty(0, np.int64),
            offsets=np.zeros(owners + 1, np.int64),
        )

    def owned_rows(self, owners: I64) -> tuple[I64, I64]:
        """The stat rows of some owners, in their order, and the offsets of each owner's rows.

        Returns:
            Two int64, of shape (n,) and of shape (owners + 1,).
        """
        counts = self.offsets[owners + 1] - self.offsets[owners]
        return run_rows(self.offsets[owners], counts), offsets_of(counts)

    def take(self, owners: I64) -> Stats:
        """The stats of some owners, in their order."""
        rows, offsets = self.owned_rows(owners)
        return Stats(name=self.name[rows], tag=self.tag[rows], value=self.value[rows], offsets=offsets)


TABLES: tuple[type[Table], ...] = (Planes, Lines, Events, EventTypes, Stats)
