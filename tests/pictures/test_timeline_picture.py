"""Pictures of a timeline: what is drawn where, counted on drawn traces."""

from __future__ import annotations

import io

import pytest
from draw import draw
from PIL import Image

from stepscope.errors import UsageError
from stepscope.pictures.png import to_png
from stepscope.pictures.timeline import draw_window, usual_window
from stepscope.report.drawing import Box, Drawing, Line, Word, fit_text, ticks_between, to_svg

STEPS = draw("""
    host main | M0--------M1--------M2--------M3--------
    host main | a---b-----a---b-----a---b-----a---b-----
    gpu0 s    |  k---      k---      k---      k---
""")


def test_the_usual_window_is_two_steps_from_the_middle() -> None:
    assert usual_window(STEPS) == (20.0, 40.0)
    assert usual_window(draw("host main | M0---")) == (0.0, 5.0)
    assert usual_window(draw("host main | a----b---")) == (0.0, 9.0)


def test_boxes_are_where_events_are() -> None:
    shown = draw_window(STEPS, 10, 20, width=370)  # 20 pixels a millisecond, right of 170

    assert shown.tracks == ("GPU:0 s", "main")
    boxes = {box.label: (box.x, box.width) for box in shown.drawing.boxes}
    assert boxes == {
        "train": (170, 200), "a": (170, pytest.approx(80)), "b": (pytest.approx(250), pytest.approx(120)),
        "k": (pytest.approx(190), pytest.approx(80)),
    }  # fmt: skip
    assert [word.text for word in shown.drawing.words if word.text.startswith("step")] == ["step 1"]


def test_an_interval_is_pointed_out() -> None:
    plain, marked = (draw_window(STEPS, 10, 20, 370, mark).drawing for mark in (None, (12.0, 14.0)))

    [bar] = set(marked.boxes) - set(plain.boxes)
    assert (bar.x, bar.width) == (pytest.approx(210), pytest.approx(40))
    assert len(marked.lines) == len(plain.lines) + 2


def test_a_crowded_window_becomes_boxes_of_many_events() -> None:
    crowded = draw("host main | " + "a" * 3000)

    boxes = draw_window(crowded, 0, 3000).drawing.boxes
    assert len(boxes) < 500
    assert all("more" in box.hint for box in boxes if box.hint)


def test_an_empty_window_is_refused_with_the_length_of_the_trace() -> None:
    with pytest.raises(UsageError, match=r"the trace lasts from 0.000 to 40.000 ms"):
        draw_window(STEPS, 50, 60)


def test_a_png_shows_what_the_svg_shows() -> None:
    drawing = Drawing(
        40, 30, "t <&>", (Line(0, 29, 40, 29),), (Box(10, 5, 20, 10, "#ff0000", hint="<h>"),), (Word(1, 28, "<w>"),)
    )

    image = Image.open(io.BytesIO(to_png(drawing)))
    assert image.size == (40, 30)
    assert (image.getpixel((20, 10)), image.getpixel((35, 10))) == ((255, 0, 0), (255, 255, 255))
    svg = to_svg(drawing)
    assert '<g fill="#ff0000"><path d="M10 5h20v10h-20z"><title>&lt;h&gt;</title></path></g>' in svg
    assert "&lt;w&gt;" in svg and "<w>" not in svg


def test_words_are_cut_to_their_room() -> None:
    assert (fit_text("forward", 100), fit_text("forward", 40), fit_text("forward", 10)) == ("forward", "forwa…", "")


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0, 10, (0, 5, 10)), (0, 1, (0, 0.5, 1)), (3, 3, (3,)), (0.2, 0.9, (0.4, 0.6, 0.8)), (0, 130, (0, 50, 100))],
)
def test_ticks_are_round_numbers(low: float, high: float, ticks: tuple[float, ...]) -> None:
    assert ticks_between(low, high, 4) == pytest.approx(ticks)
