"""A watch in a real program: what it keeps, and that it never hurts the job."""

from __future__ import annotations

import errno
import functools
import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import watch_programs as programs
from waiting import await_until

import stepscope
from stepscope.capture.auto.settings import Settings
from stepscope.capture.watching import continuous, current, keep
from stepscope.capture.watching.ring import FLUSH_S
from stepscope.capture.watching.steps import StepRecord, Usage
from stepscope.capture.watching.triggers import Mark, Trigger
from stepscope.formats.candidates import WATCH_MARKER
from stepscope.formats.spool.reader import read as read_spool
from stepscope.model import EventKind

PATIENCE_S = 60

# On a busy machine any step may be slow: only the tests of slow steps look for them.
QUIET = {"window_every": 0, "min_interval": 0, "series": 0, "slow_factor": 1e6}


@pytest.fixture
def watched(tmp_path):
    """Starts watches of this process; each ends with the test."""

    def start(**options):
        handle = stepscope.watch(tmp_path / "logs", **{**QUIET, **options})
        assert handle is not None, stepscope.last_error()
        return handle

    yield start
    running = current()
    if running is not None:
        running.stop()
    from stepscope.capture.watching.process import WATCH

    WATCH.stop()


def run_steps(count, first=0, seconds=0.002, slow=None):
    for number in range(first, first + count):
        with stepscope.step(number):
            load_batch(1.5 if number == slow else seconds)


def load_batch(seconds):
    time.sleep(seconds)


def profiles(logdir):
    return sorted(path for path in logdir.glob("plugins/profile/*/*.xplane.pb"))


def partials(logdir):
    return sorted(path for path in logdir.glob("plugins/profile/*/*.partial"))


def run_program(text, *words, environment=None, expect=0):
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == expect, done.stderr
    return done


def test_a_slow_step_is_kept_with_what_came_before_and_its_cause(tmp_path, watched):
    handle = watched(window_steps=0, slow_factor=50)
    run_steps(40, seconds=0.01, slow=30)  # a busy machine makes no other step 50 times as long
    await_until(lambda: profiles(tmp_path / "logs"), PATIENCE_S, "the capture")
    handle.stop()

    mark = next(mark for mark in handle.watch.marks if mark.step == 30)
    report = stepscope.load(tmp_path / "logs", run=mark.run).steps()
    assert (mark.trigger, mark.step) == (Trigger.SLOW_STEP, 30)
    assert re.search(r"Python in the loop in `.*test_watch.py:\d+ load_batch` is 1,?\d+.* ms longer", mark.sentence)
    assert [row["step"] for row in report.rows][-1] >= 30
    assert len(report.rows) >= 30
    assert f"kept by the watch (slow step): {mark.sentence}" in report.warnings


def test_nothing_is_kept_of_a_healthy_run_and_the_ring_is_removed(tmp_path, watched):
    handle = watched()
    run_steps(60)
    ring = handle.watch.target.partial
    assert ring.exists()
    handle.stop()

    assert list(handle.watch.marks) == []
    assert not ring.parent.exists()
    assert stepscope.annotate("after") is stepscope.annotate("the watch")  # ranges cost nothing again


def test_a_job_that_is_killed_leaves_its_last_seconds(tmp_path):
    done = run_program(programs.KILLED, tmp_path, expect=-signal.SIGKILL)

    # A busy machine may have made a step slow, whose capture was being written; that is a partial file as well.
    partials = sorted(tmp_path.glob("plugins/profile/*/*.partial"))
    (ring,) = [each for each in partials if json.loads((each.parent / WATCH_MARKER).read_text()).get("ring")]
    steps = [row["step"] for row in stepscope.load(ring).steps().rows]
    assert steps == list(range(steps[0], steps[-1] + 1))
    # Half of the run is far more than 1.5 s lose, however slow the machine is; `bench/watch.py` measures the loss.
    assert steps[-1] > int(done.stdout) / 4


def test_kill_9_keeps_all_that_was_recorded_until_the_last_flush_at_most_a_second_before(tmp_path):
    run_program(programs.KILLED_AFTER_FLUSH, tmp_path, expect=-signal.SIGKILL)

    (ring,) = tmp_path.glob("plugins/profile/*/*.partial")
    profile = stepscope.load(ring)
    assert {row["name"] for row in profile.annotations().rows} >= {f"compute {number}" for number in range(100)}
    assert [row["step"] for row in profile.steps().rows][:100] == list(range(100))
    assert FLUSH_S <= 1.0


@pytest.mark.parametrize(("what", "trigger"), [("loss", "crash"), ("memory", "out of memory")])
def test_an_exception_keeps_the_ring_and_all_stacks(tmp_path, what, trigger):
    done = run_program(programs.CRASHED, tmp_path, what, expect=1)

    (profile,) = profiles(tmp_path)
    (stacks,) = tmp_path.glob("plugins/profile/*/*.stacks.txt")
    assert "RuntimeError" in done.stderr
    assert f"kept by the watch ({trigger}): RuntimeError" in stepscope.load(profile).overview().warnings[0]
    assert "Thread MainThread" in stacks.read_text()


