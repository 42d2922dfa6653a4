"""The tracers, and the rules that choose among them.

The options choose Stepscope's own tracers (`PROBES`), any number of them.  At most one framework's profiler is chosen:

1. The one that the environment variable `STEPSCOPE_TRACER` names.
2. Keras' backend, if that is JAX or PyTorch.  (TensorFlow is its default and proves nothing.)
3. The framework that the program is known to compute with: JAX once it has a backend, else TensorFlow once it has run
   an op.
4. The framework that is imported: PyTorch, else TensorFlow, else JAX.
5. None: only Stepscope's own tracers record.

An import is weak evidence: TensorFlow imports JAX if both are installed, PyTorch's TensorBoard writer imports
TensorFlow, and JAX programs load their data with either.  So use comes before import, and rule 4 begins with the
framework that is least often imported by accident.  A JAX that is not used must not set up its backend, which would
take most of a GPU's memory.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.report import warn
from stepscope.capture.tracers.base import Probe, Tracer
from stepscope.errors import CaptureError
from stepscope.records import dataclass

ENVIRONMENT = "STEPSCOPE_TRACER"


@dataclass(frozen=True)
class TracerEntry:
    """A tracer as the registry knows it.

    Attributes:
        name: its name in `STEPSCOPE_TRACER`; for a framework's tracer also the module that has to be imported.
        target: `module:class`, imported when the tracer is first considered.
        needs_framework: False for a tracer that always works.
    """

    name: str
    target: str
    needs_framework: bool = True

    def is_imported(self) -> bool:
        """True if the framework is imported completely."""
        return hasattr(sys.modules.get(self.name), "profiler")

    def load(self) -> type[Tracer]:
        """The tracer's class."""
        module, _, name = self.target.partition(":")
        loaded: type[Tracer] = getattr(importlib.import_module(module), name)
        return loaded


# In the order of rule 3; in reverse, the order of rule 4.
REGISTRY: tuple[TracerEntry, ...] = (
    TracerEntry("jax", "stepscope.capture.tracers.jax:JaxTracer"),
    TracerEntry("tensorflow", "stepscope.capture.tracers.tensorflow:TensorFlowTracer"),
    TracerEntry("torch", "stepscope.capture.tracers.torch:TorchTracer"),
    TracerEntry("host", "", needs_framework=False),
)


@dataclass(frozen=True)
class ProbeEntry:
    """One of Stepscope's own tracers as the registry knows it.

    Attributes:
        what: what is lost if it does not start, as messages call it.
        target: `module:class`.
        wanted: whether a capture with these options uses it.  The second argument names the framework whose profiler
            runs; it is empty if there is none.
    """

    what: str
    target: str
    wanted: Callable[[ProfilerOptions, str], bool]

    def make(self) -> Probe:
        """A tracer for one capture."""
        module, _, name = self.target.partition(":")
        made: Probe = getattr(importlib.import_module(module), name)()
        return made


_TRACE_PYTHON = ("jax", "torch")
"""The frameworks whose profilers record Python calls.  TensorFlow's does so only in its own server."""


def _wants_python(options: ProfilerOptions, framework: str) -> bool:
    """Frameworks trace all Python calls at a lower cost than we could, but none can filter them."""
    return options.python_tracer_level > 0 and (framework not in _TRACE_PYTHON or options.filters_python)


def _wants_cupti(options: ProfilerOptions, framework: str) -> bool:
    if framework or options.device_tracer_level == 0 or ("cupti" not in sys.modules and not _uses_cuda()):
        return False
    from stepscope.capture.tracers import cupti

    return cupti.available()


def _uses_cuda() -> bool:
    """True if a library that computes on NVIDIA GPUs is imported: CUPTI is not loaded into other programs."""
    return any(name in sys.modules for name in ("cupy", "numba.cuda", "cuda", "pycuda", "cudf"))


