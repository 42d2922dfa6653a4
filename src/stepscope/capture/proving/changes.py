"""What is put around the calls of a place for a block of steps."""

from __future__ import annotations

import inspect
import itertools
import sys
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from stepscope.capture.patches import Call
from stepscope.errors import CaptureError
from stepscope.proof.parts import KERAS_EPOCHS
from stepscope.proof.plan import Dose

RETURN_ARGUMENT = ("jax.block_until_ready", "jax._src.array.ArrayImpl.block_until_ready")
"""Functions that wait for what they get, and return it."""

_BYTES = bytes(32768)
_CALLS, _REPEATS = 100, 5  # of which the quickest counts


class CallChange:
    """Does nothing; the base of all changes.

    Attributes:
        refused: why the place cannot be changed in this way, found out while it was; empty if it can.
        spent_s: how long all delays took.
    """

    refused = ""
    spent_s = 0.0

    def wrap(self, original: Call, name: str = "") -> Call:
        """What is called in place of a function."""
        return original

    def next_step(self) -> None:
        """A step has ended."""


class Outermost(CallChange):
    """Does something around a call; a call inside of it, as of a method that calls that of its base class, is left."""

    def __init__(self) -> None:
        self._inside = threading.local()

    def wrap(self, original: Call, name: str = "") -> Call:
        """The function, with `around` around it."""

        def watched(*args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "now", False):
                return original(*args, **kwargs)
            self._inside.now = True
            try:
                return self.around(original, args, kwargs)
            finally:
                self._inside.now = False

        return watched

    def around(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls it."""
        return call(*args, **kwargs)


class Count(Outermost):
    """Counts the calls of a place, how long they take, and on which threads they run."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.seconds = self._computed_s = 0.0
        self.threads: set[int] = set()

    @property
    def computes(self) -> bool:
        """Whether its threads compute for more than half of the time of the calls, and do not wait."""
        return self._computed_s > self.seconds / 2

    def around(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls it, and counts."""
        start, computed = time.perf_counter(), time.thread_time()
        try:
            return call(*args, **kwargs)
        finally:
            self.calls += 1
            self._computed_s += time.thread_time() - computed
            self.seconds += time.perf_counter() - start
            self.threads.add(threading.get_ident())


class Delay(Outermost):
    """Waits before calls, without Python's lock.

    The thread of the steps computes meanwhile: on a busy machine the system favours a thread that slept, so that a part
    of a sleep would come back.  It counts the time on its processor, since the steps that a delay lengthens are
    compared without the time in which their thread waits for one.  Other threads do what the place does there: they
    compute, or sleep and take no processor from it.
    """

    def __init__(self, dose: Dose, computes: bool) -> None:
        super().__init__()
        self._dose = dose
        self._computes = computes
        self._loop = threading.get_ident()
        self._calls = 0

    def around(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Waits, now and then, and calls it."""
        self._calls += 1
        if self._calls % self._dose.every == 0:
            self._wait()
        return call(*args, **kwargs)

    def _wait(self) -> None:
        is_loop = threading.get_ident() == self._loop
        start, computed = time.perf_counter(), time.thread_time()
        if not is_loop and not self._computes:
            time.sleep(self._dose.seconds)
        while (is_loop or self._computes) and time.thread_time() - computed < self._dose.seconds:
            _compute()
        self.spent_s += time.thread_time() - computed if is_loop else time.perf_counter() - start


class Omit(CallChange):
    """Calls nothing: for functions whose results nobody uses."""

    def wrap(self, original: Call, name: str = "") -> Call:
        """A function that does nothing."""
        return do_nothing


def do_nothing(*args: Any, **kwargs: Any) -> None:
    """In place of a function that is left out."""


class ReplayedStep(CallChange):
    """Gives the results of one whole step again: the first step with calls is real."""

    def __init__(self) -> None:
        self._results: dict[Any, list[Any]] = defaultdict(list)  # by function, in the order of the calls
        self._next: dict[Any, int] = defaultdict(int)
        self._is_known = False

    def next_step(self) -> None:
        """From the first step with calls on, there is something to give again."""
        self._is_known = bool(self._results)
        self._next.clear()

    def wrap(self, original: Call, name: str = "") -> Call:
        """The function, or its results again."""
        key = getattr(original, "__code__", name)  # the same in all blocks
        if name in KERAS_EPOCHS:
            return keep_batch(original, self._results[key])

        def replayed(*args: Any, **kwargs: Any) -> Any:
            known = self._results[key] if self._is_known else []
            if known and not self.refused:
                at = self._next[key]
                self._next[key] = (at + 1) % len(known)
                self.refused = _why_gone(known[at])
                if not self.refused:
                    return known[at]
            result = original(*args, **kwargs)
            self.refused = self.refused or _why_not_again(result)
            if not self._is_known:
                self._results[key].append(result)
            return result

        return replayed


class Defer(CallChange):
    """Does the call of the step before in place of this one's: what it waits for is a step older."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], tuple[Any, Any]] = {}
        self._next: dict[int, int] = defaultdict(int)

    def next_step(self) -> None:
        """The calls are counted anew."""
        self._next.clear()

    def wrap(self, original: Call, name: str = "") -> Call:
        """The function with the arguments of a step ago."""

        def deferred(*args: Any, **kwargs: Any) -> Any:
            at = self._next[id(original)]
            self._next[id(original)] = at + 1
            earlier = self._held.get((id(original), at))
            self._held[id(original), at] = args, kwargs
            if earlier is None or any(_why_gone(value) for value in earlier[0]):
                return original(*args, **kwargs)
            result = original(*earlier[0], **earlier[1])
            return args[0] if name in RETURN_ARGUMENT and args else result

        return deferred


def measure_cost(change: CallChange) -> float:
    """Seconds that a change adds to a call, of a delay one of no length; the change is of no use afterwards."""
    times = []
    changed = change.wrap(do_nothing)
    for call in (do_nothing, changed) * _REPEATS:
        start = time.perf_counter()
        for _ in range(_CALLS):
            call()
        times.append((time.perf_counter() - start) / _CALLS)
        change.next_step()
    return max(min(times[1::2]) - min(times[::2]), 0.0)


def _compute() -> None:
    """Computes for some 10 us; without Python's lock, which `crc32` gives back while it is at it."""
    zlib.crc32(_BYTES)


def keep_batch(original: Call, kept: list[Any]) -> Call:
    """What tells the steps of an epoch, with the iterator in `kept`, which repeats a batch, in place of its own."""

    def next_of_epoch(epoch: Any) -> Any:
        first, last, batches = original(epoch)
        if not kept:
            kept.append(_repeat_batch(batches))
        return first, last, kept[0]

    return next_of_epoch


def _repeat_batch(batches: Any) -> Any:
    """An iterator of the same kind and types: a step that was compiled for the one runs with the other."""
    tensorflow: Any = sys.modules.get("tensorflow")
    batch, spec = next(batches), getattr(batches, "element_spec", None)
    if tensorflow is None or not isinstance(batches, tensorflow.data.Iterator):
        return itertools.repeat(batch)
    nest = tensorflow.nest

    def forget_shapes(*parts: Any) -> Any:
        pairs = zip(nest.flatten(parts), nest.flatten(spec), strict=True)
        free = [tensorflow.compat.v1.placeholder_with_default(part, wanted.shape) for part, wanted in pairs]
        return nest.pack_sequence_as(spec, free)

    repeated = tensorflow.data.Dataset.from_tensors(batch).repeat()
    if all(isinstance(each, tensorflow.TensorSpec) for each in nest.flatten(spec)):
        repeated = repeated.map(forget_shapes)
    return iter(repeated)


def _parts_of(result: Any) -> Iterable[Any]:
    if isinstance(result, (tuple, list)):
        return (result, *result)
    if isinstance(result, dict):
        return (result, *result.values())
    return (result,)


def _why_not_again(result: Any) -> str:
    """Why a result cannot be given a second time; empty if it can."""
    for part in _parts_of(result):
        if inspect.isgenerator(part) or inspect.isawaitable(part):
            return "it makes a generator or a coroutine; name a function that it calls"
        if getattr(part, "grad_fn", None) is not None:
            return "its result is part of a backward pass, which needs it anew in each step"
    return ""


def _why_gone(result: Any) -> str:
    """Why a result that was kept cannot be used any more; empty if it can."""
    for part in _parts_of(result):
        is_deleted: Callable[[], bool] | None = getattr(part, "is_deleted", None)
        if is_deleted is not None and is_deleted():
            return "its result was donated to a later call"
    return ""


def refuse_generator(function: Any) -> None:
    """Raises CaptureError for what is entered once and then runs on."""
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise CaptureError(
            "is a generator or a coroutine, which already runs", hint="name it from the start, with --at"
        )
