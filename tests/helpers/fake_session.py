"""Stands for the captures themselves, so that a test sees who starts, marks and stops what, as a list of words."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from stepscope.capture import ProfilerOptions, conductor, report, session
from stepscope.errors import CaptureError


class FakeCapture:
    """One capture: what it was asked for, where its profile is, and that nobody has to wait for it."""

    def __init__(self, options: ProfilerOptions) -> None:
        self.name = "host"
        self.options = options
        self.path: Path | None = None
        self.yields = self.gave_way = False
        self.finished, self.released = threading.Event(), threading.Event()
        self.released.set()


class FakeSession:
    """What happened: `start`, `mark 3`, `end 3`, `save`, `discard`; `fails` makes the next start fail, `lacks`
    has it go well but for a tracer of ours."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.fails = self.lacks = False
        self.running = False
        self.saved = 0

    def start(self, logdir: object, options: object = None) -> None:
        report.forget()
        if self.fails or self.running:
            report.report(CaptureError("no", code="busy"), "starting")
            self.words.append("refuse")
            return
        self.running = True
        session._session = FakeCapture(ProfilerOptions.of(options))
        self.words.append("start")
        if self.lacks:
            report.report(CaptureError("another profiler has the hook", code="busy"), "recording the Python calls")

    def stop(self, save: bool = True, **_: object) -> Path | None:
        self.running = False
        capture, session._session = session._session, None
        self.words.append("save" if save else "discard")
        if save:
            self.saved += 1
            capture.path = Path(f"profile-{self.saved}")
        capture.finished.set()
        return capture.path

    def said(self) -> str:
        """The words since the last question, in one line."""
        words, self.words = self.words, []
        return " ".join(words)


class FakeMark:
    """A step mark that tells."""

    def __init__(self, name: str, /, step_num: int, _r: int) -> None:
        self._number = step_num

    def __enter__(self) -> FakeMark:
        FakeMark.session.words.append(f"mark-{self._number}")
        return self

    def __exit__(self, *_: object) -> None:
        FakeMark.session.words.append(f"end-{self._number}")

    session: FakeSession


@pytest.fixture
def fake_session(monkeypatch: pytest.MonkeyPatch) -> FakeSession:
    """The session of this test."""
    fake = FakeSession()
    monkeypatch.setattr(FakeMark, "session", fake, raising=False)
    monkeypatch.setattr(session, "_session", None)
    monkeypatch.setattr(session, "start", fake.start)
    monkeypatch.setattr(session, "stop", fake.stop)
    monkeypatch.setattr(session, "is_running", lambda: fake.running)
    monkeypatch.setattr(conductor.ranges, "Trace", FakeMark)
    return fake
