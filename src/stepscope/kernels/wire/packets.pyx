"""Perfetto's packets, one after the other, into the columns that trace JSON is read into.

    trace  = { packet }              PacketDecoder.decode
    packet = the state of its sequence (interned texts, defaults, clocks), and an event, a track or compressed packets
    event  = { annotation }          stats; nested ones as the text of their JSON

Each sequence of packets has texts of its own: they lie in one map, under a scope that changes when the sequence says
that it starts anew.  Slices are paired as they come while each track is in the order of time; a file that is not is read
again with `pairs` off, so that its starts and ends become rows of their own.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from stepscope.kernels.trace_json.columns cimport Rows, make_room_for_rows, make_room_for_stats
from stepscope.kernels.trace_json.events cimport Event, Scan, put_row, put_stat
from stepscope.kernels.trace_json.layout cimport (
    DOUBLE, HAS_DURATION, HAS_FLOW, HAS_PID, HAS_TID, HAS_TIME, INT, LOCAL_ID, STRING, UINT,
)
from stepscope.kernels.trace_json.scan cimport Scanner
from stepscope.kernels.trace_json.texts cimport Texts, intern
from stepscope.kernels.wire.fields cimport (
    DELIMITED, FIXED64, OVERRUN, VARINT, Field, read_field,
)
from stepscope.kernels.wire.idmap cimport IdMap, find_id, put_id
from stepscope.kernels.wire.jsontext cimport (
    Scratch, put_bytes, put_json_double, put_json_integer, put_json_text, read_real,
)

cpdef enum:
    # What decoding stopped for: the end of the bytes; compressed packets (see `inner_begin`); a track whose times go
    # back; a byte that starts no packet; a packet that goes on behind the end.
    DONE
    COMPRESSED
    DISORDERED
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
    # Scopes that belong to a sequence are its generation times KINDS, and one of these.
    CATEGORY = 1
    EVENT_NAME
    KEY
    VALUE
    STAGE
    KERNEL
    ARGUMENT
    GPU_OF_COUNTERS
    COUNTER_NAME
    KINDS = 16
    DENSE_KINDS = 8
    DENSE_SLACK = 1024  # numbers that are not given may take so much room, or as much as those that are

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
    CHAIN = 4  # packets in a row are no accident
    SLICE_BEGIN = 1
    SLICE_END = 2
    INSTANT = 3
    COUNTER = 4

cdef enum:
    # Phases of trace JSON.
    IS_BEGIN = 0x42
    IS_END = 0x45
    IS_WHOLE = 0x58
    IS_INSTANT = 0x69
    IS_COUNTER = 0x43

cdef enum:
    # Results of reading a message.
    NO_MEMORY = -1
    BAD = 0
    GOOD = 1

cdef inline const uint8_t* next_field(const uint8_t* at, const uint8_t* end, Field* field) noexcept nogil:
    """As `read_field`, and quicker for fields whose tag and number take up to two bytes each, as most do."""
    cdef uint64_t tag, value
    cdef const uint8_t* next
    if end - at < 4:
        return read_field(at, end, field)
    tag, next = at[0], at + 1
    if tag >= 0x80:
        if at[1] >= 0x80:
            return read_field(at, end, field)
        tag, next = (tag & 0x7F) | (<uint64_t>at[1] << 7), at + 2
    value = next[0]
    next += 1
    if value >= 0x80:
        if next[0] >= 0x80:
            return read_field(at, end, field)
        value, next = (value & 0x7F) | (<uint64_t>next[0] << 7), next + 1
    field.number, field.wire = <int64_t>(tag >> 3), <int>(tag & 7)
    if field.number == 0:
        return read_field(at, end, field)
    if field.wire == VARINT:
        field.value = <int64_t>value
        return next
    if field.wire == DELIMITED and value <= <uint64_t>(end - next):
        field.value = 0
        field.start, field.stop = next, next + value
        return field.stop
    return read_field(at, end, field)


cdef struct Range:
    const uint8_t* start  # NULL if there is none
    const uint8_t* stop

cdef struct Packet:
    uint64_t timestamp
    uint64_t sequence
    int64_t flags
    int64_t clock
    int64_t dropped
    Range event
    Range interned
    Range defaults
    Range track
    Range clocks
    Range stage
    Range counters
    Range inner
    int64_t method

cdef struct Sequence:
    int64_t scope  # of its interned texts
    uint64_t id
    uint64_t track
    int64_t clock
    bint is_valid  # nothing that its packets refer to is missing
    bint is_lossy
    int32_t* texts[DENSE_KINDS]  # of small numbers, plus one; 0 for numbers without a text
    int64_t room[DENSE_KINDS]
    int64_t entries

cdef struct Track:
    uint64_t uuid
    uint64_t parent
    int64_t pid
    int64_t tid
    int64_t name
    int64_t kind
    int64_t last_ns
    int64_t open_row  # the innermost open slice, -1 if there is none; the row's duration holds the next one
    int64_t multiplier  # of a counter's values
    int64_t total  # of an incremental counter
    bint is_incremental
    bint is_bytes

cdef struct Clock:
    int64_t offset_ns  # what to add to its time to get the trace's
    int64_t multiplier
    uint64_t last
    bint is_incremental

cdef struct Reading:
    uint64_t clock
    uint64_t time
    int64_t multiplier
    bint is_incremental


cdef class PacketDecoder:
    """Reads packets into the columns and texts of a scanner of trace JSON.

    A row's `tid` is the row of its track in `tracks()` until the reader replaces it; `cat` of work on a GPU's queue is
    the name of its stage.

    Args:
        columns: what is filled.
        seed: makes the order of the maps unpredictable.
        pairs: starts and ends of slices become one row.
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
    cdef Sequence* _sequences
    cdef Track* _tracks
    cdef Clock* _clocks
    cdef int64_t _sequence_count, _track_count, _clock_count
    cdef int64_t _sequence_room, _track_room, _clock_room
    cdef int64_t _generation
    cdef uint64_t _main_clock
    cdef bint _pairs
    cdef bint _is_disordered
    cdef int64_t _last_sequence
    cdef uint64_t _last_uuid
    cdef int64_t _last_track
    cdef int64_t _grid, _block, _value
    cdef int64_t _kept_texts[16]
    cdef int64_t _kept_count
    cdef readonly int64_t at, inner_begin, inner_end, inner_method
    cdef readonly int64_t packets, damaged, damaged_at, skipped, lost, unnamed, unknown_clocks, realtime_ns

    def __cinit__(self, Scanner columns not None, uint64_t seed, bint pairs, kept_texts):
        self._columns = columns
        self._scan = &columns._scan
        memset(&self._ids, 0, sizeof(IdMap))
        memset(&self._scratch, 0, sizeof(Scratch))
        self._ids.seed = seed
        self._pairs = pairs
        self._main_clock = BOOTTIME
        self._last_sequence = self._last_track = self.damaged_at = -1
        self._grid = self._text(b"grid")
        self._block = self._text(b"block")
        self._value = self._text(b"value")
        for text in kept_texts[:16]:
            self._kept_texts[self._kept_count] = self._text(text)
            self._kept_count += 1

    def __dealloc__(self):
        cdef int64_t row
        free(self._ids.slots)
        free(self._scratch.data)
        for row in range(self._sequence_count):
            _forget_texts(&self._sequences[row])
        free(self._sequences)
        free(self._tracks)
        free(self._clocks)

    cdef int64_t _text(self, bytes text) except -1:
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
        if why < 0:
            raise MemoryError("no room for the events of the trace")
        return why

    cdef int _walk(self, const uint8_t* base, const uint8_t* at, const uint8_t* end) noexcept nogil:
        cdef Field field
        cdef Packet packet
        cdef const uint8_t* next
        cdef int done
        while at < end:
            self.at = at - base
            next = next_field(at, end, &field)
            if next == NULL:
                return CUT if field.error == OVERRUN and field.number == 1 and field.wire == DELIMITED else BROKEN
            if field.number == 1 and field.wire == DELIMITED:
                self.packets += 1
                done = _scan_packet(field.start, field.stop, &packet)
                if done == GOOD and packet.inner.start != NULL:
                    self.at = next - base
                    self.inner_begin, self.inner_end = packet.inner.start - base, packet.inner.stop - base
                    self.inner_method = packet.method
                    return COMPRESSED
                if done == GOOD:
                    done = self._read_packet(&packet)
                if done == NO_MEMORY:
                    return NO_MEMORY
                if done == BAD:
                    self._note_damage(at - base)
                if self._is_disordered:
                    return DISORDERED
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

    cdef int _read_packet(self, Packet* packet) noexcept nogil:
        cdef Sequence* sequence = self._sequence(packet.sequence)
        cdef int done = GOOD
        if sequence == NULL:
            return NO_MEMORY
        if packet.dropped and self.packets > 1 and sequence.is_lossy and not packet.flags & CLEARS_STATE:
            sequence.is_valid = False
            self.lost += 1
        elif packet.dropped and sequence.is_lossy:
            self.lost += 1
        sequence.is_lossy = True  # from its second packet on, what was dropped is a loss
        if packet.flags & CLEARS_STATE:
            self._generation += 1
            sequence.scope = self._generation * KINDS
            _forget_texts(sequence)
            sequence.is_valid = True
            sequence.track = 0
            sequence.clock = 0
        elif packet.flags & NEEDS_STATE and not sequence.is_valid:
            self.skipped += 1
            return GOOD
        if packet.interned.start != NULL:
            done = self._read_interned(sequence, packet.interned)
        if done == GOOD and packet.defaults.start != NULL:
            done = self._read_defaults(sequence, packet.defaults)
        if done == GOOD and packet.clocks.start != NULL:
            done = self._read_clocks(sequence, packet.clocks)
        if done == GOOD and packet.track.start != NULL:
            done = self._read_track(packet.track)
        if done == GOOD and packet.event.start != NULL:
            done = self._read_event(sequence, packet)
        if done == GOOD and packet.stage.start != NULL:
            done = self._read_stage(sequence, packet)
        if done == GOOD and packet.counters.start != NULL:
            done = self._read_gpu_counters(sequence, packet)
        return done

    cdef Sequence* _sequence(self, uint64_t id) noexcept nogil:
        """The sequence with an id, made on first use; NULL if there is no memory.  It holds until the next is asked for."""
        cdef int64_t row = self._last_sequence
        cdef void* larger
        if row >= 0 and self._sequences[row].id == id:
            return &self._sequences[row]
        row = find_id(&self._ids, OF_SEQUENCES, id)
        if row < 0:
            row = self._sequence_count
            if row == self._sequence_room:
                self._sequence_room = 2 * row + 16
                larger = realloc(self._sequences, <size_t>self._sequence_room * sizeof(Sequence))
                if larger == NULL:
                    return NULL
                self._sequences = <Sequence*>larger
            if not put_id(&self._ids, OF_SEQUENCES, id, row):
                return NULL
            memset(&self._sequences[row], 0, sizeof(Sequence))
            self._generation += 1
            self._sequences[row].scope = self._generation * KINDS
            self._sequences[row].id = id
            self._sequence_count += 1
        self._last_sequence = row
        return &self._sequences[row]

    # -- the state of a sequence ---------------------------------------------------------------------------------------

    cdef int _read_interned(self, Sequence* sequence, Range content) noexcept nogil:
        cdef Field field
        cdef const uint8_t* at = content.start
        cdef int kind, done
        while at < content.stop:
            at = next_field(at, content.stop, &field)
            if at == NULL:
                return BAD
            kind = _kind_of_interned(field.number)
            if kind == 0 or field.wire != DELIMITED:
                continue
            if kind == GPU_OF_COUNTERS:
                done = self._read_counter_names(sequence, field.start, field.stop)
            else:
                done = self._intern_entry(sequence, kind, field.start, field.stop)
            if done != GOOD:
                return done
        return GOOD

    cdef int _intern_entry(
        self, Sequence* sequence, int kind, const uint8_t* at, const uint8_t* end
    ) noexcept nogil:
        """An entry with a number and a text; of a kernel's two names the readable one."""
        cdef Field field
        cdef uint64_t iid = 0
        cdef Range text
        cdef int64_t id
        cdef bint is_readable = False
        text.start = text.stop = end
        while at < end:
            at = next_field(at, end, &field)
            if at == NULL:
                return BAD
            if field.number == 1 and field.wire == VARINT:
                iid = <uint64_t>field.value
            elif field.wire == DELIMITED and (field.number == 2 and not is_readable or kind == KERNEL and field.number == 3):
                is_readable = field.number == 3
                text.start, text.stop = field.start, field.stop
        id = intern(&self._scan.texts, text.start, text.stop - text.start, False, 0)
        sequence.entries += 1
        if id >= 0 and kind < DENSE_KINDS and iid < <uint64_t>(2 * sequence.entries + DENSE_SLACK):
            return GOOD if _put_text(sequence, kind, <int64_t>iid, <int32_t>id) else NO_MEMORY
        return GOOD if id >= 0 and put_id(&self._ids, sequence.scope + kind, iid, id) else NO_MEMORY

    cdef inline int64_t _interned(self, Sequence* sequence, int kind, uint64_t iid) noexcept nogil:
        """The text with a number; 0, and counted, if no packet of the sequence defines it."""
        cdef int64_t found
        if kind < DENSE_KINDS and iid < <uint64_t>sequence.room[kind] and sequence.texts[kind][iid]:
            return sequence.texts[kind][iid] - 1
        found = find_id(&self._ids, sequence.scope + kind, iid)
        if found < 0:
            self.unnamed += 1
            return 0
        return found

    cdef int _read_defaults(self, Sequence* sequence, Range content) noexcept nogil:
        cdef Field field, inner
        cdef const uint8_t* at = content.start
        cdef const uint8_t* place
        while at < content.stop:
            at = next_field(at, content.stop, &field)
            if at == NULL:
                return BAD
            if field.number == 58 and field.wire == VARINT:
                sequence.clock = field.value
            elif field.number == 11 and field.wire == DELIMITED:
                place = field.start
                while place < field.stop:
                    place = next_field(place, field.stop, &inner)
                    if place == NULL:
                        return BAD
                    if inner.number == 11:
                        sequence.track = <uint64_t>inner.value
        return GOOD

    # -- clocks --------------------------------------------------------------------------------------------------------

    cdef int64_t _clock_row(self, Sequence* sequence, uint64_t clock) noexcept nogil:
        return find_id(&self._ids, OF_CLOCKS, _clock_key(sequence, clock))

    cdef int _read_clocks(self, Sequence* sequence, Range content) noexcept nogil:
        """A snapshot: what all its clocks showed at one moment."""
        cdef Field field
        cdef Reading readings[MOST_CLOCKS]
        cdef int64_t count = 0, row, now, k
        cdef bint known = False
        cdef const uint8_t* at = content.start
        while at < content.stop:
            at = next_field(at, content.stop, &field)
            if at == NULL:
                return BAD
            if field.number == 2 and field.wire == VARINT and field.value > 0:
                self._main_clock = <uint64_t>field.value
            elif field.number == 1 and field.wire == DELIMITED and count < MOST_CLOCKS:
                if not _read_reading(field.start, field.stop, &readings[count]):
                    return BAD
                count += 1
        if count == 0:
            return GOOD
        now = _shown(&readings[0])  # of clocks that nothing relates to the trace's, the first stands for it
        for k in range(count):
            row = self._clock_row(sequence, readings[k].clock)
            if readings[k].clock == self._main_clock:
                now, known = _shown(&readings[k]), True
            elif row >= 0 and not known:
                now, known = _shown(&readings[k]) + self._clocks[row].offset_ns, True
        for k in range(count):
            if readings[k].clock == REALTIME and self.realtime_ns == 0:
                self.realtime_ns = _shown(&readings[k]) - now
            if not self._set_clock(sequence, &readings[k], now):
                return NO_MEMORY
        return GOOD

    cdef bint _set_clock(self, Sequence* sequence, const Reading* reading, int64_t now) noexcept nogil:
        cdef int64_t row = self._clock_row(sequence, reading.clock)
        cdef void* larger
        if row < 0:
            row = self._clock_count
            if row == self._clock_room:
                self._clock_room = 2 * row + 16
                larger = realloc(self._clocks, <size_t>self._clock_room * sizeof(Clock))
                if larger == NULL:
                    return False
                self._clocks = <Clock*>larger
            if not put_id(&self._ids, OF_CLOCKS, _clock_key(sequence, reading.clock), row):
                return False
            self._clock_count += 1
        self._clocks[row].offset_ns = now - _shown(reading)
        self._clocks[row].multiplier = reading.multiplier
        self._clocks[row].last = reading.time
        self._clocks[row].is_incremental = reading.is_incremental
        return True

    cdef int64_t _time_ns(self, Sequence* sequence, const Packet* packet) noexcept nogil:
        """A packet's time on the trace's clock."""
        cdef uint64_t clock = <uint64_t>(packet.clock if packet.clock else sequence.clock)
        cdef uint64_t time = packet.timestamp
        cdef int64_t row
        if clock == 0 or clock == self._main_clock:
            return _bounded(time)
        row = self._clock_row(sequence, clock)
        if row < 0:
            self.unknown_clocks += 1
            return _bounded(time)
        if self._clocks[row].is_incremental:
            time += self._clocks[row].last
            self._clocks[row].last = time
        return _bounded(time * <uint64_t>self._clocks[row].multiplier) + self._clocks[row].offset_ns

    # -- tracks --------------------------------------------------------------------------------------------------------

    cdef Track* _track(self, int scope, uint64_t uuid) noexcept nogil:
        """A track, made on first use; NULL if there is no memory."""
        cdef int64_t row = self._last_track
        cdef void* larger
        if scope == OF_TRACKS and row >= 0 and self._last_uuid == uuid:
            return &self._tracks[row]
        row = find_id(&self._ids, scope, uuid)
        if row < 0:
            row = self._track_count
            if row >= 0x7FFFFFFF:
                return NULL
            if row == self._track_room:
                self._track_room = 2 * row + 64
                larger = realloc(self._tracks, <size_t>self._track_room * sizeof(Track))
                if larger == NULL:
                    return NULL
                self._tracks = <Track*>larger
            if not put_id(&self._ids, scope, uuid, row):
                return NULL
            memset(&self._tracks[row], 0, sizeof(Track))
            self._tracks[row].uuid = uuid
            self._tracks[row].open_row = -1
            self._tracks[row].last_ns = -INT64_MAX
            self._tracks[row].multiplier = 1
            self._track_count += 1
        if scope == OF_TRACKS:
            self._last_uuid, self._last_track = uuid, row
        return &self._tracks[row]

    cdef int _read_track(self, Range content) noexcept nogil:
        """A track's description; a later one of the same track adds to it."""
        cdef Field field
        cdef Range name, about
        cdef uint64_t uuid = 0, parent = 0
        cdef int64_t kind = UNKNOWN_TRACK
        cdef Track* track
        cdef const uint8_t* at = content.start
        name.start = about.start = NULL
        while at < content.stop:
            at = next_field(at, content.stop, &field)
            if at == NULL:
                return BAD
            if field.number == 1:
                uuid = <uint64_t>field.value
            elif field.number == 5:
                parent = <uint64_t>field.value
            elif field.wire == DELIMITED and (field.number == 2 or field.number == 10 or field.number == 13):
                name.start, name.stop = field.start, field.stop
            elif field.wire == DELIMITED and (field.number == 3 or field.number == 4 or field.number == 8):
                if kind != THREAD_TRACK:  # a thread's may name its process as well
                    kind = PROCESS_TRACK if field.number == 3 else THREAD_TRACK if field.number == 4 else COUNTER_TRACK
                    about.start, about.stop = field.start, field.stop
        track = self._track(OF_TRACKS, uuid)
        if track == NULL:
            return NO_MEMORY
        if parent:
            track.parent = parent
        if kind != UNKNOWN_TRACK:
            track.kind = kind
            if not _read_about(track, about, &name):
                return BAD
        elif track.kind == UNKNOWN_TRACK:
            track.kind = NAMED_TRACK
        if name.start != NULL:
            track.name = intern(&self._scan.texts, name.start, name.stop - name.start, False, 0)
        return GOOD if track.name >= 0 else NO_MEMORY

    def tracks(self):
        """All tracks: kind, uuid, the uuid of the parent, process or GPU, thread, and the text of the name."""
        cdef Track* track
        cdef int64_t row
        found = []
        for row in range(self._track_count):
            track = &self._tracks[row]
            found.append((track.kind, track.uuid, track.parent, track.pid, track.tid, track.name))
        return found

    # -- track events --------------------------------------------------------------------------------------------------

    cdef int _read_event(self, Sequence* sequence, Packet* packet) noexcept nogil:
        cdef Field field
        cdef Event event
        cdef Range legacy
        cdef Track* track
        cdef uint64_t uuid = sequence.track
        cdef int64_t kind = 0, time_ns = self._time_ns(sequence, packet)
        cdef int64_t value_tag = 0, value = 0, category, last_key = 0
        cdef const uint8_t* at = packet.event.start
        cdef int done
        legacy.start = NULL
        self._start_event(&event)
        while at < packet.event.stop:
            at = next_field(at, packet.event.stop, &field)
            if at == NULL:
                return BAD
            if field.number == 4 and field.wire == DELIMITED:
                done = self._read_annotation(sequence, &event, field.start, field.stop, &last_key)
                if done != GOOD:
                    return done
            elif field.number == 9:
                kind = field.value
            elif field.number == 11:
                uuid = <uint64_t>field.value
            elif field.number == 10 and field.wire == VARINT:
                event.name = self._interned(sequence, EVENT_NAME, <uint64_t>field.value)
            elif field.number == 3 and field.wire == VARINT:
                category = self._interned(sequence, CATEGORY, <uint64_t>field.value)
                event.cat = self._joined(event.cat, category) if event.cat else category
            elif field.number == 3 and field.wire == DELIMITED:
                done = self._read_packed_categories(sequence, &event, field.start, field.stop)
                if done != GOOD:
                    return done
            elif field.number == 22 and field.wire == DELIMITED:
                category = intern(&self._scan.texts, field.start, field.stop - field.start, False, 0)
                event.cat = self._joined(event.cat, category) if event.cat > 0 and category > 0 else category
            elif field.number == 23 and field.wire == DELIMITED:
                event.name = intern(&self._scan.texts, field.start, field.stop - field.start, False, 0)
            elif field.number == 30 and field.wire == VARINT:
                value_tag, value = INT, field.value
            elif field.number == 44 and field.wire == FIXED64:
                value_tag, value = DOUBLE, field.value
            elif field.number == 16 and field.wire == VARINT:
                time_ns = field.value * 1000 if -INT64_MAX // 1000 <= field.value <= INT64_MAX // 1000 else 0
            elif field.number == 6 and field.wire == DELIMITED:
                legacy.start, legacy.stop = field.start, field.stop
            if event.name < 0 or event.cat < 0:
                return NO_MEMORY
        track = self._track(OF_TRACKS, uuid)
        if track == NULL:
            return NO_MEMORY
        event.phase = _phase_of(kind)
        _set_time(&event, time_ns)
        event.tid = track - self._tracks
        if legacy.start != NULL and not self._read_legacy(sequence, &event, legacy):
            return BAD
        if event.phase == IS_COUNTER and kind == COUNTER:
            return self._put_counter(track, &event, value_tag, value)
        if event.phase == IS_BEGIN:
            return self._put_begin(track, &event, time_ns)
        if event.phase == IS_END:
            return self._put_end(track, &event, time_ns)
        return self._put(&event)

    cdef void _start_event(self, Event* event) noexcept nogil:
        memset(event, 0, sizeof(Event))
        event.flags = HAS_TIME | HAS_PID | HAS_TID
        event.stats = self._scan.stats.count
        event.slow = self._scan.stats.slow_count

    cdef int _put(self, const Event* event) noexcept nogil:
        if not put_row(self._scan, event):
            return NO_MEMORY
        self._scan.rows.count += 1
        return GOOD

    cdef int _put_counter(self, Track* track, Event* event, int64_t tag, int64_t value) noexcept nogil:
        """A counter's value, in its own unit."""
        cdef double number
        if tag == 0:
            return GOOD
        if tag == DOUBLE:
            memcpy(&number, &value, sizeof(double))
            number *= track.multiplier
            memcpy(&value, &number, sizeof(double))
        else:
            value = <int64_t>(<uint64_t>value * <uint64_t>track.multiplier)
            if track.is_incremental:
                track.total = <int64_t>(<uint64_t>track.total + <uint64_t>value)
                value = track.total
        if not put_stat(self._scan, event, self._value, <int>tag, value):
            return NO_MEMORY
        return self._put(event)

    cdef int _put_begin(self, Track* track, Event* event, int64_t time_ns) noexcept nogil:
        cdef int64_t row = self._scan.rows.count
        cdef int done = self._put(event)
        if done == GOOD and self._pairs:
            self._keep_order(track, time_ns)
            self._scan.rows.duration_us[row] = track.open_row
            track.open_row = row
        return done

    cdef int _put_end(self, Track* track, Event* event, int64_t time_ns) noexcept nogil:
        """The end of a slice.  It is no row of its own unless it has stats, or there is nothing to end."""
        cdef Rows* rows = &self._scan.rows
        cdef int64_t row = track.open_row
        cdef int64_t length
        if not self._pairs:
            return self._put(event)
        self._keep_order(track, time_ns)
        if row < 0:
            return self._put(event)
        track.open_row = rows.duration_us[row]
        rows.duration_us[row] = 0
        if event.stats != self._scan.stats.count:
            return self._put(event)
        length = (event.start.us - rows.us[row]) * 1000 + (event.start.frac_ps - rows.frac_ps[row]) // 1000
        rows.phase[row] = IS_WHOLE
        rows.flags[row] |= HAS_DURATION
        rows.duration_us[row] = length // 1000
        rows.duration_frac_ps[row] = <int32_t>(length % 1000 * 1000)
        return GOOD

    cdef void _keep_order(self, Track* track, int64_t time_ns) noexcept nogil:
        if time_ns < track.last_ns:
            self._is_disordered = True
        track.last_ns = time_ns

    def finish(self):
        """Leaves slices that never ended without a duration."""
        cdef int64_t row, next, track
        with nogil:
            for track in range(self._track_count):
                row = self._tracks[track].open_row
                while row >= 0:
                    next = self._scan.rows.duration_us[row]
                    self._scan.rows.duration_us[row] = 0
                    row = next
                self._tracks[track].open_row = -1

    cdef int _read_packed_categories(
        self, Sequence* sequence, Event* event, const uint8_t* at, const uint8_t* end
    ) noexcept nogil:
        cdef uint64_t iid
        cdef int64_t category
        cdef int shift
        while at < end:
            iid, shift = 0, 0
            while at < end and at[0] >= 0x80 and shift < 63:
                iid |= <uint64_t>(at[0] & 0x7F) << shift
                shift += 7
                at += 1
            if at == end:
                return BAD
            iid |= <uint64_t>at[0] << shift
            at += 1
            category = self._interned(sequence, CATEGORY, iid)
            event.cat = self._joined(event.cat, category) if event.cat else category
            if event.cat < 0:
                return NO_MEMORY
        return GOOD

    cdef int64_t _joined(self, int64_t one, int64_t other) noexcept nogil:
        """Two texts with a comma between them; below 0 if there is no memory."""
        cdef Texts* texts = &self._scan.texts
        self._scratch.size = 0
        if not (
            put_bytes(&self._scratch, texts.blob + texts.offsets[one], texts.offsets[one + 1] - texts.offsets[one])
            and put_bytes(&self._scratch, b",", 1)
            and put_bytes(
                &self._scratch, texts.blob + texts.offsets[other], texts.offsets[other + 1] - texts.offsets[other]
            )
        ):
            return NO_MEMORY
        return intern(texts, self._scratch.data, self._scratch.size, False, 0)

    cdef bint _read_legacy(self, Sequence* sequence, Event* event, Range content) noexcept nogil:
        """What Chrome writes of an event besides: its phase as in JSON, a duration, an id."""
        cdef Field field
        cdef const uint8_t* at = content.start
        while at < content.stop:
            at = next_field(at, content.stop, &field)
            if at == NULL:
                return False
            if field.wire != VARINT:
                continue
            if field.number == 1 and event.name == 0:
                event.name = self._interned(sequence, EVENT_NAME, <uint64_t>field.value)
            elif field.number == 2 and event.phase == 0:
                event.phase = <uint8_t>field.value
            elif field.number == 3 and 0 <= field.value < INT64_MAX // 1000000:
                event.duration.us = field.value
                event.flags |= HAS_DURATION
            elif field.number == 6 or field.number == 10 or field.number == 11:
                event.flow = field.value
                event.flags |= HAS_FLOW | (LOCAL_ID if field.number == 10 else 0)
        return True

    # -- annotations ---------------------------------------------------------------------------------------------------

    cdef int _read_annotation(
        self, Sequence* sequence, Event* event, const uint8_t* at, const uint8_t* end, int64_t* last_key
    ) noexcept nogil:
        """A debug annotation as a stat."""
        cdef Field field
        cdef Texts* texts = &self._scan.texts
        cdef const uint8_t* begin = at
        cdef int64_t name = -1, value = 0
        cdef int tag = 0
        cdef bint has_message = False
        cdef Range text
        text.start = text.stop = NULL
        while at < end:
            at = next_field(at, end, &field)
            if at == NULL:
                return BAD
            if field.wire == VARINT and 1 <= field.number <= 7:
                if field.number == 1:
                    name = self._interned(sequence, KEY, <uint64_t>field.value)
                elif field.number == 3 or field.number == 7:
                    tag, value = UINT, field.value
                elif field.number == 4:
                    tag, value = INT, field.value
                elif field.number == 2:
                    tag, value = INT, field.value != 0
            elif field.number == 10 and field.wire == DELIMITED:
                name = intern(texts, field.start, field.stop - field.start, False, texts.follower[last_key[0]])
                if name >= 0:
                    texts.follower[last_key[0]] = <int32_t>name
            elif field.number == 17 and field.wire == VARINT:
                tag, value = STRING, self._interned(sequence, VALUE, <uint64_t>field.value)
            elif (field.number == 6 or field.number == 9) and field.wire == DELIMITED:
                tag = STRING
                text.start, text.stop = field.start, field.stop
            elif field.number == 5 and field.wire == FIXED64:
                tag, value = DOUBLE, field.value
            elif (field.number == 8 or field.number == 11 or field.number == 12) and field.wire == DELIMITED:
                tag = STRING
                self._scratch.size = 0
                if not self._put_annotation_json(sequence, begin, end, 0):
                    return NO_MEMORY
                text.start = self._scratch.data
                text.stop = text.start + self._scratch.size
                at = end  # the rest of its entries is in there
                if name < 0:
                    name = self._late_name(sequence, field.stop, end)
            elif 13 <= field.number <= 16:
                has_message = True
        if name < 0 or (tag == 0 and has_message):
            return GOOD if name >= -1 else NO_MEMORY
        if tag == 0:  # an array without elements leaves no trace in an annotation
            tag = STRING
            text.start = <const uint8_t*>b"[]"
            text.stop = text.start + 2
        last_key[0] = name
        if text.start != NULL:
            value = intern(texts, text.start, text.stop - text.start, False, texts.value[name])
            if value < 0:
                return NO_MEMORY
            texts.value[name] = <int32_t>value
        return GOOD if put_stat(self._scan, event, name, tag, value) else NO_MEMORY

    cdef int64_t _late_name(self, Sequence* sequence, const uint8_t* at, const uint8_t* end) noexcept nogil:
        """A name that stands behind the value; -1 if there is none."""
        cdef Field field
        cdef int64_t name = -1
        while at < end:
            at = next_field(at, end, &field)
            if at == NULL:
                break
            if field.number == 1 and field.wire == VARINT:
                name = self._interned(sequence, KEY, <uint64_t>field.value)
            elif field.number == 10 and field.wire == DELIMITED:
                name = intern(&self._scan.texts, field.start, field.stop - field.start, False, 0)
        return name

    cdef bint _put_annotation_json(
        self, Sequence* sequence, const uint8_t* at, const uint8_t* end, int depth
    ) noexcept nogil:
        """Appends an annotation's value as JSON, without one an empty array.  False if there is no memory; what is
        damaged or nested without end is null."""
        cdef Field field
        cdef Scratch* into = &self._scratch
        cdef const uint8_t* place = at
        cdef int64_t number = 0
        cdef double real
        while depth < MOST_DEPTH and place < end:  # the field that holds the value
            place = next_field(place, end, &field)
            if place == NULL:
                break
            number = field.number
            if (number == 11 or number == 12) and field.wire == DELIMITED:
                return self._put_entries_json(sequence, at, end, number, depth)
            if number == 8 and field.wire == DELIMITED:
                return self._put_nested_json(field.start, field.stop, depth + 1)
            if number == 2 and field.wire == VARINT:
                return put_bytes(into, b"true", 4) if field.value else put_bytes(into, b"false", 5)
            if (number == 3 or number == 4 or number == 7) and field.wire == VARINT:
                return put_json_integer(into, field.value, number != 4)
            if number == 5 and field.wire == FIXED64:
                memcpy(&real, &field.value, sizeof(double))
                return put_json_double(into, real)
            if number == 6 and field.wire == DELIMITED:
                return put_json_text(into, field.start, field.stop - field.start)
            if number == 9 and field.wire == DELIMITED:
                return put_bytes(into, field.start, field.stop - field.start)
            if number == 17 and field.wire == VARINT:
                return self._put_text_json(self._interned(sequence, VALUE, <uint64_t>field.value))
        return put_bytes(into, b"[]", 2) if place == end else put_bytes(into, b"null", 4)

    cdef bint _put_text_json(self, int64_t text) noexcept nogil:
        cdef Texts* texts = &self._scan.texts
        cdef int64_t start = texts.offsets[text]
        return put_json_text(&self._scratch, texts.blob + start, texts.offsets[text + 1] - start)

    cdef bint _put_entries_json(
        self, Sequence* sequence, const uint8_t* at, const uint8_t* end, int64_t number, int depth
    ) noexcept nogil:
        """Appends the entries of a dictionary (field 11) or an array (field 12)."""
        cdef Field field
        cdef Scratch* into = &self._scratch
        cdef bint is_first = True
        if not put_bytes(into, b"{" if number == 11 else b"[", 1):
            return False
        while at < end:
            at = next_field(at, end, &field)
            if at == NULL:
                break
            if field.number != number or field.wire != DELIMITED:
                continue
            if not is_first and not put_bytes(into, b",", 1):
                return False
            is_first = False
            if number == 11 and not (
                self._put_key_json(sequence, field.start, field.stop) and put_bytes(into, b":", 1)
            ):
                return False
            if not self._put_annotation_json(sequence, field.start, field.stop, depth + 1):
                return False
        return put_bytes(into, b"}" if number == 11 else b"]", 1)

    cdef bint _put_key_json(self, Sequence* sequence, const uint8_t* at, const uint8_t* end) noexcept nogil:
        cdef Field field
        while at < end:
            at = next_field(at, end, &field)
            if at == NULL:
                break
            if field.number == 1 and field.wire == VARINT:
                return self._put_text_json(self._interned(sequence, KEY, <uint64_t>field.value))
            if field.number == 10 and field.wire == DELIMITED:
                return put_json_text(&self._scratch, field.start, field.stop - field.start)
        return put_bytes(&self._scratch, b'""', 2)

    cdef bint _put_nested_json(self, const uint8_t* at, const uint8_t* end, int depth) noexcept nogil:
        """Appends a value of the older message for nested values, whose keys and values stand in two lists."""
        cdef Field field, key
        cdef Scratch* into = &self._scratch
        cdef const uint8_t* begin = at
        cdef const uint8_t* keys = at
        cdef double real
        cdef bint is_first = True
        cdef int64_t kind = 0
        while depth < MOST_DEPTH and at < end:
            at = next_field(at, end, &field)
            if at == NULL:
                break
            if field.number == 1 and field.wire == VARINT:
                kind = field.value
            elif field.number == 5 and field.wire == VARINT:
                return put_json_integer(into, field.value, False)
            elif field.number == 6 and field.wire == FIXED64:
                memcpy(&real, &field.value, sizeof(double))
                return put_json_double(into, real)
            elif field.number == 7 and field.wire == VARINT:
                return put_bytes(into, b"true", 4) if field.value else put_bytes(into, b"false", 5)
            elif field.number == 8 and field.wire == DELIMITED:
                return put_json_text(into, field.start, field.stop - field.start)
        if kind != 1 and kind != 2:
            return put_bytes(into, b"null", 4)
        if not put_bytes(into, b"{" if kind == 1 else b"[", 1):
            return False
        at = begin
        while at < end:
            at = next_field(at, end, &field)
            if at == NULL:
                break
            if field.number != (3 if kind == 1 else 4) or field.wire != DELIMITED:
                continue
            if not is_first and not put_bytes(into, b",", 1):
                return False
            is_first = False
            if kind == 1:
                key.start = key.stop = end
                while keys < end:
                    keys = next_field(keys, end, &key)
                    if keys == NULL:
                        keys = end
                        key.start = key.stop = end
                    elif key.number == 2 and key.wire == DELIMITED:
                        break
                    else:
                        key.start = key.stop = end
                if not (put_json_text(into, key.start, key.stop - key.start) and put_bytes(into, b":", 1)):
                    return False
            if not self._put_nested_json(field.start, field.stop, depth + 1):
                return False
        return put_bytes(into, b"}" if kind == 1 else b"]", 1)

    # -- work and counters of GPUs -------------------------------------------------------------------------------------

    cdef int _read_stage(self, Sequence* sequence, Packet* packet) noexcept nogil:
        """A piece of work on a queue of a GPU."""
        cdef Field field
        cdef Event event
        cdef Track* track
        cdef int64_t gpu = 0, queue = 0, kernel = 0, duration = -1, last_key = 0
        cdef const uint8_t* at = packet.stage.start
        cdef int done = GOOD
        self._start_event(&event)
        while at < packet.stage.stop:
            at = next_field(at, packet.stage.stop, &field)
            if at == NULL:
                return BAD
            if field.wire == VARINT:
                if field.number == 2:
                    duration = _bounded(<uint64_t>field.value)
                elif field.number == 11:
                    gpu = field.value
                elif field.number == 13:
                    queue = self._interned(sequence, STAGE, <uint64_t>field.value)
                elif field.number == 14:
                    event.cat = self._interned(sequence, STAGE, <uint64_t>field.value)
                elif field.number == 19:
                    kernel = self._interned(sequence, KERNEL, <uint64_t>field.value)
                elif field.number == 20:
                    event.name = self._interned(sequence, EVENT_NAME, <uint64_t>field.value)
            elif field.wire == DELIMITED:
                if field.number == 6:
                    done = self._read_extra(&event, field.start, field.stop, &last_key)
                elif field.number == 21:
                    done = self._read_launch(sequence, &event, field.start, field.stop)
                elif field.number == 17:
                    event.name = intern(&self._scan.texts, field.start, field.stop - field.start, False, 0)
                if done != GOOD or event.name < 0:
                    return done if done != GOOD else NO_MEMORY
        if event.name == 0:
            event.name = kernel if kernel else event.cat
        track = self._track(OF_QUEUES, (<uint64_t>gpu << 32) | <uint64_t>queue)
        if track == NULL:
            return NO_MEMORY
        track.kind, track.pid, track.name = QUEUE_TRACK, gpu, queue
        event.tid = track - self._tracks
        event.phase = IS_WHOLE if duration >= 0 else IS_INSTANT
        _set_time(&event, self._time_ns(sequence, packet))
        if duration >= 0:
            event.flags |= HAS_DURATION
            event.duration.us = duration // 1000
            event.duration.frac_ps = duration % 1000 * 1000
        return self._put(&event)

    cdef int _read_extra(
        self, Event* event, const uint8_t* at, const uint8_t* end, int64_t* last_key
    ) noexcept nogil:
        """A name and a value, both text; a text that is a number is one."""
        cdef Field field
        cdef Texts* texts = &self._scan.texts
        cdef Range key, text
        cdef int64_t name, value = 0
        cdef double real = 0
        key.start = key.stop = text.start = text.stop = end
        while at < end:
            at = next_field(at, end, &field)
            if at == NULL:
                return BAD
            if field.wire == DELIMITED and field.number == 1:
                key.start, key.stop = field.start, field.stop
            elif field.wire == DELIMITED and field.number == 2:
                text.start, text.stop = field.start, field.stop
        name = intern(texts, key.start, key.stop - key.start, False, texts.follower[last_key[0]])
        if name < 0:
            return NO_MEMORY
        texts.follower[last_key[0]] = <int32_t>name
        last_key[0] = name
        if not self._stays_text(name) and _read_decimal(text.start, text.stop, &value):
            return GOOD if put_stat(self._scan, event, name, INT, value) else NO_MEMORY
        if not self._stays_text(name) and read_real(<const char*>text.start, <int>min(text.stop - text.start, 32), &real):
            memcpy(&value, &real, sizeof(double))
            return GOOD if put_stat(self._scan, event, name, DOUBLE, value) else NO_MEMORY
        value = intern(texts, text.start, text.stop - text.start, False, texts.value[name])
        if value < 0:
            return NO_MEMORY
        texts.value[name] = <int32_t>value
        return GOOD if put_stat(self._scan, event, name, STRING, value) else NO_MEMORY

    cdef bint _stays_text(self, int64_t name) noexcept nogil:
        cdef int64_t k
        for k in range(self._kept_count):
            if self._kept_texts[k] == name:
                return True
        return False

    cdef int _read_launch(
        self, Sequence* sequence, Event* event, const uint8_t* at, const uint8_t* end
    ) noexcept nogil:
        """The launch of a kernel: grid and block as arrays, and arguments."""
        cdef Field field
        cdef int done = GOOD
        while at < end and done == GOOD:
            at = next_field(at, end, &field)
            if at == NULL:
                return BAD
            if field.wire != DELIMITED:
                continue
            if field.number == 1 or field.number == 2:
                done = self._read_dimensions(
                    event, self._grid if field.number == 1 else self._block, field.start, field.stop
                )
            elif field.number == 3:
                done = self._read_argument(sequence, event, field.start, field.stop)
        return done

    cdef int _read_dimensions(
        self, Event* event, int64_t name, const uint8_t* at, const uint8_t* end
    ) noexcept nogil:
        cdef Field field
        cdef int64_t size[3]
        cdef int64_t value
        cdef int axis
        size[0] = size[1] = size[2] = 1
        while at < end:
            at = next_field(at, end, &field)
            if at == NULL:
                return BAD
            if field.wire == VARINT and 1 <= field.number <= 3:
                size[field.number - 1] = field.value
        self._scratch.size = 0
        for axis in range(3):
            if not put_bytes(&self._scratch, b"[" if axis == 0 else b",", 1):
                return NO_MEMORY
            if not put_json_integer(&self._scratch, size[axis], False):
                return NO_MEMORY
        if not put_bytes(&self._scratch, b"]", 1):
            return NO_MEMORY
        value = intern(&self._scan.texts, self._scratch.data, self._scratch.size, False, self._scan.texts.value[name])
        if value < 0:
            return NO_MEMORY
        self._scan.texts.value[name] = <int32_t>value
        return GOOD if put_stat(self._scan, event, name, STRING, value) else NO_MEMORY

    cdef int _read_argument(
        self, Sequence* sequence, Event* event, const uint8_t* at, const uint8_t* end
    ) noexcept nogil:
        cdef Field field
        cdef int64_t name = 0, value = 0
        cdef int tag = 0
        while at < end:
            at = next_field(at, end, &field)
            if at == NULL:
                return BAD
            if field.number == 1 and field.wire == VARINT:
                name = self._interned(sequence, ARGUMENT, <uint64_t>field.value)
            elif field.number == 2 and field.wire == DELIMITED:
                name = intern(&self._scan.texts, field.start, field.stop - field.start, False, 0)
            elif field.number == 3 and field.wire == VARINT:
                tag, value = INT, field.value
            elif field.number == 4 and field.wire == VARINT:
                tag, value = INT if field.value >= 0 else UINT, field.value
            elif field.number == 5 and field.wire == FIXED64:
                tag, value = DOUBLE, field.value
            elif field.number == 6 and field.wire == DELIMITED:
                tag = STRING
                value = intern(&self._scan.texts, field.start, field.stop - field.start, False, 0)
            elif field.number == 7 and field.wire == VARINT:
                tag, value = STRING, self._interned(sequence, VALUE, <uint64_t>field.value)
            if name < 0 or (tag == STRING and value < 0):
                return NO_MEMORY
        if tag == 0:
            return GOOD
        return GOOD if put_stat(self._scan, event, name, tag, value) else NO_MEMORY

    cdef int _read_counter_names(self, Sequence* sequence, const uint8_t* at, const uint8_t* end) noexcept nogil:
        """The counters of a GPU, to which events refer by one number for all and one for each."""
        cdef Field field
        cdef uint64_t iid = 0
        cdef int64_t gpu = 0
        cdef Range specs
        specs.start = specs.stop = end
        while at < end:
            at = next_field(at, end, &field)
            if at == NULL:
                return BAD
            if field.number == 1 and field.wire == VARINT:
                iid = <uint64_t>field.value
            elif field.number == 3 and field.wire == VARINT:
                gpu = field.value
            elif field.number == 2 and field.wire == DELIMITED:
                specs.start, specs.stop = field.start, field.stop
        if not put_id(&self._ids, sequence.scope + GPU_OF_COUNTERS, iid, gpu):
            return NO_MEMORY
        return self._read_specs(sequence, iid, specs)

    cdef int _read_specs(self, Sequence* sequence, uint64_t iid, Range content) noexcept nogil:
        cdef Field field, inner
        cdef const uint8_t* at = content.start
        cdef const uint8_t* place
        cdef uint64_t number
        cdef int64_t name
        while at < content.stop:
            at = next_field(at, content.stop, &field)
            if at == NULL:
                return BAD
            if field.number != 1 or field.wire != DELIMITED:
                continue
            number, name, place = 0, 0, field.start
            while place < field.stop:
                place = next_field(place, field.stop, &inner)
                if place == NULL:
                    return BAD
                if inner.number == 1 and inner.wire == VARINT:
                    number = <uint64_t>inner.value
                elif inner.number == 2 and inner.wire == DELIMITED:
                    name = intern(&self._scan.texts, inner.start, inner.stop - inner.start, False, 0)
            if name < 0 or not put_id(&self._ids, sequence.scope + COUNTER_NAME, (iid << 32) | number, name):
                return NO_MEMORY
        return GOOD

    cdef int _read_gpu_counters(self, Sequence* sequence, Packet* packet) noexcept nogil:
        """Values of a GPU's counters."""
        cdef Field field
        cdef Range specs
        cdef uint64_t iid = 0
        cdef int64_t gpu = -1, time_ns = self._time_ns(sequence, packet)
        cdef const uint8_t* at = packet.counters.start
        cdef int done = GOOD
        while at < packet.counters.stop:  # what the values refer to may stand behind them
            at = next_field(at, packet.counters.stop, &field)
            if at == NULL:
                return BAD
            if field.number == 1 and field.wire == DELIMITED:
                specs.start, specs.stop = field.start, field.stop
                done = self._read_specs(sequence, 0, specs)
                if done != GOOD:
                    return done
            elif field.number == 4 and field.wire == VARINT:
                iid = <uint64_t>field.value
            elif field.number == 3 and field.wire == VARINT:
                gpu = field.value
        if gpu < 0:
            gpu = find_id(&self._ids, sequence.scope + GPU_OF_COUNTERS, iid)
        at = packet.counters.start
        while at < packet.counters.stop and done == GOOD:
            at = next_field(at, packet.counters.stop, &field)
            if field.number == 2 and field.wire == DELIMITED:
                done = self._read_gpu_counter(sequence, iid, gpu, time_ns, field.start, field.stop)
        return done

    cdef int _read_gpu_counter(
        self, Sequence* sequence, uint64_t iid, int64_t gpu, int64_t time_ns, const uint8_t* at, const uint8_t* end
    ) noexcept nogil:
        cdef Field field
        cdef Event event
        cdef Track* track
        cdef uint64_t number = 0
        cdef int64_t value = 0
        cdef int tag = 0
        while at < end:
            at = next_field(at, end, &field)
            if at == NULL:
                return BAD
            if field.number == 1 and field.wire == VARINT:
                number = <uint64_t>field.value
            elif field.number == 2 and field.wire == VARINT:
                tag, value = INT, field.value
            elif field.number == 3 and field.wire == FIXED64:
                tag, value = DOUBLE, field.value
        track = self._track(OF_GPU_COUNTERS, <uint64_t>max(gpu, 0))
        if track == NULL:
            return NO_MEMORY
        track.kind, track.pid = GPU_COUNTER_TRACK, max(gpu, 0)
        self._start_event(&event)
        event.phase = IS_COUNTER
        event.name = self._interned(sequence, COUNTER_NAME, (iid << 32) | number)
        event.tid = track - self._tracks
        _set_time(&event, time_ns)
        if tag != 0 and not put_stat(self._scan, &event, self._value, tag, value):
            return NO_MEMORY
        return self._put(&event)


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
        at = next_field(at, end, &field)
        if at == NULL:
            return False
    return True


