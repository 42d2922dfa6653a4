"""Which rules there are: those of this package, those that were registered, and those of other packages."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules import RULES
from stepscope.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "stepscope.rules"

_registered: dict[str, Rule] = {}


def register(rule: Rule) -> Rule:
    """Adds a rule for the rest of the process.  A rule of the same id takes the place of the one before.

    Raises:
        UsageError: it is no rule, or its id is that of a rule of this package.
    """
    if not isinstance(rule, Rule):
        raise UsageError(f"{rule!r} is no rule", hint="pass a stepscope.analysis.advice.Rule")
    if any(rule.id == known.id for known in RULES):
        raise UsageError(f"there is a rule {rule.id!r} already", hint="give the rule an id of its own")
    _registered[rule.id] = rule
    return rule


def rules() -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """All rules, and a warning for each entry point that gave none."""
    found, warnings = list(RULES), []
    for point in _points():
        try:
            rule = point.load()
        except Exception as error:
            warnings.append(f"the rule {point.name!r} of {point.value} cannot be loaded: {error}")
            continue
        if isinstance(rule, Rule):
            found.append(rule)
        else:
            warnings.append(f"the entry point {point.name!r} of {point.value} is no rule")
    return (*found, *_registered.values()), tuple(warnings)


@cache
def _points() -> tuple[EntryPoint, ...]:
    """The entry points of installed packages; looking through them all takes longer than all rules do."""
    if not any(map(_may_offer, sys.path)):
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


def _may_offer(place: str) -> bool:
    """True if a package that is installed there has entry points of our group, or if only the library can tell.

    The library that knows for sure takes forty milliseconds to import.
    """
    try:
        with os.scandir(place or os.curdir) as entries:
            folders = [entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info", ".egg"))]
    except NotADirectoryError:  # an archive
        return True
    except OSError:
        return False
    return any(map(_names_group, folders))


def _names_group(folder: str) -> bool:
    if folder.endswith(".egg"):
        return True
    try:
        return f"[{GROUP}]".encode() in Path(folder, "entry_points.txt").read_bytes()
    except OSError:
        return False
