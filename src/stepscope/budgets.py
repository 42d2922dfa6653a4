"""`stepscope.gate` and `stepscope.budget`: budgets for a session, in continuous integration and in tests."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from stepscope.errors import CaptureError, RegressionError, UsageError

if TYPE_CHECKING:
    from stepscope.analysis.gate.budgets import Budget
    from stepscope.analysis.gate.figures import JudgedSession
    from stepscope.analysis.gate.gate_report import GateReport
    from stepscope.api import LoadedProfile
    from stepscope.capture import Profile
    from stepscope.report import Report

_Path = str | os.PathLike[str]
_TOOLS = ("op-stats",)  # what the judge reads besides what every comparison does


_MEMORY = 1 << 30
"""Bytes of decoded traces that are kept: a side is read again in groups of its steps."""


class BudgetWarning(UserWarning):
    """A figure is beyond its budget, but by no more than the noise."""


def gate(
    before: LoadedProfile | _Path | Sequence[LoadedProfile | _Path],
    after: LoadedProfile | _Path | Sequence[LoadedProfile | _Path],
    budgets: _Path | Mapping[str, object],
    *,
    last: int = 1,
    host: str | None = None,
    accept_other: bool = False,
    progress: Callable[[str], None] | None = None,
) -> GateReport:
    """Checks whether sessions keep their budgets, and whether what breaks one is more than noise.

    Args:
        before: the baseline, or several: paths as for `load`, or loaded profiles.
        after: what is judged: one run, or several of the same program.
        budgets: a budget file, or its content as a mapping of figures to limits.
        last: how many of the newest sessions below each path before are baselines.
        host: the host to read on both sides; all hosts if None.
        accept_other: whether baselines of another model or device are compared all the same.
        progress: called with a short sentence when a longer piece of work starts.

    Raises:
        NotFoundError, AccessError, InputError: a profile does not exist or cannot be read.
        UsageError: the budgets cannot be read, one names no figure, or a baseline is of another model or device.
    """
    from stepscope.analysis.gate.gate_report import make_gate_report

    wanted = read_budgets(budgets)
    one = [session for each in _listed(before) for session in _sessions(each, host, last, progress)]
    other = [session for each in _listed(after) for session in _sessions(each, host, 1, progress)]
    return make_gate_report(one, other, wanted, accept_other)


def read_budgets(budgets: _Path | Mapping[str, object]) -> tuple[Budget, ...]:
    """The budgets of a file or a mapping.  Raises UsageError."""
    from stepscope.analysis.gate.budgets import make_budgets, parse_budgets

    if isinstance(budgets, Mapping):
        return make_budgets(budgets)
    path = Path(budgets)
    try:
        return parse_budgets(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not text"
        hint = "give a TOML or JSON file with budgets"
        raise UsageError(f"the budget file cannot be read: {what}", path=path, hint=hint) from error


def _listed(sides: LoadedProfile | _Path | Sequence[LoadedProfile | _Path]) -> list[LoadedProfile | _Path]:
    is_one = isinstance(sides, str | os.PathLike) or not isinstance(sides, Sequence)
    return [sides] if is_one else list(sides)  # type: ignore[list-item, arg-type]


def _sessions(
    path: LoadedProfile | _Path, host: str | None, last: int, progress: Callable[[str], None] | None
) -> list[JudgedSession]:
    from stepscope.api import LoadedProfile, load
    from stepscope.formats.session import find_sessions
    from stepscope.shelf import TraceShelf

    if isinstance(path, LoadedProfile):
        return [open_session(path, host)]
    runs = [None] if last == 1 else [session.run for session in find_sessions(path)[:last]]
    shelf = TraceShelf(_MEMORY)
    profiles = [load(path, run=run, host=host, shelf=shelf, progress=progress) for run in reversed(runs)]
    return [open_session(profile, host) for profile in profiles]


def open_session(profile: LoadedProfile, host: str | None) -> JudgedSession:
    """A session whose reports are made when a budget asks for them, each once."""
    from stepscope.analysis.compare.sides import side_of
    from stepscope.analysis.gate.figures import JudgedSession

    known: dict[tuple[str, str | None], Report] = {}

    def ask(tool: str, steps: str | None) -> Report:
        if (tool, steps) not in known:
            known[tool, steps] = profile.report(tool, host, steps)
        return known[tool, steps]

    def ask_all(names: Sequence[str], within_steps: bool) -> dict[str, Report]:
        return {name: ask(name, "all" if within_steps else None) for name in names}

    return JudgedSession(side_of(profile.run, profile.path, ask_all, _TOOLS), ask)


class budget:  # noqa: N801 - it reads as a statement: `with stepscope.budget(step_ms=20):`
    """Records what a `with` block does, and fails if it breaks a budget: for tests.

        def test_training_is_fast():
            with stepscope.budget(step_ms=20, input_percent=5, memory_bytes="2 GiB"):
                for i in range(20):
                    with stepscope.step(i):
                        train_step()

    A figure beyond its limit by no more than the noise is a BudgetWarning.

    Args:
        baseline: a session, or several, for budgets such as `step_ms="+5 %"`.
        logdir: where the profile is written; a temporary folder if None, which is removed.
        options: as for `Profile`.
        figures: further budgets by the ids of figures.
        short: budgets by short names: `step_ms`, `input_percent`, `memory_bytes`.

    Attributes:
        report: how the budgets were kept; None until the block has ended.
        profile: the loaded profile; None until then, and with a temporary folder it can be read only from memory.

    Raises:
        UsageError: a budget cannot be read; before the block runs.
        RegressionError: a budget is broken, or cannot be checked.
        CaptureError: the block could not be recorded.
    """

    def __init__(
        self,
        *,
        baseline: LoadedProfile | _Path | Sequence[LoadedProfile | _Path] = (),
        logdir: _Path | None = None,
        options: object = None,
        figures: Mapping[str, object] | None = None,
        **short: object,
    ) -> None:
        self.report: GateReport | None = None
        self.profile: LoadedProfile | None = None
        self._budgets = {**short, **(figures or {})}
        _check_names(read_budgets(self._budgets))
        self._baseline = baseline
        self._logdir, self._options = logdir, options
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._capture: Profile | None = None

    def __enter__(self) -> Self:
        from stepscope.capture import Profile

        if self._logdir is None:
            self._folder = tempfile.TemporaryDirectory(prefix="stepscope-budget-", ignore_cleanup_errors=True)
        self._capture = Profile(self._logdir or Path(self._folder.name if self._folder else "."), self._options)
        self._capture.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        assert self._capture is not None
        try:
            self._capture.__exit__(kind, error, trace)
            if error is None:
                self._judge(self._capture.path)
        finally:
            if self._folder is not None:
                self._folder.cleanup()

    def _judge(self, path: Path | None) -> None:
        from stepscope.api import load

        if path is None:
            raise CaptureError("the block was not recorded, so its budgets cannot be checked", hint="see the log")
        self.profile = load(path)
        self.report = gate(self._baseline, self.profile, self._budgets)
        text = self.report.verdict_text
        if self.report.verdict == "failed":
            raise RegressionError(text, code="over-budget")
        if self.report.verdict == "warned":
            warnings.warn(text, BudgetWarning, stacklevel=3)


def _check_names(budgets: Sequence[Budget]) -> None:
    """Raises UsageError for a figure that no tool can have, before anything is recorded."""
    from stepscope.analysis.gate.figures import STEP_MS, parse_figure

    for each in budgets:
        if each.figure != STEP_MS:
            parse_figure(each.figure)
