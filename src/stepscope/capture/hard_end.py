"""Ends of a program that run no `atexit` handlers: `os._exit`, and `os.exec...`, which starts another program instead.

A listener may delay such an end by some seconds at most, and only if a profile would be lost.  A program that imported
the function itself, by `from os import _exit`, before its first capture is not noticed.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Listener = Callable[[str], object]

_FUNCTIONS = {"_exit": "os._exit", "execv": "os.exec", "execve": "os.exec"}
_listeners: list[Listener] = []
_original: dict[str, Callable[..., Any]] = {}


def listen(listener: Listener) -> None:
    """Calls a function before such an end, after all earlier listeners, with the name of the function that ends it."""
    if listener in _listeners:
        return
    _listeners.append(listener)
    for name, shown in _FUNCTIONS.items():
        if name not in _original and hasattr(os, name):
            _original[name] = getattr(os, name)
            setattr(os, name, _call_listeners_first(_original[name], shown))


def forget(listener: Listener) -> None:
    """Stops calling it; without a listener the functions are the original ones again."""
    if listener in _listeners:
        _listeners.remove(listener)
    while _original and not _listeners:
        name, function = _original.popitem()
        setattr(os, name, function)


def _call_listeners_first(function: Callable[..., Any], shown: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def end_program(*args: Any, **named: Any) -> Any:
        for listener in list(_listeners):
            with suppress(Exception):
                listener(shown)
        return function(*args, **named)

    return end_program
