"""Looking for a place among ascending numbers, from a place on that is probably near."""

from libc.stdint cimport int64_t


cdef inline int64_t place_of(
    const int64_t[::1] values, int64_t first, int64_t last, int64_t near, int64_t limit
) noexcept nogil:
    """The first place of `first:last` whose value is not below a limit, or `last`; `near` is a place from `first` to it."""
    cdef int64_t low, high, middle, step = 1
    if near < last and values[near] < limit:
        low, high = near, near + 1
        while high < last and values[high] < limit:
            low = high
            high += step
            step *= 2
        high = min(high, last)
    else:
        low, high = near - 1, near
        while low >= first and values[low] >= limit:
            high = low
            low -= step
            step *= 2
        low = max(low, first - 1)
    while high - low > 1:  # the value at `low` is below the limit, that at `high` is not
        middle = (low + high) >> 1
        if values[middle] < limit:
            low = middle
        else:
            high = middle
    return high
