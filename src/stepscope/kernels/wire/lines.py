"""Lines with their events and the stats of these: the one hot loop, and long for that reason."""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled
from stepscope.kernels.wire.fields import BAD_VARINT, OK, OVERRUN, byte_at, read_field, read_fixed, read_varint
from stepscope.kernels.wire.stats import (
    FLAG_AGGREGATE,
    FLAG_IF_NONZERO,
    INLINE_BYTES,
    INLINE_STRING,
    NAME_OCCURRENCES,
    TAG_DOUBLE,
    TAG_INT,
    TAG_STRING,
    TAG_UINT,
    look_up,
)

# walk_lines: what to do on this pass.
MEASURE, DECODE, COLLECT_IDS = 0, 1, 2

# Columns of walk_lines' `header`, one row a line.  BROKEN: the first message inside the line that cannot be read;
# STOP: where the line itself cannot be read on.
(
    LINE_ID,
    LINE_NAME,
    START_NS,
    DURATION_PS,
    DISPLAY_ID,
    DISPLAY_NAME,
    EVENTS,
    STATS,
    BROKEN_AT,
    BROKEN_CODE,
    STOP_AT,
    STOP_CODE,
    LOST_EVENTS,
    LOST_STATS,
    UNSORTED,
    UNNAMED,
    BAD_TIMES,
    HEADER_WIDTH,
) = range(18)


