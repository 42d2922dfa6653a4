"""`stepscope report`: one HTML file about a session, to send to others."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from stepscope import __version__
from stepscope.cli.options import HostName, ProfilePath, RunName, option, stdout_if_dash
from stepscope.cli.show import file_size_text, put, remote_address, working
from stepscope.cli.tools import check_folder, load_profile

if TYPE_CHECKING:
    from stepscope.api import LoadedProfile


def render(profile: LoadedProfile, place: str) -> str:
    """The file, which calls the profile by a place."""
    from stepscope.sheets.session_sheet import render_sheet

    return render_sheet(profile, __version__, datetime.datetime.now().astimezone(), place)


def report(
    path: ProfilePath,
    output: Annotated[Path, option("--output", "-o", value="FILE", help="The file to write; - is stdout.")] = Path(
        "report.html"
    ),
    run: RunName = None,
    host: HostName = None,
) -> None:
    """Writes one HTML file to send.  It has charts, advice and the timeline, and needs no network."""
    file = stdout_if_dash(output)
    check_folder(output)
    with working() as progress:
        profile = load_profile(path, run, host, progress)
        content = render(profile, profile.path).encode("utf-8", "replace")  # a path may hold bytes that are no text
    put(content, file)
    if file is not None:
        print(f"wrote {remote_address(file) or file} ({file_size_text(len(content))})", file=sys.stderr)
