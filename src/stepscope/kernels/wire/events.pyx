"""Events with their stats: the hot loop of reading a file.

A line is decoded once, in ranges of it that `lines.scan_lines` has found: events go straight to their rows, stats to the
end of a table that grows.  Threads take a range each, with a table of its own.
"""

cimport cython
from libc.stdint cimport INT32_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy

from stepscope.kernels.growing cimport Growing, as_table, grown, push
from stepscope.kernels.memory cimport fill, free
from stepscope.kernels.varint cimport read_varint, read_varint_inside
from stepscope.kernels.wire.fields cimport DELIMITED, OK, OVERRUN, Field, read_field, varint_error
from stepscope.kernels.wire.lines cimport (
    RANGE_LINE, RANGE_ROOM, RANGE_ROW, RANGE_START, RANGE_STOP, RANGE_WIDTH,
)
from stepscope.kernels.wire.metadata cimport META_ID
from stepscope.kernels.wire.texts cimport Interner, Text, hash_text

cpdef enum:
    # Flags of an event that come from its stats, 16 bits; the bits below are the caller's.
    FLAG_AGGREGATE = 0x8000
    # In a stat's flags only.
    FLAG_IF_NONZERO = 0x1_0000  # set the others for a value other than 0
    FLAG_LEAVE_OUT = 0x2_0000  # of an event it is not kept

    # The name of the stat that an aggregate's count becomes, until its row in the string table is known.
    NAME_OCCURRENCES = -1

cpdef enum:
    # Columns of what came out, one row a range.  BROKEN: the first message inside it that cannot be read.
    EVENTS
    BROKEN_AT
    BROKEN_CODE
    LOST_EVENTS
    LOST_STATS
    UNSORTED
    UNNAMED
    BAD_TIMES
    OUTCOME_WIDTH

cdef enum:
    # Tags of stats, as in `StatTag`.
    _NONE = 0
    _DOUBLE = 1
    _UINT = 2
    _INT = 3
    _STRING = 5
    _BYTES = 6

cdef enum:
    _FIRST_ROOM = 256


# -- ids ----------------------------------------------------------------------------------------------------------

cdef struct _Entry:
    int32_t row  # -1 for none
    uint32_t flags


cdef struct _Ids:
    _Entry* entries
    int64_t size
    int64_t* sorted  # NULL if an id is its own place among the entries


cdef inline const _Entry* _find(const _Ids* known, uint64_t id) noexcept nogil:
    """What is known of a metadata id, or NULL."""
    if known.sorted == NULL:
        return &known.entries[id] if id < <uint64_t>known.size else NULL
    return _find_sorted(known, <int64_t>id)


cdef const _Entry* _find_sorted(const _Ids* known, int64_t id) noexcept nogil:
    cdef int64_t low = 0, high = known.size, middle
    while low < high:
        middle = (low + high) >> 1
        if known.sorted[middle] < id:
            low = middle + 1
        else:
            high = middle
    return &known.entries[low] if low < known.size and known.sorted[low] == id else NULL


cdef inline int32_t _row(const _Ids* known, uint64_t id) noexcept nogil:
    """The row that a metadata id stands for, or -1."""
    cdef const _Entry* entry = _find(known, id)
    return entry.row if entry != NULL else -1


cdef class Lookups:
    """The way from a plane's metadata ids to rows.

    Args:
        types: int64 of shape (entries, META_WIDTH), the event metadata of all planes, see `metadata.walk_metadata`;
            those of this plane are the rows `first_type` to `stop_type - 1`, and a type's row is its row here.
        texts: the same of the stat metadata, whose row is that of its text.
        text_rows: int32 of shape (entries,), the row of each text in the string table.
        flags: uint32 of shape (strings,), what a stat with this name says of its event; see the FLAG_ constants.
        room: how many rows a table may have beyond a few for each entry.  It has one for each id where that is not
            more, otherwise one for each entry, in the order of the ids, which must be distinct.
    """

    cdef _Ids types, stats

    def __cinit__(
        self, const int64_t[:, ::1] types, int64_t first_type, int64_t stop_type, const int64_t[:, ::1] texts,
        int64_t first_text, int64_t stop_text, const int32_t[::1] text_rows, const uint32_t[::1] flags, int64_t room,
    ):
        cdef int64_t row
        cdef _Entry* entry
        if not 0 <= first_type <= stop_type <= types.shape[0] or stop_type > INT32_MAX:
            raise IndexError("there are no such types")
        if not 0 <= first_text <= stop_text <= min(texts.shape[0], text_rows.shape[0]):
            raise IndexError("there are no such texts")
        for row in range(first_text, stop_text):
            if not 0 <= text_rows[row] < flags.shape[0]:
                raise IndexError("every text has flags")
        _make_room(&self.types, types, first_type, stop_type, room)
        for row in range(first_type, stop_type):
            _enter(&self.types, types[row, META_ID]).row = <int32_t>row
        _make_room(&self.stats, texts, first_text, stop_text, room)
        for row in range(first_text, stop_text):
            entry = _enter(&self.stats, texts[row, META_ID])
            entry.row, entry.flags = text_rows[row], flags[text_rows[row]]

    def __dealloc__(self):
        free(self.types.entries)
        free(self.types.sorted)
        free(self.stats.entries)
        free(self.stats.sorted)


