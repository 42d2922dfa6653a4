"""Reads the time series of a run, and says what has changed in it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from stepscope import api
from stepscope.errors import NotFoundError, StepscopeError, UsageError, counted
from stepscope.formats import series, store
from stepscope.model.arrays import F64
from stepscope.overtime.report import GROWTH_FIELDS, ROW_FIELDS, OverTimeReport
from stepscope.records import dataclass
from stepscope.report import Row

if TYPE_CHECKING:
    import pyarrow as pa


# ---- Which memory of a run grows, and how fast -----------------------------------------------------------------------


_MOST_POINTS = 300  # all pairs of them are compared
_FEWEST_POINTS = 12
_WARM_UP = 0.15  # of the run: caches and pools fill up at its start
_LEAST_SHARE = 0.01  # of the level: less is no growth that matters
_THIRDS = 3
_Z95 = 1.96


@dataclass(frozen=True)
class Trend:
    """How a quantity grows.

    Attributes:
        per_hour: the median slope between any two points.
        least, most: its 95 % interval.
        first, last: the level at both ends, as the median of the first and the last tenth.
        is_clear: it grows: the whole interval is above zero, in each third of the run the level is higher, and what was
            added is at least 1 % of the level.
    """

    per_hour: float
    least: float
    most: float
    first: float
    last: float
    is_clear: bool


def measure_growth(unix_s: F64, values: F64) -> Trend | None:
    """The growth of values after the warm-up; None if there are too few points.

    The slope is that of Theil and Sen, which outliers do not move, and its interval is Sen's, from the number of
    independent points: rows next to each other are much alike, so the effective number is that of the blocks between
    which the residuals no longer agree.
    """
    known = np.isfinite(values) & np.isfinite(unix_s)
    unix_s, values = unix_s[known], values[known]
    late = unix_s >= unix_s[0] + _WARM_UP * (unix_s[-1] - unix_s[0]) if len(unix_s) else known[known]
    hours, levels = _thin(unix_s[late] / 3600, values[late])
    if len(hours) < _FEWEST_POINTS or hours[-1] <= hours[0]:
        return None
    slopes = _pair_slopes(hours, levels)
    slope = float(np.median(slopes))
    least, most = _interval(slopes, _effective_count(hours, levels, slope), len(hours))
    tenth = max(len(levels) // 10, 1)
    first, last = float(np.median(levels[:tenth])), float(np.median(levels[-tenth:]))
    return Trend(slope, least, most, first, last, least > 0 and _rises(levels) and last - first > _LEAST_SHARE * last)


def _thin(hours: F64, levels: F64) -> tuple[F64, F64]:
    """At most `_MOST_POINTS` points: the means of neighbours."""
    size = math.ceil(len(hours) / _MOST_POINTS) if len(hours) else 1
    whole = len(hours) // size * size
    return hours[:whole].reshape(-1, size).mean(1), levels[:whole].reshape(-1, size).mean(1)


def _pair_slopes(hours: F64, levels: F64) -> F64:
    one, other = np.triu_indices(len(hours), 1)
    apart = hours[other] - hours[one]
    return np.sort((levels[other] - levels[one])[apart > 0] / apart[apart > 0])


def _effective_count(hours: F64, levels: F64, slope: float) -> float:
    """How many independent points there are, by the correlation of neighbours about the line."""
    rest = levels - slope * hours
    rest = rest - rest.mean()
    power = float((rest * rest).sum())
    alike = float((rest[1:] * rest[:-1]).sum()) / power if power > 0 else 0.0
    alike = min(max(alike, 0.0), 0.98)
    return max(len(hours) * (1 - alike) / (1 + alike), 4.0)


def _interval(slopes: F64, effective: float, count: int) -> tuple[float, float]:
    """Sen's interval of the median slope."""
    spread = math.sqrt(effective * (effective - 1) * (2 * effective + 5) / 18) * (count / effective) ** 2
    middle = len(slopes) / 2
    low, high = math.floor(middle - _Z95 * spread / 2), math.ceil(middle + _Z95 * spread / 2)
    last = len(slopes) - 1
    return float(slopes[min(max(low, 0), last)]), float(slopes[min(max(high, 0), last)])


def _rises(levels: F64) -> bool:
    thirds = [float(np.median(part)) for part in np.array_split(levels, _THIRDS)]
    return all(after > before for before, after in pairwise(thirds))


