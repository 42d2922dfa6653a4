"""Drives JAX's profiler, `jax.profiler`.

JAX returns from a call before the call's work has run, so a loop that reads no result may be many steps ahead.  A
recording that ended with the last call would contain the calls of its steps, but not their work.  So the recording goes
on until the work has run; if the loop does not wait for the profile, a thread of the capture waits.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from stepscope.capture.frameworks import has_jax_backend
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.base import Metadata, Span
from stepscope.capture.tracers.giving_way import ExportFolder, ProfilerOwnership

_LEVELS = ("host_tracer_level", "python_tracer_level", "device_tracer_level")

LONGEST_WAIT_S = 10.0  # the most that the end of a capture waits for work that was called and has not run yet
_LOOK_EVERY_S = 0.002


class JaxTracer:
    """JAX's profiler.  Annotations are JAX's own, so that a capture by `jax.profiler.start_server` has them, too."""

    one_thread = stops_where_asked = False

    def __init__(self) -> None:
        self._profiler: Any = sys.modules["jax"].profiler
        self._possession = ProfilerOwnership(self._stop_session)
        self._folder: ExportFolder | None = None

    @staticmethod
    def is_in_use() -> bool:
        """True once JAX has set up a backend."""
        return has_jax_backend()

    @staticmethod
    def is_listening() -> bool:
        """True while any JAX profiler session records."""
        enabled = getattr(sys.modules["jax"].profiler.TraceAnnotation, "is_enabled", None)
        return bool(enabled and enabled())

    def start(self, options: ProfilerOptions) -> None:
        """Starts recording.  Raises RuntimeError if another session records."""
        folder = ExportFolder(self._possession)
        try:
            self._profiler.start_trace(folder.path, **self._native(options))
        except BaseException:
            folder.close()
            raise
        self._folder = folder
        for home in (self._profiler, sys.modules.get("jax._src.profiler")):  # `jax.profiler.trace` uses the second
            self._possession.end_before_call(home, "start_trace")

    def _native(self, options: ProfilerOptions) -> dict[str, Any]:
        if not hasattr(self._profiler, "ProfileOptions"):
            return {}
        native = self._profiler.ProfileOptions()
        for level in _LEVELS:
            if hasattr(native, level):  # the levels depend on the release
                setattr(native, level, getattr(options, level))
        if options.filters_python and hasattr(native, "python_tracer_level"):
            native.python_tracer_level = 0
        return {"profiler_options": native}

    def stop(self) -> ExportFolder:
        """Ends the recording once the called work has run, or took too long; JAX exports in the same call."""
        if not self._possession.gave_way:
            await_results(self._results())
        return self._end()

    def _results(self) -> Iterable[Any]:
        """The arrays that the program holds.  A JAX without a backend is not asked, since that would set one up."""
        listed = getattr(sys.modules["jax"], "live_arrays", None)
        return listed() if listed and self.is_in_use() else ()

    def _end(self) -> ExportFolder:
        folder = self._folder
        assert folder is not None, "start comes first"
        try:
            self._possession.end()
        except BaseException:
            folder.close()
            raise
        finally:
            self._folder = None
        return folder

    def _stop_session(self) -> None:
        """Ends JAX's session and keeps its XSpace.

        JAX's own function writes the same as text for another viewer, too, which takes four fifths of its time: seconds
        for a program with hundreds of threads.  A release that keeps its session elsewhere is asked to do so.
        """
        home = sys.modules.get("jax._src.profiler")
        state: Any = getattr(home, "_profile_state", None)
        if not (hasattr(getattr(state, "profile_session", None), "stop") and hasattr(state, "lock")):
            self._profiler.stop_trace()
            return
        with state.lock:
            try:
                content = state.profile_session.stop()
            finally:
                state.reset()
                getattr(home, "clear_metadata", lambda: None)()
        assert self._folder is not None
        self._folder.write(content)

    def discard(self) -> None:
        """Ends the recording.  JAX can only export it, so it goes to a folder that is removed."""
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
    """Waits until arrays have been computed, at most `LONGEST_WAIT_S`.  A failed computation raises nothing here.  An
    array that the program deletes or donates is not waited for any longer."""
    end = clock() + LONGEST_WAIT_S
    waited_for = [weakref.ref(array) for array in arrays]
    del arrays  # keeping them alive could fill the memory of a device
    for reference in waited_for:
        while not _is_there(reference()):
            if clock() >= end:
                return
            sleep(_LOOK_EVERY_S)


def _is_there(array: Any) -> bool:
    try:
        return array is None or bool(array.is_ready())
    except Exception:  # it is deleted, or its type cannot say
        return True