cdef int _make_room(_Ids* known, const int64_t[:, ::1] entries, int64_t first, int64_t stop, int64_t room) except -1:
    """A table for the ids of some entries that knows none of them yet."""
    cdef int64_t at, least, most
    if first == stop:
        return 0
    least = most = entries[first, META_ID]
    for at in range(first, stop):
        least, most = min(least, entries[at, META_ID]), max(most, entries[at, META_ID])
    known.size = stop - first
    if least >= 0 and most < 4 * (stop - first) + room:
        known.size = most + 1
    else:
        known.sorted = <int64_t*>grown(NULL, known.size, sizeof(int64_t))
        for at in range(first, stop):
            known.sorted[at - first] = entries[at, META_ID]
        qsort(known.sorted, <size_t>known.size, sizeof(int64_t), _compare_ids)
    known.entries = <_Entry*>grown(NULL, known.size, sizeof(_Entry))
    for at in range(known.size):
        known.entries[at] = _Entry(-1, 0)
    return 0


cdef int _compare_ids(const void* one, const void* other) noexcept nogil:
    cdef int64_t a = (<const int64_t*>one)[0], b = (<const int64_t*>other)[0]
    return (a > b) - (a < b)


cdef _Entry* _enter(_Ids* known, int64_t id) noexcept nogil:
    """The place of an id for which there is room."""
    return <_Entry*>_find(known, <uint64_t>id)


# -- stats --------------------------------------------------------------------------------------------------------

cdef struct _PendingText:
    int64_t row
    Text text


cdef struct _Value:
    uint64_t id  # of the stat's metadata
    uint8_t tag
    uint64_t bits  # of the value; of a text its length
    const uint8_t* text  # NULL if the value is none that stands in the stat itself


cdef inline const uint8_t* _read_value(
    const uint8_t* at, const uint8_t* end, const uint8_t* limit, _Value* value
) noexcept nogil:
    """Reads one of the usual fields of a stat, of which memory up to `limit` may be read.  Returns where the next starts, or NULL if it is damaged or another."""
    cdef const uint8_t* next
    cdef uint8_t key = at[0]
    if key == 0x08:  # metadata_id
        return read_varint_inside(at + 1, end, limit, &value.id)
    if key == 0x20 or key == 0x18 or key == 0x38:  # int64_value, uint64_value, ref_value
        value.tag = _INT if key == 0x20 else _UINT if key == 0x18 else _STRING
        value.text = NULL
        return read_varint_inside(at + 1, end, limit, &value.bits)
    if key == 0x2A or key == 0x32:  # str_value, bytes_value
        value.tag = _STRING if key == 0x2A else _BYTES
        value.text = next = read_varint_inside(at + 1, end, limit, &value.bits)
        return next + value.bits if next != NULL and value.bits <= <uint64_t>(end - next) else NULL
    if key == 0x11 and end - at >= 9:  # double_value
        value.tag = _DOUBLE
        value.text = NULL
        memcpy(&value.bits, at + 1, 8)
        return at + 9
    return NULL


