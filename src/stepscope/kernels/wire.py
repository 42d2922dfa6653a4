"""Protobuf wire decoding of XSpace messages into columns.

Everything works on byte ranges of one buffer and never looks past the end of its range, so damaged input can at worst
give wrong numbers inside the damaged message, never a read out of bounds.  Framing is checked level by level: a bad
event is skipped by its length, a bad line ends that line, a bad plane ends that plane.

    space  = { plane }            scan_fields
    plane  = { line | metadata }  scan_fields, walk_metadata
    line   = { event }            walk_lines, once to count and once to fill
    event  = { stat }

Small helpers are inlined and the hot loop is written out: a call that passes arrays counts references to each of them,
which costs more than the decoding.
"""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled

# Why a range could not be read to its end.
OK, BAD_VARINT, BAD_TAG, OVERRUN = 0, 1, 2, 3

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

# Columns of scan_fields' `fields`, one row a field: the row of its message; its number, negative if it runs over the
# end; for a length-delimited field its range and place, for others the value and -1.
FIELD_MESSAGE, FIELD_NUMBER, FIELD_START, FIELD_STOP, FIELD_PLACE, FIELD_WIDTH = range(6)

# Columns of intern's `texts`, one row a text.
TEXT_START, TEXT_LENGTH, TEXT_HASH, TEXT_WIDTH = range(4)

# Columns of walk_metadata's `entries`, one row a metadata entry.
(
    META_ID,
    META_NAME,
    META_DISPLAY,
    META_STATS,
    META_BAD_AT,
    META_BAD_CODE,
    META_WIDTH,
) = range(7)

# Tags of stats whose text lies in the buffer; `value` is the position of its length.
INLINE = 128  # added to the tag that the stat has once its text is interned
INLINE_STRING, INLINE_BYTES = 133, 134
_TAG_DOUBLE, _TAG_UINT, _TAG_INT, _TAG_STRING = 1, 2, 3, 5

# Flags of an event that come from its stats, 16 bits; the bits below are the caller's.
FLAG_AGGREGATE = 1 << 15
FLAG_IF_NONZERO = 1 << 16  # in a stat's flags only: set the others for a value other than 0

# The name of the stat that an aggregate's count becomes, until its row in the string table is known.
NAME_OCCURRENCES = -1


@compiled(inline="always")
def _byte(buf, pos):  # type: ignore[no-untyped-def]
    """One byte as int64.  The position is read as unsigned, which saves the test for an index from the end."""
    return np.int64(buf[np.uint64(pos)])


@compiled(inline="always")
def _varint(buf, pos, end):  # type: ignore[no-untyped-def]
    """Value (as int64 bits) and the position after it, -1 if there is none before `end`.

    It reads first, never past the buffer, and checks after.
    """
    last = len(buf) - 1
    byte = np.int64(buf[np.uint64(min(pos, last))])
    pos += 1
    value = byte & 0x7F
    shift = 7
    while byte >= 0x80 and shift < 70:
        byte = np.int64(buf[np.uint64(min(pos, last))])
        pos += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    if pos > end or byte >= 0x80:
        pos = np.int64(-1)
    return value, pos


@compiled(inline="always")
def _fixed(buf, pos, width):  # type: ignore[no-untyped-def]
    """The little-endian number in `width` bytes, as int64 bits."""
    value = np.uint64(0)
    for k in range(width):
        value |= np.uint64(buf[np.uint64(pos + k)]) << np.uint64(8 * k)
    return np.int64(value)


