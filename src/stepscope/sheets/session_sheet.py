"""One HTML file about a session: the page's own Summary with its data, and pictures of the timeline as evidence.

It only arranges what reports say.  A tool that fails or has nothing is left out.  Where no script runs, the verdict,
the advice and the pictures are there as plain HTML.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

import msgspec

from stepscope.analysis.advice.items import describe_speedup
from stepscope.errors import StepscopeError
from stepscope.pictures.timeline import draw_window, usual_window
from stepscope.report import Report, Rows, amount, clean
from stepscope.report.base import encode_json
from stepscope.report.charts import draw_curve
from stepscope.report.drawing import Drawing, to_svg
from stepscope.vocabulary.categories import CATEGORY_RULES
from stepscope.vocabulary.workers import describe_workers
from stepscope.web.api_tools import report_answer, section_json
from stepscope.web.parts import part_scripts

if TYPE_CHECKING:
    from stepscope.analysis.overview.overview_tool import OverviewReport
    from stepscope.api import LoadedProfile

_MOST_ADVICE = 4
_MOST_ROWS = 10
_MOST_MEMORIES = 4  # the fullest
_MARGIN = 0.6  # of an interval, shown on each side of it
_SHORTEST_MS = 1e-3
_MOST_STEPS_SHOWN = 2.5  # steps in a picture of evidence

_PLAIN = """
:root { color-scheme: light dark }
body { margin: 0; font: 14px/1.5 system-ui, sans-serif }
:where(#app > *) { max-width: 62rem; margin: .8rem auto; padding: 0 1rem; overflow-wrap: anywhere }
figure { margin: .6rem 0; overflow-x: auto }
"""


def render_sheet(profile: LoadedProfile, version: str, now: datetime.datetime, place: str) -> str:
    """The file.

    Args:
        profile: the session.
        version: that of Stepscope.
        now: when the file is made.
        place: what to call the profile's path.

    Raises:
        InputError: no host of the session can be read.
    """
    overview = cast("OverviewReport", profile.overview())
    title = f"{_name(profile)}: {overview.verdict.name.replace('_', ' ')}"
    made = [
        f"Made by Stepscope {version} on {now:%Y-%m-%d %H:%M} from {place}.",
        f"More: stepscope open {place}",
    ]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"{_tag('title', title)}<style>{_PLAIN}</style>"
    plain = "\n".join([*_head(profile, overview), *_advice(profile, overview), *_pictures(profile)])
    body = f'<div id="app">\n{plain}\n<footer>{"".join(_tag("p", line) for line in made)}</footer>\n</div>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n'
        f"{_scripts(_data(profile, overview, made))}</body></html>\n"
    )


def _name(profile: LoadedProfile) -> str:
    """The session's name; before one that is a time stands the folder of its logdir, which says of what it is."""
    parts = PurePath(profile.tell_apart().path).parts
    is_time = not profile.run.strip("0123456789_") and parts[-3:] == ("plugins", "profile", profile.run)
    return f"{parts[-4]}/{profile.run}" if is_time and len(parts) > 3 else profile.run


# -- the page's parts and their data -------------------------------------------------------------------------------


def _scripts(data: Mapping[str, Any]) -> str:
    """The data and the page; empty where the page was not built."""
    parts = part_scripts("report")
    if not parts:
        return ""
    text = encode_json(data).decode().replace("<", "\\u003c")
    return f'<script type="application/json" id="report">{text}</script>\n{parts}'


def _data(profile: LoadedProfile, overview: OverviewReport, made: list[str]) -> dict[str, Any]:
    return {
        "run": _name(profile),
        "facts": _facts(profile, overview),
        "made": made,
        "hosts": [{"name": host, "file": ""} for host in profile.hosts],
        "category_rules": [rule._asdict() for rule in CATEGORY_RULES],
        "overview": msgspec.json.decode(report_answer(overview).body),
        "tables": [
            *_table(profile, "kernel-stats", "by_kernel", "Top kernels"),
            *(_table(profile, "pod-viewer", "workers", "Workers") if len(profile.hosts) > 1 else ()),
        ],
    }


def _table(profile: LoadedProfile, tool: str, section: str, heading: str) -> Iterator[dict[str, Any]]:
    """The first rows of a table, if it has any."""
    report = _report(profile, tool)
    table = cast(Rows, report.section(section)) if report else None
    if table is not None and table.rows:
        shown = replace(table, rows=table.rows[:_MOST_ROWS])
        yield {"tool": tool, "heading": heading, "section": section_json(shown, {})}


# -- what is there without scripts ---------------------------------------------------------------------------------


def _facts(profile: LoadedProfile, overview: OverviewReport) -> str:
    named = (overview.environment["framework"], overview.environment["device_type"])
    return " · ".join([*(str(fact) for fact in named if fact), describe_workers(overview.hosts)])


def _head(profile: LoadedProfile, overview: OverviewReport) -> Iterator[str]:
    yield _tag("h1", _name(profile))
    yield _tag("p", _facts(profile, overview))
    yield _tag("h2", overview.verdict.sentence)
    yield from (_tag("p", warning) for warning in overview.warnings)


def _advice(profile: LoadedProfile, overview: OverviewReport) -> Iterator[str]:
    for row in overview.to_dict()["advice"][:_MOST_ADVICE]:
        actions = "".join(_tag("li", action) for action in row["actions"])
        figures = (_evidence(profile, row["id"], place, overview) for place in row["intervals"][:1])
        yield (
            f"<article>{_tag('h3', row['title'] + _gain(row))}{_tag('p', row['evidence'])}"
            f"<ul>{actions}</ul>{''.join(figures)}</article>"
        )


def _gain(row: Mapping[str, Any]) -> str:
    if not row["predicted_speedup"]:
        return ""
    keys = ("predicted_speedup", "predicted_speedup_least", "predicted_speedup_most")
    gain, between = describe_speedup(*(row[key] for key in keys))
    return f": {gain} ({between})" if between else f": {gain}"


def _evidence(profile: LoadedProfile, advice: str, place: Mapping[str, Any], overview: OverviewReport) -> str:
    """The interval of an advice in the timeline, with what lies around it."""
    start, end = float(place["start_ms"]), float(place["end_ms"])
    step = amount(overview.step_time_ms["mean"])
    if step and end - start > _MOST_STEPS_SHOWN * step:
        end = start + _MOST_STEPS_SHOWN * step
    margin = max(_MARGIN * (end - start), _SHORTEST_MS)
    when = f"{place['start_ms']:,.3f} to {place['end_ms']:,.3f} ms on {place['host']}"
    name = f"{place['name'] or 'The longest interval'}: {when}"
    window = max(start - margin, 0.0), end + margin
    return _window(profile, str(place["host"]), window, advice, name, (start, end))


def _pictures(profile: LoadedProfile) -> Iterator[str]:
    host = profile.hosts[0]
    try:
        start, end = usual_window(profile.trace(host))
    except StepscopeError:
        return
    yield _window(profile, host, (start, end), "Steps in the timeline", f"{start:,.3f} to {end:,.3f} ms on {host}")
    yield from _memory(profile)


def _window(
    profile: LoadedProfile,
    host: str,
    window: tuple[float, float],
    key: str,
    caption: str,
    mark: tuple[float, float] | None = None,
) -> str:
    """A picture with its caption; empty if the trace has nothing there."""
    try:
        shown = draw_window(profile.trace(host), *window, mark=mark)
    except StepscopeError:
        return ""
    return _picture(key, shown.drawing, caption, "advice" if mark else "session")


def _memory(profile: LoadedProfile) -> Iterator[str]:
    report = _report(profile, "memory-profile")
    rows = cast(Rows, report.section("timeline")).rows if report else ()
    peaks: dict[tuple[object, object], float] = {}
    for row in rows:
        key = row["host"], row["memory"]
        peaks[key] = max(peaks.get(key, 0.0), amount(row["in_use_bytes"]))
    for memory in sorted(peaks, key=lambda one: -peaks[one])[:_MOST_MEMORIES]:
        own = [row for row in rows if (row["host"], row["memory"]) == memory and row["in_use_bytes"] is not None]
        points = [(amount(row["time_ms"]), amount(row["in_use_bytes"])) for row in own]
        if len(points) > 1:
            title = f"Memory in use: {memory[1]}" + (f" on {memory[0]}" if len(profile.hosts) > 1 else "")
            yield _picture(title, draw_curve(title, points, "bytes"), "", "session")


# -- pieces --------------------------------------------------------------------------------------------------------


def _report(profile: LoadedProfile, tool: str) -> Report | None:
    """A tool's report; None if it fails."""
    try:
        return profile.report(tool)
    except StepscopeError:
        return None


def _picture(key: str, drawing: Drawing, caption: str, of: str) -> str:
    """`key` is the title, or the id of the advice, by which the page finds it."""
    words = _tag("figcaption", caption) if caption else ""
    return f'<figure data-picture="{escape(clean(key))}" data-of="{of}">{to_svg(drawing)}{words}</figure>'


def _tag(name: str, text: str) -> str:
    return f"<{name}>{escape(clean(text))}</{name}>"
