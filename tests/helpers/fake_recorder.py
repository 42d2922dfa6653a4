"""Stands for the captures themselves, so that a test sees who starts, marks and stops what, as a list of words."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from stepscope.capture import ProfilerOptions, recorder, report, schedule_runner
from stepscope.errors import CaptureError


class FakeCapture:
    """One capture: what it was asked for, where its profile is, and that nobody has to wait for it.

    Attributes:
        events: how many events of the framework's profiler it seems to hold.
    """

    events = 0

    def __init__(self, options: ProfilerOptions) -> None:
        self.name = "host"
        self.options = options
        self.path: Path | None = None
        self.url: str | None = None
        self.yields = self.gave_way = False
        self.own_facts: dict[str, float] = {}
        self.finished, self.released = threading.Event(), threading.Event()
        self.released.set()

    def note_step(self) -> None: ...

    def events_recorded(self) -> int:
        return self.events

    @property
    def place(self) -> Path | str | None:
        return self.path or self.url

    def wait_for_path(self) -> Path | None:
        self.finished.wait()
        return self.path


class FakeRecorder:
    """What happened: `start`, `mark 3`, `end 3`, `save`, `discard`.

    Attributes:
        fails: the next start fails.
        lacks: the next start goes well, except for one of our tracers.
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self.fails = self.lacks = False
        self.capture: FakeCapture | None = None
        self.saved = 0

    def start(self, logdir: object, options: object = None) -> FakeCapture | None:
        report.forget()
        if self.fails or self.capture:
            report.report(CaptureError("no", code="busy"), "starting")
            self.words.append("refuse")
            return None
        self.capture = FakeCapture(ProfilerOptions.from_any(options))
        self.words.append("start")
        if self.lacks:
            report.report(CaptureError("another profiler has the hook", code="busy"), "recording the Python calls")
        return self.capture

    def start_capture(self, open_target: object, options: object, yields: bool = False) -> FakeCapture | None:
        capture = self.start("logs", options)
        if capture is not None:
            capture.yields = yields
        return capture

    def is_running(self) -> bool:
        return self.capture is not None

    def end_capture(self, capture: FakeCapture, *, save: bool = True, **_: object) -> Path | None:
        if capture is not self.capture:
            return None
        self.capture = None
        self.words.append("save" if save else "discard")
        if save:
            self.saved += 1
            capture.path = Path(f"profile-{self.saved}")
        capture.finished.set()
        return capture.path

    def stop(self, save: bool = True) -> Path | None:
        """The program stops whatever runs."""
        assert self.capture is not None
        return self.end_capture(self.capture, save=save)

    def keep_full_memory(self) -> None:
        """No test of this recorder runs out of memory."""

    def said(self) -> str:
        """The words since the last question, in one line."""
        words, self.words = self.words, []
        return " ".join(words)


class FakeMark:
    """A step mark that tells."""

    def __init__(self, name: str, /, step_num: int, _r: int, _found: int) -> None:
        self._number = step_num

    def __enter__(self) -> FakeMark:
        FakeMark.recorder.words.append(f"mark-{self._number}")
        return self

    def __exit__(self, *_: object) -> None:
        FakeMark.recorder.words.append(f"end-{self._number}")

    recorder: FakeRecorder


@pytest.fixture
def fake_recorder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeRecorder:
    """The recorder of this test, in a folder of its own: a loop that ends too early leaves a note in its logdir."""
    monkeypatch.chdir(tmp_path)
    fake = FakeRecorder()
    monkeypatch.setattr(FakeMark, "recorder", fake, raising=False)
    monkeypatch.setattr(recorder, "RECORDER", fake)
    monkeypatch.setattr(schedule_runner.ranges, "Trace", FakeMark)
    return fake
