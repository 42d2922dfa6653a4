"""How many threads are worth starting, and loops over events that several of them share."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

MOST_THREADS = 8
_WORTH_A_THREAD = 100_000  # events


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_in_parts(count: int, work: Callable[[int, int], None]) -> None:
    """Calls `work(first, last)` for runs that together cover `count` events, on several threads if there are many."""
    threads = min(cores(), MOST_THREADS, max(1, count // _WORTH_A_THREAD))
    bounds = [count * part // threads for part in range(threads + 1)]
    if threads == 1:
        return work(0, count)
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, first, last) for first, last in pairwise(bounds)]:
            done.result()
    return None