@compiled
def _field(buf, pos, end):  # type: ignore[no-untyped-def]
    """One field: (number, wire type, value or start, end or -1, next position or -1, error, place).

    The place of a length-delimited field is the position of its length; texts go by it.  A group counts as one field
    without a value.
    """
    none = np.int64(-1)
    depth = 0
    while True:
        tag, place = _varint(buf, pos, end)
        if place < 0:
            return 0, 0, none, none, none, OVERRUN if end - pos < 10 else BAD_VARINT, none
        number = tag >> 3
        wire = tag & 7
        if number <= 0 or number > 0x1FFFFFFF or wire > 5:
            return 0, 0, none, none, none, BAD_TAG, none
        value = np.int64(0)
        stop = none
        nxt = place
        if wire == 0 or wire == 2:
            value, nxt = _varint(buf, place, end)
            if nxt < 0:
                return number, wire, end, end, none, OVERRUN if end - place < 10 else BAD_VARINT, place
            if wire == 2:
                if value < 0 or value > end - nxt:
                    return number, wire, nxt, end, none, OVERRUN, place
                stop = nxt + value
                value = nxt
                nxt = stop
        elif wire == 1 or wire == 5:
            width = 8 if wire == 1 else 4
            if width > end - place:
                return number, wire, none, none, none, OVERRUN, place
            value = _fixed(buf, place, width)
            nxt = place + width
        else:
            depth += 1 if wire == 3 else -1
            if depth < 0:
                return 0, 0, none, none, none, BAD_TAG, none
        if depth == 0:
            return number, wire, value, stop, nxt, OK, place
        pos = nxt


@compiled
def scan_fields(buf, begins, ends, fields, bad_at, bad_code):  # type: ignore[no-untyped-def]
    """Lists the fields of messages.

    Args:
        buf: uint8 of shape (bytes,).
        begins, ends: int64 of shape (messages,), the messages' ranges.
        fields: int64 of shape (room, FIELD_WIDTH), filled as far as there is room; see the FIELD_ columns.
        bad_at, bad_code: int64 of shape (messages,), filled with the position of the damage or -1, and what it is.

    Returns:
        fields seen, a last length-delimited one that runs over the end included.
    """
    count = 0
    for message in range(len(begins)):
        pos = begins[message]
        end = ends[message]
        bad_at[message] = -1
        while pos < end:
            number, wire, start, stop, nxt, error, place = _field(buf, pos, end)
            if error == OK or (error == OVERRUN and wire == 2):
                if count < len(fields):
                    fields[count, FIELD_MESSAGE] = message
                    fields[count, FIELD_NUMBER] = number if error == OK else -number
                    fields[count, FIELD_START] = start
                    fields[count, FIELD_STOP] = stop
                    fields[count, FIELD_PLACE] = place
                count += 1
            if error != OK:
                bad_at[message] = pos
                bad_code[message] = error
                break
            pos = nxt
    return count


@compiled
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


@compiled
def decode_stats(buf, begins, ends, lut, ids, name, tag, value):  # type: ignore[no-untyped-def]
    """Decodes XStat messages, one a range, into the rows 0.. of `name`, `tag` and `value`.

    Args:
        lut, ids: the string row of each stat metadata id, see `_look_up`; -1 for none.

    Returns:
        (damaged stats, where the first of them starts or -1, what is wrong with it).
    """
    lost = 0
    lost_at = np.int64(-1)
    code = OK
    for i in range(len(begins)):
        pos = begins[i]
        name[i] = 0
        tag[i] = 0
        value[i] = 0
        error = OK
        while 0 <= pos < ends[i]:
            number, wire, start, stop, pos, error, place = _field(buf, pos, ends[i])
            if wire == 0 and number == 1:
                row = _look_up(start, lut, ids)
                name[i] = max(lut[row], 0) if row >= 0 else 0
            elif wire == 0 and (number == 3 or number == 4):
                tag[i] = _TAG_UINT if number == 3 else _TAG_INT
                value[i] = start
            elif wire == 0 and number == 7:
                row = _look_up(start, lut, ids)
                tag[i] = _TAG_STRING
                value[i] = max(lut[row], 0) if row >= 0 else 0
            elif wire == 1 and number == 2:
                tag[i] = _TAG_DOUBLE
                value[i] = start
            elif wire == 2 and (number == 5 or number == 6):
                tag[i] = INLINE_STRING if number == 5 else INLINE_BYTES
                value[i] = place
        if pos < 0:
            tag[i] = 0
            value[i] = 0
            lost += 1
            if lost_at < 0:
                lost_at = begins[i]
                code = error
    return lost, lost_at, code


