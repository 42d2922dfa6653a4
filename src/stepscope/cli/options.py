"""The options of the commands that show a tool, each declared once: for the command-line library and for
`stepscope.cli.plain`, which reads the usual command lines without it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

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


def _integer(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(text)
    return int(text)


def _positive_integer(text: str) -> int:
    if _integer(text) < 1:
        raise ValueError(text)
    return _integer(text)


def _port(text: str) -> int:
    if _integer(text) > MOST_PORT:
        raise ValueError(text)
    return _integer(text)


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        field: the field of `ToolRequest` that it sets.
        names: as written on the command line, the long one first.
        help: what it does, in one or two sentences.
        value: what the help calls its value; empty for a flag, and where the help lists the values.
        read: turns its text into its value; raises ValueError for a wrong text.
        repeatable: whether it may be given several times.
        is_flag: whether it takes no value and means True.
    """

    field: str
    names: tuple[str, ...]
    help: str
    value: str = ""
    read: Callable[[str], Any] = str
    repeatable: bool = False
    is_flag: bool = False


PATH_HELP = "A profile file, a session folder, a logdir, or a parent of these; - reads a profile from stdin."
MORE_PATHS_HELP = "More of these, such as a folder per worker: all their hosts are read together."
RUN = Option("run", ("--run",), "The session to read (default: the newest).", "NAME")
HOST = Option("host", ("--host",), "The host to read (default: all hosts).", "NAME")
STEPS = Option("steps", ("--steps",), "The steps to read, such as 3-9 (default: all).", "RANGE")
FORMAT = Option(
    "form", ("--format",), "The format of the result; json, csv and parquet hold every row.", read=OutputFormat
)
OUTPUT = Option("output", ("--output", "-o"), "The file to write (default or -: stdout).", "FILE", Path)
TOP = Option(
    "top", ("--top",), "Maximum rows per table (default: 20 in the first, 10 in the rest).", "N", _positive_integer
)
SORT = Option(
    "sort",
    ("--sort",),
    "Sort by this column, named as in --format csv; --sort=-COLUMN puts the largest first.",
    "COLUMN",
)
WHERE = Option(
    "where",
    ("--where",),
    "Only rows whose column contains the text, ignoring case; repeatable.",
    "COLUMN=TEXT",
    repeatable=True,
)
WHY = Option("why", ("--why",), "Also show the evidence behind the verdict and the first advice.", is_flag=True)

LOGDIR_HELP = "A logdir, a parent of logdirs, a session folder, or a profile file."
PORT = Option("port", ("--port",), "The first port to try.", "PORT", _port)
ADDRESS = Option(
    "host", ("--address", "--host"), "The address to listen on; 0.0.0.0 is every network of this machine.", "ADDRESS"
)
NO_BROWSER = Option("no_browser", ("--no-browser",), "Print the address without opening a browser.", is_flag=True)
ALLOWED_HOST = Option(
    "allowed_host",
    ("--allowed-host",),
    "A name that a proxy uses for this server; repeatable.",
    "NAME",
    repeatable=True,
)

TOOL_OPTIONS = (RUN, HOST, STEPS, FORMAT, OUTPUT, TOP, SORT, WHERE)
SUMMARY_OPTIONS = (RUN, HOST, STEPS, FORMAT, OUTPUT, WHY)
OPEN_OPTIONS = (PORT, ADDRESS, NO_BROWSER, ALLOWED_HOST)


@dataclass(frozen=True, kw_only=True)
class ToolRequest:
    """The arguments of a command that shows a tool; see the options for the meaning of each field.

    `more` holds further paths, whose hosts are read together with those of `path`.
    """

    tool: str
    path: str
    more: tuple[str, ...] = ()
    run: str | None = None
    host: str | None = None
    steps: str | None = None
    form: OutputFormat = OutputFormat.TABLE
    output: Path | None = None
    top: int | None = None
    sort: str | None = None
    where: tuple[str, ...] = ()
    why: bool = False


@dataclass(frozen=True, kw_only=True)
class OpenRequest:
    """The arguments of `stepscope open`."""

    path: str
    port: int | None = None
    host: str = "127.0.0.1"
    no_browser: bool = False
    allowed_host: tuple[str, ...] = ()
