"""Analysing a file whose columns would not fit into memory: they lie in files, which the system reads where it must.

See `stepscope.kernels.memory`.  A command and a child process of an engine do that; a program of a user does not.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope import kernels
from stepscope.engines.budget import memory_of
from stepscope.errors import AccessError

if TYPE_CHECKING:
    from stepscope.formats.session import HostFile

FOLDER_VARIABLE = "STEPSCOPE_SPILL_DIR"
_IN_MEMORY = ("tmpfs", "ramfs")
_ON_DISK = "/var/tmp"
_allowed: list[bool] = []


def is_possible() -> bool:
    """Whether a process of this system can keep columns in files."""
    return sys.platform == "linux"


def allow() -> None:
    """Lets this process keep columns in files: it is a command or a child of ours, and no program of a user."""
    _allowed.append(is_possible())


def is_allowed() -> bool:
    """Whether this process keeps columns in files where it must."""
    return any(_allowed)


def make_room(file: HostFile, budget: int) -> None:
    """Prepares this process for a file: from now on large columns lie on disk, if they would not fit into the budget.

    Raises:
        AccessError: they fit neither into the budget nor on the disk, or this process may not spill.
    """
    needed = memory_of(file)
    if needed <= budget:
        return
    folder = spill_folder()
    free = shutil.disk_usage(folder).free
    if free < needed:
        reason = f"it needs about {_gb(needed)}; {_gb(budget)} of memory may be used, and {folder} has {_gb(free)}"
        hint = f"set {FOLDER_VARIABLE} to a folder with more space"
        raise AccessError(reason, code="memory", path=file.path, hint=hint)
    if not (is_allowed() and kernels.memory.keep_within(folder, budget)):
        raise too_large(file, budget)


def too_large(file: HostFile, budget: int) -> AccessError:
    """The error for a file that this process cannot take."""
    reason = f"it needs about {_gb(memory_of(file))} of memory, and {_gb(budget)} may be used"
    on_disk, more = "a command with --memory SIZE keeps its columns on disk", "allow more with --memory SIZE"
    return AccessError(reason, code="memory", path=file.path, hint=on_disk if is_possible() else more)


def spill_folder() -> str:
    """A folder on a disk; a file system in memory would save nothing."""
    chosen = os.environ.get(FOLDER_VARIABLE, "").strip() or tempfile.gettempdir()
    return _ON_DISK if _file_system(chosen) in _IN_MEMORY and Path(_ON_DISK).is_dir() else chosen


def _file_system(folder: str) -> str:
    """The type of the file system that a folder is on; empty if unknown."""
    found, longest = "", -1
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return ""
    for line in mounts:
        _, place, kind, *_ = line.split()
        inside = place == "/" or f"{folder}/".startswith(f"{place.rstrip('/')}/")
        if inside and len(place) > longest:
            found, longest = kind, len(place)
    return found


def _gb(nbytes: int) -> str:
    return f"{nbytes / 1e9:,.1f} GB"
