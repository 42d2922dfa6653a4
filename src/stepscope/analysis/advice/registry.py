"""The list of rules: those of this package, registered ones, and those of other packages.

Rules that share words or exclude one another share a file.  A file is loaded and its rules are asked only where a run
has what all of them are about: so an answer visits the files that it is made in, and a rule needs no guards of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.rule import Rule
from stepscope.errors import UsageError
from stepscope.plugins import plugins_of

GROUP = "stepscope.rules"
_FOLDER = "stepscope.analysis.advice.rules"

FILES: Mapping[str, Callable[[Context], object]] = {
    "lines": Context.could_leave_out_functions,
    "recompilation": Context.compiles,
    "waiting": Context.may_wait_for_input,
    "transfer": Context.takes_data_in,
    "checkpoint": Context.saves,
    "python_overhead": Context.runs_python,
    "dispatch": Context.computes_on_host,
    "device_idle": Context.is_about_devices,
    "straggler": Context.has_several_ranks,
    "communication": Context.communicates,
    "redundant_compute": Context.may_compute_too_much,
    "set_up": Context.makes_anew,
    "memory": Context.may_lack_memory,
    "device_work": Context.may_do_less_work,
    "input_work": Context.may_do_less_input,
    "model": Context.may_need_less_model,
}
"""By the name of a file, in the order in which rules are asked, whether a run has what its rules are about."""

_registered: dict[str, Rule] = {}


def own_rules(context: Context | None = None) -> tuple[Rule, ...]:
    """The rules of this package: all, or those of the files that can apply to a run."""
    files = [name for name, applies in FILES.items() if context is None or applies(context)]
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
