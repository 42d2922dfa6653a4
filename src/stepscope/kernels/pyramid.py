"""The levels of detail behind the timeline.

A line is drawn as rows whose events do not overlap.  At level `e` a row is divided into cells of 2^e ps, starting at
time 0.  An event shorter than a cell is *small*.  Small events that are neighbours in their row and start in the same
cell form one slice; every other event is its own slice.  So a slice of several events never spans much more than a
cell, a row of `c` cells has at most `2 c + 1` slices, and a slice consists of whole slices of any finer level.

A row stores its slices at a few levels, each with at most half as many slices as the one before.  Slices of a level in
between are merged from the next finer stored level on request.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepscope.kernels import _pyramid
from stepscope.kernels._pyramid import LEVELS, SPARSE, cover, lanes, sort_into_rows, unite

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

__all__ = [
    "LEVELS",
    "SPARSE",
    "EventRows",
    "Levels",
    "Places",
    "Slices",
    "build_levels",
    "cover",
    "lanes",
    "locate",
    "plan_levels",
    "sort_into_rows",
    "unite",
    "window",
]


class EventRows(NamedTuple):
    """The events of each row, in order of time.

    Attributes:
        start, duration: int64 of shape (events,), ps.
        order: int32 of shape (drawn events,), event rows.
        begin: int64 of shape (rows + 1,), where the events of each row start in `order`.
    """

    start: I64
    duration: I64
    order: I32
    begin: I64


class Levels(NamedTuple):
    """The levels that each row stores, the finest first.

    Attributes:
        first: int64 of shape (rows + 1,), where the levels of each row start in the other two columns.
        exponent: int64 of shape (levels,), the level.
        begin: int64 of shape (levels + 1,), where the slices of each level start.
    """

    first: I64
    exponent: I64
    begin: I64


class Slices(NamedTuple):
    """Slices, as columns of equal length.

    Attributes:
        start, end: int64, ps, start of the first and end of the last event.
        busy: float64, ps, total time of its events.
        events: int32, number of events.
        longest: int32, event row of the longest event, the first of several.
    """

    start: I64
    end: I64
    busy: NDArray[np.float64]
    events: I32
    longest: I32

    @classmethod
    def room(cls, slices: int) -> Slices:
        """Columns to be filled."""
        wide, narrow = np.empty((2, slices), np.int64), np.empty((2, slices), np.int32)
        return cls(wide[0], wide[1], np.empty(slices), narrow[0], narrow[1])


class Places(NamedTuple):
    """Where the slices of a window come from; each int64 of shape (requested rows,).

    Attributes:
        source: a stored level, or -1 for the events themselves.
        first, stop: the slices of that level, or places in `Rows.order`, that start in the window.
        before: the event that starts before the window and ends in it, or -1; a row has at most one.
    """

    source: I64
    first: I64
    stop: I64
    before: I64


def plan_levels(rows: EventRows, joins: I64, first: I64, exponent: I64, size: I64) -> int:
    """Chooses the levels that each row stores, and counts their slices; see `_pyramid.plan_levels`."""
    return _pyramid.plan_levels(_pyramid.Rows(*rows), joins, first, exponent, size)


def build_levels(rows: EventRows, levels: Levels, slices: Slices) -> None:
    """Fills the stored levels, each from the next finer one."""
    _pyramid.build_levels(_pyramid.Rows(*rows), _pyramid.Levels(*levels), _pyramid.Slices(*slices))


def locate(
    begin: int, end: int, wanted: I64, asked: I64, rows: EventRows, levels: Levels, slices: Slices, places: Places
) -> None:
    """Finds where the slices of a window come from, for each row; see `_pyramid.locate`."""
    known = _pyramid.Rows(*rows), _pyramid.Levels(*levels), _pyramid.Slices(*slices)
    _pyramid.locate(begin, end, wanted, asked, *known, _pyramid.Places(*places))


def window(asked: I64, places: Places, rows: EventRows, slices: Slices, out_begin: I64, out: Slices) -> None:
    """The slices that `locate` found, merged to the level of each row; see `_pyramid.window`."""
    known = _pyramid.Places(*places), _pyramid.Rows(*rows), _pyramid.Slices(*slices)
    _pyramid.window(asked, *known, out_begin, _pyramid.Slices(*out))
