"""Field numbers of the XSpace messages (package tensorflow.profiler), and the names of planes and lines.

The kinds of the model are imported when one is asked for: the model needs numpy, and a file is decoded without it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.model import LineKind, PlaneKind

# Times beyond 26 days are damage.  This limit also keeps the end of each event, and the distance of any two, inside
# int64.
TIME_LIMIT_PS = 1 << 61

SPACE_PLANES, SPACE_ERRORS, SPACE_WARNINGS, SPACE_HOSTNAMES = 1, 2, 3, 4
SPACE_TEXTS = (SPACE_ERRORS, SPACE_WARNINGS, SPACE_HOSTNAMES)
PLANE_ID, PLANE_NAME, PLANE_LINES, PLANE_EVENT_METADATA, PLANE_STAT_METADATA, PLANE_STATS = 1, 2, 3, 4, 5, 6
LINE_ID, LINE_NAME, LINE_START_NS, LINE_EVENTS, LINE_DURATION_PS = 1, 2, 3, 4, 9
LINE_DISPLAY_ID, LINE_DISPLAY_NAME = 10, 11
EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS, EVENT_STATS, EVENT_OCCURRENCES = 1, 2, 3, 4, 5
STAT_METADATA_ID, STAT_DOUBLE, STAT_UINT, STAT_INT, STAT_STRING, STAT_BYTES, STAT_REF = 1, 2, 3, 4, 5, 6, 7
METADATA_ID, METADATA_NAME, METADATA_DISPLAY_NAME, METADATA_STATS = 1, 2, 4, 5

HOST_PLANE = "/host:CPU"
PYTHON_PLANE = "/host:python-tracer"
ENVIRONMENT_PLANE = "Task Environment"
START_TIME_STAT, STOP_TIME_STAT = "profile_start_time", "profile_stop_time"
KIND_STAT = "stepscope_kind"
OCCURRENCES_STAT = "num_occurrences"
GROUP_STAT = "group_id"  # if all planes declare it, other readers use the steps in the file

_HOST_PLANES = frozenset({
    HOST_PLANE, PYTHON_PLANE, "/host:CUPTI", "/host:NVTX-CUPTI", "/host:ROCTRACER", "/host:TPU-runtime",
})  # fmt: skip

_DEVICE_PLANE = re.compile(r"/device:(?P<kind>[A-Z]+):(?P<ordinal>[0-9]+)(?P<rest>.*)", re.DOTALL)
_LINE_ID_DERIVED = 0xDEADBEEF  # the first id that writers of this format reserve for derived lines
_DERIVED_IDS = range(_LINE_ID_DERIVED, _LINE_ID_DERIVED + 400)
_DERIVED_NAMES = (
    "TensorFlow Name Scope", "TensorFlow Ops", "Framework Name Scope", "Framework Ops", "XLA Ops", "Async XLA Ops",
    "Source code", "Source", "Launch Stats", "Host Offload Ops", "XLA TraceMe", "Overlay", "Tensor Core Sync Flag",
)  # fmt: skip


_WITH_STREAMS = ("GPU", "MTIA", "NPU")  # devices whose work the host launches onto streams


def plane_kind(name: str) -> tuple[PlaneKind, int]:
    """The kind of a plane and, for a device, its number (otherwise -1), from its name."""
    from stepscope.model import PlaneKind

    device = _DEVICE_PLANE.fullmatch(name)
    if device:
        kind, number, rest = device["kind"], device["ordinal"], device["rest"]
        ordinal = int(number) if len(number) < 10 else -1  # no device number has more digits
        if kind in _WITH_STREAMS:
            return PlaneKind.GPU, ordinal
        if kind == "TPU":
            return (PlaneKind.SPARSE_CORE if "SparseCore" in rest else PlaneKind.TPU), ordinal
        return PlaneKind.CUSTOM_DEVICE, ordinal
    if name.startswith("/device:CUSTOM:"):
        return PlaneKind.CUSTOM_DEVICE, -1
    if name in _HOST_PLANES:
        return PlaneKind.HOST, -1
    if name.startswith(HOST_PLANE + " ["):  # the plane of a sub-process
        return PlaneKind.HOST, -1
    if name == "/host:metadata":
        return PlaneKind.METADATA, -1
    if name == ENVIRONMENT_PLANE:
        return PlaneKind.ENVIRONMENT, -1
    return PlaneKind.OTHER, -1


def line_kind(plane: PlaneKind, name: str, line_id: int) -> LineKind:
    """The kind of a line, from the kind of its plane, its name and its id."""
    from stepscope.model import LineKind, PlaneKind

    if name in ("_counters_", "counters_") or name.startswith("counters_"):
        return LineKind.COUNTERS
    if plane == PlaneKind.HOST:
        return LineKind.THREAD
    if not plane.is_device:
        return LineKind.OTHER
    if name in ("Steps", "Sparse Core Steps"):
        return LineKind.STEPS
    if name.startswith(("XLA Modules", "Sparse Core Modules")):
        return LineKind.MODULES
    if plane != PlaneKind.GPU:
        return LineKind.DEVICE_OPS if name in ("XLA Ops", "Sparse Core Ops") else LineKind.DERIVED
    if name == "CUPTI overhead":
        return LineKind.OVERHEAD
    if (line_id & 0xFFFFFFFF) in _DERIVED_IDS or name.startswith(_DERIVED_NAMES):
        return LineKind.DERIVED
    return LineKind.STREAM
