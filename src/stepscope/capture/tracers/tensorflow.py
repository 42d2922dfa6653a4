"""Drives TensorFlow's profiler, `tf.profiler.experimental`."""

from __future__ import annotations

import sys
from typing import Any

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.base import Metadata, Span
from stepscope.capture.tracers.giving_way import ExportFolder, ProfilerOwnership


class TensorFlowTracer:
    """TensorFlow's profiler.  Annotations are TensorFlow's own, so that a capture by TensorBoard has them, too."""

    one_thread = stops_where_asked = False

    def __init__(self) -> None:
        self._profiler: Any = sys.modules["tensorflow"].profiler.experimental
        self._possession = ProfilerOwnership(lambda: self._profiler.stop(save=self._saves))
        self._saves = True
        self._folder: ExportFolder | None = None

    @staticmethod
    def is_in_use() -> bool:
        """True once TensorFlow has run an op eagerly or built a function, which sets up its context."""
        context = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
        return bool(getattr(context, "_initialized", False))

    @staticmethod
    def is_listening() -> bool:
        """True while any TensorFlow profiler session records."""
        enabled = getattr(sys.modules.get("tensorflow.python.profiler.trace"), "enabled", None)
        return bool(enabled and enabled())

    def start(self, options: ProfilerOptions) -> None:
        """Starts recording.  Raises AlreadyExistsError of TensorFlow if another session records."""
        native = self._profiler.ProfilerOptions(
            host_tracer_level=options.host_tracer_level,
            python_tracer_level=0,  # Stepscope's own tracer records the calls: this one does so only in its own server
            device_tracer_level=options.device_tracer_level,
            delay_ms=options.delay_ms,
        )
        folder = ExportFolder(self._possession)
        try:
            self._profiler.start(folder.path, native)
        except BaseException:
            folder.close()
            raise
        self._folder = folder
        # `Profile` and TensorFlow's older interface use the second.
        for home in (self._profiler, sys.modules.get("tensorflow.python.profiler.profiler_v2")):
            self._possession.end_before_call(home, "start")

    def stop(self) -> ExportFolder:
        """Ends the recording; TensorFlow exports in the same call."""
        folder = self._take_folder()
        try:
            self._possession.end()
        except BaseException:
            folder.close()
            raise
        return folder

    def discard(self) -> None:
        """Ends the recording without exporting it."""
        self._saves = False
        try:
            self._possession.end()
        finally:
            self._take_folder().close()

    def annotate(self, name: str, metadata: Metadata) -> Span:
        """A range in the session that records."""
        span: Span = self._profiler.Trace(name, **metadata)
        return span

    def _take_folder(self) -> ExportFolder:
        folder, self._folder = self._folder, None
        assert folder is not None, "start comes first"
        return folder
