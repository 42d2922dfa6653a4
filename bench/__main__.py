"""`python -m bench`: build the profiles, measure, write RESULTS.md."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench import profiles
from bench.measures import Measure, list_measures, list_start_measures
from bench.process import Limits
from bench.profiles import BenchProfile
from bench.report import Growth, Measured, Section, render_growth, render_page, take_turns
from bench.tools import Stepscope

LARGE, HUGE, QUICK = 1_160_000, 10_000_000, 230_000
GROWTH = (LARGE, 3_000_000, HUGE, 30_000_000)
ROUNDS, ROUNDS_HUGE = 5, 3
RESULTS = Path(__file__).with_name("RESULTS.md")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench; returns 1 if Stepscope failed somewhere, else 0."""
    options = _options(arguments)
    limits = Limits.for_this_machine(options.timeout)
    small = profiles.obtain(1, options.base)
    sections = []
    for events, rounds in _plan(options):
        profile = profiles.obtain(events, options.base)
        _log(f"{profile.events:,} events, {profile.bytes / 1e6:,.0f} MB: {profile.path}")
        _warm_up(profile, small, limits)
        wanted = [*list_measures(profile, small, limits)]
        if events != HUGE:
            wanted += list_start_measures(profile, limits)
        measured = [take_turns(measure, rounds) for measure in wanted if _is_wanted(measure, options.only)]
        sections.append(Section(profile, measured))
    page = render_page(
        sections, limits, ", ".join(f"{rounds} at {events:,} events" for events, rounds in _plan(options))
    )
    wants_growth = not options.quick and not options.no_huge and (not options.only or "growth" in options.only)
    growth = _measure_growth(options, limits) if wants_growth else []
    options.output.write_text(f"{page}\n{render_growth(growth)}\n" if growth else page)
    _log(f"written to {options.output}")
    return int(any(_stepscope_failed(section.measured) for section in sections))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one profile of 0.2 M events, three rounds")
    parser.add_argument("--only", action="append", metavar="NAME", help="only the measures whose names start with NAME")
    parser.add_argument("--rounds", type=int, help=f"instead of {ROUNDS} ({ROUNDS_HUGE} for the largest profile)")
    parser.add_argument("--no-huge", action="store_true", help="leave out the profiles of more than 1.2 M events")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="S", help="stop a process after this long")
    parser.add_argument("--base", type=Path, metavar="FILE", help="the profile to repeat")
    parser.add_argument("--output", type=Path, help="where the results go")
    options = parser.parse_args(arguments)
    if options.output is None:
        partial = options.quick or options.only or options.no_huge or options.base
        options.output = profiles.folder() / "RESULTS.md" if partial else RESULTS
        options.output.parent.mkdir(parents=True, exist_ok=True)
    return options


def _plan(options: argparse.Namespace) -> list[tuple[int, int]]:
    """(events, rounds) of each profile."""
    if options.quick:
        return [(QUICK, options.rounds or 3)]
    large = [(LARGE, options.rounds or ROUNDS)]
    return large if options.no_huge else [*large, (HUGE, options.rounds or ROUNDS_HUGE)]


def _measure_growth(options: argparse.Namespace, limits: Limits) -> list[Growth]:
    """The command line's overview, as a whole process, of profiles of 1 to 30 M events; one that fails ends it."""
    found = []
    for events in GROWTH:
        profile = profiles.obtain(events, options.base)
        profiles.read_once(profile)
        _log(f"  growth: {profile.events:,} events")
        samples = [Stepscope().run_command_line(profile.path, limits) for _ in range(options.rounds or ROUNDS_HUGE)]
        if any(sample.failure for sample in samples):
            break
        found.append(Growth(profile.events, [sample.wall_s for sample in samples], samples))
    return found


def _warm_up(profile: BenchProfile, small: BenchProfile, limits: Limits) -> None:
    """Reads the file into the page cache and lets Stepscope compile its kernels."""
    profiles.read_once(profile)
    Stepscope().run_cold(small.path, limits)


def _is_wanted(measure: Measure, only: Iterable[str] | None) -> bool:
    return not only or any(measure.name.startswith(name) for name in only)


def _stepscope_failed(measured: Iterable[Measured]) -> bool:
    return any(
        sample.failure
        for each in measured
        for name, samples in each.samples.items()
        if name.startswith("Stepscope")
        for sample in samples
    )


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.exit(main())
