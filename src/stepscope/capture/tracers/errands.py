"""A thread that does what others ask of it, for profilers that belong to one thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future


class Errands:
    """Does errands one after the other on a daemon thread of its own."""

    def __init__(self, name: str) -> None:
        self._asked: queue.SimpleQueue[tuple[Callable[[], object], Future[object]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def do(self, errand: Callable[[], object]) -> None:
        """Has an errand done and waits for it; raises what it raises."""
        done: Future[object] = Future()
        self._asked.put((errand, done))
        done.result()

    def end(self) -> None:
        """Lets the thread end, after what was asked before."""
        self._asked.put(None)

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            errand, done = asked
            try:
                done.set_result(errand())
            except BaseException as error:
                done.set_exception(error)
