"""What `stepscope.watch` keeps, when, and how much it may cost."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from stepscope.capture.report import warn
from stepscope.errors import UsageError
from stepscope.records import dataclass

WATCH_VARIABLE = "STEPSCOPE_WATCH"

_SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}
_BYTES = {
    "": 1.0,
    "b": 1.0,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "tb": 1e12,
    "kib": 2.0**10,
    "mib": 2.0**20,
    "gib": 2.0**30,
}
_AMOUNT = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([A-Za-z]*)\s*")
_OFF = frozenset({"", "0", "off", "no", "false"})
_ON = frozenset({"1", "on", "yes", "true"})


@dataclass(frozen=True)
class WatchOptions:
    """What a watch keeps, when, and how much it may cost.

    Times are seconds or texts such as "30s", "5min" and "2h"; sizes are bytes or texts such as "2GB".

    Attributes:
        ring: how much of the past is kept all the time, by Stepscope's own tracers.
        budget_percent: how much longer the job may take.  The windows of the framework's profiler, the stack samples,
            the system's counters and annotations are made less often, or left out, if they cost more than this.
        slow_factor: a step is slow if it takes this many times the median of the steps before it.
        slow_least: and at least this much longer than that median.
        stall: no step for this long is a stall; 0 switches this trigger off.
        every: keeps a capture at this interval; 0 for none.
        at: keeps a capture at these times of the day, local time, such as "03:00,15:30"; empty for none.
        window_steps: how many steps the framework's profiler records after a trigger, and in each regular window; 0
            never uses it.
        window_every: the shortest time between two regular windows; 0 for windows after triggers only.
        min_interval: after a kept capture, triggers of this job are only listed for this long.
        quota: what the captures of watches may occupy in the logdir; the oldest are removed.
        ring_bytes: what the ring may occupy.
        samples_hz: how often the Python stacks are sampled, at most.
        series: the length of a row of the time series; 0 writes none.
        metrics_port: serves Prometheus' metrics on this port; None for none.
        metrics_host: on this address.
        opentelemetry: sends metrics by OpenTelemetry's own exporter, to where its own variables say.
        tensorboard: writes scalars for TensorBoard beside the profiles.
        memory_history: lets PyTorch keep the last allocations of its GPUs, for the snapshot at out-of-memory.
    """

    ring: float = 30.0
    budget_percent: float = 1.0
    slow_factor: float = 3.0
    slow_least: float = 0.02
    stall: float = 300.0
    every: float = 0.0
    at: str = ""
    window_steps: int = 5
    window_every: float = 600.0
    min_interval: float = 60.0
    quota: float = 2e9
    ring_bytes: float = 64e6
    samples_hz: float = 10.0
    series: float = 10.0
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    opentelemetry: bool = False
    tensorboard: bool = False
    memory_history: bool = True

    @classmethod
    def from_mapping(cls, given: Mapping[str, object]) -> WatchOptions:
        """Options from names and values, each a number or a text with a unit.

        Raises:
            UsageError: an unknown name, or a value that is no such amount.
        """
        known = {field.name for field in fields(cls)}
        for name in given:
            if name not in known:
                raise UsageError(f"there is no option {name!r} of a watch", hint=f"options: {', '.join(sorted(known))}")
        values: dict[str, Any] = {name: _parse_value(name, value) for name, value in given.items()}
        return cls(**values)

    @classmethod
    def from_text(cls, text: str) -> WatchOptions:
        """Options from a text such as `ring=60s,slow_factor=5`, or `1` for the defaults.

        Raises:
            UsageError: as `from_mapping`.
        """
        return cls.from_mapping(parse_pairs(text))


def parse_pairs(text: str) -> dict[str, object]:
    """The names and values of `a=1,b=2`; a value may hold further commas, as that of `at` does.

    Raises:
        UsageError: it has another form.

    >>> parse_pairs("ring=60s,at=03:00,15:30"), parse_pairs("1")
    ({'ring': '60s', 'at': '03:00,15:30'}, {})
    """
    if text.strip().lower() in _ON:
        return {}
    pairs: dict[str, object] = {}
    name = ""
    for piece in text.split(","):
        head, mark, value = piece.partition("=")
        if mark:
            name = head.strip()
            pairs[name] = value.strip()
        elif name:
            pairs[name] = f"{pairs[name]},{piece.strip()}"
        else:
            raise UsageError(f"{text!r} does not name options of a watch", hint="write NAME=VALUE,NAME=VALUE, or 1")
    return pairs


def options_from_environment(environment: Mapping[str, str] = os.environ) -> WatchOptions:
    """The options that the environment sets.  A wrong one is logged, and the defaults are used."""
    try:
        return WatchOptions.from_text(environment.get(WATCH_VARIABLE, "1"))
    except UsageError as error:
        warn(f"{WATCH_VARIABLE}: {error}; the defaults are used")
        return WatchOptions()


def _parse_value(name: str, value: object) -> object:
    default = getattr(WatchOptions, name)
    if name == "at":
        parse_times(str(value))
        return str(value)
    if name == "metrics_host":
        return str(value)
    if isinstance(default, bool):
        return _parse_flag(name, value)
    if name == "metrics_port" and value is None:
        return None
    units = _BYTES if name in ("quota", "ring_bytes") else _SECONDS
    number = parse_amount(name, value, units)
    return int(number) if name in ("window_steps", "metrics_port") else number


def _parse_flag(name: str, value: object) -> bool:
    text = str(value).strip().lower()
    if text not in _ON | _OFF:
        raise UsageError(f"{name}={value!r} is neither on nor off", hint=f"{name}=1 or {name}=0")
    return text in _ON


def parse_amount(name: str, value: object, units: Mapping[str, float]) -> float:
    """A number, or a text with a number and a unit, in seconds or bytes.

    Raises:
        UsageError: it is neither, or it is negative or not finite.
    """
    found = _AMOUNT.fullmatch(str(value))
    factor = units.get(found[2].lower()) if found else None
    number = float(found[1]) * factor if found and factor is not None else math.nan
    if not 0 <= number < math.inf:
        known = ", ".join(unit for unit in units if unit)
        raise UsageError(f"{name}={value!r} is not an amount", hint=f"write a number, with one of these units: {known}")
    return number


def parse_times(text: str) -> list[int]:
    """The minutes of the day of `03:00,15:30`, sorted.

    Raises:
        UsageError: it holds something else.
    """
    minutes = []
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        found = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", piece)
        if found is None:
            raise UsageError(f"at={piece!r} is not a time of the day", hint="write HH:MM, with commas between times")
        minutes.append(60 * int(found[1]) + int(found[2]))
    return sorted(minutes)
