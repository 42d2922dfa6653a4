"""`Profile` with a schedule, and the two ways of the older guides to ask for a capture: `Profiler` and `warmup`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType

from stepscope.capture import recorder
from stepscope.capture.report import warn
from stepscope.capture.running import Capture
from stepscope.capture.schedule_runner import Saved, ScheduleRunner
from stepscope.capture.schedules import Schedule
from stepscope.capture.tracers.wrapping import keep_as_python
from stepscope.capture.workers import install_early


class Profile:
    """Captures what happens in a `with` block, or the steps of it that a schedule names.

    Without a schedule the whole block is one capture:

        with Profile("logs"):
            train()

    With a schedule, the loop calls `step()` at the end of each step, and each cycle of the schedule is a separate
    capture. The steps are marked, so the loop need not mark them itself:

        with Profile("logs", schedule=schedule(wait=5, warmup=1, active=3, repeat=2)) as profile:
            for batch in batches:
                train(batch)
                profile.step()

    An exception leaves the block unchanged, and what was recorded until then is saved.  Inside another capture the
    block records nothing and logs an error.

    Args:
        logdir: a local folder; made if it does not exist.
        options: a ProfilerOptions, or any object with its fields; None for the defaults.
        schedule: the `Action` of each step, made by `schedule` or by `torch.profiler.schedule`.
        on_saved: called with the path of each profile that a schedule has saved, on a separate thread.

    Attributes:
        path: the last profile that was written; None until the block has ended.
        url: where it was copied to, for a logdir on another machine.
    """

    def __init__(
        self,
        logdir: recorder.LogDir,
        options: object = None,
        *,
        schedule: Schedule | None = None,
        on_saved: Saved = lambda path: None,
    ) -> None:
        self.path: Path | None = None
        self.url: str | None = None
        self._logdir = logdir
        self._options = options
        self._captures: list[Capture | None] = []  # one for each open block; None if it did not start
        if schedule:
            install_early()
        self._runner = schedule and ScheduleRunner(logdir, options, schedule, on_saved=on_saved, wanted="the schedule")

    def __enter__(self) -> Profile:
        if self._runner:
            self._runner.start_step()
        else:
            self._captures.append(recorder.RECORDER.start(self._logdir, self._options))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if not self._runner:
            self._end_block(error)
            return
        # `step()` has opened one more step after the last; it is not counted, since it holds only the end of the loop.
        self._runner.finish()
        self.path = next(iter(self.paths[-1:]), None)

    def _end_block(self, error: BaseException | None) -> None:
        capture = self._captures.pop() if self._captures else None
        if capture is None:
            return
        if capture.ended_early:
            self.path = capture.wait_for_path()
        else:
            self.path = recorder.RECORDER.end_capture(capture, strict=capture.options.strict and error is None)
        self.url = capture.url

    @property
    def paths(self) -> tuple[Path, ...]:
        """All profiles of captures that have ended, oldest first; waits until they are written."""
        if self._runner:
            return self._runner.paths
        return (self.path,) if self.path else ()

    @keep_as_python
    def step(self) -> None:
        """A step of the scheduled loop has ended, and the next one starts."""
        if not self._runner:
            warn("Profile.step() does nothing without a schedule; mark the steps with stepscope.step(number)")
            return
        self._runner.end_step()
        self._runner.start_step()


class Profiler:
    """A capture as an object: `start()`, `stop()`.

    Args:
        logdir: as for `start`.
        options: as for `start`.
    """

    def __init__(self, logdir: recorder.LogDir, options: object = None) -> None:
        self._logdir = logdir
        self._options = options

    @keep_as_python
    def start(self) -> None:
        """As `stepscope.start`."""
        recorder.RECORDER.start(self._logdir, self._options)

    @keep_as_python
    def stop(self, save: bool = True) -> Path | None:
        """As `stepscope.stop`."""
        return recorder.RECORDER.stop(save)


@keep_as_python
def warmup() -> None:
    """Starts and stops the tracer once, so that the first capture does not pay for setting it up."""
    with tempfile.TemporaryDirectory(prefix="stepscope-", ignore_cleanup_errors=True) as folder:
        recorder.RECORDER.start(folder)
        recorder.RECORDER.stop(save=False)
