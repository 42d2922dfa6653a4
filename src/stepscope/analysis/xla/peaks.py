"""What a device can do at most: from the user's table, the table that comes with Stepscope, or the trace itself.

The table is `devices.toml` beside this module.  A user's own, in the same form, is named by STEPSCOPE_DEVICES or lies
as `devices.toml` in the user's configuration folder for Stepscope; its entries come first.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from stepscope.analysis.trace.device_facts import DeviceFacts
from stepscope.errors import UsageError
from stepscope.records import dataclass

VARIABLE = "STEPSCOPE_DEVICES"
_FILE = "devices.toml"

HOW_TO_ADD = (
    f"add it to a file like devices.toml and name that in {VARIABLE}: [[device]] with name, names, matrix, plain and "
    "memory_gb_s; see docs/device-table.md"
)

# The table's names of XLA's and the frameworks' element types.
_PRECISIONS = {
    "f64": "fp64", "f32": "fp32", "bf16": "bf16", "f16": "fp16", "s8": "int8", "u8": "int8", "s4": "int4",
    "u4": "int4", "f4e2m1fn": "fp4", "c64": "fp32", "c128": "fp64",
}  # fmt: skip
# What a type's matrix products run as, best first, where the device has such units.
_MATRIX_FALLBACKS = {"fp32": ("tf32", "fp32"), "int4": ("int8",), "fp4": ("fp4", "fp8")}


@dataclass(frozen=True)
class Peaks:
    """What one device can do at most.

    Attributes:
        name: the table's name of it, or what the trace calls it.
        matrix, plain: operations a second by precision, on matrix units and on the others.
        memory: bytes a second of its main memory, None if unknown.
        caches: bytes a second of caches, by name.
        link: bytes a second to other devices, None if unknown.
        source: where the figures come from.
    """

    name: str
    matrix: Mapping[str, float]
    plain: Mapping[str, float]
    memory: float | None
    caches: Mapping[str, float] = field(default_factory=dict)
    link: float | None = None
    source: str = ""

    def flops(self, precision: str, matrix: bool) -> float | None:
        """Operations a second for an element type, None if unknown."""
        name = _PRECISIONS.get(precision, "fp8" if precision.startswith("f8") else "fp32")
        if matrix:
            for wanted in (*_MATRIX_FALLBACKS.get(name, (name,)), name):
                if wanted in self.matrix:
                    return self.matrix[wanted]
        if name in self.plain:
            return self.plain[name]
        # Narrower types run at least as fast as single precision; double precision may be 64 times slower.
        return (None if name == "fp64" else self.plain.get("fp32")) or self.matrix.get(name)

    @property
    def highest_flops(self) -> float | None:
        """The highest rate of 16 bits, that utilization is usually given of; else of whatever there is."""
        rates = [self.matrix[name] for name in ("bf16", "fp16") if name in self.matrix]
        return max(rates or [*self.matrix.values(), *self.plain.values()], default=None)


def peaks_of(facts: DeviceFacts) -> Peaks | None:
    """The peaks of a device; None if neither a table nor the trace knows them.

    Raises:
        UsageError: the user's table cannot be read.
    """
    for entry in table():
        if _fits(entry, facts):
            return _peaks(entry)
    if facts.peak_flops is None and facts.peak_bytes is None:
        return None
    rates = {} if facts.peak_flops is None else {"bf16": facts.peak_flops, "fp32": facts.peak_flops}
    return Peaks(facts.name or facts.kind, rates, {}, facts.peak_bytes, source="the trace")


def table() -> list[Mapping[str, Any]]:
    """The entries of the user's table, then those that come with Stepscope.  Raises UsageError."""
    own = os.environ.get(VARIABLE)
    path = Path(own) if own else user_config_path("stepscope") / _FILE
    users = _read(path) if own or path.is_file() else []
    return [*users, *_built_in_table()]


@cache
def _built_in_table() -> list[Mapping[str, Any]]:
    text = resources.files("stepscope.analysis.xla").joinpath(_FILE).read_text("utf-8")
    return list(tomllib.loads(text)["device"])


def _read(path: Path) -> list[Mapping[str, Any]]:
    try:
        found = tomllib.loads(path.read_text("utf-8")).get("device", [])
        for entry in found:
            _peaks(entry)
            for pattern in entry.get("names", ()):
                _pattern(pattern)
    except OSError as error:
        raise UsageError(f"cannot read the table of devices {path}", hint=str(error.strerror)) from error
    except (ValueError, TypeError, KeyError, AttributeError, re.error) as error:
        raise UsageError(f"{path} is not a table of devices: {error}", hint=HOW_TO_ADD) from error
    return list(found)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


def _fits(entry: Mapping[str, Any], facts: DeviceFacts) -> bool:
    if facts.name:
        return any(_pattern(pattern).search(facts.name) for pattern in entry.get("names", ()))
    wanted = entry.get("fits", {})
    vendor = facts.vendor or ("Nvidia" if facts.kind == "GPU" else "")
    known = {"vendor": vendor, "capability": facts.capability, "cores": facts.cores}
    return bool(wanted) and all(known.get(key) == value for key, value in wanted.items())


def _peaks(entry: Mapping[str, Any]) -> Peaks:
    def rates(key: str) -> dict[str, float]:
        return {str(name): float(value) * 1e12 for name, value in entry.get(key, {}).items()}

    memory, link = entry.get("memory_gb_s"), entry.get("link_gb_s")
    return Peaks(
        str(entry["name"]),
        rates("matrix"),
        rates("plain"),
        None if memory is None else float(memory) * 1e9,
        {str(name): float(value) * 1e9 for name, value in entry.get("caches", {}).items()},
        None if link is None else float(link) * 1e9,
        str(entry.get("source", "")),
    )
