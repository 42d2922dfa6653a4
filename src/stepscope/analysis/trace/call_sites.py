"""Where in the user's program something happens: the nearest enclosing Python frame outside any library."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, U8
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.python import is_of_user, is_outside_of_frameworks
from stepscope.vocabulary.traits import CodeTrait


def call_sites(trace: HostTrace, rows: I64) -> I64:
    """The call site of each host event as a string row: int64 of shape (n,), -1 where none is recorded.

    Frames recorded as events take precedence over a stack that the event carries as text.
    """
    sites = _nearest_frames(trace, rows, trace.derived("frames of the user", _user_frames))
    if trace.has_stat(stat_names.CALL_STACK):
        sites = np.where(sites >= 0, sites, trace.stat_strings(stat_names.CALL_STACK, rows=rows))
    return sites


def sites_in_libraries(trace: HostTrace, rows: I64) -> I64:
    """The same with calls of libraries as well, but for those of the framework that computes."""
    return _nearest_frames(trace, rows, trace.derived("frames outside of frameworks", _others_frames))


def site_text(text: str) -> str:
    """A call site as displayed: the first frame of a stack that is outside any library.

    >>> site_text("/usr/lib/python3.11/site-packages/torch/nn/x.py(3): f;train.py(12): step;")
    'train.py(12): step'
    """
    frames = [frame.strip() for frame in text.split(";") if frame.strip()]
    own = (frame for frame in frames if is_of_user(frame))
    return next(own, frames[0] if frames else "").lstrip("$")


def _nearest_frames(trace: HostTrace, rows: I64, frames: U8 | None) -> I64:
    sites = np.full(len(rows), -1, np.int64)
    if frames is None or not len(rows):
        return sites
    levels = (np.arange(256) == 1).astype(np.uint8)
    found, links = np.empty(len(rows), np.int64), forest(trace)
    kernels.ops.climb(rows, links.parent, links.cause, frames, levels, 1, found)
    inside = found >= 0
    sites[inside] = trace.event_names(found[inside])
    return sites


def _user_frames(trace: HostTrace) -> U8 | None:
    """1 for each Python call outside of any library, else 0: uint8 of shape (events,); None without such a call."""
    python = events_of_kind(trace, EventKind.PYTHON_CALL)
    return _mark(trace, python[has_trait(trace, trace.events.type[python], CodeTrait.OF_USER)])


def _others_frames(trace: HostTrace) -> U8 | None:
    """1 for each call of a file that is no framework's own, else 0: uint8 of shape (events,); None without one."""
    python = events_of_kind(trace, EventKind.PYTHON_CALL)
    names, of_call = np.unique(trace.event_names(python), return_inverse=True)
    outside = np.array([is_outside_of_frameworks(trace.strings[name]) for name in names.tolist()], np.bool_)
    return _mark(trace, python[outside[of_call]])


def _mark(trace: HostTrace, calls: I64) -> U8 | None:
    frames = np.zeros(len(trace.events), np.uint8)
    frames[calls] = 1
    return frames if len(calls) else None
