"""Tasks on other threads, as `concurrent.futures` has them: importing that with all it needs takes a command 10 ms."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")

MOST_THREADS = 8
_WORTH_A_THREAD = 100_000  # events


def usable_cores() -> int:
    """The cores that this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return count or 1


class ThreadWork(Generic[T]):
    """Work that a thread does some time."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._values: list[T] = []
        self._error: BaseException | None = None
        self._unfinished = threading.Lock()
        self._unfinished.acquire()

    def run(self) -> None:
        """Does the work."""
        work, self._work = self._work, None
        try:
            if work is not None:
                self._values.append(work())
        except BaseException as error:
            self._error = error
        finally:
            self._unfinished.release()

    def result(self) -> T:
        """What came of it, once it is done; raises what the work raised."""
        with self._unfinished:
            if self._error is not None:
                raise self._error
            return self._values[0]


class Workers:
    """Some threads that do tasks in the order in which they were given.  The context ends when all of them are done.

    Where the system gives no thread, such as under a limit of memory, who submits a task does it.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._tasks: SimpleQueue[ThreadWork[Any] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, work: Callable[[], T]) -> ThreadWork[T]:
        """A task for the next thread that is free."""
        task = ThreadWork(work)
        if len(self._threads) < self._count:
            self._start_thread()
        if self._threads:
            self._tasks.put(task)
        else:
            task.run()
        return task

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name="stepscope-reader", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return
        self._threads.append(thread)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task.run()
            del task  # with what came of it, while the thread waits for the next one

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()


def run_in_parts(count: int, work: Callable[[int, int], None]) -> None:
    """Calls `work(first, last)` for runs that together cover `count` events, on several threads if there are many."""
    threads = min(usable_cores(), MOST_THREADS, max(1, count // _WORTH_A_THREAD))
    bounds = [count * part // threads for part in range(threads + 1)]
    if threads == 1:
        work(0, count)
        return
    with Workers(threads) as workers:
        tasks = [workers.submit(partial(work, first, last)) for first, last in pairwise(bounds)]
        for task in tasks:
            task.result()
