"""Command lines that need no library to be read: a tool or the summary, a path, and options written out.

The library takes longer to import than a kept result to be shown.  Whatever is not as usual is left to it: help, wrong
words, and all other commands.  What both read they read alike, which a test holds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from stepscope.analysis.registry import TOOLS
from stepscope.cli.options import OF_SUMMARY, OF_TOOLS, STDOUT, Option, ToolRequest, stdout_if_dash

SUMMARY = "summary"
_COMPLETION = "_STEPSCOPE_COMPLETE"  # set by a shell that asks how a word may go on


def request_of(words: Sequence[str]) -> ToolRequest | None:
    """What a command line asks for; None if it takes the library to know."""
    if not words or os.environ.get(_COMPLETION):
        return None
    if words[0] != SUMMARY and all(tool.name != words[0] for tool in TOOLS):
        return None
    options = OF_SUMMARY if words[0] == SUMMARY else OF_TOOLS
    return _read(words[0], words[1:], {name: option for option in options for name in option.names})


def _read(tool: str, words: Sequence[str], options: dict[str, Option]) -> ToolRequest | None:
    paths: list[str] = []
    values: dict[str, Any] = {}
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            paths.append(word)
        elif not _take(word, left, options, values):
            return None
    if len(paths) != 1:
        return None
    values["output"] = stdout_if_dash(values.get("output"))
    return ToolRequest(tool=tool, path=paths[0], **values)


def _take(word: str, left: Any, options: dict[str, Option], values: dict[str, Any]) -> bool:
    """Reads an option with its value, which may be the next word; False for what is unusual about it."""
    name, sign, text = word.partition("=")
    option = options.get(name)
    if option is None or (sign and not name.startswith("--")) or (option.field in values and not option.repeatable):
        return False
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
