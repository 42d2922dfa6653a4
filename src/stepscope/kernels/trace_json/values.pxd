"""Where a JSON value ends, and values that are kept as text."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from stepscope.kernels.trace_json.layout cimport (
    BACKSLASH, CLOSE, CLOSE_LIST, COLON, COMMA, INCOMPLETE, MALFORMED, NO_MEMORY, OPEN, OPEN_LIST, QUOTE, SPACE,
)
from stepscope.kernels.trace_json.texts cimport Texts, intern, make_room_for_bytes
from stepscope.kernels.trace_json.words cimport MOST_DIGITS, Window, as_digits, byte_at, bytes_below, digits_in, word_at


cdef struct Quoted:
    # Where a string ends: the position of its closing quote or why there is none, and whether it holds a backslash.
    int64_t stop
    bint escaped


cdef struct Token:
    # A text and the position after it, or why there is none.
    int64_t text
    int64_t after


cdef inline Quoted string_end(Window text, int64_t at) noexcept nogil:
    """The end of the string whose opening quote is at `at`."""
    cdef uint64_t low = 0x0101010101010101
    cdef uint64_t high = 0x8080808080808080
    cdef uint64_t word, quote, slash, hits
    cdef uint8_t c
    cdef Quoted found
    found.escaped = False
    at += 1
    while at + 8 <= text.end:  # eight bytes at once: is one of them a quote or a backslash?
        word = word_at(text, at)
        quote = word ^ <uint64_t>0x2222222222222222
        slash = word ^ <uint64_t>0x5C5C5C5C5C5C5C5C
        hits = (((quote - low) & ~quote) | ((slash - low) & ~slash)) & high
        if hits == 0:
            at += 8
            continue
        at += bytes_below(hits)
        if byte_at(text, at) == QUOTE:
            found.stop = at
            return found
        found.escaped = True
        at += 2
    while at < text.end:
        c = byte_at(text, at)
        if c == QUOTE:
            found.stop = at
            return found
        if c == BACKSLASH:
            found.escaped = True
            at += 1
        at += 1
    found.stop = INCOMPLETE
    return found


cdef inline bint ends_bare(uint8_t c) noexcept nogil:
    """True for a byte that ends a bare token."""
    return c <= SPACE or c == COMMA or c == CLOSE or c == CLOSE_LIST


cdef inline int64_t bare_end(Window text, int64_t at) noexcept nogil:
    """End of a bare token: a number, `null`, or whatever stands there until a comma, bracket or space."""
    cdef uint8_t c
    if at + MOST_DIGITS <= text.end:  # most are whole numbers
        at += digits_in(as_digits(word_at(text, at)))
    while at < text.end:
        c = byte_at(text, at)
        if ends_bare(c):
            return at
        if c == QUOTE or c == OPEN or c == OPEN_LIST or c == COLON:
            return MALFORMED
        at += 1
    return INCOMPLETE


cdef inline int64_t token_end(Window text, int64_t at) noexcept nogil:
    """As `bare_end`; MALFORMED for an empty token."""
    cdef int64_t after = bare_end(text, at)
    return MALFORMED if after == at else after


cdef inline int64_t skip_spaces(Window text, int64_t at, bint commas) noexcept nogil:
    """Position of the next byte that is no space, nor a comma if `commas`; the end if there is none."""
    cdef uint64_t marks
    while at < text.end:
        if byte_at(text, at) > SPACE:
            if not commas or byte_at(text, at) != COMMA:
                return at
            at += 1
        elif at + 8 <= text.end:  # eight bytes at once: lines of a trace start with many
            marks = no_spaces(word_at(text, at))
            at += bytes_below(marks) if marks else 8
        else:
            at += 1
    return at


cdef inline uint64_t no_spaces(uint64_t word) noexcept nogil:
    """The highest bit of each byte that is no space."""
    cdef uint64_t low = word & <uint64_t>0x7F7F7F7F7F7F7F7F
    return ((low + <uint64_t>0x5F5F5F5F5F5F5F5F) | word) & <uint64_t>0x8080808080808080


cdef inline int64_t value_end(Window text, int64_t at) noexcept nogil:
    """Position after the JSON value at `at`, INCOMPLETE or MALFORMED.  Kinds of brackets are not told apart."""
    cdef int64_t depth = 0
    cdef uint8_t c
    while at < text.end:
        c = byte_at(text, at)
        if c == QUOTE:
            at = string_end(text, at).stop
            if at < 0:
                return at
        elif c == OPEN or c == OPEN_LIST:
            depth += 1
        elif c == CLOSE or c == CLOSE_LIST:
            depth -= 1
        elif depth == 0:
            return token_end(text, at)
        else:
            at += 1
            continue
        at += 1
        if depth <= 0:
            return MALFORMED if depth < 0 else at
    return INCOMPLETE


cdef inline Token read_container(Window text, int64_t at, Texts *texts) noexcept nogil:
    """The list or object at `at` as JSON text without spaces.  It is written behind the used part of the table."""
    cdef int64_t length = 0
    cdef int64_t depth = 0
    cdef bint quoted = False
    cdef bint taken = False  # whether this byte stands behind a backslash, and so means nothing
    cdef uint8_t c
    cdef Token found
    found.text = 0
    found.after = INCOMPLETE
    while at < text.end:
        c = byte_at(text, at)
        at += 1
        if taken:
            taken = False
        elif quoted:
            taken = c == BACKSLASH
            quoted = c != QUOTE
        elif c <= SPACE:
            continue
        elif c == QUOTE:
            quoted = True
        elif c == OPEN or c == OPEN_LIST:
            depth += 1
        elif c == CLOSE or c == CLOSE_LIST:
            depth -= 1
        if texts.used + length >= texts.blob_room and not make_room_for_bytes(texts, length + 1):
            found.after = NO_MEMORY
            return found
        texts.blob[texts.used + length] = c
        length += 1
        if depth == 0 and not quoted:
            found.text = intern(texts, texts.blob + texts.used, length, False, 0)
            found.after = at if found.text >= 0 else found.text
            return found
    return found
