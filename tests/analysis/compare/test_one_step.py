"""One step above the median of the others.  Traces are pictures; every expectation is counted in them by hand."""

from __future__ import annotations

import pytest
from draw import MS, Sort, draw

from stepscope.analysis.compare.one_step import StepBesideMedian, compare_with_median
from stepscope.errors import UsageError
from stepscope.model import EventKind as K
from stepscope.model import PlaneKind, TraceBuilder

STALLED = draw(
    """
    host main | M0------M1------M2--------------M3------
    host main | I-a-----I-a-----I-c-------a-----I-a-----
    """,
    {"c": Sort(K.PYTHON_CALL, "train.py(29): tidy")},
)


def differences(found: StepBesideMedian) -> list[tuple[object, ...]]:
    return [(row["cause"], row["name"], row["place"], row["difference_ms"]) for row in found.rows]


def test_what_a_long_step_does_beyond_the_median_one_is_named_with_its_line():
    found = compare_with_median(STALLED, 2)

    assert found.sentence == (
        "Step 2 is 8.00 ms longer than step 1, the median of the others: Python in the loop in `train.py:29 tidy` "
        "is 8.00 ms longer"
    )
    assert differences(found) == [("python", "tidy", "train.py:29", 8.0)]


def test_samples_of_the_long_step_itself_tell_what_it_does():
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "thread 7 (python)", 7)
    samples = builder.line(
        builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE), "MainThread", 7
    )
    for number, (start, length) in enumerate([(0, 100), (100, 100), (200, 190), (390, 100)]):
        main.event("train", start * MS, length * MS, K.STEP_MARK, {"step_num": number})
    for name, start, length in [("load", 0, 200), ("save", 200, 190), ("load", 390, 100)]:
        samples.event(f"$train.py:5 {name}", start * MS, length * MS, K.PYTHON_CALL)

    found = compare_with_median(builder.build(), 2)

    assert found.reason == "Python in the loop in `train.py:5 save` is 90.00 ms longer"
    assert found.cause == "python train.py:5 save"


def test_both_steps_stand_in_the_order_of_time():
    found = compare_with_median(STALLED, 2)

    assert found.step.moments == (("input", 2.0), ("python", 8.0), ("host_compute", 6.0))
    assert found.median.moments == (("input", 2.0), ("host_compute", 6.0))


def test_equal_steps_differ_in_nothing():
    found = compare_with_median(STALLED, 0)

    assert found.sentence == "Step 0 is as long as step 3, the median of the others"
    assert differences(found) == []


def test_a_step_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="no step 7"):
        compare_with_median(STALLED, 7)
