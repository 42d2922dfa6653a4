"""Numbers that the parts of the scanner share."""

cdef enum:
    # What a scan stopped for: the end of the text, the end of the array, the position where it was to stop.
    MORE, CLOSED, STOPPED

cdef enum:
    # Instead of a position: the text ends first; this is no JSON; there is no memory left.
    INCOMPLETE = -1
    MALFORMED = -2
    NO_MEMORY = -3

cdef enum:
    # Flags of an event.
    HAS_TIME = 1
    HAS_DURATION = 2
    NEGATIVE = 4
    HAS_PID = 8
    HAS_TID = 16
    HAS_FLOW = 32
    LOCAL_ID = 64
    FLOW_IS_TEXT = 128

cdef enum:
    # Tags of stats; a slow double is one that needs a careful conversion.
    NONE = 0
    DOUBLE = 1
    UINT = 2
    INT = 3
    STRING = 5
    SLOW_DOUBLE = 9

cdef enum:
    # Bytes that mean something.
    SPACE = 0x20
    QUOTE = 0x22
    COMMA = 0x2C
    COLON = 0x3A
    BACKSLASH = 0x5C
    OPEN = 0x7B
    CLOSE = 0x7D
    OPEN_LIST = 0x5B
    CLOSE_LIST = 0x5D
    MINUS = 0x2D
    PLUS = 0x2B
    DOT = 0x2E
    ZERO = 0x30
    NINE = 0x39
    SMALL_E = 0x65
    SMALL_L = 0x6C
    SMALL_N = 0x6E