def test_a_stall_is_kept_while_it_lasts_with_the_line_that_waits(tmp_path, watched):
    handle = watched(stall=0.4, window_steps=0)
    run_steps(5)
    with stepscope.step(5):
        await_until(lambda: profiles(tmp_path / "logs"), PATIENCE_S, "the capture")
    handle.stop()

    stall = next(mark for mark in handle.watch.marks if mark.trigger is Trigger.STALL)
    assert stall.sentence.startswith("No step for")
    assert "step 5 is in" in stall.sentence
    assert list((tmp_path / "logs").glob("plugins/profile/*/*.stacks.txt"))


def test_a_trigger_records_the_steps_after_it(tmp_path, watched):
    handle = watched(window_steps=3)
    run_steps(40)
    assert stepscope.trigger("the loss looks odd")
    await_until(lambda: handle.watch.marks, PATIENCE_S, "the trigger")
    run_steps(10, first=40)
    await_until(lambda: handle.watch.budget.windows, PATIENCE_S, "the window")
    handle.stop()

    (mark,) = handle.watch.marks
    window = stepscope.load(tmp_path / "logs", run=mark.window).steps()
    assert mark.sentence == "the loss looks odd"
    assert len(window.rows) in (3, 4)  # the step during which the window opens may be in it
    assert "kept by the watch (requested): the loss looks odd" in window.warnings


def test_a_trigger_while_a_capture_runs_keeps_the_ring_and_leaves_the_capture_alone(tmp_path, watched):
    handle = watched(window_steps=2)
    run_steps(30)
    stepscope.start(tmp_path / "own")
    run_steps(5, first=30)
    stepscope.trigger("look")
    await_until(lambda: handle.watch.marks, PATIENCE_S, "the trigger")
    run_steps(5, first=35)
    path = stepscope.stop()
    run_steps(5, first=40)
    await_until(lambda: handle.watch.budget.windows, PATIENCE_S, "the window, which has waited")
    handle.stop()

    assert len(stepscope.load(path).steps().rows) == 10
    assert len(profiles(tmp_path / "logs")) == 2


def test_a_capture_of_the_program_ends_a_window(tmp_path, watched):
    handle = watched(window_steps=1000)
    run_steps(30)
    stepscope.trigger("look")
    await_until(lambda: handle.watch.marks, PATIENCE_S, "the trigger")
    run_steps(5, first=30)
    assert not handle.watch.windows.is_free
    capture = stepscope.start(tmp_path / "own")
    run_steps(5, first=35)

    assert capture is not None
    assert len(stepscope.load(stepscope.stop()).steps().rows) == 5


def test_a_second_watch_is_refused(tmp_path, watched):
    watched()

    assert stepscope.watch(tmp_path / "other") is None
    assert stepscope.last_error().problem.code == "already-running"
    assert not (tmp_path / "other").exists()


def test_a_watch_that_cannot_write_is_reported_and_training_goes_on(tmp_path):
    (tmp_path / "file").write_text("")

    assert stepscope.watch(tmp_path / "file") is None
    assert "nothing can be written here" in str(stepscope.last_error())
    assert stepscope.trigger("nobody listens") is False
    run_steps(3)


def test_a_wrong_option_is_reported_and_training_goes_on(tmp_path):
    assert stepscope.watch(tmp_path, rign="30s") is None
    assert "there is no option 'rign' of a watch" in str(stepscope.last_error())


def test_a_logdir_that_disappears_is_made_again(tmp_path, watched):
    handle = watched(window_steps=0)
    run_steps(30)
    shutil.rmtree(tmp_path / "logs")
    stepscope.trigger("look")
    await_until(lambda: profiles(tmp_path / "logs"), PATIENCE_S, "the capture")
    handle.stop()

    assert stepscope.load(tmp_path / "logs").steps().rows


def test_a_trigger_that_cannot_be_written_is_reported_once_and_training_goes_on(tmp_path, watched, caplog):
    handle = watched(window_steps=0)
    run_steps(30)
    shutil.rmtree(tmp_path / "logs" / "plugins" / "profile")
    (tmp_path / "logs" / "plugins" / "profile").write_text("a file where the folder was")
    with caplog.at_level(logging.ERROR):
        stepscope.trigger("look")
        await_until(lambda: "nothing can be written here" in caplog.text, PATIENCE_S, "the report")
    run_steps(5, first=30)
    handle.stop()

    assert handle.watch.steps.count >= 34


