"""Which steps of a loop a capture records: `schedule`, with the arguments and meaning of `torch.profiler.schedule`."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from stepscope.capture.report import warn
from stepscope.errors import UsageError
from stepscope.records import dataclass


class Action(Enum):
    """What happens during one step.  The names are those of `torch.profiler.ProfilerAction`."""

    NONE = "nothing is recorded"
    WARMUP = "the tracer runs, and its record is discarded"
    RECORD = "the step is recorded"
    RECORD_AND_SAVE = "the step is recorded, and the capture ends with it"

    @classmethod
    def from_any(cls, action: object) -> Action:
        """The action for one of ours or of PyTorch's, so that PyTorch's schedules work too.

        Raises:
            UsageError: it is not an action.
        """
        if isinstance(action, cls):
            return action
        name = str(getattr(action, "name", action))
        if name not in cls.__members__:
            raise UsageError(
                f"the schedule returned {action!r}, which is not an action",
                hint=f"actions: {', '.join(cls.__members__)}",
            )
        return cls[name]

    @property
    def phase(self) -> int:
        """0 nothing, 1 warm-up, 2 recording: a capture starts or ends where this changes."""
        return 2 if self.records else int(self is Action.WARMUP)

    @property
    def records(self) -> bool:
        """True if the step is kept."""
        return self in (Action.RECORD, Action.RECORD_AND_SAVE)


Schedule = Callable[[int], object]
"""Returns the `Action` of step 0, 1, 2, ... of a loop, or PyTorch's `ProfilerAction`."""


@dataclass(frozen=True)
class Cycles:
    """First `skip_first` steps without a record, then cycles of `wait`, `warmup` and `active` steps.

    Attributes:
        repeat: the number of cycles, each a separate capture; 0 for no limit.
    """

    wait: int
    warmup: int
    active: int
    repeat: int
    skip_first: int

    def __call__(self, step: int) -> Action:
        """The action of a step, counted from 0."""
        cycle, place = divmod(step - self.skip_first, self.wait + self.warmup + self.active)
        if step < self.skip_first or (self.repeat and cycle >= self.repeat) or place < self.wait:
            return Action.NONE
        if place < self.wait + self.warmup:
            return Action.WARMUP
        return Action.RECORD_AND_SAVE if place == self.wait + self.warmup + self.active - 1 else Action.RECORD


def schedule(*, wait: int = 0, warmup: int = 0, active: int, repeat: int = 0, skip_first: int = 0) -> Cycles:
    """Chooses which steps of a loop to record, for `Profile(logdir, schedule=...)`.

    Examples:
        >>> [schedule(wait=1, warmup=1, active=2, repeat=1)(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']

    Args:
        wait: the steps of each cycle that are not recorded.
        warmup: the steps after these in which the tracer runs and its record is discarded, so that the cost of starting
            it is not in the profile.
        active: the steps after these that are recorded; those of one cycle are one capture.
        repeat: the number of cycles; 0 for as long as the loop lasts.
        skip_first: the steps before the first cycle.

    A number that is too small is replaced by the smallest valid one, with a warning: a wrong number must not end a
    training job.
    """
    given = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first}
    return Cycles(**{name: _raise_to_least(name, value, 1 if name == "active" else 0) for name, value in given.items()})


def _raise_to_least(name: str, value: int, least: int) -> int:
    if value < least:
        warn(f"schedule({name}={value}) is too small; {least} is used")
    return max(value, least)


def never(step: int) -> Action:
    """The schedule that records nothing."""
    return Action.NONE


def batches(first: int, last: int) -> Schedule:
    """Records the steps `first` to `last`, both included, in one capture."""

    def action(step: int) -> Action:
        if step == last:
            return Action.RECORD_AND_SAVE
        return Action.RECORD if first <= step < last else Action.NONE

    return action
