"""What changes of the steps give on a session of several ranks: each rank's graph is changed, and all are replayed
together, so that ranks which waited for another one gain as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.contraction import CollectiveNodes, Contraction, contract
from stepscope.analysis.account.graph import Graph
from stepscope.analysis.account.interventions import (
    Changed,
    Intervention,
    Lengths,
    RangeEnd,
    change_lengths,
    has_device,
)
from stepscope.analysis.account.model import MOST_ERROR_PERCENT, StepModel
from stepscope.analysis.account.predict import (
    ENDS,
    Predicted,
    causes_after,
    describe_factor,
    is_uncertain,
    range_after,
    recorded_ps,
    share_undisturbed,
    sources_of,
    steady_steps,
)
from stepscope.analysis.account.replay import replay
from stepscope.analysis.account.shares import CauseShares
from stepscope.analysis.workers.joint_replay import (
    JointGraph,
    JointReplay,
    join_ranks,
    joint_error_percent,
    meeting_lengths,
    rank_of,
    replay_together,
    separate_removed,
)
from stepscope.analysis.workers.matching import StepKey
from stepscope.analysis.workers.rank_graphs import meetings_of
from stepscope.errors import counted
from stepscope.model.arrays import F64, I64
from stepscope.records import dataclass


@dataclass(frozen=True)
class JointModel:
    """The models of ranks that meet, without the time that they wait for each other.

    Attributes:
        models: of each rank; a collective takes as long as on the rank that came to it last.
        meetings: the nodes of each rank's collectives.
        shares: float64 of shape (nodes,) of each rank, what is left of the recorded length of nodes without that wait.
        graph: the meetings; error_percent: of each rank how far its median step in the joint replay is off.
    """

    models: tuple[StepModel, ...]
    meetings: tuple[CollectiveNodes, ...]
    shares: tuple[F64, ...]
    graph: JointGraph
    error_percent: tuple[float, ...]


def join_models(models: Sequence[StepModel]) -> tuple[JointModel | None, str]:
    """The models of all ranks together; None where two do not meet, or where the joint replay is too far off, and why
    they cannot be joined, empty where no host takes part in collectives."""
    ranks = [rank for model in models if (rank := rank_of(model.trace, with_work=False)) is not None]
    if not ranks:
        return None, ""
    graph = join_ranks(ranks) if 1 < len(ranks) == len(models) else None
    if graph is None:
        return None, "no collective matches on several ranks"
    errors = [error for error in joint_error_percent(graph, replay_together(graph)) if error is not None]
    if len(errors) < len(models) or max(errors) > MOST_ERROR_PERCENT:
        return None, f"replayed together, a step differs from the recorded one by {max(errors, default=100.0):.1f} %"
    return _join(models, graph, errors), ""


def _join(models: Sequence[StepModel], graph: JointGraph, errors: Sequence[float]) -> JointModel:
    meetings = tuple(meetings_of(model.trace, model.graph)[0] for model in models)
    left = [
        _share_without_wait(model.graph, each, rank.graph.contraction.length_ps, length)
        for model, each, rank, length in zip(models, meetings, graph.ranks, meeting_lengths(graph), strict=True)
    ]
    shortened = tuple(_shorten(model, share) for model, share in zip(models, left, strict=True))
    return JointModel(shortened, meetings, tuple(left), graph, tuple(errors))


def _share_without_wait(graph: Graph, meetings: CollectiveNodes, recorded_ps: I64, own_ps: I64) -> F64:
    """What is left of each node's length: float64 of shape (nodes,)."""
    share = np.ones(len(graph))
    ratio = np.divide(own_ps, recorded_ps, out=np.ones(len(meetings)), where=recorded_ps > 0)
    share[meetings.first] = share[meetings.last] = ratio
    return share


def _shorten(model: StepModel, share: F64) -> StepModel:
    own = model.shares.own_ps.scale(share)
    graph = replace(model.graph, own_ps=own.sum_by_node().astype(np.int64))
    return replace(model, graph=graph, shares=CauseShares(own, model.shares.edge_cause))


