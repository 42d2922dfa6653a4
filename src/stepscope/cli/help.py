"""The help of the commands, made of their declarations."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from stepscope.cli.commands import HELP, VERSION, Command, all_panels
from stepscope.cli.options import Option, option
from stepscope.cli.words import Parameter

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

TITLE = "Shows where the step time of a training job goes and what to change first."
_EXAMPLES = (
    "stepscope run train.py",
    "stepscope summary logs",
    "stepscope op-stats logs --sort=-avg_us --where type=mm",
    "stepscope steps logs --format csv --output steps.csv",
)
_TYPES = {str: "str", int: "int", float: "float", bool: "bool", Path: "path"}
_ROOT = tuple(
    Parameter("", each, bool, False, False)
    for each in (
        VERSION,
        option("--install-completion", help="Install completion for the current shell."),
        option(
            "--show-completion",
            help="Show completion for the current shell, to copy it or customize the installation.",
        ),
        HELP,
    )
)


def usage(command: Command) -> str:
    """The words of a command: `[OPTIONS] {PATH} [MORE]...`."""
    return " ".join(["[OPTIONS]", *(_usage_of(each) for each in command.parameters if each.is_argument)])


def _usage_of(argument: Parameter) -> str:
    name = f"{{{argument.option.value}}}" if argument.is_required else f"[{argument.option.value}]"
    return name + "..." * argument.repeatable


def default_of(parameter: Parameter) -> str:
    """The default as the help says it; empty where nothing is, and for a flag that is off."""
    if parameter.is_required or parameter.default is None or parameter.default is False:
        return ""
    return parameter.option.names[0].lstrip("-") if parameter.default is True else str(parameter.default)


def show(command: Command) -> None:
    """Prints the help of a command."""
    console = _console(sys.stdout)
    _print_head(console, f"stepscope {command.name} {usage(command)}", command.help)
    shown = [each for each in command.parameters if not each.option.hidden]
    arguments, options = [each for each in shown if each.is_argument], [each for each in shown if not each.is_argument]
    if arguments:
        _print_panel(console, "Arguments", _parameter_rows(arguments))
    _print_panel(console, "Options", _parameter_rows([*options, Parameter("", HELP, bool, False, False)]))
    _print_examples(console, command.examples)
    console.print()


def show_all(to: TextIO) -> None:
    """Prints the help of all commands."""
    console = _console(to)
    _print_head(console, "stepscope [OPTIONS] COMMAND [ARGS]...", TITLE)
    _print_panel(console, "Options", _parameter_rows(_ROOT))
    panels = all_panels()
    width = max(len(command.name) for panel in panels.values() for command in panel)
    for title, panel in panels.items():
        rows = [(command.name.ljust(width), _text_of(command.help.split("\n\n")[0])) for command in panel]
        _print_panel(console, title, rows)
    _print_examples(console, _EXAMPLES)
    console.print()


def _console(to: TextIO) -> Console:
    from rich.console import Console

    return Console(file=to)


def _print_head(console: Console, words: str, about: str) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print(Padding(Text.assemble(("Usage: ", "yellow"), (words, "bold")), (1, 1, 1, 1)))
    for paragraph in about.split("\n\n"):
        console.print(Padding(_text_of(paragraph), (0, 1, 1, 1)))


def _print_examples(console: Console, examples: Sequence[str]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    if examples:
        for line in ("Examples:", *examples):
            console.print(Padding(Text(line), (0, 1, 1, 1)) if line != "Examples:" else Padding(Text(line), (0, 1)))


def _print_panel(console: Console, title: str, rows: Iterable[Sequence[RenderableType]]) -> None:
    from rich.panel import Panel
    from rich.table import Table

    table = Table(box=None, show_header=False, expand=True, pad_edge=False, padding=(0, 1))
    filled = list(rows)
    for at in range(len(filled[0]) - 1):
        table.add_column(no_wrap=at < len(filled[0]) - 2, overflow="fold")
    table.add_column(ratio=1)
    for row in filled:
        table.add_row(*row)
    console.print(Panel(table, title=title, title_align="left", border_style="dim"))


def _parameter_rows(parameters: Sequence[Parameter]) -> list[list[RenderableType]]:
    """The rows of a panel: a star if it is required, its names, those that mean False, its value, its help."""
    from rich.text import Text

    needs_star = any(each.is_required for each in parameters)
    rows = []
    for each in parameters:
        long, short = _names_of(each.option)
        star = [Text("*" if each.is_required else "", "red")] if needs_star else []
        names = [Text(long, "bold cyan"), Text(short, "bold cyan" if each.is_argument else "bold green")]
        rows.append([*star, *names, Text(each.option.off, "bold magenta"), "", Text(_value_of(each), "bold yellow"),
                     _help_of(each)])  # fmt: skip
    return rows


def _names_of(declared: Option) -> tuple[str, str]:
    """The long names, and the short ones; of an argument what its value is called, as a short one."""
    if not declared.names:
        return "", declared.value
    long = [name for name in declared.names if name.startswith("--")]
    return ",".join(long), ",".join(name for name in declared.names if name not in long)


def _value_of(parameter: Parameter) -> str:
    """What a value is: its name or its type, and its range."""
    declared = parameter.option
    if declared.value and not parameter.is_argument:
        name = declared.value
    else:
        kind = "|".join(parameter.choices) or _TYPES[parameter.type]
        kind = f"list[{kind}]" if parameter.repeatable else kind
        return f"<{kind} range> {_range_of(declared)}" if _range_of(declared) else f"<{kind}>"
    return f"{name} {_range_of(declared)}".rstrip()


def _range_of(declared: Option) -> str:
    if declared.least is None:
        return ""
    return f"[x>={declared.least}]" if declared.most is None else f"[{declared.least}<=x<={declared.most}]"


def _help_of(parameter: Parameter) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    default = default_of(parameter)
    notes: Iterator[str] = (
        text
        for text in (
            f"[env var: {parameter.option.variable}]" if parameter.option.variable else "",
            f"[default: {default}]" if default else "",
            "[required]" if parameter.is_required else "",
        )
        if text
    )
    return Group(_text_of(parameter.option.help), *(Text(note, "dim") for note in notes))


def _text_of(paragraph: str) -> RenderableType:
    """A paragraph on one line, with what stands in backquotes as code."""
    from rich.text import Text

    text = Text()
    for at, part in enumerate(re.split(r"`([^`]*)`", paragraph.replace("\n", " "))):
        text.append(part, "bold cyan" if at % 2 else "")
    return text
