"""The members of a JSON object: keys, which repeat from event to event, and values that are kept as texts."""

from libc.stdint cimport int64_t, uint8_t

from stepscope.kernels.trace_json.layout cimport COLON, INCOMPLETE, MALFORMED, OPEN, OPEN_LIST, QUOTE, SMALL_N
from stepscope.kernels.trace_json.texts cimport Texts, equal_bytes, intern
from stepscope.kernels.trace_json.values cimport Quoted, Token, skip_spaces, string_end, token_end, value_end
from stepscope.kernels.trace_json.words cimport Window, byte_at


cdef struct Key:
    # A key between its quotes, and the position of its value or why there is none.
    int64_t begin
    int64_t stop
    int64_t value
    bint escaped


cdef inline Token read_token(Window text, int64_t at, int64_t guess, Texts *texts) noexcept nogil:
    """A number or string as text without its quotes.  `null` and lists have id 0."""
    cdef uint8_t c = byte_at(text, at)
    cdef Quoted quoted
    cdef Token found
    found.text = 0
    if c == QUOTE:
        found.after = after_guess(text, at, guess, texts)
        if found.after >= 0:
            found.text = guess
            return found
        quoted = string_end(text, at)
        if quoted.stop < 0:
            found.after = quoted.stop
            return found
        found.text = intern(texts, text.data + at + 1, quoted.stop - at - 1, quoted.escaped, guess)
        found.after = quoted.stop + 1
    elif c == OPEN or c == OPEN_LIST:
        found.after = value_end(text, at)
    else:
        found.after = token_end(text, at)
        if found.after >= 0 and c != SMALL_N:  # null
            found.text = intern(texts, text.data + at, found.after - at, False, guess)
    if found.text < 0:
        found.after = found.text
    return found


cdef inline Key read_key(Window text, int64_t at) noexcept nogil:
    """The key whose opening quote is at `at`, and its colon."""
    cdef Key key
    cdef Quoted quoted
    key.begin = key.stop = 0
    key.escaped = False
    key.value = MALFORMED
    if byte_at(text, at) != QUOTE:
        return key
    quoted = string_end(text, at)
    if quoted.stop < 0:
        key.value = quoted.stop
        return key
    key.begin = at + 1
    key.stop = quoted.stop
    key.escaped = quoted.escaped
    key.value = value_of_key(text, quoted.stop + 1)
    return key


cdef inline int64_t value_of_key(Window text, int64_t at) noexcept nogil:
    """Position of the value after the key that ends at `at`, or why there is none."""
    at = skip_spaces(text, at, False)
    if at >= text.end:
        return INCOMPLETE
    if byte_at(text, at) != COLON:
        return MALFORMED
    at = skip_spaces(text, at + 1, False)
    return at if at < text.end else INCOMPLETE


cdef inline int64_t after_guess(Window text, int64_t at, int64_t guess, const Texts *texts) noexcept nogil:
    """Position after the string at `at` if it is the text `guess`, else -1; far cheaper than to look for its end."""
    cdef int64_t start = texts.offsets[guess]
    cdef int64_t length = texts.offsets[guess + 1] - start
    cdef int64_t after = at + length + 2
    if guess == 0 or after > text.end or byte_at(text, at) != QUOTE or byte_at(text, after - 1) != QUOTE:
        return -1
    return after if equal_bytes(texts.blob + start, text.data + at + 1, length) else -1


cdef inline int64_t next_member(Window text, int64_t at) noexcept nogil:
    """Position of the next key or closing brace of an object, or INCOMPLETE."""
    at = skip_spaces(text, at, True)
    return at if at < text.end else INCOMPLETE
