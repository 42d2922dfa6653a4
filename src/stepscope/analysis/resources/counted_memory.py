"""What fills the memory besides what allocators record: what a capture counted of the program's arrays, and the system.

Stepscope counts live arrays at the start and the end of a capture, and again when the program runs out of memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.analysis.resources.memory_growth import FEWEST, Growth, Staying, compared_steps
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.environment import capture_facts
from stepscope.model import HostTrace
from stepscope.report.looks import size_text
from stepscope.vocabulary.counters import AVAILABLE_MEMORY, PROCESS_MEMORY

KEPT = "memory of kept arrays"
_WORTH_SAYING = 100_000  # bytes a step: a gigabyte after 10,000 steps


def kept_arrays(trace: HostTrace) -> tuple[list[Growth], list[Staying]]:
    """What a capture by Stepscope counted at its start and end: by how much arrays became more, and which, those that
    take most first.  Nothing with fewer steps than five, or where most steps added none."""
    steps, found = len(compared_steps(steps_of(trace))) + 1, []
    for holder, place, count, size, *what in counted_arrays(trace, "kept:"):
        if 2 * count > steps > FEWEST:
            found.append(Staying(holder, place, min(count, steps), count, size, size / steps, *what))
    found.sort(key=lambda each: -each.allocated)
    return [Growth(KEPT, steps, None, None, sum(each.per_step for each in found), True)] if found else [], found


Counted = tuple[str | None, str | None, int, int, str | None, str | None, str | None]
"""What a capture counted of the program's arrays: their holder, the line that adds to it, how many, their bytes, what
they are, their element type and shape."""


def counted_arrays(trace: HostTrace, prefix: str) -> Iterator[Counted]:
    """The groups whose facts begin with a prefix: `kept:`, what became more; `full:`, what a program held that ran out
    of memory."""
    for name, text in capture_facts(trace).items():
        count, size, *parts = text.split("\t") if name.startswith(prefix) and isinstance(text, str) else ("", "")
        if len(parts) == 5 and count.isdecimal() and size.isdecimal():
            data_type, shape, holder, place, what = (part or None for part in parts)
            yield holder, place, int(count), int(size), what, data_type, shape


def last_memory_sentence(trace: HostTrace) -> str | None:
    """How full the memory was when the recording of a killed job stops; None for others, and where it is unknown."""
    if not any(problem.code == "unfinished" for problem in trace.problems):
        return None
    from stepscope.analysis.resources.counters import line_counters

    last = {each.name: float(each.value[-1]) for each in line_counters(trace) if len(each.value)}
    used, available = last.get(PROCESS_MEMORY), last.get(AVAILABLE_MEMORY)
    if used is None or available is None:
        return None
    return (
        f"when the recording stops, the process uses {used:.2f} GB of memory, and the machine has {available:.2f} GB"
        " left; when it runs out, the system kills the job without warning"
    )


def kept_sentence(trace: HostTrace, told: tuple[str | None, str | None] | None = None) -> str | None:
    """What a reader has to know of the kept arrays: those that fill a memory, or keep a graph; None without.

    Args:
        told: the holder and the place of which the first advice tells as much.
    """
    kept = kept_arrays(trace)[1]
    each = next((each for each in kept if each.per_step >= _WORTH_SAYING or "graph" in (each.region or "")), None)
    if each is None or (each.op, each.place) == told:
        return None
    where = f"`{each.op}`{f' ({each.place})' if each.place else ''}" if each.op else "the program"
    size = size_text(round(each.per_step))
    return f"{where} keeps {size} of {each.region} more with every step: a leak, if unintended"
