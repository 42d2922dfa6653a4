"""Tells the files of the program from those of Python, of what is installed, and of Stepscope."""

from __future__ import annotations

import os
import sysconfig
from functools import cache
from pathlib import Path

_OWN = f"{Path(__file__).absolute().parents[1]}{os.sep}"
_SCHEMES = ("stdlib", "platstdlib", "purelib", "platlib")
LIBRARIES = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in _SCHEMES})
"""The folders of Python's own modules and of installed ones."""


@cache
def is_users_file(file: str) -> bool:
    """True for a file that belongs to no library."""
    if file.startswith(("<", _OWN, *LIBRARIES)):
        return False
    return "site-packages" not in file and "dist-packages" not in file
