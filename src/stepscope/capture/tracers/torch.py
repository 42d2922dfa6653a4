"""Drives PyTorch's profiler, `torch.profiler`."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from time import monotonic, time_ns  # those of before the program, which may put others in their place
from types import TracebackType
from typing import Any

from stepscope.capture import report
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.other_process import ConverterProcess, UnableError
from stepscope.capture.tracers import kineto_files
from stepscope.capture.tracers.base import Artifact, Collected, Metadata, Span
from stepscope.capture.tracers.giving_way import ProfilerOwnership
from stepscope.capture.tracers.kineto_thread import without_lasting_thread
from stepscope.capture.tracers.torch_tensors import Tensors
from stepscope.errors import CaptureError

# The time limit of a conversion: a slow machine compiles the reader within a minute, and converts some MB per second.
_PATIENCE_S = 90.0
_BYTES_PER_S = 1e6
_COMPILER = "torch._inductor"
# Memory of one event until it is collected, measured with torch 2.13 on 97 to 387 thousand events of a CPU program.
_BYTES_OF_EVENT, _BYTES_WITH_SHAPES, _BYTES_WITH_STACKS = 220, 487, 155
_LONG_S = 1.0  # if ending a capture holds the program up for longer, the profile says so


class TorchTracer:
    """PyTorch's profiler.  Its trace is converted to XSpace, and also kept as it was written.

    By default PyTorch's profiler sees only the thread that starts it, and the process ends with a segmentation fault if
    another thread stops it (torch 2.13).  Neither is true if it is configured to watch all threads; then any thread may
    start and stop a capture.  With a torch that has no such configuration, `one_thread` is True.

    The process may also end with a segmentation fault, then or later, if an operation runs on another thread while the
    profiler stops (torch 2.13).  So the thread of the steps stops it between two operations.
    """

    stops_where_asked = True

    def __init__(self) -> None:
        self._torch: Any = sys.modules["torch"]
        self._native: Any = None
        self._possession = ProfilerOwnership(self._end)
        self._open_steps: list[str] = []
        self._heap_at_start: int | None = None
        self._bytes_of_event = _BYTES_OF_EVENT
        self._tensors: Tensors | None = None
        self.one_thread = _configuration(trace_only=False) is None

    @staticmethod
    def is_in_use() -> bool:
        """Always False: PyTorch leaves no sign that it has computed."""
        return False

    @staticmethod
    def is_listening() -> bool:
        """True while any PyTorch profiler records."""
        return bool(getattr(sys.modules.get("torch.autograd.profiler"), "_is_profiler_enabled", False))

    def start(self, options: ProfilerOptions) -> None:
        """Starts recording.  Raises RuntimeError if another profiler records."""
        if self.is_listening():
            raise CaptureError("a PyTorch profiler is already running", code="busy", hint="end it before this capture")
        self._tensors = Tensors() if _tells_tensors(options) else None
        self._native = self._profiler(options)
        with ExitStack() as on_error:
            on_error.callback(self._end_after_error)
            with without_lasting_thread():
                if _prepares_slowly() and self._prepare_quickly():
                    self._native.start_trace()
                else:
                    self._native.start()
            on_error.pop_all()
        self._bytes_of_event = _event_size(options)
        self._heap_at_start = heap_bytes()
        report.inform(
            "when the capture ends, PyTorch blocks the program for 4 to 20 us per event; the capture ends itself at"
            f" about {options.max_events:,} events (max_events), {options.max_events * 4e-6:.2g} s of pause or more"
        )
        if not self.one_thread:  # otherwise the program's own thread might not be allowed to end it
            self._possess()

    def events_recorded(self) -> int | None:
        """About how many events PyTorch holds, by the memory that they take: it counts them only when it stops."""
        now = heap_bytes()
        if now is None or self._heap_at_start is None:
            return None
        return max(0, now - self._heap_at_start) // self._bytes_of_event

    def _possess(self) -> None:
        """Gives way to a profiler of the program.  If that was warming up when the capture started, its preparation was
        lost, because PyTorch keeps only one; so it is prepared again."""
        home = sys.modules["torch.autograd.profiler"].profile
        prepare = getattr(home, "_prepare_trace", None)
        if prepare is not None:
            self._possession.end_before_call(home, "_prepare_trace")
            self._possession.end_before_call(home, "_start_trace", then=prepare)

    def _end(self) -> None:
        self._native.stop()

    def _end_after_error(self) -> None:
        """The process would end with a segmentation fault if a profiler were left running."""
        with suppress(Exception):  # it was not running yet
            self._native.stop()

    def _profiler(self, options: ProfilerOptions) -> Any:
        everything = options.host_tracer_level >= 3
        stacks = options.python_tracer_level > 0 and not options.filters_python
        configuration = _configuration(trace_only=not stacks and not _tells_tensors(options))
        more = {} if configuration is None else {"experimental_config": configuration}
        return self._torch.profiler.profile(
            activities=self._activities(options),
            # Sizes and types tell what the computing of a step is for.  They cost nothing while it records.
            record_shapes=_records_operands(options),
            profile_memory=everything,
            with_stack=stacks,
            **more,
        )

    def _prepare_quickly(self) -> bool:
        """Does what `prepare_trace` does, except for importing the compiler; False if this torch works differently."""
        native = self._native
        if getattr(native, "_use_cupti_monitor", False):  # it has more to prepare
            return False
        try:
            native.profiler = self._torch.autograd.profiler.profile(
                use_kineto=True,
                use_cpu=self._torch.profiler.ProfilerActivity.CPU in native.activities,
                use_device=native.use_device,
                record_shapes=native.record_shapes,
                profile_memory=native.profile_memory,
                with_stack=native.with_stack,
                experimental_config=native.experimental_config,
            )
            prepare = native.profiler._prepare_trace
        except (AttributeError, TypeError):
            native.profiler = None
            return False
        prepare()
        return True

    def _activities(self, options: ProfilerOptions) -> list[Any]:
        known = self._torch.profiler.ProfilerActivity
        host = [known.CPU] if options.host_tracer_level > 0 else []
        device = self._torch.profiler.supported_activities() - {known.CPU} if options.device_tracer_level > 0 else set()
        return host + sorted(device, key=str) or [known.CPU]

    def mute(self) -> None:
        """Operations that begin from now on are not recorded, on any thread; nothing is freed yet."""
        toggle = getattr(_autograd(), "_toggle_collection_dynamic", None)
        if toggle is not None:
            known = self._torch.profiler.ProfilerActivity
            devices = {known.CUDA, known.XPU}  # not to name them gives a warning; to name them ends their recording
            toggle(False, {known.CPU} | (devices if self._native.activities <= {known.CPU} else set()))

    def stop(self) -> TorchRecording:
        """Ends the recording."""
        events = self.events_recorded()
        begin = monotonic()
        self._possession.end()
        held_s = monotonic() - begin
        native, self._native = self._native, None
        tensors, self._tensors = self._tensors, None
        describe = None if tensors is None else partial(tensors.describe, native, events)
        return TorchRecording(native, self._possession, tuple(self._open_steps), held_s, describe)

    def discard(self) -> None:
        """Ends the recording and forgets it."""
        self.stop().close()

    def annotate(self, name: str, metadata: Metadata) -> Span:
        """A range in the profiler that records.  PyTorch keeps only its name, and recognizes a step by a special
        name."""
        step = metadata.get("step_num")
        if step is None:
            return _Range(self._range(name))
        mark = f"ProfilerStep#{step}"
        return _Step(self._range(mark), mark, self._open_steps)

    def _range(self, name: str) -> Any:
        return _Unseen(name) if _Unseen.is_supported() else self._torch.profiler.record_function(name)


def _records_operands(options: ProfilerOptions) -> bool:
    """Whether the sizes of operands are recorded.  PyTorch's profiler then refers weakly to all of them while it
    records, and `torch.utils.swap_tensors` refuses these: a program that has PyTorch swap is recorded without."""
    swaps = getattr(getattr(sys.modules.get("torch"), "__future__", None), "get_swap_module_params_on_conversion", None)
    return options.host_tracer_level >= 2 and not (swaps is not None and swaps())


def _tells_tensors(options: ProfilerOptions) -> bool:
    """Whether it is told which tensors ops take: the profiler refers to these until the recording has been written."""
    return options.host_tracer_level >= 3 and _records_operands(options)


def _event_size(options: ProfilerOptions) -> int:
    if options.python_tracer_level > 0 and not options.filters_python:
        return _BYTES_WITH_STACKS
    return _BYTES_WITH_SHAPES if _records_operands(options) else _BYTES_OF_EVENT


def _configuration(trace_only: bool) -> Any:
    """The configuration that makes a profiler watch all threads; None if this torch has none.

    Args:
        trace_only: keeps no tree of the events for Python, if this torch supports that, as only operands are read of
            it.
    """
    configuration = getattr(getattr(sys.modules.get("torch._C"), "_profiler", None), "_ExperimentalConfig", None)
    for more in ({"trace_only": True}, {}) if trace_only else ({},):
        with suppress(TypeError):
            return configuration and configuration(profile_all_threads=True, **more)
    return None


def _prepares_slowly() -> bool:
    """True if PyTorch's profiler would import the compiler, which takes one to two seconds, only to find that it makes
    no CUDA graphs.  A compiler that is not imported makes none, unless the environment says so."""
    return _COMPILER not in sys.modules and "TORCHINDUCTOR_CUDAGRAPHS" not in os.environ


class _Unseen:
    """A range that no mode of the program sees.  `record_function` goes through PyTorch's dispatcher, which shows it to
    each `TorchFunctionMode` and `TorchDispatchMode`; and it takes four times as long."""

    __slots__ = ("_handle", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._handle: object = None

    @staticmethod
    def is_supported() -> bool:
        """Whether this torch has these functions."""
        return hasattr(_autograd(), "_record_function_with_args_exit")

    def __enter__(self) -> None:
        self._handle = _autograd()._record_function_with_args_enter(self._name)

    def __exit__(self, *error: object) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            _autograd()._record_function_with_args_exit(handle)


def _autograd() -> Any:
    return getattr(sys.modules.get("torch._C"), "_autograd", None)


class _Range:
    """PyTorch's range with the method that it lacks."""

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
        """Does nothing: PyTorch takes the facts of a range only when it starts."""


