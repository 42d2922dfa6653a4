"""One HTML file about a session: verdict, account, advice with its evidence in the timeline, steps, ops, memory.

It only arranges what reports say.  A tool that fails or has nothing is left out.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, cast

from stepscope.analysis.advice.items import describe_speedup
from stepscope.errors import StepscopeError
from stepscope.pictures.timeline import draw_window, usual_window
from stepscope.report import Figures, Report, Rows, clean, duration_text, shorten_name, value_with_unit
from stepscope.report.charts import Bar, Stack, choose_colours, draw_bars, draw_columns, draw_curve
from stepscope.report.drawing import Drawing, to_svg
from stepscope.report.html import render_section

if TYPE_CHECKING:
    from stepscope.analysis.overview.advice_tool import AdviceReport
    from stepscope.analysis.overview.overview_tool import OverviewReport
    from stepscope.api import LoadedProfile


# ---- The style of a sheet --------------------------------------------------------------------------------------------
# light and dark as the reader's system, and black on white on paper.


STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --faint: #59636e; --page: #fff; --card: #f4f6f8; --edge: #d5dae0;
  --warn: #fff4d6; --good: #1a7f37 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #9aa4af; --page: #12161b; --card: #1c2229;
  --edge: #343c45; --warn: #3a2f12; --good: #57c46f } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink); font: 14px/1.5 system-ui, sans-serif }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 3rem }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere }
h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; padding-bottom: .25rem; border-bottom: 1px solid var(--edge) }
h3 { font-size: 1rem; margin: 0 0 .3rem }
h3 em { font-style: normal; font-weight: 600; color: var(--good); margin-left: .6em }
p { margin: .3rem 0; overflow-wrap: anywhere }
.faint, figcaption, footer, .cards span { color: var(--faint) }
.verdict { font-size: 1.15rem; font-weight: 600; margin: .8rem 0 }
.warning { background: var(--warn); border-radius: 6px; padding: .5rem .8rem }
.cards { display: flex; flex-wrap: wrap; gap: .6rem; margin: .8rem 0 }
.cards div { background: var(--card); border-radius: 6px; padding: .45rem .8rem }
.cards b, .cards span { display: block; font-variant-numeric: tabular-nums }
.cards span { font-size: .8rem }
article { background: var(--card); border-radius: 6px; padding: .8rem 1rem; margin: .8rem 0 }
figure { margin: .6rem 0; overflow-x: auto }
figcaption { font-size: .8rem; overflow-wrap: anywhere }
svg { display: block }
ul { margin: .3rem 0; padding-left: 1.3rem }
li { overflow-wrap: anywhere }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100% }
th, td { padding: 2px 12px 2px 0; vertical-align: top; text-align: left }
th { color: var(--faint); font-weight: 600 }
tr + tr { border-top: 1px solid var(--edge) }
td { overflow-wrap: anywhere }
footer { margin-top: 2.5rem; font-size: .8rem }
@page { margin: 14mm }
@media print {
  :root { --ink: #000; --faint: #444; --page: #fff; --card: #fff; --edge: #bbb; --warn: #fff; --good: #000 }
  :root { font-size: 12px }
  body { font-size: 10.5px; print-color-adjust: exact; -webkit-print-color-adjust: exact }
  main { max-width: none; padding: 0 }
  article, .cards div, .warning { border: 1px solid var(--edge) }
  section, article, figure, tr, li { break-inside: avoid }
  section:has(article), section:has(table) { break-inside: auto }
  h1, h2, h3 { break-after: avoid }
}
"""


_MOST_ADVICE = 4
_MOST_ROWS = 10
_MOST_MEMORIES = 4  # the fullest
_LONGEST_NAME = 110  # characters in a table
_MOST_STEPS = 120
_MARGIN = 0.6  # of an interval, shown on each side of it
_SHORTEST_MS = 1e-3
_MOST_STEPS_SHOWN = 2.5  # steps in a picture of evidence


