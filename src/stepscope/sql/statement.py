"""What may be asked: one statement, which reads."""

from __future__ import annotations

import re
from typing import Any

from stepscope.errors import UsageError

READS_ONLY = "a profile is only read: ask with SELECT, WITH, FROM, DESCRIBE, SUMMARIZE, PIVOT or EXPLAIN"

# MULTI is a PIVOT, which finds its columns by a query of its own.
_READING = frozenset({"SELECT", "EXPLAIN", "RELATION", "MULTI"})
# Between words may stand spaces and comments.
_SPACE = r"(?:\s|--[^\n]*\n|/\*.*?\*/)"
_EXPLAINS = re.compile(
    rf"{_SPACE}*EXPLAIN(?:{_SPACE}+ANALYZE)?(?:{_SPACE}*\([^)]*\))?(?={_SPACE}|\()", re.IGNORECASE | re.DOTALL
)


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