def test_a_disk_that_is_full_for_an_hour_is_said_once_and_leaves_nothing_half(tmp_path, watched, caplog, monkeypatch):
    def refuse(content, target):
        target.partial.write_bytes(content[:100])
        raise OSError(errno.ENOSPC, "No space left on device", str(target.partial))

    handle = watched(window_steps=0, min_interval=0)
    run_steps(5)
    with monkeypatch.context() as full, caplog.at_level(logging.WARNING):
        full.setattr(keep, "write_ring", refuse)
        for number in range(3):
            handle.watch._keep_now(Mark(Trigger.REQUESTED, f"trigger {number}", time.time_ns(), number))
    ring_only = partials(tmp_path / "logs")
    with caplog.at_level(logging.WARNING):
        handle.watch._keep_now(Mark(Trigger.REQUESTED, "there is room", time.time_ns(), 4))
    handle.stop()

    assert caplog.text.count("No space left") == 1
    assert caplog.text.count("captures of the watch are kept again") == 1
    assert len(ring_only) == 1
    assert len(profiles(tmp_path / "logs")) == 1


KILLED_WHILE_IT_CONVERTS = """
import os, signal, sys, stepscope
from stepscope.capture import other_process
other_process.ConverterProcess.run = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
watch = stepscope.watch(sys.argv[1], window_steps=0, series=0)
for number in range(5):
    with stepscope.step(number): pass
watch.trigger("look")
while True: pass
"""


def test_a_job_that_is_killed_while_it_converts_leaves_the_whole_capture_which_says_so(tmp_path):
    run_program(KILLED_WHILE_IT_CONVERTS, tmp_path / "logs", expect=-signal.SIGKILL)

    traces = [read_spool(left.read_bytes(), str(left), "") for left in partials(tmp_path / "logs")]
    told = {problem.code: (problem.lost, trace) for trace in traces for problem in trace.problems}
    lost, kept = told["unconverted"]
    assert sorted(told) == ["unconverted", "unfinished"]  # what the trigger kept, and the ring that was going on
    assert (lost, kept.partial) == (None, True)
    assert int(np.sum(kept.events.kind == EventKind.STEP_MARK)) == 5


INTERRUPTED = """
import os, signal, sys, stepscope
from stepscope.capture import other_process
run = other_process.ConverterProcess.run
def interrupt(*words):
    os.kill(os.getpid(), signal.SIGINT)
    return run(*words)
other_process.ConverterProcess.run = interrupt
watch = stepscope.watch(sys.argv[1], window_steps=0, series=0)
for number in range(5):
    with stepscope.step(number): pass
watch.trigger("look")
signal.signal(signal.SIGINT, signal.default_int_handler)
"""


def test_control_c_at_the_end_of_the_program_waits_for_the_capture_of_the_watch(tmp_path):
    run_program(INTERRUPTED, tmp_path / "logs")

    (kept,) = profiles(tmp_path / "logs")
    assert partials(tmp_path / "logs") == []
    assert int(np.sum(stepscope.load(kept).trace().events.kind == EventKind.STEP_MARK)) == 5


def test_the_same_cause_is_kept_once(tmp_path, watched, monkeypatch):
    monkeypatch.setattr(continuous, "_LEAST_BETWEEN_S", 0.0)
    handle = watched(window_steps=0, min_interval=0.0001)
    run_steps(5)
    for number in range(3):
        mark = Mark(Trigger.SLOW_STEP, "slow", time.time_ns(), number, cause="program load_batch (train.py:12)")
        handle.watch._put(functools.partial(handle.watch._consider, mark))
        await_until(lambda number=number: len(handle.watch.marks) > number, PATIENCE_S, "the trigger")
    handle.stop()

    assert len(profiles(tmp_path / "logs")) == 1
    assert len(handle.watch.marks) == 3


def test_the_second_slow_step_of_a_cause_makes_the_watch_wait_twice_as_long(tmp_path, watched, monkeypatch):
    monkeypatch.setattr(keep, "explain_step", lambda content, number, helper: ("Python is longer", "python a.py:3"))
    handle = watched(window_steps=0, min_interval=100)
    found = []
    for step in range(3):
        mark = Mark(Trigger.SLOW_STEP, f"Step {step} took 9 ms", time.time_ns(), step)
        handle.watch._add_mark(mark)
        handle.watch._explain(mark, b"", None)
        found.append((handle.watch._slow_interval_s, handle.watch.marks[-1].sentence))
    handle.stop()

    assert found == [
        (100, "Step 0 took 9 ms: Python is longer"),
        (200, "Step 1 took 9 ms: Python is longer"),
        (400, "Step 2 took 9 ms: Python is longer"),
    ]


