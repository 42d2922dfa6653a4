"""Watches a training job all the time: a ring of the last seconds, and triggers that keep what it holds.

Five threads, all of them Stepscope's own, share the work.  The thread of the steps only measures and compares; the
sampler, the system's counters and the flushing of the ring have one each; and one decides about triggers.  Files are
written by a sixth, while one is needed, and converted in another process.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

from stepscope.capture import files, memory_use, places, recorder, report
from stepscope.capture.job import this_worker
from stepscope.capture.other_process import ConverterProcess
from stepscope.capture.out_of_memory import describe_request, is_out_of_memory
from stepscope.capture.own_threads import OwnThread, Recurring
from stepscope.capture.running import Capture
from stepscope.capture.scratch import ScratchFolder
from stepscope.capture.steps.step_loop import MARKED
from stepscope.capture.tracers.base import Artifact
from stepscope.capture.watching import keep, quota
from stepscope.capture.watching.baseline import Baseline
from stepscope.capture.watching.budget import WatchBudget
from stepscope.capture.watching.collector import CollectorMeter
from stepscope.capture.watching.options import WatchOptions
from stepscope.capture.watching.rank_coordination import Ranks, Request
from stepscope.capture.watching.ring import Ring
from stepscope.capture.watching.series import Bucket, RemoteSeries, SeriesFile
from stepscope.capture.watching.steps import CONTENDED, StepFollower, StepRecord
from stepscope.capture.watching.triggers import URGENT, Mark, Spikes, TimeTable, Trigger
from stepscope.capture.watching.windows import Plan, Windows
from stepscope.errors import CaptureError
from stepscope.formats.candidates import WATCH_MARKER
from stepscope.formats.series import series_folder, series_place
from stepscope.formats.store import is_remote

_LOOK_S, _SELDOM_LOOK_S = 1.0, 2.0  # the latter where the job waits for a core most of the time
_BEAT_S = 5.0
_ANSWER_S = 30.0
_AHEAD_S = 3.0  # all ranks have to read a request before the first step of its window
_SAME_CAUSE_S = 3600.0  # a cause that is known at once is kept once in this time
_MUCH_LONGER = 2.0
_JOINED_S = 10.0
_LEAST_BETWEEN_S = 1.0  # between two captures, whatever the trigger
_MOST_MARKS = 1000
_WAIT_FOR_FILES_S = 20.0
_MOST_QUEUED = 100

Work = Callable[[], object]


class Watch:
    """A running watch.  No method raises into the training code.

    Args:
        logdir: where captures and the time series go.
        options: what to keep, when, and how much that may cost.

    Attributes:
        marks: the last triggers, oldest first.
        budget: what the watch takes of the job, and may take.
        steps: the steps that are followed.
        run: the session of the ring.
        trigger_counts: how many triggers of each kind there were.
        observed: the last value of each name that the program has observed.
        metrics_port: where Prometheus' metrics are served; None if they are not.

    Raises:
        CaptureError: nothing can be written to the logdir.
    """

    def __init__(self, logdir: str, options: WatchOptions) -> None:
        self.options = options
        self.logdir = files.resolve_logdir(logdir)
        self._local = None if is_remote(self.logdir) else Path(self.logdir)
        self.marks: deque[Mark] = deque(maxlen=_MOST_MARKS)
        self.collector = CollectorMeter()
        usual = Baseline(options.slow_factor, round(options.slow_least * 1e9))
        self.windows = Windows(self.logdir, options.window_steps, self._queue_window_note)
        self.steps = StepFollower(
            usual, self._follow_step, _is_profiled, lambda: self.collector.total_ns, lambda: self.windows.is_free
        )
        self.budget = WatchBudget(
            options.budget_percent, lambda: self.steps.hook_ns + self.collector.hook_ns, lambda: self.steps.queued_ns
        )
        self.bucket = Bucket()
        self.target = files.open_target(logdir)
        self.run = self.target.folder.name if self.target.url is None else self.target.url.rpartition("/")[2]
        self.ring = Ring(options, self.target, self.steps, self.bucket.note_counters, self._take_steps, self.budget)
        self._spikes = Spikes()
        self._table = TimeTable(options.every, options.at, time.monotonic(), time.time())
        self._ranks = Ranks(self._local, this_worker(), time.time_ns()) if self._local else None
        self._remote_runs = quota.RemoteRuns(options.quota)
        self._series = self._open_series()
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._looking = Recurring(self._take_work, 0.0, "stepscope-watch")
        self._writer: OwnThread | None = None
        self._kept_at = -float("inf")
        self._kept_run = ""
        self._cannot_keep = False
        self._causes: dict[str, float] = {}
        self._slow_interval_s = options.min_interval  # between two kept slow steps
        self._longest_kept_ns = 0
        self._last_look_step = -1
        self._stalled = False
        self._asked: deque[tuple[float, Request]] = deque()
        self._next_row = time.monotonic() + options.series
        self._next_beat = self._last_window = time.monotonic()
        self._start_s = time.monotonic()
        self._ended = False
        self._crash = 0, ""  # the exception that was kept last: its id, and what it says
        self._writing_runs: set[str] = {self.run}
        self.trigger_counts: dict[str, int] = {}
        self.observed: dict[str, float] = {}
        self.metrics_port: int | None = None
        self._listens_to_cuda = False

    # -- what the program calls ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts watching."""
        self.collector.start()
        self.ring.start()
        if self._local is not None:
            with report.NeverRaise("preparing the watch", strict=False):
                quota.mark_run(self.target.folder, {"ring": True})
        if self._ranks is not None:
            with report.NeverRaise("preparing the watch of all ranks", strict=False):
                self._ranks.prepare()
        self._looking.start()

    def trigger(self, reason: str, kind: Trigger = Trigger.REQUESTED) -> None:
        """Keeps what the ring holds, and records a window of the framework's profiler; returns at once."""
        mark = self._mark(kind, str(reason))
        self._put(lambda: self._consider(mark))

    def trigger_by_signal(self, *_: object) -> None:
        """The same, because a signal asks for it; also as the signal's handler."""
        self.trigger("a signal asked for a capture", Trigger.SIGNAL)

    def observe(self, name: str, value: float) -> None:
        """Notes a value of the training, such as the loss; a spike of it is a trigger."""
        self.bucket.values[name] = self.observed[name] = value
        sentence = self._spikes.judge(name, value)
        if sentence:
            self.trigger(sentence, Trigger.SPIKE)

    def stop(self) -> None:
        """Ends the watch.  The ring's file is removed, and captures that are being written are waited for."""
        ended, self._ended = self._ended, True
        if not ended:
            self._finish()

    # -- what the process calls ----------------------------------------------------------------------------------------

    def crash(self, error: BaseException) -> None:
        """The program ends with an exception: the ring is kept, now.  Once for an exception."""
        sentence = f"{type(error).__name__}: {_first_line(error)}"
        found = id(error), sentence  # not noted in the exception: that is the program's
        if self._ended or self._crash == found:
            return
        kind = Trigger.OUT_OF_MEMORY if is_out_of_memory(error) else Trigger.CRASH
        if kind is Trigger.OUT_OF_MEMORY:
            asked = describe_request(error)
            sentence = f"{sentence}{f'; {asked}' if asked else ''}; in use: {_describe_memory()}"
        with report.NeverRaise("keeping the ring of the watch", strict=False):
            self._keep_now(self._mark(kind, sentence))
            self._crash = found

    def forget_parent(self) -> None:
        """After a fork: the watch belongs to the parent."""
        self._ended = True
        self.steps.forget_parent()
        self.ring.abandon()
        self.collector.stop()

    # -- on the thread of the steps ------------------------------------------------------------------------------------

    def _follow_step(self, step: StepRecord) -> None:
        self.ring.adopt_thread()
        self.windows.follow(step, self.steps.source is MARKED)
        if step.is_slow:
            self._put(lambda: self._on_slow_step(step))

    def _queue_window_note(self, plan: Plan, capture: Capture) -> None:
        self._put(lambda: self._note_window(plan, capture))

    def _put(self, work: Work) -> None:
        if not self._ended and self._work.qsize() < _MOST_QUEUED:
            self._work.put(work)
            self._looking.wake()

    # -- on other threads ----------------------------------------------------------------------------------------------

    def _take_steps(self) -> None:
        """Gives the steps since the last call to those who collect them."""
        self.collector.add_up()
        quick, full = self.steps.take()
        self.bucket.add(quick, full)
        read = [usage for step in full for usage in (step.start, step.end)]
        self.ring.note_usage(self.steps.thread_number, [(each.at_ns, each.cpu_ns, each.queued_ns) for each in read])
        if self.steps.source is not MARKED:
            ended = [*quick, *((step.number, step.start.at_ns, step.end.at_ns) for step in full)]
            self.ring.mark_steps(sorted(ended, key=itemgetter(2)))

    def _plan_window(self, plan: Plan) -> None:
        self._writing_runs.add(plan.run)
        self.windows.plan(plan)
        self.steps.look_closely()  # the window starts between two steps

    # -- on the thread of the watch ------------------------------------------------------------------------------------

    def _take_work(self) -> float | None:
        """Does what is to be done, then looks at the job; returns the seconds until it looks again."""
        while not self._work.empty():
            work = self._work.get()
            self.budget.note_thread("watch")
            if work is None:
                return None
            with report.NeverRaise("watching the job", strict=False):
                work()
        self.budget.note_thread("watch")
        with report.NeverRaise("watching the job", strict=False):
            self._look()
        return min(_LOOK_S / self.budget.job_part, _SELDOM_LOOK_S)

    def _look(self) -> None:
        now = time.monotonic()
        self._look_for_stall()
        if self._ranks is not None:
            for request in self._ranks.poll():
                self._join(request)
            if now >= self._next_beat:
                self._next_beat = now + _BEAT_S
                self._ranks.beat(self.steps.number, time.time())
        while self._asked and now - self._asked[0][0] > _ANSWER_S:
            self._report_silent(self._asked.popleft()[1])
        if self._table.is_due(now, time.time()):
            self._consider(self._mark(Trigger.TIME_TABLE, self._table.sentence))
        self._plan_regular_window(now)
        if self.options.series and now >= self._next_row:
            self._next_row = now + self.options.series
            self._write_row()
        self._prepare_memory()

    def _mark(self, trigger: Trigger, sentence: str) -> Mark:
        number = self.steps.number if self.steps.source is not None else None
        return Mark(trigger, sentence, time.time_ns(), number)

    # -- triggers ------------------------------------------------------------------------------------------------------

    def _on_slow_step(self, step: StepRecord) -> None:
        """A slow step is a trigger.  One that other programs' use of the processors has made slow says nothing of this
        job: it is counted in the series, and listed only if it is kept."""
        mark = Mark(Trigger.SLOW_STEP, step.describe(), time.time_ns(), step.number, cause=step.counted_cause)
        if step.length_ns > _MUCH_LONGER * self._longest_kept_ns:
            self._slow_interval_s = self.options.min_interval
        if mark.cause == CONTENDED and self.options.min_interval and self._why_not(mark):
            return
        if self._consider(mark) and not mark.cause:
            self._longest_kept_ns = max(self._longest_kept_ns, step.length_ns)

    def _look_for_stall(self) -> None:
        stall_s = self.options.stall
        since = self.steps.open_since_ns or self.steps.last_end_ns
        if not stall_s or not since or self.steps.count == 0:
            return
        silent_s = (time.perf_counter_ns() - since) / 1e9
        if self.steps.count != self._last_look_step:
            self._last_look_step, self._stalled = self.steps.count, False
        if silent_s < stall_s or self._stalled or recorder.RECORDER.is_running():
            return
        self._stalled = True
        place = places.place_of_thread(self.steps.thread_number)
        where = "" if place is None else f" in {place.source}" + (f", {place.activity}" if place.activity else "")
        facts = "; ".join([*places.describe_devices(), *self._describe_others()])
        sentence = f"No step for {silent_s:,.0f} s: step {self.steps.number:,} is{where or ' running'}"
        self._consider(self._mark(Trigger.STALL, f"{sentence}{'; ' if facts else ''}{facts}"))

    def _describe_others(self) -> list[str]:
        if self._ranks is None or self._ranks.is_alone:
            return []
        others = self._ranks.steps_of_others()
        behind = [f"rank {rank} is at step {step:,}" for rank, (step, _) in sorted(others.items())
                  if step < self.steps.number]  # fmt: skip
        if behind or not others:
            return behind[:5]
        return [f"all {len(others)} other ranks are at step {self.steps.number:,} or later"]

    def _consider(self, mark: Mark) -> bool:
        """Keeps a trigger, or only lists it if one was kept a moment ago or its cause is known; whether it is kept."""
        if self._ranks is not None:
            for other in self._ranks.poll():
                self._join(other)
        if self._why_not(mark):
            just_now = time.monotonic() - self._kept_at < _JOINED_S
            self._add_mark(replace(mark, run=self._kept_run if just_now else ""))
            return False
        run = files.run_name()
        window = files.run_name() if self._wants_window(mark) else ""
        request = self._ask_others(mark, run, window)
        if request is not None:
            run, window = request.run, request.window
        if window:  # first: whoever sees the mark may count on the window
            first_step = 0 if request is None else request.first_step
            self._plan_window(Plan(mark, window, first_step))
        self._keep(replace(mark, run=run, window=window))
        return True

    def _why_not(self, mark: Mark) -> str:
        now = time.monotonic()
        if now - self._kept_at < _LEAST_BETWEEN_S:
            return "another one was kept a moment ago"
        if mark.trigger in URGENT:
            return ""
        if mark.cause and now - self._causes.get(mark.cause, -float("inf")) < max(
            _SAME_CAUSE_S * bool(self.options.min_interval), self.options.min_interval
        ):
            return "a capture with this cause was kept before"
        is_slow = mark.trigger is Trigger.SLOW_STEP
        interval_s = self._slow_interval_s if is_slow else self.options.min_interval
        return "another one was kept before" if now - self._kept_at < interval_s else ""

    def _wants_window(self, mark: Mark) -> bool:
        """Whether the steps after a trigger are recorded: where steps come, and within the budget or by request."""
        if not self.options.window_steps or not self.steps.count or not self.windows.is_free:
            return False
        if mark.trigger in (Trigger.STALL, Trigger.CRASH, Trigger.OUT_OF_MEMORY):
            return False
        return mark.trigger in URGENT or self.budget.can_afford_window()

    def _ask_others(self, mark: Mark, run: str, window: str) -> Request | None:
        if self._ranks is None or self._ranks.is_alone:
            return None
        usual_s = self.steps.usual.median_ns / 1e9
        first_step = self.steps.number + 1 + (round(_AHEAD_S / usual_s) if usual_s else 1)
        try:
            request = self._ranks.ask(mark.trigger, mark.sentence, run, window, first_step)
        except OSError as error:
            report.report(error, "asking the other ranks for the same window")
            return None
        self._asked.append((time.monotonic(), request))
        return request

    def _join(self, request: Request) -> None:
        """Keeps what another rank, or a person, has asked for."""
        from_rank = "" if request.rank is None else f" (noticed by rank {request.rank})"
        regular = request.trigger is Trigger.REGULAR
        kind = request.trigger if request.rank is None or regular else Trigger.OTHER_RANK
        mark = Mark(kind, f"{request.reason}{from_rank}", time.time_ns(), self.steps.number)
        window = request.window
        if request.rank is None and self._wants_window(mark):
            window = files.run_name()
        if window and self.options.window_steps:
            self._plan_window(Plan(mark, window, request.first_step))
        if not regular:
            self._keep(replace(mark, run=request.run, window=window), request)

    def _report_silent(self, request: Request) -> None:
        assert self._ranks is not None
        silent = self._ranks.silent_ranks(request)
        if not silent or request.trigger is Trigger.REGULAR:
            return
        named = ", ".join(str(rank) for rank in silent[:8])
        sentence = (
            f"{'rank' if len(silent) == 1 else 'ranks'} {named} did not keep {request.run} within {_ANSWER_S:g} s"
        )
        report.warn(sentence)
        self._add_mark(replace(self._mark(Trigger.OTHER_RANK, sentence), run=request.run))

    # -- keeping -------------------------------------------------------------------------------------------------------

    def _keep(self, mark: Mark, request: Request | None = None) -> None:
        """Keeps the ring, on a thread of its own, because disks are slow."""
        self._note_kept(mark)
        content, end_ns = self.ring.content(), time.perf_counter_ns()
        attached = self._attach(mark)
        self._await_writer()
        self._writer = OwnThread(self._write, (mark, content, end_ns, attached, request), "stepscope-keep")
        self._writer.start()

    def _keep_now(self, mark: Mark) -> None:
        run = files.run_name()
        mark = replace(mark, run=run)
        self._note_kept(mark)
        self._write(mark, self.ring.content(), time.perf_counter_ns(), self._attach(mark), None)

    def _note_kept(self, mark: Mark) -> None:
        self._kept_at, self._kept_run = time.monotonic(), mark.run
        if mark.cause:
            self._note_cause(mark.cause, self._kept_at)
        self._add_mark(mark)

    def _note_cause(self, cause: str, now: float) -> None:
        self._causes[cause] = now
        while len(self._causes) > _MOST_MARKS:
            del self._causes[next(iter(self._causes))]

    def _attach(self, mark: Mark) -> tuple[Artifact, ...]:
        if mark.trigger in (Trigger.STALL, Trigger.CRASH, Trigger.OUT_OF_MEMORY):
            text = f"{mark.sentence}\n\n{places.all_stacks(self.steps.thread_number)}"
            return (Artifact("stacks.txt", text.encode("utf-8", "replace")),)
        return ()

    def _write(
        self, mark: Mark, content: bytes, end_ns: int, attached: tuple[Artifact, ...], request: Request | None
    ) -> None:
        with report.NeverRaise("keeping a capture of the watch", strict=False):
            self._writing_runs.add(mark.run)
            try:
                ring, notes = content, self.ring.notes()
                content = ring + keep.end_of_ring(mark, end_ns, notes)
                target = self._write_ring(mark, content)
                if target is None:
                    return
                with closing(ConverterProcess(is_wanted=True)) as helper:
                    if mark.trigger is Trigger.SLOW_STEP and not mark.cause:
                        mark = self._explain(mark, content, helper)
                        content = ring + keep.end_of_ring(mark, end_ns, notes)
                    if target.url is None:
                        quota.mark_run(target.folder, mark.row())
                    path = keep.convert_ring(content, target, helper, attached)
                if target.url is not None:
                    self._make_remote_room(target.url)
                report.inform(f"{mark.sentence}: {path}")
                if request is not None and self._ranks is not None:
                    self._ranks.answer(request)
                if mark.trigger is Trigger.OUT_OF_MEMORY:
                    self._write_memory(mark)
            finally:
                self._writing_runs.discard(mark.run)
            self._make_room()
        if self._writer is not None and self._writer.is_this():
            self.budget.note_end()

    def _explain(self, mark: Mark, content: bytes, helper: ConverterProcess) -> Mark:
        """The mark of a slow step with the reason in it.  Where that is a known one, the next slow step is kept after
        twice the time, unless it is much longer than those that are kept."""
        reason, cause = keep.explain_step(content, mark.step or 0, helper)
        if not reason:
            return mark
        now, before = time.monotonic(), self._causes.get(cause, -float("inf"))
        is_known = now - before < _SAME_CAUSE_S
        interval_s = 2 * self._slow_interval_s if is_known else self.options.min_interval
        self._slow_interval_s = min(interval_s, max(_SAME_CAUSE_S, self.options.min_interval))
        self._note_cause(cause, now)
        explained = replace(mark, sentence=f"{mark.sentence}: {reason}", cause=cause)
        with suppress(ValueError):
            self.marks[self.marks.index(mark)] = explained
        if self._series is not None:
            self._series.add_mark(explained)
        return explained

    def _write_ring(self, mark: Mark, content: bytes) -> files.Target | None:
        """Stores a kept ring; None if the logdir takes nothing, which is reported once until it does again."""
        try:
            target = files.open_target(self.logdir, mark.run)
            try:
                keep.write_ring(content, target)
            except OSError:
                target.release()
                raise
        except (OSError, CaptureError) as error:
            if not self._cannot_keep:
                report.report(error, "keeping a capture of the watch")
            self._cannot_keep = True
            return None
        if self._cannot_keep:
            report.warn("captures of the watch are kept again")
        self._cannot_keep = False
        return target

    def _write_memory(self, mark: Mark) -> None:
        """Stores the snapshots of the devices' memory as a session beside that of the ring."""
        scratch = ScratchFolder()
        try:
            snapshots = memory_use.device_snapshots(Path(scratch.path))
            if snapshots:
                target = files.open_target(self.logdir, f"{mark.run}_memory")
                target.partial.unlink(missing_ok=True)
                stored = files.store_all(snapshots, target)
                if target.url is None:
                    quota.mark_run(target.folder, mark.row())
                else:
                    files.upload(stored, target)
        finally:
            scratch.remove()

    def _make_room(self) -> None:
        if self._local is not None:
            removed = quota.enforce_quota(self._local, self.options.quota, frozenset(self._writing_runs))
            if removed:
                report.inform(f"removed to keep the quota: {', '.join(removed)}")

    def _make_remote_room(self, address: str) -> None:
        with report.NeverRaise("keeping the quota of the watch", strict=False):
            removed = self._remote_runs.add(address)
            if removed:
                report.inform(f"removed to keep the quota: {', '.join(removed)}")

    def _await_writer(self, seconds: float = threading.TIMEOUT_MAX) -> None:
        if self._writer is not None:
            self._writer.join(seconds)

    def _add_mark(self, mark: Mark) -> None:
        self.marks.append(mark)
        self.trigger_counts[mark.trigger.value] = self.trigger_counts.get(mark.trigger.value, 0) + 1
        if self._series is not None:
            self._series.add_mark(mark)

    # -- windows -------------------------------------------------------------------------------------------------------

    def _plan_regular_window(self, now: float) -> None:
        every = self.options.window_every
        leads = self._ranks is None or self._ranks.leads
        if not every or not self.options.window_steps or not leads or not self.windows.is_free:
            return
        if now - self._last_window < every or not self.steps.usual.median_ns or not self.budget.can_afford_window():
            return
        self._last_window = now
        mark = self._mark(Trigger.REGULAR, f"steps as usual, {self.steps.usual.median_ns / 1e6:,.1f} ms each")
        window = files.run_name()
        request = self._ask_others(mark, window, window)
        self._plan_window(Plan(mark, window, 0 if request is None else request.first_step))

    def _note_window(self, plan: Plan, capture: Capture) -> None:
        self._writing_runs.discard(plan.run)
        if capture.path is not None:
            quota.mark_run(capture.path.parent, plan.mark.row() | {"window": plan.run})
        self.budget.note_window(self.windows.take_cost_s())
        if capture.url is not None:
            self._make_remote_room(capture.url.rpartition("/")[0])
        if capture.path is None:
            return
        if plan.mark.trigger is Trigger.REGULAR:
            self._add_mark(replace(plan.mark, window=plan.run))
        self._make_room()

    # -- the time series -----------------------------------------------------------------------------------------------

    def _open_series(self) -> SeriesFile | None:
        if not self.options.series:
            return None
        try:
            if self._local is None:
                return RemoteSeries(series_place(self.logdir, self.run), self.target.name)
            return SeriesFile(series_folder(self.logdir, self.run), self.target.name)
        except OSError as error:
            report.report(error, "writing the time series")
            return None

    def _write_row(self) -> None:
        self._take_steps()
        extra = memory_use.memory_in_use() | {
            "watch_percent": round(self.budget.percent, 4),
            "threads": float(threading.active_count()),
        }
        row = self.bucket.take(time.time(), extra)
        if self._series is None:
            return
        self._series.add(row)
        if self._series.is_due():
            self._await_writer()
            self._writer = OwnThread(self._series.tend, name="stepscope-pack")
            self._writer.start()

    def _prepare_memory(self) -> None:
        """Once PyTorch uses a GPU: listens for its lack of memory, and keeps its last allocations."""
        if self._listens_to_cuda or not self.options.memory_history or not memory_use.uses_cuda():
            return
        self._listens_to_cuda = True
        memory_use.keep_history()
        memory_use.listen_to_cuda(self._on_cuda_out_of_memory)

    def _on_cuda_out_of_memory(self) -> None:
        if not self._ended:
            self.trigger(f"A GPU has no more memory; in use: {_describe_memory()}", Trigger.OUT_OF_MEMORY)

    # -- the end -------------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        with report.NeverRaise("ending the watch", strict=False):
            self.steps.close()
            self.windows.cancel()
            self._work.put(None)
            self._looking.wake()
            self._looking.join(_WAIT_FOR_FILES_S)
            self._await_writer(_WAIT_FOR_FILES_S)
            self.collector.stop()
            if self.options.series:
                self._write_row()
            if self._series is not None:
                self._series.pack()
                self._series.close()
            self.ring.stop()
            (self.target.folder / WATCH_MARKER).unlink(missing_ok=True)
            self.target.release()


def _is_profiled() -> bool:
    """Whether a capture runs or is being written: steps of that time say little."""
    state = recorder.RECORDER
    return state.recording is not None or bool(state.exporting)


def _describe_memory() -> str:
    return memory_use.describe_use(memory_use.memory_in_use())


def _first_line(error: BaseException) -> str:
    try:
        return str(error).strip().splitlines()[0][:300]
    except Exception:
        return "without a message"
