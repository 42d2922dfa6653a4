"""`stepscope hlo-graph`: the surroundings of an instruction of an XLA program, as a table, DOT or text."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from stepscope.cli.commands import Output, ProfilePath, RunName
from stepscope.cli.options import OutputFormat
from stepscope.cli.show import put, show_report, working
from stepscope.cli.tools import check_output, load_profile


class GraphFormat(StrEnum):
    """The forms of a graph."""

    TABLE = "table"
    JSON = "json"
    DOT = "dot"
    TEXT = "text"


_Program = Annotated[str, typer.Option("--program", metavar="NAME", help="The program (default: the slowest).")]
_Node = Annotated[
    str, typer.Option("--node", metavar="NAME", help="The instruction in the middle (default: the slowest).")
]
_Hops = Annotated[int, typer.Option("--hops", metavar="N", min=0, max=100, help="How many edges to go from it.")]
_Find = Annotated[
    str, typer.Option("--find", metavar="TEXT", help="List the instructions that hold this text instead.")
]
_Form = Annotated[
    GraphFormat, typer.Option("--format", help="dot for Graphviz; text for all instructions of the program.")
]
_Host = Annotated[str | None, typer.Option("--host", metavar="NAME", help="The host to read (default: the first).")]


def hlo_graph(
    path: ProfilePath,
    program: _Program = "",
    node: _Node = "",
    hops: _Hops = 3,
    find: _Find = "",
    form: _Form = GraphFormat.TABLE,
    output: Output = None,
    run: RunName = None,
    host: _Host = None,
) -> None:
    """Shows what is around an instruction of an XLA program; writes Graphviz DOT or the program's text."""
    from stepscope.analysis.hlo.programs import programs_of
    from stepscope.analysis.xla import graph_viewer_tool
    from stepscope.analysis.xla.graph_export import dot, program_text

    shown = OutputFormat.JSON if form is GraphFormat.JSON else OutputFormat.TABLE
    check_output(shown, output)
    with working() as progress:
        profile = load_profile(path, run, host, progress)
        trace = profile.trace(profile.hosts[0])
        if form is GraphFormat.TEXT:
            place = graph_viewer_tool.find_program(trace, program)
            put("".join(program_text(programs_of(trace).module(place))).encode(), output)
            return
        found = graph_viewer_tool.graph_around(trace, program, node, hops, find)
    if form is GraphFormat.DOT:
        put(dot(found.graphs[0]).encode(), output)
    else:
        show_report(graph_viewer_tool.merge([found]), shown, output, None)
