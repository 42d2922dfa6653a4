"""Texts of the file: equal ones get equal ids."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef struct Text:
    const uint8_t* start
    int64_t length
    uint64_t hash

cdef struct Chunk:
    # Memory for texts; how much of it is free, and the chunk that was filled before it.
    Chunk* before
    int64_t free
    uint8_t* at

cdef struct Slot:
    int32_t text  # -1 if it is free
    uint32_t hash  # the upper half


cdef inline uint64_t load(const uint8_t* at) noexcept nogil:
    """The eight bytes at a place as a number."""
    cdef uint64_t word
    memcpy(&word, at, 8)
    return word


cdef inline uint64_t load_short(const uint8_t* at, int64_t size) noexcept nogil:
    """One to seven bytes as a number, no two of one size as the same."""
    cdef uint32_t first = 0, last = 0
    if size < 4:
        return at[0] | <uint64_t>at[size >> 1] << 8 | <uint64_t>at[size - 1] << 16
    memcpy(&first, at, 4)
    memcpy(&last, at + size - 4, 4)
    return first | <uint64_t>last << 32


cdef inline uint64_t mix(uint64_t mixed, uint64_t word) noexcept nogil:
    mixed = (mixed ^ word) * <uint64_t>0xFF51AFD7ED558CCD
    return mixed ^ (mixed >> 32)


cdef inline uint64_t hash_text(const uint8_t* at, int64_t length, uint64_t seed) noexcept nogil:
    """A multiplicative hash over words of eight bytes, of which the last overlaps the one before."""
    cdef uint64_t mixed = seed ^ (<uint64_t>length * <uint64_t>0x9E3779B97F4A7C15)
    cdef int64_t place = 0
    if length < 8:
        return mix(mixed, load_short(at, length)) if length > 0 else mixed
    while place < length - 8:
        mixed = mix(mixed, load(at + place))
        place += 8
    return mix(mixed, load(at + length - 8))


cdef class Interner:
    cdef const uint8_t[::1] view
    cdef const uint8_t* buf
    cdef Text* texts
    cdef Slot* slots
    cdef Chunk* chunk
    cdef int64_t room, n_slots
    cdef readonly int64_t count
    cdef readonly int64_t size
    cdef uint64_t seed

    cdef int64_t _find(self, const Text* text) noexcept nogil
    cdef int64_t give(self, const Text* text) except -1 nogil
    cdef const uint8_t* _keep(self, const Text* text) except NULL nogil
    cdef int _grow_texts(self) except -1 nogil
    cdef int _grow_slots(self) except -1 nogil
    cdef void _enter(self, int32_t id) noexcept nogil