def predict_ranks(joint: JointModel, changes: Sequence[Sequence[Intervention]]) -> tuple[int, Predicted]:
    """What some changes give, all at once and on all ranks: the place of the rank that waits least for others then, and
    what its steps are.

    Args:
        changes: those of each rank, made of parts of its model as recorded.
    """
    changes = [
        [replace(each, part=replace(each.part, own_ps=each.part.own_ps.scale(share))) for each in mine]
        for mine, share in zip(changes, joint.shares, strict=True)
    ]
    factors = [share_undisturbed(model) for model in joint.models]
    before = _play(joint, [[] for _ in changes], RangeEnd.USUAL, factors)
    usual = _play(joint, changes, RangeEnd.USUAL, factors)
    uncertain = any(is_uncertain(mine) for mine in changes)
    ends = [_play(joint, changes, end, factors) if uncertain else usual for end in ENDS]
    sources = [*dict.fromkeys(source for mine in changes for source in sources_of(mine))]
    at = min(range(len(changes)), key=lambda rank: int(_waits(joint, usual, rank).sum()))
    model, now_ps = joint.models[at], recorded_ps(joint.models[at])
    first, then, fast, slow = (each.step_ps[at][steady_steps(model)] for each in (before, usual, *ends))
    range_ps = range_after(now_ps, joint.error_percent[at], has_device(model), first, then, fast, slow)
    causes = causes_after(model, _expand(joint, usual, at), range_ps[0])
    causes_now = causes_after(model, _expand(joint, before, at), now_ps)
    return at, Predicted(now_ps, *range_ps, causes, (*_reasons(joint, at, factors[at]), *sources), causes_now)


@dataclass(frozen=True)
class _Played:
    """A joint replay after changes.

    Attributes:
        lengths, contractions: of each rank; step_ps: with what limits a step as a whole.
    """

    lengths: list[Lengths]
    contractions: list[Contraction]
    replayed: JointReplay
    step_ps: list[I64]


def _play(
    joint: JointModel, changes: Sequence[Sequence[Intervention]], end: RangeEnd, factors: Sequence[float | F64]
) -> _Played:
    lengths = [
        change_lengths(model, mine, end, factor)
        for model, mine, factor in zip(joint.models, changes, factors, strict=True)
    ]
    contractions = [
        contract(model.graph, meetings, each.whole_ps, each.lag_ps, each.pause_ps)
        for model, meetings, each in zip(joint.models, joint.meetings, lengths, strict=True)
    ]
    replayed = replay_together(separate_removed(joint.graph, contractions), contractions)
    least = _least_by_key(joint.graph.keys_of_steps(), lengths)
    step_ps = [
        np.maximum(step, [least[key] for key in keys])
        for step, keys in zip(replayed.step_ps, joint.graph.keys_of_steps(), strict=True)
    ]
    return _Played(lengths, contractions, replayed, step_ps)


def _least_by_key(keys: Sequence[Sequence[StepKey]], lengths: Sequence[Lengths]) -> dict[StepKey, int]:
    """What each step takes at least on any rank, for the others meet it."""
    least: dict[StepKey, int] = {}
    for mine, each in zip(keys, lengths, strict=True):
        for key, ps in zip(mine, each.least_ps.tolist(), strict=True):
            least[key] = max(least.get(key, 0), ps)
    return least


def _waits(joint: JointModel, played: _Played, at: int) -> I64:
    """How much longer each collective of a rank takes than it does alone: int64 of shape (meetings,), ps."""
    first = int(joint.graph.first_row[at])
    rows = slice(first, first + len(joint.meetings[at]))
    waits: I64 = played.replayed.done_ps[rows] - played.replayed.arrival_ps[rows] - played.contractions[at].length_ps
    return waits


def _expand(joint: JointModel, played: _Played, at: int) -> Changed:
    """The joint replay as one of all nodes of a rank: its collectives take as long as it is in them."""
    graph, meetings = joint.models[at].graph, joint.meetings[at]
    own = played.lengths[at].own_ps
    own = own.add(meetings.last, Cause.COMMUNICATION, _waits(joint, played, at)).drop_negative()
    again = replay(
        graph, own.sum_by_node().astype(np.int64), None, played.lengths[at].lag_ps, played.lengths[at].pause_ps
    )
    return Changed(again, own, played.step_ps[at])


def _reasons(joint: JointModel, at: int, factor: float | F64) -> list[str]:
    count = len(joint.models)
    said = [
        f"{count} ranks were replayed together: each of {counted(joint.graph.common, 'collective')} waits for the last"
        " rank, and takes as long as on the one that waits least",
        f"the replay is off by {joint.error_percent[at]:.1f} %",
    ]
    if joint.graph.uneven:
        said.append(f"{counted(joint.graph.uneven, 'collective')} did not match, so their recorded lengths stay")
    if left_out := sum(rank.graph.left_out for rank in joint.graph.ranks):
        said.append(f"{counted(left_out, 'collective')} could not be placed in the model")
    if len(joint.models[at].steps) == 1:
        said.append("one step only")
    return [*said, *describe_factor(factor)]
