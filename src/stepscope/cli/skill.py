"""`stepscope skill`: instructions with which an agent that edits code uses the other commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from stepscope.cli.options import argument, option

_SHARED = Path(".agents", "skills")  # where the open format of skills has agents of any maker look
_OWN = ".*/skills"  # an agent's own folder, where it has one


def skill(
    action: Annotated[Literal["install", "show"], argument(value="install|show", help="Write the skill, or print it.")],
    into: Annotated[
        Path | None, option("--into", value="FOLDER", help="The folder of skills (default: those found here).")
    ] = None,
    for_user: Annotated[bool, option("--user", help="Install below your home folder, for all projects.")] = False,
) -> None:
    """Installs a skill that teaches agents to use Stepscope.  Writes SKILL.md below .agents/skills."""
    from stepscope import agents
    from stepscope.cli.show import write_file

    text = Path(agents.__file__).with_name("SKILL.md").read_text("utf-8")
    base = Path.home() if for_user else Path()
    if action == "show":
        print(text, end="")
        return
    for folder in [into] if into else sorted({base / _SHARED, *base.glob(_OWN)}):
        file = folder / "stepscope" / "SKILL.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text.encode())
        print(f"wrote {file}")
