"""What a pickle claims, before Python's own reader believes it: that makes room for the highest number that is named."""

cdef enum:
    UNKNOWN = -1
    LINE = -2  # an argument that a line end ends
    TWO_LINES = -3
    FEW = 255  # places cost nothing
    COUNT = 16  # arguments whose length is in so many bytes before them: COUNT + 1, 4 or 8

cdef signed char KINDS[256]  # of each opcode: the bytes of its argument, or what says how long that is


def _fill_kinds():
    for opcode in range(256):
        KINDS[opcode] = UNKNOWN
    for opcodes, kind in (
        (b"(.012N)]}aesutldQRbo\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98", 0),
        (b"Khq\x80\x82", 1), (b"M\x83", 2), (b"Jjr\x84", 4), (b"G\x95", 8),
        (b"U\x8aC\x8c", COUNT + 1), (b"TXB\x8b", COUNT + 4), (b"\x8d\x8e\x96", COUNT + 8),
        (b"ILFSVgpP", LINE), (b"ci", TWO_LINES),
    ):
        for opcode in opcodes:
            KINDS[opcode] = kind


_fill_kinds()


def claims_more_than_it_holds(const unsigned char[::1] data not None):
    """Whether a pickle names a place of its memory, or a length, beyond the number of its bytes.

    No pickle that was written does so: each place that it fills takes a byte at least.  What is no opcode ends the
    look, as it ends Python's.
    """
    cdef Py_ssize_t size = data.shape[0], most = max(size, FEW), at = 0, begin, index
    cdef unsigned long long number
    cdef unsigned char opcode
    cdef int kind, lines
    while at < size:
        opcode = data[at]
        kind = KINDS[opcode]
        at += 1
        if kind == UNKNOWN or opcode == 46:  # `.` is the end
            return False
        if kind == LINE or kind == TWO_LINES:
            begin = at
            for lines in range(1 if kind == LINE else 2):
                while at < size and data[at] != 10:
                    at += 1
                at += 1
            if opcode == 112 and is_beyond(data, begin, min(at, size), most):  # `p`
                return True
            continue
        begin = kind - COUNT if kind >= COUNT else kind
        if begin > size - at:
            return False
        number = 0
        for index in range(begin - 1, -1, -1):
            number = number << 8 | data[at + index]
        at += begin
        if kind >= COUNT:
            if number > <unsigned long long> (size - at):
                return True
            at += <Py_ssize_t> number
        elif opcode == 114 and number > <unsigned long long> most:  # `r`
            return True
    return False


cdef bint is_beyond(const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t most) noexcept:
    """Whether the digits of a line are a higher number; anything else in them is one, too."""
    cdef Py_ssize_t number = 0, at
    for at in range(begin, end):
        if data[at] == 10:
            return False
        if not 48 <= data[at] <= 57:
            return True
        number = 10 * number + data[at] - 48
        if number > most:
            return True
    return False
