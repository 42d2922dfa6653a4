"""Commands that are built on first use: one call of `stepscope` needs one command, not two dozen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from stepscope.analysis.registry import GUIDE_NAMES
from stepscope.cli import defaults, process
from stepscope.cli.options import Option
from stepscope.cli.parameters import parameter
from stepscope.engines.budget import VARIABLE as MEMORY_VARIABLE
from stepscope.engines.budget import parse_size
from stepscope.engines.choice import VARIABLE as ENGINE_VARIABLE
from stepscope.engines.choice import parse_engine
from stepscope.engines.spilling import allow
from stepscope.errors import UsageError

# ---- `--engine` and `--memory`, which every command takes that reads profiles ----------------------------------------
# They are added to the commands here and not declared by each.  Their values become variables of this process's
# environment, which is where `stepscope.load` looks when it is called without them.


WITHOUT = frozenset({"demo", "run", "capture", "trigger", "man", "skill"})
"""Commands that read no profile."""

ENGINE = Option(
    "engine",
    ("--engine",),
    "Where to analyse the hosts: local, ray or dask, with =ADDRESS for a cluster (default: this machine).",
    "ENGINE",
)
MEMORY = Option("memory", ("--memory",), "The memory to use, such as 4GB (default: half of what is free).", "SIZE")


def use_engine(texts: list[str] | None) -> None:
    """Has this process use an engine.  Raises UsageError."""
    if len(texts or ()) > 1:
        raise UsageError(f"--engine is given {len(texts or ())} times", hint="a command uses one engine")
    for text in texts or ():
        os.environ[ENGINE_VARIABLE] = str(parse_engine(text))


def use_memory(text: str | None) -> None:
    """Has this process keep to a size of memory.  Raises UsageError."""
    if text is not None:
        parse_size(text)
        os.environ[MEMORY_VARIABLE] = text
        if process.words is not None:
            allow()


def _declare(
    engine: Annotated[list[str] | None, parameter(ENGINE, callback=use_engine)] = None,
    memory: Annotated[str | None, parameter(MEMORY, callback=use_memory)] = None,
) -> None:
    """Declares the options; it is never called."""


def add_resource_options(name: str, command: Any) -> None:
    """Adds the options to a command of the command-line library, unless it reads no profile."""
    if name in WITHOUT:
        return
    app = typer.Typer(add_completion=False)
    app.command()(_declare)
    own = {option.name for option in command.params}
    shared: list[Any] = [*typer.main.get_command(app).params]
    for option in shared:
        option.expose_value = False  # the command's function does not take it
        option.hidden = option.name in own  # `sql --memory` sets its own limit as well: one line in the help
        command.params.append(option)


Register = Callable[[typer.Typer], object]
"""Adds one command to an app."""


class LateCommands(Mapping[str, Any]):
    """The commands of a group by name, in the order of the help; each is built on first use.

    Args:
        registers: adds each command to an app; may import the modules that only this command needs.
        panels: the heading of each command in the help.
    """

    def __init__(self, registers: Mapping[str, Register], panels: Mapping[str, str]) -> None:
        self._registers = registers
        self._panels = panels
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Any:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
        self._registers[name](app)
        command = typer.main.get_command(app)
        command.rich_help_panel = self._panels[name]  # type: ignore[attr-defined]
        add_resource_options(name, command)
        return command

    def __contains__(self, name: object) -> bool:
        return name in self._registers

    def __iter__(self) -> Iterator[str]:
        return iter(self._registers)

    def __len__(self) -> int:
        return len(self._registers)


def _is_path(word: str) -> bool:
    """Whether a word given instead of a command is a path."""
    return not word.startswith("-") and ("/" in word or os.sep in word or Path(word).exists())


def _help_words(ctx: Any, words: list[str]) -> list[str]:
    """Turns `help COMMAND` into `COMMAND --help`; `help` alone shows the help and exits."""
    if words:
        return [words[0], "--help"]
    typer.echo(ctx.get_help())
    raise typer.Exit


def _command_meant(word: str) -> str:
    """The command that a name in the style of Python or of the TensorFlow Profiler's guide stands for."""
    return {"trace_viewer": "open", **GUIDE_NAMES}.get(word, word.replace("_", "-"))


def _option_names(command: Any) -> list[str]:
    """The long names of a command's options, without their dashes."""
    return [name[2:] for option in command.params for name in option.opts if name.startswith("--")]


def make_group_class(registers: Mapping[str, Register], panels: Mapping[str, str]) -> type[TyperGroup]:
    """Makes the class of a group with these commands; see LateCommands."""

    class Group(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = cast(Any, LateCommands(registers, panels))  # which is only read

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            if args and args[0] == "help":
                return super().resolve_command(ctx, _help_words(ctx, args[1:]))
            if args and args[0] not in self.commands and (named := _command_meant(args[0])) in self.commands:
                args = [named, *args[1:]]
            if args and args[0] not in self.commands and _is_path(args[0]):
                ctx.fail(f"{args[0]!r} is not a command. To read the profile: stepscope summary {args[0]}")
            name, command, rest = super().resolve_command(ctx, args)
            if not {"--help", "-h"} & set(rest):
                defaults.check_names(str(name), _option_names(command))
            return name, command, rest

    return Group