@compiled
def walk_lines(  # type: ignore[no-untyped-def]
    buf, begins, ends, first, last, mode, header,
    event_base, stat_base, zero_ps, limit_ps, type_lut, type_ids, stat_lut, stat_ids, stat_flags,
    start_ps, duration_ps, event_type, event_flags, stat_end, stat_name, stat_tag, stat_value, raw_ids,
):  # fmt: skip
    """Reads the lines `first` to `last - 1`.

    MEASURE fills `header` (see the columns above).  DECODE then fills events from row `event_base[line]` and stats from
    row `stat_base[line]`; `stat_end[event]` is the row after the event's last stat.  Events that start further than
    `limit_ps` from 0 are put at `zero_ps[line]`, longer ones get the length 0.  COLLECT_IDS writes the events'
    metadata ids to `raw_ids` instead.  All three passes skip the same damaged events, and none writes a row outside
    its line's.
    """
    dense_stats = len(stat_ids) == 0
    dense_types = len(type_ids) == 0
    for line in range(first, last):
        pos = begins[line]
        end = ends[line]
        event = event_base[line] if mode != MEASURE else np.int64(0)
        event_room = event_base[line + 1] if mode != MEASURE else np.int64(0)
        stat = stat_base[line] if mode == DECODE else np.int64(0)
        stat_room = stat_base[line + 1] if mode == DECODE else np.int64(0)
        zero = zero_ps[line] if mode == DECODE else np.int64(0)
        earliest = -limit_ps - zero
        latest = limit_ps - zero
        broken_at = np.int64(-1)
        broken_code = OK
        stop_at = np.int64(-1)
        stop_code = OK
        lost_events = 0
        lost_stats = 0
        unsorted = False
        unnamed = 0
        bad_times = 0
        last_start = np.int64(-(1 << 62))
        last_duration = np.int64(0)
        while pos < end:
            if byte_at(buf, pos) == 0x22:  # an event; the other fields of a line are rare
                number = np.int64(4)
                wire = np.int64(2)
                size, start = read_varint(buf, pos + 1, end)
                error = OK
                if start < 0:
                    error = OVERRUN if end - pos < 11 else BAD_VARINT
                elif size < 0 or size > end - start:
                    error = OVERRUN
                else:
                    stop = start + size
                    nxt = stop
            else:
                number, wire, start, stop, nxt, error, place = read_field(buf, pos, end)
            if error != OK:
                stop_at = pos
                stop_code = error
                break
            if number == 4 and wire == 2:
                at = start
                metadata_id = np.int64(0)
                offset = np.int64(0)
                duration = np.int64(0)
                flags = np.uint16(0)
                own = stat
                event_error = OVERRUN
                while at < stop:
                    key = byte_at(buf, at)
                    if key == 0x22:  # stats
                        if at + 1 < stop and byte_at(buf, at + 1) < 0x80:
                            size = byte_at(buf, at + 1)
                            inner = at + 2
                        else:
                            size, inner = read_varint(buf, at + 1, stop)
                        if inner < 0 or size < 0 or size > stop - inner:
                            at = np.int64(-1)
                            break
                        at = inner + size
                        if mode == DECODE and own < stat_room:
                            stat_id = np.int64(0)
                            tag = 0
                            value = np.int64(0)
                            stat_error = OVERRUN
                            while inner < at:
                                key = byte_at(buf, inner)
                                if key == 0x08:  # metadata_id
                                    stat_id, inner = read_varint(buf, inner + 1, at)
                                elif key == 0x20 or key == 0x18:  # int64_value, uint64_value
                                    tag = TAG_INT if key == 0x20 else TAG_UINT
                                    value, inner = read_varint(buf, inner + 1, at)
                                elif key == 0x38:  # ref_value
                                    tag = TAG_STRING
                                    value, inner = read_varint(buf, inner + 1, at)
                                elif key == 0x2A or key == 0x32:  # str_value, bytes_value
                                    tag = INLINE_STRING if key == 0x2A else INLINE_BYTES
                                    value = inner + 1
                                    size, inner = read_varint(buf, inner + 1, at)
                                    if inner >= 0:
                                        inner = inner + size if 0 <= size <= at - inner else np.int64(-1)
                                elif key == 0x11 and inner + 9 <= at:  # double_value
                                    tag = TAG_DOUBLE
                                    value = read_fixed(buf, inner + 1, 8)
                                    inner += 9
                                else:
                                    _, _, _, _, inner, stat_error, _ = read_field(buf, inner, at)
                                if inner < 0:
                                    tag = 0
                                    value = np.int64(0)
                                    break
                            if inner < 0:
                                lost_stats += 1
                                if broken_at < 0:
                                    broken_at = pos
                                    broken_code = stat_error if stat_error != OK else OVERRUN
                            spot = stat_id
                            ref = value
                            if not dense_stats:
                                spot = look_up(stat_id, stat_lut, stat_ids)
                                if tag == TAG_STRING:
                                    ref = look_up(value, stat_lut, stat_ids)
                            if tag == TAG_STRING:
                                value = np.int64(stat_lut[ref]) if 0 <= ref < len(stat_lut) else np.int64(0)
                                value = max(value, np.int64(0))
                            row = np.int64(stat_lut[spot]) if 0 <= spot < len(stat_lut) else np.int64(-1)
                            if row >= 0:
                                given = stat_flags[spot]
                                if given != 0 and not (given & FLAG_IF_NONZERO and value == 0):
                                    flags |= np.uint16(given)
                            else:
                                row = np.int64(0)
                            stat_name[own] = row
                            stat_tag[own] = tag
                            stat_value[own] = value
                        own += 1
                    elif key == 0x08 or key == 0x10 or key == 0x18 or key == 0x28:
                        got, at = read_varint(buf, at + 1, stop)
                        if key == 0x08:
                            metadata_id = got
                        elif key == 0x10:
                            offset = got
                        elif key == 0x18:
                            duration = got
                        else:  # num_occurrences
                            if mode == DECODE and own < stat_room:
                                flags |= np.uint16(FLAG_AGGREGATE)
                                stat_name[own] = NAME_OCCURRENCES
                                stat_tag[own] = TAG_INT
                                stat_value[own] = got
                            own += 1
                        if at < 0:
                            break
                    else:
                        _, _, _, _, at, event_error, _ = read_field(buf, at, stop)
                        if at < 0:
                            break
                if at < 0:
                    lost_events += 1
                    if broken_at < 0:
                        broken_at = pos
                        broken_code = event_error if event_error != OK else OVERRUN
                else:
                    stat = own
                    if mode == DECODE and event < event_room:
                        if offset > latest or offset < earliest:
                            offset = np.int64(0)
                            duration = np.int64(0)
                            bad_times += 1
                        elif duration < 0 or duration > limit_ps:
                            duration = np.int64(0)
                            bad_times += 1
                        begin = zero + offset
                        start_ps[event] = begin
                        duration_ps[event] = duration
                        spot = metadata_id
                        if not dense_types:
                            spot = look_up(metadata_id, type_lut, type_ids)
                        kind = type_lut[spot] if 0 <= spot < len(type_lut) else np.int32(-1)
                        event_type[event] = kind
                        if kind < 0:
                            unnamed += 1
                        event_flags[event] = flags
                        stat_end[event] = stat
                        if begin < last_start or (begin == last_start and duration > last_duration):
                            unsorted = True
                        last_start = begin
                        last_duration = duration
                    elif mode == COLLECT_IDS and event < event_room:
                        raw_ids[event] = metadata_id
                    event += 1
            elif mode == MEASURE:
                if wire == 0:
                    if number == 1:
                        header[line, LINE_ID] = start
                    elif number == 3:
                        header[line, START_NS] = start
                    elif number == 9:
                        header[line, DURATION_PS] = start
                    elif number == 10:
                        header[line, DISPLAY_ID] = start
                elif wire == 2:
                    if number == 2:
                        header[line, LINE_NAME] = place
                    elif number == 11:
                        header[line, DISPLAY_NAME] = place
            pos = nxt
        if mode == MEASURE:
            header[line, EVENTS] = event
            header[line, STATS] = stat
            header[line, STOP_AT] = stop_at
            header[line, STOP_CODE] = stop_code
        elif mode == DECODE:
            header[line, BROKEN_AT] = broken_at
            header[line, BROKEN_CODE] = broken_code
            header[line, LOST_EVENTS] = lost_events
            header[line, LOST_STATS] = lost_stats
            header[line, UNSORTED] = unsorted
            header[line, UNNAMED] = unnamed
            header[line, BAD_TIMES] = bad_times
