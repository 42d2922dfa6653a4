"""Gives way when the program starts its framework's profiler itself while a capture drives it.

A process has one profiler.  TensorFlow and JAX would refuse the program's own call with an exception, which may end the
training.  PyTorch would give everything to the first one that stops, and crash on the second.  So the capture gives
way: its recording ends there, and the program gets the profiler as if nothing else had used it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepscope.capture.other_process import ConverterProcess
from stepscope.capture.patches import Observer, Undo, observe_attribute
from stepscope.capture.scratch import ScratchFolder
from stepscope.capture.tracers.base import Artifact, Collected
from stepscope.errors import CaptureError


class ProfilerOwnership:
    """The framework's profiler, as long as a capture drives it.

    Args:
        end: ends its recording; called once.
    """

    def __init__(self, end: Callable[[], object]) -> None:
        self._end = end
        self._lock = threading.RLock()
        self._has_ended = False
        self._failure: Exception | None = None
        self._undo: list[Undo] = []
        self.gave_way = False

    def end_before_call(self, home: Any, name: str, then: Callable[..., object] = lambda *_, **__: None) -> None:
        """Ends the recording before any call of a function.

        Args:
            home: the module or class that holds the function.
            name: its name there.
            then: called next, with the same arguments by position, if this has ended the recording.
        """
        if hasattr(home, name):  # another release of the framework may have none
            self._undo.append(observe_attribute(home, name, _Starts(self._give_way, then)))

    def end(self) -> None:
        """Ends the recording, unless it has given way.

        Raises:
            Exception: what the framework raised when the recording ended, now or then.
        """
        for undo in self._undo:
            with suppress(AttributeError):
                undo()
        with self._lock:
            if not self._has_ended:
                self._has_ended = True
                self._end()
        if self._failure is not None:
            raise self._failure

    def _give_way(self) -> bool:
        with self._lock:
            if self._has_ended:
                return False
            self._has_ended = self.gave_way = True
            try:
                self._end()
            except Exception as error:  # this must not reach the program
                self._failure = error
            return True

    def add_error(self, collected: Collected) -> Collected:
        """What was collected, with an error that says what is missing."""
        if not self.gave_way or collected.error is not None:
            return collected
        reason = "the program started its framework's profiler itself, which ended that of the capture"
        return replace(
            collected,
            error=CaptureError(
                reason, code="gave-way", lost="what the framework did after that", hint="use one of the two"
            ),
        )


class _Starts(Observer):
    """Sees the calls by which a program starts the profiler."""

    def __init__(self, give_way: Callable[[], bool], then: Callable[..., object]) -> None:
        self._give_way, self._then = give_way, then

    def before(self, start: object, args: tuple[Any, ...]) -> None:
        """The program starts it."""
        if self._give_way():
            self._then(*args)


class ExportFolder:
    """A temporary folder, outside the logdir, that a profiler exports to.  In the logdir, two workers might overwrite
    each other's files, and a folder that cannot be written would end the program."""

    def __init__(self, possession: ProfilerOwnership) -> None:
        self._possession = possession
        self._folder = ScratchFolder()
        self.path = self._folder.path

    def write(self, content: bytes) -> None:
        """Stores an XSpace that a profiler has handed over, where one that exports would have put it."""
        folder = Path(self.path) / "plugins" / "profile" / "run"
        folder.mkdir(parents=True)
        (folder / "host.xplane.pb").write_bytes(content)

    def collect(self, host: str, helper: ConverterProcess) -> Collected:
        """The XSpace file that was exported.  Raises CaptureError if there is none."""
        found = sorted(Path(self.path).glob("plugins/profile/*/*.xplane.pb"))
        if not found:
            raise CaptureError(
                "the framework's profiler wrote no profile",
                code="nothing-recorded",
                path=self.path,
                hint="look for its own message above; another profiler may have been running",
            )
        return self._possession.add_error(Collected((Artifact("xplane.pb", found[-1]),)))

    def close(self) -> None:
        """Removes the folder."""
        self._folder.remove()
