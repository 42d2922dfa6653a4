"""Processes of this machine."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for

from stepscope.children import ChildLostError
from stepscope.engines.base import Done, Lost
from stepscope.engines.child import HostChild


class LocalEngine:
    """A child process for each slot, started with the first task that needs it."""

    name = "local"

    def __init__(self, processes: int) -> None:
        self._count = max(1, processes)
        self._threads = ThreadPoolExecutor(self._count, thread_name_prefix="stepscope-engine")
        self._idle: queue.LifoQueue[HostChild] = queue.LifoQueue()  # a child that runs already is taken first
        self._children = [HostChild() for _ in range(self._count)]
        for child in self._children:
            self._idle.put(child)

    def slots(self) -> int:
        """The number of child processes."""
        return self._count

    def submit(self, content: bytes) -> Future[Done | Lost]:
        """Gives the task to a thread, which gives it to a child that is free."""
        return self._threads.submit(self._work, content)

    def _work(self, content: bytes) -> Done | Lost:
        child = self._idle.get()
        try:
            return Done(child.do(content))
        except ChildLostError as error:
            return Lost(str(error))
        finally:
            self._idle.put(child)

    def wait(
        self, tickets: Sequence[Future[Done | Lost]], seconds: float
    ) -> list[tuple[Future[Done | Lost], Done | Lost]]:
        """Those that have ended."""
        done, _ = wait_for(tickets, timeout=seconds, return_when=FIRST_COMPLETED)
        return [(ticket, ticket.result()) for ticket in done]

    def cancel(self, tickets: Sequence[Future[Done | Lost]]) -> None:
        """Ends all children; their threads end with them."""
        for ticket in tickets:
            ticket.cancel()
        for child in self._children:
            child.close()

    def close(self) -> None:
        """Ends all children."""
        self.cancel([])
        self._threads.shutdown(cancel_futures=True)
        for child in self._children:
            child.release()
