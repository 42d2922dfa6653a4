"""The states of a process that captures, and what leads from one to the other."""

from __future__ import annotations

import threading

import pytest

from stepscope.capture.state import CaptureState, State
from stepscope.errors import CaptureError

FAILURE = CaptureError("no room")


class FakeCapture:
    def __init__(self) -> None:
        self.finished = threading.Event()
        self.abandoned = False

    def abandon(self) -> None:
        self.abandoned = True


@pytest.fixture
def state() -> CaptureState:
    return CaptureState()


def bring_to(state: CaptureState, wanted: State) -> FakeCapture:
    """Brings a fresh process into a state; returns the capture that took part."""
    one = FakeCapture()
    if wanted in (State.RECORDING, State.ENDED_EARLY):
        state.begin(one)
    if wanted is State.ENDED_EARLY:
        state.end(one, early=True)
    if wanted is State.START_FAILED:
        state.fail(FAILURE)
    assert state.current is wanted
    return one


BEFORE_AND_AFTER = {
    "begin": {
        State.IDLE: State.RECORDING,
        State.ENDED_EARLY: State.RECORDING,
        State.START_FAILED: State.RECORDING,
    },
    "end": {
        State.IDLE: State.IDLE,
        State.RECORDING: State.IDLE,
        State.ENDED_EARLY: State.ENDED_EARLY,
        State.START_FAILED: State.START_FAILED,
    },
    "end_early": {
        State.IDLE: State.IDLE,
        State.RECORDING: State.ENDED_EARLY,
        State.ENDED_EARLY: State.ENDED_EARLY,
        State.START_FAILED: State.START_FAILED,
    },
    "acknowledge": {
        State.IDLE: State.IDLE,
        State.RECORDING: State.RECORDING,
        State.ENDED_EARLY: State.IDLE,
        State.START_FAILED: State.START_FAILED,
    },
    "fail": {
        State.IDLE: State.START_FAILED,
        State.RECORDING: State.RECORDING,
        State.ENDED_EARLY: State.START_FAILED,
        State.START_FAILED: State.START_FAILED,
    },
    "forget_parent": dict.fromkeys(State, State.IDLE),
}


@pytest.mark.parametrize(
    ("event", "before", "after"),
    [(event, before, after) for event, states in BEFORE_AND_AFTER.items() for before, after in states.items()],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_each_event_leads_to_one_state(state, event, before, after):
    one = bring_to(state, before)

    {
        "begin": lambda: state.begin(FakeCapture()),
        "end": lambda: state.end(one),
        "end_early": lambda: state.end(one, early=True),
        "acknowledge": state.acknowledge,
        "fail": lambda: state.fail(FAILURE),
        "forget_parent": state.forget_parent,
    }[event]()

    assert state.current is after
    assert (state.recording is not None) == (after is State.RECORDING)
    assert state.failure is (FAILURE if after is State.START_FAILED else None)


def test_only_the_capture_that_records_ends_and_only_once(state):
    first = bring_to(state, State.RECORDING)

    assert [state.end(FakeCapture()), state.end(first), state.end(first)] == [False, True, False]


def test_a_capture_that_ended_early_is_acknowledged_once(state):
    early = bring_to(state, State.ENDED_EARLY)

    assert [state.acknowledge(), state.acknowledge()] == [early, None]


def test_a_capture_is_exporting_until_its_files_are_written(state):
    one = FakeCapture()

    state.export_begins(one)
    exporting = state.exporting
    state.export_ended(one)

    assert (exporting, state.exporting) == ([one], [])
    assert one.finished.is_set()


def test_a_forked_child_has_no_capture_and_a_lock_of_its_own(state):
    parents, lock = bring_to(state, State.RECORDING), state.lock
    lock.acquire()  # by a thread that the child does not have

    state.forget_parent()

    assert parents.abandoned
    assert state.lock is not lock
    assert state.exporting == []