MOST_ROWS = 1000
MOST_CAPTURES = 12
_MOST_CAUSES = 3
_LEAST_CHANGE_PERCENT = 5.0
_LEAST_CONTENDED = 0.001  # of all steps
_PARTS = ("anonymous_bytes", "file_mapped_bytes", "shared_bytes")
_KINDS = ("resident_bytes", *_PARTS, "device_allocated_bytes", "device_reserved_bytes", "python_blocks", "threads")
_NAMES = {
    "resident_bytes": "process",
    "anonymous_bytes": "heap and other anonymous memory",
    "file_mapped_bytes": "mapped files",
    "shared_bytes": "shared memory",
    "device_allocated_bytes": "devices, allocated",
    "device_reserved_bytes": "devices, reserved",
    "python_blocks": "blocks of Python objects",
    "threads": "threads",
}
_WHAT_GROWS = {
    "anonymous_bytes": "objects and arrays of the program",
    "file_mapped_bytes": "mapped files, such as data sets that are read",
    "shared_bytes": "shared memory, such as batches of loader workers",
}
_LIST = {"steps", "slow_steps", "contended_steps"}  # added up where rows are thinned out; the others are averaged

Say = Callable[[str], None]


def examine_run(
    logdir: str, run: str | None = None, captures: int = MOST_CAPTURES, progress: Say = lambda text: None
) -> OverTimeReport:
    """A run over time.

    Args:
        logdir: the logdir of a watch.
        run: its name; the newest if None.
        captures: of how many of the latest captures the account is shown; each has to be analysed once.
        progress: called with a sentence when longer work starts.

    Raises:
        NotFoundError: the logdir has no time series.
        AccessError: it may not be read.
        UsageError: it has none of this name.
        UnreadableError: the series is damaged.
    """
    runs = _list_runs(logdir)
    chosen = run or runs[-1]
    if chosen not in runs:
        raise UsageError(f"there is no time series of {chosen!r}", hint=f"runs: {', '.join(runs[-20:])}")
    folder = series.series_place(logdir, chosen)
    tables = {host: series.read_series(folder, host) for host in series.list_hosts(folder)}
    marks = series.read_marks(folder)
    start_s = _find_start(tables, marks)
    growths = _measure_memory(tables)
    figures = _summarize(chosen, tables, marks)
    return OverTimeReport(
        hosts=tuple(tables),
        warnings=(),
        partial=False,
        figures=figures,
        findings=tuple(_find_changes(figures, growths, marks)),
        rows=tuple(row for host, table in tables.items() for row in _thin_rows(host, table, start_s, marks)),
        marks=tuple(_mark_row(mark, start_s) for mark in marks),
        growth=tuple(_growth_rows(growths)),
        captures=tuple(_describe_captures(logdir, marks, start_s, captures, progress)),
        runs=tuple(runs),
    )


def _find_start(tables: Mapping[str, pa.Table], marks: Sequence[Mapping[str, Any]]) -> float:
    """The time of the first row or, if one came before it, of the first trigger, in seconds since 1970."""
    rows = [float(table["unix_s"][0].as_py()) for table in tables.values() if len(table)]
    return min(rows + [float(mark["unix_s"]) for mark in marks if mark.get("unix_s")], default=0.0)


def _list_runs(logdir: str) -> list[str]:
    runs = list(series.find_runs(logdir))
    if not runs:
        store.kind(series.series_root(logdir))  # raises AccessError for what may not be read
        raise NotFoundError(
            "there is no time series of a watched run here",
            path=store.plain(logdir),
            hint="start one with stepscope.watch(LOGDIR) or stepscope run --watch --logdir LOGDIR",
        )
    return runs


def _column(table: pa.Table, name: str) -> F64:
    """A column as float64; NaN where it is unknown."""
    if name not in table.column_names:
        return np.full(len(table), np.nan)
    return np.asarray(table[name].to_numpy(zero_copy_only=False), np.float64)


# -- figures -------------------------------------------------------------------------------------------------------


def _summarize(run: str, tables: Mapping[str, pa.Table], marks: Sequence[Mapping[str, Any]]) -> Row:
    longest = max(tables.values(), key=len)
    at, lengths = _column(longest, "unix_s"), _column(longest, "step_ms_median")
    known = lengths[np.isfinite(lengths)]
    costs = _column(longest, "watch_percent")
    return {
        "run": run,
        "hours": round(float(at[-1] - at[0]) / 3600, 3) if len(at) else None,
        "steps": int(np.nansum(_column(longest, "steps"))),
        "step_ms_median": round(float(np.median(known)), 3) if len(known) else None,
        "step_change_percent": _step_change(known),
        "slow_steps": _add_up(tables, "slow_steps"),
        "contended_steps": _add_up(tables, "contended_steps"),
        "triggers": len(marks),
        "watch_percent": float(costs[-1]) if len(costs) and np.isfinite(costs[-1]) else None,
    }


