"""The threads of gRPC's calls."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from stepscope.capture.own_threads import OwnThread


class DaemonThreads(Executor):
    """Runs each call on a thread that nobody waits for.  The interpreter's end would wait for a pool of the standard
    library, and a capture may take minutes."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Runs a call on a new thread."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        OwnThread(run, name="stepscope-call").start()
        return future
