"""Tells the files of the program from those of Python, of what is installed, and of Stepscope."""

from __future__ import annotations

import os
import sysconfig
from functools import cache
from pathlib import Path
from types import CodeType

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


_SAYS_NOTHING = frozenset({"forward", "call", "__call__"})  # every layer and model has one


def called(code: CodeType) -> str:
    """The name of a function as it is shown: with its class where every class has one of that name."""
    if code.co_name not in _SAYS_NOTHING:
        return code.co_name
    return ".".join(code.co_qualname.replace("<locals>.", "").split(".")[-2:])


_STANDARD = f"{sysconfig.get_path('stdlib')}{os.sep}"


def path_shown(file: str) -> str:
    """The path of a library's file below the folder that it is installed in, and the name alone of the program's."""
    _, library, below = file.replace(os.sep, "/").rpartition("-packages/")
    if library:
        return below
    if file.startswith(_STANDARD):
        return file.removeprefix(_STANDARD).replace(os.sep, "/")
    return os.path.basename(file)  # noqa: PTH119 - this is a hot path
