"""Sends what a program saves to a folder that is thrown away: after an ablation its state is void.

From the first ablation to the end of the process, the functions that save get another path, so that saving takes as
long as before and no checkpoint of the program is overwritten.  What they moved is found again by the functions that
move files.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from stepscope.capture.patches import Call, Undo
from stepscope.capture.proving.places import find_attribute_targets
from stepscope.proof.parts import PARTS

_MOVES = ("os.replace", "os.rename")


class Scratch:
    """The folder, and which paths have been sent there.

    Args:
        folder: exists; the caller removes it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sent: dict[str, str] = {}

    def saves(self, original: Call) -> Call:
        """A function that saves, with every path among its arguments sent here."""

        def save_in_scratch(*args: Any, **kwargs: Any) -> Any:
            return original(*map(self._send, args), **{key: self._send(value) for key, value in kwargs.items()})

        return save_in_scratch

    def moves(self, original: Call) -> Call:
        """A function that moves a file, for those that were sent here."""

        def move_in_scratch(source: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            sent = self._sent.get(str(Path(source).absolute())) if isinstance(source, (str, os.PathLike)) else None
            if sent is not None:
                return original(sent, self._send(target), *args, **kwargs)
            return original(source, target, *args, **kwargs)

        return move_in_scratch

    def _send(self, value: Any) -> Any:
        """A path in the folder for a path; anything else as it is."""
        if not isinstance(value, (str, os.PathLike)) or Path(os.fspath(value)).is_relative_to(self._folder):
            return value
        path = str(Path(value).absolute())
        place = self._folder / path.lstrip(os.sep)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError):  # a text that is no path
            return value
        self._sent[path] = str(place)
        return type(value)(place) if isinstance(value, (str, Path)) else str(place)


def redirect() -> Undo:
    """Sends saves to a folder for the rest of this process."""
    folder = Path(tempfile.mkdtemp(prefix="stepscope-prove-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    scratch, undo = Scratch(folder), ExitStack()
    changes = dict.fromkeys(PARTS["checkpoint"], scratch.saves) | dict.fromkeys(_MOVES, scratch.moves)
    for name, change in changes.items():
        for target in find_attribute_targets(name):
            undo.callback(target.install(change))
    return undo.close
