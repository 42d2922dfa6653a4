"""Runs the scripts of this folder with and without `stepscope run`, and compares.

    python -m bench.unmodified [--folder DIR] [NAME...]     prints a table in Markdown

Each script notes the end of each of its steps by its own clock (`clock.py`).  The captured steps are compared with the
same steps of that clock: their mean length, without the first and the last, which hold the start and the end of the
profiler by the script's clock alone.  What truly limits each script is in UNMODIFIED.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import stepscope
from stepscope.analysis.overview.overview_tool import OverviewReport

HERE = Path(__file__).parent
TOOLS = ("__main__", "clock")
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}


@dataclass(frozen=True)
class Outcome:
    """What one script gave; lengths in ms."""

    name: str
    unharmed: bool
    steps: int
    ours_ms: float
    theirs_ms: float
    cost: str
    verdict: str

    def to_row(self) -> str:
        """A row of the table."""
        off = f"{100 * (self.ours_ms / self.theirs_ms - 1):+.1f} %" if self.theirs_ms else "unknown"
        figures = f"{self.ours_ms:.3g} | {self.theirs_ms:.3g} | {off}"
        whole = "yes" if self.unharmed else "NO"
        return f"| {self.name} | {whole} | {self.steps} | {figures} | {self.cost} | {self.verdict} |"


def run_script(name: str, folder: Path) -> Outcome:
    """Runs a script twice in a folder, and reads what was captured."""
    script = str(HERE / f"{name}.py")
    plain = _run([script], folder, "")
    ours = _run(["-m", "stepscope", "run", "--quiet", "--logdir", "logs", script], folder, str(folder))
    unharmed = (plain.returncode, plain.stdout) == (ours.returncode, ours.stdout)
    report = stepscope.load(str(folder / "logs")).overview()
    numbers = [int(str(row["step"])) for row in report.step_rows]
    lengths = [float(str(row["duration_ms"])) for row in report.step_rows]
    ranks = [json.loads(path.read_text("utf-8")) for path in folder.glob("clock-*.json")]
    lengths_of_ranks = [[(after - before) / 1e6 for before, after in itertools.pairwise(each)] for each in ranks]
    clock = [max(each) for each in zip(*lengths_of_ranks, strict=True)]  # ours is that of the slowest rank, too
    both = [(length, clock[at]) for at, length in zip(numbers, lengths, strict=True) if at < len(clock)][1:-1]
    mine, theirs = (statistics.fmean(each) if both else 0.0 for each in zip(*both, strict=True)) if both else (0.0, 0.0)
    return Outcome(name, unharmed, len(numbers), mine, theirs, _cost_text(report), report.verdict.sentence)


def _cost_text(report: OverviewReport) -> str:
    cost = report.profiling
    return "unknown" if cost is None else f"{cost.percent:+.0f} %{'' if cost.is_clear else ' (noise)'}"


def _run(words: Sequence[str], folder: Path, clock: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | QUIET | {"CLOCK_FOLDER": clock}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="the scripts (default: all)")
    parser.add_argument("--folder", type=Path, default=None, help="where their captures stay")
    asked = parser.parse_args()
    names = asked.names or sorted(path.stem for path in HERE.glob("*.py") if path.stem not in (*TOOLS, "__init__"))
    print("| script | unharmed | steps | ours ms | its clock ms | off | cost | verdict |")
    print("| --- | --- | ---: | ---: | ---: | ---: | --- | --- |")
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            folder = (asked.folder or Path(scratch)) / name
            folder.mkdir(parents=True, exist_ok=True)
            print(run_script(name, folder).to_row(), flush=True)


if __name__ == "__main__":
    main()
