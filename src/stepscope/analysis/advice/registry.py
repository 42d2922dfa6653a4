"""The list of rules: those of this package, registered ones, and those of other packages."""

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
    """Adds a rule for the rest of the process.  It replaces a registered rule with the same id.

    Raises:
        UsageError: it is not a rule, or its id is taken by a rule of this package.
    """
    if not isinstance(rule, Rule):
        raise UsageError(f"{rule!r} is not a rule", hint="pass a stepscope.analysis.advice.Rule")
    if any(rule.id == known.id for known in RULES):
        raise UsageError(f"the rule id {rule.id!r} is taken", hint="choose another id")
    _registered[rule.id] = rule
    return rule


def rules() -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """All rules, and a warning for each entry point without one."""
    found, warnings = list(RULES), []
    for point in _entry_points():
        try:
            rule = point.load()
        except Exception as error:
            warnings.append(f"the rule {point.name!r} of {point.value} cannot be loaded: {error}")
            continue
        if isinstance(rule, Rule):
            found.append(rule)
        else:
            warnings.append(f"the entry point {point.name!r} of {point.value} is not a rule")
    return (*found, *_registered.values()), tuple(warnings)


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    """The entry points of installed packages; cached, since finding them takes longer than running all rules."""
    if not any(map(_may_have_rules, sys.path)):
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


def _may_have_rules(place: str) -> bool:
    """Whether a package installed there has entry points of our group, or may have them.

    Only importlib.metadata is sure, but importing it takes forty milliseconds.
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
