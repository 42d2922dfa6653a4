"""What to capture of a program without profiling code, as set by the environment or the command line."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import field, replace

from stepscope.capture.files import resolve_logdir
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.report import warn
from stepscope.records import dataclass

LOGDIR, WATCH, PROVE = "STEPSCOPE_LOGDIR", "STEPSCOPE_WATCH", "STEPSCOPE_PROVE"
_OFF = ("", "0", "off", "no", "false")


@dataclass(frozen=True)
class Settings:
    """What is captured, and when.

    Attributes:
        logdir: as for `stepscope.start`.
        steps: how many steps to capture; 0 waits for the signal.
        least_seconds: the least that they take together: more steps are captured if they are short, and fewer if they
            hold very many events; 0 for exactly as many.  A rank always captures exactly as many: one that goes on
            would wait for others that stand still, and record that.
        skip: how many steps to skip before: they compile and warm up.
        seconds: how long to capture if no step is found.
        patience: how many seconds to wait for steps, once a framework is imported, before a time window is captured;
            three times as many where the program ends with the capture.
        stop_after: ends the program once the capture is saved.
        options: as for `stepscope.start`.
        watch: options of a continuous watch, as text; empty for none.
        prove: what is to be proved after the capture, as text; empty for nothing.
    """

    logdir: str
    steps: int = 10
    skip: int = 5
    seconds: float = 5.0
    patience: float = 10.0
    stop_after: bool = False
    options: ProfilerOptions = field(default_factory=ProfilerOptions)
    watch: str = ""
    prove: str = ""
    least_seconds: float = 0.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings | None:
        """The settings in the environment; None if it names no logdir.  An invalid value is logged and ignored."""
        logdir = environment.get(LOGDIR, "")
        if not logdir:
            return None
        given = {name: _read_number(environment, variable, kind) for name, (variable, kind) in _NUMBERS.items()}
        watch = environment.get(WATCH, "").strip()
        watch = "" if watch.lower() in _OFF else watch
        if watch and given["steps"] is None:
            given["steps"] = 0  # it captures by itself
        levels = {name: _read_number(environment, f"STEPSCOPE_{name.upper()}", int) for name in _LEVELS}
        return cls(
            logdir,
            **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
            watch=watch,
            prove=environment.get(PROVE, ""),
            stop_after=environment.get("STEPSCOPE_STOP_AFTER", "") not in ("", "0"),
            options=replace(
                ProfilerOptions(),
                **{name: value for name, value in levels.items() if value is not None},  # type: ignore[arg-type]
            ),
        )

    def keep_running(self) -> Settings:
        """The same settings without `stop_after`: the program is not ended, or not a second time."""
        return replace(self, stop_after=False)

    def derive_for_child(self) -> Settings:
        """The settings for a process that the program has started.  Only steps are captured, because most such
        processes only load data."""
        return replace(self, patience=math.inf)

    def to_environment(self) -> dict[str, str]:
        """The settings as environment variables would say it, for another process."""
        asked = {LOGDIR: resolve_logdir(self.logdir), "STEPSCOPE_STOP_AFTER": str(int(self.stop_after))}
        asked |= {WATCH: self.watch} if self.watch else {}
        asked |= {PROVE: self.prove} if self.prove else {}
        asked |= {variable: str(getattr(self, name)) for name, (variable, _) in _NUMBERS.items()}
        asked |= {f"STEPSCOPE_{name.upper()}": str(getattr(self.options, name)) for name in _LEVELS}
        return asked


_NUMBERS: dict[str, tuple[str, type[int] | type[float]]] = {
    "steps": ("STEPSCOPE_STEPS", int),
    "skip": ("STEPSCOPE_SKIP", int),
    "seconds": ("STEPSCOPE_SECONDS", float),
    "patience": ("STEPSCOPE_PATIENCE", float),
    "least_seconds": ("STEPSCOPE_LEAST_SECONDS", float),
}
_LEVELS = ("host_tracer_level", "python_tracer_level", "device_tracer_level", "stack_samples_hz")


def _read_number(environment: Mapping[str, str], variable: str, kind: type[int] | type[float]) -> float | None:
    text = environment.get(variable, "")
    if not text:
        return None
    try:
        number = kind(text)
    except ValueError:
        number = -1
    if not number >= 0:  # also refuses "nan", which no timer takes
        warn(f"{variable}={text} is not a number of at least 0; it is ignored")
        return None
    return number
