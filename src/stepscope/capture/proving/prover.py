"""Hears of the steps of a program, and runs an experiment on their thread.

The steps are those that `stepscope run` finds.  The experiment starts once they are captured, and, where the places are
to come from the account of that capture, once another process has analysed it.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepscope.capture import report
from stepscope.capture.frameworks import find_cuda
from stepscope.capture.job import this_worker
from stepscope.capture.orphans import output_of
from stepscope.capture.own_threads import OwnThread, is_main_thread, register_at_fork
from stepscope.capture.proving import relays, saving
from stepscope.capture.proving.deadlines import (
    SILENT_S,
    STUCK_S,
    STUCK_STEPS,
    end_process_by_deadline,
    end_program,
    has_children,
    watch_for_silence,
)
from stepscope.capture.proving.experiment import TOO_EARLY, Experiment, Steps, split_rank
from stepscope.capture.proving.options import ProveOptions
from stepscope.capture.proving.stopwatch import KnobTurner, Stopwatch
from stepscope.capture.recorder import RECORDER
from stepscope.capture.steps.step_loop import StepSource
from stepscope.capture.watching.baseline import Baseline
from stepscope.capture.watching.steps import StepFollower, StepRecord, ThreadMeter
from stepscope.errors import counted
from stepscope.proof.record import Proof

_MOST_FROM_ACCOUNT = 3
_STEPS_AFTER_CAPTURE = 20  # of a job with ranks, which all have to start at the same step
_ANALYSIS_S = 120.0  # for the capture to be written, and again for its account
_STUCK = "a step without it does not end: something in the step waits for what it does"
_NO_STEPS = "no steps were found; mark them: stepscope.step()"


class Prover:
    """The experiment of this process.

    Args:
        options: what is to be proved.
        first: the first step that may be changed.
        captured: the profile that was captured of this program: its path, "" if none will come, None until it is known.
        logdir: where the proofs go without a session.
        show_line: called with a line for the user.
        run_on_main: calls a function on the main thread soon.
        patience_s: how long to wait for the first step at least; infinite in a process that another one has started.

    Attributes:
        active: as for a `Listener`.
        proofs: what was found.
    """

    def __init__(
        self,
        options: ProveOptions,
        first: int,
        captured: Callable[[], str | None],
        logdir: str,
        show_line: Callable[[str], object],
        run_on_main: Callable[[Callable[[], object]], object],
        patience_s: float,
    ) -> None:
        self._options = options
        self._first = first
        self._captured = captured
        self._logdir = logdir
        self._show_line = show_line
        self._run_on_main = run_on_main
        self._patience_s = patience_s
        self._pid = os.getpid()
        self._experiment: Experiment | None = None
        self._running: Steps[None] | None = None
        self._lengths: list[float] = []  # of steps that the experiment has not heard of yet
        self._wanted = 1
        self._places: tuple[str, ...] | None = None
        self._asked = self._is_saved = False
        self._give_up_s = math.inf
        self._source: StepSource | None = None
        self._thread = self._since_ns = 0
        self._meter: ThreadMeter | None = None
        self._inside = threading.Lock()  # a handler of a signal may end a step, too
        self._knobs = KnobTurner(options.setting)
        self._undo = ExitStack()
        if options.timed:
            self._undo.callback(self._knobs.install())
        if options.at or options.ablate:
            self._undo.callback(relays.install([split_rank(place)[0] for place in options.at + options.ablate]))
        self._follower = StepFollower(
            Baseline(2.0, 1_000_000), self._start_when_ready, RECORDER.is_running, lambda: 0, may_be_quick=lambda: False
        )
        self.active = True
        self.proofs: list[Proof] = []
        self._watch_ended = watch_for_silence(self._count_steps, self._limit_s, self._on_silence)
        register_at_fork(after_in_child=self._forget_parent)

    # -- what the loop reports -----------------------------------------------------------------------------------------
    # From the start of the experiment on, steps are timed here, with two readings of the clock in a step: what the
    # follower reads besides takes 0.2 ms where its caches are cold.

    def start_step(self, source: StepSource, number: int | None = None) -> None:
        """A step starts."""
        if self._running is None:
            self._follower.start_step(source, number)
        elif source is self._source and self._since_ns == 0:
            self._since_ns = time.perf_counter_ns()

    def end_step(self, source: StepSource, another_follows: bool = True, number: int | None = None) -> None:
        """A step has ended."""
        if self._running is None:
            self._follower.end_step(source, another_follows, number)
        elif self._is_of_loop(source):
            self._end_step(another_follows)

    def finish(self) -> None:
        """The program ends: what was measured so far is the answer."""
        if not self.active or self._pid != os.getpid():
            return
        self.active = False
        with report.NeverRaise("proving", strict=False):
            running, self._running = self._running, None
            if running is not None:
                running.close()
            elif self._experiment is None and (self._follower.count or not self._is_child()):
                self._report_nothing(TOO_EARLY if self._follower.count else _NO_STEPS)
            self._save()
        self._watch_ended.set()
        self._undo.close()

    # -- on the thread of the steps ------------------------------------------------------------------------------------

    def _start_when_ready(self, step: StepRecord) -> None:
        if self._running is None:
            self._start_if_ready()

    def _is_of_loop(self, source: StepSource) -> bool:
        """Whether its steps are measured: those on the thread on which the loop's first one was."""
        if source is not self._source:
            self._source, self._thread, self._since_ns = source, threading.get_ident(), 0
            return False
        return threading.get_ident() == self._thread

    def _end_step(self, another_follows: bool) -> None:
        now_ns, since_ns = time.perf_counter_ns(), self._since_ns
        self._since_ns = now_ns if another_follows else 0
        if since_ns == 0:
            return
        self._lengths.append((now_ns - since_ns) / 1e9)
        if len(self._lengths) < self._wanted or self._running is None or not self._inside.acquire(blocking=False):
            return
        try:
            lengths, self._lengths = self._lengths, []
            self._wanted = self._running.send(lengths)
        except Exception as error:
            if not isinstance(error, StopIteration):
                report.report(error, "proving")
            self._running = None
            self._conclude()
        finally:
            self._inside.release()

    def _start_if_ready(self) -> None:
        if self._experiment is not None or not self._is_ready():
            return
        if self._options.ablate or self._options.timed:
            self._undo.callback(saving.redirect())
        self._source, self._thread = self._follower.source, threading.get_ident()
        self._meter = ThreadMeter(lambda: 0)
        self._experiment = self._make_experiment()
        running = self._experiment.run()
        self._wanted = next(running)
        self._running, self._since_ns = running, time.perf_counter_ns()

    def _make_experiment(self) -> Experiment:
        if self._options.timed:
            return Stopwatch(self._options, self._knobs)
        asked = replace(self._options, at=self._places or self._options.at)
        return Experiment(asked, self._show_line, read_queued=self._read_queued, wait=wait_for_devices)

    def _read_queued(self) -> float:
        """For how long the thread of the steps has waited for processors, in seconds."""
        return self._meter.read(0).queued_ns / 1e9 if self._meter is not None else 0.0

    def _is_ready(self) -> bool:
        if this_worker().rank is not None:
            self._places = self._options.at
            return self._follower.count >= self._first + _STEPS_AFTER_CAPTURE
        if self._follower.count < self._first or RECORDER.is_running():
            return False
        captured = self._find_captured()
        if captured is None:
            return False
        if self._options.at or self._options.ablate or self._options.timed or not captured:
            self._places = self._options.at
        elif not self._asked:
            self._asked = True
            OwnThread(self._ask_account, (captured,), "stepscope-prove").start()
        return self._places is not None

    def _find_captured(self) -> str | None:
        """The profile; "" if none has come for long."""
        captured, now = self._captured(), time.monotonic()
        self._give_up_s = min(self._give_up_s, now + _ANALYSIS_S)
        return "" if captured is None and now > self._give_up_s else captured

    def _conclude(self) -> None:
        self._watch_ended.set()
        self._save()
        if not self._options.ablate:  # else the program ends, and saves nothing until then
            self._undo.close()
        self.active = False
        if self._ends_program:
            if not is_main_thread():  # that may wait for this thread for ever, and nothing wakes it
                end_process_by_deadline()
            self._run_on_main(end_program)

    @property
    def _ends_program(self) -> bool:
        return self._options.stop_after or bool(self._options.ablate)

    # -- no step any more, on a thread of the watch --------------------------------------------------------------------

    def _count_steps(self) -> int:
        ended = 0 if self._experiment is None else self._experiment.ended_steps
        return self._follower.count + ended + len(self._lengths)

    def _limit_s(self, times: int) -> float:
        if times or (self._experiment is not None and self._experiment.ablated is not None):
            return max(STUCK_S, STUCK_STEPS * self._follower.usual.median_ns / 1e9)
        if not self._ends_program:
            return math.inf
        if self._follower.count:
            return SILENT_S
        return math.inf if has_children() else max(SILENT_S, self._patience_s)

    def _on_silence(self, times: int) -> None:
        """First puts the part back that is left out; if that does not help, or none is, ends the program."""
        if self._experiment is not None and self._experiment.ablated is not None:
            self._experiment.ablated.refuse(_STUCK)
            self._experiment.put_back()
        elif self.active:
            why = f"no step ended for {SILENT_S:.0f} s" if self._follower.count else _NO_STEPS
            self._give_up(_STUCK if times > 1 else why)

    def _give_up(self, why: str) -> None:
        """Takes what was measured so far as the answer, and ends the program by a deadline."""
        self.active = False
        if self._experiment is None:
            self._report_nothing(why)
        else:
            self._experiment.conclude(why)
        self._running = None
        self._save()
        end_process_by_deadline()
        self._run_on_main(end_program)

    # -- beside the steps ----------------------------------------------------------------------------------------------

    def _ask_account(self, path: str) -> None:
        with report.NeverRaise("finding places to prove", strict=False):
            command = [sys.executable, "-m", "stepscope", "overview", path, "--format", "json"]
            environment = {name: value for name, value in os.environ.items() if not name.startswith("STEPSCOPE_")}
            with suppress(ValueError):  # it had nothing to say
                self._places = places_of(json.loads(output_of(command, environment, _ANALYSIS_S)))
        self._places = self._places or ()

    def _save(self) -> None:
        if self._experiment is None or self._is_saved:
            return
        self._is_saved, self.proofs = True, list(self._experiment.proofs)
        if not self.proofs and not self._options.timed and not this_worker().rank:
            why = (
                "no place is slow enough; name one with --at"
                if self._places == ()
                else f"the program ended too early, after {counted(self._count_steps(), 'step')}; let it run longer"
            )
            self._show_line(f"nothing was proved: {why}")
        with report.NeverRaise("saving proofs", strict=False):
            captured = self._captured()
            self._experiment.save(Path(captured).parent if captured and "://" not in captured else Path(self._logdir))

    def _is_child(self) -> bool:
        """Whether another process has started this one: without steps it is a worker, which has nothing to prove."""
        return self._patience_s == math.inf

    def _report_nothing(self, why: str) -> None:
        """Nothing could be changed."""
        self._experiment = self._make_experiment()
        self._experiment.conclude(why)

    def _forget_parent(self) -> None:
        """After a fork: the experiment belongs to the parent, and the child runs as it would without it."""
        self.active = False
        self._follower.forget_parent()
        self._running = None
        if self._experiment is not None:
            self._experiment.put_back()


