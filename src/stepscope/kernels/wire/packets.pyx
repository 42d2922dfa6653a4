"""Perfetto's packets, one after the other, into the columns that trace JSON is read into.

    trace  = { packet }              PacketDecoder.decode
    packet = the state of its sequence (interned texts, defaults, clocks), and an event, a track or compressed packets
    event  = { annotation }          stats; nested ones as the text of their JSON

A message is walked once, and the last field of each number kept (`Message`); those that repeat are handled as they
come.  What a number of the file means (a text of a sequence, a track, a clock) lies in one map, under scopes that do not
meet: a sequence gets a new one when it says that it starts anew.  What fails is noted once for a packet, which then puts
no event.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from stepscope.kernels.jsontext cimport (
    Scratch, put_bytes, put_json_double, put_json_integer, put_json_text, read_real,
)
from stepscope.kernels.memory cimport free, resize
from stepscope.kernels.trace_json.columns cimport Rows, make_room_for_rows, make_room_for_stats
from stepscope.kernels.trace_json.events cimport Event, Scan, put_row, put_stat
from stepscope.kernels.trace_json.layout cimport (
    DOUBLE, HAS_DURATION, HAS_FLOW, HAS_PID, HAS_TID, HAS_TIME, INT, LOCAL_ID, STRING, UINT,
)
from stepscope.kernels.trace_json.scan cimport Scanner
from stepscope.kernels.trace_json.texts cimport intern
from stepscope.kernels.varint cimport read_varint
from stepscope.kernels.wire.fields cimport DELIMITED, FIXED64, OVERRUN, VARINT, Field, read_field
from stepscope.kernels.wire.idmap cimport IdMap, find_id, put_id

cpdef enum:
    # What decoding stopped for: the end of the bytes; compressed packets (see `inner_begin`); a byte that starts no
    # packet; a packet that goes on behind the end.
    DONE
    COMPRESSED
    BROKEN
    CUT

cpdef enum:
    # What describes a track.
    UNKNOWN_TRACK
    PROCESS_TRACK
    THREAD_TRACK
    NAMED_TRACK
    COUNTER_TRACK
    QUEUE_TRACK  # a queue of a GPU; `pid` is the GPU's number
    GPU_COUNTER_TRACK

cpdef enum:
    # How packets are compressed: the number of their field.
    BY_DEFLATE = 50
    BY_ZSTD = 133

cdef enum:
    # Scopes of the map that belong to the whole trace.
    OF_TRACKS = 1
    OF_SEQUENCES
    OF_CLOCKS
    OF_QUEUES
    OF_GPU_COUNTERS
    OF_TEXT_KEYS
    # Scopes of a sequence: its generation times KINDS, and the field of interned data that holds the entries.
    KINDS = 1024
    CATEGORY = 1
    EVENT_NAME = 2
    KEY = 3
    STAGE = 24
    VALUE = 29
    GPU_COUNTERS = 47
    COUNTER_NAME = 48  # no field: the counters of an entry of GPU_COUNTERS
    KERNEL = 1000
    ARGUMENT = 1001

cdef enum:
    # The texts of a sequence that are asked for by their numbers most often, and the others.
    MANY_NAMES = 7
    FEW_NAMES = MANY_NAMES

cdef enum:
    CLEARS_STATE = 1
    NEEDS_STATE = 2
    BOOTTIME = 6
    REALTIME = 1
    FIRST_OF_SEQUENCE = 64  # clocks from here to 127 belong to a sequence
    BEYOND_SEQUENCE = 128
    MOST_CLOCKS = 64  # in a snapshot
    MOST_DEPTH = 32  # of nested values
    PACKET_TAG = 0x0A
    BYTES_AN_EVENT = 96  # of PyTorch's traces, as measured
    BYTES_A_STAT = 16
    LARGEST_GAP = 64  # in the numbers of texts that lie in an array
    CHAIN = 4  # packets in a row are no accident
    COUNTER = 4  # a type of track event, as are the places of PHASES
    IS_BEGIN = 0x42  # phases of trace JSON
    IS_END = 0x45
    IS_WHOLE = 0x58
    IS_INSTANT = 0x69
    IS_COUNTER = 0x43

cdef enum:
    # Why a packet puts no event.
    GOOD
    BAD
    NO_MEMORY

cdef enum:
    # What a field of a message with a value is, by its number; those from A_TEXT on are ranges.
    NOTHING
    AN_IID
    A_FLAG
    AN_INT
    A_UINT
    A_REAL
    A_NUMBERED_TEXT
    A_TEXT
    A_NAME
    SOME_JSON
    AN_ARRAY
    A_DICTIONARY
    A_NESTED_VALUE
    A_TYPED_MESSAGE

cdef enum:
    # The messages that hold a value.
    ANNOTATION
    LAUNCH_ARGUMENT
    NESTED
    GPU_VALUE
    VALUE_MESSAGES

cdef uint8_t[5] PHASES = [0, IS_BEGIN, IS_END, IS_INSTANT, IS_COUNTER]
cdef uint8_t[VALUE_MESSAGES][64] _KINDS_OF


def _describe_values():
    """Fills the table of what the fields of messages with a value are."""
    annotation = {
        1: AN_IID, 2: A_FLAG, 3: A_UINT, 4: AN_INT, 5: A_REAL, 6: A_TEXT, 7: A_UINT, 8: A_NESTED_VALUE, 9: SOME_JSON,
        10: A_NAME, 11: A_DICTIONARY, 12: AN_ARRAY, 17: A_NUMBERED_TEXT, **dict.fromkeys(range(13, 17), A_TYPED_MESSAGE),
    }
    argument = {1: AN_IID, 2: A_NAME, 3: AN_INT, 4: A_UINT, 5: A_REAL, 6: A_TEXT, 7: A_NUMBERED_TEXT}
    nested = {5: AN_INT, 6: A_REAL, 7: A_FLAG, 8: A_TEXT}
    of_gpu = {1: AN_IID, 2: AN_INT, 3: A_REAL}
    for message, fields in enumerate((annotation, argument, nested, of_gpu)):
        for number, what in fields.items():
            _KINDS_OF[message][number] = what


_describe_values()


cdef struct Span:
    const uint8_t* start
    const uint8_t* stop

cdef struct Message:
    # The last field of each number below 63, and of BY_ZSTD as if it were 63.  The masks say which are there; others hold
    # what was in memory.
    uint64_t[8] there  # by wire type
    int64_t value[64]
    Span span[64]

cdef struct Entry:
    # A value, and its name as a number (-1 if there is none) or as text.
    int kind
    int64_t bits
    Span text
    int64_t iid
    Span name

cdef struct Names:
    # Texts by their numbers, which count up from 1; -1 where none is.  Those whose number is far beyond lie in the map.
    int32_t* text
    int64_t used
    int64_t room

cdef struct Sequence:
    int64_t scope  # of its interned texts
    Names[MANY_NAMES + 1] names
    uint64_t track
    int64_t clock
    bint is_invalid  # something that its packets refer to is missing
    bint is_lossy

cdef struct Track:
    uint64_t uuid
    uint64_t parent
    int64_t pid
    int64_t tid
    int64_t name
    int64_t kind
    int64_t last_ns
    int64_t open  # the row of the innermost open slice, plus one; the row's duration holds the next one
    int64_t group  # of slices, in which it was seen last, and when
    int64_t group_ns
    int64_t multiplier  # of a counter's values, 0 if there is none
    int64_t total  # of an incremental counter
    bint is_incremental
    bint is_disordered  # its time went back: later slices are paired when all are known

cdef struct Clock:
    uint64_t id
    int64_t offset_ns  # what to add to its time to get the trace's
    int64_t multiplier
    uint64_t last
    bint is_incremental

cdef struct Table:
    # Rows by number: `at` is the one that was asked for last.
    void* rows
    int64_t count
    int64_t room
    int64_t scope
    uint64_t id
    int64_t at

cdef struct Half:
    # The start of a slice, by its row, or an end.
    int64_t row
    int64_t track
    int64_t time_ns

cdef struct Halves:
    Half* at
    int64_t count
    int64_t room


cdef inline int names_of(int64_t kind) noexcept nogil:
    """Where the texts of a kind are."""
    if kind <= KEY:
        return <int>kind - CATEGORY
    return 3 if kind == STAGE else 4 if kind == VALUE else 5 if kind == KERNEL else 6 if kind == ARGUMENT else FEW_NAMES


cdef bint put_name(Names* names, int64_t number, int64_t text) noexcept nogil:
    """Puts a text into the array.  False if its number is too far beyond the others, or there is no memory."""
    cdef int32_t* larger
    cdef int64_t room = max(names.room, LARGEST_GAP)
    if not 0 <= number <= 2 * names.used + LARGEST_GAP:
        return False
    while room <= number:
        room *= 2
    if room > names.room:
        larger = <int32_t*>resize(names.text, <size_t>room * sizeof(int32_t))
        if larger == NULL:
            return False
        names.text, names.room = larger, room
    while names.used <= number:
        names.text[names.used] = -1
        names.used += 1
    names.text[number] = <int32_t>text
    return True


# ---- messages --------------------------------------------------------------------------------------------------------


cdef inline void keep_field(Message* message, const Field* field) noexcept nogil:
    cdef int64_t number = field.number if field.number < 63 else 63
    if number == 63 and field.number != BY_ZSTD:
        return
    message.there[field.wire] |= <uint64_t>1 << number
    message.value[number] = field.value
    message.span[number].start, message.span[number].stop = field.start, field.stop


cdef inline void start_message(Message* message) noexcept nogil:
    memset(message.there, 0, sizeof(message.there))


cdef bint read_fields(const uint8_t* at, const uint8_t* end, Message* message) noexcept nogil:
    """Reads all fields of a message.  False if it is damaged."""
    cdef Field field
    start_message(message)
    while at < end:
        at = read_field(at, end, &field)
        if at == NULL:
            return False
        keep_field(message, &field)
    return True


cdef inline bint has_number(const Message* message, int number) noexcept nogil:
    return message.there[VARINT] >> number & 1


cdef inline bint has_span(const Message* message, int number) noexcept nogil:
    return message.there[DELIMITED] >> number & 1


cdef inline int64_t number_of(const Message* message, int number) noexcept nogil:
    """The value of a field, 0 if it is not there."""
    return message.value[number] if (message.there[VARINT] | message.there[FIXED64]) >> number & 1 else 0


cdef inline Span span_of(const Message* message, int number) noexcept nogil:
    """The content of a field, empty if it is not there."""
    cdef Span nothing
    nothing.start = nothing.stop = NULL
    return message.span[number] if has_span(message, number) else nothing


cdef inline Span content_of(const Field* field) noexcept nogil:
    cdef Span content
    content.start, content.stop = field.start, field.stop
    return content


cdef void* make_room(void* rows, int64_t count, int64_t* room, size_t size) noexcept nogil:
    """Room for one row more: the rows, or NULL if there is no memory; then they are as they were."""
    cdef void* larger
    if count < room[0]:
        return rows
    larger = resize(rows, <size_t>(2 * count + 64) * size)
    if larger != NULL:
        room[0] = 2 * count + 64
    return larger


@cython.final
cdef class PacketDecoder:
    """Reads packets into the columns and texts of a scanner of trace JSON.

    A row's `tid` is the row of its track in `tracks()` until the reader replaces it; `cat` of work on a GPU's queue is
    the name of its stage.

    Slices are paired as they come.  Where a writer lists the starts of a group before its ends, both in one order, as
    PyTorch does, the n-th end is that of the n-th start; elsewhere an end is that of the innermost slice of its track.
    Behind a place where the time of a track goes back, its starts and ends stay rows of their own.

    Args:
        columns: what is filled.
        seed: makes the order of the map unpredictable.
        kept_texts: keys whose values stay text in the extra data of GPU work, which has no types.

    Attributes:
        at: where decoding stopped.
        inner_begin, inner_end, inner_method: the compressed packets for which it stopped.
        packets: how many were read.
        damaged: how many were not; `damaged_at` is where the first is, -1 if there is none.
        skipped: packets that refer to what was lost; lost: how often packets were lost.
        unnamed: references to texts that no packet defines.
        unknown_clocks: events whose clock no snapshot relates to the trace's.
        realtime_ns: what to add to the trace's clock to get the time since 1970; 0 if unknown.
    """

    cdef Scanner _columns
    cdef Scan* _scan
    cdef IdMap _ids
    cdef Scratch _scratch
    cdef Table _sequences
    cdef Table _tracks
    cdef Table _clocks
    cdef Halves _begins
    cdef Halves _ends
    cdef int _failure
    cdef int64_t _generation, _group, _last_key
    cdef uint64_t _main_clock
    cdef int64_t _grid, _block, _value
    cdef readonly int64_t at, inner_begin, inner_end, inner_method
    cdef readonly int64_t packets, damaged, damaged_at, skipped, lost, unnamed, unknown_clocks, realtime_ns

    def __cinit__(self, Scanner columns not None, uint64_t seed, kept_texts):
        self._columns = columns
        self._scan = &columns._scan
        memset(&self._ids, 0, sizeof(IdMap))
        memset(&self._scratch, 0, sizeof(Scratch))
        memset(&self._sequences, 0, sizeof(Table))
        memset(&self._tracks, 0, sizeof(Table))
        memset(&self._clocks, 0, sizeof(Table))
        memset(&self._begins, 0, sizeof(Halves))
        memset(&self._ends, 0, sizeof(Halves))
        self._ids.seed = seed
        self._main_clock = BOOTTIME
        self.damaged_at = -1
        self._grid, self._block, self._value = (self._add_text(text) for text in (b"grid", b"block", b"value"))
        for text in kept_texts:
            if not put_id(&self._ids, OF_TEXT_KEYS, self._add_text(text), 1):
                raise MemoryError

    def __dealloc__(self):
        cdef int64_t row
        cdef int kind
        for row in range(self._sequences.count):
            for kind in range(MANY_NAMES):
                free((<Sequence*>self._sequences.rows)[row].names[kind].text)
        free(self._ids.slots)
        free(self._scratch.data)
        free(self._sequences.rows)
        free(self._tracks.rows)
        free(self._clocks.rows)
        free(self._begins.at)
        free(self._ends.at)

    def _add_text(self, bytes text):
        cdef const uint8_t* start = text
        cdef int64_t found = intern(&self._scan.texts, start, len(text), False, 0)
        if found < 0:
            raise MemoryError
        return found

    # -- packets -------------------------------------------------------------------------------------------------------

    def decode(self, const uint8_t[::1] data, int64_t begin):
        """Reads the packets of `data` from `begin` on.  Returns what it stopped for; `at` says where."""
        cdef int why = DONE
        cdef const uint8_t* start
        if not 0 <= begin <= data.shape[0]:
            raise ValueError(f"no position in {data.shape[0]} bytes: {begin}")
        self.at = begin
        if begin == data.shape[0]:
            return why
        start = &data[0]
        if self._scan.rows.room == 0:  # the usual sizes; of what is not needed no page is touched
            make_room_for_rows(&self._scan.rows, data.shape[0] // BYTES_AN_EVENT)
            make_room_for_stats(&self._scan.stats, data.shape[0] // BYTES_A_STAT)
        with nogil:
            why = self._walk(start, start + begin, start + data.shape[0])
        if self._failure == NO_MEMORY:
            raise MemoryError("no room for the events of the trace")
        return why

    cdef int _walk(self, const uint8_t* base, const uint8_t* at, const uint8_t* end) noexcept nogil:
        cdef Field field
        cdef Message packet
        cdef const uint8_t* next
        cdef Span inner
        while at < end:
            self.at = at - base
            next = read_field(at, end, &field)
            if next == NULL:
                return CUT if field.error == OVERRUN and field.number == 1 and field.wire == DELIMITED else BROKEN
            if field.number == 1 and field.wire == DELIMITED:
                self.packets += 1
                self._failure = GOOD
                if self._read_message(content_of(&field), &packet):
                    self.inner_method = BY_DEFLATE if has_span(&packet, BY_DEFLATE) else BY_ZSTD
                    inner = span_of(&packet, BY_DEFLATE if self.inner_method == BY_DEFLATE else 63)
                    if inner.start != NULL:
                        self.at = next - base
                        self.inner_begin, self.inner_end = inner.start - base, inner.stop - base
                        return COMPRESSED
                    self._read_packet(&packet)
                if self._failure == NO_MEMORY:
                    return BROKEN
                if self._failure == BAD:
                    self._note_damage(at - base)
            elif field.number != 1 and field.number > 2:  # a trace has no other fields
                return BROKEN
            at = next
        self.at = at - base
        return DONE

    cdef void _note_damage(self, int64_t at) noexcept nogil:
        if self.damaged_at < 0:
            self.damaged_at = at
        self.damaged += 1

    def note_damage(self, int64_t at):
        """Counts one more place that could not be read."""
        self._note_damage(at)

    cdef inline bint _next(self, Span* rest, Field* field) noexcept nogil:
        """Reads the first field of a range, which is then what is left.  False at the end, and for damage."""
        if rest.start >= rest.stop:
            return False
        rest.start = read_field(rest.start, rest.stop, field)
        if rest.start == NULL:
            self._failure = BAD
            rest.stop = NULL
        return rest.start != NULL

    cdef bint _read_message(self, Span content, Message* message) noexcept nogil:
        """Reads all fields of a message.  False, and noted, if it is damaged."""
        if not read_fields(content.start, content.stop, message):
            self._failure = BAD
        return self._failure == GOOD

    cdef inline int64_t _text_id(self, Span text, int64_t guess) noexcept nogil:
        cdef int64_t found = intern(&self._scan.texts, text.start, text.stop - text.start, False, guess)
        if found < 0:
            self._failure = NO_MEMORY
        return max(found, 0)

    cdef void* _find_row(self, Table* table, int64_t scope, uint64_t id, size_t size) noexcept nogil:
        """The row of a number, zeros when it is asked for first; NULL if there is no memory.  It holds until the next one
        is asked for."""
        cdef void* larger
        cdef int64_t at
        if table.count and table.scope == scope and table.id == id:
            return <char*>table.rows + table.at * <int64_t>size
        at = find_id(&self._ids, scope, id)
        if at < 0:
            at = table.count
            larger = make_room(table.rows, at, &table.room, size) if at < 0x7FFFFFFF else NULL
            if larger != NULL:
                table.rows = larger
            if larger == NULL or not put_id(&self._ids, scope, id, at):
                self._failure = NO_MEMORY
                return NULL
            memset(<char*>table.rows + at * <int64_t>size, 0, size)
            table.count += 1
        table.scope, table.id, table.at = scope, id, at
        return <char*>table.rows + at * <int64_t>size

    cdef void _read_packet(self, const Message* packet) noexcept nogil:
        cdef Sequence* sequence = <Sequence*>self._find_row(
            &self._sequences, OF_SEQUENCES, <uint64_t>number_of(packet, 10), sizeof(Sequence)
        )
        cdef bint clears = number_of(packet, 13) & CLEARS_STATE or number_of(packet, 41)
        cdef int kind
        if sequence == NULL:
            return
        if number_of(packet, 42) and sequence.is_lossy:
            self.lost += 1
            sequence.is_invalid = True
        sequence.is_lossy = True  # from its second packet on, what was dropped is a loss
        if clears or sequence.scope == 0:
            self._generation += 1
            sequence.scope = self._generation * KINDS
            for kind in range(MANY_NAMES):
                sequence.names[kind].used = 0
        if clears:
            sequence.is_invalid = False
            sequence.track = sequence.clock = 0
        if sequence.is_invalid and number_of(packet, 13) & NEEDS_STATE:
            self.skipped += 1
            return
        if has_span(packet, 12):
            self._read_interned(sequence, packet.span[12])
        if has_span(packet, 59):
            self._read_defaults(sequence, packet.span[59])
        if has_span(packet, 6):
            self._read_clocks(packet, packet.span[6])
        if has_span(packet, 60):
            self._read_track(packet.span[60])
        if has_span(packet, 11):
            self._read_event(sequence, packet)
        if has_span(packet, 53):
            self._read_stage(sequence, packet)
        if has_span(packet, 52):
            self._read_gpu_counters(sequence, packet)

    # -- the state of a sequence ---------------------------------------------------------------------------------------

    cdef void _read_interned(self, Sequence* sequence, Span content) noexcept nogil:
        """Entries with a number and a text; of a kernel's two names the readable one."""
        cdef Field field
        cdef Message entry
        cdef int64_t kind
        cdef bint is_readable
        while self._next(&content, &field):
            kind = field.number
            if field.wire != DELIMITED:
                continue
            if kind in (CATEGORY, EVENT_NAME, KEY, STAGE, VALUE, KERNEL, ARGUMENT):
                self._read_message(content_of(&field), &entry)
                is_readable = kind == KERNEL and has_span(&entry, 3)
                self._name(sequence, kind, number_of(&entry, 1), span_of(&entry, 3 if is_readable else 2))
            elif kind == GPU_COUNTERS and self._read_message(content_of(&field), &entry):
                self._define(sequence, GPU_COUNTERS, number_of(&entry, 1), number_of(&entry, 3))
                self._name_counters(sequence, number_of(&entry, 1), span_of(&entry, 2))

    cdef void _name(self, Sequence* sequence, int64_t kind, int64_t iid, Span text) noexcept nogil:
        self._define(sequence, kind, iid, self._text_id(text, 0))

    cdef void _define(self, Sequence* sequence, int64_t kind, int64_t iid, int64_t meaning) noexcept nogil:
        cdef int place = names_of(kind)
        if place != FEW_NAMES and put_name(&sequence.names[place], iid, meaning):
            return
        if not put_id(&self._ids, sequence.scope + kind, <uint64_t>iid, meaning):
            self._failure = NO_MEMORY

    cdef inline int64_t _named(self, Sequence* sequence, int64_t kind, int64_t iid) noexcept nogil:
        """The text with a number; 0, and counted, if no packet of the sequence defines it."""
        cdef const Names* names = &sequence.names[names_of(kind)]
        cdef int64_t text
        if 0 <= iid < names.used and names.text[iid] >= 0:
            return names.text[iid]
        text = find_id(&self._ids, sequence.scope + kind, <uint64_t>iid)
        self.unnamed += text < 0
        return max(text, 0)

    cdef int64_t _name_in(
        self, Sequence* sequence, const Message* message, int number, int64_t kind, int text, int64_t fallback
    ) noexcept nogil:
        """The name that a message gives by its number or as text, else the fallback."""
        if has_span(message, text):
            return self._text_id(message.span[text], 0)
        return self._named(sequence, kind, message.value[number]) if has_number(message, number) else fallback

    cdef void _read_defaults(self, Sequence* sequence, Span content) noexcept nogil:
        cdef Message defaults, event
        self._read_message(content, &defaults)
        if has_number(&defaults, 58):
            sequence.clock = defaults.value[58]
        if has_span(&defaults, 11) and self._read_message(defaults.span[11], &event) and has_number(&event, 11):
            sequence.track = <uint64_t>event.value[11]

    # -- clocks --------------------------------------------------------------------------------------------------------

    cdef Clock* _find_clock(self, const Message* packet, uint64_t clock) noexcept nogil:
        """What is known of a clock, zeros for a new one; NULL if there is no memory."""
        cdef uint64_t key = clock & ~(<uint64_t>1 << 63)
        if FIRST_OF_SEQUENCE <= clock < BEYOND_SEQUENCE:
            key = (<uint64_t>number_of(packet, 10) << 8) | clock | (<uint64_t>1 << 63)
        return <Clock*>self._find_row(&self._clocks, OF_CLOCKS, key, sizeof(Clock))

    cdef void _read_clocks(self, const Message* packet, Span content) noexcept nogil:
        """A snapshot: what all its clocks showed at one moment."""
        cdef Field field
        cdef Message message
        cdef Clock readings[MOST_CLOCKS]
        cdef Clock* clock
        cdef int64_t count = 0, now = 0, k
        cdef bint is_known = False
        while self._next(&content, &field):
            if field.number == 2 and field.wire == VARINT and field.value > 0:
                self._main_clock = <uint64_t>field.value
            elif field.number == 1 and field.wire == DELIMITED and count < MOST_CLOCKS:
                self._read_message(content_of(&field), &message)
                readings[count].id = readings[count].last = 0
                readings[count].id = <uint64_t>number_of(&message, 1)
                readings[count].last = <uint64_t>number_of(&message, 2)
                readings[count].is_incremental = number_of(&message, 3) != 0
                readings[count].multiplier = min(max(number_of(&message, 4), 1), 1000000000)
                readings[count].offset_ns = -bounded(readings[count].last * <uint64_t>readings[count].multiplier)
                count += 1
        if self._failure != GOOD or count == 0:
            return
        now = -readings[0].offset_ns  # of clocks that nothing relates to the trace's, the first stands for it
        for k in range(count):
            clock = self._find_clock(packet, readings[k].id)
            if clock == NULL:
                return
            if readings[k].id == self._main_clock:
                now, is_known = -readings[k].offset_ns, True
            elif clock.multiplier and not is_known:
                now, is_known = clock.offset_ns - readings[k].offset_ns, True
        for k in range(count):
            readings[k].offset_ns += now
            if readings[k].id == REALTIME and self.realtime_ns == 0:
                self.realtime_ns = -readings[k].offset_ns
            clock = self._find_clock(packet, readings[k].id)
            if clock != NULL:
                clock[0] = readings[k]

    cdef int64_t _time_ns(self, Sequence* sequence, const Message* packet) noexcept nogil:
        """A packet's time on the trace's clock."""
        cdef uint64_t id = <uint64_t>(number_of(packet, 58) or sequence.clock)
        cdef uint64_t time = <uint64_t>number_of(packet, 8)
        cdef Clock* clock
        if id == 0 or id == self._main_clock:
            return bounded(time)
        clock = self._find_clock(packet, id)
        if clock == NULL or clock.multiplier == 0:
            self.unknown_clocks += 1
            return bounded(time)
        if clock.is_incremental:
            time += clock.last
            clock.last = time
        return bounded(time * <uint64_t>clock.multiplier) + clock.offset_ns

    # -- tracks --------------------------------------------------------------------------------------------------------

    cdef inline Track* _find_track(self, int scope, uint64_t uuid) noexcept nogil:
        return <Track*>self._find_row(&self._tracks, scope, uuid, sizeof(Track))

    cdef inline Track* _track_at(self, int64_t row) noexcept nogil:
        return <Track*>self._tracks.rows + row

    cdef void _read_track(self, Span content) noexcept nogil:
        """A track's description; a later one of the same track adds to it."""
        cdef Message message, about
        cdef Track* track
        cdef Span name
        cdef int at
        if not self._read_message(content, &message):
            return
        track = self._find_track(OF_TRACKS, <uint64_t>number_of(&message, 1))
        if track == NULL:
            return
        track.uuid = <uint64_t>number_of(&message, 1)
        track.parent = <uint64_t>number_of(&message, 5) or track.parent
        name = span_of(&message, 2 if has_span(&message, 2) else 10 if has_span(&message, 10) else 13)
        # A thread's track may name its process as well.
        at = 4 if has_span(&message, 4) else 3 if has_span(&message, 3) else 8
        if has_span(&message, at):
            self._read_message(message.span[at], &about)
            track.kind = THREAD_TRACK if at == 4 else PROCESS_TRACK if at == 3 else COUNTER_TRACK
            if track.kind == COUNTER_TRACK:
                track.multiplier = number_of(&about, 4) or track.multiplier
                track.is_incremental = number_of(&about, 5) != 0
            else:
                track.pid = number_of(&about, 1) or track.pid
                track.tid = number_of(&about, 2) or track.tid
                at = 6 if track.kind == PROCESS_TRACK else 5
                if has_span(&about, at) and about.span[at].start < about.span[at].stop:
                    name = about.span[at]
        elif track.kind == UNKNOWN_TRACK:
            track.kind = NAMED_TRACK
        if name.start != NULL:
            track.name = self._text_id(name, 0)

    def tracks(self):
        """All tracks: kind, uuid, the uuid of the parent, process or GPU, thread, and the text of the name."""
        cdef Track* track
        cdef int64_t row
        found = []
        for row in range(self._tracks.count):
            track = self._track_at(row)
            found.append((track.kind, track.uuid, track.parent, track.pid, track.tid, track.name))
        return found

    # -- track events --------------------------------------------------------------------------------------------------

    cdef void _read_event(self, Sequence* sequence, const Message* packet) noexcept nogil:
        cdef Field field
        cdef Event event
        cdef Message message
        cdef Track* track
        cdef Span rest = packet.span[11]
        cdef int64_t kind, time_ns = self._time_ns(sequence, packet)
        self._start_event(&event)
        start_message(&message)
        while self._next(&rest, &field):
            if field.number == 4 and field.wire == DELIMITED:
                self._read_annotation(sequence, &event, content_of(&field))
            elif field.number == 3 or field.number == 22:
                self._add_categories(sequence, &event, &field)
            else:
                keep_field(&message, &field)
        track = self._find_track(
            OF_TRACKS, <uint64_t>message.value[11] if has_number(&message, 11) else sequence.track
        )
        if track == NULL:
            return
        if has_number(&message, 16):  # in us
            time_ns = message.value[16] * 1000 if -INT64_MAX // 1000 <= message.value[16] <= INT64_MAX // 1000 else 0
        kind = number_of(&message, 9)
        event.name = self._name_in(sequence, &message, 10, EVENT_NAME, 23, 0)
        event.phase = PHASES[kind] if 0 <= kind <= COUNTER else 0
        set_time(&event, time_ns)
        event.tid = self._tracks.at
        if has_span(&message, 6):
            self._read_legacy(sequence, &event, message.span[6])
        if event.phase == IS_COUNTER and kind == COUNTER:
            self._put_counter(track, &event, &message)
        elif event.phase == IS_BEGIN:
            self._put_begin(&event, time_ns)
        elif event.phase == IS_END:
            self._put_end(track, &event, time_ns)
        else:
            self._put(&event)

    cdef inline void _start_event(self, Event* event) noexcept nogil:
        event.phase = 0
        event.cat = event.name = event.pid = event.tid = event.flow = 0
        event.start.us = event.start.frac_ps = event.duration.us = event.duration.frac_ps = 0
        event.flags = HAS_TIME | HAS_PID | HAS_TID
        event.stats = self._scan.stats.count
        event.slow = self._scan.stats.slow_count
        self._last_key = 0

    cdef inline void _put(self, const Event* event) noexcept nogil:
        """Makes a row of an event, unless something of its packet failed."""
        if self._failure != GOOD:
            return
        if put_row(self._scan, event):
            self._scan.rows.count += 1
        else:
            self._failure = NO_MEMORY

    cdef void _put_counter(self, Track* track, Event* event, const Message* message) noexcept nogil:
        """A counter's value, in its own unit."""
        cdef int at = 30 if has_number(message, 30) else 44
        cdef int64_t bits = number_of(message, at)
        cdef double number
        if not (has_number(message, 30) or message.there[FIXED64] >> 44 & 1):
            return
        if at == 44:
            memcpy(&number, &bits, sizeof(double))
            number *= track.multiplier or 1
            memcpy(&bits, &number, sizeof(double))
        else:
            bits = <int64_t>(<uint64_t>bits * <uint64_t>(track.multiplier or 1))
            if track.is_incremental:
                bits = track.total = <int64_t>(<uint64_t>track.total + <uint64_t>bits)
        self._put_stat(event, self._value, INT if at == 30 else DOUBLE, bits)
        self._put(event)

    cdef void _add_categories(self, Sequence* sequence, Event* event, const Field* field) noexcept nogil:
        """One category by its number or as text, or several by their numbers."""
        cdef const uint8_t* at = field.start
        cdef uint64_t iid
        if field.wire == VARINT:
            self._add_category(event, self._named(sequence, CATEGORY, field.value))
        elif field.wire == DELIMITED and field.number == 22:
            self._add_category(event, self._text_id(content_of(field), 0))
        elif field.wire == DELIMITED:
            while at < field.stop and self._failure == GOOD:
                at = read_varint(at, field.stop, &iid)
                if at == NULL:
                    self._failure = BAD
                    return
                self._add_category(event, self._named(sequence, CATEGORY, <int64_t>iid))

    cdef void _add_category(self, Event* event, int64_t category) noexcept nogil:
        """The categories of an event are one text, with commas between them."""
        cdef Span text
        if event.cat == 0:
            event.cat = category
            return
        self._scratch.size = 0
        self._write_text(event.cat)
        self._write(b",", 1)
        self._write_text(category)
        text.start, text.stop = self._scratch.data, self._scratch.data + self._scratch.size
        event.cat = self._text_id(text, 0)

    cdef void _read_legacy(self, Sequence* sequence, Event* event, Span content) noexcept nogil:
        """What Chrome writes of an event besides: its phase as in JSON, a duration, an id."""
        cdef Message message
        cdef int id
        if not self._read_message(content, &message):
            return
        if event.name == 0 and has_number(&message, 1):
            event.name = self._named(sequence, EVENT_NAME, message.value[1])
        if event.phase == 0:
            event.phase = <uint8_t>number_of(&message, 2)
        if has_number(&message, 3) and 0 <= message.value[3] < INT64_MAX // 1000000:
            event.duration.us = message.value[3]
            event.flags |= HAS_DURATION
        id = 6 if has_number(&message, 6) else 10 if has_number(&message, 10) else 11
        if has_number(&message, id):
            event.flow = message.value[id]
            event.flags |= HAS_FLOW | (LOCAL_ID if id == 10 else 0)

    # -- slices --------------------------------------------------------------------------------------------------------

    cdef void _put_begin(self, Event* event, int64_t time_ns) noexcept nogil:
        if self._ends.count:
            self._pair_group()
        self._put(event)
        if self._failure == GOOD:
            self._add_half(&self._begins, self._scan.rows.count - 1, event.tid, time_ns)

    cdef void _put_end(self, Track* track, Event* event, int64_t time_ns) noexcept nogil:
        """The end of a slice; one with stats is a row of its own."""
        if event.stats == self._scan.stats.count:
            if self._failure == GOOD:
                self._add_half(&self._ends, -1, event.tid, time_ns)
            return
        self._pair_group()
        if track.open:
            self._close(track)
        self._put(event)

    cdef inline void _add_half(self, Halves* halves, int64_t row, int64_t track, int64_t time_ns) noexcept nogil:
        cdef Half* larger = <Half*>make_room(halves.at, halves.count, &halves.room, sizeof(Half))
        if larger == NULL:
            self._failure = NO_MEMORY
            return
        halves.at = larger
        larger[halves.count].row, larger[halves.count].track, larger[halves.count].time_ns = row, track, time_ns
        halves.count += 1

    cdef void _pair_group(self) noexcept nogil:
        """Pairs what came since the last group: starts, then ends."""
        cdef int64_t k
        cdef bint is_listed = self._is_listed()
        if is_listed:
            for k in range(self._ends.count):
                self._end_row(self._begins.at[k].row, self._ends.at[k].time_ns)
        else:
            for k in range(self._begins.count):
                self._open(&self._begins.at[k])
            for k in range(self._ends.count):
                self._end_innermost(&self._ends.at[k])
        self._begins.count = self._ends.count = 0

    cdef bint _is_listed(self) noexcept nogil:
        """Whether the ends of a group have the order of its starts: they fit one by one, and time goes back."""
        cdef int64_t k, count = self._begins.count
        cdef Half* begins = self._begins.at
        cdef Half* ends = self._ends.at
        cdef bint goes_back = False
        if count < 2 or count != self._ends.count:
            return False
        self._group += 1
        for k in range(count):
            if begins[k].track != ends[k].track or begins[k].time_ns > ends[k].time_ns:
                return False
            goes_back |= self._goes_back(&begins[k])
        for k in range(count):
            goes_back |= self._goes_back(&ends[k])
        return goes_back

    cdef bint _goes_back(self, const Half* half) noexcept nogil:
        """Whether a half is before the one of its track and group that was asked about last."""
        cdef Track* track = self._track_at(half.track)
        cdef bint found = track.group == self._group and half.time_ns < track.group_ns
        track.group, track.group_ns = self._group, half.time_ns
        return found

    cdef void _open(self, const Half* begin) noexcept nogil:
        cdef Track* track = self._track_at(begin.track)
        self._keep_order(track, begin.time_ns)
        if not track.is_disordered:
            self._scan.rows.duration_us[begin.row] = track.open
            track.open = begin.row + 1

    cdef void _end_innermost(self, const Half* end) noexcept nogil:
        """Ends the innermost slice of a track.  Where there is none, the end is a row."""
        cdef Track* track = self._track_at(end.track)
        cdef Event event
        self._keep_order(track, end.time_ns)
        if track.open:
            self._end_row(self._close(track), end.time_ns)
            return
        self._start_event(&event)
        event.phase, event.tid = IS_END, end.track
        set_time(&event, end.time_ns)
        self._put(&event)

    cdef inline void _keep_order(self, Track* track, int64_t time_ns) noexcept nogil:
        """Where time goes back, what is open is left to whoever knows all starts and ends."""
        if time_ns < track.last_ns:
            track.is_disordered = True
            while track.open:
                self._close(track)
        track.last_ns = time_ns

    cdef inline int64_t _close(self, Track* track) noexcept nogil:
        """The row of the innermost open slice, which is open no more."""
        cdef int64_t row = track.open - 1
        track.open = self._scan.rows.duration_us[row]
        self._scan.rows.duration_us[row] = 0
        return row

    cdef inline void _end_row(self, int64_t row, int64_t time_ns) noexcept nogil:
        cdef Rows* rows = &self._scan.rows
        cdef int64_t length = time_ns - rows.us[row] * 1000 - rows.frac_ps[row] // 1000
        rows.phase[row] = IS_WHOLE
        rows.flags[row] |= HAS_DURATION
        rows.duration_us[row] = length // 1000
        rows.duration_frac_ps[row] = <int32_t>(length % 1000 * 1000)

    def finish(self):
        """Pairs the last group, and leaves slices that never ended without a duration."""
        cdef int64_t row
        cdef Track* track
        with nogil:
            self._failure = GOOD
            self._pair_group()
            for row in range(self._tracks.count):
                track = self._track_at(row)
                while track.open:
                    self._close(track)
        if self._failure == NO_MEMORY:
            raise MemoryError("no room for the events of the trace")

    # -- values --------------------------------------------------------------------------------------------------------

    cdef inline void _read_entry(self, Span content, int holder, Entry* entry) noexcept nogil:
        """Reads a message with a value; one without has the kind NOTHING."""
        cdef Field field
        cdef int kind
        entry.kind, entry.bits, entry.iid = NOTHING, 0, -1
        entry.name.start = entry.name.stop = NULL
        while self._next(&content, &field):
            kind = _KINDS_OF[holder][field.number] if field.number < 64 else NOTHING
            if kind == NOTHING or (kind >= A_TEXT) != (field.wire == DELIMITED):
                continue
            if kind == AN_IID:
                entry.iid = field.value
            elif kind == A_NAME:
                entry.name = content_of(&field)
            elif kind != AN_ARRAY or entry.kind != A_DICTIONARY:
                entry.kind, entry.bits, entry.text = kind, field.value, content_of(&field)

    cdef inline void _put_stat(self, Event* event, int64_t name, int tag, int64_t bits) noexcept nogil:
        if not put_stat(self._scan, event, name, tag, bits):
            self._failure = NO_MEMORY

    cdef void _put_text(self, Event* event, int64_t name, Span text) noexcept nogil:
        """Makes a stat of a text, which is most likely the one that the key had before."""
        cdef int64_t id = self._text_id(text, self._scan.texts.value[name])
        self._scan.texts.value[name] = <int32_t>id
        self._put_stat(event, name, STRING, id)

    cdef void _put_scratch(self, Event* event, int64_t name) noexcept nogil:
        """Makes a stat of the JSON that was written."""
        cdef Span text
        text.start, text.stop = self._scratch.data, self._scratch.data + self._scratch.size
        self._put_text(event, name, text)

    cdef inline void _put_entry(
        self, Sequence* sequence, Event* event, int64_t name, const Entry* entry
    ) noexcept nogil:
        """Makes a stat of a value that is not nested."""
        if entry.kind == AN_INT or entry.kind == A_UINT:
            self._put_stat(event, name, INT if entry.kind == AN_INT else UINT, entry.bits)
        elif entry.kind >= A_TEXT:
            self._put_text(event, name, entry.text)
        elif entry.kind == A_NUMBERED_TEXT:
            self._put_stat(event, name, STRING, self._named(sequence, VALUE, entry.bits))
        elif entry.kind == A_REAL:
            self._put_stat(event, name, DOUBLE, entry.bits)
        elif entry.kind == A_FLAG:
            self._put_stat(event, name, INT, entry.bits != 0)

    cdef inline int64_t _next_key(self, Span text) noexcept nogil:
        """The text of a key, which is most likely the one that came last after the key before."""
        cdef int64_t before = self._last_key
        self._last_key = self._text_id(text, self._scan.texts.follower[before])
        self._scan.texts.follower[before] = <int32_t>self._last_key
        return self._last_key

    cdef void _read_annotation(self, Sequence* sequence, Event* event, Span content) noexcept nogil:
        """A debug annotation as a stat."""
        cdef Entry entry
        cdef int64_t name
        self._read_entry(content, ANNOTATION, &entry)
        if entry.name.start != NULL:
            name = self._next_key(entry.name)
        elif entry.iid >= 0:
            name = self._last_key = self._named(sequence, KEY, entry.iid)
        else:
            return
        if NOTHING < entry.kind < AN_ARRAY:
            self._put_entry(sequence, event, name, &entry)
        elif entry.kind != A_TYPED_MESSAGE:
            self._scratch.size = 0
            self._write_entry(sequence, &entry, content, 0)
            self._put_scratch(event, name)

    # -- nested values -------------------------------------------------------------------------------------------------

    cdef void _write(self, const void* data, int64_t count) noexcept nogil:
        if not put_bytes(&self._scratch, data, count):
            self._failure = NO_MEMORY

    cdef void _write_text(self, int64_t text) noexcept nogil:
        cdef int64_t start = self._scan.texts.offsets[text]
        self._write(self._scan.texts.blob + start, self._scan.texts.offsets[text + 1] - start)

    cdef void _write_json_text(self, const uint8_t* text, int64_t length) noexcept nogil:
        if not put_json_text(&self._scratch, text, length):
            self._failure = NO_MEMORY

    cdef void _write_number(self, int kind, int64_t bits) noexcept nogil:
        cdef double real
        cdef bint has_room
        if kind == A_REAL:
            memcpy(&real, &bits, sizeof(double))
            has_room = put_json_double(&self._scratch, real)
        else:
            has_room = put_json_integer(&self._scratch, bits, kind == A_UINT)
        if not has_room:
            self._failure = NO_MEMORY

    cdef void _write_numbered(self, int64_t text) noexcept nogil:
        cdef int64_t start = self._scan.texts.offsets[text]
        self._write_json_text(self._scan.texts.blob + start, self._scan.texts.offsets[text + 1] - start)

    cdef void _write_entry(self, Sequence* sequence, const Entry* entry, Span content, int depth) noexcept nogil:
        """Writes a value as JSON: without one an empty array, and null if it is nested without end."""
        if depth >= MOST_DEPTH or entry.kind == A_TYPED_MESSAGE:
            self._write(b"null", 4)
        elif entry.kind == NOTHING:
            self._write(b"[]", 2)
        elif entry.kind == A_DICTIONARY or entry.kind == AN_ARRAY:
            self._write_entries(sequence, content, entry.kind, depth)
        elif entry.kind == A_NESTED_VALUE:
            self._write_nested(entry.text, depth + 1)
        elif entry.kind == A_FLAG:
            self._write(b"true" if entry.bits else b"false", 4 if entry.bits else 5)
        elif entry.kind == A_TEXT:
            self._write_json_text(entry.text.start, entry.text.stop - entry.text.start)
        elif entry.kind == SOME_JSON:
            self._write(entry.text.start, entry.text.stop - entry.text.start)
        elif entry.kind == A_NUMBERED_TEXT:
            self._write_numbered(self._named(sequence, VALUE, entry.bits))
        else:
            self._write_number(entry.kind, entry.bits)

    cdef void _write_entries(self, Sequence* sequence, Span content, int kind, int depth) noexcept nogil:
        """Writes the entries of a dictionary (field 11) or an array (field 12)."""
        cdef Field field
        cdef Entry entry
        cdef bint is_first = True, has_keys = kind == A_DICTIONARY
        while self._next(&content, &field):
            if field.number != (11 if has_keys else 12) or field.wire != DELIMITED:
                continue
            self._write(b"," if not is_first else b"{" if has_keys else b"[", 1)
            is_first = False
            self._read_entry(content_of(&field), ANNOTATION, &entry)
            if has_keys and entry.iid >= 0:
                self._write_numbered(self._named(sequence, KEY, entry.iid))
            elif has_keys:
                self._write_json_text(entry.name.start, entry.name.stop - entry.name.start)
            if has_keys:
                self._write(b":", 1)
            self._write_entry(sequence, &entry, content_of(&field), depth + 1)
        self._write(b"}" if has_keys else b"]", 1)

    cdef void _write_nested(self, Span content, int depth) noexcept nogil:
        """Writes a value of the older message for nested values, whose keys and values stand in two lists."""
        cdef Field field, key
        cdef Message message
        cdef Entry entry
        cdef Span keys = content
        cdef int64_t kind
        cdef bint is_first = True
        self._read_message(content, &message)
        self._read_entry(content, NESTED, &entry)
        kind = number_of(&message, 1)
        if entry.kind != NOTHING or depth >= MOST_DEPTH or not 1 <= kind <= 2:
            if entry.kind == NOTHING:
                entry.kind = A_TYPED_MESSAGE  # nothing that can be written
            self._write_entry(NULL, &entry, content, depth)
            return
        self._write(b"{" if kind == 1 else b"[", 1)
        while self._next(&content, &field):
            if field.number != (3 if kind == 1 else 4) or field.wire != DELIMITED:
                continue
            if not is_first:
                self._write(b",", 1)
            is_first = False
            if kind == 1:
                key.number = 0
                while not (key.number == 2 and key.wire == DELIMITED) and self._next(&keys, &key):
                    pass
                if key.number == 2 and key.wire == DELIMITED:
                    self._write_json_text(key.start, key.stop - key.start)
                else:
                    self._write(b'""', 2)
                self._write(b":", 1)
            self._write_nested(content_of(&field), depth + 1)
        self._write(b"}" if kind == 1 else b"]", 1)

    # -- work and counters of GPUs -------------------------------------------------------------------------------------

    cdef void _read_stage(self, Sequence* sequence, const Message* packet) noexcept nogil:
        """A piece of work on a queue of a GPU."""
        cdef Field field
        cdef Event event
        cdef Message message
        cdef Track* track
        cdef Span rest = packet.span[53]
        cdef int64_t gpu, queue, duration
        self._start_event(&event)
        start_message(&message)
        while self._next(&rest, &field):
            if field.number == 6 and field.wire == DELIMITED:
                self._read_extra(&event, content_of(&field))
            elif field.number == 21 and field.wire == DELIMITED:
                self._read_launch(sequence, &event, content_of(&field))
            else:
                keep_field(&message, &field)
        gpu = number_of(&message, 11)
        queue = self._named(sequence, STAGE, message.value[13]) if has_number(&message, 13) else 0
        event.cat = self._named(sequence, STAGE, message.value[14]) if has_number(&message, 14) else 0
        event.name = self._name_in(sequence, &message, 20, EVENT_NAME, 17, 0)
        if event.name == 0 and has_number(&message, 19):
            event.name = self._named(sequence, KERNEL, message.value[19])
        event.name = event.name or event.cat
        track = self._find_track(OF_QUEUES, (<uint64_t>gpu << 32) | <uint64_t>queue)
        if track == NULL:
            return
        track.kind, track.pid, track.name = QUEUE_TRACK, gpu, queue
        event.tid = self._tracks.at
        event.phase = IS_INSTANT
        set_time(&event, self._time_ns(sequence, packet))
        if has_number(&message, 2) and message.value[2] >= 0:
            duration = bounded(<uint64_t>message.value[2])
            event.phase = IS_WHOLE
            event.flags |= HAS_DURATION
            event.duration.us = duration // 1000
            event.duration.frac_ps = duration % 1000 * 1000
        self._put(&event)

    cdef void _read_extra(self, Event* event, Span content) noexcept nogil:
        """A name and a value, both text; a text that is a number is one."""
        cdef Message message
        cdef Span text
        cdef double real = 0
        cdef int64_t name, bits
        if not self._read_message(content, &message):
            return
        name, text = self._next_key(span_of(&message, 1)), span_of(&message, 2)
        if text.start == NULL or find_id(&self._ids, OF_TEXT_KEYS, <uint64_t>name) >= 0:
            self._put_text(event, name, text)
        elif read_decimal(text, &bits):
            self._put_stat(event, name, INT, bits)
        elif read_real(<const char*>text.start, <int>min(text.stop - text.start, 32), &real):
            memcpy(&bits, &real, sizeof(double))
            self._put_stat(event, name, DOUBLE, bits)
        else:
            self._put_text(event, name, text)

    cdef void _read_launch(self, Sequence* sequence, Event* event, Span content) noexcept nogil:
        """The launch of a kernel: grid and block as arrays, and arguments."""
        cdef Field field
        cdef Message size
        cdef Entry argument
        cdef int64_t name
        cdef int axis
        while self._next(&content, &field):
            if field.wire != DELIMITED or not 1 <= field.number <= 3:
                continue
            if field.number < 3:
                self._read_message(content_of(&field), &size)
                self._scratch.size = 0
                for axis in range(1, 4):
                    self._write(b"[" if axis == 1 else b",", 1)
                    self._write_number(AN_INT, size.value[axis] if has_number(&size, axis) else 1)
                self._write(b"]", 1)
                self._put_scratch(event, self._grid if field.number == 1 else self._block)
                continue
            self._read_entry(content_of(&field), LAUNCH_ARGUMENT, &argument)
            name = self._text_id(argument.name, 0) if argument.iid < 0 else self._named(sequence, ARGUMENT, argument.iid)
            if argument.kind == A_UINT and argument.bits >= 0:
                argument.kind = AN_INT
            self._put_entry(sequence, event, name, &argument)

    cdef void _name_counters(self, Sequence* sequence, int64_t iid, Span content) noexcept nogil:
        """The counters of a GPU, to which events refer by one number for all and one for each."""
        cdef Field field
        cdef Message spec
        while self._next(&content, &field):
            if field.number == 1 and field.wire == DELIMITED and self._read_message(content_of(&field), &spec):
                self._name(sequence, COUNTER_NAME, (iid << 32) | number_of(&spec, 1), span_of(&spec, 2))

    cdef void _read_gpu_counters(self, Sequence* sequence, const Message* packet) noexcept nogil:
        """Values of a GPU's counters."""
        cdef Field field
        cdef Event event
        cdef Message message
        cdef Entry entry
        cdef Track* track
        cdef Span rest = packet.span[52]
        cdef int64_t iid, gpu, time_ns = self._time_ns(sequence, packet)
        self._read_message(rest, &message)  # what the values refer to may stand behind them
        iid = number_of(&message, 4)
        gpu = message.value[3] if has_number(&message, 3) else find_id(
            &self._ids, sequence.scope + GPU_COUNTERS, <uint64_t>iid
        )
        self._name_counters(sequence, 0, span_of(&message, 1))
        track = self._find_track(OF_GPU_COUNTERS, <uint64_t>max(gpu, 0))
        if track == NULL:
            return
        track.kind, track.pid = GPU_COUNTER_TRACK, max(gpu, 0)
        while self._next(&rest, &field):
            if field.number != 2 or field.wire != DELIMITED:
                continue
            self._read_entry(content_of(&field), GPU_VALUE, &entry)
            self._start_event(&event)
            event.phase = IS_COUNTER
            event.name = self._named(sequence, COUNTER_NAME, (iid << 32) | max(entry.iid, 0))
            event.tid = self._tracks.at
            set_time(&event, time_ns)
            self._put_entry(sequence, &event, self._value, &entry)
            self._put(&event)