def render_sheet(profile: LoadedProfile, version: str, now: datetime.datetime) -> str:
    """The file.

    Args:
        profile: the session.
        version: that of Stepscope.
        now: when the file is made.

    Raises:
        InputError: no host of the session can be read.
    """
    overview = cast("OverviewReport", profile.overview())
    advice = cast("AdviceReport", profile.advice())
    title = f"{profile.run}: {overview.verdict.name.replace('_', ' ')}"
    parts = [
        *_head(profile, overview),
        *_account(overview),
        *_advice(profile, advice, overview),
        *_steps(profile, overview),
        *_timeline(profile),
        *_ops(profile, overview),
        *_memory(profile),
        *_workers(profile, overview),
        *_foot(profile, overview, version, now),
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width">{_tag("title", title)}'
    body = "\n".join(parts)
    head += f"<style>{STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body><main>\n{body}\n</main></body></html>\n'


# -- parts ---------------------------------------------------------------------------------------------------------


def _head(profile: LoadedProfile, overview: OverviewReport) -> Iterator[str]:
    environment = overview.environment
    facts = [environment["framework"], environment["device_type"], _count(len(profile.hosts), "host")]
    yield f"<header>{_tag('h1', profile.run)}{_tag('p', ' · '.join(str(fact) for fact in facts if fact), 'faint')}"
    yield f"{_tag('p', overview.verdict.sentence, 'verdict')}{_cards(overview)}</header>"
    for warning in overview.warnings:
        yield _tag("p", warning, "warning")


def _cards(overview: OverviewReport) -> str:
    """The figures of the step time, each with its meaning on hover."""
    section = cast(Figures, overview.section("step_time"))
    shown = [field for field in section.fields if section.values[field.name] is not None]
    cards = [
        f'<div title="{escape(field.doc)}"><b>{escape(value_with_unit(field, section.values[field.name]))}</b>'
        f"{_tag('span', field.label)}</div>"
        for field in shown
    ]
    return f'<div class="cards">{"".join(cards)}</div>'


def _account(overview: OverviewReport) -> Iterator[str]:
    rows = cast(Rows, overview.section("step_account")).rows
    if not rows:
        return
    bars = [Bar(_words(row["cause"]), _number(row["ms"]), _bar_text(row), str(row["meaning"])) for row in rows]
    yield from _section("What the median step waits for", _picture(draw_bars("Account of the median step", bars)))


def _bar_text(row: Mapping[str, Any]) -> str:
    culprit = f"  {row['place'] or ''} {row['culprit']}"[:70] if row["culprit"] else ""
    return f"{_number(row['percent']):.1f} %, {duration_text(_number(row['ms']))}{culprit}"


def _advice(profile: LoadedProfile, advice: AdviceReport, overview: OverviewReport) -> Iterator[str]:
    items = [_advice_item(profile, row, overview) for row in advice.rows[:_MOST_ADVICE]]
    if items:
        yield from _section("What to change first", *items)


def _advice_item(profile: LoadedProfile, row: Mapping[str, Any], overview: OverviewReport) -> str:
    actions = "".join(_tag("li", action) for action in row["actions"])
    parts = [
        f"<h3>{row['rank']}. {_text(row['title'])}{_gain(row)}</h3>",
        _tag("p", row["evidence"]),
        f"<ul>{actions}</ul>" if actions else "",
        *(_evidence(profile, place, overview) for place in row["intervals"][:1]),
    ]
    return f"<article>{''.join(parts)}</article>"


def _gain(row: Mapping[str, Any]) -> str:
    if not row["predicted_speedup"]:
        return ""
    keys = ("predicted_speedup", "predicted_speedup_least", "predicted_speedup_most")
    gain, between = describe_speedup(*(row[key] for key in keys))
    return _tag("em", f"{gain} ({between})" if between else gain)


def _evidence(profile: LoadedProfile, place: Mapping[str, Any], overview: OverviewReport) -> str:
    """The interval of an advice in the timeline, with what lies around it."""
    start, end = float(place["start_ms"]), float(place["end_ms"])
    step = _number(overview.step_time_ms["mean"])
    if step and end - start > _MOST_STEPS_SHOWN * step:
        end = start + _MOST_STEPS_SHOWN * step
    margin = max(_MARGIN * (end - start), _SHORTEST_MS)
    when = f"{place['start_ms']:,.3f} to {place['end_ms']:,.3f} ms on {place['host']}"
    name = f"{place['name'] or 'The longest interval'}: {when}"
    return _window(profile, str(place["host"]), max(start - margin, 0.0), end + margin, name, (start, end))


def _window(
    profile: LoadedProfile, host: str, start: float, end: float, name: str, mark: tuple[float, float] | None = None
) -> str:
    """A picture with its caption; empty if the trace has nothing there."""
    try:
        shown = draw_window(profile.trace(host), start, end, mark=mark)
    except StepscopeError:
        return ""
    return f"<figure>{to_svg(shown.drawing)}{_tag('figcaption', name)}</figure>"


def _causes(overview: OverviewReport) -> list[str]:
    """The causes in the order of the account, which is that of their colours."""
    return [_words(row["cause"]) for row in cast(Rows, overview.section("step_account")).rows]


def _steps(profile: LoadedProfile, overview: OverviewReport) -> Iterator[str]:
    """The steps of the host that the account is of."""
    report = _report(profile, "critical-path")
    table = cast(Rows, report.section("steps")) if report else None
    if table is None or not table.rows or overview.steps_source == "none":
        return
    causes = [field for field in table.fields if field.name.endswith("_ms") and field.name != "duration_ms"]
    names = {field.name: _words(field.name.removesuffix("_ms")) for field in causes}
    host = overview.account.host if overview.account else table.rows[0]["host"]
    own = [row for row in table.rows if row["host"] == host]
    rows = own[:_MOST_STEPS]
    stacks = [Stack(str(row["step"]), {names[key]: _number(row[key]) for key in names}) for row in rows]
    more = _tag("p", f"the first {len(rows)} of {len(own)} steps", "faint") if len(rows) < len(own) else ""
    drawing = draw_columns("Steps", stacks, "ms", choose_colours(_causes(overview)))
    yield from _section("Every step, by what it waits for", _picture(drawing), more)


def _timeline(profile: LoadedProfile) -> Iterator[str]:
    host = profile.hosts[0]
    try:
        window = usual_window(profile.trace(host))
    except StepscopeError:
        return
    picture = _window(profile, host, *window, f"{window[0]:,.3f} to {window[1]:,.3f} ms on {host}")
    if picture:
        yield from _section("Steps in the timeline", picture)


def _ops(profile: LoadedProfile, overview: OverviewReport) -> Iterator[str]:
    one_host = len(profile.hosts) == 1
    table = cast(Rows, overview.section("top_ops"))
    if table.rows:
        yield from _section("Top ops", _table(table, one_host))
    kernels = _report(profile, "kernel-stats")
    found = cast(Rows, kernels.section("by_kernel")) if kernels else None
    if found is not None and found.rows:
        yield from _section("Top kernels", _table(found, one_host))


def _memory(profile: LoadedProfile) -> Iterator[str]:
    report = _report(profile, "memory-profile")
    rows = cast(Rows, report.section("timeline")).rows if report else ()
    peaks: dict[tuple[object, object], float] = {}
    for row in rows:
        key = row["host"], row["memory"]
        peaks[key] = max(peaks.get(key, 0.0), _number(row["in_use_bytes"]))
    for memory in sorted(peaks, key=lambda one: -peaks[one])[:_MOST_MEMORIES]:
        own = [row for row in rows if (row["host"], row["memory"]) == memory and row["in_use_bytes"] is not None]
        points = [(_number(row["time_ms"]), _number(row["in_use_bytes"])) for row in own]
        if len(points) > 1:
            title = f"Memory in use: {memory[1]}" + (f" on {memory[0]}" if len(profile.hosts) > 1 else "")
            yield from _section(title, _picture(draw_curve(title, points, "bytes")))


def _workers(profile: LoadedProfile, overview: OverviewReport) -> Iterator[str]:
    report = _report(profile, "pod-viewer") if len(profile.hosts) > 1 else None
    table = cast(Rows, report.section("workers")) if report else None
    if table is not None and table.rows:
        yield from _section("Workers", _table(table, one_host=False, most=2 * _MOST_ROWS))


def _foot(profile: LoadedProfile, overview: OverviewReport, version: str, now: datetime.datetime) -> Iterator[str]:
    missing = [_tag("li", f"{item.what}: {item.remedy}") for item in overview.missing]
    if missing:
        yield from _section("Not in this capture", f"<ul>{''.join(missing)}</ul>")
    made = f"Made by Stepscope {version} on {now:%Y-%m-%d %H:%M} from {profile.path}."
    more = f"More: stepscope open {profile.path}"
    yield f"<footer>{_tag('p', made)}{_tag('p', more)}</footer>"


# -- pieces --------------------------------------------------------------------------------------------------------


def _report(profile: LoadedProfile, tool: str) -> Report | None:
    """A tool's report; None if it fails."""
    try:
        return profile.report(tool)
    except StepscopeError:
        return None


def _section(title: str, *parts: str) -> Sequence[str]:
    return [f"<section>{_tag('h2', title)}{''.join(parts)}</section>"]


def _table(table: Rows, one_host: bool, most: int = _MOST_ROWS) -> str:
    """The first rows, with long names cut in their middle."""
    rows = tuple(
        {key: shorten_name(value, _LONGEST_NAME) if isinstance(value, str) else value for key, value in row.items()}
        for row in table.rows
    )
    return render_section(replace(table, rows=rows), most, "", one_host, heading=False)


def _picture(drawing: Drawing) -> str:
    return f"<figure>{to_svg(drawing)}</figure>"


def _tag(name: str, text: str, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f"<{name}{attribute}>{_text(text)}</{name}>"


def _text(text: object) -> str:
    return escape(clean(str(text)))


def _words(name: object) -> str:
    return str(name).replace("_", " ")


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
