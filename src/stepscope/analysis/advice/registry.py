"""The list of rules: those of this package, registered ones, and those of other packages.

Rules that share words or exclude one another share a file.  A file is loaded and its rules are asked only where a run
has what all of them are about: so an answer visits the files that it is made in, and a rule needs no guards of its own.
"""

from __future__ import annotations

from importlib import import_module

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.rule import Rule
from stepscope.errors import UsageError
from stepscope.plugins import plugins_of

GROUP = "stepscope.rules"
# Imported before the package gives its name to the function `rules`.
_FOLDER = import_module("stepscope.analysis.advice.rules").__name__

FILES = (
    "lines", "recompilation", "waiting", "transfer", "checkpoint", "python_overhead", "dispatch", "device_idle",
    "straggler", "communication", "redundant_compute", "set_up", "memory", "device_work", "input_work", "model",
)  # fmt: skip
"""The files in `rules/`, in the order in which rules are asked; `Context.subjects` says which a run can be about."""

_registered: dict[str, Rule] = {}


def own_rules(context: Context | None = None) -> tuple[Rule, ...]:
    """The rules of this package: all, or those of the files that can apply to a run."""
    files = [name for name in FILES if context is None or name in context.subjects]
    return tuple(rule for name in files for rule in import_module(f"{_FOLDER}.{name}").RULES)


def rules(context: Context | None = None) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """All rules, or those that can apply to a run, and a warning for each entry point without one."""
    added = plugins_of(GROUP, Rule)
    return (*own_rules(context), *added.found, *_registered.values()), added.warnings


def register(rule: Rule) -> Rule:
    """Adds a rule for the rest of the process.  It replaces a registered rule with the same id.

    Raises:
        UsageError: it is not a rule, or its id is taken by a rule of this package.
    """
    if not isinstance(rule, Rule):
        raise UsageError(f"{rule!r} is not a rule", hint="pass a stepscope.analysis.advice.Rule")
    if any(rule.id == known.id for known in own_rules()):
        raise UsageError(f"the rule id {rule.id!r} is taken", hint="choose another id")
    _registered[rule.id] = rule
    return rule
