"""`stepscope skill`: instructions with which an agent that edits code uses the other commands."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_SHARED = Path(".agents", "skills")  # where the open format of skills has agents of any maker look
_OWN = ".*/skills"  # an agent's own folder, where it has one
_FILE = Path("stepscope", "SKILL.md")


class Action(StrEnum):
    """What to do with the skill."""

    INSTALL = "install"
    SHOW = "show"


def skill(
    action: Annotated[Action, typer.Argument(metavar="install|show", help="Write the skill, or print it.")],
    into: Annotated[
        Path | None, typer.Option("--into", metavar="FOLDER", help="The folder of skills (default: those found here).")
    ] = None,
    for_user: Annotated[
        bool, typer.Option("--user", help="Install for all your projects, below your home folder.")
    ] = False,
) -> None:
    """Installs a skill: how an agent profiles a job and checks a change. Writes SKILL.md below .agents/skills."""
    from stepscope import agents
    from stepscope.cli.show import write_file

    text = Path(agents.__file__).with_name("SKILL.md").read_text("utf-8")
    if action is Action.SHOW:
        print(text, end="")
        return
    base = Path.home() if for_user else Path()
    for folder in [into] if into else sorted({base / _SHARED, *base.glob(_OWN)}):
        file = folder / _FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text.encode())
        print(f"wrote {file}")
