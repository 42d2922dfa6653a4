"""The list of rules: those of this package, registered ones, and those of other packages."""

from __future__ import annotations

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules import own_rules
from stepscope.errors import UsageError
from stepscope.plugins import plugins_of

GROUP = "stepscope.rules"

_registered: dict[str, Rule] = {}


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


def rules(context: Context | None = None) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """All rules, or those that can apply to a run, and a warning for each entry point without one."""
    added = plugins_of(GROUP, Rule)
    return (*own_rules(context), *added.found, *_registered.values()), added.warnings