def find_packet(const uint8_t[::1] data, int64_t begin):
    """Position from `begin` on where a packet probably starts, since others follow it; -1 if there is none."""
    cdef const uint8_t* start
    cdef int64_t at = begin
    if begin < 0 or begin >= data.shape[0]:
        return -1
    start = &data[0]
    with nogil:
        while at < data.shape[0] and not _is_followed(start + at, start + data.shape[0]):
            at += 1
    return at if at < data.shape[0] else -1


cdef bint _is_followed(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """Whether so many packets stand here, one after the other, that it is no accident; or as many as there are."""
    cdef Field field
    cdef int count
    for count in range(CHAIN):
        if at == end and count > 0:
            break
        if at >= end or at[0] != PACKET_TAG or at + 1 == end or at[1] == 0:
            return False
        at = read_field(at, end, &field)
        if at == NULL:
            return False
    return True


# ---- numbers ---------------------------------------------------------------------------------------------------------


cdef inline int64_t bounded(uint64_t time_ns) noexcept nogil:
    """A time as a signed number that can be added to another; one beyond 146 years is damage."""
    return <int64_t>time_ns if time_ns < <uint64_t>1 << 62 else 0


cdef inline void set_time(Event* event, int64_t time_ns) noexcept nogil:
    event.start.us = time_ns // 1000
    event.start.frac_ps = (time_ns - event.start.us * 1000) * 1000


cdef bint read_decimal(Span text, int64_t* value) noexcept nogil:
    """A whole number of at most 18 digits, as programs print it.  False if the text is something else."""
    cdef const uint8_t* at = text.start
    cdef bint is_negative = at < text.stop and at[0] == 0x2D
    cdef int64_t found = 0
    at += is_negative
    if at >= text.stop or text.stop - at > 18 or (at[0] == 0x30 and text.stop - at > 1):
        return False
    while at < text.stop:
        if not 0x30 <= at[0] <= 0x39:
            return False
        found = 10 * found + (at[0] - 0x30)
        at += 1
    value[0] = -found if is_negative else found
    return True
