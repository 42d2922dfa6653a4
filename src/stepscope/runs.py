"""`stepscope runs`: all sessions of a logdir in one table, with any figure of any tool beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stepscope.errors import InputError, StepscopeError, UsageError
from stepscope.records import dataclass
from stepscope.report import Field, Report, Role, Row, Rows, Section, Table, not_in_json

if TYPE_CHECKING:
    import pyarrow

    from stepscope.analysis.gate.figures import Reading
    from stepscope.analysis.steps.step_range import StepRange
    from stepscope.api import LoadedProfile
    from stepscope.sql.answer import SqlReport

RECIPES = "STEPSCOPE_RECIPES"
"""The folders of recipes, such as one that a team shares, as PATH has them."""

RUN_FIELDS: tuple[Field, ...] = (
    Field("run", "text", "the session", role=Role.LABEL),
    Field("host_count", "count", "hosts in it", "int"),
    Field("labels", "text", "the labels that people gave it on the page", role=Role.TEXT),
    Field("framework", "text", "the framework that it was recorded with", role=Role.TERM),
    Field("steps", "count", "whole steps in it", "int", role=Role.COUNT),
    Field("step_ms", "ms", "median step time, as in the summary"),
    Field("verdict", "text", "what limits the steps, or how the job ended: `hang`, `out_of_memory`", role=Role.TERM),
    Field("cause", "text", "the cause that limits the median step: that of the verdict", role=Role.TERM),
    Field(
        "cause_percent",
        "percent",
        "share of the step that this cause takes; of a long step, where these take most of the time",
    ),
    Field("advice", "text", "what to change first", role=Role.TEXT),
    Field("predicted_speedup", "ratio", "how many times as fast steps would be then; empty where it is unknown"),
    Field("mfu_percent", "percent", "model FLOPs utilization of the steps; empty where costs or peaks are unknown"),
    Field("memory_bytes", "bytes", "the most memory in use at once, of the fullest memory"),
    Field("problem", "text", "why the session could not be read", role=Role.TEXT),
)

# How a job ended, by the id of the advice on it.
_ENDS = {"job.hang": "hang", "job.out-of-memory": "out_of_memory", "job.too-large-request": "out_of_memory"}

_BUSY = "contention"
_NARROW = ("run", "step_ms", "verdict", "advice", "predicted_speedup", "problem")

CHANGE_FIELDS: tuple[Field, ...] = (
    Field(
        *("change", "text", "`base`: the others are compared with it; else `faster`, `slower`, `within_noise`"),
        role=Role.TERM,
    ),
    Field(
        *("change_percent", "percent", "by how much the mean step is longer than that of the base, as a share of it"),
        role=Role.CHANGE,
    ),
    Field("because", "text", "the same in a sentence, with the cause that changed most", role=Role.TEXT),
)


@dataclass(frozen=True, kw_only=True)
class RunsReport(Report):
    """All sessions of a logdir, the oldest first; or several sessions, compared with the first.

    Attributes:
        rows: one per session; keys as in RUN_FIELDS, and the names of `added`.
        added: further fields: the figures that were asked for, or CHANGE_FIELDS.
    """

    TOOL: ClassVar[str] = "runs"

    rows: Table
    added: tuple[Field, ...] = not_in_json(())

    def sections(self) -> Sequence[Section]:
        """The one table, with the columns that were asked for."""
        fields = (*RUN_FIELDS, *self.added)
        narrow = (*_NARROW, *(field.name for field in self.added))
        return [Rows("rows", "Sessions", fields, self.rows, "there is no session", narrow=narrow)]


def list_runs(
    logdir: str | os.PathLike[str],
    figures: Sequence[str] = (),
    *,
    last: int | None = None,
    labels_of: Callable[[str, str], Sequence[str]] = lambda run, path: (),
    progress: Callable[[str], None] | None = None,
) -> RunsReport:
    """What each session of a logdir says of its steps; a session that cannot be read has a row that says why.

    Each is analysed once and then answered from the cache.

    Args:
        logdir: a logdir or any parent of sessions; local, or a URL that fsspec supports.
        figures: ids of more figures, as `stepscope gate` takes them: `idle.devices.idle_percent`.  Of one in several
            rows it is their mean.
        last: how many of the newest sessions to list; all if None.
        labels_of: the labels that people gave to a session, by its run and path.

    Raises:
        NotFoundError: there is no session.
        UsageError: no tool has such a figure.
    """
    from stepscope.analysis.gate.figures import parse_figure
    from stepscope.api import load_sessions

    for figure in figures:
        parse_figure(figure)
    return describe_sessions(load_sessions(logdir, last), figures, labels_of, progress)


def describe_sessions(
    profiles: Sequence[LoadedProfile],
    figures: Sequence[str],
    labels_of: Callable[[str, str], Sequence[str]] = lambda run, path: (),
    progress: Callable[[str], None] | None = None,
) -> RunsReport:
    """As `list_runs`, of sessions that were found already."""
    rows: list[Row] = []
    readings: dict[str, Reading] = {}
    mistakes: dict[str, UsageError] = {}
    for profile in profiles:
        if progress:
            progress(f"analysing {profile.run}")
        row = _describe_session(profile, figures, readings, mistakes)
        rows.append(row | {"labels": ", ".join(labels_of(profile.run, profile.path)) or None})
    if wrong := next((figure for figure in figures if figure in mistakes and figure not in readings), None):
        raise mistakes[wrong]
    hosts = tuple(dict.fromkeys(host for each in profiles for host in each.hosts))
    unreadable = sum(row["problem"] is not None for row in rows)
    warnings = [f"{unreadable} of {len(rows)} sessions could not be read"] if unreadable else []
    warnings += dict.fromkeys(str(problem) for profile in profiles for problem in profile.search_problems)
    warnings += [f"no session has {name}: {one.why_unknown}" for name, one in readings.items() if one.value is None]
    added = tuple(replace(one.field, name=figure) for figure, one in readings.items())
    return RunsReport(hosts=hosts, warnings=tuple(warnings), partial=bool(unreadable), rows=tuple(rows), added=added)


def compare_runs(
    profiles: Sequence[LoadedProfile], *, host: str | None = None, steps: StepRange | str | int | None = None
) -> RunsReport:
    """What each of several sessions says of its steps, in this order, and whether they are faster than the first's.

    Args:
        profiles: the first is the base.
        host, steps: what is compared, as for `stepscope.compare`; the other figures are those of the whole sessions.

    Raises:
        InputError: a session cannot be read.
        UsageError: a session has no such host or steps.
    """
    base, *others = profiles
    rows: list[Row] = [_describe_profile(base) | {"change": "base", "change_percent": None, "because": None}]
    for profile in others:
        found = base.compare(profile, host=host, steps=steps)
        change: Row = {"change": found.difference.verdict, "change_percent": found.difference.change_percent}
        rows.append(_describe_profile(profile) | change | {"because": found.verdict_text})
    names = [profile.run for profile in profiles]
    for row, profile in zip(rows, profiles, strict=True):
        row["run"] = profile.run if names.count(profile.run) == 1 else profile.path
        row["host_count"] = len(profile.hosts)
    hosts = dict.fromkeys(each for profile in profiles for each in profile.hosts)
    return RunsReport(hosts=tuple(hosts), warnings=(), partial=False, rows=tuple(rows), added=CHANGE_FIELDS)


def ask_runs(
    logdir: str | os.PathLike[str],
    query: str,
    *,
    last: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> SqlReport:
    """The answers of all sessions to one question in SQL, as one table with the session's name as `run`.

    A session that cannot answer, since it cannot be read, is named in the warnings.

    Args:
        logdir, last: as of `list_runs`.
        query: one statement over the views of a session, as `stepscope sql` takes it.

    Raises:
        NotFoundError: there is no session.
        UsageError: the query is wrong.
        InputError: no session can be read.
    """
    from stepscope.api import load_sessions

    answers: dict[str, SqlReport] = {}
    failures: list[InputError] = []
    for profile in load_sessions(logdir, last):
        if progress:
            progress(f"asking {profile.run}")
        try:
            answers[profile.run] = profile.sql(query)
        except InputError as error:
            failures.append(error)
    if not answers:
        raise failures[0]
    warnings = dict.fromkeys([*(line for each in answers.values() for line in each.warnings), *map(str, failures)])
    hosts = dict.fromkeys(host for each in answers.values() for host in each.hosts)
    first = next(iter(answers.values()))
    partial = bool(failures) or any(each.partial for each in answers.values())
    table = _stack({run: each.table for run, each in answers.items()})
    return replace(first, hosts=tuple(hosts), warnings=tuple(warnings), partial=partial, table=table)


def _stack(tables: Mapping[str, pyarrow.Table]) -> pyarrow.Table:
    """Tables with the same columns below each other, the name of each before its rows."""
    import pyarrow as pa

    named = [each.add_column(0, "run", pa.array([run] * len(each), pa.string())) for run, each in tables.items()]
    return pa.concat_tables(named, promote_options="permissive")


def read_recipe(name: str) -> str:
    """The question of a recipe: a file of SQL, by its path, or by its name in one of the folders of RECIPES.

    Raises:
        UsageError: there is none; the hint lists those that there are, with the comment that each begins with.
    """
    folders = [Path(folder) for folder in os.environ.get(RECIPES, "").split(os.pathsep) if folder]
    found = next((path for path in (Path(name), *(each / f"{name}.sql" for each in folders)) if path.is_file()), None)
    if found is not None:
        return found.read_text("utf-8")
    known = [path for folder in folders for path in sorted(folder.glob("*.sql"))]
    listed = "; ".join(f"{path.stem} ({path.read_text('utf-8').splitlines()[0].lstrip('- ')})" for path in known)
    none = f"save a question as NAME.sql in a folder, and name the folder in {RECIPES}"
    raise UsageError(f"there is no recipe {name!r}", hint=f"there are: {listed}" if listed else none)


def _describe_session(
    profile: LoadedProfile, figures: Sequence[str], readings: dict[str, Reading], mistakes: dict[str, UsageError]
) -> Row:
    """A session's row; `readings` gets a figure with a value rather than one without, `mistakes` those it lacks."""
    row: Row = {"run": profile.run, "host_count": len(profile.hosts)}
    try:
        return row | _describe_profile(profile) | _read_figures(profile, figures, readings, mistakes)
    except StepscopeError as error:  # it is being written, or damaged, or was removed meanwhile
        unknown = dict.fromkeys((*(field.name for field in RUN_FIELDS[2:]), *figures))
        return row | unknown | {"problem": error.problem.reason}


