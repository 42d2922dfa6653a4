"""The options of the commands, each declared once.

A command is a function whose parameters are annotated with what is declared here.  `stepscope.cli.words` reads its
words; help, completion and the manual page are made of the same declarations.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from stepscope.records import dataclass

MOST_PORT = 65535
STDOUT = "-"  # as an --output


class OutputFormat(StrEnum):
    """The formats of a report."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    HTML = "html"
    MARKDOWN = "markdown"


def stdout_if_dash(output: Path | None) -> Path | None:
    """The file of an --output; None, which means stdout, for a dash."""
    return None if str(output) == STDOUT else output


@dataclass(frozen=True)
class Option:
    """An option or, without names, an argument, as an annotation of a command's parameter.

    What a value is follows from the parameter's type: bool is a flag, a list may be given several times.

    Attributes:
        names: as written on the command line, the long one first.
        help: what it does, in one or two sentences.
        value: what the help calls its value; empty where the type says enough.
        least, most: the range of a number.
        off: the name that means False, for a flag that is on.
        check: turns the value into what the command takes.
        variable: of the environment, where the value comes from if it is not given.
        hidden: whether the help leaves it out.
    """

    names: tuple[str, ...]
    help: str
    value: str = ""
    least: float | None = None
    most: float | None = None
    off: str = ""
    check: Callable[[Any], Any] | None = None
    variable: str = ""
    hidden: bool = False


def option(*names: str, help: str = "", value: str = "", **more: Any) -> Option:  # noqa: A002 - the field's name
    """An option of a command; `more` are further fields of `Option`."""
    return Option(names, help, value, **more)


def argument(value: str, help: str) -> Option:  # noqa: A002 - the field's name
    """An argument of a command."""
    return Option((), help, value)


PATH_HELP = "A profile, a session folder, a logdir or a parent of these; - reads stdin."
MORE_PATHS_HELP = "More of them, such as a folder per worker; all hosts are read together."
LOGDIR_HELP = "A logdir or a parent of logdirs, a session folder or a profile."

ProfilePath = Annotated[str, argument("PATH", PATH_HELP)]
MorePaths = Annotated[list[str] | None, argument("MORE", MORE_PATHS_HELP)]
RunName = Annotated[str | None, option("--run", value="NAME", help="The session to read (default: the newest).")]
HostName = Annotated[str | None, option("--host", value="NAME", help="The host to read (default: all hosts).")]
Steps = Annotated[str | None, option("--steps", value="RANGE", help="The steps to read, such as 3-9 (default: all).")]
Format = Annotated[OutputFormat, option("--format", help="The format; json, csv and parquet have every row.")]
Output = Annotated[
    Path | None,
    option("--output", "-o", value="FILE", help="The file to write (default or -: stdout).", check=stdout_if_dash),
]
Top = Annotated[
    int | None,
    option("--top", value="N", least=1, help="Maximum rows per table (default: 20 in the first, 10 in the rest)."),
]
Sort = Annotated[
    str | None,
    option(
        "--sort",
        value="COLUMN",
        help="Sort by this column, named as in --format csv; --sort=-COLUMN puts the largest first.",
    ),
]
Where = Annotated[
    list[str] | None,
    option("--where", value="COLUMN=TEXT", help="Only rows whose column contains this text, in any case; repeatable."),
]
Address = Annotated[
    str,
    option(
        "--address",
        "--host",
        value="ADDRESS",
        help="The address to listen on; 0.0.0.0 is every network interface.",
    ),
]
