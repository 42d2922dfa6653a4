"""How the memory of the process grows from step to step, by the system's counter."""

from __future__ import annotations

from stepscope.analysis.resources.counters import line_counters
from stepscope.analysis.resources.memory_growth import Growth, growth_of_values
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.model import HostTrace
from stepscope.vocabulary.counters import is_process_memory

PROCESS = "process (resident)"
_GB = 1e9
_MATTERS = 0.05  # libraries take more pages now and then


def process_growth(trace: HostTrace) -> list[Growth]:
    """How the process's memory on the host grows; nothing where that was not sampled, or with too few steps."""
    wanted = [each for each in line_counters(trace) if is_process_memory(each.name)]
    found = [growth_of_values(steps_of(trace), PROCESS, each.time_ps, each.value * _GB, _MATTERS) for each in wanted]
    return [each for each in found if each is not None]
