"""`python -m bench.advice`: checks whether the first advice is right and the predicted speed-up is the real one.

Runs the programs of `bench/bottlenecks`, slow and fixed, under their frameworks' own profilers, or takes existing
captures, and compares what Stepscope says about them with what is known.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stepscope
from bench.pages import put

PROGRAMS = Path(__file__).with_name("bottlenecks")
PAGE = Path(__file__).resolve().parent.parent / "docs" / "advice-truth.md"
FRAMEWORKS = ("tf", "jax", "torch")
VARIANTS = ("slow", "fixed")
CLOSE = 0.2  # a predicted speed-up within this share of the real one is a good prediction
OUTPUT = "out.txt"


@dataclass(frozen=True)
class Case:
    """A program and the folder of its captures; `real` is the measured speed-up, None if it was not measured."""

    name: str
    expected: str
    acceptable: tuple[str, ...]
    folder: Path
    real: float | None


@dataclass(frozen=True)
class Outcome:
    """What Stepscope says about a case."""

    case: Case
    first: str
    predicted: float | None
    expected: tuple[float, float] | None
    recorded: float
    fixed: str

    @property
    def is_right(self) -> bool:
        """Whether the first advice names the bottleneck."""
        return self.first in (self.case.expected, *self.case.acceptable)

    @property
    def is_shown(self) -> bool:
        """Whether the two traces show the real speed-up."""
        return bool(self.case.real) and abs(self.recorded / self.case.real - 1) <= CLOSE

    @property
    def is_expected(self) -> bool:
        """Whether the real speed-up lies in the predicted range."""
        real = self.case.real
        return real is not None and self.expected is not None and self.expected[0] <= real <= self.expected[1]

    @property
    def error(self) -> float | None:
        """Predicted over real speed-up, minus one."""
        if self.predicted is None or not self.case.real:
            return None
        return self.predicted / self.case.real - 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the tables and puts them into the page; returns 1 if a first advice is wrong, else 0."""
    options = _options(arguments)
    sets: dict[str, list[Outcome]] = {}
    if options.captures:
        sets["Programs of a given set"] = [
            _judge_case(case) for case in _given_cases(options.captures, options.manifest)
        ]
    if options.folder:
        if options.run:
            _capture_all(options.folder, options.only)
        sets["Programs of `bench/bottlenecks`"] = [_judge_case(case) for case in _own_cases(options.folder)]
    if options.again:
        sets["The same programs on a busy machine"] = [_judge_case(case) for case in _own_cases(options.again)]
    for name, found in sets.items():
        section = "\n".join(_make_section(name, found))
        print(section)
        if not options.only:
            put(options.output, name, section)
    return int(not all(outcome.is_right for found in sets.values() for outcome in found))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.advice", description=__doc__)
    parser.add_argument("--captures", type=Path, metavar="DIR", help="captures of a set, as NAME/slow and NAME/fixed")
    parser.add_argument("--manifest", type=Path, metavar="FILE", help="its classes and ratios")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="captures of our own programs")
    parser.add_argument(
        "--again", type=Path, metavar="DIR", help="more captures of them, made while others used the cores"
    )
    parser.add_argument("--run", action="store_true", help="run our own programs first, into that folder")
    parser.add_argument("--only", action="append", metavar="NAME", help="run only these, such as tf_eager_step")
    parser.add_argument("--output", type=Path, default=PAGE, help="where the page goes")
    options = parser.parse_args(arguments)
    if bool(options.captures) != bool(options.manifest):
        parser.error("--captures and --manifest belong together")
    if not options.captures and not options.folder:
        parser.error("give --folder DIR (with --run to fill it), or --captures DIR --manifest FILE")
    return options


def _given_cases(captures: Path, manifest: Path) -> Iterator[Case]:
    for entry in json.loads(manifest.read_text("utf-8"))["cases"]:
        yield Case(
            name=entry["id"],
            expected=entry["expected"],
            acceptable=tuple(entry.get("also_acceptable", ())),
            folder=captures / entry["id"],
            real=entry.get("measured_ratio"),
        )


