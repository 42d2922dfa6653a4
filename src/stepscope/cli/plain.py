"""Reads the usual command lines without the command-line library: a tool, the summary or the page, a path, options.

Importing the library takes longer than showing a kept result.  Everything unusual is left to the library: help, wrong
words and all other commands.  A test checks that both readers agree.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from stepscope.analysis.registry import TOOLS
from stepscope.cli.options import (
    OPEN_OPTIONS,
    STDOUT,
    SUMMARY_OPTIONS,
    TOOL_OPTIONS,
    OpenRequest,
    Option,
    ToolRequest,
    stdout_if_dash,
)  # fmt: skip

SUMMARY = "summary"
OPEN = "open"
STDIN = "-"  # as a path
_COMPLETION = "_STEPSCOPE_COMPLETE"  # set by a shell that asks for completions


def parse_request(words: Sequence[str]) -> ToolRequest | OpenRequest | None:
    """The request that a command line makes; None if the library must read it."""
    if not words or os.environ.get(_COMPLETION):
        return None
    command = words[0]
    if command == OPEN:
        opening = _read_values(words[1:], OPEN_OPTIONS)
        return None if opening is None or "more" in opening else OpenRequest(**opening)
    if command != SUMMARY and all(tool.name != command for tool in TOOLS):
        return None
    values = _read_values(words[1:], SUMMARY_OPTIONS if command == SUMMARY else TOOL_OPTIONS)
    if values is None:
        return None
    values["output"] = stdout_if_dash(values.get("output"))
    return ToolRequest(tool=command, **values)


def _read_values(words: Sequence[str], options: Sequence[Option]) -> dict[str, Any] | None:
    """The paths and the options by field; None if anything is unusual."""
    named = {name: option for option in options for name in option.names}
    values: dict[str, Any] = {}
    left = iter(words)
    for word in left:
        if word.startswith("-") and word != STDIN:
            if not _read_option(word, left, named, values):
                return None
        elif "path" in values:
            values["more"] = (*values.get("more", ()), word)
        else:
            values["path"] = word
    return values if "path" in values else None


def _read_option(word: str, left: Any, options: dict[str, Option], values: dict[str, Any]) -> bool:
    """Reads an option and its value, which may be the next word; False if anything is unusual."""
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
