"""Imports a module on another thread while work that leaves the interpreter free is done."""

from __future__ import annotations

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


def _import_quietly(module: str) -> None:
    with suppress(Exception):
        importlib.import_module(module)
