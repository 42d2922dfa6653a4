"""Names for people: distinct, in a natural order, printable, in lists."""

from __future__ import annotations

import re
from collections.abc import Iterable


def unique(names: list[str]) -> list[str]:
    """The names, with `_2`, `_3`, ... behind those that stood before; no other name is changed."""
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


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key by which rank2 comes before rank10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name))


def printable(name: str) -> str:
    """The name with `?` for bytes that are no text and for characters that would steer a terminal."""
    text = name.encode("utf-8", "replace").decode("utf-8")
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def listing(names: Iterable[str], limit: int = 20) -> str:
    """Names as a text, so many at most."""
    shown = list(names)
    more = f", and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more
