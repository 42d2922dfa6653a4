"""Decides which of the things that happen once per step are the steps of the training loop: once, for everybody.

The finders report whatever may be a step, and the program its own marks.  One rule chooses among these sources:

- The first source that is reported is the loop.
- A more certain one takes its place at once: marks before Keras' batches, these before optimizers, and so on.  Of two
  that are as certain, the larger one does, as a training step is the largest function of a program.
- One that is as certain and updates as many arrays takes its place when it has come round regularly: twice in a row
  after the same number of the loop's steps, and after several of them.  So the gradients of single examples give way to
  the update that follows them all.  So do calls of functions to the gradients that a program computes outside of any:
  these functions are parts of its steps, such as those that a library has compiled.
- Any other one takes its place only when the loop has fallen silent: not one of its steps has come during 50 steps of
  that one, twice as many as have ever come between two of its steps, and as much time as it had lasted.  So a warm-up
  or a pretraining gives way to what follows, and an evaluation between two epochs does not count, nor do the many
  optimizers of a step that all step once.

Steps are never counted back: one that was reported before its source became the loop is over.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import field
from typing import Protocol

from stepscope.records import dataclass

STALE_STEPS = 50  # of others: fewer may be an evaluation, or the moves of an episode
_KEPT_TIMES = 512
_PAUSE = 3  # times the usual distance of two steps: longer, and something else ran
_FEWEST_ROUNDS = 2
_SEVERAL = 2  # steps of the loop in one of another: with one the two take turns, and each comes once per step


@dataclass(frozen=True)
class StepSource:
    """Something that happens once per step, such as the calls of one compiled function.

    Attributes:
        rank: how certain it is to happen once per step; of a program's sources, the one with the highest rank counts.
        name: its name for the user.
        key: distinguishes it from other sources of its kind.
        size: of two sources with one rank, the larger counts: a training step is the largest function of a program.
        updates: how many of the arrays that it takes it gives back; 0 if that is not known.
    """

    rank: int
    name: str
    key: Hashable = None
    size: int = field(default=0, compare=False)
    updates: int = field(default=0, compare=False)

    @property
    def bounds(self) -> str:
        """Where a step begins and ends, for the user."""
        if self.rank == MARKED.rank:
            return "a step lasts from one mark of the program to the next"
        return f"a step lasts from one {self.name.removeprefix('one per ')} to the next"


LOADED, DIFFERENTIATED, CALLS, OPTIMIZED, FITTED = 1, 2, 3, 4, 5  # ranks
MARKED = StepSource(rank=6, name="as the program marks them")


class Listener(Protocol):
    """Is told of the steps of the loop, on their thread.  No method raises an exception, except to end the program if
    that was requested.  The source is another object than before when the loop has changed."""

    @property
    def active(self) -> bool:
        """False while steps are of no interest; then none is reported."""

    def start_step(self, source: StepSource, number: int | None = None) -> None:
        """A step starts, unless one is open; `number` is the program's own for it, if it has one."""

    def end_step(self, source: StepSource, another_follows: bool = True, number: int | None = None) -> None:
        """A step has ended; the next one, with this number, starts with that, if another follows."""


