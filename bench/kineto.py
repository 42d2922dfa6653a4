"""Compares Stepscope with HolisticTraceAnalysis on Kineto traces of PyTorch: `python -m bench.kineto`.

    STEPSCOPE_HTA_PYTHON=hta/bin/python python -m bench.kineto      HTA under its own interpreter
    python -m bench.kineto --quick                                  only the smallest trace, three rounds
    python -m bench.kineto --base FILE                              repeat another `*.pt.trace.json[.gz]`

The trace of the corpus that has 76 thousand events, or a made-up one, is repeated 20 and 40 times.  A run that leaves
something out writes to KINETO.md in the bench folder and does not replace the full results here.  Without HTA, its rows
are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.measures import Measure, first_call_seconds, process_seconds
from bench.process import REPOSITORY, Limits, Sample, run_worker
from bench.profiles import BenchProfile, folder, read_once, shared_file
from bench.report import Growth, Section, render_growth, render_page, take_turns
from bench.tools import Stepscope

VERSION = 1
CORPUS_FILE = "corpus/torch-v100-resnet50-workers0/worker0.1623143089861.pt.trace.json.gz"
ONCE, LARGE, TWICE = 76_000, 1_520_000, 3_040_000
WARM_UP_EVENTS = 1
ROUNDS = {ONCE: 5, LARGE: 3, TWICE: 3}
RESULTS = Path(__file__).with_name("KINETO.md")
HTA_VARIABLE = "STEPSCOPE_HTA_PYTHON"


class Hta:
    """HolisticTraceAnalysis: its load and temporal breakdown."""

    name = "HTA"

    def __init__(self, python: str) -> None:
        self.python = python

    def run_cold(self, path: Path, limits: Limits) -> Sample:
        """A whole process: start, import, read, analyse, exit."""
        return run_worker([self.python, "-m", "bench.hta_worker", str(path)], limits, {})

    def call_warm(self, path: Path, small: Path, limits: Limits) -> Sample:
        """The first call on `path` in a process that has analysed `small`."""
        return run_worker([self.python, "-m", "bench.hta_worker", str(path), "--warm", str(small)], limits, {})


def find_hta() -> Hta | None:
    """HTA under the interpreter that the environment names, else under this one; None if it is not installed."""
    python = os.environ.get(HTA_VARIABLE) or (sys.executable if importlib.util.find_spec("hta") else None)
    return Hta(python) if python else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench; returns 1 if Stepscope failed somewhere, else 0."""
    options = _options(arguments)
    limits, other = Limits.for_this_machine(options.timeout), find_hta()
    if other is None:
        print(f"HTA is not installed; {HTA_VARIABLE} names an interpreter that has it", file=sys.stderr)
    small = obtain(WARM_UP_EVENTS, None)
    Stepscope().run_cold(small.path, limits)  # compiles what is not compiled yet
    sections = []
    for events in (ONCE,) if options.quick else (ONCE, LARGE, TWICE):
        profile = obtain(events, options.base)
        print(f"{profile.events:,} events, {profile.bytes / 1e6:,.0f} MB: {profile.path}", file=sys.stderr, flush=True)
        read_once(profile)
        # The largest trace shows how time and memory grow; HTA would take minutes for each round of it.
        wanted = (
            _list_measures(profile, small, other, limits)
            if events != TWICE
            else _list_measures(profile, small, None, limits)[:1]
        )
        sections.append(Section(profile, [take_turns(each, options.rounds or ROUNDS[events]) for each in wanted]))
    page = render_page(sections, limits, _rounds(options), "python -m bench.kineto", _hta_version(sections))
    options.output.write_text(page if options.quick else f"{page}\n{render_growth(_growth(sections))}\n")
    print(f"written to {options.output}", file=sys.stderr)
    measured = [each.samples[Stepscope.name] for section in sections for each in section.measured]
    return int(any(sample.failure for samples in measured for sample in samples))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.kineto", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the smallest trace")
    parser.add_argument("--rounds", type=int, help="instead of 5, and 3 for the large traces")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="S", help="stop a process after this long")
    parser.add_argument("--base", type=Path, metavar="FILE", help="the trace to repeat")
    parser.add_argument("--output", type=Path, help="where the results go")
    options = parser.parse_args(arguments)
    if options.output is None:
        options.output = folder() / RESULTS.name if options.quick or options.base or options.rounds else RESULTS
        options.output.parent.mkdir(parents=True, exist_ok=True)
    return options


def _rounds(options: argparse.Namespace) -> str:
    return str(options.rounds) if options.rounds else f"{ROUNDS[ONCE]}, of the large traces {ROUNDS[LARGE]}"


def obtain(events: int, source: Path | None) -> BenchProfile:
    """A trace of about `events` events, built now or earlier by a separate process."""
    source = source or shared_file(CORPUS_FILE)
    if events == WARM_UP_EVENTS:
        source = None
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:8] if source else "synthetic"
    home = folder() / f"kineto-v{VERSION}-{digest}-{events}"
    path, facts = home / "bench.pt.trace.json", home / "profile.json"
    if not facts.exists():
        home.mkdir(parents=True, exist_ok=True)
        half_made = home / f"{path.name}.{os.getpid()}"
        command = [sys.executable, "-m", "bench.kineto_build", str(half_made), str(events)]
        done = subprocess.run(
            [*command, *([str(source)] if source else [])], cwd=REPOSITORY, check=True, capture_output=True, text=True
        )
        half_made.replace(path)
        facts.write_text(done.stdout)
    written, repetitions = json.loads(facts.read_text())
    return BenchProfile(path, path.stat().st_size, written, repetitions, source.name if source else "a made-up trace")


def _list_measures(profile: BenchProfile, small: BenchProfile, other: Hta | None, limits: Limits) -> list[Measure]:
    subjects: list[Stepscope | Hta] = [Stepscope(), *([other] if other else [])]

    def running(tool: Stepscope | Hta) -> Callable[[], Sample]:
        return lambda: tool.call_warm(profile.path, small.path, limits)

    def run_cold(tool: Stepscope | Hta) -> Callable[[], Sample]:
        return lambda: tool.run_cold(profile.path, limits)

    return [
        Measure(
            "running",
            "Overview, running process",
            "Load and overview in a process that has already analysed a small trace, without result cache; for HTA its "
            "load and temporal breakdown.",
            {tool.name: running(tool) for tool in subjects},
            first_call_seconds,
            per_byte=True,
        ),
        Measure(
            "cold",
            "Overview, cold process",
            "The same from the start of the process to its exit.",
            {tool.name: run_cold(tool) for tool in subjects},
            process_seconds,
        ),
    ]


def _hta_version(sections: Sequence[Section]) -> dict[str, str]:
    samples = [s for section in sections for each in section.measured for s in each.samples.get(Hta.name, ())]
    found = [str(sample.answer["version"]) for sample in samples if "version" in sample.answer]
    return {"HolisticTraceAnalysis": found[0]} if found else {}


def _growth(sections: Sequence[Section]) -> list[Growth]:
    """The first measure of each section; one that failed is left out."""
    found = [(section.profile.events, section.measured[0].samples[Stepscope.name]) for section in sections]
    return [
        Growth(events, [sample.calls_s[0] for sample in samples], samples)
        for events, samples in found
        if samples and not any(sample.failure for sample in samples)
    ]


if __name__ == "__main__":
    sys.exit(main())
