"""How far the steps of several ranks are from the recorded ones if all ranks are replayed together.

`python -m bench.replay` calls it, for each session in which ranks meet in collectives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

import stepscope
from stepscope.analysis.account.model import model_of
from stepscope.analysis.workers.joint_replay import (
    Member,
    join_ranks,
    joint_error_percent,
    rank_of,
    replay_together,
)
from stepscope.model import HostTrace

_COLUMNS = (
    "session", "ranks", "steps", "ms", "collectives", "not matched", "alone %", "together %", "worst step %",
    "kB a rank",
)  # fmt: skip


@dataclass(frozen=True)
class Together:
    """The figures of one session: errors in percent of the step, of the rank that is furthest off."""

    name: str
    ranks: int
    steps: int
    step_ms: float
    common: int
    uneven: int
    alone: float
    together: float
    worst: float
    kilobytes: float


def replay_sessions(folders: Sequence[Path], parts: int) -> Iterator[Together]:
    """Measures the sessions whose ranks meet.

    Args:
        parts: how many parts of a folder's path are its name.
    """
    for folder in folders:
        profile = stepscope.load(folder)
        if len(profile.hosts) > 1:
            found = replay_session("/".join(folder.parts[-parts:]), [profile.trace(host) for host in profile.hosts])
            if found is not None:
                yield found


def replay_session(name: str, traces: Sequence[HostTrace]) -> Together | None:
    """Measures one session; None where its ranks do not meet."""
    ranks = [rank for trace in traces if (rank := rank_of(trace)) is not None]
    graph = join_ranks(ranks) if len(ranks) > 1 else None
    if graph is None:
        return None
    now = replay_together(graph)
    alone = [model.error_percent or 0.0 for trace in traces if (model := model_of(trace)) is not None]
    first = graph.ranks[0].graph
    return Together(
        name=name,
        ranks=len(ranks),
        steps=int(first.usual.sum()),
        step_ms=float(np.median(first.recorded_ps[first.usual])) / 1e9,
        common=graph.common,
        uneven=graph.uneven,
        alone=max(alone),
        together=max(error or 0.0 for error in joint_error_percent(graph, now)),
        worst=max(_worst_step(rank, steps) for rank, steps in zip(graph.ranks, now.step_ps, strict=True)),
        kilobytes=max(len(msgspec.msgpack.encode(rank)) for rank in ranks) / 1000,
    )


def _worst_step(rank: Member, steps: np.ndarray) -> float:
    recorded = rank.graph.recorded_ps[rank.graph.usual]
    return 100.0 * float(np.max(np.abs(steps[rank.graph.usual] / recorded - 1.0)))


def ranks_table(found: Sequence[Together]) -> str:
    """A line of averages, and the sessions as a table."""
    alone, together = [each.alone for each in found], [each.together for each in found]
    lines = [
        f"{len(found)} sessions: together the rank that is furthest off is {np.mean(together):.2f} % off on average and"
        f" {max(together):.2f} % at worst; alone {np.mean(alone):.2f} % and {max(alone):.2f} %.",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"| --- |{' ---: |' * (len(_COLUMNS) - 1)}",
    ]
    for each in found:
        cells = (
            f"{each.ranks}", f"{each.steps}", f"{each.step_ms:,.1f}", f"{each.common:,}", f"{each.uneven:,}",
            f"{each.alone:.2f}", f"{each.together:.2f}", f"{each.worst:.1f}", f"{each.kilobytes:,.0f}",
        )  # fmt: skip
        lines.append(f"| {each.name} | {' | '.join(cells)} |")
    return "\n".join(lines)
