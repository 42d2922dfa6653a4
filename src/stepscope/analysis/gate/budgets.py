"""Budgets: which figure may be how large, as a file or a mapping says it.

A budget file is TOML or JSON: a table `budget` from figures to limits.  `figures.py` says how a figure is named.

    [budget]
    step_ms = "+5 %"                                                      # at most 5 % more than before
    input_percent = 10                                                    # at most 10
    memory_bytes = "<= 8 GiB"
    "op-stats.rows[name=aten::mm, side=device].total_self_us" = { rise_percent = 10, noise_percent = 3 }
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from stepscope.errors import UsageError
from stepscope.records import dataclass

_NUMBER = r"(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)"
_LIMIT = re.compile(rf"\s*(?P<sign><=|>=|\+|-|)\s*{_NUMBER}\s*(?P<unit>[A-Za-z%]*)\s*")
_SCALE = {
    "ns": ("time", 1e-9), "us": ("time", 1e-6), "ms": ("time", 1e-3), "s": ("time", 1.0),
    "B": ("bytes", 1.0), "bytes": ("bytes", 1.0),
    "kB": ("bytes", 1e3), "MB": ("bytes", 1e6), "GB": ("bytes", 1e9), "TB": ("bytes", 1e12),
    "KiB": ("bytes", 2.0**10), "MiB": ("bytes", 2.0**20), "GiB": ("bytes", 2.0**30), "TiB": ("bytes", 2.0**40),
}  # fmt: skip
_HOW = 'write a number, "<= 120 ms", ">= 40", "+5 %" (more than before) or "-5 %" (less than before)'
_TAKES = ("sum", "largest", "smallest", "mean")


@dataclass(frozen=True)
class Amount:
    """A number with the unit in which it was written; an empty unit is that of the figure."""

    value: float
    unit: str = ""

    def convert(self, unit: str) -> float:
        """The number in the unit of a figure.  Raises UsageError if it measures something else."""
        if self.unit in ("", unit) or (self.unit == "%" and unit == "percent"):
            return self.value
        mine, other = _SCALE.get(self.unit), _SCALE.get(unit)
        if mine is None or other is None or mine[0] != other[0]:
            raise UsageError(f"{self.value:g} {self.unit} is not an amount of {unit or 'a plain number'}")
        return self.value * mine[1] / other[1]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What one figure may be.

    Attributes:
        figure: its id.
        most, least: the largest and the smallest value allowed; None for no limit.
        rise_percent, fall_percent: how much more or less than before is allowed; None for no limit.
        noise_percent: a difference of up to this share of the value before is noise, whatever the steps say.
        per_step: whether a total is divided by the number of steps; None to decide by what the tool declares.
        take: how several rows become one value: `sum`, `largest`, `smallest` or `mean`; empty to require one row.
    """

    figure: str
    most: Amount | None = None
    least: Amount | None = None
    rise_percent: float | None = None
    fall_percent: float | None = None
    noise_percent: float = 0.0
    per_step: bool | None = None
    take: str = ""

    @property
    def is_relative(self) -> bool:
        """Whether it needs a session before."""
        return self.rise_percent is not None or self.fall_percent is not None


def parse_budgets(text: str, name: str) -> tuple[Budget, ...]:
    """The budgets of a file.

    Args:
        text: its content.
        name: its name, for messages; `.json` is read as JSON, any other as TOML.

    Raises:
        UsageError: the file is not TOML or JSON, or holds no budget, or one that cannot be read.
    """
    return make_budgets(_find_table(_parse_file(text, name)), name)


def make_budgets(limits: Mapping[str, object], name: str = "budgets") -> tuple[Budget, ...]:
    """Budgets from a mapping of figures to limits: a number, a text or a table.  Raises UsageError."""
    if not limits:
        raise UsageError("there is no budget", path=name, hint='for example: [budget] and step_ms = "+5 %"')
    return tuple(_make_budget(figure, limit) for figure, limit in limits.items())


def _parse_file(text: str, name: str) -> Mapping[str, Any]:
    try:
        read: Any = json.loads(text) if name.endswith(".json") else tomllib.loads(text)
    except ValueError as error:  # of both libraries
        raise UsageError(f"the budget file cannot be read: {error}", path=name, hint="write TOML or JSON") from error
    if not isinstance(read, dict):
        raise UsageError("the budget file is not a table", path=name, hint="write figures with their limits")
    return read


def _find_table(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table with the budgets: `budget`, `tool.stepscope.budget` of a pyproject.toml, or the whole file."""
    own = content.get("tool", {}).get("stepscope", {}) if isinstance(content.get("tool"), dict) else content
    found = own.get("budget", own)
    if not isinstance(found, dict):
        raise UsageError("`budget` is not a table", hint="write [budget], then a line for each figure")
    return found


def _make_budget(figure: str, limit: object) -> Budget:
    if isinstance(limit, dict):
        return _budget_of_table(figure, limit)
    if isinstance(limit, str):
        return _budget_of_text(figure, limit)
    return Budget(figure=figure, most=Amount(_number(figure, limit)))


def _budget_of_text(figure: str, text: str) -> Budget:
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is not a limit for {figure}", hint=_HOW)
    sign, value, unit = found["sign"], float(found["number"]), found["unit"]
    if sign in ("+", "-"):
        if unit not in ("%", "percent"):
            raise UsageError(f"{text!r} has no % sign, so it is not a limit for {figure}", hint=_HOW)
        return Budget(figure=figure, **{"rise_percent" if sign == "+" else "fall_percent": value})  # type: ignore[arg-type]
    return Budget(figure=figure, **{"least" if sign == ">=" else "most": Amount(value, unit)})  # type: ignore[arg-type]


def _budget_of_table(figure: str, table: Mapping[str, object]) -> Budget:
    _check_keys(figure, table)
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key in ("most", "least"):
            values[key] = _amount(figure, value)
        elif key == "take":
            values[key] = _one_of(figure, value, _TAKES)
        elif key == "per_step":
            values[key] = bool(_one_of(figure, value, (True, False)))
        else:
            values[key] = _number(figure, value)
    budget = Budget(figure=figure, **values)
    if budget.most is None and budget.least is None and not budget.is_relative:
        raise UsageError(f"the budget of {figure} has no limit", hint="give most, least, rise_percent or fall_percent")
    return budget


def _check_keys(figure: str, table: Mapping[str, object]) -> None:
    known = [field.name for field in fields(Budget) if field.name != "figure"]
    for key in table:
        if key not in known:
            meant = get_close_matches(key, known, n=1)
            guess = f"did you mean {meant[0]}? " if meant else ""
            raise UsageError(
                f"the budget of {figure} has an unknown key {key!r}", hint=f"{guess}keys: {', '.join(known)}"
            )


def _amount(figure: str, value: object) -> Amount:
    if not isinstance(value, str):
        return Amount(_number(figure, value))
    found = _LIMIT.fullmatch(value)
    if found is None or found["sign"]:
        raise UsageError(f"{value!r} is not an amount for {figure}", hint='write a number or "8 GiB"')
    return Amount(float(found["number"]), found["unit"])


def _number(figure: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise UsageError(f"{value!r} is not a limit for {figure}", hint=_HOW)
    return float(value)


def _one_of(figure: str, value: object, known: tuple[object, ...]) -> Any:
    if value not in known or type(value) is not type(known[0]):
        raise UsageError(f"{value!r} is unknown in the budget of {figure}", hint=", ".join(map(str, known)))
    return value
