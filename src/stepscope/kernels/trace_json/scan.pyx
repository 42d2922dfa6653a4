"""The elements of a traceEvents array, one after the other, into columns."""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

import sys

import numpy as np

from stepscope.kernels.memory cimport free
from stepscope.kernels.trace_json cimport layout
from stepscope.kernels.trace_json.columns cimport (
    Rows, Stats, make_room_for_rows, make_room_for_stats, resized,
)
from stepscope.kernels.trace_json.events cimport Scan, read_event
from stepscope.kernels.trace_json.layout cimport (
    CLOSE, CLOSE_LIST, COMMA, FLOW_IS_TEXT, INCOMPLETE, NO_MEMORY, OPEN, QUOTE, SPACE, STRING,
)
from stepscope.kernels.trace_json.texts cimport Texts, intern, make_room_for_bytes, make_room_for_text
from stepscope.kernels.trace_json.values cimport skip_spaces, value_end
from stepscope.kernels.trace_json.words cimport Window, byte_at

MORE, CLOSED, STOPPED = layout.MORE, layout.CLOSED, layout.STOPPED
MALFORMED = layout.MALFORMED
HAS_TIME, HAS_DURATION, NEGATIVE = layout.HAS_TIME, layout.HAS_DURATION, layout.NEGATIVE
HAS_PID, HAS_TID, HAS_FLOW, LOCAL_ID = layout.HAS_PID, layout.HAS_TID, layout.HAS_FLOW, layout.LOCAL_ID


def skip_value(const uint8_t[::1] text, int64_t at, int64_t end):
    """Position after the JSON value at `at`, MALFORMED, or another number below 0 if it goes on behind `end`."""
    return value_end(_window(text, at, end), at)


def skip_space(const uint8_t[::1] text, int64_t at, int64_t end, bint commas):
    """Position of the next byte that is no space, nor a comma if `commas`; `end` if there is none."""
    return skip_spaces(_window(text, at, end), at, commas)


def find_event(const uint8_t[::1] text, int64_t at, int64_t end):
    """Position of an opening brace behind `at` that looks like that of an event; `end` if there is none.

    It stands between a brace with a comma and a key.  A text or an argument may look alike: who scans from there has
    to see that what is before ends there.
    """
    cdef Window window = _window(text, at, end)
    cdef int64_t first = at
    with nogil:
        while at < end and not (byte_at(window, at) == OPEN and _is_between_events(window, at, first)):
            at += 1
    return at


cdef bint _is_between_events(Window text, int64_t at, int64_t first) noexcept nogil:
    cdef int64_t after = skip_spaces(text, at + 1, False)
    if after >= text.end or byte_at(text, after) != QUOTE:
        return False
    at -= 1
    while at > first and byte_at(text, at) <= SPACE:
        at -= 1
    if at <= first or byte_at(text, at) != COMMA:
        return False
    at -= 1
    while at > first and byte_at(text, at) <= SPACE:
        at -= 1
    return byte_at(text, at) == CLOSE


cdef Window _window(const uint8_t[::1] text, int64_t at, int64_t end) except *:
    """The text up to `end`.  Raises ValueError if `at` or `end` lies outside."""
    cdef Window window
    if not 0 <= at <= end <= text.shape[0]:
        raise ValueError(f"no part of {text.shape[0]} bytes: {at} to {end}")
    window.data = &text[0] if text.shape[0] else NULL
    window.end = end
    return window


cdef class Column:
    """A finished column, as memory that numpy can use."""

    cdef void *data
    cdef Py_ssize_t nbytes

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.nbytes, 0, flags)


cdef object _array(void **column, int64_t count, object dtype):
    """A column as a numpy array, which owns its memory from then on."""
    cdef Column owner = Column.__new__(Column)
    cdef int64_t nbytes = count * dtype.itemsize
    if not count:
        return np.empty(0, dtype)
    resized(column, nbytes, 1)  # what is not used goes back to the system
    owner.data = column[0]
    owner.nbytes = nbytes
    column[0] = NULL
    return np.frombuffer(owner, dtype)