@compiled
def walk_metadata(buf, begins, ends, entries, stat_base, stat_begins, stat_ends):  # type: ignore[no-untyped-def]
    """Reads map entries of event or stat metadata, one a range.

    Args:
        entries: int64 of shape (entries, META_WIDTH), filled; see the META_ columns.
        stat_base: int64 of shape (entries,), the first row of each entry's stats in `stat_begins` and `stat_ends`,
            which receive the ranges of the stats as far as there is room.
    """
    for i in range(len(begins)):
        pos = begins[i]
        inner = np.int64(-1)
        inner_end = np.int64(-1)
        has_key = False
        bad = np.int64(-1)
        code = OK
        while pos < ends[i]:
            number, wire, start, stop, nxt, error, place = _field(buf, pos, ends[i])
            if wire == 2 and number == 2 and (error == OK or error == OVERRUN):
                inner = start
                inner_end = stop
            elif error == OK and wire == 0 and number == 1:
                entries[i, META_ID] = start
                has_key = True
            if error != OK:
                bad = pos
                code = error
                break
            pos = nxt
        stats = 0
        while inner >= 0 and inner < inner_end:
            number, wire, start, stop, nxt, error, place = _field(buf, inner, inner_end)
            if error != OK:
                bad = inner
                code = error
                break
            if wire == 0 and number == 1 and not has_key:
                entries[i, META_ID] = start
            elif wire == 2 and number == 2:
                entries[i, META_NAME] = place
            elif wire == 2 and number == 4:
                entries[i, META_DISPLAY] = place
            elif wire == 2 and number == 5:
                if i < len(stat_base) and stat_base[i] + stats < len(stat_begins):
                    stat_begins[stat_base[i] + stats] = start
                    stat_ends[stat_base[i] + stats] = stop
                stats += 1
            inner = nxt
        entries[i, META_STATS] = stats
        entries[i, META_BAD_AT] = bad
        entries[i, META_BAD_CODE] = code


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
            if _byte(buf, pos) == 0x22:  # an event; the other fields of a line are rare
                number = np.int64(4)
                wire = np.int64(2)
                size, start = _varint(buf, pos + 1, end)
                error = OK
                if start < 0:
                    error = OVERRUN if end - pos < 11 else BAD_VARINT
                elif size < 0 or size > end - start:
                    error = OVERRUN
                else:
                    stop = start + size
                    nxt = stop
            else:
                number, wire, start, stop, nxt, error, place = _field(buf, pos, end)
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
                    key = _byte(buf, at)
                    if key == 0x22:  # stats
                        if at + 1 < stop and _byte(buf, at + 1) < 0x80:
                            size = _byte(buf, at + 1)
                            inner = at + 2
                        else:
                            size, inner = _varint(buf, at + 1, stop)
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
                                key = _byte(buf, inner)
                                if key == 0x08:  # metadata_id
                                    stat_id, inner = _varint(buf, inner + 1, at)
                                elif key == 0x20 or key == 0x18:  # int64_value, uint64_value
                                    tag = _TAG_INT if key == 0x20 else _TAG_UINT
                                    value, inner = _varint(buf, inner + 1, at)
                                elif key == 0x38:  # ref_value
                                    tag = _TAG_STRING
                                    value, inner = _varint(buf, inner + 1, at)
                                elif key == 0x2A or key == 0x32:  # str_value, bytes_value
                                    tag = INLINE_STRING if key == 0x2A else INLINE_BYTES
                                    value = inner + 1
                                    size, inner = _varint(buf, inner + 1, at)
                                    if inner >= 0:
                                        inner = inner + size if 0 <= size <= at - inner else np.int64(-1)
                                elif key == 0x11 and inner + 9 <= at:  # double_value
                                    tag = _TAG_DOUBLE
                                    value = _fixed(buf, inner + 1, 8)
                                    inner += 9
                                else:
                                    _, _, _, _, inner, stat_error, _ = _field(buf, inner, at)
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
                                spot = _look_up(stat_id, stat_lut, stat_ids)
                                if tag == _TAG_STRING:
                                    ref = _look_up(value, stat_lut, stat_ids)
                            if tag == _TAG_STRING:
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
                        got, at = _varint(buf, at + 1, stop)
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
                                stat_tag[own] = _TAG_INT
                                stat_value[own] = got
                            own += 1
                        if at < 0:
                            break
                    else:
                        _, _, _, _, at, event_error, _ = _field(buf, at, stop)
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
                            spot = _look_up(metadata_id, type_lut, type_ids)
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


