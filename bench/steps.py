"""`python -m bench.steps FOLDER ...`: how often steps without marks are the steps that the program marks.

Takes the marks away from recorded captures, asks for the steps, and compares them with the marked ones.  The loops of
`bench.step_loops` are recorded for this, and captures below the folders are added.  Writes `docs/steps-truth.md`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from stepscope.analysis.steps.find_steps import HostSteps, steps_of
from stepscope.analysis.trace.repairs import repair
from stepscope.formats.base import require_format
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "steps-truth.md"
LEAST_STEPS = 3
FRAMEWORKS = ("tensorflow", "jax", "pytorch")
_SAME = 0.95  # of the steps: with fewer in their places, the steps are others
_BUCKETS = (0.95, 0.9, 0.8, 0.6, 0.0)
_HEAD = """# How right steps without marks are

Made by `python -m bench.steps`. The marks of recorded captures are taken away, and the steps that are then inferred are
compared with the marked ones. They are the same if their numbers differ by one at most (a recording may cut the first
or the last), and at least 95 % of them are in their places: exactly one marked step starts in each, or each starts at
the same distance from its mark. Captures are those of real loops: plain ones of 5, 12 and 40 iterations, gradient
accumulation, two optimizers that step one after the other or in turn, evaluation and checkpoints in between, updates
written by hand, the recorded programs with known bottlenecks, and public and drawn recordings of others.
"""


@dataclass(frozen=True)
class Compared:
    """One capture.

    Attributes:
        name, framework: of the capture.
        marked, found: how many steps there are; found is 0 where none were inferred.
        confidence: of the inferred steps; None without any.
        same: the inferred steps are the marked ones.
    """

    name: str
    framework: str
    marked: int
    found: int
    confidence: float | None
    same: bool


def remove_marks(trace: HostTrace) -> HostTrace:
    """The same trace as if nobody had marked steps, neither the program nor the writer of the file."""
    kind = trace.events.kind.copy()
    kind[np.isin(kind, (EventKind.STEP_MARK, EventKind.DEVICE_STEP))] = EventKind.OVERHEAD
    return replace(trace, events=replace(trace.events, kind=kind), _derived={})


def are_same_steps(marked: HostSteps, found: HostSteps) -> bool:
    """Whether inferred steps are the marked ones; see the page's head."""
    ours, theirs = marked.start_ps, found.start_ps
    if abs(len(ours) - len(theirs)) > 1:
        return False
    return max(_alternate(ours, theirs), *(_keep_distance(ours, theirs, shift) for shift in (-1, 0, 1))) >= _SAME


def _alternate(marked: I64, found: I64) -> float:
    """The share of inferred steps in which exactly one marked step starts."""
    place = np.searchsorted(found, marked, side="right")
    count = np.bincount(place, minlength=len(found) + 1)[1:-1]
    return float(np.mean(count == 1)) if len(count) else 0.0


def _keep_distance(marked: I64, found: I64, shift: int) -> float:
    """The share of inferred steps that start at their usual distance from a mark, give or take half a step."""
    ours, theirs = marked[max(shift, 0) :], found[max(-shift, 0) :]
    n = min(len(ours), len(theirs))
    if n < LEAST_STEPS:
        return 0.0
    distance = theirs[:n] - ours[:n]
    length = np.diff(np.append(ours[:n], ours[n - 1] + np.median(np.diff(ours))))
    return float(np.mean(np.abs(distance - np.median(distance)) < length / 2))


def compare(path: Path, name: str) -> Compared | None:
    """One capture with and without its marks; None if it has too few marked steps."""
    trace = repair(require_format(path.name, str(path)).read(path.read_bytes(), str(path), "host"))
    marked = steps_of(trace)
    if marked.source != "markers" or len(marked.number) < LEAST_STEPS:
        return None
    found = steps_of(remove_marks(trace))
    if found.source == "none":
        return Compared(name, trace.framework, len(marked.number), 0, None, False)
    same = are_same_steps(marked, found)
    return Compared(name, trace.framework, len(marked.number), len(found.number), found.confidence, same)


def captures_below(folder: Path) -> Iterator[Path]:
    """The profiles below a folder, one for each host and session."""
    for path in sorted(folder.rglob("*")):
        if path.name.endswith((".xplane.pb", ".pt.trace.json", ".pt.trace.json.gz")):
            yield path


def render(compared: Sequence[Compared]) -> str:
    """The page."""
    lines = [_HEAD, "| framework | captures | the same steps | share |", "| --- | ---: | ---: | ---: |"]
    for framework in FRAMEWORKS:
        lines.append(_count_row(framework, [each for each in compared if each.framework == framework]))
    lines += [_count_row("all", compared), "", "## Confidence", "", _CONFIDENCE, ""]
    lines += ["| confidence | captures | the same steps | share |", "| --- | ---: | ---: | ---: |"]
    high = 1.0 + 1e-9
    for low in _BUCKETS:
        inside = [each for each in compared if each.confidence is not None and low <= each.confidence < high]
        lines.append(_count_row(f"{low:g} to {min(high, 1.0):g}", inside))
        high = low
    lines.append(_count_row("no steps found", [each for each in compared if each.confidence is None]))
    wrong = [each for each in compared if not each.same]
    if wrong:
        lines += [
            "",
            "## Not the same",
            "",
            "| capture | marked | found | confidence |",
            "| --- | ---: | ---: | ---: |",
        ]
        lines += [
            f"| {each.name} | {each.marked} | {each.found} | {each.confidence or 'none found'} |" for each in wrong
        ]
    return "\n".join(lines) + "\n"


_CONFIDENCE = """Every report of inferred steps says how sure they are. Of the captures in a row, the share whose steps
are the marked ones should be as high as the confidence or higher."""


def _count_row(name: str, compared: Sequence[Compared]) -> str:
    same = sum(each.same for each in compared)
    share = f"{100 * same / len(compared):.0f} %" if compared else ""
    return f"| {name} | {len(compared)} | {same} | {share} |"


def _record_loops(folder: Path) -> None:
    for framework in ("torch", "jax"):
        subprocess.run([sys.executable, "-m", "bench.step_loops", framework, str(folder / framework)], check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Records, compares, and writes the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.steps", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="more captures")
    parser.add_argument("--output", type=Path, default=PAGE, help="where the page goes")
    options = parser.parse_args(arguments)
    compared: list[Compared] = []
    with tempfile.TemporaryDirectory() as fresh:
        _record_loops(Path(fresh))
        for folder in (Path(fresh), *options.folders):
            for path in captures_below(folder):
                found = compare(path, str(path.relative_to(folder).parent).partition("/plugins/")[0])
                compared += [found] if found else []
    options.output.write_text(render(compared), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
