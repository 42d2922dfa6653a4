"""The options of the commands that show a tool, each declared once: for the library that reads command lines and for
`stepscope.cli.plain`, which reads the usual ones without it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from stepscope.records import dataclass

MOST_PORT = 65535
STDOUT = "-"  # as an --output


class OutputFormat(StrEnum):
    """How a report is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    HTML = "html"
    MARKDOWN = "markdown"


def stdout_if_dash(output: Path | None) -> Path | None:
    """The file of an --output; None, which is stdout, for a dash."""
    return None if str(output) == STDOUT else output


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(text)
    return int(text)


def _whole_above_zero(text: str) -> int:
    if _whole(text) < 1:
        raise ValueError(text)
    return _whole(text)


def _port(text: str) -> int:
    if _whole(text) > MOST_PORT:
        raise ValueError(text)
    return _whole(text)


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        field: the field of `ToolRequest` that it sets.
        names: as they are written, the long one first.
        help: what it does, one sentence or two.
        read: its value from its text; ValueError for a text that is wrong.
        repeatable: whether it may be given several times.
        is_flag: whether it has no value and means True.
    """

    field: str
    names: tuple[str, ...]
    help: str
    read: Callable[[str], Any] = str
    repeatable: bool = False
    is_flag: bool = False


PATH_HELP = "A profile file, a session folder, a logdir, or a parent of these."
RUN = Option("run", ("--run",), "The session to look at; the newest if not given.")
HOST = Option("host", ("--host",), "The host to look at; all hosts if not given.")
STEPS = Option("steps", ("--steps",), "The steps to look at, such as 3-9; all if not given.")
FORMAT = Option(
    "form", ("--format",), "How to write the result; json, csv and parquet hold every row.", read=OutputFormat
)
OUTPUT = Option("output", ("--output", "-o"), "The file to write; stdout if not given or -.", read=Path)
TOP = Option(
    "top", ("--top",), "At most so many rows of each table; else 20 of the first, 10 of others.", _whole_above_zero
)
SORT = Option(
    "sort", ("--sort",), "Sort by this column, named as in --format csv; --sort=-COLUMN for the largest first."
)
WHERE = Option(
    "where",
    ("--where",),
    "COLUMN=TEXT: only rows whose column holds the text, in whatever case; repeatable.",
    repeatable=True,
)

LOGDIR_HELP = "A logdir, a parent of some, a session, or a file."
PORT = Option("port", ("--port",), "The first port to try.", _port)
ADDRESS = Option("host", ("--host",), "The address to listen on; this machine only by default.")
NO_BROWSER = Option("no_browser", ("--no-browser",), "Only print the address.", is_flag=True)
ALLOWED_HOST = Option(
    "allowed_host", ("--allowed-host",), "A name that a proxy uses for this server; repeatable.", repeatable=True
)

OF_TOOLS = (RUN, HOST, STEPS, FORMAT, OUTPUT, TOP, SORT, WHERE)
OF_SUMMARY = (RUN, HOST, FORMAT, OUTPUT)
OF_OPEN = (PORT, ADDRESS, NO_BROWSER, ALLOWED_HOST)


@dataclass(frozen=True, kw_only=True)
class ToolRequest:
    """What a command that shows a tool was asked for; the options say what each field means."""

    tool: str
    path: str
    run: str | None = None
    host: str | None = None
    steps: str | None = None
    form: OutputFormat = OutputFormat.TABLE
    output: Path | None = None
    top: int | None = None
    sort: str | None = None
    where: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OpenRequest:
    """What `stepscope open` was asked for."""

    path: str
    port: int | None = None
    host: str = "127.0.0.1"
    no_browser: bool = False
    allowed_host: tuple[str, ...] = ()
