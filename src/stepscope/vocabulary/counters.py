"""Names of counters: what the machine's counters count."""

from __future__ import annotations

PROCESS_MEMORY = "Memory process GB"
"""The memory of the host that the process uses, in GB: its resident pages."""

AVAILABLE_MEMORY = "Memory available GB"  # of the host, which programs can still get


def is_process_memory(name: str) -> bool:
    """True for the counter of the memory that the process uses."""
    return name.partition(":")[0] == PROCESS_MEMORY
