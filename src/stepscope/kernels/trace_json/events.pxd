"""One event: its members into a row, its args into stats."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from stepscope.kernels.trace_json.columns cimport (
    Rows, Stats, make_room_for_rows, make_room_for_slow, make_room_for_stats,
)
from stepscope.kernels.trace_json.layout cimport (
    CLOSE, DOUBLE, FLOW_IS_TEXT, HAS_DURATION, HAS_FLOW, HAS_PID, HAS_TID, HAS_TIME, INT, LOCAL_ID, NEGATIVE, NO_MEMORY,
    NONE, OPEN, OPEN_LIST, QUOTE, SLOW_DOUBLE, SMALL_L, STRING,
)
from stepscope.kernels.trace_json.members cimport Key, after_guess, next_member, read_key, read_token, value_of_key
from stepscope.kernels.trace_json.numbers cimport Number, Time, read_number, read_time
from stepscope.kernels.trace_json.texts cimport Texts, intern
from stepscope.kernels.trace_json.values cimport Token, read_container, value_end
from stepscope.kernels.trace_json.words cimport Window, byte_at, word_at

cdef enum:
    # Keys as numbers, their bytes from low to high.
    KEY_PH = 0x6870
    KEY_TS = 0x7374
    KEY_ID = 0x6469
    KEY_ID2 = 0x326469
    KEY_CAT = 0x746163
    KEY_PID = 0x646970
    KEY_TID = 0x646974
    KEY_DUR = 0x727564
    KEY_NAME = 0x656D616E
    KEY_ARGS = 0x73677261


cdef struct Scan:
    # What is scanned, and what is filled.  `member_at` is where the member began that was read last.
    Window text
    Texts texts
    Rows rows
    Stats stats
    int64_t member_at


cdef struct Event:
    # A row before it is written.  Its stats stand behind those that count, and count once it is written.
    uint8_t phase
    uint8_t flags
    int64_t cat
    int64_t name
    int64_t pid
    int64_t tid
    int64_t flow
    Time start
    Time duration
    int64_t stats
    int64_t slow


cdef inline int64_t read_event(Scan *scan, int64_t at) noexcept nogil:
    """Reads the object at `at` into the next row, which does not count yet: the position after it, or why not."""
    cdef Event event
    cdef Key key
    event.phase = event.flags = 0
    event.cat = event.name = event.pid = event.tid = event.flow = 0
    event.start.us = event.start.frac_ps = event.duration.us = event.duration.frac_ps = 0
    event.stats = scan.stats.count
    event.slow = scan.stats.slow_count
    at += 1
    while True:
        at = next_member(scan.text, at)
        if at < 0:
            return at
        if byte_at(scan.text, at) == CLOSE:
            break
        scan.member_at = at
        key = read_key(scan.text, at)
        if key.value < 0:
            return key.value
        at = _read_member(scan, &event, _short_key(scan.text, key), key.value)
        if at < 0:
            return at
    return at + 1 if put_row(scan, &event) else NO_MEMORY


cdef inline uint64_t _short_key(Window text, Key key) noexcept nogil:
    """A key of up to four bytes as a number, 0 for longer ones."""
    cdef uint64_t number = 0
    cdef int64_t length = key.stop - key.begin
    cdef int64_t at
    if length > 4:
        return 0
    if key.begin + 8 <= text.end:
        return word_at(text, key.begin) & ((<uint64_t>1 << (8 * length)) - 1)
    for at in range(length):
        number |= <uint64_t>byte_at(text, key.begin + at) << (8 * at)
    return number


cdef inline int64_t _read_member(Scan *scan, Event *event, uint64_t key, int64_t at) noexcept nogil:
    """Reads the value at `at`: the position after it, or why not."""
    cdef Window text = scan.text
    cdef int64_t row = scan.rows.count
    cdef Token token
    if key == KEY_NAME:
        token = read_token(text, at, 0, &scan.texts)
        event.name = token.text
        return token.after
    if key == KEY_CAT:
        token = read_token(text, at, scan.rows.cat[row - 1] if row else 0, &scan.texts)
        event.cat = token.text
        return token.after
    if key == KEY_PID:
        token = read_token(text, at, scan.rows.pid[row - 1] if row else 0, &scan.texts)
        event.pid = token.text
        event.flags |= HAS_PID
        return token.after
    if key == KEY_TID:
        token = read_token(text, at, scan.rows.tid[row - 1] if row else 0, &scan.texts)
        event.tid = token.text
        event.flags |= HAS_TID
        return token.after
    if key == KEY_PH:
        if byte_at(text, at) == QUOTE and at + 1 < text.end:
            event.phase = byte_at(text, at + 1)
        return value_end(text, at)
    if key == KEY_TS:
        event.start = read_time(text, at)
        event.flags = event.flags | HAS_TIME if event.start.good else event.flags & ~HAS_TIME
        return event.start.after
    if key == KEY_DUR:
        event.duration = read_time(text, at)
        event.flags = event.flags | HAS_DURATION if event.duration.good else event.flags & ~HAS_DURATION
        return event.duration.after
    if key == KEY_ID:
        return _read_flow(scan, event, at)
    if key == KEY_ID2 and byte_at(text, at) == OPEN:
        return _read_scoped_flow(scan, event, at)
    if key == KEY_ARGS and byte_at(text, at) == OPEN:
        return _read_args(scan, event, at)
    return value_end(text, at)


cdef inline int64_t _read_flow(Scan *scan, Event *event, int64_t at) noexcept nogil:
    """An event's `id`: its value if it is a whole number, else the id of its text."""
    cdef Number number
    cdef Token token
    event.flags |= HAS_FLOW
    if byte_at(scan.text, at) != QUOTE:
        number = read_number(scan.text, at)
        if number.tag == INT:
            event.flags &= ~FLOW_IS_TEXT
            event.flow = number.integer
            return number.after
    token = read_token(scan.text, at, 0, &scan.texts)
    event.flags |= FLOW_IS_TEXT
    event.flow = token.text
    return token.after


