"""What it takes to have Stepscope: `python -m bench.package`, into bench/PACKAGE.md.

The size of its wheel, the time of its imports, and the time from `pip install` of the wheel in a fresh environment to
the first insight.

The fresh environment has no compiler on its PATH.  Elapsed times depend on the network and on what else the machine
does, so processor times stand beside them.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from stepscope.records import dataclass

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "PACKAGE.md"
REPEATS = 9
_NEEDED = ("sh", "uname")  # programs that pip or Python call; a compiler is not among them


@dataclass(frozen=True)
class Cost:
    """Elapsed and processor time of a command, in seconds."""

    elapsed_s: float
    processor_s: float


def cost_of(words: Sequence[str | Path], environment: dict[str, str] | None = None) -> Cost:
    """Runs a command once.  Raises CalledProcessError if it fails."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    return Cost(time.monotonic() - started, used)


def median_cost(words: Sequence[str | Path]) -> Cost:
    """The medians of several runs, after one that compiles Python files."""
    cost_of(words)
    costs = [cost_of(words) for _ in range(REPEATS)]
    return Cost(*(statistics.median(getattr(each, name) for each in costs) for name in ("elapsed_s", "processor_s")))


def build_wheel(folder: Path) -> Path:
    """Builds the wheel of this checkout."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


def size_rows(wheel: Path) -> Iterator[tuple[str, str]]:
    """The size of the wheel as a whole, and unpacked by part."""
    yield "wheel", f"{wheel.stat().st_size / 1e6:.1f} MB"
    parts: Counter[str] = Counter()
    for each in zipfile.ZipFile(wheel).infolist():
        parts[_part_of(each.filename)] += each.file_size
    for part, nbytes in parts.most_common():
        yield f"unpacked: {part}", f"{nbytes / 1e6:.1f} MB"


def _part_of(name: str) -> str:
    if "/web/static/" in name:
        return "the page"
    return "compiled loops" if name.endswith((".so", ".pyd")) else "Python"


def start_rows() -> Iterator[tuple[str, str]]:
    """The cost of starting, beyond that of Python itself."""
    empty = median_cost([sys.executable, "-c", ""])
    programs = {
        "`import stepscope`": ["-c", "import stepscope"],
        "`stepscope --version`": ["-m", "stepscope", "--version"],
        "`stepscope --help`": ["-m", "stepscope", "--help"],
    }
    for name, words in programs.items():
        used = median_cost([sys.executable, *words]).processor_s - empty.processor_s
        yield name, f"{1000 * used:.0f} ms of processor time beyond `python -c ''`"


def first_insight_rows(wheel: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """From a fresh environment to the first summary."""
    venv.create(folder / "venv", with_pip=True)
    bare = folder / "bin"
    bare.mkdir()
    for name in _NEEDED:
        if found := shutil.which(name):
            (bare / name).symlink_to(found)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "STEPSCOPE_"))}
    environment = clean | {"PATH": str(bare), "DEMO_ONCE": "1"}
    python = folder / "venv" / "bin" / "python"
    install = cost_of([python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel], environment)
    demo = cost_of([python, "-m", "stepscope", "demo", "--framework", "numpy"], environment)
    for name, cost in (("`pip install` of the wheel", install), ("`stepscope demo`, to its summary", demo)):
        yield name, f"{cost.elapsed_s:.1f} s, of which {cost.processor_s:.1f} s of processor time"


def main() -> None:
    """Measures, and writes the results."""
    with tempfile.TemporaryDirectory() as made:
        wheel = build_wheel(Path(made) / "wheel")
        rows = [*size_rows(wheel), *start_rows(), *first_insight_rows(wheel, Path(made))]
    lines = ["# The package", "", "Written by `python -m bench.package`.", "", "| what | measured |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    lines += ["", f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}."]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