cdef const uint8_t* _skip_other(const uint8_t* at, const uint8_t* end, int* error) noexcept nogil:
    """Skips a field of a stat that `_read_value` does not know; NULL if it is damaged, or of those that it knows."""
    cdef Field field
    cdef const uint8_t* next
    error[0] = OVERRUN
    if at[0] in (0x08, 0x18, 0x20, 0x2A, 0x32, 0x38):
        return NULL
    next = read_field(at, end, &field)
    error[0] = field.error
    return next


@cython.final
cdef class StatTable:
    """Names, tags and values of stats, and those of their texts that have no id yet.

    Args:
        seed: that of the `Interner`.

    Attributes:
        size: how many stats there are.
    """

    cdef int32_t* name
    cdef uint8_t* tag
    cdef int64_t* value
    cdef _PendingText* texts
    cdef int64_t room, texts_room, n_texts
    cdef readonly int64_t size
    cdef uint64_t seed
    cdef Growing unnamed

    def __cinit__(self, uint64_t seed):
        self.seed = seed

    def __dealloc__(self):
        free(self.name)
        free(self.tag)
        free(self.value)
        free(self.texts)
        free(self.unnamed.items)

    def reserve(self, int64_t room):
        """Makes room for so many stats in all; memory that is not used costs nothing."""
        with nogil:
            self._reserve(room)

    def intern(self, Interner interner):
        """Gives the texts ids, in the order of their stats."""
        cdef int64_t at
        with nogil:
            for at in range(self.n_texts):
                self.value[self.texts[at].row] = interner.give(&self.texts[at].text)
            self.n_texts = 0

    def append(self, StatTable other):
        """Moves all stats of another table, whose texts have ids, to the end of this one."""
        cdef int64_t at
        with nogil:
            self._reserve(self.size + other.size)
            if other.size:
                fill(self.name, <size_t>self.size * 4, other.name, <size_t>other.size * 4)
                fill(self.tag, <size_t>self.size, other.tag, <size_t>other.size)
                fill(self.value, <size_t>self.size * 8, other.value, <size_t>other.size * 8)
            self.size += other.size
            for at in range(other.unnamed.size):
                push(&self.unnamed, other.unnamed.items[at])
            other.size = other.unnamed.size = 0

    def take(self):
        """The columns name, tag and value, which own their memory; the table is empty afterwards."""
        cdef int64_t size = self.size
        cdef cython.view.array name, tag, value
        self.room = max(size, 1)
        self.name = <int32_t*>grown(self.name, self.room, sizeof(int32_t))
        self.tag = <uint8_t*>grown(self.tag, self.room, 1)
        self.value = <int64_t*>grown(self.value, self.room, sizeof(int64_t))
        name, tag, value = <int32_t[:self.room]>self.name, <uint8_t[:self.room]>self.tag, <int64_t[:self.room]>self.value
        name.callback_free_data = tag.callback_free_data = value.callback_free_data = free
        self.name, self.tag, self.value = NULL, NULL, NULL
        self.size = self.room = 0
        return name[:size], tag[:size], value[:size]

    def take_unnamed(self):
        """int64 of shape (events, 1): the metadata ids of events whose metadata is missing, in their order."""
        cdef Growing unnamed = self.unnamed
        self.unnamed = Growing(NULL, 0, 0)
        return as_table(&unnamed, 1)

    def decode(self, const uint8_t[::1] buf, const int64_t[:] begins, const int64_t[:] ends, Lookups lookups):
        """Appends stats that are messages by themselves, one a range of `buf`.

        Returns:
            (damaged stats, where the first of them starts or -1, what is wrong with it).
        """
        cdef int64_t row, lost = 0, lost_at = -1
        cdef int error, code = OK
        cdef uint32_t flags = 0
        if begins.shape[0] != ends.shape[0]:
            raise IndexError("the columns are not of one length")
        if not buf.shape[0]:
            return 0, -1, OK
        with nogil:
            for row in range(begins.shape[0]):
                if not 0 <= begins[row] <= ends[row] <= buf.shape[0]:
                    with gil:
                        raise IndexError("a stat lies outside the file")
                error = self._read(
                    &buf[0] + begins[row], &buf[0] + ends[row], &buf[0] + buf.shape[0], lookups, &flags, 0
                )
                if error != OK:
                    if lost == 0:
                        lost_at, code = begins[row], error
                    lost += 1
        return lost, lost_at, code

    cdef int _reserve(self, int64_t room) except -1 nogil:
        """Makes room for so many stats in all."""
        cdef int64_t wanted
        if room <= self.room:
            return 0
        wanted = max(room, self.room + self.room // 2, _FIRST_ROOM)
        self.name = <int32_t*>grown(self.name, wanted, sizeof(int32_t))
        self.tag = <uint8_t*>grown(self.tag, wanted, 1)
        self.value = <int64_t*>grown(self.value, wanted, sizeof(int64_t))
        self.room = wanted
        return 0

    cdef inline int _read(
        self, const uint8_t* at, const uint8_t* end, const uint8_t* limit, Lookups lookups, uint32_t* flags,
        uint32_t left_out,
    ) except -1 nogil:
        """Appends one stat, unless its flags say that it is left out, and adds what it says of its event to the flags.
        Returns OK, or why it is damaged."""
        cdef _Value value = _Value(0, _NONE, 0, NULL)
        cdef int error = OK, found
        cdef const _Entry* entry
        cdef const uint8_t* next
        while at < end:
            next = _read_value(at, end, limit, &value)
            if next == NULL:
                next = _skip_other(at, end, &found)
                if next == NULL:
                    value.tag, value.bits, value.text = _NONE, 0, NULL
                    error = found
                    break
            at = next
        if value.tag == _STRING and value.text == NULL:
            value.bits = <uint64_t>max(_row(&lookups.stats, value.bits), 0)
        entry = _find(&lookups.stats, value.id)
        if entry != NULL and entry.row >= 0:
            if value.bits or value.text != NULL or not entry.flags & FLAG_IF_NONZERO:
                flags[0] |= entry.flags
            if not entry.flags & left_out:
                self._put(entry.row, &value)
        else:
            self._put(0, &value)
        return error

    cdef inline int _put(self, int32_t name, const _Value* value) except -1 nogil:
        if self.size == self.room:
            self._reserve(self.size + 1)
        self.name[self.size] = name
        self.tag[self.size] = value.tag
        self.value[self.size] = <int64_t>value.bits if value.text == NULL else 0
        if value.text != NULL and value.bits:
            self._put_text(value.text, <int64_t>value.bits)
        self.size += 1
        return 0

    cdef inline int _put_text(self, const uint8_t* start, int64_t length) except -1 nogil:
        """Notes a text whose id becomes the value of the stat that is put next."""
        cdef _PendingText* into
        if self.n_texts == self.texts_room:
            self.texts_room = 2 * self.texts_room if self.texts_room else _FIRST_ROOM
            self.texts = <_PendingText*>grown(self.texts, self.texts_room, sizeof(_PendingText))
        into = &self.texts[self.n_texts]
        into.row, into.text.start, into.text.length = self.size, start, length
        into.text.hash = hash_text(start, length, self.seed)
        self.n_texts += 1
        return 0


# -- events -------------------------------------------------------------------------------------------------------

cdef struct _Event:
    uint64_t type  # metadata id
    int64_t offset
    int64_t duration
    uint32_t flags
    int64_t lost_stats
    int error


cdef const uint8_t* _skip_field(const uint8_t* at, const uint8_t* end, int* error) noexcept nogil:
    """What follows a field; NULL if it is damaged."""
    cdef Field field
    cdef const uint8_t* next = read_field(at, end, &field)
    error[0] = field.error
    return next


cdef int _read_event(
    const uint8_t* at, const uint8_t* end, const uint8_t* limit, Lookups lookups, StatTable stats, _Event* event
) except -1 nogil:
    """Reads an event, of which memory up to `limit` may be read, and appends its stats.  Returns OK, or why it is
    damaged."""
    cdef uint64_t value = 0
    cdef _Value count
    cdef uint8_t key
    cdef int error
    event.type, event.offset, event.duration, event.flags, event.lost_stats, event.error = 0, 0, 0, 0, 0, OK
    while at < end:
        key = at[0]
        if key == 0x22:  # stats
            at = read_varint_inside(at + 1, end, limit, &value)
            if at == NULL or value > <uint64_t>(end - at):
                return OVERRUN
            error = stats._read(at, at + value, limit, lookups, &event.flags, FLAG_LEAVE_OUT)
            if error != OK:
                event.lost_stats += 1
                event.error = event.error if event.error != OK else error
            at += value
        elif key == 0x08 or key == 0x10 or key == 0x18 or key == 0x28:
            at = read_varint_inside(at + 1, end, limit, &value)
            if at == NULL:
                return OVERRUN
            if key == 0x08:  # metadata_id
                event.type = value
            elif key == 0x10:  # offset_ps
                event.offset = <int64_t>value
            elif key == 0x18:  # duration_ps
                event.duration = <int64_t>value
            else:  # num_occurrences
                event.flags |= FLAG_AGGREGATE
                count = _Value(0, _INT, value, NULL)
                stats._put(NAME_OCCURRENCES, &count)
        else:
            at = _skip_field(at, end, &error)
            if at == NULL:
                return error
    return OK


@cython.final
cdef class EventTable:
    """The columns that events are decoded into, each of shape (events,).

    Args:
        events: for how many there is room.

    Attributes:
        start_ps, duration_ps: int64; type: int32, rows of the metadata; flags: uint16.
        stat_offsets: int64 of shape (events + 1,), the first stat of each event in the `StatTable`, and the last one's
            end.
    """

    cdef readonly object start_ps, duration_ps, type, flags, stat_offsets
    cdef int64_t* starts
    cdef int64_t* durations
    cdef int64_t* ends  # of the stats of each event
    cdef int32_t* types
    cdef uint16_t* flag_bits
    cdef int64_t rows

    def __cinit__(self, int64_t events):
        cdef cython.view.array column
        cdef int64_t room = max(events, 1)
        self.rows = events
        self.starts = <int64_t*>grown(NULL, room, sizeof(int64_t))
        column = <int64_t[:room]>self.starts
        column.callback_free_data = free
        self.start_ps = column[:events]
        self.durations = <int64_t*>grown(NULL, room, sizeof(int64_t))
        column = <int64_t[:room]>self.durations
        column.callback_free_data = free
        self.duration_ps = column[:events]
        self.types = <int32_t*>grown(NULL, room, sizeof(int32_t))
        column = <int32_t[:room]>self.types
        column.callback_free_data = free
        self.type = column[:events]
        self.flag_bits = <uint16_t*>grown(NULL, room, sizeof(uint16_t))
        column = <uint16_t[:room]>self.flag_bits
        column.callback_free_data = free
        self.flags = column[:events]
        self.ends = <int64_t*>grown(NULL, events + 1, sizeof(int64_t))
        column = <int64_t[:events + 1]>self.ends
        column.callback_free_data = free
        self.stat_offsets = column
        self.ends[0] = 0
        self.ends += 1

    def shift(self, int64_t first, int64_t stop, int64_t by):
        """Moves the stats of the events `first` to `stop - 1` by some rows.  Raises IndexError for other events."""
        cdef int64_t row
        if not 0 <= first <= stop <= self.rows:
            raise IndexError("there are no such events")
        with nogil:
            for row in range(first, stop):
                self.ends[row] += by


cdef struct _Range:
    int64_t row  # of the next event
    int64_t zero_ps
    int64_t limit_ps
    int64_t last_start
    int64_t last_duration


def decode_events(
    const uint8_t[::1] buf, int64_t first, const int64_t[:, ::1] ranges, const int64_t[::1] zero_ps, int64_t limit_ps,
    Lookups lookups, EventTable events, StatTable stats, int64_t[:, ::1] outcome,
):
    """Decodes ranges of lines of one plane.

    Args:
        buf: uint8 of shape (bytes,), the bytes of the file from the place `first` on; texts are told by their places in
            it until they have ids.
        ranges: int64 of shape (ranges, RANGE_WIDTH), see the RANGE_ columns.
        zero_ps: int64 of shape (lines,), where the times of each line count from.
        limit_ps: events that start further than this from 0 are put at the zero of their line, longer ones get the
            length 0.
        events: receives the events from the row of each range on; damaged ones are left out.
        stats: receives their stats.
        outcome: int64 of shape (ranges, OUTCOME_WIDTH), filled; see the columns above.
    """
    cdef int64_t i, size = buf.shape[0], rows = events.rows
    if not size or not rows or not ranges.shape[0]:
        outcome[:] = 0
        outcome[:, BROKEN_AT] = -1
        return
    if ranges.shape[1] != RANGE_WIDTH or outcome.shape[1] != OUTCOME_WIDTH or outcome.shape[0] != ranges.shape[0]:
        raise IndexError("these are no ranges")
    with nogil:
        for i in range(ranges.shape[0]):
            if not (
                0 <= first <= ranges[i, RANGE_START] <= ranges[i, RANGE_STOP] <= first + size
                and 0 <= ranges[i, RANGE_ROW] <= rows and 0 <= ranges[i, RANGE_ROOM] <= rows - ranges[i, RANGE_ROW]
                and 0 <= ranges[i, RANGE_LINE] < zero_ps.shape[0]
            ):
                with gil:
                    raise IndexError("a range lies outside the file or the columns")
            _decode_range(
                &buf[0] - first, &ranges[i, 0], zero_ps[ranges[i, RANGE_LINE]], limit_ps, lookups, events, stats, &outcome[i, 0]
            )


cdef int _decode_range(
    const uint8_t* base, const int64_t* limits, int64_t zero_ps, int64_t limit_ps, Lookups lookups, EventTable events,
    StatTable stats, int64_t* outcome,
) except -1 nogil:
    cdef const uint8_t* at = base + limits[RANGE_START]
    cdef const uint8_t* end = base + limits[RANGE_STOP]
    cdef const uint8_t* start
    cdef const uint8_t* stop
    cdef int64_t last_row = limits[RANGE_ROW] + limits[RANGE_ROOM], n_stats, n_texts
    cdef _Range place = _Range(limits[RANGE_ROW], zero_ps, limit_ps, INT64_MIN, 0)
    cdef _Event event
    cdef int error, column
    for column in range(OUTCOME_WIDTH):
        outcome[column] = 0
    outcome[BROKEN_AT] = -1
    while at < end and place.row < last_row:
        stop = find_event(at, end, &start)
        if stop == NULL:
            break
        if start != NULL:
            n_stats, n_texts = stats.size, stats.n_texts
            error = _read_event(start, stop, end, lookups, stats, &event)
            if (error != OK or event.error != OK) and outcome[BROKEN_AT] < 0:
                outcome[BROKEN_AT] = at - base
                outcome[BROKEN_CODE] = error if error != OK else event.error
            if error == OK:
                outcome[LOST_STATS] += event.lost_stats
                _put_event(&event, &place, lookups, events, stats, outcome)
            else:
                stats.size, stats.n_texts = n_stats, n_texts
                outcome[LOST_EVENTS] += 1
        at = stop
    outcome[EVENTS] = place.row - limits[RANGE_ROW]
    return 0


cdef inline const uint8_t* find_event(const uint8_t* at, const uint8_t* end, const uint8_t** start) noexcept nogil:
    """Reads one field of a line.  Returns where the next starts, or NULL if it is damaged; `start` is where the event
    starts, if the field is one."""
    cdef Field field
    cdef uint64_t size = 0
    cdef const uint8_t* next
    start[0] = NULL
    if at[0] == 0x22:
        next = read_varint(at + 1, end, &size)
        if next == NULL or size > <uint64_t>(end - next):
            return NULL
        start[0] = next
        return next + size
    next = read_field(at, end, &field)
    if next != NULL and field.number == 4 and field.wire == DELIMITED:
        start[0] = field.start
    return next


cdef inline int _put_event(
    _Event* event, _Range* place, Lookups lookups, EventTable events, StatTable stats, int64_t* outcome
) except -1 nogil:
    cdef int64_t start
    cdef int32_t type = _row(&lookups.types, event.type)
    if not -place.limit_ps - place.zero_ps <= event.offset <= place.limit_ps - place.zero_ps:
        event.offset = event.duration = 0
        outcome[BAD_TIMES] += 1
    elif not 0 <= event.duration <= place.limit_ps:
        event.duration = 0
        outcome[BAD_TIMES] += 1
    start = place.zero_ps + event.offset
    if start < place.last_start or (start == place.last_start and event.duration > place.last_duration):
        outcome[UNSORTED] = True
    place.last_start, place.last_duration = start, event.duration
    if type < 0:
        outcome[UNNAMED] += 1
        push(&stats.unnamed, <int64_t>event.type)
    events.starts[place.row] = start
    events.durations[place.row] = event.duration
    events.types[place.row] = type
    events.flag_bits[place.row] = <uint16_t>(event.flags & 0xFFFF)
    events.ends[place.row] = stats.size
    place.row += 1
    return 0
