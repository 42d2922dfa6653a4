"""A drawing as PNG, which language models can see."""

from __future__ import annotations

import importlib.util
import io
from typing import Any

from stepscope.errors import UsageError
from stepscope.report.drawing import LETTER, Drawing, fit_text

_INK, _FAINT, _GRID = (30, 30, 30), (110, 110, 110), (225, 225, 225)
_SIZE = 11  # of letters, in pixels
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def to_png(drawing: Drawing) -> bytes:
    """The drawing on white.  Raises UsageError if Pillow is not installed."""
    if importlib.util.find_spec("PIL") is None:
        raise UsageError("a PNG needs Pillow", hint='pip install "stepscope[mcp]", or ask for SVG')
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (drawing.width, drawing.height), "white")
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(_SIZE)
    for line in drawing.lines:
        pen.line([line.x1, line.y1, line.x2, line.y2], fill=_GRID if line.is_faint else _FAINT)
    for box in drawing.boxes:
        pen.rectangle([box.x, box.y, max(box.x + box.width - 1, box.x), box.y + box.height - 1], fill=box.colour)
        _write_label(pen, font, box)
    for word in drawing.words:
        ink = _FAINT if word.is_faint else _INK
        pen.text((word.x, word.y), word.text, fill=ink, font=font, anchor=_ANCHORS[word.anchor])
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=3)
    return out.getvalue()


def _write_label(pen: Any, font: Any, box: Any) -> None:
    label = fit_text(box.label, box.width - LETTER)
    if label:
        pen.text((box.x + 3, box.y + box.height / 2 + 4), label, fill="white", font=font, anchor="ls")
