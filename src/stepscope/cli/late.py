"""Commands that are made when they are asked for: one call of `stepscope` needs one command, not two dozen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import typer
from typer.core import TyperGroup

Register = Callable[[typer.Typer], None]
"""Adds one command to an app."""


class LateCommands(Mapping[str, Any]):
    """The commands of a group by name, in the order of the help; each is made on first use.

    Args:
        registers: what adds each command to an app; may import the modules that only this command needs.
        panels: the heading in the help under which each command stands.
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
        return command

    def __contains__(self, name: object) -> bool:
        return name in self._registers

    def __iter__(self) -> Iterator[str]:
        return iter(self._registers)

    def __len__(self) -> int:
        return len(self._registers)


def _is_place(word: str) -> bool:
    """Whether a word in the place of a command is a path."""
    return not word.startswith("-") and ("/" in word or os.sep in word or Path(word).exists())


def _asking_for_help(ctx: Any, words: list[str]) -> list[str]:
    """What `help COMMAND` means; `help` alone shows the help at once, as many expect of it."""
    if words:
        return [words[0], "--help"]
    typer.echo(ctx.get_help())
    raise typer.Exit


def group_of(registers: Mapping[str, Register], panels: Mapping[str, str]) -> type[TyperGroup]:
    """The class of a group that has these commands; see LateCommands."""

    class Group(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = cast(Any, LateCommands(registers, panels))  # which is only read

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            if args and args[0] == "help":
                return super().resolve_command(ctx, _asking_for_help(ctx, args[1:]))
            if args and args[0] not in self.commands and _is_place(args[0]):
                ctx.fail(f"{args[0]!r} is no command. To see what the profile tells: stepscope summary {args[0]}")
            return super().resolve_command(ctx, args)

    return Group
