"""`stepscope hlo-graph`: the surroundings of an instruction of an XLA program, as a table, DOT or text."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.options import stdout_if_dash
from stepscope.cli.show import show_report, working


class GraphFormat(StrEnum):
    """The forms of a graph."""

    TABLE = "table"
    JSON = "json"
    DOT = "dot"
    TEXT = "text"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("hlo-graph")(hlo_graph)


def hlo_graph(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A profile, a session folder, a logdir, or a parent.")],
    program: Annotated[str, typer.Option("--program", help="The program; the slowest if not given.")] = "",
    node: Annotated[str, typer.Option("--node", help="The instruction in the middle; the slowest by default.")] = "",
    hops: Annotated[int, typer.Option("--hops", min=0, max=100, help="How far to go from it.")] = 3,
    find: Annotated[str, typer.Option("--find", help="List the instructions that hold this text instead.")] = "",
    form: Annotated[
        GraphFormat, typer.Option("--format", help="dot for Graphviz; text for all instructions of the program.")
    ] = GraphFormat.TABLE,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; stdout if not given.")
    ] = None,
    run: Annotated[str | None, typer.Option("--run", help="The session to take; the newest if not given.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="The host to take; the first if not given.")] = None,
) -> None:
    """Shows what is around an instruction of an XLA program; writes Graphviz DOT or the program's text."""
    from stepscope.analysis.hlo.programs import programs_of
    from stepscope.analysis.xla import graph_viewer_tool
    from stepscope.analysis.xla.graph_export import dot, program_text
    from stepscope.cli.options import OutputFormat
    from stepscope.cli.tools import check_output, load_profile

    shown = OutputFormat.JSON if form is GraphFormat.JSON else OutputFormat.TABLE
    check_output(shown, output)
    with working() as progress:
        profile = load_profile(path, run, host, progress)
        trace = profile.trace(profile.hosts[0])
        if form is GraphFormat.TEXT:
            place = graph_viewer_tool.find_program(trace, program)
            _write("".join(program_text(programs_of(trace).module(place))), output)
            return
        found = graph_viewer_tool.graph_around(trace, program, node, hops, find)
    if form is GraphFormat.DOT:
        _write(dot(found.graphs[0]), output)
    else:
        show_report(graph_viewer_tool.merge([found]), shown, stdout_if_dash(output), None)


def _write(text: str, output: Path | None) -> None:
    from stepscope.report.export import write_file

    file = stdout_if_dash(output)
    if file is None:
        sys.stdout.write(text)
    else:
        write_file(file, text.encode())
