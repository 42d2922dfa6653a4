"""Screens that cannot take what we write, for their encoding lacks it or there is none: no reason to fail."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

_HANDLER = "stepscope.plain-text"
_ASCII = {"±": "+-", "\N{EN DASH}": "-", "…": "...", "·": ".", "█": "#", "▁": "_"} | dict.fromkeys("▂▃▄▅▆▇", "=")

_STORES = ("gcsfs", "s3fs", "fsspec", "aiobotocore", "botocore")
_silenced: list[logging.Handler] = []
_found: list[tuple[io.TextIOWrapper, str | None]] = []
_missing: list[str] = []


def adapt(words: Iterable[str] = ()) -> None:
    """Lets standard output and standard error take ASCII for what they cannot write, and keeps from the latter what
    libraries of object stores log, tracebacks above all: we tell in one line what failed.  What is written to a stream
    that the caller has closed goes nowhere.

    Args:
        words: of the command line; without a URL among them, no such library is used.
    """
    if any("://" in word for word in words):
        _silence_stores()
    codecs.register_error(_HANDLER, _in_ascii)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            _missing.append(name)
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            _found.append((stream, stream.errors))
            stream.reconfigure(errors=_HANDLER)


def _silence_stores() -> None:
    import logging

    handler = logging.NullHandler()
    _silenced.append(handler)
    for name in _STORES:
        logging.getLogger(name).addHandler(handler)


def give_back() -> None:
    """Makes the streams what they were: for a program of others, which is to run as if we were not there."""
    while _silenced:
        import logging

        handler = _silenced.pop()
        for name in _STORES:
            logging.getLogger(name).removeHandler(handler)
    while _found:
        stream, errors = _found.pop()
        stream.reconfigure(errors=errors)
    while _missing:
        name = _missing.pop()
        getattr(sys, name).close()
        setattr(sys, name, None)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_ASCII.get(char, "?") for char in error.object[error.start : error.end]), error.end
