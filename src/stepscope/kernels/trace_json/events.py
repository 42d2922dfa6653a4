"""The elements of a traceEvents array, one after the other, into columns."""
# mypy: disallow-untyped-decorators=False, disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled
from stepscope.kernels.trace_json.layout import (
    AT,
    BLOB_FULL,
    CLOSED,
    DAMAGED,
    DAMAGED_AT,
    DOUBLE,
    FULL,
    HAS_DURATION,
    HAS_FLOW,
    HAS_PID,
    HAS_TID,
    HAS_TIME,
    INCOMPLETE,
    INT,
    LOCAL_ID,
    MEMBER_AT,
    MORE,
    NEGATIVE,
    NO_BLOB,
    NO_STAT,
    NO_TEXT,
    NONE,
    RECOVERING,
    ROWS,
    SLOW,
    SLOW_DOUBLE,
    STATS,
    STRING,
    TEXTS_FULL,
)
from stepscope.kernels.trace_json.members import after_guess, next_member, read_key, read_token, value_of_key
from stepscope.kernels.trace_json.numbers import read_number, read_time
from stepscope.kernels.trace_json.texts import intern
from stepscope.kernels.trace_json.values import read_container, skip_value
from stepscope.kernels.trace_json.words import (
    CLOSE,
    CLOSE_LIST,
    COMMA,
    NO,
    OPEN,
    OPEN_LIST,
    QUOTE,
    SPACE,
    byte_at,
    inner,
)

_KEY_PH, _KEY_TS, _KEY_ID, _KEY_ID2 = 0x7068, 0x7473, 0x6964, 0x696432
_KEY_CAT, _KEY_PID, _KEY_TID, _KEY_DUR = 0x636174, 0x706964, 0x746964, 0x647572
_KEY_NAME, _KEY_ARGS = 0x6E616D65, 0x61726773


@inner
def _args(buf, at, end, texts, stats, state, n_stats, n_slow):
    """Reads an args object: (position after it or why not, stats so far, slow numbers so far)."""
    at += 1
    last = np.int64(0)
    while True:
        at = next_member(buf, at, end)
        if at < 0:
            return at, n_stats, n_slow
        if byte_at(buf, at) == CLOSE:
            return at + 1, n_stats, n_slow
        state[MEMBER_AT] = at
        guess = np.int64(texts.follower[last])
        after = after_guess(buf, at, end, guess, texts)
        if after > 0:
            name = guess
            at = value_of_key(buf, after, end)
        else:
            begin, stop, at, escaped = read_key(buf, at, end)
        if at < 0:
            return at, n_stats, n_slow
        if n_stats >= len(stats.name) or n_slow >= len(stats.slow):
            return np.int64(NO_STAT), n_stats, n_slow
        if after < 0:
            name = intern(buf, begin, stop, escaped, NO, texts, state)
            if name < 0:
                return name, n_stats, n_slow
            texts.follower[last] = name
        last = name
        c = byte_at(buf, at)
        tag = STRING
        value = np.int64(0)
        if c == QUOTE:
            value, at = read_token(buf, at, end, NO, texts, state)
        elif c == OPEN or c == OPEN_LIST:
            value, at = read_container(buf, at, end, texts, state)
        else:
            token = at
            tag, value, double, at = read_number(buf, at, end)
            if tag == DOUBLE:
                stats.double[n_stats] = double
            elif tag == SLOW_DOUBLE:
                stats.slow[n_slow, 0] = n_stats
                stats.slow[n_slow, 1] = token
                stats.slow[n_slow, 2] = at
                n_slow += 1
                tag = DOUBLE
        if at < 0:
            return at, n_stats, n_slow
        if tag != NONE:
            stats.name[n_stats] = name
            stats.tag[n_stats] = tag
            if tag != DOUBLE:
                stats.value[n_stats] = value
            n_stats += 1


@inner
def _flow_id(buf, at, end, texts, state):
    """An event's `id`: its value if it is a whole number, else the id of its text; and the position after it."""
    if byte_at(buf, at) != QUOTE:
        tag, value, _, after = read_number(buf, at, end)
        if tag == INT:
            return value, after
    return read_token(buf, at, end, NO, texts, state)


@inner
def _is_local(text, texts):
    """True for an `id2` that counts within its process: {"local": id} rather than {"global": id}."""
    begin = texts.offsets[text]
    return texts.offsets[text + 1] - begin > 2 and byte_at(texts.blob, begin + 2) == 0x6C


