"""`stepscope sql`: answers a question in SQL about one or several sessions."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from stepscope.cli.options import STDOUT, Format, HostName, Output, OutputFormat, RunName, argument, option
from stepscope.cli.show import show_report, working
from stepscope.cli.tools import check_output, load_profile
from stepscope.engines.budget import parse_size
from stepscope.errors import UsageError

if TYPE_CHECKING:
    from stepscope.api import LoadedProfile
    from stepscope.sql.answer import SqlReport

_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<path>.+)", re.DOTALL)
_FOR_PEOPLE = (OutputFormat.TABLE, OutputFormat.HTML, OutputFormat.MARKDOWN)
_MOST_SHOWN = 10_000  # rows of an answer that a person looks at; files for programs hold all
_LEAST_BYTES = 64 << 20  # the engine needs some for itself


def sql(
    words: Annotated[
        list[str],
        argument(
            value="[NAME=]PATH... [QUERY]",
            help="One or more profiles, then the query (- reads it from stdin). With NAME=, the views of a session "
            "are NAME.events and so on; those of the first need no name.",
        ),
    ],
    run: RunName = None,
    host: HostName = None,
    form: Format = OutputFormat.TABLE,
    output: Output = None,
    top: Annotated[
        int | None, option("--top", value="N", least=1, help="Maximum rows to show (default: 20; other formats: all).")
    ] = None,
    timeout: Annotated[
        float, option("--timeout", value="SECONDS", least=0.001, help="Stop the query after this time.")
    ] = 30.0,
    memory: Annotated[
        str, option("--memory", value="SIZE", help="The memory to use for the query, such as 8GB.")
    ] = "4GB",
) -> None:
    """Answers a question in SQL; without one, lists the tables."""
    check_output(form, output)
    paths, query = _split_words(words)
    limit = read_size(memory)
    with working() as progress:
        sessions = _load_sessions(paths, run, host, progress)
        report = _answer(sessions, query, timeout, limit, _MOST_SHOWN if form in _FOR_PEOPLE else None)
    show_report(report, form, output, top)


def _answer(
    sessions: dict[str, LoadedProfile], query: str | None, timeout: float, memory_bytes: int, rows: int | None
) -> SqlReport:
    (name, first), *others = sessions.items()
    if query is None:
        return first.sql_schema()
    return first.sql(query, attach=dict(others), name=name, rows=rows, timeout=timeout, memory_bytes=memory_bytes)


def _split_words(words: list[str]) -> tuple[list[str], str | None]:
    """The paths and the query; a single word is a path."""
    if len(words) == 1:
        return words, None
    *paths, query = words
    return paths, sys.stdin.read() if query == STDOUT else query


def _load_sessions(
    paths: list[str], run: str | None, host: str | None, progress: Callable[[str], None]
) -> dict[str, LoadedProfile]:
    """The sessions by name, in order.  Raises UsageError for a further session without a name."""
    sessions: dict[str, LoadedProfile] = {}
    for word in paths:
        named = None if Path(word).exists() else _NAMED.fullmatch(word)
        name = named["name"] if named else "main"
        if name in sessions:
            raise UsageError(
                f"there are two sessions named {name}" if named else f"the session {word} has no name",
                hint="write NAME=PATH, for example before=logs/1 after=logs/2; the query comes last",
            )
        beside = next(iter(sessions.values()), None)
        sessions[name] = load_profile(named["path"] if named else word, run, host, progress, beside=beside)
    return sessions


def read_size(text: str) -> int:
    """Bytes from a text such as 8GB or 512MiB. Raises UsageError."""
    found = parse_size(text)
    if found < _LEAST_BYTES:
        raise UsageError(f"{text!r} is too little memory for a query", hint="at least 64MB, such as --memory 8GB")
    return found
