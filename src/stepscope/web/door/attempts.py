"""Limits how often wrong tokens are looked at.

What is counted is what failed: a right token passes from every address, so nobody can lock out the colleagues behind
the same proxy.  That helps nobody to guess one: a token has 16 characters or more.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque

MOST_FAILURES = 10
"""Wrong tokens from one address within WINDOW_SECONDS; the next wrong ones are told to wait."""

WINDOW_SECONDS = 300.0
MOST_ADDRESSES = 10_000


class Attempts:
    """Wrong tokens, by address.  Safe to use from several threads."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def seconds_to_wait(self, address: str) -> float:
        """How long an address has to wait before its next attempt; 0 if it may try."""
        with self._lock:
            failures = self._failures.get(address)
            if failures is None:
                return 0.0
            _drop_old(failures)
            return max(0.0, failures[0] + WINDOW_SECONDS - time.monotonic()) if len(failures) >= MOST_FAILURES else 0.0

    def add_failure(self, address: str) -> None:
        """Counts a wrong token."""
        with self._lock:
            failures = self._failures.setdefault(address, deque(maxlen=MOST_FAILURES))
            failures.append(time.monotonic())
            self._failures.move_to_end(address)
            while len(self._failures) > MOST_ADDRESSES:
                self._failures.popitem(last=False)


def _drop_old(failures: deque[float]) -> None:
    while failures and failures[0] < time.monotonic() - WINDOW_SECONDS:
        failures.popleft()