@inner
def _event(buf, at, end, texts, rows, stats, state):
    """Reads the object at `at` into the next free row: the position after it, or why not.

    The row counts only once the caller says so, and so do its stats.
    """
    row = state[ROWS]
    n_stats = state[STATS]
    n_slow = state[SLOW]
    flags = 0
    phase = 0
    cat = name = pid = tid = flow = np.int64(0)
    us = frac = duration_us = duration_frac = np.int64(0)
    at += 1
    while True:
        at = next_member(buf, at, end)
        if at < 0:
            return at
        if byte_at(buf, at) == CLOSE:
            break
        state[MEMBER_AT] = at
        begin, stop, at, _ = read_key(buf, at, end)
        if at < 0:
            return at
        key = np.int64(0)
        if stop - begin <= 4:
            for k in range(begin, stop):
                key = (key << 8) | np.int64(byte_at(buf, k))
        if key == _KEY_NAME or key == _KEY_CAT or key == _KEY_PID or key == _KEY_TID:
            guess = NO
            if row > 0 and key != _KEY_NAME:
                last = rows.cat if key == _KEY_CAT else rows.pid if key == _KEY_PID else rows.tid
                guess = np.int64(last[row - 1])
            text, at = read_token(buf, at, end, guess, texts, state)
            if key == _KEY_NAME:
                name = text
            elif key == _KEY_CAT:
                cat = text
            elif key == _KEY_PID:
                pid = text
                flags |= HAS_PID
            else:
                tid = text
                flags |= HAS_TID
        elif key == _KEY_PH:
            if byte_at(buf, at) == QUOTE and at + 1 < end:
                phase = byte_at(buf, at + 1)
            at = skip_value(buf, at, end)
        elif key == _KEY_TS:
            us, frac, good, at = read_time(buf, at, end)
            flags = flags | HAS_TIME if good else flags & ~HAS_TIME
        elif key == _KEY_DUR:
            duration_us, duration_frac, good, at = read_time(buf, at, end)
            flags = flags | HAS_DURATION if good else flags & ~HAS_DURATION
        elif key == _KEY_ID:
            flow, at = _flow_id(buf, at, end, texts, state)
            flags |= HAS_FLOW
        elif key == _KEY_ID2 and byte_at(buf, at) == OPEN:
            flow, at = read_container(buf, at, end, texts, state)
            flags |= HAS_FLOW
            if flow > 0 and _is_local(flow, texts):
                flags |= LOCAL_ID
        elif key == _KEY_ARGS and byte_at(buf, at) == OPEN:
            at, n_stats, n_slow = _args(buf, at, end, texts, stats, state, n_stats, n_slow)
        else:
            at = skip_value(buf, at, end)
        if at < 0:
            return at
    if duration_us < 0 or duration_frac < 0:
        flags |= NEGATIVE
        duration_us = duration_frac = np.int64(0)
    rows.phase[row] = phase
    rows.flags[row] = flags
    rows.cat[row] = cat
    rows.name[row] = name
    rows.pid[row] = pid
    rows.tid[row] = tid
    rows.us[row] = us
    rows.frac_ps[row] = frac
    rows.duration_us[row] = duration_us
    rows.duration_frac_ps[row] = duration_frac
    rows.flow[row] = flow
    rows.stat_end[row] = n_stats
    state[STATS] = n_stats
    state[SLOW] = n_slow
    return at + 1


@compiled
def scan_events(buf, end, texts, rows, stats, state):
    """Reads the elements of a traceEvents array from `state[AT]` on.

    Args:
        buf: uint8 of shape (bytes,), read up to `end`.
        texts: the texts so far, added to.
        rows, stats: filled from `state[ROWS]` and `state[STATS]` on.
        state: int64 of shape (STATE_WIDTH,).

    Returns:
        MORE at the end of what there is, `state[AT]` then standing before what was not read; CLOSED after the closing
        bracket; FULL, TEXTS_FULL or BLOB_FULL if room is needed for the event at `state[AT]`.
    """
    at = state[AT]
    while True:
        while at < end and (byte_at(buf, at) <= SPACE or byte_at(buf, at) == COMMA):
            at += 1
        state[AT] = at
        if at >= end:
            return MORE
        c = byte_at(buf, at)
        if c == OPEN:
            if state[ROWS] >= len(rows.phase):
                return FULL
            stats_before = state[STATS]
            slow_before = state[SLOW]
            after = _event(buf, at, end, texts, rows, stats, state)
            if after >= 0:
                if state[RECOVERING] and rows.phase[state[ROWS]] == 0:  # an object inside a damaged event
                    state[STATS] = stats_before
                    state[SLOW] = slow_before
                else:
                    state[ROWS] += 1
                    state[RECOVERING] = 0
                at = after
                continue
            if after == INCOMPLETE:
                return MORE
            if after == NO_STAT:
                return FULL
            if after == NO_TEXT:
                return TEXTS_FULL
            if after == NO_BLOB:
                return BLOB_FULL
            # Going on from where it failed, not from its second byte, keeps hostile nesting linear.
            at = max(at, state[MEMBER_AT] - 1)
        elif c == CLOSE_LIST and not state[RECOVERING]:
            state[AT] = at + 1
            return CLOSED
        if not state[RECOVERING]:
            state[RECOVERING] = 1
            if state[DAMAGED] == 0:
                state[DAMAGED_AT] = state[AT]
            state[DAMAGED] += 1
        at += 1
        while at < end and byte_at(buf, at) != OPEN:
            at += 1
