"""Decides what to capture of a program without profiling code.

The loop of steps reports them, on the thread that runs them.  The first ones are skipped, and those after them are
captured.  When another loop takes the place of the one that is captured, what was recorded is saved if that one fell
silent, and discarded if the new one is more certain.
If no step is found, a time window is captured instead: at once if no framework is imported, and otherwise after some
patience; until then samples of the stacks are kept, which show what a program did that ends before.  Where a model of
PyTorch runs that nothing trains, no step will come, and the window starts early.  Steps are worth
more than a time window, so a step during the window ends it.  A signal requests a capture of
the next steps, or of a time window if there are none; during a capture it requests the end of that.  In a program
without a framework, a time window holds the calls of Python functions, since nothing else can be recorded.

Where the program is to end with its capture, each of its ranks ends itself: all of them capture the same steps.  Their
launcher ends with them, or a while after them if it waits for what they would have done.

Two rules keep the program safe.  Captures start and stop on the thread that runs the steps, or on the main thread,
because PyTorch's profiler sees only the thread that started it.  And no thread waits for another one here: a step that
ends while another thread is in the autopilot is not counted, and a request is served by the thread that is in it.
"""

from __future__ import annotations

import _imp
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepscope.capture import cost, files, recorder, report
from stepscope.capture.auto.ledger import Ledger
from stepscope.capture.auto.settings import Settings
from stepscope.capture.job import this_worker
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.own_threads import OwnTimer, is_main_thread
from stepscope.capture.running import Capture
from stepscope.capture.schedule_runner import ScheduleRunner
from stepscope.capture.schedules import Action
from stepscope.capture.steps.finding import FINDERS, FINDING
from stepscope.capture.steps.step_loop import CALLS, DIFFERENTIATED, MARKED, StepLoop, StepSource, steps_in_a_row
from stepscope.errors import counted
from stepscope.kernels.untraced import untraced

_REQUEST_PATIENCE_S = 2.0  # how long a request waits for steps of a program that has had some
_SAMPLES_AFTER_S = 1.0  # with a framework but no step: shorter programs are not worth it
_SAMPLES_HZ = 20  # for up to half a minute, in which a program loads its model as well
# A model of PyTorch that nothing trains runs whenever the program is looked at: it is used as it is, and has no steps.
_LOOK_FOR_MODEL_S, _MODEL_LOOKS = 0.5, 2
_RETRY_S = 0.5  # while a program is traced: what its framework records then is not its work
_LEAST_CALL_US = 10.0  # shorter Python calls are left out of a time window: there are many, and they say little
_MAIN_PATIENCE_S, _LOOK_S = 0.5, 0.05  # how long the main thread may take to do what it is asked for
_REPORT_PATIENCE_S = 1.0  # at a hard end, for reporting a profile that is written
_MOST_STEPS = 1000  # of a capture that goes on because steps are short
# Of a capture with very many events: PyTorch blocks the program for 4 to 9 us per event at its end, here for half a
# second.  A step with 25,000 events was captured ten times and blocked it for 1.9 s.
_MANY_EVENTS, _FEW_STEPS = 100_000, 5
# Of the time that a capture goes on for, and of the patience: so much where the program has no free core meanwhile.
# Beside twelve busy threads on two cores a loop ran for 12 to 19 % of the time, and 0.25 s of it held no five samples
# of anything.
_MOST_QUEUED = 8
_GOES_ON = 3  # times the steps up to the end of the capture: a loop that has come that far is no part of another
_LOOK_AGAIN_S = 1.0
_WITHOUT_STEPS = 3.0  # times the patience, where the program ends with the window and nothing takes its place
_RANKS_END_S = 10.0  # between the profiles of two ranks at most, where their launcher waits for all of them
_DEFAULT_STEPS = 10  # how many steps a request captures if the settings name none

Work = Callable[[], object]


