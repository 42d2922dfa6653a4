"""Nesting on a line, links between lines, and what follows from them: parents, self times, membership in steps."""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled


@compiled
def parents(start, duration, line_begin, line_end, kind, is_async, region_begin, region_end, parent, extent):  # type: ignore[no-untyped-def]
    """The event that encloses each event on its line.

    An event encloses what starts and ends inside it.  A region, told by a begin and an end mark, encloses what lies
    between them.  Asynchronous events neither enclose nor are enclosed.

    Args:
        start, duration: int64 of shape (events,), ps; sorted within each line by start, at one start the longer first.
        line_begin, line_end: int64 of shape (lines,), the event rows of the lines to look at.
        kind: uint8 of shape (events,); is_async: bool of shape (events,).
        region_begin, region_end: the kinds that mark regions.
        parent: int32 of shape (events,), receives the row of the parent or -1; other lines are left alone.
        extent: int64 of shape (events,), receives the length of each region at its begin mark; other events are left
            alone, so that it may be empty where no event marks a region.
    """
    never = np.int64(1) << 62
    for line in range(len(line_begin)):
        top = -1  # the innermost event that may still enclose; the others are its parents
        for event in range(line_begin[line], line_end[line]):
            begin = start[event]
            end = begin + duration[event]
            parent[event] = -1
            if is_async[event]:
                continue
            if kind[event] == region_end:
                at = top
                while at >= 0 and kind[at] != region_begin:
                    at = parent[at]
                if at >= 0:
                    extent[at] = begin - start[at]
                    top = parent[at]
                parent[event] = top
                continue
            while top >= 0:
                stop = never if kind[top] == region_begin else start[top] + duration[top]
                if stop >= end:
                    break
                top = parent[top]
            parent[event] = top
            top = event


@compiled
def self_times(duration, parent, counts, out):  # type: ignore[no-untyped-def]
    """Duration of each event minus that of the nearest counted events inside it.

    Args:
        duration: int64 of shape (events,), ps.
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
        counts: bool of shape (events,): the events that take time away from what encloses them.
        out: int64 of shape (events,), receives the self times; may be negative where children overlap each other.
    """
    for event in range(len(duration)):
        out[event] = duration[event]
    for event in range(len(duration)):
        if counts[event]:
            above = parent[event]
            while above >= 0 and not counts[above]:
                above = parent[above]
            if above >= 0:
                out[above] -= duration[event]


@compiled
def spread(label, parent, link, state, stack):  # type: ignore[no-untyped-def]
    """Gives every event the label of what it belongs to: its own, else its parent's, else that of what caused it.

    Args:
        label: int32 of shape (events,), -1 where unknown; filled in place.
        parent: int32 of shape (events,), the enclosing event or -1.
        link: int32 of shape (events,), the event on another line that caused it, or -1.
        state: uint8 of shape (events,), zeros; scratch.
        stack: int32 of shape (events + 1,); scratch.
    """
    for first in range(len(label)):
        if state[first] == 3:
            continue
        depth = 1
        stack[0] = first
        while depth > 0:
            event = stack[depth - 1]
            if label[event] >= 0 or state[event] >= 3:
                state[event] = 3
                depth -= 1
                continue
            # State 1: the parent is being asked; 2: the cause is; 3: done.
            step = state[event]
            if step > 0:
                asked = parent[event] if step == 1 else link[event]
                if asked >= 0 and label[asked] >= 0:
                    label[event] = label[asked]
                    state[event] = 3
                    depth -= 1
                    continue
            state[event] = step + 1
            if step < 2:
                ask = parent[event] if step == 0 else link[event]
                if ask >= 0 and state[ask] == 0:
                    stack[depth] = ask
                    depth += 1


@compiled
def add_to_ancestors(value, parent):  # type: ignore[no-untyped-def]
    """Adds the value of every event to all events that enclose it, in place.

    Args:
        value: int64 of shape (events,).
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
    """
    for event in range(len(value) - 1, -1, -1):
        if parent[event] >= 0:
            value[parent[event]] += value[event]


@compiled
def outermost(parent, counts, out):  # type: ignore[no-untyped-def]
    """The outermost counted event around each event, itself included.

    Args:
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
        counts: bool of shape (events,).
        out: int64 of shape (events,), receives the row or -1.
    """
    for event in range(len(parent)):
        above = out[parent[event]] if parent[event] >= 0 else -1
        out[event] = above if above >= 0 else event if counts[event] else -1


@compiled
def around(kind, parent, bit_of_kind, out):  # type: ignore[no-untyped-def]
    """Which kinds each event is of or has around it, one bit each.

    Args:
        kind: uint8 of shape (events,).
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
        bit_of_kind: uint8 of shape (256,).
        out: uint8 of shape (events,), receives the bits.
    """
    for event in range(len(kind)):
        above = parent[event]
        bits = bit_of_kind[kind[event]]
        out[event] = bits | out[above] if above >= 0 else bits
