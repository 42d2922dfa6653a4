"""Watches a training job all the time, and keeps a capture when something happens.

    stepscope.watch("logs")

- options: what is kept, when, and how much it may cost
- ring, sampler, collector: the tracers that are always on, and what they keep of the last seconds
- steps, baseline: the steps of the loop, and which of them are slow
- triggers: what else is a trigger, and what is noticed of each
- rank_coordination: all ranks keep the same window
- windows: the framework's profiler in short windows
- budget: what the watch takes, and may take
- keep, quota: sessions on disk
- series, metrics: figures over time
- continuous: all of it together
- process: the one watch of this process
"""

from stepscope.capture.watching.process import current, observe, trigger, watch

__all__ = ["current", "observe", "trigger", "watch"]
