"""Defaults of options from files: `[tool.stepscope]` of a project's `pyproject.toml`, and a file of the user.

    [tool.stepscope.run]
    logdir = "profiles"
    skip = 20

A project's defaults come before the user's, and what stands on the command line comes before both.  The user's file is
`stepscope/config.toml` in the folder for settings, such as `~/.config`, with the same tables without `tool.stepscope`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from stepscope.errors import UsageError

_PROJECT, _TABLE = "pyproject.toml", b"[tool.stepscope"


def read() -> dict[str, dict[str, Any]]:
    """Option -> value by command, with the names of the commands' parameters.

    Raises:
        UsageError: a file is not TOML, or has something else than tables of options.
    """
    found: dict[str, dict[str, Any]] = {}
    for _, tables in read_files():
        for command, options in tables.items():
            named = {_field_of(name): value for name, value in options.items()}
            found[command] = found.get(command, {}) | named
    return found


def check_names(command: str, known: Sequence[str]) -> None:
    """Raises UsageError if a file has a default for an option that a command does not have.

    Args:
        command: the command's name.
        known: its options as the files write them, such as `stop-after`.
    """
    for path, tables in read_files():
        for name in tables.get(command, {}):
            written = name.replace("_", "-")
            if written not in known:
                import difflib

                near = difflib.get_close_matches(written, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"see stepscope {command} --help"
                raise UsageError(f"{command} has no option {name}", path=path, hint=hint)


@cache
def read_files() -> tuple[tuple[Path, Mapping[str, Mapping[str, Any]]], ...]:
    """The files with defaults, the user's first, and in each a table of options by command.  Raises UsageError."""
    found = []
    for path, tables in ((_user_file(), ()), (_project_file(), ("tool", "stepscope"))):
        if path is None:
            continue
        commands = _read_tables(path, tables)
        for command, options in commands.items():
            if not isinstance(options, Mapping):
                raise UsageError(f"{command} is not a table of options", path=path, hint=f"write [{command}]")
        found.append((path, commands))
    return tuple(found)


def _field_of(option: str) -> str:
    """The name of an option's parameter: `format` is a word of Python's."""
    return "form" if option == "format" else option.replace("-", "_")


def _user_file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or os.environ.get("APPDATA") or Path.home() / ".config"
    return Path(home) / "stepscope" / "config.toml"


def _project_file() -> Path | None:
    """The `pyproject.toml` of this folder or the nearest one above it."""
    here = Path.cwd()
    return next((path for folder in (here, *here.parents) if (path := folder / _PROJECT).is_file()), None)


def _read_tables(path: Path, tables: tuple[str, ...]) -> Mapping[str, Any]:
    try:
        content = path.read_bytes()
    except OSError:  # there is none, or it is not ours to read
        return {}
    if tables and _TABLE not in content:  # another project's file: parsing it would cost every command
        return {}
    import tomllib

    try:
        found: Any = tomllib.loads(content.decode())
    except ValueError as error:
        raise UsageError(f"this is not TOML: {error}", path=path, hint="mend it, or remove the file") from error
    for table in tables:
        found = found.get(table, {})
    return found if isinstance(found, Mapping) else {}
