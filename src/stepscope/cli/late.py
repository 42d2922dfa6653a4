"""Commands that are made when they are asked for: one call of `stepscope` needs one command, not two dozen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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


def group_of(registers: Mapping[str, Register], panels: Mapping[str, str]) -> type[TyperGroup]:
    """The class of a group that has these commands; see LateCommands."""

    class Group(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = cast(Any, LateCommands(registers, panels))  # which is only read

    return Group
