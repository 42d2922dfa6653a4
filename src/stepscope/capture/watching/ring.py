"""The tracers that are always on, and the file on disk that keeps what they recorded last."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from stepscope.capture import files, report
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.running import read_two_clocks
from stepscope.capture.spool import RingSpool
from stepscope.capture.tracers import ranges
from stepscope.capture.tracers.base import Metadata, Probe, Span
from stepscope.capture.tracers.host import PLANE as ANNOTATIONS
from stepscope.capture.tracers.host import Event, HostTracer
from stepscope.capture.tracers.probes import Probes
from stepscope.capture.tracers.system import PLANE as COUNTERS
from stepscope.capture.tracers.system import VALUE, SystemTracer
from stepscope.capture.tracers.thread_usage import Reading, make_usage_chunk
from stepscope.capture.tracers.ticker import Ticker
from stepscope.capture.watching.budget import WatchBudget
from stepscope.capture.watching.options import WatchOptions
from stepscope.capture.watching.sampler import RingSampler
from stepscope.capture.watching.steps import StepFollower
from stepscope.formats.spool import layout

FLUSH_S = 1.0  # what a killed job loses at most, with some time to write
_SYSTEM_MS = 1000
_SELDOM_SYSTEM_S = 5.0  # where the watch has spent more than its budget


class Ring:
    """Annotations, Python samples, system counters and step marks of the last seconds.

    Args:
        options: of the watch.
        target: the place of the ring's file.
        steps: the steps of the loop.
        on_counters: called with the values of the system's counters, now and then.
        on_flush: called before each flush.
        budget: of the watch.

    Raises:
        CaptureError: the file cannot be made.
    """

    def __init__(
        self,
        options: WatchOptions,
        target: files.Target,
        steps: StepFollower,
        on_counters: Callable[[dict[str, list[float]]], None],
        on_flush: Callable[[], None],
        budget: WatchBudget,
    ) -> None:
        self._on_flush = on_flush
        self._budget = budget
        self._thread = 0
        self._append: Callable[[Event], None] | None = None
        self._on_counters = on_counters
        self._host = HostTracer()
        self._sampler = RingSampler(steps, options.samples_hz, budget)
        self._system = _SeldomSystem(budget)
        self._samples = options.samples_hz > 0
        self._probes = Probes()
        self._usage: list[Reading] = []  # of the thread of the steps, since the last flush
        self._usage_thread = 0
        self._lost_flushes = 0
        self._thinner = Thinner(self._host.annotate)
        self._lock = threading.Lock()
        self._span_ns = round(options.ring * 1e9)
        clock_ns, unix_ns = read_two_clocks()
        header = layout.session(target.name, "", clock_ns, unix_ns)
        with files.translate_write_errors(target.folder, "the job goes on without a watch; choose another logdir"):
            self._spool = RingSpool(target.partial, header, self._span_ns, round(options.ring_bytes))
        self._flusher = Ticker("ring-flush", FLUSH_S, self._flush_and_measure)

    def start(self) -> None:
        """Starts the tracers."""
        options = ProfilerOptions(system_interval_ms=_SYSTEM_MS)
        wanted: list[Probe] = [self._host, self._system, *([self._sampler] if self._samples else [])]
        for probe in wanted:
            with report.NeverRaise(f"watching with {type(probe).__name__}", strict=False):
                self._probes.start(probe, options, time.perf_counter_ns)
        self._flusher.start()
        ranges.route_ring(self._thinner.annotate)

    def adopt_thread(self) -> None:
        """Makes the calling thread the one that `mark_steps` records steps for."""
        if self._thread != threading.get_ident():
            self._thread = threading.get_ident()
            self._append = getattr(self._host._local, "append", None) or self._host.make_append()

    def mark_steps(self, steps: Iterable[tuple[int, int, int]]) -> None:
        """Records steps that the program does not mark itself: number, start and end of each; on any thread."""
        append = self._append
        if append is not None:
            for number, start_ns, end_ns in steps:
                append(("train", start_ns, end_ns, {"step_num": number, "_r": 1, "_found": 1}))

    def note_usage(self, thread: int, readings: Iterable[Reading]) -> None:
        """Records what the thread of the steps had used when some of them started and ended; on any thread."""
        if thread != self._usage_thread:
            self._usage_thread, self._usage = thread, []
        self._usage += readings

    def flush(self) -> None:
        """Writes what was recorded until now."""
        self._on_flush()
        with self._lock:
            chunks: list[layout.Chunk] = []
            self._probes.drain(lambda drained: chunks.extend(self._look_at(drained)))
            used, self._usage = make_usage_chunk("steps", self._usage_thread, self._usage), self._usage[-1:]
            chunks += [] if used is None else [used]
            try:
                self._spool.add(chunks)
            except Exception as error:  # what the disk does is no exception here; a tracer's events are odd
                self._lost_flushes += 1
                if self._lost_flushes == 1:
                    report.report(error, "writing the ring of the watch")

    def content(self) -> bytes:
        """What the ring keeps, flushed to this moment."""
        self.flush()
        return self._spool.content()

    def notes(self) -> list[str]:
        """What the reader of the ring has to know."""
        notes, left_out_s = [], self._thinner.left_out_s(time.perf_counter_ns(), self._span_ns)
        if lost := self._spool.lost_events:
            notes.append(f"{lost:,} events of the ring were lost because they could not be written")
        if left_out_s >= 1:
            notes.append(f"annotations were left out for {left_out_s:.0f} s of the ring to keep the watch's"
                         " budget, budget_percent")  # fmt: skip
        return notes

    def stop(self) -> None:
        """Ends the tracers, and removes the file."""
        self._flusher.stop()  # it may route annotations
        ranges.route_ring(None)
        self._probes.stop()
        self._spool.remove()

    def abandon(self) -> None:
        """In a forked child: everything belongs to the parent."""
        self._probes.abandon()
        self._spool.abandon()

    def _flush_and_measure(self) -> None:
        self.flush()
        self._budget.note_thread("ring")
        if self._thinner.decide(self._budget.records_left, time.perf_counter_ns()):
            ranges.route_ring(self._thinner.annotate)

    def _look_at(self, chunks: list[layout.Chunk]) -> list[layout.Chunk]:
        """Notes what the watch wants to know of the chunks of one tracer."""
        self._note_counters([chunk for chunk in chunks if chunk.plane == COUNTERS])
        self._budget.note_spans(sum(len(chunk.name) for chunk in chunks if chunk.plane == ANNOTATIONS))
        return chunks

    def _note_counters(self, chunks: list[layout.Chunk]) -> None:
        values: dict[str, list[float]] = {}
        for chunk in chunks:
            for row, stats in chunk.stats.items():
                name, value = chunk.names[chunk.name[row]], stats[VALUE]
                if isinstance(value, int | float):
                    values.setdefault(name, []).append(float(value))
        if values:
            self._on_counters(values)


class _SeldomSystem(SystemTracer):
    """Samples the machine, and less often where the watch has spent more than its budget."""

    def __init__(self, budget: WatchBudget) -> None:
        super().__init__()
        self._budget = budget

    def _tick(self) -> float:
        wait_s = super()._tick()
        self._budget.note_thread("system")
        return max(wait_s, min(self._budget.debt_s, _SELDOM_SYSTEM_S))


_MOST_GAPS = 1000
_ENOUGH, _TOO_LITTLE = 0.0, -0.5  # of what annotations can save up of the budget


class Thinner:
    """Leaves the program's annotations out of the ring for a while where they are so many that the watch would exceed
    its budget.  Marks of steps are always recorded.

    Args:
        annotate: opens a range of the ring.

    Attributes:
        annotate: opens ranges, or leaves out those that mark no step.
    """

    def __init__(self, annotate: ranges.Opener) -> None:
        self._all = self.annotate = annotate
        self._since_ns = 0
        self._left_out: deque[tuple[int, int]] = deque(maxlen=_MOST_GAPS)

    def decide(self, left: float, now_ns: int) -> bool:
        """Whether annotations are recorded changes.

        Args:
            left: of the budget for records, as a part of what can be saved up.
        """
        if self._since_ns and left >= _ENOUGH:
            self._left_out.append((self._since_ns, now_ns))
            self._since_ns, self.annotate = 0, self._all
            return True
        if not self._since_ns and left <= _TOO_LITTLE:
            self._since_ns, self.annotate = now_ns, self._annotate_steps
            return True
        return False

    def left_out_s(self, now_ns: int, span_ns: int) -> float:
        """For how many of the last seconds annotations were left out."""
        gaps = [*self._left_out, *([(self._since_ns, now_ns)] if self._since_ns else [])]
        return sum(max(end - max(start, now_ns - span_ns), 0) for start, end in gaps) / 1e9

    def _annotate_steps(self, name: str, metadata: Metadata) -> Span:
        return self._all(name, metadata) if "step_num" in metadata else ranges.NOTHING
