"""`stepscope open` for the command-line library."""

from __future__ import annotations

from typing import Annotated

import typer

from stepscope.cli.options import (
    ADDRESS,
    ALLOWED_HOST,
    LOGDIR_HELP,
    MOST_PORT,
    NO_BROWSER,
    PORT,
    OpenRequest,
)  # fmt: skip
from stepscope.cli.parameters import parameter
from stepscope.cli.serve import open_page


def open_command(
    logdir: Annotated[str, typer.Argument(metavar="LOGDIR", help=LOGDIR_HELP)],
    port: Annotated[int | None, parameter(PORT, min=0, max=MOST_PORT)] = None,
    host: Annotated[str, parameter(ADDRESS)] = OpenRequest.host,
    no_browser: Annotated[bool, parameter(NO_BROWSER)] = False,
    allowed_host: Annotated[list[str] | None, parameter(ALLOWED_HOST)] = None,
) -> None:
    """Opens the page: every tool and the timeline in the browser."""
    open_page(
        OpenRequest(path=logdir, port=port, host=host, no_browser=no_browser, allowed_host=tuple(allowed_host or ()))
    )
