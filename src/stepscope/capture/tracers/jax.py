"""Drives JAX's profiler, `jax.profiler`.

JAX returns from a call before the call's work has run, and a loop that looks at no result is many steps ahead of it.
A recording that ended with the last call would hold the calls of its steps and none of their work, so it goes on until
that has run: on a thread of the capture's own where the loop does not wait for its profile.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.base import Metadata, Span
from stepscope.capture.tracers.exported import ExportFolder
from stepscope.capture.tracers.giving_way import Possession

_LEVELS = ("host_tracer_level", "python_tracer_level", "device_tracer_level")

LONGEST_WAIT_S = 10.0  # for what was called and has not run yet: a capture ends whatever becomes of that
_LOOK_EVERY_S = 0.002


class JaxTracer:
    """JAX's profiler.  Annotations are its own, so a capture through `jax.profiler.start_server` sees them as well."""

    one_thread = False

    def __init__(self) -> None:
        self._profiler: Any = sys.modules["jax"].profiler
        self._possession = Possession(self._profiler.stop_trace)
        self._folder: ExportFolder | None = None

    @staticmethod
    def is_in_use() -> bool:
        """True once JAX has set up a backend."""
        asked = getattr(sys.modules.get("jax._src.xla_bridge"), "backends_are_initialized", None)
        return bool(asked and asked())

    @staticmethod
    def is_listening() -> bool:
        """True while any JAX profiler session records."""
        enabled = getattr(sys.modules["jax"].profiler.TraceAnnotation, "is_enabled", None)
        return bool(enabled and enabled())

    def start(self, options: ProfilerOptions) -> None:
        """Begins to record.  Raises RuntimeError if another session records."""
        folder = ExportFolder(self._possession)
        try:
            self._profiler.start_trace(folder.path, **self._native(options))
        except BaseException:
            folder.close()
            raise
        self._folder = folder
        for home in (self._profiler, sys.modules.get("jax._src.profiler")):  # `jax.profiler.trace` knows the second
            self._possession.end_before_call(home, "start_trace")

    def _native(self, options: ProfilerOptions) -> dict[str, Any]:
        if not hasattr(self._profiler, "ProfileOptions"):
            return {}
        native = self._profiler.ProfileOptions()
        for level in _LEVELS:
            if hasattr(native, level):  # which levels there are depends on the release
                setattr(native, level, getattr(options, level))
        if options.filters_python and hasattr(native, "python_tracer_level"):
            native.python_tracer_level = 0
        return {"profiler_options": native}

    def stop(self) -> ExportFolder:
        """Ends the recording once what was called has run, or has had its time; JAX exports in the same call."""
        if not self._possession.gave_way:
            await_results(self._results())
        return self._end()

    def _results(self) -> Iterable[Any]:
        """The arrays that the program holds; to ask a JAX without a backend would set one up."""
        listed = getattr(sys.modules["jax"], "live_arrays", None)
        return listed() if listed and self.is_in_use() else ()

    def _end(self) -> ExportFolder:
        folder, self._folder = self._folder, None
        assert folder is not None, "start comes first"
        try:
            self._possession.end()
        except BaseException:
            folder.close()
            raise
        return folder

    def discard(self) -> None:
        """Ends the recording.  JAX can only export it, to a folder that goes away."""
        self._end().close()

    def annotate(self, name: str, metadata: Metadata) -> Span:
        """A range in whatever session records."""
        if "step_num" in metadata and "_r" not in metadata:
            step: Span = self._profiler.StepTraceAnnotation(name, **metadata)
            return step
        # StepTraceAnnotation sets _r itself and refuses it from the caller; an annotation with _r is the same event.
        span: Span = self._profiler.TraceAnnotation(name, **metadata)
        return span


def await_results(
    arrays: Iterable[Any], clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Waits until arrays have been computed, at most `LONGEST_WAIT_S`.  Asks them only: nothing that failed is raised
    here, and what the program deletes or donates meanwhile is waited for no longer."""
    end = clock() + LONGEST_WAIT_S
    waited_for = [weakref.ref(array) for array in arrays]
    del arrays  # to keep them alive meanwhile could fill the memory of a device
    for reference in waited_for:
        while not _is_there(reference()):
            if clock() >= end:
                return
            sleep(_LOOK_EVERY_S)


def _is_there(array: Any) -> bool:
    try:
        return array is None or bool(array.is_ready())
    except Exception:  # deleted, or of a type that does not tell
        return True
