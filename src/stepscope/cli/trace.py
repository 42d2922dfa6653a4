"""`stepscope trace`: a profile as a file for other viewers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.show import working


class TraceFormat(StrEnum):
    """The forms of such a file."""

    PERFETTO = "perfetto"
    CHROME = "chrome"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("trace")(trace)


def trace(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A profile, a session folder, a logdir, or a parent.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write; with .gz it is compressed.")],
    form: Annotated[TraceFormat, typer.Option("--format", help="What kind of file.")] = TraceFormat.PERFETTO,
    run: Annotated[str | None, typer.Option("--run", help="The session to take; the newest if not given.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="The host to take; all hosts if not given.")] = None,
) -> None:
    """Writes the timeline for Perfetto (ui.perfetto.dev) or as Chrome's trace JSON."""
    from stepscope.cli.commands import check_folder, load_profile
    from stepscope.export import compressed, pieces
    from stepscope.report.export import write_file

    check_folder(output)
    with working() as progress:
        profile = load_profile(path, run, host, progress)
        traces = (profile.trace(name) for name in profile.hosts)
        written = pieces(traces, form.value, len(profile.hosts))
        write_file(output, compressed(written) if output.suffix == ".gz" else written)
    typer.echo(f"{output} ({output.stat().st_size / 1e6:,.1f} MB)", err=True)
