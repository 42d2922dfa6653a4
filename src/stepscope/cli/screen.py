"""Keeps output working where stdout or stderr is missing or its encoding lacks a character."""

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
    """Makes stdout and stderr replace characters that they cannot encode with ASCII.

    Output to a stream that the caller has closed is discarded.  Log lines of object store libraries, mostly tracebacks,
    are kept off stderr: the failure is reported there in one line.

    Args:
        words: the command line; without a URL in it, no such library is used.
    """
    if any("://" in word for word in words):
        _silence_store_logs()
    codecs.register_error(_HANDLER, _replace_with_ascii)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            _missing.append(name)
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            _found.append((stream, stream.errors))
            stream.reconfigure(errors=_HANDLER)


def _silence_store_logs() -> None:
    import logging

    handler = logging.NullHandler()
    _silenced.append(handler)
    for name in _STORES:
        logging.getLogger(name).addHandler(handler)


def restore_streams() -> None:
    """Restores the streams, before a user's program runs in this process."""
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


def _replace_with_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_ASCII.get(char, "?") for char in error.object[error.start : error.end]), error.end
