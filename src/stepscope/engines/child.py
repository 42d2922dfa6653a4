"""The process in which the hosts of a task are analysed, and how it is asked.

Work is done in such a process even on a cluster: see `stepscope.children`.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, NoReturn

from stepscope.children import Child, Parent

if TYPE_CHECKING:
    from stepscope.cache import CacheOptions
    from stepscope.engines.task import HostOutcome, Task, TaskResult
    from stepscope.errors import Problem
    from stepscope.formats.session import HostFile

_MEMORY_VARIABLE = "STEPSCOPE_CHILD_MEMORY"  # bytes
_BRIEFLY_MORE = 128 << 20  # bytes: what a process writes to before large columns leave it for the disk


class HostChild(Child):
    """A child process for tasks."""

    def __init__(self) -> None:
        super().__init__("stepscope.engines.child")

    def do(self, content: bytes) -> bytes:
        """The answer to a packed task, within the limits of the task.  Raises ChildLostError."""
        from stepscope.engines.budget import default_budget, memory_of
        from stepscope.engines.task import unpack_task
        from stepscope.formats.threads import usable_cores

        task = unpack_task(content)
        memory = task.memory_bytes or default_budget() // usable_cores()
        self.start({_MEMORY_VARIABLE: str(memory)})
        spills = any(memory_of(file) > memory for file in task.files)
        most = memory + max(memory // 4, _BRIEFLY_MORE) if spills else memory
        return self.ask(content, seconds=task.seconds * len(task.files), memory_bytes=most)


# ---- inside the process ----------------------------------------------------------------------------------------------


def main() -> NoReturn:
    """Does tasks until the process that asks is gone."""
    from stepscope.engines.spilling import allow
    from stepscope.kernels import memory

    allow()
    memory.prefer_large_heap()
    parent = Parent()
    while True:
        parent.send(answer_task(parent.receive()))


def answer_task(content: bytes) -> bytes:
    """The packed answer to a packed task."""
    from stepscope.engines.task import pack, unpack_task

    return pack(do_task(unpack_task(content)))


def do_task(task: Task) -> TaskResult:
    """Analyses the hosts of a task.  A host that fails has a problem in its outcome; nothing is raised."""
    from stepscope.analysis.registry import tool_named
    from stepscope.engines.host_work import encode_partial
    from stepscope.engines.task import TaskResult

    hosts = _Hosts(task)
    outcomes = tuple(hosts.analyse(at) for at in range(len(task.files)))
    parts = {name: encode_partial(tool_named(name).combine_hosts(found)) for name, found in hosts.partials.items()}
    return TaskResult(outcomes, parts)


class _Hosts:
    """The hosts of a task, and the partials that were computed so far by tool."""

    def __init__(self, task: Task) -> None:
        from stepscope.cache import Cache
        from stepscope.engines.host_work import HostWork
        from stepscope.shelf import TraceShelf

        known = {file.host: known for file, known in zip(task.files, task.known, strict=True)}
        self._task = task
        memory = int(os.environ[_MEMORY_VARIABLE]) if _MEMORY_VARIABLE in os.environ else None
        self._work = HostWork(Cache(_cache_here(task)), TraceShelf(), lambda _: None, known, memory)
        self.partials: dict[str, list[object]] = {tool: [] for tool in task.tools}

    def analyse(self, at: int) -> HostOutcome:
        """Adds the partials of one host, all or none of them."""
        from stepscope.engines.task import HostOutcome
        from stepscope.errors import InputError

        file, problem = self._task.files[at], None
        try:
            found = self._partials_of(at)
            for tool, partial in found.items():
                self.partials[tool].append(partial)
        except InputError as error:
            problem = error.problem
        except MemoryError:
            problem = _make_problem("memory", "there is not enough memory to analyse it", file)
        except Exception as error:  # a defect costs one host and not all of them
            problem = _make_problem("internal", f"{type(error).__name__}: {error}; this is a bug in Stepscope", file)
        return HostOutcome(file.host, self._work.events_read.get(file.host, 0), problem)

    def _partials_of(self, at: int) -> dict[str, object]:
        from stepscope.analysis.registry import tool_named

        task, file = self._task, self._task.files[at]
        if task.rows is not None:
            rows = task.rows[at]
            return {name: self._work.partial_of_steps(tool_named(name), file, rows) for name in task.tools}
        return {name: self._work.partial(tool_named(name), file, task.within_steps) for name in task.tools}


def _make_problem(code: str, reason: str, file: HostFile) -> Problem:
    from stepscope.errors import Problem

    return Problem(code=code, reason=reason, path=file.path, host=file.host)


def _cache_here(task: Task) -> CacheOptions:
    """The cache of a task on this machine: a folder on another machine's disk means nothing here."""
    from stepscope.cache import CacheOptions

    folder = task.cache.folder
    if folder is None or task.machine == socket.gethostname() or folder.is_dir():
        return task.cache
    return CacheOptions.from_environment()
