"""Importing a module on a thread of its own, while something else is done that leaves the interpreter free."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def importing(module: str) -> Iterator[None]:
    """A context that imports a module in the background.  It ends when that is done, or has failed: who needs the
    module then imports it anew, and gets the error."""
    if module in sys.modules:
        yield
        return
    thread = threading.Thread(target=_import_quietly, args=(module,), name=f"import {module}")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _import_quietly(module: str) -> None:
    with suppress(Exception):
        importlib.import_module(module)
