"""Protobuf wire decoding of XSpace messages into columns.

Everything works on byte ranges of one buffer and never looks past the end of its range, so damaged input can at worst
give wrong numbers inside the damaged message, never a read out of bounds.  Framing is checked level by level: a bad
event is skipped by its length, a bad line ends that line, a bad plane ends that plane.

    space  = { plane }            scan_fields
    plane  = { line | metadata }  scan_fields, walk_metadata
    line   = { event }            walk_lines, once to count and once to fill
    event  = { stat }
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Why a range could not be read to its end.
OK, BAD_VARINT, BAD_TAG, OVERRUN = 0, 1, 2, 3

# walk_lines: what to do on this pass.
MEASURE, DECODE, COLLECT_IDS = 0, 1, 2

# Columns of walk_lines' `header`, one row a line.
(
    LINE_ID,
    NAME_AT,
    NAME_LEN,
    START_NS,
    DURATION_PS,
    DISPLAY_ID,
    DISPLAY_AT,
    DISPLAY_LEN,
    EVENTS,
    STATS,
    BAD_AT,
    BAD_CODE,
    LOST_EVENTS,
    UNSORTED,
    UNNAMED,
    BAD_TIMES,
    HEADER_WIDTH,
) = range(17)

# Columns of walk_metadata's `entries`, one row a metadata entry.
META_ID, META_NAME_AT, META_NAME_LEN, META_SHORT_AT, META_SHORT_LEN, META_STATS, META_BAD_AT, META_WIDTH = range(8)

# Tags of stats whose text lies in the buffer; `value` is the position of its length.
INLINE_STRING, INLINE_BYTES = 133, 134
_TAG_DOUBLE, _TAG_UINT, _TAG_INT, _TAG_STRING = 1, 2, 3, 5

# Offsets and durations beyond 26 days are damage; the bound also keeps sums of three inside int64.
TIME_LIMIT_PS = 1 << 61

# Flags of an event that come from its stats; the low bits are the caller's.
FLAG_AGGREGATE = 1 << 31
FLAG_IF_NONZERO = 1 << 30  # in a stat's flags: set the others only for a value other than 0

# The name of the stat that an aggregate's count becomes, until its row in the string table is known.
NAME_OCCURRENCES = -1


@njit(cache=True, nogil=True, inline="always")
def _varint(buf, pos, end):  # type: ignore[no-untyped-def]
    """Value (as int64 bits) and the position after it, -1 if there is none before `end`.

    Inlined, because a call costs more than the work.  It reads first, never past the buffer, and checks after.
    """
    last = len(buf) - 1
    byte = np.int64(buf[min(pos, last)])
    pos += 1
    value = byte & 0x7F
    shift = 7
    while byte >= 0x80 and shift < 70:
        byte = np.int64(buf[min(pos, last)])
        pos += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    if pos > end or byte >= 0x80:
        pos = np.int64(-1)
    return value, pos


@njit(cache=True, nogil=True)
def _fixed(buf, pos, width):  # type: ignore[no-untyped-def]
    value = np.uint64(0)
    for k in range(width):
        value |= np.uint64(buf[pos + k]) << np.uint64(8 * k)
    return np.int64(value)


@njit(cache=True, nogil=True)
def _field(buf, pos, end):  # type: ignore[no-untyped-def]
    """One field: (number, wire type, value or start, end or -1, next position or -1, error)."""
    tag, after = _varint(buf, pos, end)
    if after < 0:
        return 0, 0, np.int64(0), np.int64(-1), np.int64(-1), BAD_VARINT
    number = tag >> 3
    wire = tag & 7
    if number <= 0 or number > 0x1FFFFFFF:
        return 0, 0, np.int64(0), np.int64(-1), np.int64(-1), BAD_TAG
    if wire == 0:
        value, nxt = _varint(buf, after, end)
        if nxt < 0:
            return number, wire, value, np.int64(-1), nxt, BAD_VARINT
        return number, wire, value, np.int64(-1), nxt, OK
    if wire == 2:
        size, start = _varint(buf, after, end)
        if start < 0:
            return number, wire, np.int64(0), np.int64(-1), np.int64(-1), BAD_VARINT
        if size < 0 or size > end - start:
            return number, wire, start, end, np.int64(-1), OVERRUN
        return number, wire, start, start + size, start + size, OK
    if wire == 1 or wire == 5:
        width = 8 if wire == 1 else 4
        if after + width > end:
            return number, wire, np.int64(0), np.int64(-1), np.int64(-1), OVERRUN
        return number, wire, _fixed(buf, after, width), np.int64(-1), after + width, OK
    return number, wire, np.int64(0), np.int64(-1), np.int64(-1), BAD_TAG


@njit(cache=True, nogil=True)
def scan_fields(buf, begin, end, numbers, starts, ends):  # type: ignore[no-untyped-def]
    """Lists the fields of one message.

    Args:
        buf: uint8 of shape (bytes,).
        begin, end: the message's range.
        numbers, starts, ends: int64 of equal shape (room,), filled as far as there is room: the field number and, for
            a length-delimited field, its range; otherwise the value and -1.

    Returns:
        (fields seen, position of the damage or -1, error code).  A last length-delimited field that runs over the end
        is listed, cut at the end.
    """
    count = 0
    pos = np.int64(begin)
    while pos < end:
        number, wire, start, stop, nxt, error = _field(buf, pos, end)
        if error == OK or (error == OVERRUN and wire == 2):
            if count < len(numbers):
                numbers[count] = number
                starts[count] = start
                ends[count] = stop
            count += 1
        if error != OK:
            return count, pos, error
        pos = nxt
    return count, np.int64(-1), OK


@njit(cache=True, nogil=True)
def _stat(buf, pos, end):  # type: ignore[no-untyped-def]
    """One XStat: (metadata id, tag, value).  Tag 0 if it holds no value or is damaged."""
    metadata_id = np.int64(0)
    tag = 0
    value = np.int64(0)
    while 0 <= pos < end:
        key = buf[pos]
        if key == 0x08:  # metadata_id
            metadata_id, pos = _varint(buf, pos + 1, end)
        elif key == 0x20 or key == 0x18:  # int64_value, uint64_value
            tag = _TAG_INT if key == 0x20 else _TAG_UINT
            value, pos = _varint(buf, pos + 1, end)
        elif key == 0x38:  # ref_value
            tag = _TAG_STRING
            value, pos = _varint(buf, pos + 1, end)
        elif key == 0x2A or key == 0x32:  # str_value, bytes_value: remember where the length stands
            tag = INLINE_STRING if key == 0x2A else INLINE_BYTES
            value = pos + 1
            size, pos = _varint(buf, pos + 1, end)
            pos = pos + size if pos >= 0 and 0 <= size <= end - pos else np.int64(-1)
        else:
            number, wire, start, stop, nxt, error = _field(buf, pos, end)
            if number == 2 and wire == 1:
                tag = _TAG_DOUBLE
                value = start
            pos = nxt
    if pos < 0:
        tag = 0
        value = np.int64(0)
    return metadata_id, tag, value


@njit(cache=True, nogil=True)
def _look_up(key, lut, ids):  # type: ignore[no-untyped-def]
    """Index into `lut` of a metadata id: the id itself if `ids` is empty, else its place in the sorted `ids`; or -1."""
    if len(ids) == 0:
        if 0 <= key < len(lut):
            return key
        return np.int64(-1)
    low = np.int64(0)
    high = np.int64(len(ids))
    while low < high:
        middle = (low + high) >> 1
        if ids[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < len(ids) and ids[low] == key:
        return low
    return np.int64(-1)


@njit(cache=True, nogil=True)
def _put_stat(buf, pos, end, at, lut, ids, flags, name, tag, value):  # type: ignore[no-untyped-def]
    """Decodes one XStat into row `at`; returns the flags that it gives its event."""
    metadata_id, kind, number = _stat(buf, pos, end)
    place = _look_up(metadata_id, lut, ids)
    given = np.uint32(0)
    if place >= 0:
        name[at] = lut[place]
        given = flags[place]
        if given & FLAG_IF_NONZERO and number == 0:
            given = np.uint32(0)
    else:
        name[at] = 0
    if kind == _TAG_STRING:
        ref = _look_up(number, lut, ids)
        number = np.int64(lut[ref]) if ref >= 0 else np.int64(0)
        if number < 0:
            number = np.int64(0)
    if name[at] < 0:
        name[at] = 0
    tag[at] = kind
    value[at] = number
    return given


@njit(cache=True, nogil=True)
def decode_stats(buf, begins, ends, lut, ids, flags, name, tag, value):  # type: ignore[no-untyped-def]
    """Decodes XStat messages, one a range, into the rows 0.. of `name`, `tag` and `value`."""
    for i in range(len(begins)):
        _put_stat(buf, begins[i], ends[i], i, lut, ids, flags, name, tag, value)


@njit(cache=True, nogil=True)
def walk_metadata(buf, begins, ends, entries, fill, stat_base, lut, ids, flags, name, tag, value):  # type: ignore[no-untyped-def]
    """Reads map entries of event or stat metadata, one a range.

    Without `fill`, writes one row of `entries` each (see the META_ columns).  With it, decodes the entries' stats into
    the rows from `stat_base[i]` on.
    """
    for i in range(len(begins)):
        pos = begins[i]
        end = ends[i]
        inner = np.int64(-1)
        inner_end = np.int64(-1)
        key = np.int64(0)
        has_key = False
        bad = np.int64(-1)
        while pos < end:
            number, wire, start, stop, nxt, error = _field(buf, pos, end)
            if wire == 2 and number == 2 and (error == OK or error == OVERRUN):
                inner = start
                inner_end = stop
            elif error == OK and wire == 0 and number == 1:
                key = start
                has_key = True
            if error != OK:
                bad = pos
                break
            pos = nxt
        row = stat_base[i] if fill else np.int64(0)
        n_stats = 0
        while inner >= 0 and inner < inner_end:
            number, wire, start, stop, nxt, error = _field(buf, inner, inner_end)
            if error != OK:
                if bad < 0:
                    bad = inner
                break
            if number == 5 and wire == 2:
                if fill:
                    _put_stat(buf, start, stop, row + n_stats, lut, ids, flags, name, tag, value)
                n_stats += 1
            elif not fill:
                if number == 1 and wire == 0 and not has_key:
                    key = start
                elif number == 2 and wire == 2:
                    entries[i, META_NAME_AT] = start
                    entries[i, META_NAME_LEN] = stop - start
                elif number == 4 and wire == 2:
                    entries[i, META_SHORT_AT] = start
                    entries[i, META_SHORT_LEN] = stop - start
            inner = nxt
        if not fill:
            entries[i, META_ID] = key
            entries[i, META_STATS] = n_stats
            entries[i, META_BAD_AT] = bad


@njit(cache=True, nogil=True)
def walk_lines(  # type: ignore[no-untyped-def]
    buf, begins, ends, first, last, mode, header,
    event_base, stat_base, zero_ps, type_lut, type_ids, stat_lut, stat_ids, stat_flags,
    start_ps, duration_ps, event_type, event_flags, stat_end, stat_name, stat_tag, stat_value, raw_ids,
):  # fmt: skip
    """Reads the lines `first` to `last - 1`.

    MEASURE fills `header` (see the columns above).  DECODE then fills events from row `event_base[line]` and stats from
    row `stat_base[line]`; `stat_end[event]` is the row after the event's last stat.  COLLECT_IDS writes the events'
    metadata ids to `raw_ids` instead.  All three passes skip the same damaged events.
    """
    dense_stats = len(stat_ids) == 0
    dense_types = len(type_ids) == 0
    for line in range(first, last):
        pos = begins[line]
        end = ends[line]
        event = event_base[line] if mode != MEASURE else np.int64(0)
        stat = stat_base[line] if mode == DECODE else np.int64(0)
        zero = zero_ps[line] if mode == DECODE else np.int64(0)
        lost = 0
        bad_at = np.int64(-1)
        bad_code = OK
        unsorted = False
        unnamed = 0
        bad_times = 0
        last_start = np.int64(-(1 << 62))
        last_duration = np.int64(0)
        while pos < end:
            if buf[pos] == 0x22:  # an event; the other fields of a line are rare
                number = np.int64(4)
                wire = np.int64(2)
                size, start = _varint(buf, pos + 1, end)
                stop = start + size
                nxt = stop
                error = OK
                if start < 0:
                    error = BAD_VARINT
                elif size < 0 or size > end - start:
                    error = OVERRUN
            else:
                number, wire, start, stop, nxt, error = _field(buf, pos, end)
            if error != OK:
                bad_at = pos
                bad_code = error
                if number == 4 and wire == 2:
                    lost += 1
                break
            if number == 4 and wire == 2:
                # One event.  Written out rather than called: this is the hot loop.
                at = start
                metadata_id = np.int64(0)
                offset = np.int64(0)
                duration = np.int64(0)
                flags = np.uint32(0)
                own = stat
                broken = OK
                while at < stop:
                    key = buf[at]
                    if key == 0x22:  # stats
                        if at + 1 < stop and buf[at + 1] < 0x80:
                            size = np.int64(buf[at + 1])
                            inner = at + 2
                        else:
                            size, inner = _varint(buf, at + 1, stop)
                        if inner < 0 or size < 0 or size > stop - inner:
                            broken = OVERRUN
                            break
                        if mode == DECODE:
                            # One stat, as in _put_stat.  Passing arrays to a function here would cost more than the
                            # decoding: each call counts references to each of them.
                            at = inner
                            inner = inner + size
                            stat_id = np.int64(0)
                            tag = 0
                            value = np.int64(0)
                            while at < inner:
                                key = buf[at]
                                if key == 0x08:
                                    stat_id, at = _varint(buf, at + 1, inner)
                                elif key == 0x20 or key == 0x18:
                                    tag = _TAG_INT if key == 0x20 else _TAG_UINT
                                    value, at = _varint(buf, at + 1, inner)
                                elif key == 0x38:
                                    tag = _TAG_STRING
                                    value, at = _varint(buf, at + 1, inner)
                                elif key == 0x2A or key == 0x32:
                                    tag = INLINE_STRING if key == 0x2A else INLINE_BYTES
                                    value = at + 1
                                    size, at = _varint(buf, at + 1, inner)
                                    if at >= 0:
                                        at = at + size if 0 <= size <= inner - at else np.int64(-1)
                                elif key == 0x11 and at + 9 <= inner:
                                    tag = _TAG_DOUBLE
                                    bits = np.uint64(0)
                                    for k in range(8):
                                        bits |= np.uint64(buf[at + 1 + k]) << np.uint64(8 * k)
                                    value = np.int64(bits)
                                    at += 9
                                else:
                                    _, _, _, _, at, _ = _field(buf, at, inner)
                                if at < 0:
                                    tag = 0
                                    value = np.int64(0)
                                    break
                            if dense_stats:
                                row = np.int64(stat_lut[stat_id]) if 0 <= stat_id < len(stat_lut) else np.int64(-1)
                                place = stat_id
                                if tag == _TAG_STRING:
                                    value = np.int64(stat_lut[value]) if 0 <= value < len(stat_lut) else np.int64(0)
                            else:
                                place = _look_up(stat_id, stat_lut, stat_ids)
                                row = np.int64(stat_lut[place]) if place >= 0 else np.int64(-1)
                                if tag == _TAG_STRING:
                                    ref = _look_up(value, stat_lut, stat_ids)
                                    value = np.int64(stat_lut[ref]) if ref >= 0 else np.int64(0)
                            if tag == _TAG_STRING and value < 0:
                                value = np.int64(0)
                            if row >= 0:
                                given = stat_flags[place]
                                if given != 0 and not (given & FLAG_IF_NONZERO and value == 0):
                                    flags |= given
                            else:
                                row = np.int64(0)
                            stat_name[own] = row
                            stat_tag[own] = tag
                            stat_value[own] = value
                            size = np.int64(0)
                        own += 1
                        at = inner + size
                    elif key == 0x08:
                        metadata_id, at = _varint(buf, at + 1, stop)
                    elif key == 0x10:
                        offset, at = _varint(buf, at + 1, stop)
                    elif key == 0x18:
                        duration, at = _varint(buf, at + 1, stop)
                    elif key == 0x28:  # num_occurrences
                        occurrences, at = _varint(buf, at + 1, stop)
                        if mode == DECODE and at >= 0:
                            flags |= np.uint32(FLAG_AGGREGATE)
                            stat_name[own] = NAME_OCCURRENCES
                            stat_tag[own] = _TAG_INT
                            stat_value[own] = occurrences
                        own += 1
                    else:
                        _, _, _, _, at, broken = _field(buf, at, stop)
                    if at < 0:
                        if broken == OK:
                            broken = BAD_VARINT
                        break
                if broken != OK:
                    lost += 1
                    if bad_at < 0:
                        bad_at = start
                        bad_code = broken
                else:
                    stat = own
                    if mode == DECODE:
                        if offset > TIME_LIMIT_PS or offset < -TIME_LIMIT_PS:
                            offset = np.int64(0)
                            duration = np.int64(0)
                            bad_times += 1
                        elif duration < 0 or duration > TIME_LIMIT_PS:
                            duration = np.int64(0)
                            bad_times += 1
                        begin = zero + offset
                        start_ps[event] = begin
                        duration_ps[event] = duration
                        place = metadata_id
                        if not dense_types:
                            place = _look_up(metadata_id, type_lut, type_ids)
                        kind = type_lut[place] if 0 <= place < len(type_lut) else np.int32(-1)
                        event_type[event] = kind
                        if kind < 0:
                            unnamed += 1
                        event_flags[event] = flags
                        stat_end[event] = stat
                        if begin < last_start or (begin == last_start and duration > last_duration):
                            unsorted = True
                        last_start = begin
                        last_duration = duration
                    elif mode == COLLECT_IDS:
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
                        header[line, NAME_AT] = start
                        header[line, NAME_LEN] = stop - start
                    elif number == 11:
                        header[line, DISPLAY_AT] = start
                        header[line, DISPLAY_LEN] = stop - start
            pos = nxt
        if mode == MEASURE:
            header[line, EVENTS] = event
            header[line, STATS] = stat
            header[line, BAD_AT] = bad_at
            header[line, BAD_CODE] = bad_code
            header[line, LOST_EVENTS] = lost
        elif mode == DECODE:
            header[line, UNSORTED] = unsorted
            header[line, UNNAMED] = unnamed
            header[line, BAD_TIMES] = bad_times


@njit(cache=True, nogil=True)
def inline_ranges(buf, limit, rows, value, starts, lengths):  # type: ignore[no-untyped-def]
    """Ranges of inline texts: `value[rows[i]]` is the position of the length that precedes the bytes."""
    for i in range(len(rows)):
        size, start = _varint(buf, value[rows[i]], limit)
        starts[i] = start
        lengths[i] = size


@njit(cache=True, nogil=True)
def intern(buf, starts, lengths, out, slots, unique_start, unique_length, count):  # type: ignore[no-untyped-def]
    """Gives equal byte ranges equal ids.

    Args:
        starts, lengths: int64 of shape (n,), the ranges.
        out: int32 of shape (n,), receives the ids; 0 for an empty range.
        slots: int32 hash table, its length a power of two and at least twice the ids that may come; -1 is free.
        unique_start, unique_length: int64, the range of each id; row 0 is the empty string.
        count: ids given so far.

    Returns:
        ids given now.
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(len(starts)):
        length = lengths[i]
        if length == 0:
            out[i] = 0
            continue
        start = starts[i]
        # A multiplicative hash over words of eight bytes, then over the bytes that are left.
        mixed = np.uint64(length) * np.uint64(0x9E3779B97F4A7C15)
        at = start
        end = start + length
        while at + 8 <= end:
            word = np.uint64(0)
            for k in range(8):
                word |= np.uint64(buf[at + k]) << np.uint64(8 * k)
            mixed = (mixed ^ word) * np.uint64(0xFF51AFD7ED558CCD)
            mixed ^= mixed >> np.uint64(32)
            at += 8
        while at < end:
            mixed = (mixed ^ np.uint64(buf[at])) * np.uint64(0x100000001B3)
            at += 1
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xC4CEB9FE1A85EC53)
        slot = (mixed ^ (mixed >> np.uint64(32))) & mask
        while True:
            held = slots[slot]
            if held < 0:
                slots[slot] = count
                unique_start[count] = start
                unique_length[count] = length
                out[i] = count
                count += 1
                break
            if unique_length[held] == length:
                other = unique_start[held]
                same = True
                for k in range(length):
                    if buf[other + k] != buf[start + k]:
                        same = False
                        break
                if same:
                    out[i] = held
                    break
            slot = (slot + np.uint64(1)) & mask
    return count


@njit(cache=True, nogil=True)
def gather_bytes(buf, starts, lengths, offsets, out):  # type: ignore[no-untyped-def]
    """Copies ranges of `buf` one after the other into `out`, range i to `offsets[i]`."""
    for i in range(len(starts)):
        to = offsets[i]
        at = starts[i]
        for k in range(lengths[i]):
            out[to + k] = buf[at + k]


@njit(cache=True, nogil=True)
def gather_stats(order, offsets, name, tag, value, out_end, out_name, out_tag, out_value):  # type: ignore[no-untyped-def]
    """Copies the stats of owners in a new order: owner `order[i]` becomes the i-th, its stats end at `out_end[i]`."""
    to = 0
    for i in range(len(order)):
        for row in range(offsets[order[i]], offsets[order[i] + 1]):
            out_name[to] = name[row]
            out_tag[to] = tag[row]
            out_value[to] = value[row]
            to += 1
        out_end[i] = to
