"""What runs at each moment, by samples that are further apart than steps are long."""

from __future__ import annotations

from draw import MS, K

from stepscope.analysis.account.functions import functions_of_loop
from stepscope.formats.spool.layout import SAMPLE_TIMES_PLANE
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder
from stepscope.model.builder import LineBuilder
from stepscope.vocabulary.python import place_of

STEPS = 12
MAIN, MAKE, REPORT = "$train.py:1 main", "$train.py:9 make", "$train.py:20 report"


def add_lines(builder: TraceBuilder) -> tuple[LineBuilder, LineBuilder, LineBuilder]:
    """A thread, the samples of its stack, and when these were taken."""
    thread = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python", 7, kind=LineKind.THREAD)
    plane = builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    times = builder.line(builder.plane(SAMPLE_TIMES_PLANE, PlaneKind.CUSTOM_DEVICE), "samples")
    return thread, builder.line(plane, "MainThread", 7), times


def sampled(interval_ms: int, offset_ms: int = 0) -> HostTrace:
    """Steps of 20 ms on one thread, whose stack is sampled at an interval:

    make      mmmmmmmmmmmm                 0 to 12 ms
    ops                   ooo  ooo        12 to 14, 15 to 17 ms
    report                        rrr     17 to 20 ms
    """
    builder = TraceBuilder("host")
    thread, frames, times = add_lines(builder)
    for step in range(STEPS):
        start = 20 * step * MS
        thread.event("train", start, 20 * MS, K.STEP_MARK, {"step_num": step})
        thread.event("aten::mm", start + 12 * MS, 2 * MS, K.OP)
        thread.event("aten::add", start + 15 * MS, 2 * MS, K.OP)
    frames.event(MAIN, 0, 20 * STEPS * MS, K.PYTHON_CALL)
    for at in range(offset_ms, 20 * STEPS, interval_ms):
        times.event("sample", at * MS, 0, K.OTHER)
        place = at % 20
        name = MAKE if place < 12 else REPORT if place >= 17 else ""
        if name:
            frames.event(name, at * MS - interval_ms * MS // 2, interval_ms * MS, K.PYTHON_CALL)
    return builder.build()


def time_per_step(trace: HostTrace) -> dict[str, float]:
    found = {place_of(trace.name_of(each.frame))[0]: each.spans for each in functions_of_loop(trace)}
    return {name: round(spans.total / MS / STEPS, 1) for name, spans in found.items()}


def test_a_function_lasts_to_the_ops_beside_it_though_no_sample_fell_there():
    assert time_per_step(sampled(23))["make"] == 12.0


def test_a_gap_without_a_sample_is_what_samples_show_at_the_same_place_of_other_steps():
    found = time_per_step(sampled(13, offset_ms=5))
    assert found["make"] == 12.0
    assert found["report"] == 3.0


def test_what_no_sample_tells_is_half_of_each_neighbour_but_not_beyond_its_range():
    """Of 10 ms a step, the first 4 are sampled and 6 never; a range of the program begins at 4 ms, or an op does."""

    def time_of_make(kind: EventKind) -> float:
        builder = TraceBuilder("host")
        thread, frames, times = add_lines(builder)
        for step in range(STEPS):
            start = 10 * step * MS
            thread.event("train", start, 10 * MS, K.STEP_MARK, {"step_num": step})
            thread.event("forward", start + 4 * MS, 2 * MS if kind == K.OP else 6 * MS, kind)
            times.event("sample", start + 2 * MS, 0, K.OTHER)
        frames.event(MAKE, 0, 10 * STEPS * MS, K.PYTHON_CALL)
        return time_per_step(builder.build())["make"]

    assert time_of_make(K.ANNOTATION) == 4.0
    # Half of the six up to the next step, which is a range as well; after the last one nothing follows.
    assert time_of_make(K.OP) == round((7 * (STEPS - 1) + 10) / STEPS, 1)