def _add_up(tables: Mapping[str, pa.Table], name: str) -> int | None:
    """The sum of a column over all hosts; None if no row has it, as in a series that an older watch has written."""
    values = np.concatenate([_column(table, name) for table in tables.values()])
    return int(np.nansum(values)) if np.isfinite(values).any() else None


def _step_change(lengths: F64) -> float | None:
    """By how many percent the median step of the last fifth is longer than that of the first, without the warm-up."""
    if len(lengths) < 20:
        return None
    fifth = len(lengths) // 5
    before, after = float(np.median(lengths[1 : 1 + fifth])), float(np.median(lengths[-fifth:]))
    return round(100 * (after / before - 1), 2) if before > 0 else None


# -- memory --------------------------------------------------------------------------------------------------------


def _measure_memory(tables: Mapping[str, pa.Table]) -> dict[str, Trend]:
    """The growth of each kind of memory, on the host whose process grows most."""
    found: dict[str, Trend] = {}
    for table in tables.values():
        at = _column(table, "unix_s")
        growths = {name: growth for name in _KINDS if (growth := measure_growth(at, _column(table, name)))}
        if not found or _process_growth(growths) > _process_growth(found):
            found = growths or found
    return found


def _process_growth(growths: Mapping[str, Trend]) -> float:
    return growths["resident_bytes"].per_hour if "resident_bytes" in growths else -np.inf


def _growth_rows(growths: Mapping[str, Trend]) -> list[Row]:
    whole = growths.get("resident_bytes")
    rows: list[Row] = []
    for name, growth in growths.items():
        share = 100 * growth.per_hour / whole.per_hour if whole and whole.is_clear and name in _PARTS else None
        if not name.endswith("_bytes"):
            continue
        values = (_NAMES[name], growth.first, growth.last, growth.per_hour, growth.least, growth.most, growth.is_clear)
        rows.append(dict(zip((field.name for field in GROWTH_FIELDS), (*values, share), strict=True)))
    return rows


def _find_changes(figures: Row, growths: Mapping[str, Trend], marks: Sequence[Mapping[str, Any]]) -> list[str]:
    """What stands out, in sentences."""
    found = [
        *_describe_leaks(growths),
        *_describe_slowing(figures),
        *_describe_contention(figures),
        *_describe_marks(marks),
    ]
    return found or ["nothing stands out: no trigger, no growing memory, no change of the step time"]


def _describe_leaks(growths: Mapping[str, Trend]) -> list[str]:
    found = []
    for name in ("resident_bytes", "device_allocated_bytes"):
        growth = growths.get(name)
        if growth is None or not growth.is_clear:
            continue
        where = "the process" if name == "resident_bytes" else "the devices"
        least, most = growth.least / 1e6, growth.most / 1e6
        text = f"memory of {where} grows by {growth.per_hour / 1e6:,.1f} MB an hour ({least:,.1f} to {most:,.1f})"
        found.append(text + (_name_growing(growths, growth) if name == "resident_bytes" else ""))
    return found


def _name_growing(growths: Mapping[str, Trend], whole: Trend) -> str:
    parts = [(growths[name].per_hour, name) for name in _PARTS if name in growths]
    if not parts or max(parts)[0] <= 0:
        return ""
    slope, name = max(parts)
    share = min(100 * slope / whole.per_hour, 100.0)
    blocks = growths.get("python_blocks")
    python = "; Python objects grow with it" if name == _PARTS[0] and blocks is not None and blocks.is_clear else ""
    if name == _PARTS[0] and not python and blocks is not None:
        python = "; the number of Python objects does not grow, so it is memory of libraries or arrays"
    return f"; {share:.0f} % of that is {_NAMES[name]} ({_WHAT_GROWS[name]}){python}"


def _describe_slowing(figures: Row) -> list[str]:
    change = figures["step_change_percent"]
    if not isinstance(change, float) or abs(change) < _LEAST_CHANGE_PERCENT:
        return []
    return [f"the median step became {abs(change):.1f} % {'longer' if change > 0 else 'shorter'} during the run"]


def _describe_contention(figures: Row) -> list[str]:
    steps, contended = figures["steps"], figures["contended_steps"]
    if not isinstance(contended, int) or not isinstance(steps, int) or contended < _LEAST_CONTENDED * max(steps, 1):
        return []
    were = "was" if contended == 1 else "were"
    return [f"{contended:,} of {counted(steps, 'step')} {were} slow only because the thread waited for a core"]


