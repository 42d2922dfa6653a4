"""The text that is scanned, a byte or eight at once.  A build for tests ends the process at a read beyond its end."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef extern from *:
    """
    #include <stdlib.h>
    #include <string.h>
    #ifdef NDEBUG
    #define REQUIRE_INSIDE(at, length, end) ((void)0)
    #else
    #define REQUIRE_INSIDE(at, length, end) do { if ((at) < 0 || (at) + (length) > (end)) abort(); } while (0)
    #endif

    #ifdef _MSC_VER
    #include <intrin.h>
    static __inline int bytes_below(unsigned long long word) {
        unsigned long bit;
        _BitScanForward64(&bit, word);
        return (int)(bit >> 3);
    }
    #else
    static inline int bytes_below(unsigned long long word) { return __builtin_ctzll(word) >> 3; }
    #endif

    static inline unsigned long long load_word(const unsigned char *at) {
        unsigned long long word;
        memcpy(&word, at, 8);
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
    #endif
        return word;
    }
    """
    void REQUIRE_INSIDE(int64_t at, int64_t length, int64_t end) noexcept nogil
    int bytes_below(uint64_t word) noexcept nogil  # how many whole bytes stand below the lowest bit that is set
    uint64_t load_word(const uint8_t *at) noexcept nogil  # the first byte is the lowest


cdef struct Window:
    # What there is of the text.
    const uint8_t *data
    int64_t end


cdef inline uint8_t byte_at(Window text, int64_t at) noexcept nogil:
    REQUIRE_INSIDE(at, 1, text.end)
    return text.data[at]


cdef inline uint64_t word_at(Window text, int64_t at) noexcept nogil:
    REQUIRE_INSIDE(at, 8, text.end)
    return load_word(text.data + at)
