"""What a capture records."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from stepscope.capture.report import warn

HIGHEST_LEVEL = {"host_tracer_level": 3, "python_tracer_level": 1, "device_tracer_level": 1}


@dataclass(frozen=True)
class ProfilerOptions:
    """What a capture records: the fields of `tf.profiler.experimental.ProfilerOptions` with the same meaning, and one
    more.

    A level out of range is moved to the nearest one when the capture starts, with a warning.

    Attributes:
        host_tracer_level: 0 nothing, 1 annotations and the most important host events, 2 also expensive ops,
            3 everything; with PyTorch, 3 adds input shapes and memory events.
        python_tracer_level: 1 records Python calls, 0 does not.  Stepscope's own tracer has none yet.
        device_tracer_level: 1 records what runs on accelerators, 0 does not.
        delay_ms: how long after a request workers start recording, so that they start together.  Only a capture that
            is asked for over the network waits; one that the program starts itself begins at once.
        strict: raise CaptureError where otherwise the problem is logged and training goes on.
    """

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: int | None = None
    strict: bool = False

    @classmethod
    def of(cls, options: object) -> ProfilerOptions:
        """Options from None, from our own class, or from any object with the same fields, such as TensorFlow's."""
        if options is None:
            return cls()
        if isinstance(options, cls):
            return options
        given: dict[str, Any] = {f.name: getattr(options, f.name) for f in fields(cls) if hasattr(options, f.name)}
        return cls(**given)

    def in_range(self) -> ProfilerOptions:
        """The same options with every level moved into its range; tells of each that had to be moved."""
        moved: dict[str, Any] = {}
        for name, highest in HIGHEST_LEVEL.items():
            level = getattr(self, name)
            nearest = min(max(level, 0), highest)
            if nearest != level:
                warn(f"{name}={level} is out of range 0 to {highest}; {nearest} is used")
                moved[name] = nearest
        return replace(self, **moved) if moved else self
