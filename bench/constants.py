"""`python -m bench.constants FOLDER...`: how far a number of the rules may move before an answer changes.

Each number of `analysis/advice` is set to other values, and the advice on every recording in the folders is given anew.
The page says the range of values with which the first advice has the class that it has now, on every recording. A
number whose range ends near its value decides between programs; one with a wide range only tells much from little.

The recordings are read once: numbers that the facts and the account use are not moved.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from types import ModuleType

import stepscope
from bench.freeze import list_recordings
from stepscope.analysis.advice import no_advice, ranking
from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.ranking import Advised
from stepscope.analysis.advice.rule import Rule, own_rules
from stepscope.analysis.overview.overview_tool import OverviewReport
from stepscope.analysis.steps.verdict import LEAST_PERCENT

PAGE = Path(__file__).resolve().parent / "CONSTANTS.md"
_HEAD = """\
# How far the numbers of the rules may move

Made by `python -m bench.constants FOLDER...` of {recordings} recordings: the given captures with a known fault, their
fixed variants, and profiles of GPUs and a TPU. Each number was set to other values, down to a fifth and up to five
times, a count to the nearest whole number, and the advice given anew. Between the two ends the first advice has the
class that it has now on every recording. A number whose range is wide only tells much from little, or matters on none
of these recordings; one that cannot be halved or doubled decides between programs.

| number | value | from | to | |
| --- | --- | --- | --- | --- |
"""
FACTORS = (1.25, 2.0, 5.0)


@dataclass(frozen=True)
class Number:
    """A number of the rules.

    Attributes:
        name: of the rule whose threshold it is, or of the constant, with its module.
        value: an int is a count, and its other values are whole numbers.
        advise: gives the advice on a run with another value of it.
    """

    name: str
    value: float
    advise: Callable[[Context, float], Advised]


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page: a row for each number, with the least and the most with which all answers stay."""
    parser = argparse.ArgumentParser(prog="python -m bench.constants", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    places = [place for folder in parser.parse_args(arguments).folders for place in list_recordings(folder)]
    reports = [stepscope.load(place).report("overview") for place in places]
    contexts = [report.context for report in reports if isinstance(report, OverviewReport)]
    now = [_first_class(ranking.advise(context, own_rules())) for context in contexts]
    rows = [_describe(number, contexts, now) for number in (*find_thresholds(), *find_constants())]
    PAGE.write_text("".join([_HEAD.format(recordings=len(contexts)), *rows]), encoding="utf-8")
    return 0


def _describe(number: Number, contexts: Sequence[Context], now: Sequence[str]) -> str:
    least, most = stable_range(number, contexts, now)
    decides = number.value > 0 and (least > _times(number.value, 1 / 2) or most < _times(number.value, 2))
    return f"| `{number.name}` | {number.value:g} | {least:.3g} | {most:.3g} | {'decides' if decides else ''} |\n"


def find_thresholds() -> Iterator[Number]:
    """The share from which rules apply: the one of nearly all of them, and those of the others."""

    def advise_with(rules: list[Rule], context: Context, value: float) -> Advised:
        changed = [replace(each, threshold_percent=value) if each in rules else each for each in own_rules()]
        return ranking.advise(context, changed)

    shared = [rule for rule in own_rules() if rule.threshold_percent == LEAST_PERCENT]
    yield Number("rules", LEAST_PERCENT, partial(advise_with, shared))
    for rule in own_rules():
        if rule not in shared:
            yield Number(f"rule {rule.id}", rule.threshold_percent, partial(advise_with, [rule]))


def find_constants() -> Iterator[Number]:
    """The numbers that functions of the rules' modules and of their ranking read.

    A number that is only the threshold of rules is moved with each of them.
    """
    modules = {sys.modules[each.__module__] for rule in own_rules() if (each := rule.find or rule.evaluate) is not None}
    for module in sorted({*modules, no_advice, ranking}, key=lambda module: module.__name__):
        body = ast.parse(Path(str(module.__file__)).read_text("utf-8")).body
        functions = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        read = {each.id for node in functions for each in ast.walk(node) if isinstance(each, ast.Name)}
        for node in body:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            value = getattr(module, target.id) if isinstance(target, ast.Name) else None
            if isinstance(target, ast.Name) and target.id in read and isinstance(value, int | float):
                short = module.__name__.removeprefix("stepscope.analysis.")
                yield Number(f"{short}.{target.id}", value, partial(_advise_with_constant, module, target.id))


def _advise_with_constant(module: ModuleType, name: str, context: Context, value: float) -> Advised:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        return ranking.advise(context, own_rules())
    finally:
        setattr(module, name, before)


def stable_range(number: Number, contexts: Sequence[Context], now: Sequence[str]) -> tuple[float, float]:
    """The least and the most of the tried values with which the first advice keeps its class on every recording.

    Args:
        now: the class of the first advice on each.
    """

    def is_stable(value: float) -> bool:
        found = (_first_class(number.advise(context, value)) for context in contexts)
        return all(kind == before for kind, before in zip(found, now, strict=True))

    least = list(takewhile(is_stable, [_times(number.value, 1 / factor) for factor in FACTORS]))
    most = list(takewhile(is_stable, [_times(number.value, factor) for factor in FACTORS]))
    return [number.value, *least][-1], [number.value, *most][-1]


def _times(value: float, factor: float) -> float:
    return round(value * factor) if isinstance(value, int) else value * factor


def _first_class(advised: Advised) -> str:
    return advised.items[0].kind if advised.items else ""


if __name__ == "__main__":
    sys.exit(main())
