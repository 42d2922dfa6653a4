"""Pages whose prose is written by hand: a run replaces what lies between the marks of what it measures."""

from __future__ import annotations

from pathlib import Path


def put(page: Path, name: str, text: str) -> None:
    """Replaces what a page holds between `<!-- NAME -->` and `<!-- end of NAME -->`; adds them if missing."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = page.read_text("utf-8").partition(begin)
    before = before if found else f"{before.rstrip()}\n\n"
    page.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{rest.partition(end)[2] or chr(10)}", encoding="utf-8")
