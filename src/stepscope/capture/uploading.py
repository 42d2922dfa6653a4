"""Copies files to another machine, also at the end of the program.

Once the program's code has finished, Python starts no thread for a library any more, and those of object stores need
some: another process copies then.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from stepscope.capture import other_process
from stepscope.errors import InputError

_PATIENCE_S = 600.0


def copy(path: Path, address: str) -> None:
    """Copies a file to an address.

    Raises:
        InputError: it could not be copied.
        other_process.FailedError: nor by another process.
    """
    if getattr(threading, "_SHUTTING_DOWN", False) or not threading.main_thread().is_alive():
        with suppress(other_process.UnableError):
            other_process.run(__name__, [str(path), address], _PATIENCE_S)
            return
    _copy(path, address)


def _copy(path: Path, address: str) -> None:
    from stepscope.formats import store

    store.upload(path, address)


def main(arguments: Sequence[str]) -> None:
    """Copies one file.  Another process runs this; see `stepscope.capture.other_process`.

    Args:
        arguments: the file and its address.
    """
    path, address = arguments
    try:
        _copy(Path(path), address)
    except InputError as error:
        raise OSError(error.problem.reason) from error
