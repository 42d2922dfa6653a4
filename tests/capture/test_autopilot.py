"""What is captured of a program that says nothing about it: steps that finders tell of, or a time window."""

from __future__ import annotations

import _imp
import itertools
import re
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from fake_recorder import FakeCapture

from stepscope.capture import cost, job, report
from stepscope.capture.auto import autopilot as auto
from stepscope.capture.auto.autopilot import Autopilot
from stepscope.capture.auto.ledger import Captured, Ledger
from stepscope.capture.auto.settings import Settings
from stepscope.capture.job import Worker, this_worker
from stepscope.capture.own_threads import OwnTimer
from stepscope.capture.proving import deadlines
from stepscope.capture.steps.finding import FINDERS
from stepscope.capture.steps.step_loop import CALLS, DIFFERENTIATED, LOADED, MARKED, OPTIMIZED, StepLoop, StepSource

OPTIMIZER = StepSource(OPTIMIZED, "optimizer.step()", "a")
LOADER = StepSource(LOADED, "batches", "b")
SMALL, LARGE = StepSource(CALLS, "small", "s", size=1), StepSource(CALLS, "large", "l", size=9)


@pytest.fixture(autouse=True)
def no_framework(monkeypatch, fake_recorder):
    """A program that has imported none, whatever this process has."""
    for name in FINDERS:
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.fixture
def watch(fake_recorder):
    """Makes watchers, and ends them with the test."""
    made = []

    def make(steps=2, skip=1, **others) -> Autopilot:
        loop = StepLoop(itertools.count().__next__)  # each report takes as long as any other
        made.append(Autopilot(Settings("logs", steps=steps, skip=skip, seconds=60, **others), loop=loop))
        loop.add(made[-1])
        return made[-1]

    yield make
    for autopilot in made:
        autopilot.finish()


def steps(autopilot: Autopilot, *sources: StepSource) -> None:
    for source in sources:
        autopilot._loop.end_step(source)


def test_a_framework_may_be_imported_where_no_more_threads_can_be_had(watch, monkeypatch):
    def refuse(timer: OwnTimer) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(OwnTimer, "start", refuse)
    autopilot = watch()

    autopilot.expect_framework("torch")

    assert "can't create new thread" in str(report.last_error())
    assert autopilot.active


LOOPS = [
    # steps, skipped, who ends a step; what the recorder is told, what is said
    # The first end is that of step 0, whose beginning nobody saw.
    (2, 2, [OPTIMIZER] * 9, "start mark-2 end-2 mark-3 end-3 save", "steps 2-3"),
    (1, 0, [OPTIMIZER] * 4, "start mark-1 end-1 save", "step 1"),
    (2, 2, [LOADER, OPTIMIZER] * 5, "start mark-2 end-2 mark-3 end-3 save", "steps 2-3"),  # the surest source counts
    (2, 1, [LOADER, *[LOADER, OPTIMIZER] * 5],  # it comes late
     "start mark-1 end-1 mark-2 discard start mark-1 end-1 mark-2 end-2 save", "steps 1-2"),
    (9, 1, [OPTIMIZER] * 3, "start mark-1 end-1 mark-2 end-2 mark-3 save", "steps 1-2"),  # the program ends
]  # fmt: skip


@pytest.mark.parametrize(("count", "skip", "sources", "said", "captured"), LOOPS)
def test_a_loop_is_captured_as_its_steps_end(watch, fake_recorder, count, skip, sources, said, captured):
    autopilot = watch(steps=count, skip=skip)

    steps(autopilot, *sources)
    assert bool(autopilot.outcome) == (len(sources) > count)  # else it goes on until the program ends
    autopilot.finish()

    assert fake_recorder.said() == said
    assert autopilot.outcome == f"captured {captured} (optimizer.step())"


FUNCTIONS = {
    "the largest counts though another is called more often": ([SMALL, SMALL, SMALL, LARGE] * 5, "large"),
    "a step after many moves is not given up during the next": ([*[SMALL] * 64, LARGE] * 5, "large"),
    "one that is called no more is given up": ([LARGE, *[SMALL] * 60], "small"),
}


