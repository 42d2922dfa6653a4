"""Workers have unequal work, and wait for each other: a replay of all ranks together names what is at fault."""

from __future__ import annotations

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.rule import Finding, Rule
from stepscope.analysis.facts.host_facts import HostFacts

_LEAST_PERCENT = 9.0  # of the step: a slowdown of 1.1, see STRAGGLES


def _find(context: Context) -> Finding | None:
    working = [host for host in context.hosts if host.rank is not None and _shows_its_work(context, host)]
    if len(working) < 2:
        return None
    from stepscope.analysis.advice.unequal_work import find_unequal_work  # all of which one worker does without

    return find_unequal_work(context, working, _LEAST_PERCENT)


def _shows_its_work(context: Context, host: HostFacts) -> bool:
    """Whether the account of a worker says how long it works; with devices, only if the program marks its steps."""
    marked = not context.has_device or (host.device is not None and host.device.marked)
    return host.account is not None and marked


RULE = Rule("straggler", _LEAST_PERCENT, kind="straggler", find=_find, tool="pod-viewer", confidence=0.9)
