"""The zero from which the times of a file count."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.formats.xspace.schema import TIME_LIMIT_PS

_ABSOLUTE_NS = 10**17  # line starts later than this (1973) count from 1970, not from the session's start
_LIMIT_NS = TIME_LIMIT_PS // 1000


def session_start_ns(line_starts: Sequence[int], declared: int | None) -> int | None:
    """The start of the session in ns since 1970; None if unknown.

    Args:
        line_starts: in ns, as stored, of the lines that hold events.
        declared: the start that the file declares.  Lines that count from 1970 overrule it if it is impossibly far off.
    """
    absolute = sorted(start for start in line_starts if start > _ABSOLUTE_NS)
    if not absolute:
        return declared
    middle = absolute[len(absolute) // 2]  # one damaged start must not move all the others
    if declared is not None and abs(declared - middle) <= _LIMIT_NS:
        return declared
    return min(start for start in absolute if abs(start - middle) <= _LIMIT_NS)


def line_zeros_ps(line_starts: Sequence[int], session_start: int | None) -> tuple[list[int], list[bool]]:
    """What to add to the event offsets of each line, in ps, to make them count from the session's start.

    Args:
        line_starts: in ns, as stored: from the session's start, or from 1970.
        session_start: ns since 1970, from `session_start_ns`.

    Returns:
        The zero of each line, and True for lines whose start is impossibly far away; these get 0.
    """
    from_1970 = _ABSOLUTE_NS
    stated = [start for start in line_starts if start > 0]
    if session_start and stated and min(stated) >= session_start:
        from_1970 = 0  # nothing starts before its session: this one says that it began before that year
    begin = session_start or 0
    relative = [start - begin if start > from_1970 else start for start in line_starts]
    wild = [not -_LIMIT_NS <= start <= _LIMIT_NS for start in relative]
    return [0 if is_wild else start * 1000 for start, is_wild in zip(relative, wild, strict=True)], wild
