"""What a watch has noticed: the triggers, each with its sentence and what was kept of it."""

from __future__ import annotations

from enum import StrEnum

from stepscope.records import dataclass


class Trigger(StrEnum):
    """What makes a watch keep a capture."""

    SLOW_STEP = "slow step"
    STALL = "stall"
    OUT_OF_MEMORY = "out of memory"
    CRASH = "crash"
    SPIKE = "spike"
    REQUESTED = "requested"
    SIGNAL = "signal"
    TIME_TABLE = "time table"
    OTHER_RANK = "other rank"
    REGULAR = "regular window"


URGENT = frozenset({Trigger.STALL, Trigger.OUT_OF_MEMORY, Trigger.CRASH, Trigger.REQUESTED, Trigger.SIGNAL})
"""Triggers that are kept however short ago another one was."""


@dataclass(frozen=True)
class Mark:
    """A trigger.

    Attributes:
        trigger: its kind.
        sentence: what happened, and why if that is known.
        unix_ns: when.
        step: the number of the step; None if none ran.
        run: the session that holds what came before it; empty if nothing was kept.
        window: the session that holds the framework's record of the steps after it; empty without one.
        cause: what identifies the cause, so that it is not kept again and again; empty if unknown.
    """

    trigger: Trigger
    sentence: str
    unix_ns: int
    step: int | None = None
    run: str = ""
    window: str = ""
    cause: str = ""

    def row(self) -> dict[str, object]:
        """The mark as plain values."""
        return {
            "unix_s": round(self.unix_ns / 1e9, 3),
            "trigger": self.trigger.value,
            "sentence": self.sentence,
            "step": self.step,
            "run": self.run,
            "window": self.window,
        }
