"""The rules of this package, and when those of a file can apply.

Rules that share words or exclude one another share a file.  A file is loaded and its rules are asked only where a run
has what all of them are about: so an answer visits the files that it is made in, and a rule needs no guards of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.reading import read_nothing
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.purpose.excess import SET_UP
from stepscope.analysis.steps.verdict import LEAST_PERCENT

Applies = Callable[[Context], object]


def _takes(*causes: str) -> Applies:
    """Whether causes of the account take a share that any rule speaks of."""
    return lambda context: context.percent(context.cause_ms(*causes)) >= LEAST_PERCENT


def _may_wait_for_input(context: Context) -> object:
    if context.percent(context.cause_ms("input")) >= LEAST_PERCENT:
        return True
    if context.loop is None or context.has_device:
        return False
    before_ms = context.per_step_ms(context.loop.before_program_ps)
    return context.feed.ops_ps or context.percent(before_ms) >= LEAST_PERCENT


def _runs_python(context: Context) -> object:
    is_much = context.percent(context.python_ms) >= LEAST_PERCENT
    return is_much or context.framework == "python" or context.pace.rival or context.work.callbacks_ps


def _has_several_ranks(context: Context) -> object:
    return sum(host.rank is not None for host in context.hosts) > 1


def _communicates(context: Context) -> object:
    devices = [host.device for host in context.hosts if host.device is not None]
    accounts = [host.account for host in context.hosts if host.account is not None]
    return any(each.exposed_collectives_ps for each in devices) or any(
        each.mean_percent.get("communication") for each in accounts
    )


def _is_about_devices(context: Context) -> object:
    is_blind = context.account is not None and context.account.blindness is not None
    return context.has_device or context.device or context.pace.unused_device or is_blind


def _may_compute_too_much(context: Context) -> object:
    work, device = context.work, context.device
    if any(each.kind != SET_UP for each in context.excesses) or work.recomputed_ps:
        return True
    if device is not None and "recomputed" in device.kinds:
        return True
    is_extra = work.forward_only_ps or 0 < work.backward_ps < work.forward_ps or len(work.modules) > 1
    return is_extra and not context.has_device


def _makes_anew(context: Context) -> object:
    return any(each.kind == SET_UP for each in context.excesses)


def _has_reports(context: Context) -> bool:
    """Whether the reports of other tools are at hand."""
    return context.read is not read_nothing


FILES: Mapping[str, Applies] = {
    "lines": lambda context: context.lines and context.changes,
    "recompilation": _takes("compile"),
    "waiting": _may_wait_for_input,
    "transfer": lambda context: _takes("transfer")(context) or (context.work.casts_ps and not context.has_device),
    "checkpoint": _takes("checkpoint"),
    "python_overhead": _runs_python,
    "dispatch": lambda context: context.work.steps and context.loop and not context.has_device,
    "device_idle": _is_about_devices,
    "straggler": _has_several_ranks,
    "communication": _communicates,
    "redundant_compute": _may_compute_too_much,
    "set_up": _makes_anew,
    "memory": lambda context: _has_reports(context) if context.has_device else context.work.moves,
    "device_work": lambda context: context.device or context.work.doubles_ps,
    "input_work": lambda context: context.pace.augmentation or _has_reports(context),
    "model": lambda context: _has_reports(context) or any(
        graph.unused_layers for host in context.hosts for graph in host.graphs
    ),
}  # fmt: skip
"""By the name of a file, in the order in which rules are asked, whether a run has what its rules are about."""


def own_rules(context: Context | None = None) -> tuple[Rule, ...]:
    """The rules of this package: all, or those of the files that can apply to a run."""
    files = [name for name, applies in FILES.items() if context is None or applies(context)]
    return tuple(rule for name in files for rule in import_module(f"{__name__}.{name}").RULES)
