"""What goes on while a file is read and analysed: another thread imports or computes, and no garbage is collected."""

from __future__ import annotations

import contextvars
import gc
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial


@contextmanager
def importing(*modules: str) -> Iterator[None]:
    """A context that imports modules in the background, one after the other, and ends when that is done.  A failed
    import is ignored: the next regular import raises the error."""
    if all(module in sys.modules for module in modules):
        yield
        return
    with computing(*(partial(importlib.import_module, module) for module in modules)):
        yield


@contextmanager
def computing(*works: Callable[[], object]) -> Iterator[None]:
    """A context in which another thread does some works, one after the other, and which ends when they are done.

    What one raises is ignored: whoever needs its result computes that again, and meets the error.  Numpy gets memory
    there as it does here, since that belongs to the context.  Where the system gives no further thread, such as under a
    limit of memory, nothing goes on meanwhile.
    """
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(_do_quietly, *works), name="stepscope-meanwhile")
    try:
        thread.start()
    except RuntimeError:
        yield
        return
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
            _take_as_old()
            gc.enable()


def _take_as_old() -> None:
    """Lets Python take all objects as old ones, as if it had looked at them: the first one that is made after the
    context would have it look at all that were made inside.  Garbage among them goes with the next old garbage."""
    if not gc.get_freeze_count():  # what the program keeps out of this stays out
        gc.freeze()
        gc.unfreeze()


def _do_quietly(*works: Callable[[], object]) -> None:
    for work in works:
        with suppress(Exception):
            work()
