"""What fills the memory besides what allocators record: what a capture counted of the program's arrays, and the system.

Stepscope counts live arrays at the start and the end of a capture, and again when the program runs out of memory.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import replace

from stepscope.analysis.resources.memory_growth import FEWEST, Growth, Staying, compared_steps
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.environment import capture_facts
from stepscope.model import HostTrace, PlaneKind
from stepscope.records import dataclass
from stepscope.vocabulary.counters import AVAILABLE_MEMORY, PROCESS_MEMORY
from stepscope.vocabulary.patterns import Pattern

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


CRASH = Pattern(
    r"(?P<later>after this capture )?the program ran out of memory(?P<op> in .+?)?: "
    r"asked for (?P<size>.+?)(?: in (?P<place>\S+ \([^()]+:\d+\)|[^\s()]+:\d+))?"
)
"""The first part of the sentence that a capture writes when an exception says that memory is used up."""

_SIZES = {"bytes": 1, "B": 1} | {
    f"{letter}{unit}": base**power
    for unit, base in (("B", 1000), ("iB", 1024))
    for power, letter in enumerate("KMGT", 1)
}


@dataclass(frozen=True)
class RefusedRequest:
    """What was asked for when memory ran out, in bytes.

    Attributes:
        place: the function and the line that asked; None if unknown.
        free: what was free; None if unknown.
        used: what the program used, as the system and the device counted it; None if unknown.
    """

    place: str | None
    nbytes: int
    free: int | None
    used: int | None

    @property
    def is_too_large(self) -> bool:
        """Whether it is more than was free and in use together: whatever the program frees, it cannot be had."""
        return self.free is not None and self.used is not None and self.nbytes > self.free + self.used


def request_of(trace: HostTrace) -> RefusedRequest | None:
    """The request that memory ran out at, as a capture wrote it; None where it wrote none, or no size."""
    for text in trace.recorder_messages:
        headline, *details = text.split("; ")
        found = CRASH.fullmatch(headline)
        size = found and _parse_size(found["size"])
        if found and size is not None:
            told = dict(detail.split(": ", 1) for detail in details if ": " in detail)
            parts = [" ".join(part.split()[-2:]) for part in told.get("in use", "").split(", ")]
            sizes = [each for each in map(_parse_size, parts) if each is not None]
            free = _parse_size(told["free"]) if "free" in told else _free_on_host(trace)
            return RefusedRequest(found["place"], size, free, sum(sizes) if sizes else None)
    return None


def _free_on_host(trace: HostTrace) -> int | None:
    """What the machine had left by its last sample; None where devices have memory of their own."""
    if any(PlaneKind(kind).is_device for kind in trace.planes.kind.tolist()):
        return None
    available = _last_counters(trace).get(AVAILABLE_MEMORY)
    return None if available is None else round(available * _SIZES["GB"])


def _parse_size(text: str) -> int | None:
    """`9.0 GiB` in bytes; None for what is no size."""
    number = text.rstrip(string.ascii_letters + " ")
    factor = _SIZES.get(text[len(number) :].strip())
    digits = number.replace(",", "")
    return round(float(digits) * factor) if factor and digits.replace(".", "", 1).isdecimal() else None


def _last_counters(trace: HostTrace) -> dict[str, float]:
    from stepscope.analysis.resources.counters import line_counters

    return {each.name: float(each.value[-1]) for each in line_counters(trace) if len(each.value)}


def last_memory_sentence(trace: HostTrace) -> str | None:
    """How full the memory was when the recording of a killed job stops; None for others, and where it is unknown."""
    if not any(problem.code == "unfinished" for problem in trace.problems):
        return None
    last = _last_counters(trace)
    used, available = last.get(PROCESS_MEMORY), last.get(AVAILABLE_MEMORY)
    if used is None or available is None:
        return None
    return (
        f"when the recording stops, the process uses {used:.2f} GB of memory, and the machine has {available:.2f} GB"
        " left; when it runs out, the system kills the job without warning"
    )


def growing_holder(trace: HostTrace) -> Staying | None:
    """The variable that fills a memory step by step, or keeps a graph, with all its arrays; None where none does."""
    kept = kept_arrays(trace)[1]
    for each in kept:
        own = [other for other in kept if (other.op, other.place) == (each.op, each.place)]
        per_step = sum(other.per_step for other in own)
        graph = next((other.region for other in own if "graph" in (other.region or "")), None)
        if per_step >= _WORTH_SAYING or graph:
            total = sum(other.allocated for other in own)
            return replace(each, per_step=per_step, allocated=total, region=graph or each.region)
    return None
