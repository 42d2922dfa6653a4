"""Reads utilisation, memory and power of each GPU from NVIDIA's management library, by ctypes."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

_LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
_GB = 1e9


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Nvml:
    """The GPUs of this machine."""

    def __init__(self, library: Any, devices: list[ctypes.c_void_p]) -> None:
        self._library = library
        self._devices = devices

    @classmethod
    def open(cls, load: Callable[[str], Any] = ctypes.CDLL) -> Nvml | None:
        """None if there is no driver, or no GPU."""
        try:
            library = load(_LIBRARY)
            if library.nvmlInit_v2() != 0:
                return None
        except (OSError, AttributeError):
            return None
        count = ctypes.c_uint()
        if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return None
        handles = [ctypes.c_void_p() for _ in range(count.value)]
        devices = [
            handle
            for index, handle in enumerate(handles)
            if library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)) == 0
        ]
        return cls(library, devices) if devices else None

    def read(self, passed_s: float) -> dict[str, float]:
        """Counters of all GPUs; figures that a GPU does not report are left out."""
        values: dict[str, float] = {}
        for index, device in enumerate(self._devices):
            used, memory, power = _Utilization(), _Memory(), ctypes.c_uint()
            if self._library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(used)) == 0:
                values[f"GPU {index} utilisation %"] = float(used.gpu)
            if self._library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0:
                values[f"GPU {index} memory GB"] = memory.used / _GB
            if self._library.nvmlDeviceGetPowerUsage(device, ctypes.byref(power)) == 0:
                values[f"GPU {index} power W"] = power.value / 1000
        return values

    def close(self) -> None:
        """Shuts the library down."""
        self._library.nvmlShutdown()
