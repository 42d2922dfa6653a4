"""The parts of lines that are decoded."""

cpdef enum:
    # Columns of the ranges that are decoded, one row a range: its line, from where to where it goes, the row of its
    # first event, and for how many events there is room.
    RANGE_LINE
    RANGE_START
    RANGE_STOP
    RANGE_ROW
    RANGE_ROOM
    RANGE_WIDTH
