"""Tasks on other threads, as `concurrent.futures` has them: importing that with all it needs takes a command 10 ms."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


class Task(Generic[T]):
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
    """Some threads that do tasks in the order in which they were given.  The context ends when all of them are done."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._tasks: SimpleQueue[Task[Any] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, work: Callable[[], T]) -> Task[T]:
        """A task for the next thread that is free."""
        task = Task(work)
        self._tasks.put(task)
        if len(self._threads) < self._count:
            thread = threading.Thread(target=self._work, name="stepscope-reader", daemon=True)
            self._threads.append(thread)
            thread.start()
        return task

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
