"""The notes that a program leaves in a logdir where a capture was asked for and none was made.

    LOGDIR/plugins/profile/HOST.not-recorded.txt    line 1: why nothing was recorded; line 2: what to do

The next capture of that host into the logdir removes its note.
"""

from __future__ import annotations

from stepscope.errors import InputError, Problem
from stepscope.formats import store
from stepscope.formats.naming import printable

ENDING = ".not-recorded.txt"
CODE = "not-recorded"
_MOST_BYTES = 4096


def read_notes(walk: store.Walk) -> list[Problem]:
    """The notes below a folder as problems, in the order of the walk."""
    files = (entry for folder in walk.folders for entry in folder.files if entry.name.endswith(ENDING))
    return [problem for entry in files if (problem := _read_note(entry.path)) is not None]


def _read_note(path: str) -> Problem | None:
    try:
        text = store.read_prefix(path, _MOST_BYTES).decode("utf-8", "replace")
    except InputError:
        return None
    reason, _, hint = text.strip().partition("\n")
    return Problem(CODE, printable(reason), path=path, hint=printable(hint.strip()) or None) if reason else None