cdef class Scanner:
    """Reads events into columns, and their texts into a table in which equal bytes have an equal id.

    Texts keep the backslashes of JSON.  Text 0 is empty.

    Attributes:
        at: where the last scan ended.
        recovering: whether it ended looking for an event behind damage.
        damaged: places that were stepped over; `damaged_at` is where the first is in its text.
    """

    def __cinit__(self):
        memset(&self._scan, 0, sizeof(Scan))
        self.damaged_at = -1
        if not (make_room_for_text(&self._scan.texts) and make_room_for_bytes(&self._scan.texts, 1)):
            raise MemoryError

    def __dealloc__(self):
        _free_rows(&self._scan.rows)
        _free_stats(&self._scan.stats)
        _free_texts(&self._scan.texts)
        free(self._became)

    # -- events ------------------------------------------------------------------------------------------------------

    @property
    def rows(self):
        """How many events there are."""
        return self._scan.rows.count

    def scan(self, const uint8_t[::1] text, int64_t at, int64_t end, int64_t stop):
        """Reads the elements of a traceEvents array.

        Args:
            text: uint8 of shape (bytes,), looked at from `at` to `end`.
            stop: no element is begun from here on.

        Returns:
            MORE at the end of the text, `self.at` being where the next element begins; CLOSED after the closing
            bracket; STOPPED before an element at `stop` or behind it.
        """
        cdef int why
        self._scan.text = _window(text, at, end)
        self.at = at
        with nogil:
            why = _scan_events(self, stop)
        if why == NO_MEMORY:
            raise MemoryError("no room for the events of the trace")
        self._convert_slow()
        self._scan.text.data = NULL
        self._scan.text.end = 0
        return why

    cdef _convert_slow(self):
        """Converts the numbers with many digits, as Python does."""
        cdef Stats *stats = &self._scan.stats
        cdef int64_t k
        cdef double number
        for k in range(stats.slow_count):
            begin, end = stats.slow[3 * k + 1], stats.slow[3 * k + 2]
            number = float(bytes(self._scan.text.data[begin:end]))
            number = min(max(number, -sys.float_info.max), sys.float_info.max)
            memcpy(&stats.value[stats.slow[3 * k]], &number, sizeof(double))
        stats.slow_count = 0

    def absorb(self, Scanner part):
        """Moves the events of another scanner behind those of this one; its texts stay, for its next events."""
        cdef bint done
        with nogil:
            done = _absorb(self, part)
        if not done:
            raise MemoryError("no room for the events of the trace")

    def forget(self):
        """Drops everything, as if nothing had been read."""
        cdef Texts *texts = &self._scan.texts
        self._scan.rows.count = self._scan.stats.count = self._scan.stats.slow_count = 0
        memset(texts.slots, 0, 2 * texts.room * sizeof(int32_t))
        texts.follower[0] = texts.value[0] = 0
        texts.count = 1
        texts.used = 0
        self._became_count = 0
        self.recovering = False
        self.damaged = 0
        self.damaged_at = -1

    def take(self):
        """The columns by name, of which this scanner has none then."""
        cdef Rows *rows = &self._scan.rows
        cdef Stats *stats = &self._scan.stats
        u8, i32, i64 = np.dtype(np.uint8), np.dtype(np.int32), np.dtype(np.int64)
        taken = {
            "phase": _array(<void **>&rows.phase, rows.count, u8),
            "flags": _array(<void **>&rows.flags, rows.count, u8),
            "cat": _array(<void **>&rows.cat, rows.count, i32),
            "name": _array(<void **>&rows.name, rows.count, i32),
            "pid": _array(<void **>&rows.pid, rows.count, i32),
            "tid": _array(<void **>&rows.tid, rows.count, i32),
            "us": _array(<void **>&rows.us, rows.count, i64),
            "frac_ps": _array(<void **>&rows.frac_ps, rows.count, i32),
            "duration_us": _array(<void **>&rows.duration_us, rows.count, i64),
            "duration_frac_ps": _array(<void **>&rows.duration_frac_ps, rows.count, i32),
            "flow": _array(<void **>&rows.flow, rows.count, i64),
            "stat_end": _array(<void **>&rows.stat_end, rows.count, i64),
            "stat_name": _array(<void **>&stats.name, stats.count, i32),
            "stat_tag": _array(<void **>&stats.tag, stats.count, u8),
            "stat_value": _array(<void **>&stats.value, stats.count, i64),
        }
        _free_rows(rows)
        _free_stats(stats)
        return taken

    # -- texts -------------------------------------------------------------------------------------------------------

    @property
    def texts(self):
        """How many texts there are."""
        return self._scan.texts.count

    def add_text(self, const uint8_t[::1] text):
        """Id of a text, made on first use."""
        cdef int64_t found = 0
        if text.shape[0]:
            found = intern(&self._scan.texts, &text[0], text.shape[0], False, 0)
        if found < 0:
            raise MemoryError("no room for the texts of the trace")
        return found

    def text(self, int64_t text):
        """The bytes of a text.  Raises IndexError."""
        cdef Texts *texts = &self._scan.texts
        if not 0 <= text < texts.count:
            raise IndexError(text)
        return bytes(texts.blob[texts.offsets[text]:texts.offsets[text + 1]])

    def escaped(self):
        """The ids of the texts that hold a backslash of JSON."""
        cdef int64_t text
        return [text for text in range(self._scan.texts.count) if self._scan.texts.escaped[text]]

    def table(self):
        """The texts one after the other as uint8, and where each begins and the last ends as int64."""
        cdef Texts *texts = &self._scan.texts
        blob, offsets = np.empty(texts.used, np.uint8), np.empty(texts.count + 1, np.int64)
        cdef uint8_t[::1] blob_view = blob
        cdef int64_t[::1] offsets_view = offsets
        if texts.used:
            memcpy(&blob_view[0], texts.blob, texts.used)
        memcpy(&offsets_view[0], texts.offsets, (texts.count + 1) * sizeof(int64_t))
        return blob, offsets


