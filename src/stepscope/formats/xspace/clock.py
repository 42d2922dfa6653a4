"""The zero from which the times of a file count."""

from __future__ import annotations

import numpy as np

from stepscope.formats.xspace.schema import TIME_LIMIT_PS
from stepscope.model.arrays import I64, Mask

_ABSOLUTE_NS = 10**17  # line starts later than this (1973) count from 1970, not from the session's start
_LIMIT_NS = TIME_LIMIT_PS // 1000


def session_start_ns(line_starts: I64, declared: int | None) -> int | None:
    """The start of the session in ns since 1970; None if unknown.

    Args:
        line_starts: int64 of shape (lines,), ns, as stored, of the lines that hold events.
        declared: the start that the file declares.  Lines that count from 1970 overrule it if it is impossibly far off.
    """
    absolute = line_starts[line_starts > _ABSOLUTE_NS]
    if not len(absolute):
        return declared
    middle = int(np.sort(absolute)[len(absolute) // 2])  # one damaged start must not move all the others
    if declared is not None and abs(declared - middle) <= _LIMIT_NS:
        return declared
    return int(absolute[np.abs(absolute - middle) <= _LIMIT_NS].min())


def line_zeros_ps(line_starts: I64, session_start: int | None) -> tuple[I64, Mask]:
    """What to add to the event offsets of each line, in ps, to make them count from the session's start.

    Args:
        line_starts: int64 of shape (lines,), ns, as stored: from the session's start, or from 1970.
        session_start: ns since 1970, from `session_start_ns`.

    Returns:
        int64 of shape (lines,), and True for lines whose start is impossibly far away; these get 0.
    """
    absolute = line_starts > _ABSOLUTE_NS
    stated = line_starts[line_starts > 0]
    if session_start and len(stated) and (stated >= session_start).all():
        absolute = line_starts > 0  # nothing starts before its session: this one says that it began before that year
    relative = np.where(absolute, line_starts - (session_start or 0), line_starts)
    wild = (relative > _LIMIT_NS) | (relative < -_LIMIT_NS)
    return np.where(wild, 0, relative) * 1000, wild
