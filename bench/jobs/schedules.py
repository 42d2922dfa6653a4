"""In which order the stages of a pipeline compute, and where their sends and receives go.

The orders are the published ones: 1F1B (PipeDream-Flush), interleaved 1F1B (Narayanan et al. 2021) and ZB-H1 (Qi et al.
2023), which splits the backward pass and fills the bubble with the gradients of weights.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

SCHEDULES = ("1f1b", "interleaved", "zb")


class Action(NamedTuple):
    """What a stage does: F, B or W (forward, backward, gradients of weights), or a send or receive (SF, SB, RF, RB).

    `part` counts the parts of the model, over all stages; `peer` is the stage at the other end.
    """

    kind: str
    part: int
    microbatch: int
    peer: int = -1


def order_stage(schedule: str, stage: int, stages: int, microbatches: int, chunks: int = 1) -> list[Action]:
    """The computing of one stage, in order."""
    if schedule == "interleaved":
        return _interleaved(stage, stages, microbatches, chunks)
    forward = [Action("F", stage, each) for each in range(microbatches)]
    backward = [Action("B", stage, each) for each in range(microbatches)]
    merged = _one_each(forward, backward, min(stages - 1 - stage, microbatches))
    return _with_weights(merged, stage) if schedule == "zb" else merged


def _interleaved(stage: int, stages: int, microbatches: int, chunks: int) -> list[Action]:
    if microbatches % stages:
        raise ValueError("an interleaved schedule needs a multiple of its stages as microbatches")
    count = microbatches * chunks
    forward, backward = [], []
    for at in range(count):
        chunk = at % (stages * chunks) // stages
        microbatch = at // (stages * chunks) * stages + at % stages
        forward.append(Action("F", chunk * stages + stage, microbatch))
        backward.append(Action("B", (chunks - 1 - chunk) * stages + stage, microbatch))
    return _one_each(forward, backward, min(2 * (stages - stage - 1) + (chunks - 1) * stages, count))


def _one_each(forward: list[Action], backward: list[Action], ahead: int) -> list[Action]:
    """So many forward passes, then one of each, then the backward passes that are left."""
    pairs = [one for pair in zip(forward[ahead:], backward, strict=False) for one in pair]
    return [*forward[:ahead], *pairs, *backward[len(forward) - ahead :]]


def _with_weights(order: list[Action], delay: int) -> list[Action]:
    """Each W after the B that comes `delay` later than its own; what is left at the end."""
    found: list[Action] = []
    owed: list[Action] = []
    for one in order:
        found.append(one)
        if one.kind == "B":
            owed.append(one._replace(kind="W"))
            if len(owed) > delay:
                found.append(owed.pop(0))
    return [*found, *owed]


def place_transfers(orders: Sequence[Sequence[Action]], parts: int) -> list[list[Action]]:
    """The orders with sends and receives.

    A result is sent when it is there, and received at that time.  As both ends list their transfers in one order of
    time, streams that keep their order cannot block each other for ever.
    """
    stages = len(orders)
    placed: list[list[Action]] = [[] for _ in orders]
    next_at, free = [0] * stages, [0.0] * stages
    there: dict[tuple[str, int, int], float] = {("F", 0, one.microbatch): 0.0 for one in orders[0] if one.part == 0}
    events: list[tuple[float, int, int, Action]] = []
    slots = 1.0 if any(one.kind == "W" for order in orders for one in order) else 2.0
    now, serial = 0.0, 0
    while True:
        for stage in range(stages):
            while next_at[stage] < len(orders[stage]) and free[stage] <= now:
                one = orders[stage][next_at[stage]]
                if one.kind != "W" and there.get(one[:3], now + 1) > now:
                    break
                placed[stage].append(one)
                next_at[stage], serial = next_at[stage] + 1, serial + 1
                free[stage] = now + (slots if one.kind == "B" else 1.0)
                heapq.heappush(events, (free[stage], serial, stage, one))
        if not events:
            break
        now = events[0][0]
        while events and events[0][0] == now:
            _, _, stage, one = heapq.heappop(events)
            _pass_on(one, stage, stages, parts, now, there, placed)
    if any(at < len(order) for at, order in zip(next_at, orders, strict=True)):
        raise ValueError("the stages of this schedule wait for each other")
    return placed


def _pass_on(
    one: Action,
    stage: int,
    stages: int,
    parts: int,
    now: float,
    there: dict[tuple[str, int, int], float],
    placed: list[list[Action]],
) -> None:
    """What follows from a computation that is done: the next part's, on this stage or, by a transfer, on another."""
    kind, part, microbatch, _ = one
    if kind == "W":
        return
    if kind == "F" and part == parts - 1:
        there["B", part, microbatch] = now
        return
    other = part + (1 if kind == "F" else -1)
    if other < 0:
        return
    there[kind, other, microbatch] = now
    if other % stages != stage:
        placed[stage].append(Action(f"S{kind}", part, microbatch, other % stages))
        placed[other % stages].append(Action(f"R{kind}", other, microbatch, stage))
