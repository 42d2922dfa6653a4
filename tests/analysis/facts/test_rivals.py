"""A thread of the program that never waits, while the loop's thread does."""

from __future__ import annotations

from dataclasses import replace

from draw import MS, K
from reporting import context_of

from stepscope.analysis.advice import advise
from stepscope.analysis.facts.rivals import Rival, rival_of
from stepscope.formats.spool.layout import QUEUED_NS, RAN_NS, USAGE_PLANE
from stepscope.model import HostTrace, PlaneKind, TraceBuilder

SAMPLES = "/device:CUSTOM:Python stack samples (Stepscope)"
STEPS, LENGTH = 6, 20  # ms of a step: an op of 4, then Python
MAIN, WATCHER = 7, 9


def two_threads(watcher_runs: int, number_of_main: int = MAIN) -> HostTrace:
    """Steps of 20 ms of which the loop's thread runs 8 and waits 12 for a core, beside a thread that runs so many."""
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python", number_of_main)
    usage = builder.plane(USAGE_PLANE, PlaneKind.CUSTOM_DEVICE)
    samples = builder.plane(SAMPLES, PlaneKind.CUSTOM_DEVICE)
    threads = (
        ("MainThread", MAIN, "$train.py:1 update", 8, 12),
        ("Thread-1 (watch)", WATCHER, "$train.py:12 watch", watcher_runs, 0),
    )
    for step in range(STEPS):
        main.event("train", step * LENGTH * MS, LENGTH * MS, K.STEP_MARK, {"step_num": step})
        main.event("aten::mm", step * LENGTH * MS, 4 * MS, K.OP)
    for name, number, function, ran, queued in threads:
        used, seen = builder.line(usage, name, number), builder.line(samples, name, number)
        for step in range(STEPS):
            stats = {RAN_NS: ran * 1_000_000, QUEUED_NS: queued * 1_000_000}
            used.event("usage", step * LENGTH * MS, LENGTH * MS, K.OTHER, stats)
            seen.event(function, step * LENGTH * MS, LENGTH * MS, K.PYTHON_CALL)
    return replace(builder.build(), framework="pytorch")


def test_a_thread_that_runs_all_the_time_is_named_with_its_function() -> None:
    rival = rival_of(two_threads(20))

    assert rival == Rival("Thread-1 (watch)", "watch", "train.py", 12, 1.0, 12 * MS)


def test_one_that_waits_is_none_and_so_is_the_thread_of_the_loop() -> None:
    assert rival_of(two_threads(5)) is None
    assert rival_of(two_threads(5, number_of_main=3)) is None  # a profiler that numbers threads in its own way


def test_the_advice_names_the_line_and_what_to_do() -> None:
    items = advise(context_of(two_threads(20))).items
    first = next(item for item in items if item.id == "python.rival")

    assert first.culprit is not None
    assert first.culprit.place == ("watch", "train.py", 12)
    assert first.evidence.endswith("while the thread Thread-1 (watch) runs watch for 100 % of the time")
    assert first.gain_percent is None  # other programs may take a part of it
