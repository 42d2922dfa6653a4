"""What all callbacks share: the choice of the recorded batches, and steps from the hooks of a trainer."""

from __future__ import annotations

import atexit
import os
from pathlib import Path

from stepscope.capture.recorder import LogDir
from stepscope.capture.report import report
from stepscope.capture.schedule_runner import ScheduleRunner
from stepscope.capture.schedules import Schedule, batches, never
from stepscope.capture.workers import install_early
from stepscope.errors import UsageError

Batches = int | tuple[int, int] | str
"""Batches counted from 1: 12 is one, (10, 15) and '10,15' are six, 0 is none."""


def parse_batches(profile_batch: Batches) -> Schedule | None:
    """The schedule that records these batches; None if there are none.  An invalid value is reported and records no
    batch: it must not end a training job."""
    try:
        first, last = _parse_pair(profile_batch)
    except (TypeError, ValueError, OverflowError):
        first, last = -1, -1
    if first < 0 or last < first:
        reason = f"profile_batch={profile_batch!r} does not name batches; no batch is profiled"
        report(
            UsageError(reason, hint="use 12, (10, 15) or '10,15', counted from 1, or 0 for none"), "choosing batches"
        )
        return None
    return batches(max(first, 1), last) if last > 0 else None


def _parse_pair(profile_batch: Batches) -> tuple[int, int]:
    if isinstance(profile_batch, str):
        numbers = [int(text) for text in profile_batch.split(",")]
    elif isinstance(profile_batch, (tuple, list)):
        numbers = [int(number) for number in profile_batch]
    else:
        numbers = [int(profile_batch)]
    first, last = numbers * 2 if len(numbers) == 1 else numbers
    return first, last


def _one_logdir(logdir: LogDir | None, log_dir: LogDir | None) -> LogDir:
    """The logdir under either of its names.  Raises UsageError if there is none, or if there are two."""
    given = [value for value in (logdir, log_dir) if value is not None]
    if len(given) != 1:
        reason = "ProfilerCallback has two logdirs" if given else "ProfilerCallback has no logdir"
        raise UsageError(reason, hint="give one, as its first argument or as log_dir=")
    return given[0]


_MADE: list[tuple[int, ScheduleRunner]] = []
"""The conductors of all callbacks, each with the process that made it."""


def _watch_for_use(steps: ScheduleRunner) -> None:
    """At the program's end, says which callbacks were never called: they were not passed to a trainer."""
    if not _MADE:
        atexit.register(_say_unused)
    _MADE.append((os.getpid(), steps))


def _say_unused() -> None:
    for process, steps in _MADE:
        if process == os.getpid():
            steps.say_unused("a ProfilerCallback", "pass it to the trainer: model.fit(..., callbacks=[callback])")


class BatchCallback:
    """Turns the hooks of a trainer into steps.  A callback derives from this and from the trainer's own class.

    A step lasts from the end of the previous batch to the end of its own, so that waiting for data belongs to it.  The
    first batch after a pause, such as the end of an epoch, starts when the trainer has its data.
    """

    def __init__(
        self,
        logdir: LogDir | None = None,
        profile_batch: Batches = (10, 15),
        options: object = None,
        *,
        schedule: Schedule | None = None,
        log_dir: LogDir | None = None,
    ) -> None:
        super().__init__()
        chosen = schedule or parse_batches(profile_batch) or never
        wanted = "" if chosen is never else "the schedule" if schedule else f"profile_batch={profile_batch!r}"
        self._steps = ScheduleRunner(_one_logdir(logdir, log_dir), options, chosen, first=1, wanted=wanted)
        _watch_for_use(self._steps)
        install_early()

    @property
    def path(self) -> Path | None:
        """The profile of the last capture, once it is written; None if no capture has ended."""
        return next(iter(self._steps.paths[-1:]), None)

    def start_batch(self) -> None:
        """The trainer has a batch."""
        self._steps.start_step()

    def end_batch(self, another_follows: bool) -> None:
        """The trainer is done with a batch.

        Args:
            another_follows: True if the trainer fetches another batch next.
        """
        self._steps.end_step()
        if another_follows:
            self._steps.start_step()

    def end_training(self) -> None:
        """There are no more batches: a capture that still records is saved."""
        self._steps.finish()