def _describe_profile(profile: LoadedProfile) -> Row:
    own: Row = {"labels": None, "mfu_percent": _read_mfu(profile), "memory_bytes": _read_memory(profile)}
    return describe_overview(profile.report("overview").to_dict()) | own | {"problem": None}


def describe_overview(facts: Mapping[str, Any]) -> Row:
    """The figures of RUN_FIELDS that an overview's JSON holds."""
    advice = next(iter(facts["advice"]), None)
    ended = None if advice is None else _ENDS.get(advice["id"])
    has_steps = facts["steps_source"] != "none"  # else its one step is the whole capture
    longest = next(iter(facts.get("account") or ()), None)
    busy = longest and longest["cause"] == _BUSY  # as the sentence of the verdict begins
    named = longest if busy or not facts["verdict_cause"] else None
    return {
        "framework": facts["environment"]["framework"],
        "steps": facts["step_time_ms"]["count"] if has_steps else 0,
        "step_ms": facts["median_step_ms"],
        "verdict": ended or ("machine_busy" if busy else facts["verdict"]),
        "cause": named["cause"] if named else facts["verdict_cause"],
        "cause_percent": named["percent"] if named else facts["verdict_percent"],
        "advice": advice and advice["title"],
        "predicted_speedup": advice and advice["predicted_speedup"],
    }


def _read_mfu(profile: LoadedProfile) -> float | None:
    found: float | None = profile.report("roofline").to_dict()["steps"]["mfu_percent"]
    return found


def _read_memory(profile: LoadedProfile) -> int | None:
    memories = profile.report("memory-profile").to_dict()["memories"]
    return max((memory["peak"]["in_use_bytes"] for memory in memories), default=None)


def _read_figures(
    profile: LoadedProfile, figures: Sequence[str], readings: dict[str, Reading], mistakes: dict[str, UsageError]
) -> Row:
    from stepscope.analysis.gate.figures import read_figure
    from stepscope.budgets import open_session

    row: Row = dict.fromkeys(figures)
    if not figures:
        return row
    session = open_session(profile, None)
    for figure in figures:
        try:
            reading = read_figure(session, figure, take="mean")
        except UsageError as error:  # such as a table that only other frameworks fill
            mistakes[figure] = error
            continue
        row[figure] = reading.value
        if figure not in readings or readings[figure].value is None:
            readings[figure] = reading
    return row