# ---- parts of packets ------------------------------------------------------------------------------------------------


cdef void _forget_texts(Sequence* sequence) noexcept nogil:
    cdef int kind
    for kind in range(DENSE_KINDS):
        free(sequence.texts[kind])
        sequence.texts[kind] = NULL
        sequence.room[kind] = 0
    sequence.entries = 0


cdef bint _put_text(Sequence* sequence, int kind, int64_t iid, int32_t text) noexcept nogil:
    """Gives a small number a text.  False if there is no memory."""
    cdef int64_t room = sequence.room[kind]
    cdef int32_t* larger
    if iid >= room:
        larger = <int32_t*>realloc(sequence.texts[kind], <size_t>(2 * iid + 64) * sizeof(int32_t))
        if larger == NULL:
            return False
        memset(larger + room, 0, <size_t>(2 * iid + 64 - room) * sizeof(int32_t))
        sequence.texts[kind], sequence.room[kind] = larger, 2 * iid + 64
    sequence.texts[kind][iid] = text + 1
    return True


cdef int _scan_packet(const uint8_t* at, const uint8_t* end, Packet* packet) noexcept nogil:
    """Finds a packet's parts, whose order is free: what an event refers to may stand behind it."""
    cdef Field field
    packet.timestamp = packet.sequence = 0
    packet.flags = packet.clock = packet.dropped = 0
    packet.event.start = packet.interned.start = packet.defaults.start = packet.track.start = NULL
    packet.clocks.start = packet.stage.start = packet.counters.start = packet.inner.start = NULL
    while at < end:
        at = next_field(at, end, &field)
        if at == NULL:
            return BAD
        if field.wire == VARINT:
            if field.number == 8:
                packet.timestamp = <uint64_t>field.value
            elif field.number == 10:
                packet.sequence = <uint64_t>field.value
            elif field.number == 13:
                packet.flags |= field.value
            elif field.number == 41 and field.value:
                packet.flags |= CLEARS_STATE
            elif field.number == 42:
                packet.dropped = field.value
            elif field.number == 58:
                packet.clock = field.value
        elif field.wire == DELIMITED:
            if field.number == 11:
                _set_range(&packet.event, &field)
            elif field.number == 12:
                _set_range(&packet.interned, &field)
            elif field.number == 59:
                _set_range(&packet.defaults, &field)
            elif field.number == 60:
                _set_range(&packet.track, &field)
            elif field.number == 6:
                _set_range(&packet.clocks, &field)
            elif field.number == 53:
                _set_range(&packet.stage, &field)
            elif field.number == 52:
                _set_range(&packet.counters, &field)
            elif field.number == BY_DEFLATE or field.number == BY_ZSTD:
                _set_range(&packet.inner, &field)
                packet.method = field.number
    return GOOD