def test_after_a_kept_capture_only_urgent_triggers_are_kept_for_a_while(tmp_path, watched, monkeypatch):
    monkeypatch.setattr(continuous, "_LEAST_BETWEEN_S", 0.0)
    handle = watched(window_steps=0, min_interval=3600)
    run_steps(5)
    first = [Trigger.SLOW_STEP, Trigger.SPIKE, Trigger.TIME_TABLE]
    urgent = [Trigger.STALL, Trigger.OUT_OF_MEMORY, Trigger.CRASH, Trigger.REQUESTED, Trigger.SIGNAL]
    for number, trigger in enumerate([*first, *urgent]):
        mark = Mark(trigger, trigger.value, time.time_ns(), number)
        handle.watch._put(functools.partial(handle.watch._consider, mark))
        await_until(lambda number=number: len(handle.watch.marks) > number, PATIENCE_S, "the trigger")
    handle.stop()

    marks = list(handle.watch.marks)
    by_run = {mark.run: mark.trigger for mark in reversed(marks) if mark.run}  # the first that names a run made it
    assert [mark.trigger for mark in marks] == [*first, *urgent]
    assert sorted(by_run.values()) == sorted([Trigger.SLOW_STEP, *urgent])


def test_steps_that_only_waited_for_a_processor_are_kept_once_and_not_listed_again(tmp_path, watched):
    handle = watched(window_steps=0, min_interval=60)
    start, end = Usage(0, 0, 0, 0, 0), Usage(200_000_000, 0, 180_000_000, 0, 0)
    for number in range(5):
        step = StepRecord(number, start, end, True, 20_000_000, False, is_contended=True)
        handle.watch._put(functools.partial(handle.watch._on_slow_step, step))
    await_until(lambda: profiles(tmp_path / "logs"), PATIENCE_S, "the capture")
    handle.stop()

    (mark,) = handle.watch.marks
    assert (mark.step, mark.trigger) == (0, Trigger.SLOW_STEP)
    assert "waited 180 ms for a free core" in mark.sentence


@pytest.mark.skipif(not hasattr(signal, "SIGUSR2"), reason="this system has no such signal")
def test_a_signal_keeps_a_capture(tmp_path, watched):
    handle = watched(window_steps=0)
    run_steps(5)
    os.kill(os.getpid(), signal.SIGUSR2)
    await_until(lambda: profiles(tmp_path / "logs"), PATIENCE_S, "the capture")
    handle.stop()

    assert handle.watch.marks[0].trigger is Trigger.SIGNAL
    assert signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL


def test_a_spike_of_the_loss_keeps_a_capture(tmp_path, watched):
    handle = watched(window_steps=0)
    for number in range(60):
        stepscope.observe(loss=1.0 + 0.001 * (number % 7))
    stepscope.observe(loss=50.0)
    await_until(lambda: profiles(tmp_path / "logs"), PATIENCE_S, "the capture")

    assert handle.watch.marks[0].sentence.startswith("loss is 50; the median of the last")


def test_all_ranks_keep_the_same_window(tmp_path):
    environment = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29511"}
    ends = socket.socketpair()
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", programs.RANK, tmp_path, str(rank), str(end.fileno())],
            env={**environment, "RANK": str(rank)},
            pass_fds=[end.fileno()],
        )
        for rank, end in enumerate(ends)
    ]
    for end in ends:
        end.close()
    assert [process.wait(120) for process in ranks] == [0, 0]

    sessions = {}
    for path in profiles(tmp_path):
        sessions.setdefault(path.parent.name, []).append(path)
    # What came before, and the window after it, in which both ranks have recorded the same steps.
    assert [len(files) for files in sessions.values()] == [2, 2]
    found = [[row["step"] for row in stepscope.load(path).steps().rows] for path in sessions[max(sessions)]]
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_run_watches_an_unmodified_script(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(programs.SCRIPT)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "stepscope",
            "run",
            "--logdir",
            tmp_path / "logs",
            "--watch-options",
            "slow_factor=30",
            script,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "Step 60 took" in done.stderr
    assert "train.py:3 load_batch` is 1," in done.stderr
    assert "kept; more: stepscope over-time" in done.stderr
    assert profiles(tmp_path / "logs")


def test_the_environment_asks_for_a_watch():
    found = Settings.from_environment({"STEPSCOPE_LOGDIR": "logs", "STEPSCOPE_WATCH": "ring=60s"})
    off = Settings.from_environment({"STEPSCOPE_LOGDIR": "logs", "STEPSCOPE_WATCH": "0"})
    both = Settings.from_environment({"STEPSCOPE_LOGDIR": "logs", "STEPSCOPE_WATCH": "1", "STEPSCOPE_STEPS": "4"})

    assert (found.watch, found.steps) == ("ring=60s", 0)
    assert (off.watch, off.steps) == ("", 10)
    assert (both.watch, both.steps) == ("1", 4)
    assert found.to_environment()["STEPSCOPE_WATCH"] == "ring=60s"
