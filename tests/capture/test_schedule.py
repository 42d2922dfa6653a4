"""Schedules, and the loops that follow them."""

from __future__ import annotations

import logging
import weakref
from types import SimpleNamespace

import pytest

from stepscope import capture as profiler
from stepscope.capture import schedule_runner
from stepscope.capture.schedules import Action, batches

LETTERS = {"NONE": ".", "WARMUP": "w", "RECORD": "r", "RECORD_AND_SAVE": "S"}

SCHEDULES = [
    ({"active": 1}, "SSSSSS"),
    ({"active": 3}, "rrSrrS"),
    ({"wait": 2, "active": 2, "repeat": 1}, "..rS......"),
    ({"wait": 1, "warmup": 1, "active": 2}, ".wrS.wrS.wrS"),
    ({"wait": 1, "warmup": 1, "active": 2, "repeat": 2}, ".wrS.wrS...."),
    ({"wait": 1, "warmup": 1, "active": 1, "skip_first": 2, "repeat": 1}, "...wS..."),
]


def drawn(schedule, count: int) -> str:
    return "".join(LETTERS[schedule(step).name] for step in range(count))


@pytest.mark.parametrize(("given", "expected"), SCHEDULES)
def test_a_schedule_says_what_each_step_is_for(given, expected):
    assert drawn(profiler.schedule(**given), len(expected)) == expected


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
@pytest.mark.parametrize(("given", "expected"), SCHEDULES)
def test_pytorch_says_the_same(given, expected):
    torch = pytest.importorskip("torch")
    native = torch.profiler.schedule(**{"wait": 0, "warmup": 0, **given})

    assert drawn(native, len(expected)) == expected
    assert [Action.from_any(native(step)) for step in range(9)] == [
        profiler.schedule(**given)(step) for step in range(9)
    ]


def test_numbers_that_make_no_sense_are_mended_and_told(caplog):
    with caplog.at_level(logging.WARNING, "stepscope"):
        assert drawn(profiler.schedule(wait=-1, active=0), 3) == "SSS"
    assert [record.message for record in caplog.records] == [
        "schedule(wait=-1) is too small; 0 is used",
        "schedule(active=0) is too small; 1 is used",
    ]


def test_a_range_of_batches_is_one_capture():
    assert drawn(batches(2, 4), 7) == "..rrS.."


def follow(schedule, steps: int) -> profiler.Profile:
    with profiler.Profile("logs", schedule=schedule) as profile:
        for _ in range(steps):
            profile.step()
    return profile


def test_each_cycle_is_a_capture_of_its_own_and_every_step_of_it_is_marked(fake_recorder):
    profile = follow(profiler.schedule(wait=1, active=2, repeat=2), steps=8)

    assert fake_recorder.said() == ("start mark-1 end-1 mark-2 end-2 save start mark-4 end-4 mark-5 end-5 save")
    assert [str(path) for path in profile.paths] == ["profile-1", "profile-2"]
    assert str(profile.path) == "profile-2"


@pytest.mark.parametrize(
    ("schedule", "steps", "said"),
    [
        # A warm-up runs the tracer and throws its record away.
        (profiler.schedule(warmup=2, active=1, repeat=1), 4,
         "start mark-0 end-0 mark-1 end-1 discard start mark-2 end-2 save"),
        # The loop ends early, within what is recorded or within the warm-up: the step that never ran does not count.
        (profiler.schedule(active=5), 2, "start mark-0 end-0 mark-1 end-1 mark-2 save"),
        (profiler.schedule(warmup=5, active=1), 1, "start mark-0 end-0 mark-1 discard"),
        # Cycles may follow each other without a step between.
        (profiler.schedule(active=1, repeat=2), 3, "start mark-0 end-0 save start mark-1 end-1 save"),
        # A schedule of anybody will do.
        (lambda step: SimpleNamespace(name="RECORD_AND_SAVE" if step == 1 else "NONE"), 3, "start mark-1 end-1 save"),
    ],
)  # fmt: skip
def test_what_a_schedule_records_is_saved_or_thrown_away(fake_recorder, schedule, steps, said):
    profile = follow(schedule, steps)

    assert fake_recorder.said() == said
    assert (profile.path is None) == said.endswith("discard")


