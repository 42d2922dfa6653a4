"""How much the replay depends on the constants of the model: each is varied alone, over all captures.

`python -m bench.replay` calls it. A constant belongs in the middle of a plateau: where neither the replay error nor the
number of edges changes much with it, no capture was tuned for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import numpy as np

from stepscope.analysis.account import dependencies, queues, threads
from stepscope.analysis.account.build import build_graph
from stepscope.analysis.account.graph import NO_LINE, Graph
from stepscope.analysis.account.model import usual_steps
from stepscope.analysis.account.replay import Replay, replay, replay_error_percent
from stepscope.model import HostTrace
from stepscope.model.arrays import I64

_THREADS = "threads of the model"  # what a trace keeps that depends on a constant


@dataclass(frozen=True)
class Constant:
    """A constant of the model, what it decides, and the values to try."""

    module: ModuleType
    name: str
    meaning: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Effect:
    """What a value gives: replay errors in percent, edges a step, and waiting in percent of a step."""

    value: float
    average: float
    worst: float
    edges: float
    waits: float


class Measured(NamedTuple):
    """The graph of a host, its usual steps and their replay; its error and the waiting in percent of a step."""

    graph: Graph
    steps: I64
    again: Replay
    error: float
    edges: float
    waits: float


CONSTANTS: tuple[Constant, ...] = (
    Constant(
        dependencies, "_MOSTLY", "share of a wait in a call that others fill with work", (0.1, 0.3, 0.5, 0.7, 0.9)
    ),
    Constant(dependencies, "_NEARLY_ALL", "the same of a wait that looks like Python", (0.7, 0.8, 0.9, 0.95, 0.99)),
    Constant(dependencies, "_MOST_LEFT", "share of a wait left after what ended it", (0.02, 0.05, 0.1, 0.2, 0.4)),
    Constant(
        dependencies,
        "_ALWAYS_LEFT_PS",
        "time left after what ended a wait (ps)",
        (10_000_000, 25_000_000, 50_000_000, 100_000_000, 200_000_000),
    ),
    Constant(
        threads,
        "SHORTEST_WAIT_PS",
        "the shortest gap of a thread that may be a wait (ps)",
        (2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000),
    ),
    Constant(queues, "_SWITCH_PERCENTILE", "percentile of gaps that a queue needs between work", (10, 30, 50, 70, 90)),
)


def measure_constants(traces: Sequence[HostTrace]) -> Iterator[tuple[Constant, list[Effect]]]:
    """The effects of each constant's values, the others as they are."""
    for constant in CONSTANTS:
        usual = getattr(constant.module, constant.name)
        try:
            yield constant, [_effect_of(constant, value, traces) for value in constant.values]
        finally:
            setattr(constant.module, constant.name, usual)
            _forget_threads(traces)


def constants_table(found: Sequence[tuple[Constant, list[Effect]]]) -> str:
    """The effects as a table; the value in use is bold."""
    lines = [
        "| constant | value | replay % | worst % | edges a step | waits % |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for constant, effects in found:
        usual = getattr(constant.module, constant.name)
        for at, effect in enumerate(effects):
            value = f"**{effect.value:,g}**" if effect.value == usual else f"{effect.value:,g}"
            lines.append(
                f"| {'' if at else f'`{constant.name}`: {constant.meaning}'} | {value} | {effect.average:.2f} |"
                f" {effect.worst:.2f} | {effect.edges:,.0f} | {effect.waits:,.0f} |"
            )
    return "\n".join(lines)


def _effect_of(constant: Constant, value: float, traces: Sequence[HostTrace]) -> Effect:
    setattr(constant.module, constant.name, value)
    _forget_threads(traces)
    found = [measured for trace in traces if (measured := replay_once(trace)) is not None]
    means = (float(np.mean([getattr(each, name) for each in found])) for name in ("error", "edges", "waits"))
    average, edges, waits = means
    return Effect(value, average, max(each.error for each in found), edges, waits)


def replay_once(trace: HostTrace) -> Measured | None:
    """Replays the steps of a host that are about as long as usual; None without such steps."""
    graph = build_graph(trace)
    if graph is None:
        return None
    steps, again = usual_steps(trace, graph), replay(graph)
    error = replay_error_percent(graph, again, steps)
    if error is None:
        return None
    follows = (graph.previous >= 0) & (graph.line != NO_LINE)
    gaps = np.where(follows, graph.start_ps - graph.end_ps[graph.previous], 0)
    median = float(np.median(graph.recorded_step_ps[steps]))
    waits = 100.0 * float(np.maximum(gaps, 0).sum()) / len(graph.steps) / median
    return Measured(graph, steps, again, error, len(graph.edges) / len(graph.steps), waits)


def _forget_threads(traces: Sequence[HostTrace]) -> None:
    for trace in traces:
        trace._derived.pop(_THREADS, None)
