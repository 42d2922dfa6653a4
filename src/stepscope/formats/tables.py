"""The small tables of a trace whose planes and lines a reader has found one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stepscope.model import Events, LineKind, Lines, PlaneKind, Planes, Stats, StatTag, StatValue
from stepscope.records import dataclass

AddText = Callable[[str], int]
"""Gives a text its row of the strings."""


@dataclass(frozen=True)
class Plane:
    """One plane of the trace to build."""

    name: str
    kind: PlaneKind
    ordinal: int = -1


class TableLine(Protocol):
    """One line of the trace to build."""

    name: str

    @property
    def line_id(self) -> int:
        """Its number."""

    @property
    def kind(self) -> LineKind:
        """What it is."""


def make_planes(planes: Sequence[Plane], add: AddText) -> Planes:
    """The table of planes.  Those without an ordinal get the numbers behind the largest."""
    ordinals = np.array([plane.ordinal for plane in planes], np.int64)
    others = ordinals.max(initial=-1) + 1 + np.arange(len(ordinals))
    return Planes(
        plane_id=np.where(ordinals >= 0, ordinals, others),
        name=np.array([add(plane.name) for plane in planes], np.int32),
        kind=np.array([plane.kind for plane in planes], np.uint8),
        ordinal=ordinals.astype(np.int32),
    )


def make_lines(lines: Sequence[TableLine], plane: NDArray[np.int32], events: Events, add: AddText) -> Lines:
    """The table of lines, of which events are in the order of lines.

    Args:
        plane: the row of each line's plane, int32 of shape (lines,).
    """
    bounds = np.searchsorted(events.line, np.arange(len(lines) + 1))
    return Lines(
        plane=plane,
        line_id=np.array([line.line_id for line in lines], np.int64),
        name=np.array([add(line.name) for line in lines], np.int32),
        display_name=np.zeros(len(lines), np.int32),
        display_id=np.zeros(len(lines), np.int64),
        start_ns=np.zeros(len(lines), np.int64),
        duration_ps=np.zeros(len(lines), np.int64),
        kind=np.array([line.kind for line in lines], np.uint8),
        event_begin=bounds[:-1].copy(),
        event_end=bounds[1:].copy(),
    )


def make_stats(owners: Iterable[Mapping[str, StatValue]], add: AddText) -> Stats:
    """Stats of few owners, from Python values."""
    rows: list[tuple[int, int, int]] = []
    offsets = [0]
    for facts in owners:
        for name, value in facts.items():
            if isinstance(value, str):
                rows.append((add(name), StatTag.STRING, add(value)))
            elif isinstance(value, float):
                rows.append((add(name), StatTag.DOUBLE, int(np.float64(value).view(np.int64))))
            else:
                rows.append((add(name), StatTag.INT, int(value)))
        offsets.append(len(rows))
    return Stats(
        name=np.array([row[0] for row in rows], np.int32),
        tag=np.array([row[1] for row in rows], np.uint8),
        value=np.array([row[2] for row in rows], np.int64),
        offsets=np.array(offsets, np.int64),
    )
