"""`python -m bench.replay`: measures how far a replayed step is from the recorded one.

Replays the steps of real profiles from other projects and of recorded programs of the three frameworks, and writes the
result to `docs/replay.md`. It finds the profiles below `STEPSCOPE_SHARED`, or `../shared` beside the checkout.
"""

from __future__ import annotations

import argparse
import os
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import stepscope
from bench.replay_constants import constants_table, measure_constants
from bench.replay_others import replay_from_others
from bench.replay_ranks import Together, ranks_table, replay_sessions
from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.build import build_graph, graph_of
from stepscope.analysis.account.graph import NO_LINE
from stepscope.analysis.account.model import usual_steps
from stepscope.analysis.account.replay import replay, replay_error_percent
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.blocking import blocking_calls
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.model import HostTrace

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STEPSCOPE_SHARED", ROOT.parent / "shared"))
PAGE = ROOT / "docs" / "replay.md"
LEAST_STEPS = 3  # needed to predict one step from the others
AVERAGE, MOST = 3.3, 10.0
_HEAD = """# How exact the replay is

Made by `python -m bench.replay`. The account of a step comes from a model of it: a graph of what ran, launched and
waited, which can be replayed. The replay uses how long things take by themselves and what they wait for. It does not
use the recorded starts of device work or the recorded lengths of waits. Two figures say how far to trust it:

- **replay**: how far the replayed median step is from the recorded one. With the right edges it is small; wrong or
  missing edges show here. A program that runs on a single thread has hardly any edges, so its replay is always right;
  the column `edges a step` shows which these are. The threads' own time is used as recorded, so a wait that the model
  takes for work is part of the replay and not of the error.
- **from others**: how far the median step is when each step is replayed with the median lengths of its ops, calls and
  kernels in the *other* steps, and only the edges are its own. This is a prediction from data of other steps. Medians
  of skewed times are below their mean, so most of these are too short. At least three steps are needed. `guess` is the
  median error of the guess that a step takes as long as the median of the others. `foretold` is that of the replay
  from others, step by step. Where steps differ in what they wait for, the replay shows it and the guess does not.

`waits` is the summed waiting time of threads and queues in a step, as a share of the step; the replay computes it.
`inferred` edges are not recorded in the trace; times and order suggest them. `unknown` is the share of the median step
for which the model has no explanation.
"""
_RANKS = """Ranks wait for each other in collectives. Alone, a rank is replayed with its collectives as long as they
were, waits for others included. Together, a collective takes as long as on the rank that came to it last, and starts
when the last rank has come; so each rank's step is computed from the work of all. Only collectives of the same group,
operation, place in the step and size are matched; the others keep their recorded lengths. `alone` and `together` are
errors of the median step, of the rank that is furthest off. Together is less exact: it knows no wait that was recorded,
and ranks leave a collective at slightly different times. `kB a rank` is all that this needs of a rank.

Sends and receives meet, too: a send is matched with its receive by step, group, both ranks and order, and both end
when the later one has come and the data is moved. A kernel of several sends and receives waits for each of its
partners, but these do not wait for each other. Its transfer with each of them lasts from when the second of the two
comes to when the first is through, on clocks aligned by collectives, which end together; where another
partner comes later, the kernel waits for that one. Work that starts late waited for the last of its reasons:
its stream, an event, a partner, a collective. Only what no reason explains is launching.

With equal work each op of a kind takes as long as the mean of its kind over all ranks in that step, and each transfer
as long as the median. S is how many times as long the steps are as with equal work. M_W is the share of that gain
that equal work of the slowest worker alone gives, M_S that of the last stage of a pipeline, as in
*Understanding Stragglers in Large Model Training Using What-if Analysis* (OSDI 2025). Of a job of that study, with
eight ranks in four stages, it says that S is 1.18, M_W 0.03 and M_S 1.22 in six steps; here these are 1.22, 0.02 and
1.01, and the replay is 1.9 % off. A cause is named if it explains at least half and 3 % of the step, a difference
without a cause from S = 1.1 on, where that study starts to speak of stragglers. `bench/RANKS.md` has simulated jobs
with their truth.
"""
_CONSTANTS = """Edges that no trace states are inferred, with a few constants. Each is varied alone here, over all
captures; the value in use is bold. It lies on a plateau, where neither the error nor the edges depend on it, and no
capture was tuned for.
"""
_COLUMNS = (
    "capture", "steps", "ms", "events", "edges a step", "inferred %", "waits %", "unknown %", "replay %",
    "worst step %", "from others %", "foretold %", "guess %",
)  # fmt: skip


