"""The table of texts: equal bytes, equal id."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from stepscope.kernels.memory cimport free, resize, zeros
from stepscope.kernels.trace_json.layout cimport NO_MEMORY
from stepscope.kernels.trace_json.words cimport load_word


cdef enum:
    LONG_TEXT = 64


cdef struct Texts:
    # Text `i` is `blob[offsets[i]:offsets[i + 1]]`; text 0 is empty.  `escaped[i]` is 1 if the text came from a string
    # with a backslash.  `follower[i]` is the key that came last after the key `i`, and `value[i]` the string that came last
    # as its value: guesses that save looking for the end of a text and looking it up.  `slots` is a hash table of ids, 0 where free, with a power of two of places, twice as many as `room`.
    uint8_t *blob
    int64_t *offsets
    uint64_t *hashes
    uint8_t *escaped
    int32_t *follower
    int32_t *value
    int32_t *slots
    int64_t count
    int64_t room
    int64_t used
    int64_t blob_room


cdef inline bint make_room_for_text(Texts *texts) noexcept nogil:
    """Room for one text more.  False if there is none."""
    cdef int64_t room = texts.room * 2 if texts.room else 1 << 12
    cdef int32_t *slots
    if texts.count < texts.room:
        return True
    if room > (1 << 30):
        return False
    slots = <int32_t *>zeros(2 * room, sizeof(int32_t))
    if slots == NULL:
        return False
    free(texts.slots)
    texts.slots = slots
    if not (
        _resized(<void **>&texts.offsets, (room + 1) * sizeof(int64_t))
        and _resized(<void **>&texts.hashes, room * sizeof(uint64_t))
        and _resized(<void **>&texts.escaped, room)
        and _resized(<void **>&texts.follower, room * sizeof(int32_t))
        and _resized(<void **>&texts.value, room * sizeof(int32_t))
    ):
        return False
    texts.room = room
    if texts.count == 0:
        _put_empty_text(texts)
    _fill_slots(texts)
    return True


cdef inline bint _resized(void **block, size_t size) noexcept nogil:
    cdef void *larger = resize(block[0], size)
    if larger != NULL:
        block[0] = larger
    return larger != NULL


cdef inline void _put_empty_text(Texts *texts) noexcept nogil:
    texts.offsets[0] = texts.offsets[1] = 0
    texts.hashes[0] = 0
    texts.escaped[0] = 0
    texts.follower[0] = texts.value[0] = 0
    texts.count = 1


cdef inline void _fill_slots(Texts *texts) noexcept nogil:
    cdef uint64_t mask = 2 * texts.room - 1
    cdef uint64_t slot
    cdef int64_t text
    for text in range(1, texts.count):
        slot = texts.hashes[text] & mask
        while texts.slots[slot] != 0:
            slot = (slot + 1) & mask
        texts.slots[slot] = <int32_t>text


cdef inline bint make_room_for_bytes(Texts *texts, int64_t count) noexcept nogil:
    """Room for so many bytes more.  False if there is none."""
    cdef int64_t room = texts.blob_room * 2 if texts.blob_room else 1 << 16
    if texts.used + count <= texts.blob_room:
        return True
    while room < texts.used + count:
        room *= 2
    if not _resized(<void **>&texts.blob, room):
        return False
    texts.blob_room = room
    return True


cdef inline uint64_t hash_of(const uint8_t *text, int64_t length) noexcept nogil:
    cdef uint64_t mixed = <uint64_t>length * <uint64_t>0x9E3779B97F4A7C15
    cdef int64_t at = 0
    while at + 8 <= length:
        mixed = (mixed ^ load_word(text + at)) * <uint64_t>0xFF51AFD7ED558CCD
        mixed ^= mixed >> 32
        at += 8
    mixed = (mixed ^ _rest(text, length, at)) * <uint64_t>0x9FB21C651E98DF25
    mixed ^= mixed >> 29
    mixed *= <uint64_t>0xC4CEB9FE1A85EC53
    return mixed ^ (mixed >> 32)


cdef inline uint64_t _rest(const uint8_t *text, int64_t length, int64_t at) noexcept nogil:
    """The bytes behind the last whole word, as a word: together with those before them, if there are as many."""
    cdef uint64_t word = 0
    if length >= 8:
        return load_word(text + length - 8)
    while at < length:
        word = (word << 8) | text[at]
        at += 1
    return word


cdef inline bint equal_bytes(const uint8_t *one, const uint8_t *other, int64_t length) noexcept nogil:
    """As memcmp, which is quicker for long texts only."""
    cdef int64_t at = 0
    if length >= LONG_TEXT:
        return memcmp(one, other, length) == 0
    while at + 8 <= length:
        if load_word(one + at) != load_word(other + at):
            return False
        at += 8
    if length >= 8:
        return load_word(one + length - 8) == load_word(other + length - 8)
    while at < length:
        if one[at] != other[at]:
            return False
        at += 1
    return True


cdef inline bint is_text(const Texts *texts, int64_t text, const uint8_t *raw, int64_t length) noexcept nogil:
    """True if these bytes are the text of that id."""
    cdef int64_t start = texts.offsets[text]
    return texts.offsets[text + 1] - start == length and equal_bytes(texts.blob + start, raw, length)


cdef inline int64_t intern(
    Texts *texts, const uint8_t *raw, int64_t length, bint escaped, int64_t guess
) noexcept nogil:
    """Id of a text, or NO_MEMORY.  `raw` may be what `blob` holds behind its used part: then the bytes are there."""
    cdef uint64_t mixed, mask, slot
    cdef int64_t held, new
    if length == 0:
        return 0
    if guess > 0 and is_text(texts, guess, raw, length):
        return guess
    mixed = hash_of(raw, length)
    mask = 2 * texts.room - 1
    slot = mixed & mask
    while True:
        held = texts.slots[slot]
        if held == 0:
            break
        if texts.hashes[held] == mixed and is_text(texts, held, raw, length):
            return held
        slot = (slot + 1) & mask
    if raw != texts.blob + texts.used:
        if not make_room_for_bytes(texts, length):
            return NO_MEMORY
        memcpy(texts.blob + texts.used, raw, length)
    new = texts.count
    texts.used += length
    texts.offsets[new + 1] = texts.used
    texts.hashes[new] = mixed
    texts.escaped[new] = escaped
    texts.follower[new] = texts.value[new] = 0
    texts.slots[slot] = <int32_t>new
    texts.count = new + 1
    return new if make_room_for_text(texts) else NO_MEMORY
