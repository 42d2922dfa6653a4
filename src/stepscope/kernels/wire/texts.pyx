"""Texts of the file: equal ones get equal ids."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from stepscope.kernels.growing cimport grown
from stepscope.kernels.memory cimport free
from stepscope.kernels.varint cimport read_varint

cdef enum:
    _FIRST_ROOM = 1024  # texts
    _SLOTS_PER_TEXT = 4  # keeps the chains of a full table short
    _CHUNK_BYTES = 256 << 10


cdef class Interner:
    """Gives equal texts of a buffer equal ids, in the order in which they come.  Id 0 is the empty text.

    It keeps a copy of each text, so that what was decoded of a large file need not stay in memory.

    Args:
        buf: uint8 of shape (bytes,).
        seed: goes into the hash, so that no file can be made whose texts all collide.

    Attributes:
        count: ids given so far; size: bytes of their texts.
    """

    def __cinit__(self, const uint8_t[::1] buf, uint64_t seed):
        self.view = buf
        if buf.shape[0]:
            self.buf = &buf[0]
        self.seed = seed
        self.room = _FIRST_ROOM
        self.texts = <Text*>grown(NULL, self.room, sizeof(Text))
        self.texts[0] = Text(NULL, 0, 0)
        self.count = 1
        self._grow_slots()

    def __dealloc__(self):
        cdef Chunk* before
        while self.chunk != NULL:
            before = self.chunk.before
            free(self.chunk)
            self.chunk = before
        free(self.texts)
        free(self.slots)

    def add(self, const int64_t[:] places, int32_t[::1] ids):
        """Ids of texts, told by the positions of their lengths.

        Args:
            places: int64 of shape (n,), with any stride; 0, and what is damaged, is the empty text.
            ids: int32 of shape (n,), filled.
        """
        cdef int64_t row, size = self.view.shape[0] if self.buf != NULL else 0
        cdef const uint8_t* at
        cdef const uint8_t* end
        cdef uint64_t length = 0
        cdef Text text
        if places.shape[0] != ids.shape[0]:
            raise IndexError("the columns are not of one length")
        with nogil:
            for row in range(places.shape[0]):
                ids[row] = 0
                if not 0 < places[row] < size:
                    continue
                end = self.buf + size
                at = read_varint(self.buf + places[row], end, &length)
                if at == NULL or not 0 < length <= <uint64_t>(end - at):
                    continue
                text = Text(at, <int64_t>length, hash_text(at, <int64_t>length, self.seed))
                ids[row] = <int32_t>self.give(&text)

    def add_ranges(
        self, const uint8_t[::1] buf, const int64_t[::1] starts, const int64_t[::1] stops, int64_t[::1] ids
    ):
        """Ids of texts of any buffer, told by where they start and stop.

        Args:
            buf: uint8 of shape (bytes,); starts, stops: int64 of shape (n,); what does not lie in it is the empty text.
            ids: int64 of shape (n,), filled.
        """
        cdef int64_t row, length
        cdef Text text
        if not starts.shape[0] == stops.shape[0] == ids.shape[0]:
            raise IndexError("the columns are not of one length")
        with nogil:
            for row in range(starts.shape[0]):
                ids[row] = 0
                if 0 <= starts[row] < stops[row] <= buf.shape[0]:
                    length = stops[row] - starts[row]
                    text = Text(&buf[starts[row]], length, hash_text(&buf[starts[row]], length, self.seed))
                    ids[row] = self.give(&text)

    def release_buffer(self):
        """Lets go of the buffer, after which no text can be told by its position."""
        self.view = None
        self.buf = NULL

    def find(self, bytes text):
        """The id of a text, -1 if it has none."""
        cdef const uint8_t* start = text
        cdef Text wanted = Text(start, len(text), hash_text(start, len(text), self.seed))
        return self._find(&wanted) if wanted.length else 0

    def text(self, int64_t row):
        """The text with an id.  Raises IndexError if there is none."""
        if not 0 <= row < self.count:
            raise IndexError("there is no such text")
        return (<const char*>self.texts[row].start)[:self.texts[row].length] if self.texts[row].length else b""

    def copy(self, uint8_t[::1] blob, int64_t[::1] offsets):
        """Copies all texts, one after the other.

        Args:
            blob: uint8 of shape (size,), filled; offsets: int64 of shape (count + 1,), filled: where each begins.
        """
        cdef int64_t id, at = 0
        if blob.shape[0] < self.size or offsets.shape[0] <= self.count:
            raise IndexError("the texts have no room")
        with nogil:
            for id in range(self.count):
                offsets[id] = at
                if self.texts[id].length:
                    memcpy(&blob[at], self.texts[id].start, <size_t>self.texts[id].length)
                at += self.texts[id].length
            offsets[self.count] = at

    cdef inline int64_t _find(self, const Text* text) noexcept nogil:
        cdef uint64_t mask = <uint64_t>(self.n_slots - 1)
        cdef uint64_t at = text.hash & mask
        cdef uint32_t high = <uint32_t>(text.hash >> 32)
        cdef const Text* known
        while self.slots[at].text >= 0:
            if self.slots[at].hash == high:
                known = &self.texts[self.slots[at].text]
                if known.length == text.length and memcmp(known.start, text.start, <size_t>text.length) == 0:
                    return self.slots[at].text
            at = (at + 1) & mask
        return -1

    cdef int64_t give(self, const Text* text) except -1 nogil:
        """The id of a text that is not empty."""
        cdef int64_t known = self._find(text)
        if known >= 0:
            return known
        if self.count == self.room:
            self._grow_texts()
        self.texts[self.count] = Text(self._keep(text), text.length, text.hash)
        self.size += text.length
        self.count += 1
        self._enter(<int32_t>(self.count - 1))
        return self.count - 1

    cdef const uint8_t* _keep(self, const Text* text) except NULL nogil:
        """A copy of a text's bytes."""
        cdef Chunk* chunk = self.chunk
        cdef int64_t size = max(text.length, <int64_t>_CHUNK_BYTES)
        cdef uint8_t* at
        if chunk == NULL or chunk.free < text.length:
            chunk = <Chunk*>grown(NULL, <int64_t>sizeof(Chunk) + size, 1)
            chunk.before, chunk.free, chunk.at = self.chunk, size, <uint8_t*>chunk + sizeof(Chunk)
            self.chunk = chunk
        at = chunk.at
        memcpy(at, text.start, <size_t>text.length)
        chunk.at += text.length
        chunk.free -= text.length
        return at

    cdef int _grow_texts(self) except -1 nogil:
        if self.room > INT32_MAX // 2:
            with gil:
                raise MemoryError("more different texts than an id can tell apart")
        self.texts = <Text*>grown(self.texts, 2 * self.room, sizeof(Text))
        self.room *= 2
        return self._grow_slots()

    cdef int _grow_slots(self) except -1 nogil:
        """Makes the table larger and enters all texts anew."""
        cdef int64_t at
        cdef int64_t wanted = _SLOTS_PER_TEXT * self.room
        self.slots = <Slot*>grown(self.slots, wanted, sizeof(Slot))
        self.n_slots = wanted
        for at in range(self.n_slots):
            self.slots[at].text = -1
        for at in range(1, self.count):
            self._enter(<int32_t>at)
        return 0

    cdef void _enter(self, int32_t id) noexcept nogil:
        cdef uint64_t mask = <uint64_t>(self.n_slots - 1)
        cdef uint64_t at = self.texts[id].hash & mask
        while self.slots[at].text >= 0:
            at = (at + 1) & mask
        self.slots[at] = Slot(id, <uint32_t>(self.texts[id].hash >> 32))