@pytest.mark.parametrize(("sources", "name"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_of_functions_one_is_the_step(watch, sources, name):
    autopilot = watch()

    steps(autopilot, *sources)

    assert autopilot.outcome == f"captured steps 1-2 ({name})"


OTHER = StepSource(OPTIMIZED, "another optimizer", "o")
BY_HAND = StepSource(DIFFERENTIATED, "backward()")
SKIPPED = (
    "nothing was captured: the program ran 3 steps (optimizer.step()) and the first 5 are skipped; skip fewer (--skip)"
)

PHASES = {
    "three updates of an optimizer, then steps by hand":
        ([OPTIMIZER] * 3 + [BY_HAND] * 1522, "captured steps 5-8 (backward())"),
    "a warm-up by another optimizer": ([OTHER] * 3 + [OPTIMIZER] * 90, "captured steps 5-8 (optimizer.step())"),
    "a pretraining of some moments, then fine-tuning":
        ([OPTIMIZER] * 99 + [OTHER] * 200, "captured steps 5-8 (another optimizer)"),
    "evaluation between epochs":
        (([OPTIMIZER] * 4 + [LOADER] * 40) * 5, "captured steps 5-8 (optimizer.step())"),
    "evaluation after a training that was shorter than asked for":
        ([OPTIMIZER] * 7 + [LOADER] * 200, "captured steps 5-6 (optimizer.step())"),
    "two optimizers in turn": ([OPTIMIZER, OTHER] * 20, "captured steps 5-8 (optimizer.step())"),
    "five updates of a critic for one of the generator":
        ([*[OPTIMIZER] * 5, OTHER] * 9, "captured steps 5-8 (optimizer.step())"),
    "a loop that ends before the first step that is wanted": ([OPTIMIZER] * 3, SKIPPED),
    "and an evaluation after it": ([OPTIMIZER] * 3 + [LOADER] * 40, SKIPPED),
}  # fmt: skip


@pytest.mark.parametrize(("sources", "outcome"), PHASES.values(), ids=PHASES)
def test_of_a_program_in_phases_the_steps_of_its_training_are_captured(watch, sources, outcome):
    autopilot = watch(steps=4, skip=5)

    steps(autopilot, *sources)
    autopilot.finish()

    assert autopilot.outcome == outcome


def test_of_a_pretraining_of_minutes_and_a_fine_tuning_the_first_is_captured(watch, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    autopilot = watch(steps=4, skip=5)

    for source in [OPTIMIZER] * 99 + [OTHER] * 200:
        steps(autopilot, source)
        now[0] += 1.0

    assert autopilot.outcome == "captured steps 5-8 (optimizer.step())"


@pytest.mark.parametrize(("step_s", "captured"), [(0.03, "2-12"), (0.1, "2-6"), (1.0, "2-5")])
def test_short_steps_are_captured_for_a_while(watch, monkeypatch, step_s, captured):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(auto, "_queued_s", lambda: 0.0)  # of the real machine, which would make the capture longer
    autopilot = watch(steps=4, skip=2, least_seconds=0.25)

    for _ in range(40):
        autopilot._loop.end_step(OPTIMIZER)
        now[0] += step_s

    assert autopilot.outcome == f"captured steps {captured} (optimizer.step())"


@pytest.mark.parametrize(("core_share", "captured"), [(1.0, "2-12"), (0.5, "2-20"), (0.0, "2-79")])
def test_time_without_a_free_core_does_not_shorten_a_capture_but_for_a_limit(watch, monkeypatch, core_share, captured):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(auto, "_queued_s", lambda: (1.0 - core_share) * now[0])
    autopilot = watch(steps=4, skip=2, least_seconds=0.25)

    for _ in range(100):
        autopilot._loop.end_step(OPTIMIZER)
        now[0] += 0.03

    assert autopilot.outcome == f"captured steps {captured} (optimizer.step())"


class GroupOfTwo:
    """`torch.distributed.distributed_c10d` of a program that names its ranks itself."""

    def is_initialized(self) -> bool:
        return True

    def get_world_size(self) -> int:
        return 2

    def get_rank(self) -> int:
        return 1


def test_ranks_end_their_captures_with_the_same_step(watch, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.distributed.distributed_c10d", GroupOfTwo())
    monkeypatch.setattr(job.LAUNCH, "name", "/logs/children-7")
    autopilot = watch(steps=4, skip=2, least_seconds=60.0)

    steps(autopilot, *[OPTIMIZER] * 40)

    assert autopilot.outcome == "captured steps 2-5 (optimizer.step())"
    assert this_worker() == Worker(1, "/logs/children-7")


@pytest.mark.parametrize(
    ("least_seconds", "captured"),
    [(0.25, "2-6"), (0.0, "2-11")],  # the user named the number of steps: they are captured
)
def test_steps_with_very_many_events_are_captured_a_few_times(watch, monkeypatch, least_seconds, captured):
    autopilot = watch(steps=10, skip=2, least_seconds=least_seconds)
    monkeypatch.setattr(FakeCapture, "events", 200_000)

    steps(autopilot, *[OPTIMIZER] * 40)

    assert autopilot.outcome == f"captured steps {captured} (optimizer.step())"


def test_the_lengths_of_a_small_function_are_not_those_of_the_step(watch, monkeypatch):
    monkeypatch.setattr(cost, "LENGTHS", cost.StepLengths())
    autopilot = watch(skip=9)

    steps(autopilot, *[SMALL] * 8, LARGE, LARGE)

    assert cost.LENGTHS.facts()["steps_before"] == 0


def test_steps_that_the_program_marks_count_before_all_and_are_not_marked_again(watch, fake_recorder):
    autopilot = watch(steps=2, skip=1)

    for number in range(5):
        autopilot._loop.mark_step(number)
        autopilot._loop.end_step(OPTIMIZER)

    assert fake_recorder.said() == "start save"
    assert autopilot.outcome == "captured steps 1-2 (as the program marks them)"
    assert MARKED.rank > OPTIMIZER.rank


def test_a_capture_that_cannot_start_is_told(watch, fake_recorder):
    fake_recorder.fails = True
    autopilot = watch()

    steps(autopilot, *[OPTIMIZER] * 9)

    assert autopilot.outcome == "nothing was captured: [busy] no"
    assert fake_recorder.said() == "refuse"


def test_a_program_without_a_framework_is_captured_from_its_beginning(watch, fake_recorder):
    autopilot = watch()
    autopilot.watch_from_here(at_once=True)
    autopilot.finish()

    assert fake_recorder.said() == "start save"
    assert re.fullmatch(
        r"no step was found; a window of \d+\.\d s was captured instead, with the calls of Python functions of 10 us "
        r"or more; `with stepscope.step\(i\):` around the loop's body marks steps",
        autopilot.outcome,
    )


def test_a_window_of_a_program_with_a_framework_holds_what_was_asked_for(watch, fake_recorder, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", object())
    autopilot = watch()
    autopilot.watch_from_here(at_once=False)
    autopilot.run_on_main(autopilot._open_window)  # its patience is over
    autopilot.finish()

    assert fake_recorder.said() == "start save"
    assert re.fullmatch(r"no step was found; a window of \d+\.\d s was captured instead", autopilot.outcome)


@pytest.mark.parametrize(("core_share", "patience_s"), [(1.0, 30), (0.5, 60), (0.0, 60)])
def test_patience_lasts_as_long_as_the_program_waits_for_a_free_core_but_for_a_limit(
    watch, fake_recorder, monkeypatch, core_share, patience_s
):
    monkeypatch.setitem(sys.modules, "jax", object())
    now, due = [100.0], [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(auto, "_queued_s", lambda thread: (1.0 - core_share) * now[0])
    autopilot = watch(patience=30.0)
    monkeypatch.setattr(autopilot, "_run_later", lambda seconds, work, on_main=True: due.append(now[0] + seconds))

    autopilot.watch_from_here(at_once=False)
    due.append(now[0] + 30.0)
    while not fake_recorder.said():
        now[0] = due[-1]
        autopilot._run_exclusively(autopilot._open_window_unless_launcher)

    assert now[0] - 100.0 == pytest.approx(patience_s, abs=1.0)
    assert autopilot._window.own_facts == {"steps_awaited_s": pytest.approx(patience_s, abs=1.0)}


def test_a_framework_that_is_imported_ends_that_for_its_steps_are_to_come(watch, fake_recorder):
    autopilot = watch()
    autopilot.watch_from_here(at_once=True)
    autopilot.expect_framework("torch")

    assert fake_recorder.said() == "start discard"


def test_steps_are_worth_more_than_a_window(watch, fake_recorder):
    autopilot = watch(steps=1, skip=1)
    autopilot.watch_from_here(at_once=True)

    steps(autopilot, *[OPTIMIZER] * 3)

    assert fake_recorder.said() == "start discard start mark-1 end-1 save"


def test_steps_take_the_place_of_a_window_that_was_saved_before_them(watch, fake_recorder):
    autopilot = watch(steps=1, skip=1)
    autopilot.watch_from_here(at_once=True)
    autopilot._run_exclusively(autopilot._close_window)
    steps(autopilot, *[OPTIMIZER] * 3)
    autopilot.finish()

    assert fake_recorder.said() == "start save start mark-1 end-1 save"
    assert [path.name for path in autopilot.paths] == ["profile-2"]


def test_a_job_that_waits_for_its_signal_captures_nothing_before(watch, fake_recorder):
    autopilot = watch(steps=0)
    autopilot.watch_from_here(at_once=False)
    steps(autopilot, *[OPTIMIZER] * 5)

    assert fake_recorder.said() == ""


def test_a_request_captures_the_next_steps(watch, fake_recorder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", object())
    autopilot = watch(steps=0)

    autopilot.request()
    steps(autopilot, *[OPTIMIZER] * 12)

    assert fake_recorder.said().startswith("start mark-")
    first, last = map(int, re.findall(r"\d+", autopilot.outcome))
    assert autopilot.outcome.startswith("captured steps ")
    assert last - first == 9


def test_a_second_request_ends_the_capture_with_the_step(watch, fake_recorder):
    autopilot = watch(steps=9, skip=1)
    steps(autopilot, *[OPTIMIZER] * 2)

    autopilot.request()
    steps(autopilot, *[OPTIMIZER] * 3)

    assert fake_recorder.said() == "start mark-1 end-1 mark-2 end-2 save"


def test_a_request_ends_a_capture_that_goes_on_since_steps_are_short(watch, fake_recorder):
    autopilot = watch(steps=2, skip=1, least_seconds=60.0)
    steps(autopilot, *[OPTIMIZER] * 5)

    autopilot.request()
    steps(autopilot, *[OPTIMIZER] * 3)

    assert autopilot.outcome == "captured steps 1-5 (optimizer.step())"


def test_requests_in_a_program_without_steps_begin_and_end_a_window(watch, fake_recorder):
    autopilot = watch(steps=0)

    autopilot.request()
    assert fake_recorder.said() == "start"
    autopilot.request()
    assert fake_recorder.said() == "save"
    autopilot.request()
    assert fake_recorder.said() == "start"


def test_a_request_waits_until_no_import_holds_the_lock_of_all_imports(watch, fake_recorder, monkeypatch):
    """Another thread may hold the lock of a module that the capture needs, and wait for that one."""
    autopilot, asked = watch(steps=0), []
    monkeypatch.setattr(autopilot, "_ask_main", lambda: asked.append("again") or True)
    _imp.acquire_lock()
    try:
        autopilot.request()
        assert (asked, fake_recorder.said()) == (["again"], "")
    finally:
        _imp.release_lock()

    autopilot.serve()

    assert fake_recorder.said() == "start"


def test_a_request_does_not_touch_a_capture_of_the_programs_own(watch, fake_recorder):
    autopilot = watch(steps=0)
    fake_recorder.start("theirs")

    autopilot.request()

    assert fake_recorder.said() == "start"


def test_stop_after_ends_the_program_once_the_capture_is_saved(watch, fake_recorder):
    autopilot = watch(steps=2, skip=1, stop_after=True)

    with pytest.raises(SystemExit) as end:
        steps(autopilot, *[OPTIMIZER] * 9)

    assert end.value.code == 0
    assert fake_recorder.said() == "start mark-1 end-1 mark-2 end-2 save"


def test_a_capture_that_cannot_start_ends_a_program_that_runs_for_it(watch, fake_recorder):
    fake_recorder.fails = True
    steps(watch(stop_after=False), *[OPTIMIZER] * 9)

    with pytest.raises(SystemExit) as end:
        steps(watch(stop_after=True), *[OPTIMIZER] * 9)

    assert end.value.code == 1


def test_stop_after_awaits_the_update_that_follows_many_short_calls(watch, fake_recorder):
    autopilot = watch(steps=2, skip=0, least_seconds=0.1, stop_after=True)
    while not autopilot.outcome:
        steps(autopilot, SMALL)

    assert fake_recorder.said().endswith("save")
    while "(large)" not in autopilot.outcome:
        steps(autopilot, LARGE)


def test_a_step_that_another_thread_ends_meanwhile_neither_waits_nor_breaks(watch, fake_recorder):
    autopilot = watch(steps=1, skip=0)
    autopilot._inside.acquire()
    thread = threading.Thread(target=steps, args=(autopilot, *[OPTIMIZER] * 3))
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    autopilot._inside.release()

    assert fake_recorder.said() == ""


def test_a_forked_child_captures_its_own_steps_and_is_never_ended(watch, fake_recorder):
    autopilot = watch(steps=1, skip=1, stop_after=True)
    steps(autopilot, OPTIMIZER)

    fake_recorder.capture = None
    autopilot._loop.forget()
    autopilot.forget_parent()
    fake_recorder.said()
    steps(autopilot, *[OPTIMIZER] * 4)

    assert fake_recorder.said() == "start mark-1 end-1 save"


def test_where_the_program_is_to_end_with_the_capture_its_ranks_end_themselves(watch, monkeypatch):
    monkeypatch.setattr(auto, "this_worker", lambda: Worker(1, "job"))
    autopilot = watch(steps=2, skip=1, stop_after=True)
    autopilot.forget_parent()

    with pytest.raises(SystemExit) as end:
        steps(autopilot, *[OPTIMIZER] * 9)

    assert end.value.code == 0


@pytest.fixture
def launcher(tmp_path, fake_recorder):
    """The autopilot of a program one of whose processes has captured steps."""
    ledger = Ledger.create(str(tmp_path))
    Ledger.from_text(ledger.to_text()).add("3 steps captured", tmp_path / "rank0.xplane.pb")
    made = Autopilot(Settings(str(tmp_path), seconds=60, patience=60), ledger=ledger)
    yield made
    made.finish()


def test_a_launcher_gets_no_time_window(launcher, fake_recorder):
    launcher._open_window_unless_launcher()

    assert fake_recorder.said() == ""


def test_a_time_window_that_runs_when_a_process_has_captured_is_thrown_away(launcher, fake_recorder):
    launcher.watch_from_here(at_once=True)
    launcher.finish()

    assert fake_recorder.said() == "start discard"


def test_a_launcher_that_is_asked_for_a_time_window_keeps_it(launcher, fake_recorder):
    launcher.request()
    launcher.request()
    launcher.remove_window()

    assert fake_recorder.said() == "start save"
    assert [path.name for path in launcher.paths] == ["profile-1"]


def test_a_launcher_that_waits_for_ranks_that_have_ended_ends_as_well(launcher, monkeypatch):
    ended, later = [], []
    monkeypatch.setattr(deadlines, "end_process_by_deadline", lambda: ended.append("by a deadline"))
    monkeypatch.setattr(launcher, "_run_later", lambda seconds, work, on_main=True: later.append(work))
    launcher._settings = replace(launcher._settings, stop_after=True)

    launcher._run_exclusively(launcher._open_window_unless_launcher)
    assert ended == []
    with pytest.raises(SystemExit) as end:
        launcher._run_exclusively(later.pop())

    assert (ended, end.value.code) == (["by a deadline"], 0)


def test_a_line_that_was_cut_short_counts_for_nothing(tmp_path):
    ledger = Ledger.create(str(tmp_path))
    ledger.add("3 steps captured")
    (file,) = ledger.folder.iterdir()
    with file.open("a") as lines:
        lines.write('{"outcome": "4 ste\n[1]\n{"outcome": "x", "profile": 3}\n')
    ledger.add("5 steps captured", tmp_path / "rank1.xplane.pb")

    assert ledger.entries() == [
        Captured("3 steps captured"),
        Captured("5 steps captured", tmp_path / "rank1.xplane.pb"),
    ]


def test_processes_of_a_program_write_down_what_they_captured(tmp_path):
    ledger = Ledger.create(str(tmp_path))
    child = Ledger.from_text(ledger.to_text())

    child.add("1 step captured", tmp_path / "é.xplane.pb")
    child.add("nothing was captured")

    assert ledger.entries() == [Captured("1 step captured", tmp_path / "é.xplane.pb"), Captured("nothing was captured")]
    ledger.remove()
    assert ledger.entries() == []


def test_nothing_is_written_down_for_a_logdir_on_another_machine():
    ledger = Ledger.create("gs://bucket/logs")
    ledger.add("1 step captured")

    assert (ledger.entries(), Ledger.from_text(ledger.to_text())) == ([], Ledger())


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"STEPSCOPE_LOGDIR": "/logs"}, Settings("/logs")),
        (
            {"STEPSCOPE_LOGDIR": "/logs", "STEPSCOPE_STEPS": "0", "STEPSCOPE_SECONDS": "2.5"},
            Settings("/logs", steps=0, seconds=2.5),
        ),
        ({"STEPSCOPE_LOGDIR": "/logs", "STEPSCOPE_STEPS": "many", "STEPSCOPE_SKIP": "-1"}, Settings("/logs")),
        ({"STEPSCOPE_LOGDIR": "/logs", "STEPSCOPE_STOP_AFTER": "1"}, Settings("/logs", stop_after=True)),
    ],
    ids=["nothing", "logdir", "numbers", "no numbers", "stop after"],
)
def test_the_environment_says_what_to_capture(environment, expected):
    assert Settings.from_environment(environment) == expected


@pytest.mark.parametrize(
    ("logdir", "told"),
    [
        ("gs://bucket/logs", "gs://bucket/logs"),
        ("file:///logs", "/logs"),
        ("/a/b", "/a/b"),
        ("~/logs", "/home/me/logs"),
    ],
)
def test_children_write_to_the_logdir_wherever_they_work(logdir, told, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")

    assert Settings(logdir).to_environment()["STEPSCOPE_LOGDIR"] == told


def test_what_is_no_number_in_the_environment_is_told_and_ignored(caplog):
    settings = Settings.from_environment({"STEPSCOPE_LOGDIR": "logs", "STEPSCOPE_SECONDS": "nan"})

    assert settings == Settings("logs")
    assert caplog.messages == ["STEPSCOPE_SECONDS=nan is not a number of at least 0; it is ignored"]


def test_samples_are_kept_of_a_program_that_ends_before_its_time_window(watch, fake_recorder, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", object())
    autopilot = watch(patience=30.0)
    autopilot.watch_from_here(at_once=False)
    autopilot._run_exclusively(autopilot._open_samples)  # a second is over
    autopilot.finish()

    assert fake_recorder.said() == "start save"
    assert re.fullmatch(r"no step was found; samples of the stacks over \d+\.\d s were kept instead", autopilot.outcome)


class FakeModule:
    def _call_impl(self, work):
        return work()


@pytest.mark.parametrize(
    ("looks", "optimizers", "said"),
    [
        # What runs at each look, and whether the program has made an optimizer; what the recorder is told.
        (["model", "model"], 0, "start discard start"),  # the samples, then the window
        (["model"], 0, "start"),
        (["model", "other", "model"], 0, "start"),
        (["model", "model"], 1, "start"),
    ],
)
def test_a_model_that_nothing_trains_is_not_awaited(watch, fake_recorder, monkeypatch, looks, optimizers, said):
    base = type("Optimizer", (), {})
    kept = [type("Sgd", (base,), {"step": SimpleNamespace(hooked=True)}) for _ in range(optimizers)]
    for name, module in (("torch", {}), ("torch.optim", {"Optimizer": base}), ("torch.nn", {"Module": FakeModule})):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**module))
    autopilot = watch(patience=30.0)
    autopilot.watch_from_here(at_once=False)
    autopilot._run_exclusively(autopilot._open_samples)

    for runs in looks:
        look = lambda: autopilot.run_on_main(autopilot._look_for_model)  # noqa: E731
        FakeModule()._call_impl(look) if runs == "model" else look()

    assert (fake_recorder.said(), len(kept)) == (said, optimizers)


def test_a_training_that_follows_an_early_window_takes_its_place(watch, fake_recorder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    monkeypatch.setattr("stepscope.capture.steps.torch.runs_untrained_model", lambda: True)
    autopilot = watch(steps=1, skip=1, patience=30.0, stop_after=True)
    autopilot.watch_from_here(at_once=False)
    for _ in range(2):
        autopilot._run_exclusively(autopilot._look_for_model)
    autopilot._run_exclusively(autopilot._close_window)

    with pytest.raises(SystemExit):
        steps(autopilot, *[OPTIMIZER] * 3)

    assert fake_recorder.said() == "start save start mark-1 end-1 save"
    assert [path.name for path in autopilot.paths] == ["profile-2"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (lambda autopilot: steps(autopilot, OPTIMIZER, OPTIMIZER), "start discard start mark-1"),
        (lambda autopilot: autopilot.run_on_main(autopilot._open_window), "start discard start"),
    ],
    ids=["steps", "time window"],
)
def test_steps_and_the_time_window_are_worth_more_than_samples(watch, fake_recorder, monkeypatch, more, said):
    monkeypatch.setitem(sys.modules, "jax", object())
    autopilot = watch(patience=30.0)
    autopilot._run_exclusively(autopilot._open_samples)

    more(autopilot)

    assert fake_recorder.said().startswith(said)


def test_no_time_window_starts_while_a_program_is_traced(watch, fake_recorder, monkeypatch):
    tracing = [True]
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(executing_eagerly=lambda: not tracing[0]))
    monkeypatch.delitem(sys.modules, "jax._src.core", raising=False)
    monkeypatch.delitem(sys.modules, "torch.compiler", raising=False)
    autopilot = watch()

    autopilot.run_on_main(autopilot._open_window)
    assert fake_recorder.said() == ""
    tracing[0] = False
    autopilot.run_on_main(autopilot._open_window)
    assert fake_recorder.said() == "start"


def test_what_a_launcher_evaluates_is_not_captured_beside_the_training_of_its_processes(launcher, fake_recorder):
    loop = StepLoop()
    launcher._loop = loop
    loop.add(launcher)

    steps(launcher, *[LOADER] * 40)
    assert fake_recorder.said() == ""
    steps(launcher, *[OPTIMIZER] * 40)
    assert "captured steps" in launcher.outcome
