"""Riegeli's checksum, and its transposed chunks: the fields of many messages, one kind of field after the other.

A transposed chunk holds buffers, each with the values of one field; a state machine whose states say which field comes
next; and the transitions between states, a byte each.  Records are made from their end to their start, since the length
of a message is written before it and known after it.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from stepscope.kernels.growing cimport Growing, push
from stepscope.kernels.memory cimport free, resize
from stepscope.kernels.varint cimport read_varint

# ---- HighwayHash-64 --------------------------------------------------------------------------------------------------

cdef struct Highway:
    uint64_t v0[4]
    uint64_t v1[4]
    uint64_t mul0[4]
    uint64_t mul1[4]


def highway_hash(const uint8_t[::1] data, const uint64_t[::1] key):
    """The 64-bit HighwayHash of some bytes under a key of four numbers."""
    cdef Highway state
    cdef int64_t size = data.shape[0]
    cdef int64_t at = 0
    cdef uint64_t lanes[4]
    cdef const uint8_t* start = &data[0] if size else NULL
    if key.shape[0] != 4:
        raise ValueError(f"a key has 4 numbers, not {key.shape[0]}")
    with nogil:
        _start_hash(&state, &key[0])
        while size - at >= 32:
            memcpy(lanes, start + at, 32)
            _update(&state, lanes)
            at += 32
        if size > at:
            _update_rest(&state, start + at, size - at)
        for _ in range(4):
            _permute(&state)
    return state.v0[0] + state.v1[0] + state.mul0[0] + state.mul1[0]


cdef void _start_hash(Highway* state, const uint64_t* key) noexcept nogil:
    cdef int k
    state.mul0[0], state.mul0[1] = <uint64_t>0xDBE6D5D5FE4CCE2F, <uint64_t>0xA4093822299F31D0
    state.mul0[2], state.mul0[3] = <uint64_t>0x13198A2E03707344, <uint64_t>0x243F6A8885A308D3
    state.mul1[0], state.mul1[1] = <uint64_t>0x3BD39E10CB0EF593, <uint64_t>0xC0ACF169B5F18A8C
    state.mul1[2], state.mul1[3] = <uint64_t>0xBE5466CF34E90C6C, <uint64_t>0x452821E638D01377
    for k in range(4):
        state.v0[k] = state.mul0[k] ^ key[k]
        state.v1[k] = state.mul1[k] ^ _swapped(key[k])


cdef inline uint64_t _swapped(uint64_t word) noexcept nogil:
    return (word >> 32) | (word << 32)


cdef inline void _update(Highway* state, const uint64_t* lanes) noexcept nogil:
    cdef int k
    for k in range(4):
        state.v1[k] += state.mul0[k] + lanes[k]
        state.mul0[k] ^= (state.v1[k] & <uint64_t>0xFFFFFFFF) * (state.v0[k] >> 32)
        state.v0[k] += state.mul1[k]
        state.mul1[k] ^= (state.v0[k] & <uint64_t>0xFFFFFFFF) * (state.v1[k] >> 32)
    _zip(state.v1[1], state.v1[0], &state.v0[1], &state.v0[0])
    _zip(state.v1[3], state.v1[2], &state.v0[3], &state.v0[2])
    _zip(state.v0[1], state.v0[0], &state.v1[1], &state.v1[0])
    _zip(state.v0[3], state.v0[2], &state.v1[3], &state.v1[2])


cdef inline void _zip(uint64_t one, uint64_t zero, uint64_t* add_one, uint64_t* add_zero) noexcept nogil:
    """Adds the bytes of two words, mixed in the order that the hash defines."""
    add_zero[0] += (
        (((zero & <uint64_t>0xFF000000) | (one & <uint64_t>0xFF00000000)) >> 24)
        | (((zero & <uint64_t>0xFF0000000000) | (one & <uint64_t>0xFF000000000000)) >> 16)
        | (zero & <uint64_t>0xFF0000)
        | ((zero & <uint64_t>0xFF00) << 32)
        | ((one & <uint64_t>0xFF00000000000000) >> 8)
        | (zero << 56)
    )
    add_one[0] += (
        (((one & <uint64_t>0xFF000000) | (zero & <uint64_t>0xFF00000000)) >> 24)
        | (one & <uint64_t>0xFF0000)
        | ((one & <uint64_t>0xFF0000000000) >> 16)
        | ((one & <uint64_t>0xFF00) << 24)
        | ((zero & <uint64_t>0xFF000000000000) >> 8)
        | ((one & <uint64_t>0xFF) << 48)
        | (zero & <uint64_t>0xFF00000000000000)
    )


cdef void _update_rest(Highway* state, const uint8_t* rest, int64_t size) noexcept nogil:
    """The last bytes, fewer than 32."""
    cdef uint8_t packet[32]
    cdef uint64_t lanes[4]
    cdef int64_t words = size & ~3
    cdef int64_t odd = size & 3
    cdef uint32_t low, high
    cdef int k
    for k in range(4):
        state.v0[k] += (<uint64_t>size << 32) + <uint64_t>size
        low, high = <uint32_t>state.v1[k], <uint32_t>(state.v1[k] >> 32)
        low = (low << size) | (low >> (32 - size))
        high = (high << size) | (high >> (32 - size))
        state.v1[k] = (<uint64_t>high << 32) | low
    memset(packet, 0, 32)
    memcpy(packet, rest, <size_t>words)
    if size & 16:
        memcpy(packet + 28, rest + size - 4, 4)
    elif odd:
        packet[16] = rest[words]
        packet[17] = rest[words + (odd >> 1)]
        packet[18] = rest[words + odd - 1]
    memcpy(lanes, packet, 32)
    _update(state, lanes)


cdef inline void _permute(Highway* state) noexcept nogil:
    cdef uint64_t lanes[4]
    lanes[0], lanes[1] = _swapped(state.v0[2]), _swapped(state.v0[3])
    lanes[2], lanes[3] = _swapped(state.v0[0]), _swapped(state.v0[1])
    _update(state, lanes)


# ---- transposed chunks -----------------------------------------------------------------------------------------------

cpdef enum:
    # States that are no field.
    NO_OP = 0
    NON_PROTO = 1
    START_OF_SUBMESSAGE = 2
    START_OF_MESSAGE = 3
    # Wire types, one of which marks the end of a submessage.
    WIRE_VARINT = 0
    WIRE_FIXED64 = 1
    WIRE_DELIMITED = 2
    WIRE_START_GROUP = 3
    WIRE_END_GROUP = 4
    WIRE_FIXED32 = 5
    WIRE_SUBMESSAGE_END = 6
    # From here on a subtype of a varint is its value; below it is one less than the varint's length.
    INLINE_VALUE = 10
    MOST_INLINE = 137

cdef struct Machine:
    const uint32_t* tags
    const uint8_t* subtypes
    const int32_t* buffer_of
    const int32_t* next
    const uint8_t* is_implicit
    int64_t states
    const uint8_t* data  # of all buffers
    int64_t* at  # where each buffer is read
    const int64_t* ends
    int64_t buffers
    uint8_t* out
    int64_t left  # bytes of `out` before what is written
    int64_t size
    int64_t records
    Growing open  # of each open submessage: what was left at its end, and its state


def join_fields(
    const uint32_t[::1] tags,
    const uint8_t[::1] subtypes,
    const int32_t[::1] buffer_of,
    const int32_t[::1] next_state,
    const uint8_t[::1] is_implicit,
    int64_t first,
    const uint8_t[::1] data,
    const int64_t[::1] begins,
    const int64_t[::1] ends,
    const uint8_t[::1] transitions,
    uint8_t[::1] out,
):
    """Makes the records of a transposed chunk, one after the other, out of its fields.

    Args:
        tags, subtypes, buffer_of, next_state, is_implicit: the states; -1 for a state without a buffer.
        first: the first state.
        data: the buffers; buffer `i` is `data[begins[i]:ends[i]]`.  With states that are whole records, the last buffer
            holds the lengths of these.
        transitions: the transitions between states.
        out: is filled; has as many bytes as the chunk says.

    Returns:
        The number of records; -1 if the chunk contradicts itself.
    """
    cdef Machine machine
    cdef int64_t k
    cdef int64_t buffers = begins.shape[0]
    cdef bint is_good = False
    states = tags.shape[0]
    if not (subtypes.shape[0] == buffer_of.shape[0] == next_state.shape[0] == is_implicit.shape[0] == states):
        raise ValueError("states have five columns of one length")
    if ends.shape[0] != buffers or not 0 <= first < states:
        raise ValueError("a buffer has a start and an end, and the first state is one of all")
    for k in range(buffers):
        if not 0 <= begins[k] <= ends[k] <= data.shape[0]:
            raise ValueError(f"no part of {data.shape[0]} bytes: {begins[k]} to {ends[k]}")
    memset(&machine, 0, sizeof(Machine))
    machine.at = <int64_t*>resize(NULL, <size_t>(buffers + 1) * sizeof(int64_t))
    if machine.at == NULL:
        raise MemoryError
    try:
        for k in range(buffers):
            machine.at[k] = begins[k]
        machine.tags, machine.subtypes, machine.buffer_of = &tags[0], &subtypes[0], &buffer_of[0]
        machine.next, machine.is_implicit, machine.states = &next_state[0], &is_implicit[0], states
        machine.data = &data[0] if data.shape[0] else NULL
        machine.ends = &ends[0] if buffers else NULL
        machine.buffers = buffers
        machine.out = &out[0] if out.shape[0] else NULL
        machine.left = machine.size = out.shape[0]
        with nogil:
            is_good = _run(&machine, first, &transitions[0] if transitions.shape[0] else NULL, transitions.shape[0])
    finally:
        free(machine.at)
        free(machine.open.items)
    return machine.records if is_good and machine.left == 0 and machine.open.size == 0 else -1


cdef bint _run(Machine* machine, int64_t state, const uint8_t* transitions, int64_t count) except -1 nogil:
    """Goes from state to state.  Up to three more steps, and those that are implied, follow each transition."""
    cdef int64_t at = 0, implied = 0
    cdef int repeats = machine.is_implicit[state]
    cdef uint8_t transition
    while True:
        if not _write_state(machine, state):
            return False
        implied += 1
        state = machine.next[state]
        if repeats == 0:
            if at == count:
                return True
            transition = transitions[at]
            at += 1
            implied = 0
            state += transition >> 2
            if state >= machine.states:
                return False
            repeats = (transition & 3) + machine.is_implicit[state]
        else:
            repeats -= not machine.is_implicit[state]
        if implied > 4 * machine.states:  # states that imply each other in a circle
            return False


cdef bint _write_state(Machine* machine, int64_t state) except -1 nogil:
    """Writes what a state stands for before what is written.  False if it contradicts the chunk."""
    cdef uint32_t tag = machine.tags[state]
    cdef uint32_t wire = tag & 7
    cdef uint8_t subtype = machine.subtypes[state]
    if tag == NO_OP:
        return True
    if tag == START_OF_MESSAGE:
        machine.records += 1
        return machine.open.size == 0
    if tag == START_OF_SUBMESSAGE:
        return _close_submessage(machine)
    if tag == NON_PROTO:
        return _write_record(machine, state)
    if wire == WIRE_SUBMESSAGE_END:
        push(&machine.open, machine.left)
        push(&machine.open, state)
        return True
    if wire == WIRE_VARINT and subtype >= INLINE_VALUE:
        subtype -= INLINE_VALUE
        return _write(machine, &subtype, 1) and _write_tag(machine, tag)
    if wire == WIRE_VARINT:
        return _write_varint(machine, machine.buffer_of[state], subtype + 1) and _write_tag(machine, tag)
    if wire == WIRE_FIXED32 or wire == WIRE_FIXED64:
        return _copy(machine, machine.buffer_of[state], 4 if wire == WIRE_FIXED32 else 8) and _write_tag(machine, tag)
    if wire == WIRE_DELIMITED:
        return _write_text(machine, machine.buffer_of[state]) and _write_tag(machine, tag)
    return _write_tag(machine, tag)


cdef inline bint _write(Machine* machine, const uint8_t* source, int64_t count) noexcept nogil:
    if count > machine.left:
        return False
    machine.left -= count
    memcpy(machine.out + machine.left, source, <size_t>count)
    return True


cdef inline bint _write_number(Machine* machine, uint64_t value) noexcept nogil:
    cdef uint8_t digits[10]
    cdef int count = 0
    while value >= 0x80:
        digits[count] = <uint8_t>value | 0x80
        value >>= 7
        count += 1
    digits[count] = <uint8_t>value
    return _write(machine, digits, count + 1)


cdef inline bint _write_tag(Machine* machine, uint32_t tag) noexcept nogil:
    return _write_number(machine, tag)


cdef inline const uint8_t* _take(Machine* machine, int64_t buffer, int64_t count) noexcept nogil:
    """The next bytes of a buffer; NULL if it has not as many."""
    cdef int64_t at
    if not 0 <= buffer < machine.buffers or count > machine.ends[buffer] - machine.at[buffer]:
        return NULL
    at = machine.at[buffer]
    machine.at[buffer] = at + count
    return machine.data + at


cdef inline bint _copy(Machine* machine, int64_t buffer, int64_t count) noexcept nogil:
    cdef const uint8_t* source = _take(machine, buffer, count)
    return source != NULL and _write(machine, source, count)


cdef inline bint _write_varint(Machine* machine, int64_t buffer, int64_t count) noexcept nogil:
    """A varint, of whose bytes the buffer holds the lower seven bits."""
    cdef const uint8_t* source = _take(machine, buffer, count)
    cdef int64_t k
    if source == NULL or not _write(machine, source, count):
        return False
    for k in range(count - 1):
        machine.out[machine.left + k] |= 0x80
    return True


cdef inline bint _write_text(Machine* machine, int64_t buffer) noexcept nogil:
    """A text with its length before it."""
    cdef uint64_t length = 0
    cdef const uint8_t* start
    cdef const uint8_t* content
    if not 0 <= buffer < machine.buffers or machine.data == NULL:
        return False
    start = machine.data + machine.at[buffer]
    content = read_varint(start, machine.data + machine.ends[buffer], &length)
    if content == NULL or length > <uint64_t>machine.size:
        return False
    return _copy(machine, buffer, (content - start) + <int64_t>length)


cdef inline bint _write_record(Machine* machine, int64_t state) noexcept nogil:
    """A record that is no message.  The last buffer holds the lengths of these."""
    cdef uint64_t length = 0
    cdef int64_t lengths = machine.buffers - 1
    cdef const uint8_t* start
    cdef const uint8_t* after
    if lengths < 0 or machine.open.size or machine.data == NULL:
        return False
    start = machine.data + machine.at[lengths]
    after = read_varint(start, machine.data + machine.ends[lengths], &length)
    if after == NULL or length > <uint64_t>machine.size:
        return False
    machine.at[lengths] += after - start
    machine.records += 1
    return _copy(machine, machine.buffer_of[state], <int64_t>length)


cdef inline bint _close_submessage(Machine* machine) noexcept nogil:
    """Writes the head of the submessage whose fields are written."""
    cdef int64_t state, left
    if machine.open.size < 2:
        return False
    state, left = machine.open.items[machine.open.size - 1], machine.open.items[machine.open.size - 2]
    machine.open.size -= 2
    if not _write_number(machine, <uint64_t>(left - machine.left)):
        return False
    return _write_tag(machine, machine.tags[state] - WIRE_SUBMESSAGE_END + WIRE_DELIMITED)
