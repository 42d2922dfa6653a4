"""Writing events into the files of other viewers: tracks on which all events nest, and JSON text."""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled


@compiled(allocates=True)
def nest(start, duration, line, rows, lane, order):  # type: ignore[no-untyped-def]
    """Spreads the events of each line over lanes on which every two events nest or do not overlap.

    Args:
        start, duration: int64 of shape (events,), ps; sorted within each line by start, at one start the longer first.
        line: int32 of shape (events,).
        rows: int64 of shape (n,), ascending: the events to look at.
        lane: int32 of shape (n,), receives the lane of each, from 0 in each line.
        order: int64 of shape (2 * n,), receives the begins (2 * i) and ends (2 * i + 1) of the events in the order in
            which a lane has them; lanes of a line are mixed, lines are not.
    """
    below = np.empty(len(rows), np.int64)
    top = np.empty(8, np.int64)
    lanes, here, put = 0, -1, 0
    for at in range(len(rows)):
        row = rows[at]
        begin = start[row]
        end = begin + duration[row]
        if line[row] != here:
            for k in range(lanes):
                while top[k] >= 0:
                    order[put] = 2 * top[k] + 1
                    put += 1
                    top[k] = below[top[k]]
            lanes, here = 0, line[row]
        chosen = -1
        for k in range(lanes):
            while top[k] >= 0 and start[rows[top[k]]] + duration[rows[top[k]]] <= begin:
                order[put] = 2 * top[k] + 1
                put += 1
                top[k] = below[top[k]]
            if top[k] < 0 or start[rows[top[k]]] + duration[rows[top[k]]] >= end:
                chosen = k
                break
        if chosen < 0:
            if lanes == len(top):
                top = np.concatenate((top, np.empty(len(top), np.int64)))
            top[lanes] = -1
            chosen = lanes
            lanes += 1
        below[at] = top[chosen]
        top[chosen] = at
        lane[at] = chosen
        order[put] = 2 * at
        put += 1
    for k in range(lanes):
        while top[k] >= 0:
            order[put] = 2 * top[k] + 1
            put += 1
            top[k] = below[top[k]]


@compiled(allocates=True)
def render(blob, bounds, parts, time, length, glue, stat_offsets, stat_key, stat_text, stat_value, out):  # type: ignore[no-untyped-def]
    """Writes JSON objects of one make, from fragments of text and from numbers.

    An object is: fragment `parts[i, 0]`, its time in us with as many digits as a ps needs; unless its length is
    negative, fragment `parts[i, 1]` and the length; the other fragments; its stats with `glue[0]` between them, and
    before the first if the last fragment is not empty; then `glue[1]`.

    Args:
        blob: uint8, the text of all fragments; bounds: int64 of shape (fragments + 1,), where each begins.
        parts: int32 of shape (objects, n), fragments; number 0 is the empty one.
        time, length: int64 of shape (objects,), ps.
        glue: int32 of shape (2,), fragments.
        stat_offsets: int64 of shape (objects + 1,).
        stat_key: int32 of shape (stats,), fragments that hold a key and its colon.
        stat_text: int32, the fragment that is the value, or -1 where `stat_value`, int64, is.
        out: uint8, large enough.

    Returns:
        how many bytes were written.
    """
    put = 0
    digits = np.empty(24, np.uint8)
    columns = parts.shape[1]
    for i in range(len(parts)):
        for step in range(columns + 2):  # fragment 0, time, fragment 1, length, the other fragments
            if length[i] < 0 and (step == 2 or step == 3):
                continue
            if step == 1 or step == 3:
                value = time[i] if step == 1 else length[i]
                if value < 0:
                    out[put] = 45  # minus
                    put += 1
                    value = -value
                whole = value // 1_000_000
                rest = value - whole * 1_000_000
                count = 0
                while whole > 0 or count == 0:
                    digits[count] = 48 + whole % 10
                    whole //= 10
                    count += 1
                while count > 0:
                    count -= 1
                    out[put] = digits[count]
                    put += 1
                if rest > 0:
                    out[put] = 46  # point
                    put += 1
                    power = 100_000
                    while power > 0:
                        out[put] = 48 + rest // power % 10
                        put += 1
                        power //= 10
                continue
            part = parts[i, 0 if step == 0 else (1 if step == 2 else step - 2)]
            for at in range(bounds[part], bounds[part + 1]):
                out[put] = blob[at]
                put += 1
        is_first = parts[i, columns - 1] == 0
        for stat in range(stat_offsets[i], stat_offsets[i + 1]):
            if not is_first:
                for at in range(bounds[glue[0]], bounds[glue[0] + 1]):
                    out[put] = blob[at]
                    put += 1
            is_first = False
            for at in range(bounds[stat_key[stat]], bounds[stat_key[stat] + 1]):
                out[put] = blob[at]
                put += 1
            if stat_text[stat] >= 0:
                for at in range(bounds[stat_text[stat]], bounds[stat_text[stat] + 1]):
                    out[put] = blob[at]
                    put += 1
                continue
            value = stat_value[stat]
            sign = 1
            if value < 0:
                out[put] = 45
                put += 1
                sign = -1
            count = 0
            while value != 0 or count == 0:
                digit = value % 10 if sign > 0 else (10 - value % 10) % 10  # the smallest number has no opposite
                value = (value - sign * digit) // 10
                digits[count] = 48 + digit
                count += 1
            while count > 0:
                count -= 1
                out[put] = digits[count]
                put += 1
        for at in range(bounds[glue[1]], bounds[glue[1] + 1]):
            out[put] = blob[at]
            put += 1
    return put
