"""The process groups of a job, what each is for, and how long pipelines stand still.

In a pipeline each rank computes some layers, and passes their results to the next.  While a rank has nothing to
compute, since its input has not come or the others are not done, there is a bubble: a part of the step in which the
rank does nothing, or only waits inside sends and receives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

import numpy as np

from stepscope.analysis.trace.collective_events import collective_rows
from stepscope.analysis.trace.spans import spans_of
from stepscope.analysis.workers.collectives import Collectives, DeclaredGroup
from stepscope.analysis.workers.matching import members_of
from stepscope.model import HostTrace
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role, percent, round_ms, round_us
from stepscope.vocabulary.collectives import PIPELINE, PIPELINE_OPERATION, parallelism_of

GROUP_FIELDS: tuple[Field, ...] = (
    Field("group", "text", "the group's name, as the library numbers it", "str", role=Role.LABEL),
    Field("description", "text", "what the program calls it; unknown if not recorded", "str", role=Role.LABEL),
    Field("parallelism", "text",
          "what it is for, by its description: data, tensor, pipeline, expert or context; a group that only sends and "
          "receives is taken for a pipeline; unknown otherwise", "str", role=Role.TERM),
    Field("members", "text", "its ranks, if recorded", "str", role=Role.LABEL),
    Field("ranks", "count", "its number of ranks; unknown if not recorded", "int"),
    Field("operations", "text", "its operations, the most frequent first; unknown if none ran", "str", role=Role.LABEL),
    Field("count", "count", "runs of them, summed over the recorded ranks", "int"),
    Field("total_us", "us", "their time, summed over the recorded ranks"),
)  # fmt: skip
PIPELINE_FIELDS: tuple[Field, ...] = (
    Field("group", "text", "the pipeline's process group; unknown if not recorded", "str", role=Role.LABEL),
    Field("stage", "number", "the rank's place in it, from 0; unknown if not recorded", "int", role=Role.ORDINAL),
    Field("rank", "number", "the process's rank in its job; unknown if not recorded", "int", role=Role.ORDINAL),
    Field("host", "text", "the host, as its file names it", "str", role=Role.HOST),
    Field("step_ms", "ms", "mean duration of a step on this rank"),
    Field("bubble_ms", "ms", "mean time of a step without any work but sends and receives"),
    Field("bubble_percent", "percent", "that as a share of the step"),
    Field("transfers", "count", "sends and receives on this rank", "int"),
)

UNNAMED = ""


@dataclass(frozen=True)
class PipelineTime:
    """What one rank does in a pipeline.

    Attributes:
        group: `name|ranks` of the process group with most of its transfers; UNNAMED if unknown.
        transfers: its sends and receives.
        bubble_ps: of each step, the time without any work but those.
    """

    group: str
    transfers: int
    bubble_ps: list[int]


def pipeline_time(trace: HostTrace, collectives: Collectives, work: I64, start: I64, end: I64) -> PipelineTime | None:
    """The part of one rank; None if it sends and receives nothing in a pipeline.

    Args:
        trace: the rank's.
        collectives: its collectives.
        work: rows of the events that count as work; collectives may be among them.
        start, end: of its steps in ps, int64 of shape (steps,).
    """
    rows = collective_rows(trace)
    rows = rows[np.argsort(trace.events.start_ps[rows], kind="stable")]  # as `collectives` has them
    passes = np.array([passes_on(collectives, at) for at in range(len(rows))], np.bool_)
    # In a group without a purpose a few sends among other operations are no pipeline's.
    group = np.array(collectives.group[: len(rows)], np.int64)
    most = 2 * np.bincount(group[passes], minlength=len(collectives.groups)) > np.bincount(
        group, minlength=len(collectives.groups)
    )
    named = np.array([bool(purpose) for purpose in collectives.purposes], np.bool_)
    passes &= (most | named)[group] if len(group) else passes
    if not passes.any():
        return None
    busy = spans_of(trace, np.setdiff1d(work, rows[passes])) | spans_of(trace, rows[~passes])
    groups = Counter(collectives.groups[collectives.group[at]] for at in np.flatnonzero(passes).tolist())
    left = end - start - busy.overlap_ps(start, end)
    return PipelineTime(groups.most_common(1)[0][0], int(passes.sum()), left.tolist())


def passes_on(of: Collectives, at: int) -> bool:
    """Whether a collective sends or receives, in a group that is not known to be for anything but a pipeline."""
    if of.names[of.name[at]] != PIPELINE_OPERATION:
        return False
    return parallelism_of(of.purposes[of.group[at]], [PIPELINE_OPERATION]) == PIPELINE


# -- all ranks -----------------------------------------------------------------------------------------------------


@dataclass
class _Group:
    purpose: str = ""
    size: int = 0
    total_ps: int = 0
    operations: Counter[str] = field(default_factory=Counter)


def group_rows(ranks: Sequence[Collectives]) -> Iterator[dict[str, Cell]]:
    """A row for each process group, the one with most time first; those without any operation come last."""
    groups: dict[str, _Group] = {}
    for of in ranks:
        for at, group in enumerate(of.group):
            if of.groups[group] != UNNAMED:
                found = groups.setdefault(of.groups[group], _Group())
                found.purpose = found.purpose or of.purposes[group]
                found.size = max(found.size, of.size[at])
                found.total_ps += of.duration_ps[at]
                found.operations[of.names[of.name[at]]] += 1
    for text, declared in _unused_groups(ranks, groups).items():
        groups[text] = _Group(declared.purpose, declared.size)
    for text, found in sorted(groups.items(), key=lambda item: -item[1].total_ps):
        name, _, members = text.partition("|")
        yield {
            "group": name or None,
            "description": found.purpose or None,
            "parallelism": parallelism_of(found.purpose, [*found.operations]),
            "members": members or None,
            "ranks": found.size or None,
            "operations": ", ".join(operation for operation, _ in found.operations.most_common()) or None,
            "count": found.operations.total(),
            "total_us": round_us(found.total_ps),
        }


def _unused_groups(ranks: Sequence[Collectives], used: Iterable[str]) -> dict[str, DeclaredGroup]:
    """The groups that ranks declare and that ran nothing, by name and ranks.

    Recorded collectives may leave out the ranks of their group, or list only some of them, so a group with the name of
    a used one counts as that.
    """
    names = {text.partition("|")[0] for text in used}
    declared = {f"{group.name}|{group.ranks}": group for of in ranks for group in of.declared}
    return {text: group for text, group in declared.items() if group.name not in names}


@dataclass(frozen=True)
class PipelineRank:
    """One rank of a pipeline: its number, -1 if unknown, its host, and the durations of its steps in ps."""

    rank: int
    host: str
    steps_ps: list[int]
    time: PipelineTime


def pipeline_rows(ranks: Sequence[PipelineRank]) -> list[dict[str, Cell]]:
    """A row for each rank with steps, by pipeline and stage."""
    rows = [_pipeline_row(each) for each in ranks if sum(each.steps_ps)]
    return sorted(rows, key=lambda row: (str(row["group"]), row["stage"] is None, row["stage"] or 0))


def _pipeline_row(each: PipelineRank) -> dict[str, Cell]:
    bubble, members = each.time.bubble_ps, members_of(each.time.group)
    return {
        "group": each.time.group.replace("|", " ").strip() or None,
        "stage": members.index(each.rank) if each.rank in members else None,
        "rank": each.rank if each.rank >= 0 else None,
        "host": each.host,
        "step_ms": round_ms(sum(each.steps_ps) / len(each.steps_ps)),
        "bubble_ms": round_ms(sum(bubble) / len(bubble)),
        "bubble_percent": percent(sum(bubble), sum(each.steps_ps)),
        "transfers": each.time.transfers,
    }


def describe_pipelines(rows: Sequence[dict[str, Cell]]) -> Iterator[str]:
    """How much of the step the ranks of pipelines stand still, in a sentence."""
    shares = [
        (float(str(row["bubble_percent"])), _stage_name(row)) for row in rows if row["bubble_percent"] is not None
    ]
    if not shares:
        return
    mean = sum(share for share, _ in shares) / len(shares)
    (least, first), (most, last) = min(shares), max(shares)
    between = f", from {least:.1f} % ({first}) to {most:.1f} % ({last})" if len(shares) > 1 else ""
    yield (
        f"the pipeline is idle {mean:.1f} % of the step on average{between}: in that time a rank does nothing, or"
        " only waits in sends and receives; more microbatches, or stages that take equally long, shorten it"
    )


def _stage_name(row: dict[str, Cell]) -> str:
    return str(row["host"]) if row["rank"] is None else f"rank {row['rank']}"
