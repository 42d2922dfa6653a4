"""Runs work that would hold up the training in a separate process, see `stepscope.children`.

Python runs one thread at a time, so a long conversion on a separate thread would interrupt the training again and
again, and threads that compute would interrupt the conversion.  A separate process does neither.  It is a bare Python,
which captures nothing, with a low priority.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import closing, suppress
from importlib import import_module
from pathlib import Path

from stepscope.capture.orphans import HiddenChild
from stepscope.capture.scratch import SWEEP, ScratchFolder
from stepscope.children import ChildLostError, End, Parent
from stepscope.kernels.stacks import current_frames

_NICE = 5  # a third of the CPU time of a training thread: the training goes first, and the profile is still made
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}
_MANY_THREADS = 4
"""So many threads of Python take from the conversion of a small capture (0.1 s) as much time as a process needs to
start (0.3 s), if all of them compute."""


class UnableError(Exception):
    """No process can be started, or its Python lacks a module: the work has to be done in this process."""


class FailedError(Exception):
    """The process ended without a result, or was ended because it took too long."""


class ConverterProcess:
    """A process for the work of one capture, started when it is first needed, and a folder for its files.

    Args:
        is_wanted: whether short work goes there, too; None where threads that may compute would hold the work up.
    """

    def __init__(self, is_wanted: bool | None = None) -> None:
        self._is_wanted = is_wanted
        self._child = HiddenChild(__name__, is_bare=True)
        self._folder: ScratchFolder | None = None
        self._has_run = False

    @property
    def folder(self) -> Path:
        """A temporary folder, which `close` removes."""
        if self._folder is None:
            self._folder = ScratchFolder()
        return Path(self._folder.path)

    @property
    def is_wanted(self) -> bool:
        """Whether short work goes there, too; it does if the process runs already."""
        is_busy = len(current_frames()) > _MANY_THREADS
        return self._child.is_running or (is_busy if self._is_wanted is None else self._is_wanted)

    def run(self, module: str, words: Sequence[str], patience_s: float, content: bytes = b"") -> None:
        """Calls `main(words)` of a module there, with the content as a second argument if there is any, and waits.

        Args:
            patience_s: the process is ended after this many seconds.

        Raises:
            UnableError: the work has to be done in this process.
            FailedError: it was tried and failed.
        """
        self._has_run = True
        try:
            self._child.start(_ONE_THREAD)
            answer = self._child.ask(json.dumps([module, *words]).encode(), b"\0", content, seconds=patience_s)
        except ChildLostError as error:
            raise (UnableError if error.end is End.UNABLE else FailedError)(str(error)) from error
        kind, _, reason = answer.decode().partition(" ")
        if kind != _DONE:
            raise (UnableError if kind == _UNABLE else FailedError)(reason)

    def close(self) -> None:
        """Ends the process and removes the folder."""
        self._child.kill()
        self._child.release()
        if self._folder is not None:
            SWEEP.is_due &= not self._has_run  # the process has done it
            self._folder.remove()


def run(module: str, words: Sequence[str], patience_s: float) -> None:
    """As `ConverterProcess.run`, in a process for this alone."""
    with closing(ConverterProcess()) as helper:
        helper.run(module, words, patience_s)


# ---- inside the process ----------------------------------------------------------------------------------------------

_DONE, _UNABLE, _FAILED = "done", "unable", "failed"


def main() -> None:
    """Does work until the process that asks is gone."""
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(_NICE)
    parent = Parent()
    SWEEP.run_once()
    while True:
        parent.send(_do(parent.receive()).encode())


def _do(message: bytes) -> str:
    head, _, content = message.partition(b"\0")
    module, *words = json.loads(head)
    try:
        import_module(module).main(words, *([content] if content else []))
    except ImportError as error:
        return f"{_UNABLE} {error}"
    except Exception as error:
        return f"{_FAILED} {type(error).__name__}: {error}"
    return _DONE
