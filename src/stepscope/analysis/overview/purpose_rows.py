"""What the computing of a step is for, and which of it the step does not need, as tables of the overview."""

from __future__ import annotations

from stepscope.analysis.facts.host_facts import HostFacts
from stepscope.report import Cell, Field, Role, percent, round_ms

PURPOSE_FIELDS = (
    Field("purpose", "text", "what the computing is for, by what was recorded of each op", "str", Role.TERM),
    Field("ms", "ms", "its time per step, summed over threads or devices"),
    Field("percent", "percent", "the same as a share of all computing"),
)
EXCESS_FIELDS = (
    Field("kind", "text", "what the step computes without need", "str", Role.TERM),
    Field("ms", "ms", "elapsed time of it per step"),
    Field("needed_percent", "percent", "the share of that time that a step needs all the same"),
    Field("fact", "text", "what was recorded, in words that follow `the step`", "str", Role.TEXT),
    Field("against", "text", "what would make it needed after all", "str", Role.TEXT),
)


def purpose_rows(facts: HostFacts) -> tuple[dict[str, Cell], ...]:
    """The purposes of a host's computing, the longest first; see PURPOSE_FIELDS."""
    found = sorted(facts.purposes.items(), key=lambda each: -each[1])
    whole = sum(ps for _, ps in found)
    return tuple({"purpose": name, "ms": round_ms(ps), "percent": percent(ps, whole)} for name, ps in found)


def excess_rows(facts: HostFacts) -> tuple[dict[str, Cell], ...]:
    """What a host's steps do not need, the longest first; see EXCESS_FIELDS."""
    return tuple(
        {
            "kind": each.kind,
            "ms": round_ms(each.step_ps),
            "needed_percent": round(100.0 * each.keeps, 2),
            "fact": each.fact,
            "against": each.against,
        }
        for each in facts.excesses
    )
