"""What the advice on the session before predicted, beside what was measured."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from reporting import table

from stepscope.analysis.advice.items import Advice
from stepscope.analysis.compare.predicted import Measured, compare_predicted, predicted_lines
from stepscope.proof.record import ABLATION, Proof


def side(*kinds: str) -> Any:
    """A session whose advice is of these classes; each predicts 10 ms down to 5, at least 4 and at most 8."""
    items = [
        Advice(
            id=kind, kind=kind, title=f"Mend {kind}", evidence="", predicted_speedup=2.0, actions=(), tool="overview",
            step_time_ms=10.0, predicted_step_time_ms=5.0, least_step_time_ms=4.0, most_step_time_ms=8.0,
        )
        for kind in kinds
    ]  # fmt: skip
    return SimpleNamespace(overview=SimpleNamespace(advice=tuple(items)))


def came(speedup: float) -> Measured:
    """So many times as fast, without noise."""
    return Measured(speedup, speedup, speedup)


WHAT_CAME = ("class", "is_gone", "measured_speedup", "is_inside")


def test_a_cause_that_is_gone_tests_the_prediction() -> None:
    found = compare_predicted(side("host_sync"), side("none"), came(1.9))

    assert table(found, *WHAT_CAME) == [("host_sync", True, 1.9, True)]
    assert list(predicted_lines(found)) == ["Mend host_sync: predicted 2.00x (1.25 to 2.50), measured 1.90x"]
    assert table(compare_predicted(side("host_sync"), side("none"), came(3.1)), *WHAT_CAME)[0][-1] is False


def test_a_gain_whose_noise_reaches_the_prediction_is_no_other_one() -> None:
    near, far = (compare_predicted(side("host_sync"), side("none"), Measured(1.2, 1.0, most)) for most in (1.3, 1.22))

    assert list(predicted_lines(near)) == [
        "Mend host_sync: predicted 2.00x (1.25 to 2.50), measured 1.20x (1.00 to 1.30)"
    ]
    assert list(predicted_lines(far)) == [
        "Mend host_sync: predicted 2.00x (1.25 to 2.50), measured 1.20x (1.00 to 1.22), less than predicted"
    ]
    assert [row["is_inside"] for row in (*near, *far)] == [True, False]


def test_a_cause_that_is_still_there_tests_nothing() -> None:
    found = compare_predicted(side("host_sync", "input_python"), side("host_sync"), came(1.3))

    assert table(found, *WHAT_CAME) == [("host_sync", False, None, None), ("input_python", True, 1.3, True)]
    assert list(predicted_lines(found)) == [
        "Mend host_sync: predicted 2.00x (1.25 to 2.50), its cause is still there",
        "Mend input_python: predicted 2.00x (1.25 to 2.50), measured 1.30x",
    ]


def test_a_proof_stands_between_what_was_predicted_and_what_came() -> None:
    proof = Proof("train.py", ABLATION, "sync", step_ms=10.0, changed_ms=5.4, value=1.85, least=1.8, most=1.9)
    before = side("host_sync")
    proved = (replace(before.overview.advice[0], measured=proof),)
    found = compare_predicted(SimpleNamespace(overview=SimpleNamespace(advice=proved)), side("none"), came(1.9))

    assert table(found, "proved_speedup", "proved_speedup_least", "proved_speedup_most") == [(1.85, 1.8, 1.9)]
    [line] = predicted_lines(found)
    assert line == "Mend host_sync: predicted 2.00x (1.25 to 2.50), proved 1.85x (1.80 to 1.90), measured 1.90x"


def test_what_several_changes_gained_together_is_no_test_of_one() -> None:
    found = compare_predicted(side("host_sync", "input_python"), side("none"), came(3.0))

    assert table(found, "is_gone", "measured_speedup", "is_inside") == [(True, 3.0, None)] * 2


def test_without_advice_or_without_steps_there_is_nothing_to_test() -> None:
    assert compare_predicted(side("none"), side("host_sync"), came(1.0)) == ()
    [line] = predicted_lines(compare_predicted(side("host_sync"), side("none"), None))
    assert line == "Mend host_sync: predicted 2.00x (1.25 to 2.50), the gain is unknown"
