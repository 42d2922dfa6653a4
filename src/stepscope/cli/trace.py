"""`stepscope trace`: exports a profile for other viewers."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.options import PATH_HELP, stdout_if_dash
from stepscope.cli.show import file_size_text, working
from stepscope.errors import UsageError


class TraceFormat(StrEnum):
    """The file formats that can be written."""

    PERFETTO = "perfetto"
    CHROME = "chrome"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("trace")(trace)


def trace(
    path: Annotated[str, typer.Argument(metavar="PATH", help=PATH_HELP)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write; .gz compresses it, - means stdout.")
    ],
    form: Annotated[TraceFormat, typer.Option("--format", help="The file format.")] = TraceFormat.PERFETTO,
    run: Annotated[str | None, typer.Option("--run", help="The session to export (default: the newest).")] = None,
    host: Annotated[str | None, typer.Option("--host", help="The host to export (default: all hosts).")] = None,
) -> None:
    """Writes the timeline for Perfetto (ui.perfetto.dev) or as Chrome's trace JSON."""
    from stepscope.cli.tools import check_folder, load_profile
    from stepscope.export import compress_pieces, pieces
    from stepscope.report.export import write_file

    check_folder(output)
    to_stdout = stdout_if_dash(output) is None
    if to_stdout and sys.stdout.isatty():
        raise UsageError("a trace cannot be shown in a terminal", hint="give --output FILE, or write to a pipe")
    with working() as progress:
        profile = load_profile(path, run, host, progress)
        traces = (profile.trace(name) for name in profile.hosts)
        written = pieces(traces, form.value, len(profile.hosts))
        if to_stdout:
            size = sum(map(sys.stdout.buffer.write, written))
        else:
            size = write_file(output, compress_pieces(written) if output.suffix == ".gz" else written)
    typer.echo(f"{'stdout' if to_stdout else output} ({file_size_text(size)})", err=True)
