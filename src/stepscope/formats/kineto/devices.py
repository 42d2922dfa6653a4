"""Facts about the host and the devices of a trace, as stats of their planes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from stepscope.model import StatValue
from stepscope.model.stat_names import DEVICE_LISTED

# The names of other formats for the same facts.  Other facts keep their names.
_CANONICAL = {
    "name": "gpu_device_name",
    "numSms": "core_count",
    "maxComputeUnits": "core_count",
    "totalGlobalMem": "memory_size",
    "computeMajor": "compute_cap_major",
    "computeMinor": "compute_cap_minor",
}
_VENDORS = (
    ("AMD", ("amd", "instinct", "radeon")),
    ("Nvidia", ("nvidia", "tesla", "geforce", "quadro", "titan", "rtx", "gtx")),
    ("Intel", ("intel",)),
)
_DISTRIBUTED = "distributedInfo"
_JOB_NUMBERS = ("rank", "world_size", "pg_count")
_NOT_FACTS = ("displayTimeUnit", "traceName", "baseTimeNanoseconds")


def gpu_stats(metadata: Mapping[str, Any], ordinal: int, plane: str) -> dict[str, StatValue]:
    """Facts about one device; empty if the trace has none.

    Args:
        metadata: of the trace.
        ordinal: the number of the device.
        plane: the name of its plane, which says what kind of device it is.
    """
    if plane.startswith("/device:NPU:"):
        return {"gpu_device_name": "Ascend NPU", "device_vendor": "Huawei"}
    found = _device_properties(metadata, ordinal)
    facts = {_CANONICAL.get(key, key): value for key, value in found.items() if key != "id" and _is_scalar(value)}
    vendor = _find_vendor(str(found.get("name", "")), metadata)
    if vendor:
        facts["device_vendor"] = vendor
    return facts


def _device_properties(metadata: Mapping[str, Any], ordinal: int) -> dict[str, Any]:
    """The properties of one device.

    With HIP, events hold the driver's number of a device, but properties hold the number that the process sees.  The
    difference does not matter if all devices have equal properties.
    """
    entries = _listed_devices(metadata)
    for entry in entries:
        if entry.get("id") == ordinal:
            return entry
    kinds = [{key: value for key, value in entry.items() if key != "id"} for entry in entries]
    return kinds[0] if kinds and all(kind == kinds[0] for kind in kinds) else {}


def _listed_devices(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The properties of the devices that the recorder found."""
    listed = metadata.get("deviceProperties")
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _find_vendor(name: str, metadata: Mapping[str, Any]) -> str:
    for vendor, words in _VENDORS:
        if any(word in name.lower() for word in words):
            return vendor
    if any(key.startswith(("hip_", "roctracer")) for key in metadata):
        return "AMD"
    return "Nvidia" if any(key.startswith(("cuda_", "cupti")) for key in metadata) else ""


def host_stats(metadata: Mapping[str, Any]) -> dict[str, StatValue]:
    """Facts about the recording: the plain values of its metadata, and the process's place in its job.

    Nested values of unknown meaning are left out: programs store their whole environment there, including secrets.
    """
    facts: dict[str, StatValue] = {
        key: value for key, value in metadata.items() if key not in _NOT_FACTS and _is_scalar(value)
    }
    if listed := _listed_devices(metadata):
        facts[DEVICE_LISTED[0]] = str(listed[0].get("name") or "GPU")
    job = metadata.get(_DISTRIBUTED)
    if isinstance(job, dict):
        for key, value in job.items():
            facts[key] = _job_fact(key, value)
    return facts


def _job_fact(key: str, value: object) -> StatValue:
    """A fact about the process's job.  Captures requested by a daemon store numbers as text."""
    if key in _JOB_NUMBERS and isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    if isinstance(value, int | float | str) and _is_scalar(value):
        return value
    return json.dumps(value, separators=(",", ":"))


def _is_scalar(value: object) -> bool:
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 63
    return isinstance(value, str | float) and value == value  # NaN is unknown
