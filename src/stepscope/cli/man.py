"""`stepscope man`: the manual page, made from the commands and their options."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stepscope.cli.commands import Command, all_panels
from stepscope.cli.help import TITLE, default_of, usage
from stepscope.cli.words import Parameter

_MARKED = re.compile(r"`([^`]*)`")


def man() -> None:
    """Prints the manual page, in the format of man: stepscope man > stepscope.1."""
    print("\n".join(_page()))


def _page() -> Iterator[str]:
    from stepscope import __version__

    yield f'.TH STEPSCOPE 1 "" "stepscope {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"stepscope \\- {_text(TITLE)}"
    yield ".SH SYNOPSIS"
    yield ".B stepscope"
    yield "COMMAND [OPTIONS] [ARGUMENTS]"
    for panel, commands in all_panels().items():
        yield f".SH {_text(panel).upper()}"
        for command in commands:
            yield from _command(command)
    yield ".SH EXIT STATUS"
    yield (
        "0: done. 1: the work failed; one line on stderr says what, where and what to do. 2: wrong usage. "
        "130: ended by Ctrl\\-C."
    )


def _command(command: Command) -> Iterator[str]:
    yield f".SS stepscope {command.name} {_text(usage(command))}"
    yield _text(command.help)
    for option in command.parameters:
        if not option.is_argument and not option.option.hidden:
            yield ".TP"
            yield rf"\fB{_text(', '.join(option.option.names))}\fR{_value_text(option)}"
            yield _text(f"{option.option.help}{_default_text(option)}")


def _value_text(option: Parameter) -> str:
    """The name of an option's value after a space, in italics; empty for a flag."""
    name = option.option.value or option.option.names[0].lstrip("-").upper()
    return "" if option.is_flag else rf" \fI{_text(name)}\fR"


def _default_text(option: Parameter) -> str:
    """` Default: 10.`; empty for a flag, and where nothing is the default."""
    return f" Default: {default_of(option)}." if default_of(option) and not option.is_flag else ""


def _text(text: str) -> str:
    """A text for man: one line, without marks, with its special characters escaped."""
    line = _MARKED.sub(r"\1", " ".join(text.split())).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line
