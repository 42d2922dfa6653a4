"""What may be asked, one statement that reads; and the engine's errors as ours, one sentence with the position in the
query and the nearest names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from stepscope.errors import UsageError
from stepscope.report import size_text
from stepscope.sql.macros import MACROS

READS_ONLY = "a profile is only read: ask with SELECT, WITH, FROM, DESCRIBE, SUMMARIZE, PIVOT or EXPLAIN"

# MULTI is a PIVOT, which finds its columns by a query of its own.
_READING = frozenset({"SELECT", "EXPLAIN", "RELATION", "MULTI"})
# Between words may stand spaces and comments.
_SPACE = r"(?:\s|--[^\n]*\n|/\*.*?\*/)"
_EXPLAINS = re.compile(
    rf"{_SPACE}*EXPLAIN(?:{_SPACE}+ANALYZE)?(?:{_SPACE}*\([^)]*\))?(?={_SPACE}|\()", re.IGNORECASE | re.DOTALL
)
_PLACE = re.compile(r"\n\nLINE (\d+):(?P<rest> .*)\n(?P<marks> *\^[\^ ]*)\s*$", re.DOTALL)
_KIND = re.compile(r"^[\w ]+? Error: ")
_MISSING_TABLE = re.compile(r'Table with name "?(?P<name>[^"\n]+?)"? does not exist')
_MISSING_FUNCTION = re.compile(r'Function with name "?(?P<name>[^"\s]+?)"? does not exist')
_MEANT = re.compile(r'(?:Did you mean|Candidate bindings:?) (?P<names>"[^\n]*)')
_MOST_NAMES = 3

ASK_LESS = "ask for less: add a condition, or aggregate before a join"


def require_reading(connection: Any, query: str) -> None:
    """Raises UsageError unless a query is one statement that only reads; the engine's error if it is no SQL."""
    found = connection.extract_statements(query)
    if len(found) != 1:
        raise UsageError(
            "there is no query" if not found else f"these are {len(found)} statements", hint="give one SELECT"
        )
    kind = str(found[0].type).rpartition(".")[2]
    if kind not in _READING:
        raise UsageError(f"{kind} is not allowed", code="read-only", hint=READS_ONLY)
    if kind == "EXPLAIN":
        explained, count = _EXPLAINS.subn("", query, count=1)
        if not count:
            raise UsageError("this form of EXPLAIN is not supported", hint="write EXPLAIN SELECT ...")
        require_reading(connection, explained)


def missing_table(error: Exception) -> str | None:
    """The table that a query names and that does not exist; None for any other error."""
    found = _MISSING_TABLE.search(str(error))
    return found["name"] if found else None


def explain_mistake(error: Exception, query: str, tables: Iterable[str], memory_bytes: int) -> UsageError:
    """The error to report for one that the engine raised.

    Args:
        tables: the names that a query may use.
        memory_bytes: the limit that the engine has.
    """
    kind, text = type(error).__name__, str(error)
    if kind == "OutOfMemoryException":
        return UsageError(
            f"the query needs more than its limit of {size_text(memory_bytes)} of memory", code="memory", hint=ASK_LESS
        )
    if kind == "PermissionException" or "launched in read-only mode" in text:
        return UsageError("a query cannot reach files, the network or settings", code="read-only", hint=READS_ONLY)
    return UsageError(_reason(text, query), code="sql", hint=_hint(text, tables))


def _reason(text: str, query: str) -> str:
    """The first sentence of the engine, and where in the query it is about."""
    place = _PLACE.search(text)
    said = _KIND.sub("", text[: place.start()] if place else text).split("\n")[0].strip().rstrip("!.")
    return said + (_position(place, query) if place else "")


def _position(place: re.Match[str], query: str) -> str:
    line = int(place[1])
    column = len(place["marks"]) - len(place["marks"].lstrip()) - len(f"LINE {line}: ")
    shown = place["rest"][1:].split("\n")[0]
    whole = query.split("\n")[line - 1] if line <= query.count("\n") + 1 else shown
    column += max(whole.find(shown.strip(".")) - (3 if shown.startswith("...") else 0), 0)
    marked = len(place["marks"].strip())
    word = whole[column : column + marked]
    return f", at line {line}, column {column + 1}" + (f" ({word})" if word.strip() else "")


def _hint(text: str, tables: Iterable[str]) -> str | None:
    """The names that were meant, as far as they can be guessed."""
    table = missing_table(Exception(text))
    if table is not None:
        names = [*dict.fromkeys(tables)]
        near = get_close_matches(table, names, _MOST_NAMES, 0.5)
        return f"did you mean {' or '.join(near)}?" if near else f"tables: {', '.join(names)}"
    found, function = _MEANT.search(text), _MISSING_FUNCTION.search(text)
    ours = get_close_matches(function["name"], [macro.name for macro in MACROS], 1, 0.5) if function else []
    names = [*ours, *re.findall(r'"([^"]+)"', found["names"] if found else "")]
    return f"did you mean {' or '.join(names[:_MOST_NAMES])}?" if names else None
