"""One side of a comparison, and whether two sides can be compared at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any

from stepscope.analysis.ops.kernel_stats_tool import KernelStatsReport
from stepscope.analysis.ops.op_shapes_tool import OpShapesReport
from stepscope.analysis.ops.op_stats_tool import OpStatsReport
from stepscope.analysis.overview.overview_tool import OverviewReport
from stepscope.analysis.resources.memory_profile_tool import MemoryProfileReport
from stepscope.analysis.steps.steps_tool import StepsReport
from stepscope.records import dataclass
from stepscope.report import Cell, Report, round_6

_FAR_PERCENT = 5.0  # of the step time: profiling costs that differ by more belong into a comparison
_SURROUNDINGS: dict[str, str] = {
    "framework": "framework",
    "device_type": "device",
    "host_count": "number of hosts",
    "devices_used": "number of devices that computed",
}

TOOLS_ASKED: dict[str, str] = {
    "overview": "overview",
    "steps": "steps",
    "ops": "op-stats",
    "kernels": "kernel-stats",
    "memory": "memory-profile",
    "shapes": "op-shapes",
}
"""The tools whose answers make a side, by the attribute of `Side` that takes each."""


@dataclass(frozen=True)
class Side:
    """What is compared of one session: the answers of tools, all for the same hosts and steps.

    Attributes:
        run, path: the session's name and place.
    """

    run: str
    path: str
    overview: OverviewReport
    steps: StepsReport
    ops: OpStatsReport
    kernels: KernelStatsReport
    memory: MemoryProfileReport
    shapes: OpShapesReport

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that were looked at."""
        return self.overview.hosts

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be known to trust the answers, each once."""
        answers = (self.overview, self.steps, self.ops, *([self.kernels] if self.kernels.rows else []))
        return tuple(dict.fromkeys(warning for answer in answers for warning in answer.warnings))

    @property
    def partial(self) -> bool:
        """True if a part of the recording is missing."""
        return self.overview.partial

    @property
    def _all_steps(self) -> tuple[dict[str, Cell], ...]:
        return () if self.overview.steps_source == "none" else self.overview.step_rows

    @property
    def steps_of_totals(self) -> float:
        """Steps to which the totals of a capture belong: all that a host recorded."""
        return self.overview.steps_a_host

    @cached_property
    def _counted_at(self) -> tuple[int, ...]:
        complete = tuple(at for at, row in enumerate(self._all_steps) if row["complete"])
        return complete or tuple(range(len(self._all_steps)))

    @property
    def counted(self) -> tuple[dict[str, Cell], ...]:
        """The steps that count: the complete ones, all if none is.  None where the whole capture stands for a step."""
        return tuple(self._all_steps[at] for at in self._counted_at)

    @cached_property
    def gaps_ms(self) -> tuple[float | None, ...]:
        """Time from the end of each counted step to the begin of the next, on the host on which it lasted longest; None
        after the last one and where steps were left out in between, and 0 where steps are not those of one thread, and
        so leave no gaps to speak of."""
        if self.overview.step_time_ms["between_steps_percent"] is None:
            return (0.0,) * len(self._counted_at)
        by_host = _rows_by_host(self.steps.rows)
        gaps = {host: _gaps(rows) for host, rows in by_host.items()}
        return tuple(gaps[str(self._all_steps[at]["slowest_host"])][at] for at in self._counted_at)


def side_of(run: str, path: str, ask: Callable[[str], Report]) -> Side:
    """The side that a session makes.

    Args:
        run, path: the session's name and place.
        ask: the answer of a tool, by the tool's name.
    """
    answers: dict[str, Any] = {part: ask(tool) for part, tool in TOOLS_ASKED.items()}
    return Side(run=run, path=path, **answers)


def _rows_by_host(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    ordered = sorted(rows, key=lambda row: str(row["host"]))  # stable: the steps of a host keep their order
    return {host: list(own) for host, own in groupby(ordered, key=lambda row: str(row["host"]))}


def _gaps(rows: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """The time from the end of each step of a host to the begin of the next.

    None after the last one, and where the numbers say that others lie between the two: they are equal, or differ by
    more than those of neighbours.
    """
    differences = [following["step"] - step["step"] for step, following in pairwise(rows)]
    stride = min((difference for difference in differences if difference > 0), default=0)
    gaps = [
        max(round_6(after["start_ms"] - row["start_ms"] - row["duration_ms"]), 0.0) for row, after in pairwise(rows)
    ]
    known = [difference < 0 or 0 < difference <= stride for difference in differences]
    return [*(gap if here else None for gap, here in zip(gaps, known, strict=True)), None]


def notes_of(before: Side, after: Side) -> tuple[str, ...]:
    """Why a difference may be no merit of a change, one sentence each."""
    found = [
        *_same_session(before, after),
        *_other_surroundings(before, after),
        *_other_steps(before, after),
        *_other_cost(before, after),
        *_other_shapes(before, after),
    ]
    return tuple(found)


def _same_session(before: Side, after: Side) -> list[str]:
    same = (before.path, before.run) == (after.path, after.run)
    return [f"both sides are the session {before.run}"] if same else []


def _other_surroundings(before: Side, after: Side) -> list[str]:
    pairs = [
        (what, before.overview.environment[key], after.overview.environment[key]) for key, what in _SURROUNDINGS.items()
    ]
    return [f"another {what}: {_told(one)} before, {_told(other)} after" for what, one, other in pairs if one != other]


def _told(value: Cell) -> str:
    return "unknown" if value is None or value == "" else str(value)


def _other_steps(before: Side, after: Side) -> list[str]:
    one, other = before.overview, after.overview
    notes = []
    if one.steps_source != other.steps_source:
        notes.append(f"steps are known otherwise: before, {one.steps_how}; after, {other.steps_how}")
    if not (before.counted and after.counted):
        notes.append(
            "ops and kernels are totals of the captures: a side has no steps, and a longer one has more of all"
        )
    return notes


def _other_cost(before: Side, after: Side) -> list[str]:
    one, other = before.overview.profiling, after.overview.profiling
    if one is None or other is None or abs(one.percent - other.percent) < _FAR_PERCENT:
        return []
    if not (one.is_clear or other.is_clear):
        return []
    return [f"profiling changed the steps by {one.percent:+.1f} % before and by {other.percent:+.1f} % after"]


def _other_shapes(before: Side, after: Side) -> list[str]:
    one, other = _shapes(before), _shapes(after)
    if not one or not other:
        where = "on either side" if not one and not other else "before" if not one else "after"
        return [f"shapes of inputs are not recorded {where}: nothing tells whether both have the same batch size"]
    shared = [name for name in one if name in other]
    # Ops that only became fewer or more leave or add shapes; a batch of another size changes them.
    changed = [name for name in shared if one[name] - other[name] and other[name] - one[name]]
    if not changed:
        return []
    return [
        f"{len(changed)} of the {len(shared)} ops that both have take inputs of other shapes, first {changed[0]}: "
        "with another batch size or another model, a step is not the same work"
    ]


def _shapes(side: Side) -> dict[str, set[str]]:
    """The shapes that each op takes, where they are recorded; ops with most time first."""
    shapes: dict[str, set[str]] = {}
    for row in side.shapes.rows:
        if row["input_shapes"]:
            shapes.setdefault(str(row["name"]), set()).add(str(row["input_shapes"]))
    return shapes
