"""`--engine` and `--memory`, which every command takes that reads profiles.

They are added to the commands here and not declared by each.  Their values become variables of this process's
environment, which is where `stepscope.load` looks when it is called without them.
"""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from stepscope.cli import process
from stepscope.cli.options import Option
from stepscope.cli.parameters import parameter
from stepscope.engines.budget import VARIABLE as MEMORY_VARIABLE
from stepscope.engines.budget import parse_size
from stepscope.engines.choice import VARIABLE as ENGINE_VARIABLE
from stepscope.engines.choice import parse_engine
from stepscope.engines.spilling import forget_library, restart_with_spilling
from stepscope.errors import UsageError

WITHOUT = frozenset({"demo", "run", "capture", "trigger", "man"})
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
            restart_with_spilling(process.words)
            forget_library()


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
