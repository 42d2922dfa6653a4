"""Ends of a program that Python's own end does not see: `os._exit`, and another program in its place by `os.exec...`.

Whoever listens may delay such an end by some seconds at most, and only where a profile would be lost.  A program that
has taken the function itself, by `from os import _exit`, before it captured anything is not seen.
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
    """Has a function called before such an end, after those that listen already, with the name of what ends it."""
    if listener in _listeners:
        return
    _listeners.append(listener)
    for name, told in _FUNCTIONS.items():
        if name not in _original and hasattr(os, name):
            _original[name] = getattr(os, name)
            setattr(os, name, _telling(_original[name], told))


def forget(listener: Listener) -> None:
    """Calls it no more; the functions are what they were once nobody listens."""
    if listener in _listeners:
        _listeners.remove(listener)
    while _original and not _listeners:
        name, function = _original.popitem()
        setattr(os, name, function)


def _telling(function: Callable[..., Any], told: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def ends(*args: Any, **named: Any) -> Any:
        for listener in list(_listeners):
            with suppress(Exception):
                listener(told)
        return function(*args, **named)

    return ends
