"""Where ranks are in a job: their stage in a pipeline, and their replica of the model.

Ranks that send to each other and receive, in a group for nothing else, are stages of one pipeline.  They are in the
order of the chain that they form, from the end whose first transfer in a step is a send; where they form none, as in an
interleaved schedule, in that of their numbers.  Ranks of a tensor or context group work on one replica together, and so
does a pipeline.  Where ranks of a pipeline are not here, the order of its group decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from stepscope.analysis.workers.collectives import Collectives
from stepscope.analysis.workers.matching import Pair, members_of
from stepscope.analysis.workers.parallel_groups import passes_on
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.vocabulary.collectives import parallelism_of

_OF_REPLICA = ("tensor", "context")


@dataclass(frozen=True)
class Layout:
    """Places of ranks.

    Attributes:
        stage: int64 of shape (ranks,), -1 without a pipeline; replica: int64 of shape (ranks,), both from 0.
    """

    stage: I64
    replica: I64

    @property
    def stages(self) -> int:
        """How many stages the pipelines have, 0 for none."""
        return int(self.stage.max(initial=-1)) + 1

    @property
    def replicas(self) -> int:
        """How many replicas there are."""
        return int(self.replica.max(initial=-1)) + 1


def layout_of(collectives: Sequence[Collectives], pairs: Sequence[Pair]) -> Layout:
    """Finds the places of ranks.

    Args:
        pairs: sends with their receives.
    """
    near: list[set[int]] = [set() for _ in collectives]
    for (one, at), (other, _) in pairs:
        if passes_on(collectives[one], at):
            near[one].add(other)
            near[other].add(one)
    place = {of.rank: at for at, of in enumerate(collectives) if of.rank >= 0}
    members = [_pipeline_members(of) for of in collectives]
    together = [mine | {place[rank] for rank in of if rank in place} for mine, of in zip(near, members, strict=True)]
    stage = np.full(len(collectives), -1, np.int64)
    for pipeline in _components(together):
        listed = members[pipeline[0]]
        if len(pipeline) < len(listed):  # some are not here
            stage[pipeline] = [listed.index(collectives[rank].rank) for rank in pipeline]
        elif len(pipeline) > 1:
            stage[_order_stages(collectives, near, pipeline)] = np.arange(len(pipeline))
    near = together
    for own, of in enumerate(collectives):
        for group, purpose in zip(of.groups, of.purposes, strict=True):
            if parallelism_of(purpose, []) in _OF_REPLICA:
                near[own].update(place[rank] for rank in members_of(group) if rank in place and rank != of.rank)
    replica = np.zeros(len(collectives), np.int64)
    for number, ranks in enumerate(_components([near_of | _back(near, at) for at, near_of in enumerate(near)])):
        replica[ranks] = number
    return Layout(stage, replica)


def _pipeline_members(of: Collectives) -> list[int]:
    """The ranks of the group in which a rank sends and receives for a pipeline; empty if unknown."""
    at = next((at for at in of.transfers.collective if passes_on(of, at)), -1)
    members = members_of(of.groups[of.group[at]]) if at >= 0 else []
    return members if of.rank in members and len(members) > 2 else []


def _back(near: Sequence[set[int]], at: int) -> set[int]:
    return {other for other in near[at] if at in near[other]}


def _components(near: Sequence[Iterable[int]]) -> list[list[int]]:
    """Ranks that are connected, each list ascending, in the order of their first."""
    seen: set[int] = set()
    found = []
    for start in range(len(near)):
        reached = [] if start in seen else [start]
        seen.add(start)
        for here in reached:  # grows
            reached.extend(new := [other for other in near[here] if other not in seen])
            seen.update(new)
        if reached:
            found.append(sorted(reached))
    return found


def _order_stages(collectives: Sequence[Collectives], near: Sequence[set[int]], ranks: Sequence[int]) -> list[int]:
    """The ranks of a pipeline in the order of its stages."""
    ends = [rank for rank in ranks if len(near[rank]) == 1]
    if len(ends) != 2 or any(len(near[rank]) > 2 for rank in ranks):
        return sorted(ranks, key=lambda rank: (collectives[rank].rank, rank))
    first = next((rank for rank in ends if collectives[rank].transfers.sends[:1] == [True]), min(ends))
    chain = [first]
    while following := [rank for rank in near[chain[-1]] if rank not in chain[-2:]]:
        chain.append(following[0])
    return chain
