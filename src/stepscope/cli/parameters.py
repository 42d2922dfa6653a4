"""Options as the library wants them."""

from __future__ import annotations

from typing import Any

import typer

from stepscope.cli.options import Option


def parameter(option: Option, **more: Any) -> Any:
    """An option that stands in the signature of a command; `more` is what only the library checks."""
    return typer.Option(*option.names, help=option.help, **more)