def test_steps_that_are_not_recorded_tell_what_profiling_costs_the_others(fake_recorder, monkeypatch):
    now, noted = [1000], []
    monkeypatch.setattr(schedule_runner, "time", SimpleNamespace(perf_counter_ns=lambda: now[0]))
    monkeypatch.setattr(schedule_runner.cost.LENGTHS, "note", lambda ns, recording: noted.append((ns, recording)))
    with profiler.Profile("logs", schedule=profiler.schedule(wait=3, warmup=1, active=1, repeat=1)) as profile:
        for length in (10, 20, 30, 40, 50, 60):  # the fourth warms up, the fifth is recorded: their marks tell
            now[0] += length
            profile.step()
        now[0] += 70  # no step

    assert noted == [(10, False), (20, False), (30, False), (60, False)]


def test_an_exception_of_the_loop_leaves_unchanged_and_what_was_recorded_is_saved(fake_recorder):
    with pytest.raises(KeyError, match="mine"), profiler.Profile("logs", schedule=profiler.schedule(active=3)) as p:
        p.step()
        raise KeyError("mine")

    assert fake_recorder.said() == "start mark-0 end-0 mark-1 save"


def test_a_start_that_fails_is_tried_again_with_the_next_cycle_only(fake_recorder):
    fake_recorder.fails = True

    follow(profiler.schedule(wait=1, active=3, repeat=2), steps=8)

    assert fake_recorder.said() == "refuse refuse"


def test_a_capture_that_lacks_one_of_our_own_tracers_is_marked_and_ended_like_any_other(fake_recorder):
    fake_recorder.lacks = True

    follow(profiler.schedule(wait=1, active=1, repeat=1), 3)

    assert fake_recorder.said() == "start mark-1 end-1 save"


def test_a_capture_that_the_program_stops_itself_is_let_go(fake_recorder):
    with profiler.Profile("logs", schedule=profiler.schedule(active=2)) as profile:
        fake_recorder.stop(save=False)
        profile.step()
        profile.step()

    assert fake_recorder.said() == "start mark-0 discard end-0 mark-1 end-1 start mark-2 save"


def test_who_wants_to_know_is_told_of_each_profile(fake_recorder):
    told = []
    with profiler.Profile("logs", schedule=profiler.schedule(active=1, repeat=2), on_saved=told.append) as profile:
        for _ in range(3):
            profile.step()

    assert sorted(map(str, told)) == ["profile-1", "profile-2"]  # each is saved on a thread of its own


def test_a_schedule_that_raises_does_not_reach_the_loop(fake_recorder):
    def schedule(step):
        raise KeyError(step)

    follow(schedule, steps=2)

    assert profiler.last_error() is not None
    assert "following the schedule failed" in str(profiler.last_error())


def test_a_schedule_that_fails_is_told_once_and_what_was_recorded_until_then_is_saved(fake_recorder, caplog):
    follow(lambda step: ("NONE", "RECORD", "RECORD", "MAYBE")[min(step, 3)], steps=7)

    assert fake_recorder.said() == "start mark-1 end-1 mark-2 end-2 save"
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "[usage] the schedule returned 'MAYBE', which is not an action"
    ]


def test_step_without_a_schedule_says_what_to_do(fake_recorder, monkeypatch, caplog):
    profile = profiler.Profile("logs")
    with caplog.at_level(logging.WARNING, "stepscope"):
        profile.step()

    assert "stepscope.step(number)" in caplog.text


def test_the_mark_of_a_step_that_the_loops_end_cuts_short_outlives_the_capture(fake_recorder):
    loop = schedule_runner.ScheduleRunner("logs", None, lambda step: Action.RECORD)
    loop.start_step()
    mark = weakref.ref(loop._mark)

    loop.finish()
    assert mark() is not None, "freeing it would end it while the framework's profiler still stops"

    loop.start_step()
    assert mark() is None
    loop.cancel()
