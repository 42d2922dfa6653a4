"""Charts of tables, by the roles of their columns."""

from __future__ import annotations

import pytest

from stepscope.report import Field, Role, Rows
from stepscope.report.charts import Bar, Stack, chart_of_table, choose_colours, draw_bars, draw_columns, draw_curve

CAUSE = Field("cause", "text", "what", "str", role=Role.TERM)
SHARE = Field("percent", "percent", "share")
STEP = Field("step", "number", "which", "int", role=Role.STEP)
WHOLE, ONE, OTHER = (Field(name, "ms", "time") for name in ("duration_ms", "one_ms", "other_ms"))


def table(fields: tuple[Field, ...], *rows: tuple[object, ...]) -> Rows:
    return Rows("t", "T", fields, tuple(dict(zip([f.name for f in fields], row, strict=True)) for row in rows))  # type: ignore[arg-type]


def test_shares_of_a_whole_become_bars() -> None:
    drawing = chart_of_table(table((CAUSE, SHARE), ("host_compute", 75.3), ("input", 25.1)))

    assert drawing is not None
    sizes = [box.width for box in drawing.boxes]
    assert sizes[0] == pytest.approx(3 * sizes[1])
    assert [word.text for word in drawing.words] == ["host compute", "75.3 %", "input", "25.1 %"]


def test_steps_become_columns_of_their_parts() -> None:
    drawing = chart_of_table(table((STEP, WHOLE, ONE, OTHER), (1, 10.0, 4.0, 6.0), (2, 20.0, 20.0, 0.0)))

    assert drawing is not None
    columns = [box for box in drawing.boxes if box.height > 10]
    assert [round(box.height / columns[0].height, 2) for box in columns] == [1, 1.5, 5]


def test_parts_that_do_not_add_up_are_not_stacked() -> None:
    drawing = chart_of_table(table((STEP, WHOLE, ONE), (1, 10.0, 4.0), (2, 20.0, 4.0)))

    assert drawing is not None
    assert len(drawing.boxes) == 2


@pytest.mark.parametrize(
    "rows",
    [
        table((CAUSE, SHARE), ("a", 40.0)),  # not a whole
        table((CAUSE, SHARE), ("a", None)),
        table((CAUSE, SHARE)),
        table((STEP, WHOLE), (1, 10.0)),  # one step
        table((CAUSE, WHOLE), ("a", 10.0)),
    ],
)
def test_other_tables_have_no_chart(rows: Rows) -> None:
    assert chart_of_table(rows) is None


def test_a_chart_of_nothing_has_a_size() -> None:
    for drawing in (draw_bars("t", []), draw_columns("t", [], "ms"), draw_curve("t", [], "bytes")):
        assert drawing.width > 0 and drawing.height > 0 and not drawing.boxes
    assert draw_bars("t", [Bar("a", 0.0, "0")]).boxes[0].width == 1
    assert draw_columns("t", [Stack("1", {"a": 0.0})], "ms").boxes == ()


def test_two_charts_share_their_colours() -> None:
    colours = choose_colours(["input", "python"])

    drawing = draw_columns("t", [Stack("1", {"python": 1.0, "copy": 1.0, "input": 1.0})], "ms")
    shades = [box.colour for box in drawing.boxes[:3]]
    assert shades[0] == colours["python"] and shades[2] == colours["input"] and len(set(shades)) == 3


def test_a_curve_keeps_the_highest_value_of_each_pixel() -> None:
    points = [(at / 100, 1e9 if at == 777 else 1e6) for at in range(10_000)]

    drawing = draw_curve("memory", points, "bytes")
    assert len(drawing.boxes) < 1000
    assert max(box.height for box in drawing.boxes) == pytest.approx(170)
    assert any("MiB" in word.text for word in drawing.words)
