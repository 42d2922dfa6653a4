"""The one loop for all engines: it hands out tasks, tries lost ones again, and puts the answers together."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from stepscope.analysis.registry import tool_named
from stepscope.engines.base import Done, Engine, Lost, Ticket
from stepscope.engines.folding import Fold, Piece
from stepscope.engines.task import HostOutcome, Task, TaskResult, pack, unpack_answer
from stepscope.errors import Problem
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.formats.session import HostFile

MOST_TRIES = 2
"""How often a host is tried on its own after a task with it was lost."""

HOSTS_PER_TASK = 8
"""At most; a task puts the partials of its hosts together, and a lost one costs the work on at most as many."""

TASKS_PER_SLOT = 4
"""At least, so that slots that were given small hosts help out with the rest."""

HostEnded = Callable[[str, Problem | None], None]
"""Called with a host that was analysed, or with the problem for which it is left out."""

_LOOK_SECONDS = 1.0  # between two looks whether a task has ended, if none has


def cut_tasks(runs: Sequence[Task], slots: int) -> list[Task]:
    """Tasks for runs of neighbouring hosts: enough of them to keep all slots busy to the end."""
    count = sum(len(run.files) for run in runs)
    size = max(1, min(HOSTS_PER_TASK, count // (TASKS_PER_SLOT * slots)))
    return [
        run.part(start, min(start + size, len(run.files))) for run in runs for start in range(0, len(run.files), size)
    ]


@dataclass
class Progress:
    """How far the work on many hosts is."""

    hosts: int
    nbytes: int
    done: int = 0
    failed: int = 0
    done_bytes: int = 0
    started: float = field(default_factory=time.monotonic)

    def sentence(self) -> str:
        """One line for people.

        >>> Progress(hosts=4, nbytes=0, done=3, failed=1, started=time.monotonic()).sentence()
        'analysed 3 of 4 hosts, 1 failed'
        """
        parts = [f"analysed {self.done:,} of {self.hosts:,} hosts"]
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        elapsed = time.monotonic() - self.started
        if self.done_bytes and elapsed > 0:
            rate = self.done_bytes / elapsed
            parts.append(f"{self.done_bytes / 1e6:,.0f} of {self.nbytes / 1e6:,.0f} MB, {rate / 1e6:,.1f} MB/s")
            parts.append(f"{max(0.0, self.nbytes - self.done_bytes) / rate:,.0f} s left")
        return ", ".join(parts)


class TaskSchedule:
    """Hands tasks to an engine and puts the answers together.

    Args:
        tools: names of the tools whose partials are wanted.
        progress: called with a short sentence when a task has ended.
        ended: see `HostEnded`; what it raises ends the work.

    Attributes:
        events: how many events were decoded, by host.
    """

    def __init__(
        self, tools: Sequence[str], progress: Callable[[str], None], ended: HostEnded = lambda host, problem: None
    ) -> None:
        self._ended = ended
        self.events: dict[str, int] = {}
        self._folds = {tool: Fold(tool_named(tool)) for tool in tools}
        self._report = progress
        self._waiting: deque[tuple[Task, int]] = deque()
        self._running: dict[Ticket, tuple[Task, int]] = {}
        self._problems: dict[int, Problem] = {}

    def add_known(self, place: int, host: str, partials: dict[str, Any]) -> None:
        """Adds the partials of a host that need no task."""
        self._ended(host, None)
        for tool, fold in self._folds.items():
            fold.add(place, Piece(1, [partials[tool]]))

    def add_failed(self, place: int, host: str, problem: Problem) -> None:
        """Leaves out a host for which there is no point in a task."""
        self._ended(host, problem)
        self._problems[place] = problem
        for fold in self._folds.values():
            fold.add(place, Piece(1, []))

    def partials(self) -> dict[str, list[Any]]:
        """By tool, the partials of the hosts that were analysed, condensed, in the order of the session."""
        return {tool: fold.partials for tool, fold in self._folds.items()}

    def problems(self) -> list[Problem]:
        """Of the hosts that are left out, in the order of the session."""
        return [self._problems[place] for place in sorted(self._problems)]

    def run(self, engine: Engine, tasks: Sequence[Task]) -> None:
        """Does the tasks.  A host that cannot be analysed is left out and named.

        If this is interrupted, by Ctrl-C as well, the tasks at work are ended everywhere.

        Raises:
            EngineError: the engine cannot do any task.
        """
        state = Progress(sum(len(task.files) for task in tasks), sum(task.nbytes for task in tasks))
        self._waiting.extend((task, 0) for task in tasks)
        try:
            while self._waiting or self._running:
                self._fill_slots(engine)
                for ticket, result in engine.wait([*self._running], _LOOK_SECONDS):
                    self._take(*self._running.pop(ticket), result, state)
                    self._report(state.sentence())
        except BaseException:
            engine.cancel([*self._running])
            raise

    def _fill_slots(self, engine: Engine) -> None:
        free = engine.slots() - len(self._running)
        for _ in range(min(free, len(self._waiting))):
            task, tries = self._waiting.popleft()
            self._running[engine.submit(pack(task))] = task, tries

    def _take(self, task: Task, tries: int, result: Done | Lost, state: Progress) -> None:
        """Uses the result of a task: the answer, or that it has to be tried again."""
        if isinstance(result, Lost) and len(task.files) > 1:
            # Which of its hosts did it?  What was finished of the others is in the cache.
            self._waiting.extendleft((part, 1) for part in reversed(task.split()))
            return
        if isinstance(result, Lost) and tries < MOST_TRIES:
            self._waiting.append((task, tries + 1))
            return
        answer = unpack_answer(result.content) if isinstance(result, Done) else _give_up(task, result)
        self._count(task, answer.outcomes, state)
        for tool, fold in self._folds.items():
            fold.add(task.first, Piece(len(task.files), answer.parts.get(tool, [])))

    def _count(self, task: Task, outcomes: Sequence[HostOutcome], state: Progress) -> None:
        for place, outcome in enumerate(outcomes, task.first):
            self.events[outcome.host] = outcome.events
            if outcome.problem is None:
                state.done += 1
            else:
                state.failed += 1
                self._problems[place] = outcome.problem
            self._ended(outcome.host, outcome.problem)
        state.done_bytes += task.nbytes


def _give_up(task: Task, lost: Lost) -> TaskResult:
    """The answer for a host that cost its worker again and again."""
    file: HostFile = task.files[0]
    problem = Problem(
        code="lost",
        reason=f"left out after {MOST_TRIES} tries: {lost.reason}",
        path=file.path,
        host=file.host,
        hint="look at this host alone with --host, or give it more with --memory",
    )
    return TaskResult((HostOutcome(file.host, 0, problem),), {})
