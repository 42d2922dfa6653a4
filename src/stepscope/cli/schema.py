"""`stepscope schema`: the form of a tool's JSON."""

from __future__ import annotations

from typing import Annotated

from stepscope.analysis.registry import tool_named
from stepscope.cli.options import argument
from stepscope.errors import UsageError
from stepscope.report.schemas import FOLDER, NO_TOOLS


def print_schema(
    tool: Annotated[
        str, argument(value="TOOL", help="A tool, such as overview; findings, or compare, whatif, runs, gate, doctor.")
    ],
) -> None:
    """Prints the JSON Schema of a tool's result.  Each field has its unit and meaning."""
    path = FOLDER / f"{tool if tool in NO_TOOLS else tool_named(tool).name}.json"
    if not path.is_file():
        raise UsageError(f"the package that adds {tool} has no schema", hint="only tools of Stepscope have one")
    print(path.read_text("utf-8"), end="")
