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

    /* The number that `count` decimal digits write; `word` holds them as values 0 to 9, the first in the lowest byte. */
    static inline unsigned long long number_of(unsigned long long word, int count) {
        word <<= 8 * (8 - count);
        word = word * 10 + (word >> 8);
        return ((word & 0x000000FF000000FFULL) * 0x000F424000000064ULL
                + ((word >> 16) & 0x000000FF000000FFULL) * 0x0000271000000001ULL) >> 32;
    }
    """
    void REQUIRE_INSIDE(int64_t at, int64_t length, int64_t end) noexcept nogil
    int bytes_below(uint64_t word) noexcept nogil  # how many whole bytes stand below the lowest bit that is set
    uint64_t number_of(uint64_t word, int count) noexcept nogil  # `count` is 1 to 8
    uint64_t load_word(const uint8_t *at) noexcept nogil  # the first byte is the lowest


cdef enum:
    MOST_DIGITS = 8  # that are read at once


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


cdef inline int digits_in(uint64_t digits) noexcept nogil:
    """How many bytes of a word with `0` taken from each are digits, up to the first that is none."""
    cdef uint64_t high = 0x8080808080808080
    cdef uint64_t others = (((digits & ~high) + <uint64_t>0x7676767676767676) | digits) & high
    return bytes_below(others) if others else MOST_DIGITS


cdef inline uint64_t as_digits(uint64_t word) noexcept nogil:
    """Digits become 0 to 9, other bytes something else."""
    return word ^ <uint64_t>0x3030303030303030
