"""What goes on while a file is read: a module is imported on another thread, and no garbage is collected."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def importing(*modules: str) -> Iterator[None]:
    """A context that imports modules in the background, one after the other, and ends when that is done.  A failed
    import is ignored: the next regular import raises the error."""
    if all(module in sys.modules for module in modules):
        yield
        return
    thread = threading.Thread(target=_import_quietly, args=modules, name=f"import {modules[-1]}")
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


def _import_quietly(*modules: str) -> None:
    for module in modules:
        with suppress(Exception):
            importlib.import_module(module)
