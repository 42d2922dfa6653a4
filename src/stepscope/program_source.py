"""The lines of the program that a culprit names, where its file is on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepscope.records import dataclass

_SHOWN = 3
_MOST_BYTES = 10_000_000  # of a file: no program is longer
_MODULE = "<module>"


@dataclass(frozen=True)
class ProgramSource:
    """A few lines of a program.

    Attributes:
        path: the file, absolute.
        line: the number of the first line, from 1.
        lines: the lines, without their ends.
        is_edited: the file was changed after the recording, or nobody knows when that was.
        at: the line that the culprit is about.
    """

    path: Path
    line: int
    lines: tuple[str, ...]
    at: int
    is_edited: bool = False

    def numbered(self) -> list[str]:
        """Each line after its number; before them what is to be known of a file that was edited."""
        said = ["changed since the recording; as it is now:"] if self.is_edited else []
        return said + [f"{at:5}  {text}" for at, text in enumerate(self.lines, self.line)]


def find_source(
    culprit: Mapping[str, Any] | None, folders: tuple[Path, ...] = (), recorded_ns: int | None = None
) -> ProgramSource | None:
    """Three lines of the source, around the statement that holds most of the function's time, where that is known; else
    from where the function starts, or around a line within one.

    None where the file is not there, or has something else in that place, as after an edit.

    Args:
        culprit: as in JSON, with `name`, `file` and `line`, and perhaps `statement`.
        folders: where a file that is named without its folder may lie, besides the current one.
        recorded_ns: when the recording was written, in ns since the epoch; None if unknown.
    """
    if not culprit or not culprit.get("file") or not culprit.get("line"):
        return None
    at = culprit.get("statement") or culprit
    is_elsewhere = str(at["file"]) != str(culprit["file"])  # in a function that it calls
    name, line = str(culprit["name"]).rpartition(".")[2], int(at["line"])
    for folder in (Path.cwd(), *folders):
        path = folder / str(at["file"])
        text = _read(path)
        starts = at is culprit and _starts(text[line - 1 : line + _SHOWN], name)
        before = text[:line] if at is culprit else text
        if len(text) >= line and (starts or is_elsewhere or name == _MODULE or _starts(before, name)):
            first = max(line if starts else line - 1, 1)
            is_edited = recorded_ns is None or path.stat().st_mtime_ns > recorded_ns
            return ProgramSource(path.absolute(), first, tuple(text[first - 1 : first - 1 + _SHOWN]), line, is_edited)
    return None


def _read(path: Path) -> list[str]:
    try:
        if path.suffix == ".py" and path.is_file() and path.stat().st_size <= _MOST_BYTES:
            return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        pass
    return []


def _starts(lines: list[str], name: str) -> bool:
    """Whether a function of that name starts in some lines."""
    return any(f"def {name}(" in line or (name == "<lambda>" and "lambda" in line) for line in lines)