cdef int _scan_events(Scanner scanner, int64_t stop) noexcept nogil:
    cdef Scan *scan = &scanner._scan
    cdef Window text = scan.text
    cdef int64_t at = scanner.at
    cdef int64_t after, stats_before, slow_before
    cdef uint8_t c
    while True:
        at = skip_spaces(text, at, True)
        scanner.at = at
        if at >= text.end:
            return layout.MORE
        if at >= stop:
            return layout.STOPPED
        c = byte_at(text, at)
        if c == OPEN:
            stats_before, slow_before = scan.stats.count, scan.stats.slow_count
            scan.member_at = 0
            after = read_event(scan, at)
            if after >= 0:
                if scanner.recovering and scan.rows.phase[scan.rows.count] == 0:  # an object inside a damaged event
                    scan.stats.count, scan.stats.slow_count = stats_before, slow_before
                else:
                    scan.rows.count += 1
                    scanner.recovering = False
                at = after
                continue
            if after == INCOMPLETE:
                return layout.MORE
            if after == NO_MEMORY:
                return NO_MEMORY
            # Going on from where it failed, not from its second byte, keeps hostile nesting linear.
            at = max(at, scan.member_at - 1)
        elif c == CLOSE_LIST and not scanner.recovering:
            scanner.at = at + 1
            return layout.CLOSED
        if not scanner.recovering:
            scanner.recovering = True
            if scanner.damaged == 0:
                scanner.damaged_at = scanner.at
            scanner.damaged += 1
        at += 1
        while at < text.end and byte_at(text, at) != OPEN:
            at += 1


# ---- one scanner's events behind another's ---------------------------------------------------------------------------


