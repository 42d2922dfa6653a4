"""What a report has found, in the two shapes that other programs read: test cases for CI, findings with a place."""

from __future__ import annotations

from typing import Literal

from stepscope.records import dataclass

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was found, for reviewers of code.

    Attributes:
        rule: the id of its kind, the same in every session: `budget/step_ms`, `advice/host_sync`.
        level: how bad it is.
        title: the kind in a few words.
        message: what was found, in a sentence or two.
        file, line: where in the program; None if nothing recorded names a line.
        docs: the page of the documentation about it, below `docs/`; empty if there is none.
    """

    rule: str
    level: Level
    title: str
    message: str
    file: str | None = None
    line: int | None = None
    docs: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One check, as a test case.

    Attributes:
        group: what it is about: the tool.
        name: what is checked.
        state: `passed`, `failed`, or `error` if it could not be checked.
        message: why it failed, or a warning if it passed.
        text: everything known of it.
    """

    group: str
    name: str
    state: Literal["passed", "failed", "error"]
    message: str
    text: str
