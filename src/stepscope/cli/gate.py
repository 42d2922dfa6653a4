"""`stepscope gate`: checks budgets in continuous integration, and writes what CI systems and reviewers read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from stepscope import __version__
from stepscope.cli.options import Format, Output, OutputFormat, Top, argument, option
from stepscope.cli.show import show_report, working, write_file
from stepscope.cli.tools import check_folder, check_output
from stepscope.errors import RegressionError

if TYPE_CHECKING:
    from stepscope.analysis.gate.gate_report import GateReport

_Before = Annotated[str, argument(value="BEFORE", help="The baseline: a profile, a session or a logdir.")]
_After = Annotated[str, argument(value="AFTER", help="The profile to judge.")]
_Budget = Annotated[Path, option("--budget", value="FILE", help="The budgets: TOML, JSON, or a pyproject.toml.")]
_Files = list[str] | None
_Baselines = Annotated[
    _Files, option("--baseline", value="PATH", help="Another session before the change; repeatable.")
]
_Again = Annotated[_Files, option("--again", value="PATH", help="Another run of AFTER; repeatable.")]
_Last = Annotated[int, option("--last", least=1, help="Use the newest N sessions of each baseline.", value="N")]
_Host = Annotated[
    str | None, option("--host", value="NAME", help="The host to read on both sides (default: all hosts).")
]
_Strict = Annotated[bool, option("--strict", help="Also fail for a difference within the noise.")]
_AcceptOther = Annotated[bool, option("--accept-other", help="Accept a baseline of another model or device.")]
_Junit = Annotated[Path | None, option("--junit", value="FILE", help="Write JUnit XML.")]
_Sarif = Annotated[Path | None, option("--sarif", value="FILE", help="Write SARIF: findings with file and line.")]
_Markdown = Annotated[Path | None, option("--markdown", value="FILE", help="Write Markdown for a pull request.")]
_SKIPPED = frozenset({"node_modules", "__pycache__", "build", "dist", "venv", "site-packages"})
_MOST_FOLDERS = 20_000


def gate(
    before: _Before,
    after: _After,
    budget: _Budget,
    baseline: _Baselines = None,
    again: _Again = None,
    last: _Last = 1,
    host: _Host = None,
    strict: _Strict = False,
    accept_other: _AcceptOther = False,
    junit: _Junit = None,
    sarif: _Sarif = None,
    markdown: _Markdown = None,
    form: Format = OutputFormat.TABLE,
    output: Output = None,
    top: Top = None,
) -> None:
    """Checks budgets in CI.

    Exits with status 1 if a figure is beyond its limit by more than the noise.
    """
    from stepscope import budgets

    check_output(form, output)
    for path in filter(None, (junit, sarif, markdown)):
        check_folder(path)
    with working() as progress:
        report = budgets.gate(
            [before, *(baseline or [])],
            [after, *(again or [])],
            budget,
            last=last,
            host=host,
            accept_other=accept_other,
            progress=progress,
        )
    show_report(report, form, output, top)
    _write_files(report, str(budget), junit, sarif, markdown)
    if report.verdict == "failed" or (strict and report.verdict == "warned"):
        raise RegressionError(report.verdict_text, code="over-budget")


def _write_files(
    report: GateReport, budget: str, junit: Path | None, sarif: Path | None, markdown: Path | None
) -> None:
    from stepscope.report.findings import render_junit, render_sarif

    if junit is not None:
        write_file(junit, render_junit("stepscope gate", report.cases()))
    if sarif is not None:
        places = find_sources(Path.cwd(), {each.file for each in report.findings if each.file})
        write_file(sarif, render_sarif(__version__, report.findings, places, _relative_path(budget)))
    if markdown is not None:
        from stepscope.report.markdown import render_document

        write_file(markdown, render_document(report, 20).encode())


def _relative_path(path: str) -> str:
    """A path relative to the working folder, which is the repository's in CI; its name if it lies elsewhere."""
    full = Path(path).resolve()
    return str(full.relative_to(Path.cwd())) if full.is_relative_to(Path.cwd()) else full.name


def find_sources(root: Path, wanted: set[str]) -> Mapping[str, str]:
    """The paths below a folder of files that a trace names, by name or by the end of their path.

    Of several files of one name, that whose path ends most alike is taken; if two do, none is.
    """
    names = {Path(file).name for file in wanted}
    found = [path for path in _walk_files(root) if path.name in names] if names else []
    places = {}
    for file in wanted:
        best = sorted(found, key=lambda path: -_shared_parts(path, file))[:2]
        shared = [_shared_parts(path, file) for path in best]
        if shared and shared[0] > max(shared[1:], default=0):
            places[file] = best[0].relative_to(root).as_posix()
    return places


def _walk_files(root: Path) -> Iterable[Path]:
    for count, (folder, folders, files) in enumerate(os.walk(root)):
        if count > _MOST_FOLDERS:
            return
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        yield from (Path(folder, name) for name in files)


def _shared_parts(path: Path, file: str) -> int:
    """The number of parts at their ends that two paths share."""
    pairs = zip(reversed(path.parts), reversed(file.replace("\\", "/").split("/")), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
