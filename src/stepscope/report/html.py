"""Shows reports as HTML: fragments for notebooks, and standalone pages to send to others."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from stepscope.errors import counted
from stepscope.report.charts import chart_of_table
from stepscope.report.drawing import to_svg
from stepscope.report.fields import Field
from stepscope.report.looks import CODE, clean, column_texts, name_words, unit_symbol, value_text, visible_fields
from stepscope.report.palette import share_colour
from stepscope.report.sections import TABLE_ROWS, Figures, FirstScreen, Prose, Rows, Section

if TYPE_CHECKING:
    from stepscope.report.base import Report

_STYLE = """
:root { color-scheme: light dark }
body { font: 14px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: 2px 12px 2px 0; vertical-align: top }
tr + tr { border-top: 1px solid color-mix(in srgb, currentColor 15%, transparent) }
td { overflow-wrap: anywhere }
h4 { margin: 1.6em 0 .4em }
@media print { body { max-width: none; margin: 0 } tr, li { break-inside: avoid } h4 { break-after: avoid } }
"""
_LIVE_ROWS, _FOLDED_ROWS = 200, 50  # of a table in a notebook: what is not there cannot be sorted
_BOX = "32em"  # the height of a long table in a notebook
# Sorts by the column of a heading: numbers by their exact values, the largest first, or texts; the unknown is last.
# It stands in an attribute, since not every notebook runs scripts of an output.
_SORT = (
    "var h=event.target.closest('th');if(h){var t=h.closest('table'),b=t.tBodies[0],i=h.cellIndex,"
    "d=h.ariaSort==='descending'?1:-1,v=function(r){var c=r.cells[i];return c.dataset.v===undefined?null:+c.dataset.v},"
    "n=[].some.call(b.rows,function(r){return v(r)!==null});"
    "[].forEach.call(t.tHead.rows[0].cells,function(c){c.ariaSort='none'});h.ariaSort=d<0?'descending':'ascending';"
    "[].slice.call(b.rows).sort(function(x,y){var p=v(x),q=v(y);"
    "return n?(p===null)-(q===null)||d*(p-q):-d*x.cells[i].textContent.localeCompare(y.cells[i].textContent)})"
    ".forEach(function(r){b.appendChild(r)})}"
)
_LEAST_SHARE = 0.05  # percent: what rounds to 0.0 has no place in a legend
_SWATCH = "display:inline-block;width:.75em;height:.75em;border-radius:2px;margin-right:.4em;background:"
_RIGHT = frozenset({"float", "int"})
_WHOLE = 100.0
_BAR = "color-mix(in srgb,#3b82f6 22%,transparent)"
_WORD = 24  # characters; a cell of at most this length stays on one line, longer ones are names that may wrap


def render_page(report: Report, most_rows: int) -> str:
    """A page that needs no network and no other file; tables are cut after `most_rows` rows with a note."""
    title = escape(clean(f"{report.TOOL}: {', '.join(report.hosts)}"))
    sections = [render_section(each, most_rows, len(report.hosts) == 1) for each in _prose_first(report)]
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    body = "\n".join([f"<h3>{title}</h3>", *_warnings(report), *sections])
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def render_notebook(report: Report) -> str:
    """A report for a notebook: its first screen, and below it, folded, its sections; tables sort by a click on a
    heading.  Of a report without an answer in words the first table is what was asked for, and is open.
    """
    screen, shown = report.first_screen(), _prose_first(report)
    is_answered = screen is not None or (bool(shown) and isinstance(shown[0], Prose))
    main = next((section for section in shown if not is_answered and isinstance(section, Rows) and section.rows), None)
    one_host = len(report.hosts) == 1
    sections = [
        _render_live(section, one_host, main is None or section.id != main.id, screen is not None) for section in shown
    ]
    head = f"<h3>{_escape_text(report.TOOL)}</h3>" if screen is None else render_screen(screen)
    return "\n".join([head, *_warnings(report), *sections])


def render_screen(screen: FirstScreen) -> str:
    """The answer: verdict, one bar with its legend, and what to do first."""
    whole = sum(size for *_, size in screen.bar) or 1.0
    parts = [(share_colour(key), escape(name), 100.0 * size / whole) for key, name, size in screen.bar if size > 0]
    bar = "".join(
        f'<div title="{name} {share:.1f} %" style="width:{share:.3f}%;background:{colour}"></div>'
        for colour, name, share in parts
    )
    legend = "".join(
        f'<span style="margin-right:1.2em;white-space:nowrap"><span style="{_SWATCH}{colour}"></span>{name}'
        f" {share:.1f} %</span>"
        for colour, name, share in parts
        if share >= _LEAST_SHARE
    )
    actions = "".join(f"<li>{_escape_text(action)}</li>" for action in screen.actions)
    gain = f' <span style="color:#15803d">{_escape_text(screen.gain)}</span>' if screen.gain else ""
    return "".join([
        f'<p style="font-size:1.35em;margin:.2em 0"><b>{_escape_text(screen.title)}</b></p>',
        f'<p style="margin:.2em 0 .6em">{_escape_text(screen.sentence)}</p>' if screen.sentence else "",
        f'<div style="display:flex;height:1.7em;border-radius:5px;overflow:hidden">{bar}</div>' if bar else "",
        f'<p style="font-size:.9em;margin:.3em 0 .9em">{legend}</p>' if bar else "",
        f'<p style="margin:.2em 0"><b>{_escape_text(screen.advice)}</b>{gain}</p>' if screen.advice else "",
        f'<ol style="margin-top:.2em">{actions}</ol>' if actions else "",
    ])  # fmt: skip


def _render_live(section: Section, one_host: bool, folded: bool, is_below: bool) -> str:
    """One section of a notebook: the chart that suits a table, and the table, which scrolls in its box.

    Args:
        folded: only its title shows until it is opened; is_below: so does a chart or prose, as it stands below a first
            screen.
    """
    title = _escape_text(section.title)
    if isinstance(section, Prose):
        body = _render_body(section, TABLE_ROWS, one_host)
        return _fold(title, body) if is_below else f"<h4>{title}</h4>{body}"
    if isinstance(section, Figures) or not section.rows:
        body = _render_body(section, TABLE_ROWS, one_host)
        return _fold(title, body) if folded else f"<h4>{title}</h4>{body}"
    drawing = chart_of_table(section)
    chart = f"<div>{to_svg(drawing)}</div>" if drawing is not None else ""
    most = _FOLDED_ROWS if folded else _LIVE_ROWS
    left = len(section.rows) - most
    more = f"<p>and {counted(left, 'more row')}; to_dict() has all</p>" if left > 0 else ""
    table = _render_table(section, most, one_host, sortable=len(section.rows) > 1)
    box = f'<div style="max-height:{_BOX};overflow:auto">{table}</div>' if len(section.rows) > TABLE_ROWS else table
    if folded:
        count = counted(len(section.rows), "row")
        if is_below:
            return _fold(f"{title}: {count}", chart + box + more)
        return (f"<h4>{title}</h4>{chart}" if chart else "") + _fold(f"{title}: {count}", box + more)
    return f"<h4>{title}</h4>{chart}{box}{more}"


def _fold(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>{body}</details>"


def _prose_first(report: Report) -> list[Section]:
    """The sections to show, findings and advice before the figures and tables."""
    return sorted(report.visible_sections(), key=lambda section: not isinstance(section, Prose))


def _warnings(report: Report) -> list[str]:
    return [f"<p><b>{_escape_text(warning)}</b></p>" for warning in report.warnings]


def _escape_text(text: str) -> str:
    return CODE.sub(r"<code>\1</code>", escape(clean(text)))


def render_section(section: Section, most_rows: int, one_host: bool) -> str:
    """One section; a long table ends with the number of rows that are left out."""
    return f"<h4>{_escape_text(section.title)}</h4>{_render_body(section, most_rows, one_host)}"


def _render_body(section: Section, most_rows: int, one_host: bool) -> str:
    if isinstance(section, Prose):
        return "<ul>" + "".join(map(_render_line, section.lines)) + "</ul>"
    if isinstance(section, Figures):
        return f"<table>{''.join(_render_figure(section, row) for row in range(len(section.fields)))}</table>"
    if not section.rows:
        return f"<p>{_escape_text(section.empty)}</p>"
    left = len(section.rows) - most_rows
    more = f"<p>and {counted(left, 'more row')}</p>" if left > 0 else ""
    return _render_table(section, most_rows, one_host) + more


def _render_line(line: str) -> str:
    text = line.lstrip(" ").removeprefix("- ")
    return (
        f'<li style="margin-left:2em">{_escape_text(text)}</li>' if text != line else f"<li>{_escape_text(text)}</li>"
    )


def _render_figure(section: Figures, row: int) -> str:
    field = section.fields[row]
    value = section.values[field.name]
    unit = f" {unit_symbol(field)}" if value is not None else ""
    cell = f'<td style="text-align:left">{escape(value_text(field, value) + unit)}</td>'
    return f'<tr title="{escape(field.doc)}"><th style="text-align:left">{escape(_heading(field))}</th>{cell}</tr>'


def _render_table(section: Rows, most_rows: int, one_host: bool, sortable: bool = False) -> str:
    fields = visible_fields(section, one_host)
    rows = section.rows[:most_rows]
    columns = [column_texts(field, [row[field.name] for row in rows]) for field in fields]
    cells = [
        [_render_cell(text, field, row[field.name], sortable) for text, row in zip(column, rows, strict=True)]
        for field, column in zip(fields, columns, strict=True)
    ]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    head = "".join(_column_head(field, sortable) for field in fields)
    if not sortable:
        return f"<table><tr>{head}</tr>{body}</table>"
    events = f'onclick="{_SORT}" onkeydown="if(event.key===\'Enter\'){{{_SORT}}}"'
    return f"<table {events}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _column_head(field: Field, sortable: bool) -> str:
    text = f"{_heading(field)} {unit_symbol(field)}".strip()
    more = ' tabindex="0" aria-sort="none"' if sortable else ""
    pointer = ";cursor:pointer" if sortable else ""
    return f'<th title="{escape(field.doc)}"{more} style="{_align_style(field)}{pointer}">{escape(text)}</th>'


def _render_cell(text: str, field: Field, value: object, sortable: bool = False) -> str:
    exact = f' data-v="{value}"' if sortable and isinstance(value, int | float) else ""
    if field.kind not in _RIGHT and len(text) > _WORD:
        return f'<td style="{_align_style(field)}">{_add_line_breaks(escape(text))}</td>'
    return f'<td{exact} style="{_align_style(field)};white-space:nowrap{_bar_style(field, value)}">{escape(text)}</td>'


def _bar_style(field: Field, value: object) -> str:
    """The style of a bar behind a share."""
    if field.unit != "percent" or not isinstance(value, int | float) or not 0 < value <= _WHOLE:
        return ""
    return f";min-width:5em;background:linear-gradient(to right,{_BAR} {value:.1f}%,transparent {value:.1f}%)"


def _add_line_breaks(name: str) -> str:
    """A name with possible line breaks after its parts, not inside them."""
    return name.replace("/", "/<wbr>").replace("::", "::<wbr>")


def _align_style(field: Field) -> str:
    return "text-align:right" if field.kind in _RIGHT else "text-align:left"


def _heading(field: Field) -> str:
    return " ".join(name_words(field))
