"""A run over time as one HTML page, with its curves drawn; it needs no network and no other file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

from stepscope.overtime.report import OverTimeReport
from stepscope.records import dataclass
from stepscope.report import Row, amount
from stepscope.report.export import SHEETS

_WIDTH, _HEIGHT, _LEFT, _TOP = 960, 150, 70, 18
_COLOURS = ("#3b82f6", "#ef8d22", "#35a06a")
_MARK_COLOURS = {"slow step": "#d97706", "regular window": "#9ca3af", "time table": "#9ca3af"}
_URGENT = "#dc2626"


@dataclass(frozen=True)
class Curves:
    """Curves in one picture.

    Attributes:
        title: what they show, with the unit.
        columns: the columns of the rows, each with its words in the legend.
        scale: what a value is divided by.
    """

    title: str
    columns: tuple[tuple[str, str], ...]
    scale: float = 1.0


PICTURES: tuple[Curves, ...] = (
    Curves("Step time, ms", (("step_ms_median", "median"), ("step_ms_p90", "90th percentile"))),
    Curves("Memory, GB", (("resident_bytes", "process"), ("device_allocated_bytes", "devices")), 1e9),
    Curves(
        "Share of the step, percent",
        (("thread_cpu_percent", "thread computes"), ("thread_queued_percent", "waits for a core"),
         ("collector_percent", "garbage collection")),
    ),
    Curves("Processors of the machine, percent busy", (("cpu_machine_percent", "all processes"),)),
)  # fmt: skip


def render_run_page(report: OverTimeReport, most_rows: int) -> str:
    """The page: the curves of each host with the triggers as vertical lines, then the report's tables."""
    pictures = "\n".join(
        picture
        for host in report.hosts
        for picture in _draw_host(host, [row for row in report.rows if row["host"] == host], report)
    )
    return SHEETS["html"](report, most_rows).replace("<body>\n", f"<body>\n{pictures}\n", 1)


def _draw_host(host: str, rows: Sequence[Row], report: OverTimeReport) -> Iterator[str]:
    marks = [mark for mark in report.marks if mark["host"] == host]
    if len(rows) < 2:
        return
    if len(report.hosts) > 1:
        yield f"<h4>{escape(host)}</h4>"
    for curves in PICTURES:
        if any(row[name] is not None for row in rows for name, _ in curves.columns):
            yield _draw(curves, rows, marks)


def _draw(curves: Curves, rows: Sequence[Row], marks: Sequence[Row]) -> str:
    hours = [amount(row["hour"]) for row in rows]
    known = [amount(row[name]) / curves.scale for row in rows for name, _ in curves.columns if row[name] is not None]
    highest, first, last = max(*known, 1e-9, 0.0), hours[0], max(hours[-1], hours[0] + 1e-9)

    def across(hour: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT) * (hour - first) / (last - first), 1)

    def down(value: float) -> float:
        return round(_TOP + (_HEIGHT - _TOP) * (1 - value / curves.scale / highest), 1)

    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + 22}" role="img" style="width:100%" font-size="11" fill="currentColor">',
        f'<text x="0" y="11" font-weight="600">{escape(curves.title)}</text>',
        *_draw_axes(highest, first, last),
        *(_draw_mark(mark, across(amount(mark["hour"]))) for mark in marks if first <= amount(mark["hour"]) <= last),
        *_draw_curves(curves, rows, across, down),
        "</svg>",
    ]
    return "".join(parts)


def _draw_axes(highest: float, first: float, last: float) -> Iterator[str]:
    line = 'stroke="currentColor" stroke-opacity=".25"'
    for value, at in ((highest, _TOP), (highest / 2, (_TOP + _HEIGHT) / 2), (0.0, _HEIGHT)):
        yield f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{at}" y2="{at}" {line}/>'
        yield f'<text x="{_LEFT - 6}" y="{at + 4}" text-anchor="end">{value:,.3g}</text>'
    yield f'<text x="{_LEFT}" y="{_HEIGHT + 16}">{first:.3g} h</text>'
    yield f'<text x="{_WIDTH}" y="{_HEIGHT + 16}" text-anchor="end">{last:.3g} h</text>'


def _draw_curves(
    curves: Curves, rows: Sequence[Row], across: Callable[[float], float], down: Callable[[float], float]
) -> Iterator[str]:
    for place, ((name, words), colour) in enumerate(zip(curves.columns, _COLOURS, strict=False)):
        points = [f"{across(amount(row['hour']))},{down(amount(row[name]))}" for row in rows if row[name] is not None]
        if points:
            yield f'<polyline fill="none" stroke="{colour}" stroke-width="1.3" points="{" ".join(points)}"/>'
            yield f'<text x="{300 + 200 * place}" y="11" fill="{colour}">{escape(words)}</text>'


def _draw_mark(mark: Row, x: float) -> str:
    """A vertical line with the trigger's sentence and its sessions on hover."""
    trigger = str(mark["trigger"])
    sessions = ", ".join(str(mark[name]) for name in ("run", "window") if mark[name])
    words = escape(f"{mark['time']} {trigger}: {mark['sentence']}" + (f" ({sessions})" if sessions else ""))
    colour = _MARK_COLOURS.get(trigger, _URGENT)
    width = 2 if sessions else 1
    return (
        f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{_HEIGHT}" stroke="{colour}" stroke-width="{width}">'
        f"<title>{words}</title></line>"
    )
