"""Names for people: made distinct, sorted naturally, made printable, joined in lists."""

from __future__ import annotations

import re
from collections.abc import Iterable


def unique_names(names: list[str]) -> list[str]:
    """The names, with `_2`, `_3`, ... appended to repeated ones; no other name changes."""
    taken = set(names)
    seen: set[str] = set()
    result = []
    for name in names:
        chosen, number = name, 2
        while chosen in (seen if chosen == name else taken):
            chosen, number = f"{name}_{number}", number + 1
        taken.add(chosen)
        seen.add(chosen)
        result.append(chosen)
    return result


def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts rank2 before rank10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name))


def printable(name: str) -> str:
    """The name with `?` in place of undecodable bytes and of control characters, which would affect a terminal."""
    text = name.encode("utf-8", "replace").decode("utf-8")
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def join_names(names: Iterable[str], limit: int = 20) -> str:
    """The names as one text: at most `limit` of them, and how many more there are."""
    shown = list(names)
    more = f", and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more
