"""A drawn thread whose stack was sampled, with the line that runs in each sample."""

from __future__ import annotations

from typing import NamedTuple

from stepscope.formats.spool.layout import SAMPLE_TIMES_PLANE, STATEMENTS_PLANE
from stepscope.model import LineBuilder, LineKind, PlaneKind, TraceBuilder


class SampledThread(NamedTuple):
    """The lines of a thread: its events, its functions and its statements by samples, and when these were taken."""

    events: LineBuilder
    functions: LineBuilder
    statements: LineBuilder
    times: LineBuilder


def sampled_thread(builder: TraceBuilder) -> SampledThread:
    """A main thread that is sampled."""

    def samples(plane: str, name: str, thread: int = 7) -> LineBuilder:
        return builder.line(builder.plane(plane, PlaneKind.CUSTOM_DEVICE), name, thread)

    return SampledThread(
        builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python", 7, kind=LineKind.THREAD),
        samples("/device:CUSTOM:Python stack samples (Stepscope)", "MainThread"),
        samples(STATEMENTS_PLANE, "MainThread"),
        samples(SAMPLE_TIMES_PLANE, "samples"),
    )
