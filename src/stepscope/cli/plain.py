"""Command lines that need no library to be read: a tool, the summary or the page, a path, and options written out.

The library takes longer to import than a kept result to be shown.  Whatever is not as usual is left to it: help, wrong
words, and all other commands.  What both read they read alike, which a test holds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from stepscope.analysis.registry import TOOLS
from stepscope.cli.options import (
    OF_OPEN,
    OF_SUMMARY,
    OF_TOOLS,
    STDOUT,
    OpenRequest,
    Option,
    ToolRequest,
    stdout_if_dash,
)  # fmt: skip

SUMMARY = "summary"
OPEN = "open"
_COMPLETION = "_STEPSCOPE_COMPLETE"  # set by a shell that asks how a word may go on


def request_of(words: Sequence[str]) -> ToolRequest | OpenRequest | None:
    """What a command line asks for; None if it takes the library to know."""
    if not words or os.environ.get(_COMPLETION):
        return None
    command = words[0]
    if command == OPEN:
        opening = _values(words[1:], OF_OPEN)
        return None if opening is None else OpenRequest(**opening)
    if command != SUMMARY and all(tool.name != command for tool in TOOLS):
        return None
    values = _values(words[1:], OF_SUMMARY if command == SUMMARY else OF_TOOLS)
    if values is None:
        return None
    values["output"] = stdout_if_dash(values.get("output"))
    return ToolRequest(tool=command, **values)


def _values(words: Sequence[str], options: Sequence[Option]) -> dict[str, Any] | None:
    """The path and the options by field; None for what is unusual about them."""
    named = {name: option for option in options for name in option.names}
    values: dict[str, Any] = {}
    left = iter(words)
    for word in left:
        if word.startswith("-"):
            if not _take(word, left, named, values):
                return None
        elif "path" in values:
            return None
        else:
            values["path"] = word
    return values if "path" in values else None


def _take(word: str, left: Any, options: dict[str, Option], values: dict[str, Any]) -> bool:
    """Reads an option with its value, which may be the next word; False for what is unusual about it."""
    name, sign, text = word.partition("=")
    option = options.get(name)
    if option is None or (sign and not name.startswith("--")) or (option.field in values and not option.repeatable):
        return False
    if option.is_flag:
        values[option.field] = True
        return not sign
    if not sign:
        text = next(left, "--")
        if text.startswith("-") and text != STDOUT:
            return False
    try:
        value = option.read(text)
    except ValueError:
        return False
    values[option.field] = (*values.get(option.field, ()), value) if option.repeatable else value
    return True