@dataclass(frozen=True)
class Replayed:
    """The figures of one host's capture: percentages of the step; None if there are too few steps."""

    name: str
    steps: int
    step_ms: float
    events: int
    edges: float
    inferred: float
    waits: float
    unknown: float
    error: float
    worst: float
    from_others: float | None
    foretold: float | None
    guess: float | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page; returns 1 if the replay error exceeds its limits, else 0."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as folder:
        recorded = _extract_captures(options.shared, Path(folder))
        folders = sorted((options.shared / "corpus").glob("*/"))
        real, programs = list(_replay_all(folders, 1)), list(_replay_all(recorded, 2))
        ranks = [*replay_sessions(folders, 1), *replay_sessions([*recorded, *_sessions_below(options.ranks)], 2)]
        speed = _measure_speed(recorded)
        constants = list(measure_constants(_traces_with_steps([*folders, *recorded])))
    if not real and not programs:
        print(f"no profiles below {options.shared}", file=sys.stderr)
        return 1
    options.output.write_text(_make_page(real, programs, ranks, speed, constants_table(constants)), encoding="utf-8")
    errors = [each.error for each in (*real, *programs)]
    print(f"{len(errors)} captures: {np.mean(errors):.2f} % on average, at most {max(errors):.2f} %; {options.output}")
    return 0 if np.mean(errors) <= AVERAGE and max(errors) <= MOST else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description=__doc__)
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder with corpus/ and bottlenecks/")
    parser.add_argument("--ranks", type=Path, help="folder with more sessions of several ranks, as NAME/VARIANT")
    parser.add_argument("--output", type=Path, default=PAGE, help="where to write the page")
    return parser.parse_args(arguments)


def _sessions_below(folder: Path | None) -> list[Path]:
    return sorted(each for each in folder.glob("*/*/") if each.is_dir()) if folder else []


def _extract_captures(shared: Path, folder: Path) -> list[Path]:
    """The captures of programs, extracted."""
    archive = shared / "bottlenecks" / "captures.tar.xz"
    if archive.exists():
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return sorted(folder.glob("*/*/"))


def _traces_with_steps(folders: Sequence[Path]) -> list[HostTrace]:
    profiles = [stepscope.load(folder) for folder in folders]
    traces = [profile.trace(host) for profile in profiles for host in profile.hosts]
    return [trace for trace in traces if graph_of(trace) is not None]  # else the whole capture counts as one step


def _replay_all(folders: Sequence[Path], parts: int) -> Iterator[Replayed]:
    for folder in folders:
        profile = stepscope.load(folder)
        for at, host in enumerate(profile.hosts):
            name = "/".join(folder.parts[-parts:]) + (f" ({at})" if len(profile.hosts) > 1 else "")
            found = replay_capture(name, profile.trace(host))
            if found is not None:
                yield found


def replay_capture(name: str, trace: HostTrace) -> Replayed | None:
    """Measures one host; None if no steps were found."""
    graph = build_graph(trace)
    if graph is None:
        return None
    usual, again = usual_steps(trace, graph), replay(graph)
    recorded = graph.recorded_step_ps[usual]
    account, median = account_of(trace), float(np.median(recorded))
    error = replay_error_percent(graph, again, usual)
    if error is None or account is None:
        return None
    follows = (graph.previous >= 0) & (graph.line != NO_LINE)
    gaps = np.where(follows, graph.start_ps - graph.end_ps[graph.previous], 0)
    others = _measure_forecast(trace, usual, recorded) if len(usual) >= LEAST_STEPS else (None, None, None)
    return Replayed(
        name=name,
        steps=len(usual),
        step_ms=median / 1e9,
        events=len(trace.events),
        edges=len(graph.edges) / len(graph.steps),
        inferred=100.0 * float(graph.edges.inferred.mean()) if len(graph.edges) else 0.0,
        waits=100.0 * float(np.maximum(gaps, 0).sum()) / len(graph.steps) / median,
        unknown=100.0 * sum(row.ps for row in account.rows if row.cause == "unknown") / account.step_ps,
        error=error,
        worst=100.0 * float(np.max(np.abs(again.step_ps[usual] / graph.recorded_step_ps[usual] - 1))),
        from_others=others[0],
        foretold=others[1],
        guess=others[2],
    )


