"""The results as Markdown."""

from __future__ import annotations

import os
import platform
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from bench.measures import Measure
from bench.process import Limits, Sample
from bench.profiles import BenchProfile
from bench.tools import count_cores, find_versions


@dataclass(frozen=True)
class Measured:
    """A measure and the samples of each of its actions."""

    measure: Measure
    samples: Mapping[str, Sequence[Sample]]


@dataclass(frozen=True)
class Section:
    """What was measured on one profile."""

    profile: BenchProfile
    measured: Sequence[Measured]


@dataclass(frozen=True)
class Growth:
    """Runs of one task on a profile of so many events: how long each took, and the samples."""

    events: int
    seconds: Sequence[float]
    samples: Sequence[Sample]


def render_growth(rows: Sequence[Growth]) -> str:
    """Time and memory by the number of events, which shows whether both grow in proportion."""
    head = ("Events", "Time", "Time per million events", "CPU", "CPU per million events", "Peak")
    lines = ["## Growth", "", f"| {' | '.join(head)} |", f"|{' ---: |' * len(head)}"]
    for row in rows:
        millions = row.events / 1e6
        seconds = statistics.median(row.seconds)
        processor = statistics.median(sample.cpu_s for sample in row.samples)
        times = (f"{value:.2f} s" for value in (seconds, seconds / millions, processor, processor / millions))
        lines.append(f"| {' | '.join((f'{row.events:,}', *times, _peak_text(row.samples)))} |")
    return "\n".join(lines)


def take_turns(measure: Measure, rounds: int) -> Measured:
    """Runs the tools in turn, `rounds` times; a tool that fails is not run again."""
    samples: dict[str, list[Sample]] = {name: [] for name in measure.actions}
    print(f"  {measure.title}", file=sys.stderr, flush=True)
    for _ in range(rounds):
        for name, action in measure.actions.items():
            if any(sample.failure for sample in samples[name]):
                continue
            sample = action()
            samples[name].append(sample)
            said = sample.failure or f"{measure.takes(sample):.3f} s, {sample.peak_bytes / 1e6:,.0f} MB"
            print(f"    {name}: {said}", file=sys.stderr, flush=True)
    return Measured(measure, samples)


def render_page(
    sections: Sequence[Section],
    limits: Limits,
    rounds: str,
    command: str = "python -m bench",
    compared: Mapping[str, str] | None = None,
) -> str:
    """The whole page; `compared` has the versions of tools that run under other interpreters."""
    parts = [_make_preamble(limits, rounds, command, {**find_versions(), **(compared or {})})]
    for section in sections:
        parts.append(_profile_heading(section.profile))
        parts += [_make_table(measured, section.profile) for measured in section.measured]
    return "\n\n".join(parts) + "\n"


def _make_preamble(limits: Limits, rounds: str, command: str, compared: Mapping[str, str]) -> str:
    known = ", ".join(f"{name} {version}" for name, version in compared.items())
    return f"""# Bench results

Written by `{command}` on {date.today().isoformat()}; how to read and repeat it: [README](README.md).

- Machine: {describe_machine()}.
- Versions: {known}.
- Rounds: {rounds}. In a round the tools take turns on the same file. Figures are medians, with the smallest and
  largest in brackets. Files are in the page cache.
- Ratio: the tool's time over Stepscope's, so above 1 means that Stepscope is faster.
- CPU: processor time of the whole process with all its threads, warm-up and start included, median. It is more
  reliable than the time if the machine was busy with other work.
- Peak: largest resident memory of the whole process, median.
- Limits of a process: {limits.seconds:.0f} s and {limits.address_space_bytes / 1e9:.0f} GB of address space. A tool
  that exceeds one is shown with the reason."""


def describe_machine() -> str:
    """The machine in a few words."""
    system = f"{platform.system()} {platform.machine()}"
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{_processor_name()}, {count_cores()} cores used, {memory_gb:.0f} GB of memory, {system}"


def _processor_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _profile_heading(profile: BenchProfile) -> str:
    return (
        f"## {profile.events:,} events, {profile.bytes / 1e6:,.0f} MB\n\n"
        f"`{profile.base}` repeated {profile.repetitions} times."
    )


def _make_table(measured: Measured, profile: BenchProfile) -> str:
    measure = measured.measure
    rate = " Rate |" if measure.per_byte else ""
    lines = [
        f"### {measure.title}",
        "",
        measure.meaning,
        "",
        f"| | Time | Ratio |{rate} CPU | Peak | What it says |",
        f"| --- | ---: | ---: |{' ---: |' if rate else ''} ---: | ---: | --- |",
    ]
    reference = _median_seconds(measured, next(iter(measured.samples)))
    for name, samples in measured.samples.items():
        lines.append(_make_row(measured, name, samples, reference, profile))
    return "\n".join(lines)


def _make_row(
    measured: Measured, name: str, samples: Sequence[Sample], reference: float | None, of: BenchProfile
) -> str:
    costs = f"{_processor_text(samples)} | {_peak_text(samples)}"
    failures = [sample.failure for sample in samples if sample.failure]
    if failures:
        empty_rate = " |" if measured.measure.per_byte else ""
        return f"| {name} | no result | |{empty_rate} {costs} | {failures[0].replace('|', '/')} |"
    seconds = [measured.measure.takes(sample) for sample in samples]
    median = statistics.median(seconds)
    ratio = f"{median / reference:.2f}" if reference else ""
    rate = f" {of.bytes / median / 1e9:.2f} GB/s |" if measured.measure.per_byte else ""
    return f"| {name} | {_spread_text(seconds)} | {ratio} |{rate} {costs} | {_answer_text(samples[-1])} |"


def _median_seconds(measured: Measured, name: str) -> float | None:
    samples = measured.samples[name]
    if not samples or any(sample.failure for sample in samples):
        return None
    return statistics.median(measured.measure.takes(sample) for sample in samples)


def _spread_text(seconds: Sequence[float]) -> str:
    unit, scale, digits = ("ms", 1e3, 1) if max(seconds) < 1 else ("s", 1.0, 2)
    figures = (min(seconds), statistics.median(seconds), max(seconds))
    low, middle, high = (f"{value * scale:.{digits}f}" for value in figures)
    return f"{middle} {unit} ({low}-{high})"


def _processor_text(samples: Sequence[Sample]) -> str:
    return f"{statistics.median(sample.cpu_s for sample in samples):.2f} s"


def _peak_text(samples: Sequence[Sample]) -> str:
    return f"{statistics.median(sample.peak_bytes for sample in samples) / 1e6:,.0f} MB"


def _answer_text(sample: Sample) -> str:
    words = []
    for key, value in sample.answer.items():
        if key == "mean_ms" and value is not None:
            words.append(f"mean step {value:.1f} ms")
        elif key == "brought":
            words.append("brings " + (", ".join(value) or "no heavy package"))
        elif key == "busy_ms":
            words.append(f"devices busy for {value:,.1f} ms")
        elif isinstance(value, int):
            words.append(f"{value:,} {key}")
    return "; ".join(words)
