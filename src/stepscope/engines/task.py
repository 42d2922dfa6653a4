"""Some hosts as one task, and its answer: all that travels between processes.

A task and its answer are pickled here, in one place.  What a worker is called with is two plain values, the versions
and the packed task, so that a worker of another version can refuse the task before it unpacks anything.
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from typing import NamedTuple

from stepscope.cache import CacheOptions
from stepscope.engines.host_work import KnownFile
from stepscope.errors import Problem
from stepscope.formats.session import HostFile
from stepscope.records import dataclass


class Versions(NamedTuple):
    """What must be equal on both ends: the versions of Stepscope and of Python, the latter without its patch."""

    stepscope: str
    python: str

    def __str__(self) -> str:
        return f"Stepscope {self.stepscope} on Python {self.python}"


def own_versions() -> Versions:
    """Those of this process."""
    from stepscope import __version__

    return Versions(__version__, f"{sys.version_info.major}.{sys.version_info.minor}")


@dataclass(frozen=True)
class Task:
    """Some hosts to analyse, one after the other, in one process.

    Attributes:
        first: the place of the first host in the session; the others follow it.
        files, known: each host's file, and what is known of it.
        tools: names of the tools whose partials are wanted.
        within_steps: only from the first step to the last.
        rows: the places of the chosen steps of each host; None for no choice.
        cache: where partials are kept.
        machine: the machine of the process that asks; its cache folder means something there.
        memory_bytes: what the process may take; None to let its machine decide.
        seconds: how long each host may take.
    """

    first: int
    files: tuple[HostFile, ...]
    known: tuple[KnownFile, ...]
    tools: tuple[str, ...]
    within_steps: bool
    rows: tuple[tuple[int, ...], ...] | None
    cache: CacheOptions
    machine: str
    memory_bytes: int | None
    seconds: float

    @property
    def nbytes(self) -> int:
        """The bytes of all its files, as far as their stores say."""
        return sum(file.size or 0 for file in self.files)

    def split(self) -> list[Task]:
        """A task for each of its hosts."""
        return [self.part(at, at + 1) for at in range(len(self.files))]

    def part(self, start: int, stop: int) -> Task:
        """The task of some of its hosts."""
        return replace(
            self,
            first=self.first + start,
            files=self.files[start:stop],
            known=self.known[start:stop],
            rows=None if self.rows is None else self.rows[start:stop],
        )


@dataclass(frozen=True)
class HostOutcome:
    """How the work on one host ended; without a problem, its partials are in the answer."""

    host: str
    events: int
    problem: Problem | None = None


@dataclass(frozen=True)
class TaskResult:
    """What became of a task.

    Attributes:
        outcomes: one for each of its hosts, in their order.
        parts: by tool, the condensed partials of the hosts without a problem, as msgpack.
    """

    outcomes: tuple[HostOutcome, ...]
    parts: dict[str, bytes]


def pack(value: Task | TaskResult) -> bytes:
    """A task or an answer as bytes."""
    return pickle.dumps(value, protocol=5)


def unpack_task(content: bytes) -> Task:
    """A task from its bytes."""
    task = pickle.loads(content)
    assert isinstance(task, Task)
    return task


def unpack_answer(content: bytes) -> TaskResult:
    """An answer from its bytes."""
    answer = pickle.loads(content)
    assert isinstance(answer, TaskResult)
    return answer