def _measure_forecast(trace: HostTrace, usual: np.ndarray, recorded: np.ndarray) -> tuple[float, float, float]:
    graph = build_graph(trace)
    assert graph is not None
    foretold = replay_from_others(trace, graph, usual)
    guess = np.array([np.median(np.delete(recorded, at)) for at in range(len(recorded))])
    median = float(np.median(recorded))
    return (
        abs(float(np.median(foretold)) - median) / median * 100.0,
        float(np.median(np.abs(foretold - recorded) / recorded)) * 100.0,
        float(np.median(np.abs(guess - recorded) / recorded)) * 100.0,
    )


def _measure_speed(folders: Sequence[Path]) -> str:
    """How long the model and its replay take on the largest capture."""
    if not folders:
        return ""
    largest = max(folders, key=lambda folder: sum(file.stat().st_size for file in folder.rglob("*.pb")))
    trace = stepscope.load(largest).trace()
    steps_of(trace), forest(trace), is_device_work(trace), blocking_calls(trace)
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        graph = build_graph(trace)
        assert graph is not None
        middle = time.perf_counter()
        replay(graph)
        times.append((middle - begin, time.perf_counter() - middle))
    build, again = (min(column) for column in zip(*times, strict=True))
    return (
        f"Model and replay of {len(trace.events):,} events took {1000 * build:,.0f} ms and {1000 * again:.1f} ms,"
        " beyond decoding, nesting and finding the steps, which every tool needs.\n"
    )


def _make_page(
    real: Sequence[Replayed], programs: Sequence[Replayed], ranks: Sequence[Together], speed: str, constants: str
) -> str:
    both = [*real, *programs]
    return "\n".join(
        [
            _HEAD,
            _summary_sentence("All captures", both),
            "",
            speed,
            "## Real profiles of other projects\n",
            _make_table(real),
            "",
            "## Recorded programs\n",
            "Small programs on a CPU, each recorded by the profiler of its framework, as in `bench/bottlenecks`.\n",
            _make_table(programs),
            "",
            *(["## Several ranks together\n", _RANKS, ranks_table(ranks), ""] if ranks else []),
            "## Constants\n",
            _CONSTANTS,
            constants,
            "",
        ]
    )


def _summary_sentence(what: str, found: Sequence[Replayed]) -> str:
    errors = [each.error for each in found]
    others = [each.from_others for each in found if each.from_others is not None]
    return (
        f"{what} ({len(found)}): the replay is {np.mean(errors):.2f} % off on average and {max(errors):.2f} % at worst;"
        f" from the other steps ({len(others)} captures) {np.mean(others):.2f} % on average,"
        f" {np.median(others):.2f} % in the median, {max(others):.2f} % at worst."
    )


def _make_table(found: Sequence[Replayed]) -> str:
    lines = [f"| {' | '.join(_COLUMNS)} |", f"| --- |{' ---: |' * (len(_COLUMNS) - 1)}"]
    for each in found:
        cells = [
            f"{each.steps}", f"{each.step_ms:,.1f}", f"{each.events:,}", f"{each.edges:,.0f}", f"{each.inferred:.0f}",
            f"{each.waits:,.0f}", f"{each.unknown:.1f}", f"{each.error:.2f}", f"{each.worst:.1f}",
            *("" if value is None else f"{value:.1f}" for value in (each.from_others, each.foretold, each.guess)),
        ]  # fmt: skip
        lines.append(f"| {each.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
