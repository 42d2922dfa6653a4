"""How much memory there is, and how much a file needs."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.errors import UsageError

if TYPE_CHECKING:
    from stepscope.formats.session import HostFile

MEMORY_OF_FILE = 2
"""The memory of a decoded trace and its derived columns, in multiples of its file's size."""

UNPACKED = 8
"""The size of an unpacked trace JSON, in multiples of the packed one's."""

VARIABLE = "STEPSCOPE_MEMORY"

USED_SHARE = 0.5
"""Of the memory that the machine has free, when nobody has set a size: the training job may run beside this."""

LEAST_BYTES = 64 << 20
"""Python, numpy and the code take as much before they have read anything."""

_UNKNOWN_MACHINE = 4 << 30
_UNITS = {"": 1, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)


def memory_of(file: HostFile) -> int:
    """The memory that a host's trace and the analysis of it take, roughly."""
    return MEMORY_OF_FILE * (file.size or 0) * (UNPACKED if file.path.endswith(".gz") else 1)


def parse_size(text: str) -> int:
    """The bytes of a size as people write it.  Raises UsageError.

    >>> parse_size("4GB"), parse_size("1.5 GiB"), parse_size("512M")
    (4000000000, 1610612736, 512000000)
    """
    found = _SIZE.fullmatch(text.strip())
    if not found or (not found[2] and "." in found[1]):
        raise UsageError(f"{text!r} is not a size of memory", hint="such as 4GB, 512MB or 1.5GiB")
    size = int(float(found[1]) * (1024 if found[3] else 1000) ** (_UNITS[found[2].upper()] if found[2] else 0))
    if size < LEAST_BYTES:
        raise UsageError(f"{text} is too little memory", hint=f"at least {LEAST_BYTES >> 20} MiB")
    return size


def memory_from(text: str | None) -> int | None:
    """The size of a text, else of STEPSCOPE_MEMORY; None if neither says anything.  Raises UsageError."""
    text = text or os.environ.get(VARIABLE, "").strip()
    return parse_size(text) if text else None


def default_budget() -> int:
    """Half of the memory that is free, within the limits of the container."""
    return max(LEAST_BYTES, int(USED_SHARE * free_bytes()))


def free_bytes() -> int:
    """The memory that this process could get without anything being swapped out."""
    free = [found for found in (_free_of_machine(), _free_of_container()) if found is not None]
    return min(free, default=_UNKNOWN_MACHINE)


def _free_of_machine() -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return None


def _free_of_container() -> int | None:
    """What a limit of the control group leaves; None without one."""
    with suppress(OSError, ValueError):
        folder = Path("/sys/fs/cgroup")
        limit, used = (folder / name for name in ("memory.max", "memory.current"))
        return max(0, int(limit.read_text()) - int(used.read_text()))
    return None
