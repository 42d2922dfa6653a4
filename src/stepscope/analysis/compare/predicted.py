"""What the advice on the session before predicted, and what came: each comparison is a test of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stepscope.analysis.compare.sides import Side
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role, Rows, amount

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
    Field("measured_speedup", "ratio", "mean step before over mean step after; unknown while the cause is there"),
    Field("measured_speedup_least", "ratio", "the lower end of its 95 % interval"),
    Field("measured_speedup_most", "ratio", "the upper end of that interval; unknown if the noise is too large"),
    Field("is_inside", "", "whether that interval meets the predicted range; unknown if other causes went", "bool"),
)


@dataclass(frozen=True)
class Measured:
    """How many times as fast the mean step became.

    Attributes:
        speedup: that ratio.
        least, most: its interval by the noise of the difference, twice the ratio where that is unknown; `most` is None
            where the step may take no time at all.
    """

    speedup: float
    least: float
    most: float | None


def compare_predicted(before: Side, after: Side, came: Measured | None) -> tuple[dict[str, Cell], ...]:
    """The advice on the session before, with what came of it, None if that is unknown; see FIELDS."""
    left = {advice.kind for advice in after.overview.advice}
    given = [advice for advice in before.overview.advice if advice.kind != "none"]
    is_alone = sum(advice.kind not in left for advice in given) == 1
    rows: list[dict[str, Cell]] = []
    for advice in given:
        is_gone, (least, most) = advice.kind not in left, advice.speedup_range or (None, None)
        measured = came if is_gone else None
        proved = (advice.measured and advice.measured.speedup) or (None, None, None)
        row: dict[str, Cell] = {
            "class": advice.kind,
            "title": advice.title,
            "predicted_speedup": advice.predicted_speedup,
            "predicted_speedup_least": least,
            "predicted_speedup_most": most,
            "proved_speedup": proved[0],
            "proved_speedup_least": proved[1],
            "proved_speedup_most": proved[2],
            "is_gone": is_gone,
            "measured_speedup": None if measured is None else measured.speedup,
            "measured_speedup_least": None if measured is None else measured.least,
            "measured_speedup_most": None if measured is None else measured.most,
        }  # fmt: skip
        is_known = is_alone and measured is not None and least is not None
        rows.append({**row, "is_inside": not _beyond(row) if is_known else None})
    return tuple(rows)


def _beyond(row: Mapping[str, Cell]) -> str:
    """What all of the measured interval is, compared with the predicted range; empty where they meet."""
    least, most = row["predicted_speedup_least"], row["predicted_speedup_most"]
    if None not in (least, row["measured_speedup_most"]) and amount(row["measured_speedup_most"]) < amount(least):
        return "less"
    return "more" if most is not None and amount(row["measured_speedup_least"]) > amount(most) else ""


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
    """What came, and whether it is another gain than predicted."""
    measured, least, most = (row[f"measured_speedup{end}"] for end in ("", "_least", "_most"))
    between = "" if least == most else f" ({least:.2f} or more)" if most is None else f" ({least:.2f} to {most:.2f})"
    beyond = _beyond(row)
    return f"measured {measured:.2f}x{between}" + (f", {beyond} than predicted" if beyond else "")


def _describe_proof(row: Mapping[str, Cell]) -> str:
    if row["proved_speedup"] is None:
        return ""
    return (
        f", proved {row['proved_speedup']:.2f}x ({row['proved_speedup_least']:.2f} to {row['proved_speedup_most']:.2f})"
    )


def _describe_lack(row: Mapping[str, Cell]) -> str:
    return "the gain is unknown" if row["is_gone"] else "its cause is still there"
