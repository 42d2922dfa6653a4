"""A map from the numbers that a file gives to numbers of ours.  Equal numbers of different scopes do not meet."""

from libc.stdint cimport int64_t, uint64_t

from stepscope.kernels.memory cimport free, zeros

cdef enum:
    FREE_SLOT = 0  # no scope has this number

cdef struct IdSlot:
    int64_t scope
    uint64_t id
    int64_t value

cdef struct IdMap:
    # Whoever makes one (all zeros but for `seed`) frees its `slots`; `room` is a power of two, at most half of it used.
    IdSlot* slots
    int64_t room
    int64_t count
    uint64_t seed


cdef inline IdSlot* slot_of(const IdMap* ids, int64_t scope, uint64_t id) noexcept nogil:
    """Where a number is, or would be; NULL if there are no slots."""
    cdef uint64_t mixed = (id ^ ids.seed) * <uint64_t>0x9E3779B97F4A7C15
    cdef uint64_t at
    if ids.room == 0:
        return NULL
    mixed = (mixed ^ (mixed >> 32) ^ <uint64_t>scope) * <uint64_t>0xFF51AFD7ED558CCD
    at = (mixed ^ (mixed >> 29)) & <uint64_t>(ids.room - 1)
    while ids.slots[at].scope != FREE_SLOT and (ids.slots[at].id != id or ids.slots[at].scope != scope):
        at = (at + 1) & <uint64_t>(ids.room - 1)
    return &ids.slots[at]


cdef inline int64_t find_id(const IdMap* ids, int64_t scope, uint64_t id) noexcept nogil:
    """The value of a number, -1 if it has none."""
    cdef IdSlot* slot = slot_of(ids, scope, id)
    return slot.value if slot != NULL and slot.scope != FREE_SLOT else -1


cdef inline bint put_id(IdMap* ids, int64_t scope, uint64_t id, int64_t value) noexcept nogil:
    """Gives a number a value, in place of one that it has.  False if there is no memory."""
    cdef IdSlot* slot
    if 2 * (ids.count + 1) > ids.room and not _grow_ids(ids):
        return False
    slot = slot_of(ids, scope, id)
    ids.count += slot.scope == FREE_SLOT
    slot.scope, slot.id, slot.value = scope, id, value
    return True


cdef inline bint _grow_ids(IdMap* ids) noexcept nogil:
    cdef IdSlot* old = ids.slots
    cdef int64_t room = ids.room
    cdef int64_t at
    cdef IdSlot* larger = <IdSlot*>zeros(<size_t>(2 * room if room else 256), sizeof(IdSlot))
    if larger == NULL:
        return False
    ids.slots = larger
    ids.room = 2 * room if room else 256
    for at in range(room):
        if old[at].scope != FREE_SLOT:
            slot_of(ids, old[at].scope, old[at].id)[0] = old[at]
    free(old)
    return True
