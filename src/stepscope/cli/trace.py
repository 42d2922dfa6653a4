"""`stepscope trace`: exports a profile for other viewers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from stepscope.cli.options import HostName, ProfilePath, RunName, option, stdout_if_dash
from stepscope.cli.show import file_size_text, remote_address, working, write_file
from stepscope.errors import UsageError
from stepscope.export.registry import EXPORTS, export_named

NAMES = [export.name for export in EXPORTS]


def trace(
    path: ProfilePath,
    output: Annotated[
        Path,
        option("--output", "-o", value="FILE", help="The file to write; .gz compresses it, - means stdout."),
    ],
    form: Annotated[
        str, option("--format", value="NAME", help=f"The file format: {', '.join(NAMES)}, or that of a plugin.")
    ] = NAMES[0],
    run: RunName = None,
    host: HostName = None,
) -> None:
    """Exports the timeline to Perfetto or Chrome.  Also call stacks, to pprof and flame graphs."""
    from stepscope.cli.tools import check_folder, load_profile
    from stepscope.export import compress_pieces

    check_folder(output)
    export = export_named(form)
    to_stdout = stdout_if_dash(output) is None
    if to_stdout and sys.stdout.isatty():
        raise UsageError("a trace cannot be shown in a terminal", hint="give --output FILE, or write to a pipe")
    with working() as progress:
        profile = load_profile(path, run, host, progress)
        traces = (profile.correct_clock(profile.trace(name)) for name in profile.hosts)
        written = export.pieces(traces, len(profile.hosts))
        if to_stdout:
            size = sum(map(sys.stdout.buffer.write, written))
        else:
            size = write_file(output, compress_pieces(written) if output.suffix == ".gz" else written)
    name = "stdout" if to_stdout else remote_address(output) or output
    print(f"{name} ({file_size_text(size)}){_clocks_text(profile.clocks())}", file=sys.stderr)


def _clocks_text(clocks: Sequence[Mapping[str, Any]]) -> str:
    """By how much the clocks of hosts were set right."""
    wrong = [row for row in clocks if abs(row["ahead_ms"]) > row["uncertainty_ms"]]
    if not wrong:
        return ""
    worst = max(wrong, key=lambda row: abs(row["ahead_ms"]))
    return (
        f"; {len(wrong)} of {len(clocks)} clocks set right, by up to {abs(worst['ahead_ms']):,.3f} ms "
        f"(± {worst['uncertainty_ms']:,.3f}), from {worst['collectives']:,} collectives"
    )