class Autopilot:
    """Captures steps that finders report, or a time window.

    Args:
        settings: what to capture.
        ask_main: makes the main thread call `serve` soon; returns False if it cannot.
        show_line: called with a line for the user, now and then.
        ledger: what the processes of this program have captured.  If they have captured steps, this process is their
            launcher, and a time window of it is useless.
        is_child: another process started this one, and reads the ledger.
        loop: reports the steps.

    Attributes:
        active: False while nothing is to be captured; finders need not report steps then.
        paths: the profiles that were written on this machine, oldest first.
        last: the last profile that was written: its file, or its address on another machine; None before that.
        has_steps: True once steps were captured, and not only a time window.
        outcome: one line that says what was captured last, or why nothing was; empty while that is open.
    """

    def __init__(
        self,
        settings: Settings,
        ask_main: Callable[[], bool] = lambda: False,
        show_line: Callable[[str], object] = str,
        ledger: Ledger | None = None,
        is_child: bool = False,
        loop: StepLoop = FINDING.loop,
    ) -> None:
        self._settings = settings
        self._ask_main = ask_main
        self._show_line = show_line
        self._ledger = ledger or Ledger()
        self._is_child = is_child
        self._loop = loop
        self.paths: list[Path] = []
        self.last: Path | str | None = None
        self.outcome = ""
        self.has_steps = False
        self._requested = False
        self._forget()
        self._plan(settings.skip if settings.steps else None)

    def _forget(self) -> None:
        self._has_captured = False
        self._inside = threading.Lock()
        self._asked: deque[Work] = deque()
        self._timer: OwnTimer | None = None
        self._window: Capture | None = None  # the time window, while it runs
        self._window_since = 0.0
        self._awaited_since = self._queued_until_awaited = 0.0  # steps, on the monotonic clock
        self._holds_samples = False  # and nothing else
        self._model_seen = 0  # looks in a row at which a model ran that nothing trains
        self._source: StepSource | None = None  # whose steps are counted
        self._captured: StepSource | None = None  # whose steps were captured
        self._captured_count = 0
        self._is_cut_short = False  # fewer of them than asked for
        self._doubtful_until = 0.0  # until then another loop may take the place of the one that was captured
        self._used_until_captured = 0.0  # of the processors by the process, s
        self._supersedes = False  # what was captured before is not of the loop
        self._runner = ScheduleRunner(
            self._settings.logdir,
            self._settings.options,
            self._choose_action,
            on_stopped=self._note_captured_steps,
            on_saved=self._report_saved,
        )

    def _plan(self, first: int | None) -> None:
        """Plans a capture from step `first` on; None for no capture."""
        self._first = first
        self._last = (first or 0) + (self._settings.steps or _DEFAULT_STEPS) - 1
        self._least_seconds = 0.0
        self._goes_on_until = self._queued_until_then = 0.0  # on the monotonic clock, once the capture has started
        self.active = first is not None

    def _is_planned(self) -> bool:
        return self._first is not None

    def _choose_action(self, step: int) -> Action:
        if self._first is None or not self._first <= step <= self._last:
            return Action.NONE
        if step == self._first:  # ranks end theirs with the same step
            self._least_seconds = 0.0 if this_worker().rank is not None else self._settings.least_seconds
        if step == self._first + 1:  # the first had to wait for the profiler
            self._goes_on_until, self._queued_until_then = time.monotonic() + self._least_seconds, _queued_s()
        if step == self._last and step < self._first + _MOST_STEPS and self._goes_on():
            self._last += 1
        if self._least_seconds and step + 1 >= self._first + _FEW_STEPS:
            self._last = step if self._runner.events_recorded() > _MANY_EVENTS else self._last
        return Action.RECORD_AND_SAVE if step == self._last else Action.RECORD

    def _goes_on(self) -> bool:
        """Whether the captured steps are still too short together, without the time in which the loop, whose thread
        this is, was ready and had no core."""
        if not self._goes_on_until:
            return False
        queued = min(_queued_s() - self._queued_until_then, _MOST_QUEUED * self._least_seconds)
        return time.monotonic() < self._goes_on_until + queued

    # -- what the loop reports, on the thread of the steps -----------------------------------------------------------

    def start_step(self, source: StepSource, number: int | None = None) -> None:
        """A step of the loop starts, unless one runs."""
        if self.active:
            self._run_exclusively(lambda: self._begin(source))

    def end_step(self, source: StepSource, another_follows: bool = True, number: int | None = None) -> None:
        """A step of the loop has ended; if another follows, it starts with that."""
        if self.active:
            self._run_exclusively(lambda: self._end(source, another_follows))

    def expect_framework(self, name: str) -> None:
        """A framework is being imported: the steps are still to come, and a time window before them is useless."""
        if self.active:
            self._run_exclusively(self._drop_window)
            self._await_steps()

    # -- requests of the process -------------------------------------------------------------------------------------

    def watch_from_here(self, at_once: bool) -> None:
        """The program starts.

        Args:
            at_once: if no framework is imported, steps are not to be expected, and a time window starts now; False
                waits until one is imported.
        """
        if not self.active:
            return
        if any(name in sys.modules for name in FINDERS):
            self._await_steps()
        elif at_once:
            self.run_on_main(self._open_window)

    def request(self) -> None:
        """Requests a capture, or the end of the running one.  A signal handler may call this."""
        self.run_on_main(self._toggle)

    def serve(self) -> None:
        """Serves the requests, on the main thread, once that is in none of the interpreter's own moments of an import.

        To serve is to import: of a module that another thread imports, which may wait for the lock that is held then.
        """
        if is_main_thread() and _imp.lock_held() and self._ask_main():
            return
        while self._asked and self._run_exclusively(self._do_asked):
            pass
        self._end_program_if_wanted()

    def finish(self) -> None:
        """The program ends: a capture that still records is saved."""
        self._settings = self._settings.keep_running()
        self._cancel_timer()
        self._run_exclusively(self._finish)

    def save_before_hard_end(self, how: str) -> None:
        """The program ends without Python's own end: files that are being written are waited for, with a limit."""
        if recorder.RECORDER.can_end_at_once():
            self._settings = self._settings.keep_running()
            self._cancel_timer()
            self._run_exclusively(self._finish_running)
        recorder.RECORDER.program_end.save_before_hard_end(how)
        self._runner.wait(_REPORT_PATIENCE_S)

    def remove_window(self) -> None:
        """Removes a time window that was captured before this program turned out to be a launcher: it only shows how
        the launcher waits for its processes.  A requested window stays."""
        if self.has_steps or self._requested or not self._is_launcher():
            return
        _remove_files(self.paths)
        self.paths, self.last = [], None

    def forget_parent(self) -> None:
        """After a fork: the capture belongs to the parent; steps of this process are captured anew."""
        self._settings = self._settings.derive_for_child()
        self._show_line = str
        self._is_child = True
        self.paths, self.last, self.outcome, self.has_steps = [], None, "", False
        self._forget()

    def find_capture(self) -> str | None:
        """The profile that was captured last: its path or address; empty if none is to come, None while one is."""
        if self.last is not None:
            return str(self.last)
        return None if self._is_planned() or self._runner.is_capturing or self.outcome.startswith("captured") else ""

    def describe_steps(self) -> str:
        """Where the captured steps begin and end, and after how many the program does something else; empty without."""
        captured = self._captured
        if captured is None or not self.has_steps:
            return ""
        row = steps_in_a_row(self._loop.ended_s) if self._loop.source == captured else None
        return captured.bounds + (
            f"; {row[0]} follow each other, then {row[1]:.3g} s pass with other work" if row else ""
        )

    # -- one thread at a time ----------------------------------------------------------------------------------------

    def _run_exclusively(self, work: Work) -> bool:
        if not self._inside.acquire(blocking=False):
            return False
        try:
            with report.NeverRaise("watching the program", strict=False):
                untraced(work)
        finally:
            self._inside.release()
        if self._asked and work != self._do_asked:
            self.run_on_main()
        self._end_program_if_wanted()
        return True

    def _do_asked(self) -> None:
        while self._asked:
            self._asked.popleft()()

    def run_on_main(self, *work: Work) -> None:
        """Calls these on the main thread soon; on this one if that cannot be asked."""
        self._asked.extend(work)
        if is_main_thread() or not self._ask_main():
            self.serve()

    def _run_on_main_or_here(self, work: Work) -> None:
        """The main thread may wait for something, and nothing wakes it for us: after a moment this thread does it, but
        for PyTorch, whose profiler is bound to a thread."""
        self.run_on_main(work)
        until = time.monotonic() + _MAIN_PATIENCE_S
        while self._asked and time.monotonic() < until:
            time.sleep(_LOOK_S)
        if self._asked and "torch" not in sys.modules:
            self.serve()

    def _await_steps(self) -> None:
        """Opens a time window if no step comes, and keeps samples of the stacks until then."""
        patience = self._patience
        self._awaited_since, self._queued_until_awaited = time.monotonic(), _queued_s(_main_thread())
        if _SAMPLES_AFTER_S < patience < math.inf:
            self._run_later(_SAMPLES_AFTER_S, self._open_samples, on_main=False)
        else:
            self._run_later(patience, self._open_window_unless_launcher)

    @property
    def _patience(self) -> float:
        """Steps that come after the window take its place, unless the program has ended with it."""
        return self._settings.patience * (_WITHOUT_STEPS if self._settings.stop_after else 1.0)

    def _run_later(self, seconds: float, work: Work, on_main: bool = True) -> None:
        self._cancel_timer()
        if seconds == math.inf:
            return
        start = self._run_on_main_or_here if on_main else self._run_exclusively
        self._timer = OwnTimer(seconds, lambda: start(work), "stepscope-patience")
        with report.NeverRaise("waiting for a time window", strict=False):  # it may be impossible to start a thread
            self._timer.start()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_program_if_wanted(self) -> None:
        if not (self._settings.stop_after and self._has_captured and not self._runner.is_capturing):
            return
        if self._is_perhaps_part() or (self._is_child and this_worker().rank is None):
            return
        self.active = False
        if is_main_thread():
            self._settings = self._settings.keep_running()
            self._runner.wait()
            raise SystemExit(0 if self.last is not None or self._is_launcher() else 1)
        if not self._ask_main():
            self._settings = self._settings.keep_running()
            self._show_line("the program goes on, because its steps do not run on the main thread")

    # -- what one thread at a time does ------------------------------------------------------------------------------

    def _begin(self, source: StepSource) -> None:
        self._follow(source, self._loop.count)
        if self._is_planned():
            self._runner.start_step()

    def _end(self, source: StepSource, another_follows: bool) -> None:
        self._follow(source, self._loop.count - 1)
        if not self._is_planned():
            self.active = self._is_doubtful()
            return
        self._drop_window()
        self._cancel_timer()
        self._runner.end_step()
        if not self._is_planned():  # it has just been saved
            return
        if self._runner.number > self._last and not self._runner.is_capturing:
            self._report_failed_plan()
        elif another_follows:
            self._runner.start_step()

    def _follow(self, source: StepSource, number: int) -> None:
        """Counts the steps of this source from now on, of which step `number` runs."""
        if source is self._source:
            return
        if self._loop.was_silent and self._runner.is_capturing and self._runner.number > (self._first or 0):
            self._runner.finish()  # the steps that have ended were those of a loop
        else:
            self._runner.cancel()
        self._source = source
        cost.LENGTHS.forget()
        if not self._is_worth_capturing(source):
            self._plan(None)
            self.active, self._doubtful_until = True, math.inf
            return
        self._supersedes |= self.has_steps and not self._requested and not self._is_child
        self._runner.marks = source is not MARKED
        self._runner.number = number
        self._plan(self._loop.count if self._requested else max(self._settings.skip, self._loop.count))

    def _is_worth_capturing(self, source: StepSource) -> bool:
        """Whether a loop is captured: not an evaluation after the training, be it of this process or of those that it
        started."""
        captured = self._captured
        if captured is None:
            return trains(source) or not self._is_launcher()
        if source.rank == captured.rank:
            return True
        return self._loop.was_silent and (source.rank > captured.rank or (self._is_cut_short and trains(source)))

    def _note_captured_steps(self) -> None:
        first, count = self._first or 0, self._runner.number - (self._first or 0)
        name = self._source.name if self._source else MARKED.name
        self._captured, self._captured_count = self._source, count
        self._is_cut_short = self._runner.number <= self._last
        numbers = f"steps {first}-{first + count - 1}" if count > 1 else f"step {first}"
        self._set_outcome(f"captured {numbers} ({name})")
        self._supersedes |= bool(self.paths) and not self.has_steps and not self._requested  # a window without steps
        self.has_steps = True
        self._plan(None)
        # It may have been a warm-up, or a small function that is called often before the first training step.
        self.active = not self._requested
        self._doubtful_until = time.monotonic() + self._settings.seconds if self.active else 0.0
        self._used_until_captured = time.process_time()
        if self._settings.stop_after and self._is_perhaps_part():
            self._run_later(_LOOK_AGAIN_S, self._look_again)

    def _is_doubtful(self) -> bool:
        """Whether another loop may still take the place of the one that was captured.  A program that had few cores
        for its first larger step, which compiles, gets more time for it; not one whose captured loop goes on."""
        now, seconds = time.monotonic(), self._settings.seconds
        if now < self._doubtful_until or not self._doubtful_until:
            return now < self._doubtful_until
        is_slow = time.process_time() - self._used_until_captured < seconds
        goes_on = self._loop.count > _GOES_ON * self._runner.number
        return is_slow and not goes_on and now < self._doubtful_until + (_MOST_QUEUED - 1) * seconds

    def _is_perhaps_part(self) -> bool:
        """Whether the captured steps may be parts of a larger one that has not ended yet: calls so short that more than
        the wanted ones were captured, as the moves before an update are."""
        captured, wanted = self._captured, self._settings.steps or _DEFAULT_STEPS
        is_short = captured is not None and captured.rank == CALLS and self._captured_count > wanted
        return is_short and self.active and self._is_doubtful()

    def _look_again(self) -> None:
        """Another look whether the captured steps are the loop's, if no step comes that does."""
        if self._is_perhaps_part():
            self._run_later(_LOOK_AGAIN_S, self._look_again)

    def _set_outcome(self, outcome: str) -> None:
        self.outcome = outcome
        self._has_captured = True

    def _report_saved(self, place: Path | str) -> None:
        self.last = place
        if isinstance(place, Path):
            self.paths.append(place)
            if self._supersedes:
                self._keep_latest()
        if self._is_child:
            self._ledger.add(self.outcome, place if isinstance(place, Path) else None)
        self._show_line(f"{self.outcome}: {place}")

    def _keep_latest(self) -> None:
        """Removes captures of a function that turned out not to be the loop's step, and a time window before it.  Names
        of runs sort by time."""
        *others, latest = sorted(self.paths, key=lambda path: path.parent.name)
        _remove_files(others)
        self.paths, self.last = [latest], latest

    def _report_failed_plan(self) -> None:
        error = report.last_error()
        if error is not None and error.problem.code == recorder.ALREADY_RUNNING:
            self.outcome = f"nothing more was captured, because the program captures by itself: {error.problem.path}"
        else:
            self.outcome = f"nothing was captured: {error or 'another capture was running'}"
            self._has_captured = self._settings.stop_after  # what the program was to run for is over
        self._show_line(self.outcome)
        self._plan(None)

    def _open_window_unless_launcher(self) -> None:
        """Steps were awaited in vain: a time window starts, once the program had its patience without the time in which
        its main thread was ready and had no core."""
        if self._is_launcher():
            self._end_launcher()
            return
        awaited, patience = time.monotonic() - self._awaited_since, self._patience
        longest = (_MOST_QUEUED - 1) * patience if self._settings.stop_after else patience
        queued = min(_queued_s(_main_thread()) - self._queued_until_awaited, longest)
        if self._awaited_since and awaited + _RETRY_S < patience + queued:
            self._run_later(patience + queued - awaited, self._open_window_unless_launcher)
            return
        self._open_window()
        if self._window is not None and self._awaited_since and not self._loop.count:
            self._window.own_facts[cost.AWAITED] = awaited

    def _end_launcher(self, ranks: int = 0) -> None:
        """Ends a launcher once no more of its ranks have captured for a while, `ranks` of them until then."""
        if not self._settings.stop_after:
            return
        found = len(self._ledger.profiles())
        if found > ranks:
            self._run_later(_RANKS_END_S, lambda: self._end_launcher(found), on_main=False)
        else:
            from stepscope.capture.proving.deadlines import end_process_by_deadline

            self._has_captured = True
            end_process_by_deadline()

    def _is_launcher(self) -> bool:
        return not self._is_child and bool(self._ledger.profiles())

    def _open_samples(self) -> None:
        """Samples the stacks until a step or the time window comes.  This disturbs nobody, so any thread may do it."""
        if "torch" in sys.modules:
            self._run_later(_LOOK_FOR_MODEL_S, self._look_for_model)
        else:
            self._run_later(self._patience - _SAMPLES_AFTER_S, self._open_window_unless_launcher)
        if self._runner.is_capturing or recorder.RECORDER.is_running() or self._is_launcher():
            return
        options = replace(
            self._settings.options, host_tracer_level=0, device_tracer_level=0, python_tracer_level=0,
            stack_samples_hz=_SAMPLES_HZ, strict=False,
        )  # fmt: skip
        self._window = recorder.RECORDER.start_capture(self._open_target, options, yields=True)
        self._window_since, self._holds_samples = time.monotonic(), True

    def _look_for_model(self) -> None:
        """A model that runs at several looks and that nothing trains has no step to wait for."""
        from stepscope.capture.steps.torch import runs_untrained_model

        self._model_seen = self._model_seen + 1 if runs_untrained_model() else 0
        left = self._patience - (time.monotonic() - self._awaited_since)
        if self._model_seen >= _MODEL_LOOKS and not self._is_launcher():
            self._open_window()
        elif left > _LOOK_FOR_MODEL_S:
            self._run_later(_LOOK_FOR_MODEL_S, self._look_for_model)
        else:
            self._run_later(max(left, 0.0), self._open_window_unless_launcher)

    def _open_target(self) -> files.Target | None:
        return files.open_target(self._settings.logdir)

    def _open_window(self) -> None:
        if self._holds_samples:
            self._drop_window()
        if self._runner.is_capturing or self._window is not None or recorder.RECORDER.is_running():
            return
        if "torch" in sys.modules and not is_main_thread():
            return  # PyTorch's profiler would see only this thread
        if _is_traced():
            self._run_later(_RETRY_S, self._open_window_unless_launcher)
            return
        self._window = recorder.RECORDER.start(self._settings.logdir, self._window_options())
        self._window_since = time.monotonic()
        if self._window is None and self._settings.stop_after:
            self._report_failed_plan()
        elif self._window is not None:
            self._window.yields = not self._requested  # a capture by the program itself is worth more
            self._run_later(self._settings.seconds, self._close_window)

    def _window_options(self) -> ProfilerOptions:
        options = self._settings.options
        if options.python_tracer_level > 0 or any(name in sys.modules for name in FINDERS):
            return options
        return replace(options, python_tracer_level=1, python_min_us=max(options.python_min_us, _LEAST_CALL_US))

    def _close_window(self) -> None:
        if self._window is not None and not self._requested and self._is_launcher():
            self._drop_window()
            self._end_launcher()
        window, self._window = self._window, None
        if window is None:
            return
        seconds = time.monotonic() - self._window_since
        if window.gave_way:
            self.outcome = "nothing more was captured, because the program captures by itself"
            return
        recorder.RECORDER.end_capture(window)
        window.finished.wait()  # it may have ended with the program, or at a limit
        held = (
            f"samples of the stacks over {seconds:.1f} s were kept"
            if self._holds_samples
            else (f"a window of {seconds:.1f} s was captured")
        )
        self._set_outcome(f"no step was found; {held} instead{_describe_calls(window)}")
        left = self._patience - (time.monotonic() - self._awaited_since)
        if self._settings.stop_after and self._model_seen >= _MODEL_LOOKS and left > 0:
            self._has_captured = False  # a training may follow, whose steps take its place
            self._run_later(left, self._end_wait)
        if window.place is not None:
            self._report_saved(window.place)

    def _end_wait(self) -> None:
        self._has_captured = True

    def _drop_window(self) -> None:
        window, self._window = self._window, None
        self._holds_samples = False
        if window is not None:
            recorder.RECORDER.end_capture(window, save=False)

    def _toggle(self) -> None:
        if self._window is not None and not self._holds_samples:
            self._close_window()
        elif self._runner.is_capturing:
            self._last, self._goes_on_until = self._runner.number, 0.0  # the step that runs is the last one
        elif recorder.RECORDER.is_running():
            self._show_line("the program is capturing by itself; nothing was changed")
        elif self._source is None and not any(name in sys.modules for name in FINDERS):
            self._requested = True
            self._open_window()
        else:
            self._requested = True
            self._plan(self._runner.number + 1)
            self._run_later(_REQUEST_PATIENCE_S, self._open_window)

    def _finish_running(self) -> None:
        self._runner.finish()
        self._close_window()

    def _finish(self) -> None:
        self._finish_running()
        self._runner.wait()
        full = recorder.RECORDER.keep_full_memory()
        if full is not None and not self.paths:
            files.leave_reason(self._settings.logdir, full, "keep less, or compute with smaller batches")
        if self.outcome or self._first is None:
            return
        if self._source is None:
            self.outcome = "nothing was captured: no step was found, and the program ended before a time window started"
            return
        self._report_too_few_steps()

    def _report_too_few_steps(self) -> None:
        assert self._source is not None
        ended = self._loop.count
        steps = f"the program ran {counted(ended, 'step')} ({self._source.name})"
        self.outcome = f"nothing was captured: {steps} and the first {self._first} are skipped; skip fewer (--skip)"
        if self._is_child:
            self._ledger.add(self.outcome)


