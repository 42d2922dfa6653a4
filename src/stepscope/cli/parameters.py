"""Options in the form that the command-line library takes."""

from __future__ import annotations

from typing import Any

import typer

from stepscope.cli.options import Option


def parameter(option: Option, **more: Any) -> Any:
    """An option for the signature of a command; `more` holds checks that only the library makes."""
    return typer.Option(*option.names, help=option.help, metavar=option.value or None, **more)