class StepLoop:
    """Receives the reports of all sources of steps, and passes on those of the loop.

    Attributes:
        source: the loop's; None before the first report.
        count: how many steps of it have ended, as far as anybody listened.
        ended_s: when the last of them have ended, on the clock.
        was_silent: the loop before this one fell silent; False where this one is more certain.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deciding = threading.Lock()
        self._listeners: tuple[Listener, ...] = ()
        self.forget()

    def forget(self) -> None:
        """The steps so far belong to another process, or to a program that has ended."""
        self.source: StepSource | None = None
        self._same: StepSource | None = None  # as it was reported last: its size may have grown
        self.count = self._telling = 0
        self.was_silent = False
        self._counts: dict[StepSource, int] = {}  # of sources that were the loop once
        self._expected = 0
        self._began_s = self._last_s = 0.0
        self.ended_s: deque[float] = deque(maxlen=_KEPT_TIMES)
        self._others = self._most_others = 0  # steps of another since the last of the loop, and the most until one came
        self._steps_of: dict[StepSource, int] = {}  # the same of each other source
        self._parts: set[StepSource] = set()  # that gave way to a step which comes round after several of them
        self._rounds: dict[
            StepSource, tuple[int, int]
        ] = {}  # by source: the count at its last step, and what that grew

    def add(self, listener: Listener) -> None:
        """Tells one more listener."""
        self._listeners += (listener,)

    def remove(self, listener: Listener) -> None:
        """Tells a listener nothing any more."""
        self._listeners = tuple(each for each in self._listeners if each is not listener)

    @property
    def has_listeners(self) -> bool:
        """Whether anybody is told."""
        return bool(self._listeners)

    @property
    def active(self) -> bool:
        """Whether any listener is; finders need not report otherwise."""
        return any(listener.active for listener in self._listeners)

    # -- what finders and marks report, on the thread of the steps -----------------------------------------------------

    def expect(self, rank: int) -> None:
        """Something that will be a source of this rank was made, such as an optimizer: what is less certain counts only
        if that turns out not to be used."""
        self._expected = max(self._expected, rank)

    def start_step(self, source: StepSource, number: int | None = None) -> None:
        """A step starts, unless one is open."""
        if self._is_loop(source):
            self._telling = threading.get_ident()
            try:
                for listener in self._listeners:
                    if listener.active:
                        listener.start_step(self.source or source, number)
            finally:  # a listener may end the program
                self._telling = 0

    def end_step(self, source: StepSource, another_follows: bool = True, number: int | None = None) -> None:
        """A step has ended; the next one starts with that, if another follows."""
        if self._is_loop(source):
            self.count += 1
            self.ended_s.append(self._last_s)
            self._telling = threading.get_ident()
            try:
                for listener in self._listeners:
                    if listener.active:
                        listener.end_step(self.source or source, another_follows, number)
            finally:
                self._telling = 0

    def mark_step(self, number: object) -> None:
        """The program has marked the start of a step, which ends the one before.  What a listener marks meanwhile, on
        the same thread, is no mark of the program."""
        if self._telling == threading.get_ident():
            return
        own = number if isinstance(number, int) else None
        if self.source is MARKED:
            self.end_step(MARKED, True, own)
        else:
            self.start_step(MARKED, own)

    # -- the rule ------------------------------------------------------------------------------------------------------

    def _is_loop(self, source: StepSource) -> bool:
        """Whether what is reported is the loop's, by the rule above."""
        best = self.source
        if source is self._same or source == best:  # comparing the fields of dataclasses takes microseconds
            self._same = source
            if self._others:
                self._most_others = max(self._most_others, self._others)
                self._others = 0
                self._steps_of.clear()
            self._last_s = self._clock()
            return True
        if not self._deciding.acquire(blocking=False):
            return False  # no thread waits for another one here: this step is not counted
        try:
            return self._take_over(source, best)
        finally:
            self._deciding.release()

    def _take_over(self, source: StepSource, best: StepSource | None) -> bool:
        self._steps_of[source] = self._steps_of.get(source, 0) + 1
        self._others = max(self._others, self._steps_of[source])
        if best is None or self._same is None:
            is_better = source.rank >= self._expected
        else:
            is_better = source not in self._parts and (source.rank, source.size) > (best.rank, self._same.size)
            if not is_better and self._comes_round(source, self._same):
                is_better = True
                self._parts.add(best)
        if not is_better and not self._is_silent(self._steps_of[source]):
            return False
        self.was_silent = not is_better
        before, self._others = self.count + self._others - 1, 0
        self._steps_of.clear()
        if best is not None:
            self._counts[best] = self.count
        self.count = 0 if self.was_silent else self._counts.get(source, 0)
        # A step that comes after many moves of an episode comes again after as many.
        self._most_others = 0 if self.was_silent else before
        self.source = self._same = source
        self.ended_s.clear()
        self._began_s = self._last_s = self._clock()
        self._rounds.clear()
        self._expected = 0
        return True

    def _comes_round(self, source: StepSource, best: StepSource) -> bool:
        """Whether a source updates as much as the loop, or is the gradients of a program of whose functions one is the
        loop, and comes regularly after the same number of its steps."""
        updates = source.rank == best.rank and source.updates >= best.updates > 0
        if not updates and (source.rank, best.rank) != (DIFFERENTIATED, CALLS):
            return False
        before, grew = self._rounds.get(source, (0, 0))
        now = self.count - before
        if len(self._rounds) >= STALE_STEPS:
            self._rounds.clear()
        self._rounds[source] = self.count, now
        return now == grew >= _SEVERAL

    def _is_silent(self, others: int) -> bool:
        """Whether the loop has not come back for so many steps of another, and for long."""
        if others <= max(STALE_STEPS, 2 * self._most_others):
            return False
        return self._clock() - self._last_s >= self._last_s - self._began_s


def steps_in_a_row(ended_s: Iterable[float]) -> tuple[int, float] | None:
    """How many steps follow each other until something else runs, such as the moves that are learned from or an
    evaluation, and how many seconds pass with that; None where nothing comes again after as many steps.

    Args:
        ended_s: when steps have ended, ascending.

    >>> steps_in_a_row([1, 2, 3, 14, 15, 16, 27, 28, 29, 40])
    (3, 11)
    """
    times = list(ended_s)
    apart = [later - earlier for earlier, later in itertools.pairwise(times)]
    if not apart:
        return None
    usual = sorted(apart)[len(apart) // 2]
    places = [place for place, seconds in enumerate(apart) if seconds > _PAUSE * usual]
    rows = Counter(later - earlier for earlier, later in itertools.pairwise(places))
    count, rounds = rows.most_common(1)[0] if rows else (0, 0)
    if count < 2 or rounds < _FEWEST_ROUNDS or 2 * rounds < rows.total():
        return None
    pauses = sorted(apart[place] for place in places)
    return count, pauses[len(pauses) // 2]