def trains(source: StepSource) -> bool:
    """Whether such steps update a model, as far as their kind says; batches and calls may be those of an evaluation."""
    return source.rank >= DIFFERENTIATED and source.rank != CALLS


def _queued_s(thread: str = "thread-self") -> float:
    """How long a thread was ready to run and had no processor; 0 where the system does not tell.

    Args:
        thread: its place in /proc; the calling one by default.
    """
    with suppress(OSError, ValueError, IndexError):  # only Linux has it
        # No functions of Python: a sample of the loop would show them as the program's.
        handle = os.open(f"/proc/{thread}/schedstat", os.O_RDONLY)
        try:
            return int(os.read(handle, 128).split()[1]) / 1e9
        finally:
            os.close(handle)
    return 0.0


def _main_thread() -> str:
    return f"self/task/{threading.main_thread().native_id}"


def _remove_files(paths: Iterable[Path]) -> None:
    """Removes profiles, and their folders if nothing else is in them."""
    for path in paths:
        with suppress(OSError):
            path.unlink()
        files.drop_if_empty(path.parent)


def _is_traced() -> bool:
    """Whether the framework traces or compiles on this thread what it will run later."""
    tensorflow: Any = sys.modules.get("tensorflow")
    jax: Any = sys.modules.get("jax._src.core")
    torch: Any = sys.modules.get("torch.compiler")
    with report.Suppressed():  # internals that have moved
        if tensorflow is not None and not tensorflow.executing_eagerly():
            return True
        if jax is not None and not jax.trace_state_clean():
            return True
        return torch is not None and bool(torch.is_compiling())
    return False


def _describe_calls(window: Capture) -> str:
    if window.name != "host" or not window.options.python_tracer_level:
        return ""
    least = f" of {window.options.python_min_us:g} us or more" if window.options.python_min_us else ""
    return f", with the calls of Python functions{least}; `with stepscope.step(i):` around the loop's body marks steps"