def list_programs() -> Iterator[tuple[str, str, str]]:
    """Framework, name and class of our own programs, from the first word of their docstrings."""
    for framework in FRAMEWORKS:
        tree = ast.parse((PROGRAMS / f"{framework}_programs.py").read_text("utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield framework, node.name, (ast.get_docstring(node) or "").partition(":")[0]


def _own_cases(folder: Path) -> Iterator[Case]:
    for framework, name, kind in list_programs():
        place = folder / f"{framework}_{name}"
        if all((place / variant / OUTPUT).is_file() for variant in VARIANTS):
            times = [_step_ms(place / variant) for variant in VARIANTS]
            yield Case(place.name, kind, (), place, round(times[0] / times[1], 2))


def _step_ms(capture: Path) -> float:
    result: dict[str, Any] = json.loads((capture / OUTPUT).read_text("utf-8").splitlines()[-1])
    return float(result["step_ms"])


def _capture_all(folder: Path, only: Sequence[str] | None) -> None:
    for framework, name, _ in list_programs():
        if only and f"{framework}_{name}" not in only:
            continue
        for variant in VARIANTS:
            _capture(framework, name, variant, folder / f"{framework}_{name}" / variant)


def _capture(framework: str, name: str, variant: str, logdir: Path) -> None:
    logdir.mkdir(parents=True, exist_ok=True)
    module = f"bench.bottlenecks.{framework}_programs"
    command = [sys.executable, "-m", module, name, "--variant", variant, "--logdir", str(logdir)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=dict(os.environ))
    if done.returncode:
        print(f"{framework}_{name} {variant} failed: {done.stderr[-300:]}", file=sys.stderr)
        return
    (logdir / OUTPUT).write_text(done.stdout, encoding="utf-8")


def _judge_case(case: Case) -> Outcome:
    slow, fixed = (stepscope.load(case.folder / variant).overview() for variant in VARIANTS)
    first = slow.advice[0] if slow.advice else None
    left = ", ".join(item.kind for item in fixed.advice) or "no advice"
    return Outcome(
        case,
        first=first.kind if first else "no advice",
        predicted=first.predicted_speedup if first else None,
        expected=(found[0], found[1] or math.inf) if first and (found := first.speedup_range) else None,
        recorded=slow.context.period_ms / fixed.context.period_ms,
        fixed=left,
    )


def _make_section(title: str, outcomes: Sequence[Outcome]) -> list[str]:
    errors = [abs(outcome.error) for outcome in outcomes if outcome.error is not None]
    right = sum(outcome.is_right for outcome in outcomes)
    clean = sum(outcome.fixed == "none" for outcome in outcomes)
    shown = sum(outcome.error is not None and outcome.is_shown for outcome in outcomes)
    close = sum(error <= CLOSE for error in errors)
    expected = sum(outcome.error is not None and outcome.is_expected for outcome in outcomes)
    return [
        f"## {title}",
        "",
        f"The first advice is right in {right} of {len(outcomes)}, the fixed variant gets `none` in {clean} of"
        f" {len(outcomes)}, and the predicted speed-up is within {CLOSE:.0%} of the real one in {close} of"
        f" {len(errors)}. What the two traces themselves show, recording included, is as close to it in {shown}."
        f" The real one lies in the range that is said to be expected in {expected}.",
        "",
        "| program | bottleneck | first advice | | predicted | expected | real | error | recorded | once fixed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_make_row(outcome) for outcome in outcomes),
        "",
    ]


def _make_row(outcome: Outcome) -> str:
    case, error = outcome.case, outcome.error
    cells = (
        case.name,
        case.expected,
        outcome.first,
        "right" if outcome.is_right else "**wrong**",
        f"{outcome.predicted:.2f}" if outcome.predicted else "",
        f"{outcome.expected[0]:g} to {outcome.expected[1]:g}" if outcome.expected else "",
        f"{case.real:.2f}" if case.real else "",
        f"{100 * error:+.0f} %" if error is not None else "",
        f"{outcome.recorded:.2f}",
        outcome.fixed,
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
