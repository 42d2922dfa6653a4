"""The one recorder of a process: what each call leads to, after any other."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from stepscope.capture import recorder, report
from stepscope.errors import CaptureError


class FakeCapture:
    """One capture that records nothing."""

    name, target, is_bound_to_thread, yields, is_written = "host", None, False, False, True
    options = SimpleNamespace(strict=False)

    def __init__(self):
        self.path = None
        self.finished, self.released = threading.Event(), threading.Event()
        self.released.set()
        self.is_abandoned = False

    def request_end(self):
        return False

    def refuse_other_thread(self): ...

    def end(self): ...

    def take(self, save): ...

    def forget(self): ...

    def wait_for_path(self):
        assert self.finished.is_set()
        return self.path

    def abandon(self):
        self.is_abandoned = True


class Process:
    """A process with a recorder of its own, which does what words say.

    start   a capture starts          limit   it reaches a limit     fork    it goes on in a child
    fail    a start fails             stop    the program stops it
    """

    def __init__(self, monkeypatch):
        self.recorder = recorder.Recorder()
        self.fails = False
        monkeypatch.setattr(recorder, "_start_capture", self._start)
        monkeypatch.setattr(recorder, "_write", self._write)
        monkeypatch.setattr(recorder.ProgramEnd, "watch", lambda end: None)

    def _start(self, *_):
        if self.fails:
            raise CaptureError("no room")
        return FakeCapture()

    def _write(self, capture, recording):
        assert capture in self.recorder.exporting
        capture.path = Path("profile")

    def do(self, word):
        report.forget()
        self.fails = word == "fail"
        if word in ("start", "fail"):
            return self.recorder.start("logs") and "capture"
        if word == "limit":
            return self.recorder._end_at_limit(self.recorder.recording)
        if word == "fork":
            return self.recorder.forget_parent()
        path = self.recorder.stop()
        return str(path) if path else report.last_error().problem.reason

    def follow(self, words):
        return [answer for word in words.split() if (answer := self.do(word))]


NOTHING = "no capture is running"


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ("stop", [NOTHING]),
        ("start stop stop", ["capture", "profile", NOTHING]),
        ("start start stop", ["capture", "profile"]),  # the second is refused, and the first goes on
        ("start fail stop", ["capture", "profile"]),
        ("start limit stop stop", ["capture", "profile", NOTHING]),  # stop gets what ended early, once
        ("start limit start stop stop", ["capture", "capture", "profile", NOTHING]),
        ("fail stop", ["no capture is running, because it did not start: no room"]),
        ("start limit fail stop", ["capture", "no capture is running, because it did not start: no room"]),
        ("fail start stop stop", ["capture", "profile", NOTHING]),
        ("start fork stop", ["capture", NOTHING]),
        ("start limit fork stop", ["capture", NOTHING]),
        ("start fork start stop", ["capture", "capture", "profile"]),
    ],
)
def test_what_stop_returns_follows_from_what_was_before(monkeypatch, words, answers):
    assert Process(monkeypatch).follow(words) == answers


def test_a_capture_ends_once_and_only_while_it_records(monkeypatch):
    process = Process(monkeypatch)
    process.do("start")
    capture = process.recorder.recording

    assert process.recorder.end_capture(FakeCapture()) is None
    assert [process.recorder.end_capture(capture), process.recorder.end_capture(capture)] == [Path("profile"), None]
    assert capture.finished.is_set()
    assert process.recorder.exporting == set()


def test_a_forked_child_has_no_capture_and_a_lock_of_its_own(monkeypatch):
    process = Process(monkeypatch)
    process.do("start")
    parents, lock = process.recorder.recording, process.recorder.lock
    lock.acquire()  # by a thread that the child does not have

    process.do("fork")

    assert parents.is_abandoned
    assert process.recorder.lock is not lock
    assert process.recorder.recording is None


class TimeIsOverError(Exception):
    """What the program raises at a signal."""


@pytest.mark.parametrize("keeper", [report.Suppressed(), report.NeverRaise("capturing", strict=True)])
def test_what_the_program_raises_at_a_signal_is_no_error_of_a_capture(keeper):
    def interrupt(number, frame):
        raise TimeIsOverError

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(TimeIsOverError), keeper:
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_timer_of_the_program_stands_still_while_a_capture_starts(monkeypatch):
    seen = []
    process = Process(monkeypatch)
    monkeypatch.setattr(recorder, "_start_capture", lambda *_: seen.append(signal.getitimer(signal.ITIMER_REAL)))

    signal.setitimer(signal.ITIMER_REAL, 100, 50)
    try:
        process.recorder.start("logdir")
        left, interval = signal.getitimer(signal.ITIMER_REAL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

    assert seen == [(0.0, 0.0)]
    assert 0 < left <= 100
    assert interval == 50
