"""`stepscope man`: the manual page, made from the commands and their options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

_MARKED = re.compile(r"`([^`]*)`")


def man() -> None:
    """Prints the manual page, in the format of man: stepscope man > stepscope.1."""
    from stepscope.cli.commands import PANELS, app

    group = typer.main.get_command(app)
    typer.echo("\n".join(_page(group, PANELS)))


def _page(group: Any, panels: Any) -> Iterator[str]:
    from stepscope import __version__

    yield f'.TH STEPSCOPE 1 "" "stepscope {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"stepscope \\- {_text(group.help)}"
    yield ".SH SYNOPSIS"
    yield ".B stepscope"
    yield "COMMAND [OPTIONS] [ARGUMENTS]"
    for panel, commands in panels.items():
        yield f".SH {_text(panel).upper()}"
        for name in commands:
            yield from _command(name, group.commands[name])
    yield ".SH EXIT STATUS"
    yield (
        "0: done. 1: the work failed; one line on stderr says what, where and what to do. 2: wrong usage. "
        "130: ended by Ctrl\\-C."
    )


def _command(name: str, command: Any) -> Iterator[str]:
    words = command.collect_usage_pieces(typer.Context(command))
    yield f".SS stepscope {name} {_text(' '.join(words))}"
    yield _text(command.help)
    for option in command.params:
        if option.param_type_name == "option" and not option.hidden:
            yield ".TP"
            yield rf"\fB{_text(', '.join(option.opts))}\fR{_value_text(option)}"
            yield _text(f"{option.help or ''}{_default_text(option)}")


def _value_text(option: Any) -> str:
    """The name of an option's value after a space, in italics; empty for a flag."""
    name = option.metavar or option.opts[0].lstrip("-").upper()
    return "" if option.is_flag else rf" \fI{_text(name)}\fR"


def _default_text(option: Any) -> str:
    """` Default: 10.`; empty for a flag, and where nothing is the default."""
    return "" if option.is_flag or option.default in (None, "", [], ()) else f" Default: {option.default}."


def _text(text: str) -> str:
    """A text for man: one line, without marks, with its special characters escaped."""
    line = _MARKED.sub(r"\1", " ".join(text.split())).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line
