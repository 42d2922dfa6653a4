"""`stepscope man`: the manual page, made from the commands and their options."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.cli.commands import Command, all_panels
from stepscope.cli.help import TITLE, about, names_of, plain, usage, value_of


def man() -> None:
    """Prints the manual page: stepscope man > stepscope.1."""
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
    for each in command.parameters:
        if not each.is_argument and not each.option.hidden:
            yield ".TP"
            yield rf"\fB{_text(names_of(each))}\fR \fI{_text(value_of(each))}\fR"
            yield _text(about(each))


def _text(text: str) -> str:
    """A text for man: one line, without marks, with its special characters escaped."""
    line = plain(text).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line
