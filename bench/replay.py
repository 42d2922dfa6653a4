"""`python -m bench.replay`: measures how far a replayed step is from the recorded one.

Replays the steps of real profiles from other projects and of recorded programs of the three frameworks, and writes the
result into `docs/replay.md`. It finds the profiles below `STEPSCOPE_SHARED`, or `../shared` beside the checkout.
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
from bench.pages import put
from bench.replay_constants import constants_table, measure_constants, replay_once
from bench.replay_others import replay_from_others
from bench.replay_ranks import ranks_table, replay_sessions
from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.build import build_graph, graph_of
from stepscope.analysis.account.replay import replay
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.blocking import blocking_calls
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.model import HostTrace

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STEPSCOPE_SHARED", ROOT.parent / "shared"))
PAGE = ROOT / "docs" / "replay.md"
LEAST_STEPS = 3  # needed to predict one step from the others
AVERAGE, MOST = 3.3, 10.0
_COLUMNS = (
    "capture", "steps", "ms", "events", "edges a step", "inferred %", "waits %", "unknown %", "replay %",
    "worst step %", "from others %", "predicted %", "guess %",
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
    predicted: float | None
    guess: float | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Puts the tables into the page; returns 1 if the replay error exceeds its limits, else 0."""
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
    put(options.output, "all captures", f"{_summary_sentence('All captures', [*real, *programs])}\n\n{speed}")
    put(options.output, "real profiles", _make_table(real))
    put(options.output, "recorded programs", _make_table(programs))
    if ranks:
        put(options.output, "ranks", ranks_table(ranks))
    put(options.output, "constants", constants_table(constants))
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
    measured, account = replay_once(trace), account_of(trace)
    if measured is None or account is None:
        return None
    graph, usual = measured.graph, measured.steps
    recorded = graph.recorded_step_ps[usual]
    others = _measure_forecast(trace, usual, recorded) if len(usual) >= LEAST_STEPS else (None, None, None)
    return Replayed(
        name=name,
        steps=len(usual),
        step_ms=float(np.median(recorded)) / 1e9,
        events=len(trace.events),
        edges=measured.edges,
        inferred=100.0 * float(graph.edges.inferred.mean()) if len(graph.edges) else 0.0,
        waits=measured.waits,
        unknown=100.0 * sum(row.ps for row in account.rows if row.cause == "unknown") / account.step_ps,
        error=measured.error,
        worst=100.0 * float(np.max(np.abs(measured.again.step_ps[usual] / recorded - 1))),
        from_others=others[0],
        predicted=others[1],
        guess=others[2],
    )


def _measure_forecast(trace: HostTrace, usual: np.ndarray, recorded: np.ndarray) -> tuple[float, float, float]:
    graph = build_graph(trace)
    assert graph is not None
    predicted = replay_from_others(trace, graph, usual)
    guess = np.array([np.median(np.delete(recorded, at)) for at in range(len(recorded))])
    median = float(np.median(recorded))
    return (
        abs(float(np.median(predicted)) - median) / median * 100.0,
        float(np.median(np.abs(predicted - recorded) / recorded)) * 100.0,
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
            *("" if value is None else f"{value:.1f}" for value in (each.from_others, each.predicted, each.guess)),
        ]  # fmt: skip
        lines.append(f"| {each.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