cdef bint _absorb(Scanner whole, Scanner part) noexcept nogil:
    """False if there is no memory for it."""
    cdef Rows *rows = &whole._scan.rows
    cdef Stats *stats = &whole._scan.stats
    cdef Rows *more_rows = &part._scan.rows
    cdef Stats *more_stats = &part._scan.stats
    if not (
        _translate_texts(whole, part)
        and make_room_for_rows(rows, more_rows.count)
        and make_room_for_stats(stats, stats.count + more_stats.count)
    ):
        return False
    if more_rows.count:
        _append_rows(rows, more_rows, stats.count, part._became)
    if more_stats.count:
        _append_stats(stats, more_stats, part._became)
    more_rows.count = more_stats.count = 0
    return True


cdef bint _translate_texts(Scanner whole, Scanner part) noexcept nogil:
    """Gives the part's new texts their ids in the whole, in the order in which they came."""
    cdef Texts *texts = &part._scan.texts
    cdef int64_t text, start, found
    if texts.count > part._became_room:
        if not resized(<void **>&part._became, texts.room, sizeof(int32_t)):
            return False
        part._became_room = texts.room
    for text in range(part._became_count, texts.count):
        start = texts.offsets[text]
        found = intern(
            &whole._scan.texts, texts.blob + start, texts.offsets[text + 1] - start, texts.escaped[text], 0
        )
        if found < 0:
            return False
        part._became[text] = <int32_t>found
    part._became_count = texts.count
    return True


cdef void _append_rows(Rows *rows, const Rows *more, int64_t stats, const int32_t *became) noexcept nogil:
    cdef int64_t at = rows.count
    cdef int64_t k
    memcpy(rows.phase + at, more.phase, more.count)
    memcpy(rows.flags + at, more.flags, more.count)
    memcpy(rows.us + at, more.us, more.count * 8)
    memcpy(rows.frac_ps + at, more.frac_ps, more.count * 4)
    memcpy(rows.duration_us + at, more.duration_us, more.count * 8)
    memcpy(rows.duration_frac_ps + at, more.duration_frac_ps, more.count * 4)
    for k in range(more.count):
        rows.cat[at + k] = became[more.cat[k]]
        rows.name[at + k] = became[more.name[k]]
        rows.pid[at + k] = became[more.pid[k]]
        rows.tid[at + k] = became[more.tid[k]]
        rows.flow[at + k] = became[more.flow[k]] if more.flags[k] & FLOW_IS_TEXT else more.flow[k]
        rows.stat_end[at + k] = more.stat_end[k] + stats
    rows.count += more.count


cdef void _append_stats(Stats *stats, const Stats *more, const int32_t *became) noexcept nogil:
    cdef int64_t at = stats.count
    cdef int64_t k
    memcpy(stats.tag + at, more.tag, more.count)
    for k in range(more.count):
        stats.name[at + k] = became[more.name[k]]
        stats.value[at + k] = became[more.value[k]] if more.tag[k] == STRING else more.value[k]
    stats.count += more.count


# ---- memory ----------------------------------------------------------------------------------------------------------


cdef void _free_rows(Rows *rows) noexcept nogil:
    free(rows.phase)
    free(rows.flags)
    free(rows.cat)
    free(rows.name)
    free(rows.pid)
    free(rows.tid)
    free(rows.us)
    free(rows.frac_ps)
    free(rows.duration_us)
    free(rows.duration_frac_ps)
    free(rows.flow)
    free(rows.stat_end)
    memset(rows, 0, sizeof(Rows))


cdef void _free_stats(Stats *stats) noexcept nogil:
    free(stats.name)
    free(stats.tag)
    free(stats.value)
    free(stats.slow)
    memset(stats, 0, sizeof(Stats))


cdef void _free_texts(Texts *texts) noexcept nogil:
    free(texts.blob)
    free(texts.offsets)
    free(texts.hashes)
    free(texts.escaped)
    free(texts.follower)
    free(texts.value)
    free(texts.slots)
    memset(texts, 0, sizeof(Texts))