cdef inline int64_t _read_scoped_flow(Scan *scan, Event *event, int64_t at) noexcept nogil:
    """An event's `id2`, which counts within its process, {"local": id}, or everywhere, {"global": id}."""
    cdef Token token = read_container(scan.text, at, &scan.texts)
    cdef int64_t begin
    event.flags |= HAS_FLOW | FLOW_IS_TEXT
    event.flow = token.text
    if token.text > 0:
        begin = scan.texts.offsets[token.text]
        if scan.texts.offsets[token.text + 1] - begin > 2 and scan.texts.blob[begin + 2] == SMALL_L:
            event.flags |= LOCAL_ID
    return token.after


cdef inline int64_t _read_args(Scan *scan, Event *event, int64_t at) noexcept nogil:
    """Reads an args object into stats: the position after it, or why not."""
    cdef Window text = scan.text
    cdef Texts *texts = &scan.texts
    cdef int64_t last = 0
    cdef int64_t name, value
    cdef Key key
    at += 1
    while True:
        at = next_member(text, at)
        if at < 0:
            return at
        if byte_at(text, at) == CLOSE:
            return at + 1
        scan.member_at = at
        name = texts.follower[last]
        value = after_guess(text, at, name, texts)
        if value >= 0:
            value = value_of_key(text, value)
            if value < 0:
                return value
        else:
            key = read_key(text, at)
            if key.value < 0:
                return key.value
            name = intern(texts, text.data + key.begin, key.stop - key.begin, key.escaped, 0)
            if name < 0:
                return name
            texts.follower[last] = <int32_t>name
            value = key.value
        last = name
        at = _read_stat(scan, event, name, value)
        if at < 0:
            return at


cdef inline int64_t _read_stat(Scan *scan, Event *event, int64_t name, int64_t at) noexcept nogil:
    """Reads the value at `at` as a stat of that name: the position after it, or why not."""
    cdef uint8_t c = byte_at(scan.text, at)
    cdef int64_t bits = 0
    cdef Number number
    cdef Token token
    if c == QUOTE:
        token.text = scan.texts.value[name]
        token.after = after_guess(scan.text, at, token.text, &scan.texts)
        if token.after < 0:
            token = read_token(scan.text, at, 0, &scan.texts)
            if token.after >= 0:
                scan.texts.value[name] = <int32_t>token.text
    elif c == OPEN or c == OPEN_LIST:
        token = read_container(scan.text, at, &scan.texts)
    else:
        number = read_number(scan.text, at)
        if number.after < 0 or number.tag == NONE:
            return number.after
        if number.tag == SLOW_DOUBLE:
            if not _put_slow(scan, event, at, number.after):
                return NO_MEMORY
        if number.tag == DOUBLE:
            memcpy(&bits, &number.real, sizeof(double))
        else:
            bits = number.integer
        return number.after if put_stat(scan, event, name, number.tag, bits) else NO_MEMORY
    if token.after >= 0 and not put_stat(scan, event, name, STRING, token.text):
        return NO_MEMORY
    return token.after


cdef inline bint put_stat(Scan *scan, Event *event, int64_t name, int tag, int64_t bits) noexcept nogil:
    cdef Stats *stats = &scan.stats
    if not make_room_for_stats(stats, event.stats + 1):
        return False
    stats.name[event.stats] = <int32_t>name
    stats.tag[event.stats] = DOUBLE if tag == SLOW_DOUBLE else <uint8_t>tag
    stats.value[event.stats] = bits
    event.stats += 1
    return True


cdef inline bint _put_slow(Scan *scan, Event *event, int64_t begin, int64_t end) noexcept nogil:
    cdef Stats *stats = &scan.stats
    if not make_room_for_slow(stats, event.slow + 1):
        return False
    stats.slow[3 * event.slow] = event.stats
    stats.slow[3 * event.slow + 1] = begin
    stats.slow[3 * event.slow + 2] = end
    event.slow += 1
    return True


cdef inline bint put_row(Scan *scan, const Event *event) noexcept nogil:
    """Writes a row behind those that count."""
    cdef Rows *rows = &scan.rows
    cdef int64_t row = rows.count
    cdef bint negative = event.duration.us < 0 or event.duration.frac_ps < 0
    if not make_room_for_rows(rows, 1):
        return False
    rows.phase[row] = event.phase
    rows.flags[row] = event.flags | NEGATIVE if negative else event.flags
    rows.cat[row] = <int32_t>event.cat
    rows.name[row] = <int32_t>event.name
    rows.pid[row] = <int32_t>event.pid
    rows.tid[row] = <int32_t>event.tid
    rows.us[row] = event.start.us
    rows.frac_ps[row] = <int32_t>event.start.frac_ps
    rows.duration_us[row] = 0 if negative else event.duration.us
    rows.duration_frac_ps[row] = 0 if negative else <int32_t>event.duration.frac_ps
    rows.flow[row] = event.flow
    rows.stat_end[row] = event.stats
    scan.stats.count = event.stats
    scan.stats.slow_count = event.slow
    return True
