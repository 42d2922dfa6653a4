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
    """

    def __init__(self, registers: Mapping[str, Register]) -> None:
        self._registers = registers
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Any:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        self._registers[name](app)
        return typer.main.get_command(app)

    def __contains__(self, name: object) -> bool:
        return name in self._registers

    def __iter__(self) -> Iterator[str]:
        return iter(self._registers)

    def __len__(self) -> int:
        return len(self._registers)


def group_of(registers: Mapping[str, Register]) -> type[TyperGroup]:
    """The class of a group that has these commands."""

    class Group(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = cast(Any, LateCommands(registers))  # which is only read

    return Group
