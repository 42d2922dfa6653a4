"""What is kept in memory: decoded traces, each decoded once even for several threads, whose total size is bounded; and
the most recent of what is quick to make again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.model import HostTrace


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The most recently used values by key.  Safe to use from several threads.

    Args:
        most: how many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """The value of a key; None if it is not here."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: K, value: V) -> V:
        """Keeps a value, and returns it."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value


@dataclass
class _Turn:
    """The lock of one key, and how many threads hold it or wait for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    threads: int = 0


class TraceShelf:
    """The most recently used traces.

    The last used trace is always kept, others while their total stays below the bound.  Room is made before a trace is
    decoded, so that the bound also holds while decoding, as far as the sizes are known.

    Args:
        max_bytes: the bound; 0 keeps one trace.
    """

    def __init__(self, max_bytes: int = 0) -> None:
        self.max_bytes = max_bytes
        self._traces: OrderedDict[Hashable, HostTrace] = OrderedDict()
        self._turns: dict[Hashable, _Turn] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._traces

    def get(self, key: Hashable, make: Callable[[], HostTrace], expected_bytes: int = 0) -> HostTrace:
        """The trace of a key, made by `make` if it is not here.

        If several threads need the same trace, one makes it and the others wait.  An error of `make` goes to the thread
        that called it; the next thread tries again.

        Args:
            key: equal for equal traces; must differ between states of a file.
            make: decodes the trace.
            expected_bytes: the approximate memory it will take.
        """
        with self._turn(key):
            found = self._find_trace(key)
            if found is not None:
                return found
            self._make_room(expected_bytes)
            trace = make()
            with self._lock:
                self._traces[key] = trace
        self._make_room(0)
        return trace

    @contextmanager
    def _turn(self, key: Hashable) -> Iterator[None]:
        """A context that one thread at a time can enter for a key."""
        with self._lock:
            turn = self._turns.setdefault(key, _Turn())
            turn.threads += 1
        try:
            with turn.lock:
                yield
        finally:
            with self._lock:
                turn.threads -= 1
                if not turn.threads:
                    del self._turns[key]

    def drop(self, wanted: Callable[[Hashable], bool]) -> None:
        """Drops the traces whose key is `wanted`."""
        with self._lock:
            for key in [key for key in self._traces if wanted(key)]:
                del self._traces[key]

    def nbytes(self) -> int:
        """The memory of all traces here, with the data derived from them."""
        with self._lock:
            return sum(map(trace_bytes, self._traces.values()))

    def _find_trace(self, key: Hashable) -> HostTrace | None:
        with self._lock:
            trace = self._traces.get(key)
            if trace is not None:
                self._traces.move_to_end(key)
            return trace

    def _make_room(self, coming_bytes: int) -> None:
        """Drops the least recently used traces until `coming_bytes` fit; if that is 0, always keeps the newest.

        A trace is measured only where its size decides something: that takes longer than to decode a small one.
        """
        with self._lock:
            room = self.max_bytes - coming_bytes
            kept = 0 if coming_bytes else 1
            for number, key in enumerate(reversed(list(self._traces))):
                fits = room > 0
                if fits and len(self._traces) > kept:
                    room -= trace_bytes(self._traces[key])
                    fits = room >= 0
                if not fits and number >= kept:
                    dropped = self._traces.pop(key)
                    if not self.max_bytes:  # else others may still ask it
                        dropped.forget()


def trace_bytes(trace: HostTrace) -> int:
    """The memory of a trace's columns and of the arrays derived from it."""
    return _array_bytes(trace, set())


def _array_bytes(value: Any, seen: set[int]) -> int:
    """The bytes of all arrays that can be reached through dataclasses, string tables, tuples, lists and dicts."""
    if id(value) in seen or isinstance(value, str | bytes | int | float | None):
        return 0
    seen.add(id(value))
    if hasattr(value, "nbytes") and hasattr(value, "base"):
        return _owned_bytes(value, seen)
    if is_dataclass(value) and not isinstance(value, type):
        return sum(_array_bytes(getattr(value, each.name), seen) for each in fields(value))
    if isinstance(value, dict):
        return sum(_array_bytes(item, seen) for item in list(value.values()))
    if isinstance(value, list | tuple):
        # Long lists hold one small value for each step or line, not arrays.
        return sum(_array_bytes(item, seen) for item in value[:64])
    if hasattr(value, "blob"):
        return _array_bytes(value.blob, seen) + _array_bytes(value.offsets, seen)
    return 0


def _owned_bytes(array: Any, seen: set[int]) -> int:
    """An array's bytes, counted once for all views of a buffer."""
    owner = array
    while getattr(owner, "base", None) is not None and hasattr(owner.base, "nbytes"):
        owner = owner.base
    if owner is not array and id(owner) in seen:
        return 0
    seen.add(id(owner))
    return int(getattr(owner, "nbytes", array.nbytes))
