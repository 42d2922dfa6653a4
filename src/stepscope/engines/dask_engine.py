"""Dask: an existing cluster by the address of its scheduler, or one on this machine that ends with this engine."""

from __future__ import annotations

import importlib
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

from stepscope.engines import base, worker
from stepscope.engines.base import CONNECT_SECONDS, Done, EngineError, Lost, first_line, hear_greeting
from stepscope.engines.task import own_versions
from stepscope.formats.threads import usable_cores

_ADDRESS_VARIABLE = "DASK_SCHEDULER_ADDRESS"
_ANY_PORT = ":0"  # the usual one may be taken, of which Dask would warn
_GREETING, _LONGEST_GREETING = 8, 1 << 20  # bytes
_numbers = itertools.count()


class DaskEngine:
    """Tasks of Dask's distributed scheduler.

    Args:
        address: of the scheduler; if empty, that of `DASK_SCHEDULER_ADDRESS`, else a cluster of threads in this
            process.  Their tasks run in child processes all the same.
        say: takes sentences about what may take long.
    """

    name = "dask"

    def __init__(self, address: str, say: Callable[[str], None]) -> None:
        self._distributed = _import_distributed()
        self._cluster: Any = None
        address = address or os.environ.get(_ADDRESS_VARIABLE, "")
        if address:
            say(f"connecting to Dask at {address}")
            _check_scheduler(address)
        else:
            self._cluster = self._distributed.LocalCluster(
                n_workers=1, threads_per_worker=usable_cores(), processes=False, dashboard_address=_ANY_PORT
            )
        try:
            self._client = self._connect(address or self._cluster)
        except EngineError:
            if self._cluster is not None:
                self._cluster.close()
            raise

    def _connect(self, target: Any) -> Any:
        try:
            return self._distributed.Client(target, timeout=CONNECT_SECONDS, set_as_default=False)
        except Exception as error:  # each transport has its own exceptions
            raise _no_scheduler(target, first_line(error)) from error

    def slots(self) -> int:
        """The threads of all workers."""
        threads = int(sum(self._client.nthreads().values()))
        if not threads:
            self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        return max(1, threads)

    def submit(self, content: bytes) -> Any:
        """Starts a task.  Its key is new: the same bytes may have to be tried again."""
        key = f"stepscope-{os.getpid()}-{next(_numbers)}"
        return self._client.submit(worker.work, tuple(own_versions()), content, key=key, pure=False, retries=0)

    def wait(self, tickets: Sequence[Any], seconds: float) -> list[tuple[Any, Done | Lost]]:
        """Those that have ended."""
        try:
            with self._client.as_current():
                done = self._distributed.wait([*tickets], timeout=seconds, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            self._check_scheduler()
            return []
        return [(ticket, self._result(ticket)) for ticket in done]

    def _check_scheduler(self) -> None:
        if self._client.status not in ("running", "connecting"):
            raise EngineError(f"the Dask scheduler is gone ({self._client.status})", hint="start it again")

    def _result(self, ticket: Any) -> Done | Lost:
        try:
            state, content = ticket.result(timeout=CONNECT_SECONDS)
        except ImportError as error:
            raise base.not_importable("Dask", error) from error
        except Exception as error:
            return Lost(f"its Dask worker is gone ({type(error).__name__}: {first_line(error)})")
        finally:
            ticket.release()  # or the scheduler would keep the answer
        if state == worker.REFUSED:
            raise base.refused("Dask", str(content), own_versions())
        return Done(content) if state == worker.DONE else Lost(str(content))

    def cancel(self, tickets: Sequence[Any]) -> None:
        """Takes back what waits, and ends the children that are at work."""
        self._client.cancel([*tickets])
        self._client.run(worker.stop_children, on_error="ignore")

    def close(self) -> None:
        """Leaves the cluster, and ends it if it was started here."""
        self._client.close()
        if self._cluster is not None:
            worker.stop_children()
            self._cluster.close()
            worker.release_children()


def _check_scheduler(address: str) -> None:
    """Raises EngineError if no scheduler listens there.  Dask itself would try for long, and without an end where
    something else listens.

    Both ends of a plain connection begin with the length of what they say of themselves, in eight bytes.
    """
    speaks = address.partition("://")[0] in (address, "tcp")
    try:
        greeting = hear_greeting(address, _GREETING if speaks else 0)
    except OSError as error:
        silent = isinstance(error, TimeoutError)
        raise _no_scheduler(address, "the server there does not answer" if silent else first_line(error)) from error
    if speaks and greeting is not None and not 0 < int.from_bytes(greeting, "little") < _LONGEST_GREETING:
        raise _no_scheduler(address, "the server there speaks another protocol")


def _no_scheduler(address: object, reason: str) -> EngineError:
    return EngineError(
        f"no Dask scheduler answers at {address}: {reason}",
        hint="start one with: dask scheduler; and workers with: dask worker ADDRESS",
    )


def _import_distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        hint = 'pip install "stepscope[dask]"'
        raise EngineError("the engine dask needs Dask, which is not installed", code="no-engine", hint=hint) from error
