"""`python -m bench.advice`: checks whether the first advice is right and the predicted speed-up is the real one.

Compares what Stepscope says about the captures of a given set, slow and fixed, with what its manifest knows.
`bench.gains` does so with programs of our own.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import stepscope
from bench.pages import put

PAGE = Path(__file__).resolve().parent.parent / "docs" / "advice-truth.md"
TITLE = "Programs of a given set"
VARIANTS = ("slow", "fixed")
CLOSE = 0.2  # a predicted speed-up within this share of the real one is a good prediction


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
    parser = argparse.ArgumentParser(prog="python -m bench.advice", description=__doc__)
    parser.add_argument("--captures", type=Path, metavar="DIR", required=True, help="as NAME/slow and NAME/fixed")
    parser.add_argument("--manifest", type=Path, metavar="FILE", required=True, help="the classes and ratios")
    parser.add_argument("--output", type=Path, default=PAGE, help="where the page goes")
    options = parser.parse_args(arguments)
    found = [_judge_case(case) for case in _given_cases(options.captures, options.manifest)]
    section = "\n".join(_make_section(TITLE, found))
    print(section)
    put(options.output, TITLE, section)
    return int(not all(outcome.is_right for outcome in found))


def _given_cases(captures: Path, manifest: Path) -> Iterator[Case]:
    for entry in json.loads(manifest.read_text("utf-8"))["cases"]:
        yield Case(
            name=entry["id"],
            expected=entry["expected"],
            acceptable=tuple(entry.get("also_acceptable", ())),
            folder=captures / entry["id"],
            real=entry.get("measured_ratio"),
        )


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
