"""Records profiles of a running program.

    with stepscope.Profile("logs"):
        for i in range(10):
            with stepscope.step(i):
                train()

Importing this is cheap: it imports no framework and no analysis library.  A framework is used only if the program has
imported it itself.
"""

from __future__ import annotations

from stepscope.capture import client, server
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.profile import Profile, Profiler, warmup
from stepscope.capture.recorder import start, stop
from stepscope.capture.report import last_error
from stepscope.capture.schedules import schedule
from stepscope.capture.tracers.ranges import Trace, annotate, step

__all__ = [
    "Profile",
    "Profiler",
    "ProfilerOptions",
    "Trace",
    "annotate",
    "client",
    "last_error",
    "schedule",
    "server",
    "start",
    "step",
    "stop",
    "warmup",
]
