"""The help of the commands, made of their declarations."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from stepscope.cli.commands import HELP, VERSION, Command, all_panels
from stepscope.cli.options import option
from stepscope.cli.words import Parameter
from stepscope.report.styled import Line, line_of, print_lines, screen_width, wrap_text

TITLE = "Shows where the step time of a training job goes and what to change first."
_EXAMPLES = (
    "stepscope run train.py",
    "stepscope summary stepscope-logs",
    "stepscope op-stats stepscope-logs --sort=-avg_us --where type=mm",
    "stepscope steps stepscope-logs --format csv --output steps.csv",
)
_ROOT = tuple(
    Parameter("", each, bool, False, False)
    for each in (
        VERSION,
        option("--install-completion", help="Install completion for this shell."),
        option("--show-completion", help="Show the script that does this."),
        HELP,
    )
)
_WIDEST_NAME = 28  # columns; what is longer has a line of its own
_WIDEST = 120  # columns: longer lines are hard to read


def usage(command: Command) -> str:
    """The words of a command: `[OPTIONS] PATH [MORE]...`."""
    return " ".join(["[OPTIONS]", *(_usage_of(each) for each in command.parameters if each.is_argument)])


def _usage_of(argument: Parameter) -> str:
    name = argument.option.value if argument.is_required else f"[{argument.option.value}]"
    return name + "..." * (argument.repeatable and " " not in name)


def names_of(parameter: Parameter) -> str:
    """The names of an option; of an argument what its value is called."""
    names = sorted((*parameter.option.names, parameter.option.off), key=lambda name: name.startswith("--"))
    return ", ".join(filter(None, names)) or parameter.option.value


def value_of(parameter: Parameter) -> str:
    """What the value of an option is called; empty for a flag and for an argument."""
    if parameter.is_flag or parameter.is_argument:
        return ""
    name = "N" if parameter.type in (int, float) else parameter.option.names[0].lstrip("-").upper()
    return parameter.option.value or name


def about(parameter: Parameter) -> str:
    """What a parameter does, its choices, its variable and its default: a line of text."""
    declared, default = parameter.option, parameter.default
    has_default = not (parameter.is_required or parameter.is_flag or default in (None, ""))
    notes = (
        ", ".join(parameter.choices),
        f"variable: {declared.variable}" if declared.variable else "",
        f"default: {default}" if has_default else "",
    )
    said = "; ".join(filter(None, notes))
    return plain(f"{declared.help.removesuffix('.')} ({said})." if said else declared.help)


def first_sentence(command: Command) -> str:
    """What a command does, in the list of all."""
    return plain(re.split(r"(?<=\.)\s", command.help, maxsplit=1)[0])


def plain(text: str) -> str:
    """A text on one line, without the marks of code."""
    return " ".join(text.replace("`", "").split())


def show(command: Command) -> None:
    """Prints the help of a command."""
    shown = [each for each in command.parameters if not each.option.hidden]
    arguments, options = [each for each in shown if each.is_argument], [each for each in shown if not each.is_argument]
    parts = {"Arguments": arguments, "Options": [*options, Parameter("", HELP, bool, False, False)]}
    parts = {title: part for title, part in parts.items() if part}
    rows = {title: _parameter_rows(part) for title, part in parts.items()}
    _print(sys.stdout, f"stepscope {command.name} {usage(command)}", command.help, rows, command.examples)


def show_all(to: TextIO) -> None:
    """Prints the help of all commands."""
    panels = {
        title: [(command.name, first_sentence(command)) for command in panel] for title, panel in all_panels().items()
    }
    _print(to, "stepscope COMMAND [OPTIONS] ...", TITLE, panels | {"Options": _parameter_rows(_ROOT)}, _EXAMPLES)


def _parameter_rows(parameters: Iterable[Parameter]) -> list[tuple[str, str]]:
    return [(f"{names_of(each)} {value_of(each)}".rstrip(), about(each)) for each in parameters]


def _print(
    to: TextIO, words: str, text: str, parts: Mapping[str, Sequence[tuple[str, str]]], examples: Sequence[str]
) -> None:
    """Prints usage, paragraphs, and parts of names with their meaning in a second column."""
    width = min(screen_width(), _WIDEST)
    lines: list[Line] = [(("Usage: ", "yellow"), (words, "bold"))]
    for paragraph in text.split("\n\n"):
        lines += [line_of(""), *map(line_of, wrap_text(plain(paragraph), width))]
    for title, rows in parts.items():
        lines += [line_of(""), line_of(f"{title}:", "bold")]
        column = min(max(len(name) for name, _ in rows), _WIDEST_NAME)
        below = " " * (column + 4)
        for name, meaning in rows:
            first, *others = wrap_text(meaning, max(width - column - 4, 20))
            named = ("  ", ""), (name.ljust(column), "cyan")
            lines += [named, line_of(below + first)] if len(name) > column else [(*named, ("  " + first, ""))]
            lines += [line_of(below + more) for more in others]
    if examples:
        lines += [line_of(""), line_of("Examples:", "bold"), *(line_of(f"  {line}") for line in examples)]
    print_lines(lines, to)