@compiled(inline="always")
def _hash(buf, start, length):  # type: ignore[no-untyped-def]
    """A multiplicative hash over words of eight bytes, of which the last overlaps the one before; `length` is not 0."""
    mixed = np.uint64(length) * np.uint64(0x9E3779B97F4A7C15)
    at = start
    end = start + length
    while at < end:
        if length >= 8:
            word = np.uint64(_fixed(buf, min(at, end - 8), 8))
        else:
            word = np.uint64(_fixed(buf, start, length))
        mixed = (mixed ^ word) * np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(32)
        at += 8
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    return np.int64(mixed ^ (mixed >> np.uint64(29)))


@compiled
def intern(buf, tag, value, first, slots, texts, count):  # type: ignore[no-untyped-def]
    """Gives equal texts of the buffer equal ids, from the row `first` on, until all are done or the table is full.

    Args:
        tag: uint8 of shape (n,); rows from INLINE on are texts, and lose INLINE.
        value: int64 of shape (n,), the places of these texts (0 for none), replaced by their ids; 0 for empty ones.
        slots: int32 hash table, its length a power of two and more than the rows of `texts`; -1 is free.
        texts: int64 of shape (room, TEXT_WIDTH), one row an id; see the TEXT_ columns.  Row 0 is the empty string.
        count: ids given so far.

    Returns:
        (rows done, ids given).
    """
    mask = len(slots) - 1
    for row in range(first, len(tag)):
        if tag[row] < INLINE:
            continue
        text = np.int32(0)
        length = np.int64(0)
        start = np.int64(0)
        if value[row] > 0:
            length, start = _varint(buf, value[row], len(buf))
        if 0 < length <= len(buf) - start:
            mixed = _hash(buf, start, length)
            slot = mixed & mask
            while slots[slot] >= 0:
                text = slots[slot]
                if texts[text, TEXT_HASH] == mixed and texts[text, TEXT_LENGTH] == length:
                    other = texts[text, TEXT_START]
                    different = np.uint8(0)
                    for k in range(length):
                        different |= buf[np.uint64(other + k)] ^ buf[np.uint64(start + k)]
                    if different == 0:
                        break
                slot = (slot + 1) & mask
            if slots[slot] < 0:
                if count == len(texts):
                    return row, count
                text = np.int32(count)
                slots[slot] = text
                texts[text, TEXT_START] = start
                texts[text, TEXT_LENGTH] = length
                texts[text, TEXT_HASH] = mixed
                count += 1
        tag[row] -= INLINE
        value[row] = text
    return len(tag), count


@compiled
def rehash(texts, slots):  # type: ignore[no-untyped-def]
    """Enters all rows of `texts` but the first into an empty hash table; see `intern`."""
    mask = len(slots) - 1
    for row in range(1, len(texts)):
        slot = texts[row, TEXT_HASH] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = row


@compiled
def gather_bytes(buf, starts, lengths, offsets, out):  # type: ignore[no-untyped-def]
    """Copies ranges of `buf` one after the other into `out`, range i to `offsets[i]`."""
    for i in range(len(starts)):
        to = offsets[i]
        at = starts[i]
        for k in range(lengths[i]):
            out[to + k] = buf[at + k]
