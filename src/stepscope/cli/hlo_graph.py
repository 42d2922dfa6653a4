"""`stepscope hlo-graph`: the surroundings of an instruction of an XLA program, as a table, DOT or text."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from stepscope.cli.options import Output, OutputFormat, ProfilePath, RunName, option
from stepscope.cli.show import put, show_report, working
from stepscope.cli.tools import check_output, load_profile


class GraphFormat(StrEnum):
    """The forms of a graph."""

    TABLE = "table"
    JSON = "json"
    DOT = "dot"
    TEXT = "text"


_Program = Annotated[str, option("--program", value="NAME", help="The program (default: the slowest).")]
_Node = Annotated[str, option("--node", value="NAME", help="The instruction in the middle (default: the slowest).")]
_Hops = Annotated[int, option("--hops", value="N", least=0, most=100, help="How many edges around it to show.")]
_Find = Annotated[str, option("--find", value="TEXT", help="Instead list the instructions that contain this text.")]
_Form = Annotated[
    GraphFormat, option("--format", help="dot is for Graphviz, text has all instructions of the program.")
]
_Host = Annotated[str | None, option("--host", value="NAME", help="The host to read (default: the first).")]


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
    """Shows the neighbours of an instruction of an XLA program.  It also writes Graphviz DOT and the program's text."""
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
