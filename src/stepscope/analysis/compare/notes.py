"""Finds other differences between two sessions, which may explain a changed step time as well as the change does."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.compare.sides import Side
from stepscope.report import Cell
from stepscope.vocabulary.computing_ops import multiplies

_FAR_PERCENT = 5.0  # of the step time: profiling costs that differ by more are worth a note
_OTHER_MODEL = 0.25  # of the names of ops are shared: below it the models differ
_PERHAPS_OTHER_MODEL = 0.6  # below it they may
_FEW_OPS = 5  # too few names to say anything
_OTHER_BATCH = "the model or the batch size differs"
_OTHER_SHAPES = 0.5  # of the ops on both sides have other input shapes: another model or batch size
_NO_NUMBERS = str.maketrans("", "", "0123456789_")
_SURROUNDINGS: dict[str, str] = {
    "framework": "framework",
    "device_type": "device",
    "host_count": "number of hosts",
    "devices_used": "number of devices that computed",
}


def find_notes(before: Side, after: Side, mismatches: Sequence[str] = ()) -> tuple[str, ...]:
    """What else than the mismatches makes two sessions hard to compare, one sentence each."""
    found = [
        *_same_session(before, after),
        *_other_batches(before, after),
        *_other_surroundings(before, after),
        *_other_steps(before, after),
        *_work_outside_steps(before, after),
        *_other_cost(before, after),
        *([] if any(text.startswith(_OTHER_BATCH) for text in mismatches) else _other_shapes(before, after)),
    ]
    return tuple(text for text in found if text not in mismatches)


def find_mismatches(before: Side, after: Side) -> tuple[str, ...]:
    """Why two sessions are not of the same job, one sentence each: another framework, device or model.

    A regression may change which ops run, so only sessions that share few names of ops count as other models.
    """
    reasons = _other_surroundings(before, after, only_known=True)
    shared, changed = _changed_shapes(before, after)
    if len(shared) >= _FEW_OPS and len(changed) > _OTHER_SHAPES * len(shared):
        reasons.append(
            f"{_OTHER_BATCH}: {len(changed)} of {len(shared)} ops have other input shapes, first {changed[0]}"
        )
    share = _shared_names(before, after)
    if share is not None and share < _OTHER_MODEL:
        reasons.append(f"the model, or how it is compiled, differs: {100 * share:.0f} % of op names are the same")
    return tuple(reasons)


def find_doubts(before: Side, after: Side) -> tuple[str, ...]:
    """Why two sessions may be of different models, as a sentence."""
    share = _shared_names(before, after)
    if share is None or not _OTHER_MODEL <= share < _PERHAPS_OTHER_MODEL:
        return ()
    return (f"the model may differ: only {100 * share:.0f} % of the names of ops are the same",)


def _shared_names(before: Side, after: Side) -> float | None:
    """The share of the names of ops, without their numbers, that both sides have; None if one has few names."""
    one, other = _op_names(before), _op_names(after)
    fewer = min(len(one), len(other))
    return len(one & other) / fewer if fewer >= _FEW_OPS else None


def _op_names(side: Side) -> set[tuple[Cell, str]]:
    rows = side.reports["op-stats"].rows  # type: ignore[attr-defined]
    return {(where, name.translate(_NO_NUMBERS)) for where, name in {(row["side"], str(row["name"])) for row in rows}}


def _same_session(before: Side, after: Side) -> list[str]:
    same = (before.path, before.run) == (after.path, after.run)
    return [f"both sides are the session {before.run}"] if same else []


def _other_batches(before: Side, after: Side) -> list[str]:
    if before.divisor == after.divisor:
        return []
    return [f"a step is {before.divisor} batches before and {after.divisor} after: step times are compared per batch"]


def _other_surroundings(before: Side, after: Side, only_known: bool = False) -> list[str]:
    """What the sessions ran on that is not the same, one sentence each."""
    one, other = before.overview.environment, after.overview.environment
    return [
        f"the {what} differs: {_value_text(one[key])} before, {_value_text(other[key])} after"
        for key, what in _SURROUNDINGS.items()
        if one[key] != other[key] and (not only_known or (one[key] and other[key]))
    ]


def _value_text(value: Cell) -> str:
    return "unknown" if value is None or value == "" else str(value)


def _other_steps(before: Side, after: Side) -> list[str]:
    one, other = before.overview, after.overview
    notes = []
    if one.steps_source != other.steps_source:
        notes.append(f"steps were found in different ways: before, {one.steps_how}; after, {other.steps_how}")
    if not (before.step_count and after.step_count):
        who = "one side has" if before.step_count or after.step_count else "both sides have"
        notes.append(f"{who} no steps, so totals are those of the captures, and a longer capture has more")
    return notes


def _work_outside_steps(before: Side, after: Side) -> list[str]:
    """Says that totals per step leave out what ran outside of the steps."""
    if not (before.step_count and after.step_count):
        return []
    return [
        f"{' and '.join(f'{share:.1f} % of the {where} op time' for where, share in shares.items())} {when} ran "
        "outside of the steps and is not in the per-step totals"
        for when, side in (("before", before), ("after", after))
        if side.within_steps and (shares := side.outside_percent)
    ]


def _other_cost(before: Side, after: Side) -> list[str]:
    one, other = before.overview.profiling, after.overview.profiling
    if one is None or other is None or abs(max(one.percent, 0.0) - max(other.percent, 0.0)) < _FAR_PERCENT:
        return []  # profiling makes no step shorter: what does is something else
    if not (one.is_clear or other.is_clear):
        return []
    return [f"the recordings cost differently: before, {one.short_text()}; after, {other.short_text()}"]


def _other_shapes(before: Side, after: Side) -> list[str]:
    one, other = _shapes(before), _shapes(after)
    if not one or not other:
        where = "on either side" if not one and not other else "before" if not one else "after"
        return [f"input shapes were not recorded {where}, so the batch sizes may differ"]
    shared, changed = _changed_shapes(before, after)
    telling = [name for name in changed if multiplies(name)]  # others change with the input's preparation alone
    if not telling:
        return []
    return [
        f"{len(changed)} of {len(shared)} ops on both sides have other input shapes, first {telling[0]}: with another "
        "batch size or model, a step is not the same work"
    ]


def _changed_shapes(before: Side, after: Side) -> tuple[list[str], list[str]]:
    """The ops with input shapes on both sides, and those of them whose shapes differ."""
    one, other = _shapes(before), _shapes(after)
    shared = [name for name in one if name in other]
    # If an op is only called more or less often, it adds or loses shapes.  Another batch size replaces them.
    return shared, [name for name in shared if one[name] - other[name] and other[name] - one[name]]


def _shapes(side: Side) -> dict[str, set[str]]:
    """The shapes that each op takes, where they are recorded; ops with most time first."""
    shapes: dict[str, set[str]] = {}
    for row in side.reports["op-shapes"].rows:  # type: ignore[attr-defined]
        if row["input_shapes"]:
            shapes.setdefault(str(row["name"]), set()).add(str(row["input_shapes"]))
    return shapes
