"""What the advice on the session before predicted, and what came: each comparison is a test of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stepscope.analysis.compare.sides import Side
from stepscope.report import Cell, Field, Role, Rows, amount

_RANGE = ("measured_speedup", "predicted_speedup_least", "predicted_speedup_most")

FIELDS: tuple[Field, ...] = (
    Field("class", "text", "the class of an advice on the session before", role=Role.TERM),
    Field("title", "text", "what it said to do", role=Role.TEXT),
    Field("predicted_speedup", "ratio", "the gain that it predicted; unknown if it named none"),
    Field("predicted_speedup_least", "ratio", "the lower end of the predicted range"),
    Field("predicted_speedup_most", "ratio", "the upper end of the predicted range"),
    Field("proved_speedup", "ratio", "what stepscope prove measured of it in the job before; unknown without a proof"),
    Field("proved_speedup_least", "ratio", "the lower end of that interval"),
    Field("proved_speedup_most", "ratio", "the upper end of that interval"),
    Field("is_gone", "", "whether the session after gets no advice of that class", "bool", label="Cause is gone"),
    Field("measured_speedup", "ratio", "median step before over median step after; unknown while the cause is there"),
    Field("is_inside", "", "whether that lies in the predicted range; unknown if other causes went, too", "bool"),
)


def compare_predicted(before: Side, after: Side, speedup: float | None) -> tuple[dict[str, Cell], ...]:
    """The advice on the session before, with what came of it; see FIELDS.

    Args:
        speedup: median step before over median step after, as the advice is about the median step; None if unknown.
    """
    left = {advice.kind for advice in after.overview.advice}
    given = [advice for advice in before.overview.advice if advice.kind != "none"]
    is_alone = sum(advice.kind not in left for advice in given) == 1
    rows: list[dict[str, Cell]] = []
    for advice in given:
        is_gone, (least, most) = advice.kind not in left, advice.speedup_range or (None, None)
        measured = speedup if is_gone else None
        proved = (advice.measured and advice.measured.speedup) or (None, None, None)
        is_known = is_alone and measured is not None and least is not None
        rows.append({
            "class": advice.kind,
            "title": advice.title,
            "predicted_speedup": advice.predicted_speedup,
            "predicted_speedup_least": least,
            "predicted_speedup_most": most,
            "proved_speedup": proved[0],
            "proved_speedup_least": proved[1],
            "proved_speedup_most": proved[2],
            "is_gone": is_gone,
            "measured_speedup": measured,
            "is_inside": least <= measured <= (most or measured) if is_known else None,  # type: ignore[operator]
        })  # fmt: skip
    return tuple(rows)


def predicted_table(rows: Sequence[dict[str, Cell]]) -> Rows:
    """The rows as a table."""
    return Rows("foretold", "Predicted and measured", FIELDS, tuple(rows), "no advice on the session before")


def predicted_lines(rows: Sequence[Mapping[str, Cell]]) -> Iterator[str]:
    """What came of the first advice, and of every other whose cause is gone."""
    for at, row in enumerate(rows):
        if at == 0 or row["is_gone"]:
            came = _describe_measured(row) if row["measured_speedup"] else _describe_lack(row)
            yield f"{row['title']}: {_describe_prediction(row)}{_describe_proof(row)}, {came}"


def _describe_prediction(row: Mapping[str, Cell]) -> str:
    if row["predicted_speedup"] is None:
        return "no gain predicted"
    least, most = row["predicted_speedup_least"], row["predicted_speedup_most"]
    if most is None:
        return f"predicted {row['predicted_speedup']:.2f}x" + ("" if least is None else f" ({least:.2f} or more)")
    between = f" ({least:.2f} to {most:.2f})"
    return f"predicted {row['predicted_speedup']:.2f}x{between}"


def _describe_measured(row: Mapping[str, Cell]) -> str:
    """What came, and on which side of the predicted range."""
    measured, least, most = (row[name] for name in _RANGE)
    text = f"measured {measured:.2f}x"
    if least is not None and amount(measured) < amount(least):
        return f"{text}, less than predicted"
    return f"{text}, more than predicted" if most is not None and amount(measured) > amount(most) else text


def _describe_proof(row: Mapping[str, Cell]) -> str:
    if row["proved_speedup"] is None:
        return ""
    return (
        f", proved {row['proved_speedup']:.2f}x ({row['proved_speedup_least']:.2f} to {row['proved_speedup_most']:.2f})"
    )


def _describe_lack(row: Mapping[str, Cell]) -> str:
    return "the gain is unknown" if row["is_gone"] else "its cause is still there"
