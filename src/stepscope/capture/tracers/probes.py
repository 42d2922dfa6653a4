"""Stepscope's own tracers that record together: those of a capture, or those of a watch."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.report import report
from stepscope.capture.tracers.base import Clock, Probe
from stepscope.formats.spool.layout import Chunk


class Probes:
    """A group of tracers.  One that fails while it records is reported, and does not affect the others."""

    def __init__(self) -> None:
        self._probes: list[Probe] = []
        self._broken: list[Probe] = []

    def start(self, probe: Probe, options: ProfilerOptions, clock: Clock) -> None:
        """Starts one more tracer.  Raises what that raises if it cannot."""
        probe.start(options, clock)
        self._probes.append(probe)

    def waiting_bytes(self) -> int:
        """Roughly how much memory the next `drain` frees."""
        return sum(probe.waiting_bytes() for probe in self._probes)

    def drain(self, take: Callable[[list[Chunk]], object]) -> None:
        """Hands over what each has recorded since the last call.  One that fails, or whose chunks fail, is not asked
        again."""
        for probe in self._probes:
            if probe in self._broken:
                continue
            try:
                take(probe.drain())
            except Exception as error:
                self._broken.append(probe)
                report(error, f"flushing {type(probe).__name__}")

    def cost_ms(self) -> float:
        """What recording has added to the thread that it cost most, as far as the tracers know."""
        return max((probe.cost_ms for probe in self._probes), default=0.0)

    def stop(self) -> None:
        """Ends the recording quickly, because the training waits; `drain` still works."""
        for probe in self._probes:
            try:
                probe.stop()
            except Exception as error:
                report(error, f"ending {type(probe).__name__}")

    def abandon(self) -> None:
        """In a forked child: removes hooks, and changes nothing else."""
        for probe in self._probes:
            probe.abandon()
