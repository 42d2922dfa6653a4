"""What a capture records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from numbers import Real
from typing import Any

from stepscope.capture.report import warn
from stepscope.records import dataclass

RANGES: dict[str, tuple[float, float]] = {
    "host_tracer_level": (0, 3),
    "python_tracer_level": (0, 1),
    "device_tracer_level": (0, 1),
    "python_min_us": (0, 1e9),
    "python_max_depth": (0, 10_000),
    "stack_samples_hz": (0, 1000),
    "system_interval_ms": (0, 3_600_000),
    "max_seconds": (1, 1e9),
    "max_bytes": (1 << 20, 1 << 40),
    "max_events": (1000, 1 << 40),
}


@dataclass(frozen=True)
class ProfilerOptions:
    """What a capture records: the fields of `tf.profiler.experimental.ProfilerOptions` with the same meaning, and those
    of Stepscope's own tracers.

    When the capture starts, a number out of range is replaced by the nearest valid one, and a value that is not a
    number by the default, both with a warning.

    Attributes:
        host_tracer_level: 0 nothing, 1 annotations and the most important host events, 2 also expensive ops,
            3 everything.  With PyTorch, ops have their input shapes from 2 on, and with 3 tell which tensors these
            are; its profiler records no allocations while it watches all threads, as it does here.
        python_tracer_level: 1 records Python calls, 0 does not.  The framework's tracer does this if it can and no
            filter is set; otherwise Stepscope's does.
        device_tracer_level: 1 records what runs on accelerators, 0 does not.
        delay_ms: how long after a request workers start recording, so that they start together.  It applies only to a
            capture that is requested over the network; one that the program starts itself starts at once.
        python_min_us: Python calls shorter than this, in microseconds, are not kept.
        python_max_depth: Python calls nested deeper than this are not kept; 0 keeps all.
        stack_samples_hz: samples per second of the Python stacks of all threads; 0 for none.  They show which function
            is slow.  If they would take more than 1 % of a core, samples are taken less often, down to one per second.
        system_interval_ms: the time between two samples of CPU, memory, disk and GPUs; 0 for no samples.  If a sample
            costs more than 0.2 % of that time, samples are taken less often, down to one per second.
        max_seconds: a capture that runs longer is ended and saved, with a warning.
        max_bytes: what Stepscope's own tracers may write; beyond it the capture is ended and saved, with a warning.
        max_events: a PyTorch capture with about as many events is ended and saved, with a warning: PyTorch blocks the
            program while it collects them, 4 to 20 us each. It counts none while it records, so their number is
            estimated from its memory.
        strict: raises CaptureError for problems that are otherwise logged while training goes on.
    """

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: int | None = None
    python_min_us: float = 0.0
    python_max_depth: int = 0
    stack_samples_hz: int = 250
    system_interval_ms: int = 250
    max_seconds: float = 3600.0
    max_bytes: int = 1 << 30
    max_events: int = 1_000_000
    strict: bool = False

    @classmethod
    def from_any(cls, options: object) -> ProfilerOptions:
        """Options from None, from our own class, from a dict, or from any object with the same fields, such as
        TensorFlow's.  Ignored values are logged: a wrong option must not end a training job."""
        if options is None:
            return cls()
        if isinstance(options, cls):
            return options
        names = [f.name for f in fields(cls)]
        if isinstance(options, Mapping):
            unknown = [str(name) for name in options if name not in names]
            if unknown:
                warn(f"there is no option {', '.join(unknown)}; options: {', '.join(names)}")
            return cls(**{name: options[name] for name in names if name in options})
        given: dict[str, Any] = {name: getattr(options, name) for name in names if hasattr(options, name)}
        if not given:
            warn(f"options={options!r} has none of the fields of ProfilerOptions; the defaults are used")
        return cls(**given)

    def clamp(self) -> ProfilerOptions:
        """The same options with every number in its range; logs each number that had to be changed."""
        return replace(self, **{name: _clamp_number(name, getattr(self, name)) for name in RANGES})

    def describe(self, framework: str) -> str:
        """What it records of a program whose framework's profiler runs (empty: none), as far as it may slow it down."""
        parts = (
            (framework and self.host_tracer_level > 0, "ops"),
            (framework == "torch" and self.host_tracer_level == 2, "shapes"),
            (framework == "torch" and self.host_tracer_level > 2, "shapes and memory"),
            (self.python_tracer_level > 0, "Python calls"),
            (self.stack_samples_hz > 0, "stack samples"),
        )
        return ", ".join(what for is_wanted, what in parts if is_wanted)

    @property
    def filters_python(self) -> bool:
        """True if some Python calls are left out, which only Stepscope's own tracer can do."""
        return self.python_min_us > 0 or self.python_max_depth > 0


def _clamp_number(name: str, value: object) -> Any:
    if not isinstance(value, Real) or value != value:
        default = getattr(ProfilerOptions, name)
        warn(f"{name}={value!r} is not a number; {default} is used")
        return default
    lowest, highest = RANGES[name]
    number: Any = value
    nearest = type(number)(min(max(number, lowest), highest))
    if nearest != number:
        warn(f"{name}={number} is out of range {lowest:g} to {highest:g}; {nearest} is used")
    return nearest