cdef inline void _set_range(Range* range, const Field* field) noexcept nogil:
    range.start, range.stop = field.start, field.stop


cdef int _kind_of_interned(int64_t number) noexcept nogil:
    """The kind of entries in a field of interned data, 0 for those that are not read."""
    if number == 1:
        return CATEGORY
    if number == 2:
        return EVENT_NAME
    if number == 3:
        return KEY
    if number == 29:
        return VALUE
    if number == 24:
        return STAGE
    if number == 47:
        return GPU_OF_COUNTERS
    if number == 1000:
        return KERNEL
    return ARGUMENT if number == 1001 else 0


cdef bint _read_about(Track* track, Range content, Range* name) noexcept nogil:
    """Reads what describes a track's process, thread or counter; its name goes to `name` unless there is one."""
    cdef Field field
    cdef const uint8_t* at = content.start
    cdef int64_t name_field = 6 if track.kind == PROCESS_TRACK else 5
    while at < content.stop:
        at = next_field(at, content.stop, &field)
        if at == NULL:
            return False
        if track.kind == COUNTER_TRACK:
            if field.number == 4 and field.wire == VARINT and field.value:
                track.multiplier = field.value
            elif field.number == 5 and field.wire == VARINT:
                track.is_incremental = field.value != 0
        elif field.number == 1 and field.wire == VARINT:
            track.pid = field.value
        elif field.number == 2 and field.wire == VARINT:
            track.tid = field.value
        elif field.number == name_field and field.wire == DELIMITED and field.start < field.stop:
            name.start, name.stop = field.start, field.stop
    return True


