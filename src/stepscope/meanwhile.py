"""What goes on while a file is read: a module is imported on another thread, and no garbage is collected."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def importing(module: str) -> Iterator[None]:
    """A context that imports a module in the background and ends when the import is done.  A failed import is ignored:
    the next regular import raises the error."""
    if module in sys.modules:
        yield
        return
    thread = threading.Thread(target=_import_quietly, args=(module,), name=f"import {module}")
    thread.start()
    try:
        yield
    finally:
        thread.join()


@contextmanager
def collecting_later() -> Iterator[None]:
    """A context in which Python looks for no garbage: imports make many objects and none of that, and it would look at
    all of them again and again.  Of several threads inside, the first that leaves may turn it on again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _import_quietly(module: str) -> None:
    with suppress(Exception):
        importlib.import_module(module)
