"""Watches a training job all the time, and keeps a capture when something happens.

    stepscope.watch("logs")

- options: what is kept, when, and how much it may cost
- ring, sampler, collector: the tracers that are always on, and what they keep of the last seconds
- steps, usual: the steps of the loop, and which of them are slow
- places, cause: why a step was slow, in one sentence
- stacks, memory, spikes, timetable: the other triggers
- together: all ranks keep the same window
- windows: the framework's profiler in short windows
- budget, thinner: what the watch takes, and what it does less often or leaves out to keep to that
- keep, quota: sessions on disk
- series, pack, metrics: figures over time
- continuous: all of it together
- process: the one watch of this process
"""

from stepscope.capture.watching.process import current, observe, trigger, watch

__all__ = ["current", "observe", "trigger", "watch"]