def _describe_marks(marks: Sequence[Mapping[str, Any]]) -> list[str]:
    kinds = sorted(str(mark.get("trigger")) for mark in marks)
    counts = {kind: len(list(group)) for kind, group in groupby(kinds) if kind != "regular window"}
    last = next((mark for mark in reversed(marks) if mark.get("trigger") != "regular window"), None)
    if last is None:
        return []
    named = ", ".join(f"{count} x {kind}" for kind, count in counts.items())
    return [f"{counted(sum(counts.values()), 'trigger')} ({named}); the last: {last.get('sentence')}"]


# -- rows ----------------------------------------------------------------------------------------------------------


def _thin_rows(host: str, table: pa.Table, start_s: float, marks: Sequence[Mapping[str, Any]]) -> list[Row]:
    """At most `MOST_ROWS` rows: sums and means of neighbours, each with the triggers of its time."""
    at = _column(table, "unix_s")
    if not len(at):
        return []
    parts = np.array_split(np.arange(len(at)), min(len(at), MOST_ROWS))
    columns = {field.name: _column(table, field.name) for field in ROW_FIELDS if field.name in table.column_names}
    mark_times = [(float(mark.get("unix_s") or 0), str(mark.get("trigger"))) for mark in marks if mark["host"] == host]
    rows: list[Row] = []
    before = -np.inf
    for part in parts:
        end = float(at[part[-1]])
        names = sorted({kind for moment, kind in mark_times if before < moment <= end})
        row: Row = {field.name: None for field in ROW_FIELDS}
        row |= {"hour": round((end - start_s) / 3600, 4), "time": _local_time(end), "host": host}
        row |= {name: _combine(name, values[part]) for name, values in columns.items()}
        rows.append(row | {"marks": ", ".join(names)})
        before = end
    return rows


def _combine(name: str, values: F64) -> float | int | None:
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    if name in _LIST:
        return int(known.sum())
    return float(known.max() if name == "step_ms_max" else known.mean())


def _local_time(unix_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(unix_s))


def _mark_row(mark: Mapping[str, Any], start_s: float) -> Row:
    unix_s, step = float(mark.get("unix_s") or 0.0), mark.get("step")
    return {
        "hour": round((unix_s - start_s) / 3600, 4),
        "time": _local_time(unix_s),
        "step": int(step) if isinstance(step, int | float) else None,
        **{name: str(mark.get(name) or "") for name in ("host", "trigger", "sentence", "run", "window")},
    }


# -- captures ------------------------------------------------------------------------------------------------------


def _describe_captures(
    logdir: str, marks: Sequence[Mapping[str, Any]], start_s: float, most: int, progress: Say
) -> list[Row]:
    """The account of the latest captures that still exist; each is analysed once and then cached."""
    wanted: dict[str, Mapping[str, Any]] = {}
    for mark in marks:
        for name in ("window", "run"):
            if mark.get(name):
                wanted.setdefault(str(mark[name]), mark)
    existing = _existing_runs(logdir, wanted) if most else []
    rows = []
    for run in existing[-most:]:
        progress(f"analysing {run}")
        hour = (float(wanted[run].get("unix_s") or 0.0) - start_s) / 3600
        row: Row = {"hour": round(hour, 4), "run": run, "trigger": str(wanted[run].get("trigger"))}
        rows.append(row | _read_account(logdir, run))
    return rows


def _existing_runs(logdir: str, wanted: Mapping[str, object]) -> list[str]:
    """Those of the sessions that the quota has not removed."""
    profiles = store.join(store.join(store.plain(logdir), "plugins"), "profile")
    return [run for run in wanted if _is_folder(store.join(profiles, run))]


def _is_folder(path: str) -> bool:
    try:
        return store.kind(path) == "folder"
    except StepscopeError:
        return False


def _read_account(logdir: str, run: str) -> Row:
    try:
        facts = api.load(logdir, run=run).overview().to_dict()
    except StepscopeError as error:  # it is being written, or the quota has removed it meanwhile
        return {"step_ms": None, "verdict": None, "causes": error.problem.reason}
    causes = sorted(facts.get("account") or [], key=lambda part: -(part["percent"] or 0))[:_MOST_CAUSES]
    return {
        "step_ms": facts["step_time_ms"]["mean"],
        "verdict": facts["verdict"],
        "causes": ", ".join(f"{part['cause']} {part['percent']:.0f} %" for part in causes if part["percent"]),
    }
