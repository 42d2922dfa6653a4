"""Drives PyTorch's profiler, `torch.profiler`."""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.base import Artifact, Collected, Metadata, Span
from stepscope.errors import CaptureError

_FAST = 3  # gzip level: a sixth of the text for a third of the time of the default


class TorchTracer:
    """PyTorch's profiler.  What it writes is converted to XSpace, and kept beside it as it was written.

    PyTorch's profiler sees the thread that starts it, and the process ends with a segmentation fault if another thread
    stops it (torch 2.13).  Told to watch all threads it does neither, so that any thread may start and stop a capture.
    A torch that cannot be told so leaves the rule to the caller.
    """

    def __init__(self) -> None:
        self._torch: Any = sys.modules["torch"]
        self._native: Any = None
        self._configuration = _for_all_threads()
        self.one_thread = self._configuration is None

    @staticmethod
    def in_use() -> bool:
        """False: PyTorch leaves no sign of having computed."""
        return False

    @staticmethod
    def listening() -> bool:
        """True while any PyTorch profiler records."""
        return bool(getattr(sys.modules.get("torch.autograd.profiler"), "_is_profiler_enabled", False))

    def start(self, options: ProfilerOptions) -> None:
        """Begins to record.  Raises RuntimeError if another profiler records."""
        if self.listening():
            raise CaptureError("a PyTorch profiler is already running", code="busy", hint="end it before this capture")
        self._native = self._profiler(options)
        self._native.start()

    def _profiler(self, options: ProfilerOptions) -> Any:
        everything = options.host_tracer_level >= 3
        more = {} if self._configuration is None else {"experimental_config": self._configuration}
        return self._torch.profiler.profile(
            activities=self._activities(options),
            record_shapes=everything,
            profile_memory=everything,
            with_stack=options.python_tracer_level > 0 and not options.filters_python,
            **more,
        )

    def _activities(self, options: ProfilerOptions) -> list[Any]:
        known = self._torch.profiler.ProfilerActivity
        host = [known.CPU] if options.host_tracer_level > 0 else []
        device = self._torch.profiler.supported_activities() - {known.CPU} if options.device_tracer_level > 0 else set()
        return host + sorted(device, key=str) or [known.CPU]

    def stop(self) -> TorchRecording:
        """Ends the recording."""
        native, self._native = self._native, None
        native.stop()
        return TorchRecording(native)

    def discard(self) -> None:
        """Ends the recording and forgets it."""
        self.stop().close()

    def annotate(self, name: str, metadata: Metadata) -> Span:
        """A range in whatever profiler records.  PyTorch keeps its name only, and knows a step by a name of its own."""
        step = metadata.get("step_num")
        return _Range(self._torch.profiler.record_function(name if step is None else f"ProfilerStep#{step}"))


def _for_all_threads() -> Any:
    """The configuration with which a profiler watches all threads; None if this torch has none."""
    configuration = getattr(getattr(sys.modules.get("torch._C"), "_profiler", None), "_ExperimentalConfig", None)
    try:
        return configuration and configuration(profile_all_threads=True)
    except TypeError:
        return None


class _Range:
    """PyTorch's range with the one method that it lacks."""

    __slots__ = ("_native",)

    def __init__(self, native: Any) -> None:
        self._native = native

    def __enter__(self) -> _Range:
        self._native.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self._native.__exit__(kind, error, trace)

    def set_metadata(self, **metadata: object) -> None:
        """Nothing: PyTorch fixes a range's facts when it begins."""


class TorchRecording:
    """A profile that PyTorch holds in memory."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def collect(self, host: str) -> Collected:
        """The profile as XSpace, and as the Kineto JSON that PyTorch writes; that alone if it cannot be converted."""
        text = self._kineto()
        kept = Artifact("pt.trace.json.gz", gzip.compress(text, _FAST))
        try:
            return Collected((Artifact("xplane.pb", _converted(text, host)), kept))
        except Exception as error:  # a fault of the conversion must not cost the recording
            reason = f"the Kineto trace could not be converted: {error}"
            return Collected((kept,), CaptureError(reason, kept="the trace as PyTorch wrote it"))

    def _kineto(self) -> bytes:
        with tempfile.TemporaryDirectory(prefix="stepscope-") as folder:
            path = Path(folder) / "trace.json"
            self._native.export_chrome_trace(str(path))
            return path.read_bytes()

    def close(self) -> None:
        """Lets go of the profile."""
        self._native = None


def _converted(text: bytes, host: str) -> bytes:
    from stepscope.formats.kineto import read
    from stepscope.formats.xspace.writer import write

    return write(read(text, f"{host}.pt.trace.json", host))