PROBES: tuple[ProbeEntry, ...] = (
    ProbeEntry("the Python calls", "stepscope.capture.tracers.python_calls:PythonTracer", _wants_python),
    ProbeEntry(
        "the stack samples",
        "stepscope.capture.tracers.stack_samples:StackSampler",
        lambda options, _: options.stack_samples_hz > 0,
    ),
    ProbeEntry(
        "the processor time of threads",  # the sampler of stacks reads it, too
        "stepscope.capture.tracers.thread_usage:ThreadUsage",
        lambda options, _: options.stack_samples_hz == 0 and options.host_tracer_level > 0,
    ),
    ProbeEntry(
        "the worker processes",
        "stepscope.capture.workers:WorkersTracer",
        lambda options, _: options.stack_samples_hz > 0 and "multiprocessing.process" in sys.modules,
    ),
    ProbeEntry(
        "the saves of checkpoints",
        "stepscope.capture.tracers.saves:SavesTracer",
        lambda options, _: options.host_tracer_level > 0 and "orbax.checkpoint" in sys.modules,
    ),
    ProbeEntry(
        "what is compiled",
        "stepscope.capture.tracers.compiles:CompilesTracer",
        lambda options, _: options.host_tracer_level > 0 and not {"torch", "tensorflow", "jax"}.isdisjoint(sys.modules),
    ),
    ProbeEntry(
        "the lines of graphs",
        "stepscope.capture.tracers.graph_lines:GraphLines",
        lambda options, framework: options.host_tracer_level > 0 and framework == "tensorflow",
    ),
    ProbeEntry(
        "the system's counters",
        "stepscope.capture.tracers.system:SystemTracer",
        lambda options, _: options.system_interval_ms > 0,
    ),
    ProbeEntry("the work of the GPUs", "stepscope.capture.tracers.cupti:CuptiTracer", _wants_cupti),
)


def choose(options: ProfilerOptions | None = None) -> TracerEntry:
    """The tracer for a capture that starts now.

    One that asks a framework's profiler for nothing, such as stack samples alone, does not start it: PyTorch's
    complains on stderr when another thread than the one that imported it is the first to start it.

    Raises:
        CaptureError: `STEPSCOPE_TRACER` names a tracer that does not exist or whose framework is not imported.
    """
    wanted = os.environ.get(ENVIRONMENT, "")
    if wanted:
        return _find_by_name(wanted)
    if options and not (options.host_tracer_level or options.device_tracer_level or options.python_tracer_level):
        return REGISTRY[-1]
    candidates = list(find_imported())
    in_use = (entry for entry in candidates if entry.load().is_in_use())
    chosen = _choose_by_keras(candidates) or next(in_use, None) or [REGISTRY[-1], *candidates][-1]
    _warn_of_others(chosen, candidates)
    return chosen


def find_imported() -> Iterator[TracerEntry]:
    """The tracers whose framework is imported, in the registry's order."""
    return (entry for entry in REGISTRY if entry.needs_framework and entry.is_imported())


def _find_by_name(wanted: str) -> TracerEntry:
    entry = next((entry for entry in REGISTRY if entry.name == wanted), None)
    if entry is None:
        names = ", ".join(entry.name for entry in REGISTRY)
        raise CaptureError(
            f"{ENVIRONMENT}={wanted} does not name a tracer", code="no-tracer", hint=f"choose one of: {names}"
        )
    if entry.needs_framework and not entry.is_imported():
        raise CaptureError(
            f"{ENVIRONMENT}={wanted} is set and {wanted} is not imported",
            code="no-tracer",
            hint=f"import {wanted} before the capture starts, or unset {ENVIRONMENT}",
        )
    return entry


def _choose_by_keras(candidates: list[TracerEntry]) -> TracerEntry | None:
    backend = getattr(getattr(sys.modules.get("keras"), "config", None), "backend", None)
    name = backend() if backend else "tensorflow"
    return next((entry for entry in candidates if entry.name == name != "tensorflow"), None)


def _warn_of_others(chosen: TracerEntry, candidates: list[TracerEntry]) -> None:
    others = [entry.name for entry in candidates if entry is not chosen]
    if "jax" in others and not REGISTRY[0].load().is_in_use():
        others.remove("jax")  # TensorFlow has imported it
    if others:
        warn(f"{chosen.name} is profiled, {' and '.join(others)} is imported too; set {ENVIRONMENT} to choose another")
