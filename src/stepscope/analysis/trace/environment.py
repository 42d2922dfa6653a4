"""What a profile was recorded on, and what it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.device_facts import facts_of_plane
from stepscope.analysis.trace.devices_told_of import is_device_told_of, listed_device
from stepscope.analysis.trace.event_kinds import count_kinds
from stepscope.analysis.trace.grouping import COMPUTING, is_device_work
from stepscope.analysis.trace.remedies import (
    ALLOCATIONS,
    CAPTURE_PLANE,
    DEVICE_ACTIVITY,
    HOST_ACTIVITY,
    PYTHON_CALLS,
    STEP_MARKS,
    recorder_of,
    remedy,
)
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind
from stepscope.model.arrays import distinct, look_up
from stepscope.records import dataclass
from stepscope.vocabulary.tensorflow import THREAD_MODE, launches_apart

# NVIDIA architectures by lowest compute capability, oldest first.
_NVIDIA = (
    ((2, 0), "Fermi"), ((3, 0), "Kepler"), ((5, 0), "Maxwell"), ((6, 0), "Pascal"), ((7, 0), "Volta"),
    ((7, 5), "Turing"), ((8, 0), "Ampere"), ((8, 9), "Ada Lovelace"), ((9, 0), "Hopper"), ((10, 0), "Blackwell"),
)  # fmt: skip
PYTHON_CALLS_MISSING = "Python calls"
_SETTING = "setting:"


@dataclass(frozen=True)
class Missing:
    """Something that a profile lacks, and how to record it."""

    what: str
    remedy: str


@dataclass(frozen=True)
class EnvironmentOfHost:
    """What one host ran on.

    Attributes:
        framework: the trace's: "tensorflow", "jax", "pytorch", "python" for none of them, or "" if unknown.
        recorder: who recorded it, a key of the tables of remedies.
        device_type: the models of its devices, of those that computed if any did; "CPU" if it has none.
        device_count, devices_used: devices that the profiler saw, and those that computed.
        span_ps: from the first to the last event; has_events: there is any.
        missing: what the host's trace lacks.
        start_unix_ns: when the recording began; None if unknown.
        pause_ms: how long the program stood still while the framework's profiler collected its events; None if unknown.
    """

    framework: str
    recorder: str
    device_type: str
    device_count: int
    devices_used: int
    span_ps: int
    has_events: bool
    missing: list[Missing]
    start_unix_ns: int | None = None
    pause_ms: float | None = None


def environment_of(trace: HostTrace, steps_source: str) -> EnvironmentOfHost:
    """What one host ran on."""
    planes = [row for row in trace.device_planes() if trace.planes.kind[row] != PlaneKind.SPARSE_CORE]
    computes = events_of_kind(trace, *COMPUTING)
    computes = computes[is_device_work(trace)[computes]]
    used = distinct(look_up(trace.lines.plane, trace.events.line[computes]))
    working = [row for row in planes if row in set(used.tolist())]
    begin, end = trace.span_ps()
    return EnvironmentOfHost(
        framework=trace.framework,
        recorder=recorder_of(trace),
        device_type=_device_types(trace, working or planes),
        device_count=len(planes),
        devices_used=len(working),
        span_ps=end - begin,
        has_events=len(trace.events) > 0,
        missing=list_missing(trace, steps_source),
        start_unix_ns=trace.start_unix_ns,
        pause_ms=_pause_ms(trace),
    )


def _pause_ms(trace: HostTrace) -> float | None:
    """The pause at the end of a capture by Stepscope, as its profile states it."""
    stated = capture_facts(trace).get("pause_ms")
    return stated if isinstance(stated, float) and 0 <= stated < inf else None


def settings_of(trace: HostTrace) -> tuple[str, ...]:
    """The environment variables of those that advice is about that are set, as a capture by Stepscope found them or the
    names of threads show."""
    found = [name.removeprefix(_SETTING) for name in capture_facts(trace) if name.startswith(_SETTING)]
    if any(launches_apart(trace.strings[name]) for name in trace.lines.name.tolist()):
        found.append(THREAD_MODE)
    return tuple(dict.fromkeys(found))


def has_lost_framework(trace: HostTrace) -> bool:
    """True if a framework's profiler recorded beside Stepscope, and its events could not be kept."""
    of_cut = ("unfinished", "unconverted") if trace.framework else ()
    return any(problem.code in ("framework-lost", *of_cut) for problem in trace.problems)


def capture_facts(trace: HostTrace) -> Mapping[str, object]:
    """What a capture by Stepscope wrote about itself; empty for other profiles."""
    planes = (plane for plane in range(len(trace.planes)) if trace.plane_name(plane) == CAPTURE_PLANE)
    return {fact: value for plane in planes for fact, value in trace.stats_of_plane(plane).items()}


def steps_awaited_s(trace: HostTrace) -> float | None:
    """How long a capture waited for steps of a loop before it recorded a time window, in which none came either; None
    where it did not."""
    awaited = capture_facts(trace).get("steps_awaited_s")
    return float(awaited) if isinstance(awaited, (int, float)) and 0 < awaited < inf else None


def _device_types(trace: HostTrace, planes: Sequence[int]) -> str:
    """The models of some devices, each once."""
    if not planes:
        return (listed_device(trace) if is_device_told_of(trace) else "") or "CPU"
    return ", ".join(dict.fromkeys(_device_type(trace, plane) for plane in planes))


def _device_type(trace: HostTrace, plane: int) -> str:
    """The name that the trace gives to a device, else its architecture: several models may have it."""
    facts, stated = facts_of_plane(trace, plane), trace.stats_of_plane(plane)
    named = stated.get("device_type_string") or stated.get("device_type") or stated.get("gpu_device_name")
    if isinstance(named, str) and named:
        return named
    if trace.planes.kind[plane] == PlaneKind.TPU:
        return "TPU"
    if not facts.capability:
        return "GPU"
    if facts.vendor.lower() == "amd":
        return f"AMD GPU (gfx{facts.capability.replace('.', '')}x)"
    version = tuple(int(part) for part in facts.capability.split("."))
    name = next((name for capability, name in reversed(_NVIDIA) if version >= capability), "")
    return f"NVIDIA GPU ({name}, compute capability {facts.capability})"


def list_missing(trace: HostTrace, steps_source: str) -> list[Missing]:
    """What a trace lacks, and how who recorded it records that."""
    kinds = set(np.flatnonzero(count_kinds(trace)).tolist())
    listed = any(trace.planes.kind[row] != PlaneKind.SPARSE_CORE for row in trace.device_planes())
    takes_part = listed or is_device_told_of(trace)
    has_activity = (trace.lines.kind == LineKind.THREAD) & (trace.lines.event_end > trace.lines.event_begin)
    found = (
        (steps_source == "markers", "step marks", STEP_MARKS),
        (has_activity.any(), "host activity", HOST_ACTIVITY),
        (is_device_work(trace).any() or not takes_part, "device activity", DEVICE_ACTIVITY),
        (int(EventKind.PYTHON_CALL) in kinds, PYTHON_CALLS_MISSING, PYTHON_CALLS),
        (int(EventKind.ALLOCATION) in kinds, "memory allocations", ALLOCATIONS),
    )
    recorder = recorder_of(trace)
    return [Missing(what, remedy(how, recorder)) for is_there, what, how in found if not is_there]
