"""Two parts of an analysis at once, on two cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from stepscope.model import HostTrace

T = TypeVar("T")

_WORTH_A_THREAD = 100_000  # events; below it, starting one takes longer than it saves


@contextmanager
def side_by_side(trace: HostTrace, compute: Callable[[HostTrace], T]) -> Iterator[Callable[[], T]]:
    """Computes something of a trace on another thread while the context's body computes something else.

    What both need is a derived column, which one of them computes while the other waits.  Gives a function that waits
    for the result, or raises what `compute` raised.
    """
    if len(trace.events) < _WORTH_A_THREAD:
        yield lambda: compute(trace)
        return
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(compute, trace).result