cdef bint _read_reading(const uint8_t* at, const uint8_t* end, Reading* reading) noexcept nogil:
    cdef Field field
    reading.clock = reading.time = 0
    reading.multiplier = 1
    reading.is_incremental = False
    while at < end:
        at = next_field(at, end, &field)
        if at == NULL:
            return False
        if field.wire != VARINT:
            continue
        if field.number == 1:
            reading.clock = <uint64_t>field.value
        elif field.number == 2:
            reading.time = <uint64_t>field.value
        elif field.number == 3:
            reading.is_incremental = field.value != 0
        elif field.number == 4 and 0 < field.value <= 1000000000:
            reading.multiplier = field.value
    return True


cdef inline int64_t _shown(const Reading* reading) noexcept nogil:
    """What a clock shows, in ns."""
    return _bounded(reading.time * <uint64_t>reading.multiplier)


cdef inline uint64_t _clock_key(const Sequence* sequence, uint64_t clock) noexcept nogil:
    if FIRST_OF_SEQUENCE <= clock < BEYOND_SEQUENCE:
        return (sequence.id << 8) | clock | (<uint64_t>1 << 63)
    return clock & ~(<uint64_t>1 << 63)


cdef inline int64_t _bounded(uint64_t time_ns) noexcept nogil:
    """A time as a signed number that can be added to another; one beyond 146 years is damage."""
    return <int64_t>time_ns if time_ns < <uint64_t>1 << 62 else 0


cdef inline uint8_t _phase_of(int64_t kind) noexcept nogil:
    if kind == SLICE_BEGIN:
        return IS_BEGIN
    if kind == SLICE_END:
        return IS_END
    if kind == COUNTER:
        return IS_COUNTER
    return IS_INSTANT if kind == INSTANT else 0


cdef inline void _set_time(Event* event, int64_t time_ns) noexcept nogil:
    event.start.us = time_ns // 1000
    event.start.frac_ps = (time_ns - event.start.us * 1000) * 1000


cdef bint _read_decimal(const uint8_t* at, const uint8_t* end, int64_t* value) noexcept nogil:
    """A whole number of at most 18 digits, as programs print it.  False if the text is something else."""
    cdef bint is_negative = at < end and at[0] == 0x2D
    cdef int64_t found = 0
    at += is_negative
    if at >= end or end - at > 18 or (at[0] == 0x30 and end - at > 1):
        return False
    while at < end:
        if not 0x30 <= at[0] <= 0x39:
            return False
        found = 10 * found + (at[0] - 0x30)
        at += 1
    value[0] = -found if is_negative else found
    return True