class _Step(_Range):
    """A step mark, which is listed as open until it ends: PyTorch writes a range that was open when the profiler
    stopped as if it had ended then."""

    __slots__ = ("_name", "_open")

    def __init__(self, native: Any, name: str, open_steps: list[str]) -> None:
        super().__init__(native)
        self._name = name
        self._open = open_steps

    def __enter__(self) -> _Step:
        super().__enter__()
        self._open.append(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        with suppress(ValueError):  # it was ended before
            self._open.remove(self._name)
        super().__exit__(kind, error, trace)


class TorchRecording:
    """A profile that PyTorch holds in memory.

    Args:
        native: PyTorch's profiler, which has been stopped.
        possession: knows whether the program took over the profiler.
        open_steps: names of the step marks that were still open; they are left out of the profile.
        held_s: for how long PyTorch blocked all Python threads when it stopped.
        describe: what says which tensors the ops take, as JSON; None where that is not known.
    """

    def __init__(
        self,
        native: Any,
        possession: ProfilerOwnership,
        open_steps: Sequence[str] = (),
        held_s: float = 0.0,
        describe: Callable[[], bytes | None] | None = None,
    ) -> None:
        self._native = native
        self._describe = describe
        self._possession = possession
        self._open_steps = open_steps
        self._held_s = self.held_s = held_s

    def collect(self, host: str, helper: ConverterProcess) -> Collected:
        """The profile as XSpace, and as the Kineto JSON that PyTorch writes; only the latter if conversion fails."""
        trace = helper.folder / "trace.json"
        begin = monotonic()
        self._native.export_chrome_trace(str(trace))
        operands = None
        with suppress(Exception):  # without them the recording is as good for all else
            operands = self._describe and self._describe()
        self._held_s += monotonic() - begin
        self.close()
        if operands:
            kineto_files.operands_path(trace).write_bytes(operands)
        try:
            _convert(trace, host, self._open_steps, helper)
        except Exception as error:  # an error of the conversion must not lose the recording
            if not _is_whole(trace):
                raise _make_unwritten_error(trace) from error
            reason = f"the Kineto trace could not be converted: {error}"
            return Collected(
                (_trace_artifact(trace, f"{time_ns()}."),),
                CaptureError(reason, kept="the trace as PyTorch wrote it"),
            )
        artifacts = Artifact("xplane.pb", kineto_files.profile_path(trace)), _trace_artifact(trace)
        return self._possession.add_error(Collected(artifacts, notes=self._notes()))

    def _notes(self) -> tuple[str, ...]:
        if self._held_s < _LONG_S:
            return ()
        return (
            f"ending this capture held the program up for {self._held_s:.1f} s: PyTorch blocks all Python threads while"
            " it collects and writes its events; record fewer steps to shorten this",
        )

    def close(self) -> None:
        """Frees the profile, and with it PyTorch's references to the program's tensors: its objects hold one another
        until Python's collector comes."""
        with suppress(AttributeError):
            self._native.profiler.kineto_results = None
        self._native = self._describe = None


def _convert(trace: Path, host: str, open_steps: Sequence[str], helper: ConverterProcess) -> None:
    """Packs and converts a trace in a separate process, or in this one if there is no other way."""
    patience_s = _PATIENCE_S + trace.stat().st_size / _BYTES_PER_S
    words = [str(trace), host, *open_steps]
    try:
        helper.run(kineto_files.__name__, words, patience_s)
    except UnableError:
        kineto_files.main(words)


def _is_whole(trace: Path) -> bool:
    """Whether PyTorch has written all of its trace, which ends with a brace; it reports no failure."""
    path = trace if trace.exists() else kineto_files.packed_path(trace)
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(-min(16, path.stat().st_size), 2)
            return packed or file.read().rstrip().endswith(b"}")
    except OSError:
        return False


def _make_unwritten_error(trace: Path) -> CaptureError:
    return CaptureError(
        "PyTorch could not write its trace to the temporary folder",
        code="temporary-folder",
        path=trace.parent.parent,
        lost="what PyTorch recorded",
        hint="free space there, or set TMPDIR to a folder on a larger disk",
    )


def _trace_artifact(trace: Path, stamp: str = "") -> Artifact:
    """The trace as PyTorch wrote it.

    Args:
        stamp: ns since 1970 and a dot, as in PyTorch's own names.  It is for a trace that the profile beside it does
            not contain; a trace without a stamp is regarded as a copy.
    """
    packed = kineto_files.packed_path(trace)
    if packed.exists():
        return Artifact(f"{stamp}pt.trace.json.gz", packed)
    return Artifact(f"{stamp}pt.trace.json", trace)


_FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class _HeapInfo(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS.split()]


def heap_bytes() -> int | None:
    """The bytes in use; None where the C library does not say (before glibc 2.33, and on other systems)."""
    ask = _question()
    if ask is None:
        return None
    info = ask()
    return int(info.uordblks + info.hblkhd)


@cache
def _question() -> Any:
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError, TypeError):
        return None
    ask.restype = _HeapInfo
    return ask