def places_of(overview: dict[str, Any]) -> tuple[str, ...]:
    """What the advice would have proved, and the first places of the account that have a line in the program."""
    commands = [shlex.split(item.get("prove") or "") for item in overview.get("advice", ())]
    advised = [words[at + 1] for words in commands for at, word in enumerate(words) if word in ("--at", "--ablate")]
    culprits = [row.get("culprit") or {} for row in overview.get("account", ())]
    named = [f"{each['file']}:{each['name'].split()[0].removesuffix('()')}" for each in culprits if each.get("file")]
    return tuple(dict.fromkeys([*advised, *named]))[:_MOST_FROM_ACCOUNT]


def wait_for_devices() -> None:
    """Waits until devices have done the work of JAX, PyTorch and TensorFlow that steps have started.

    A step that waits for nothing ends when its work is queued, and the work runs in the steps after it.  Without this a
    block would leave work to the next one, and a step whose waiting is left out would seem to have no work at all.
    """
    jax: Any = sys.modules.get("jax")
    tensorflow: Any = sys.modules.get("tensorflow")
    if hasattr(jax, "live_arrays"):
        for array in jax.live_arrays():
            with suppress(RuntimeError):  # another thread has donated or deleted it
                array.block_until_ready()
    cuda = find_cuda()
    if cuda is not None:
        cuda.synchronize()
    if hasattr(tensorflow, "config") and tensorflow.config.list_physical_devices("GPU"):
        tensorflow.test.experimental.sync_devices()
