"""Collects the damage in a file and reports it: one problem for the cut, one for everything else."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from stepscope.errors import Problem, UnreadableError, counted
from stepscope.formats.heads import describe_head
from stepscope.kernels import wire
from stepscope.model.arrays import I64
from stepscope.records import dataclass

_WHY = {
    wire.BAD_VARINT: "a number has no end",
    wire.BAD_TAG: "this is not a field of the format",
    wire.OVERRUN: "a field extends past the end of its message",
}
_AGAIN = "copy the file again, or record again if the capture was interrupted"


@dataclass
class Damage:
    """The places where reading failed, and what was lost.

    Attributes:
        size: size of the file in bytes.
        is_cut: the file ends inside one of its outermost fields.
        lost_events, lost_stats: how many damaged events and stats were skipped.
        unnamed_events: how many events have no metadata in the file.
        bad_times: how many times are impossible.
    """

    size: int
    is_cut: bool = False
    lost_events: int = 0
    lost_stats: int = 0
    unnamed_events: int = 0
    bad_times: int = 0
    _cuts: list[int] = field(default_factory=list)
    _faults: list[tuple[int, int]] = field(default_factory=list)
    _n_faults: int = 0

    def add(self, offsets: I64, codes: I64, ends: I64) -> None:
        """Records where reading of messages failed.

        Args:
            offsets: int64 of shape (messages,), the place in the file, or -1 for a message without damage.
            codes: the reason, see `stepscope.kernels.wire`.
            ends: where each message ends.
        """
        rows = np.flatnonzero(offsets >= 0)
        # A cut leaves messages open at every level; all of them extend to the end of the file.
        cut = (codes[rows] == wire.OVERRUN) & (ends[rows] == self.size) & self.is_cut
        if cut.any():
            self._cuts.append(int(offsets[rows[cut]].max()))
        faults = rows[~cut]
        if len(faults):
            first = faults[np.argmin(offsets[faults])]
            self._faults.append((int(offsets[first]), int(codes[first])))
            self._n_faults += len(faults)

    def add_outermost(self, offset: int, code: int) -> None:
        """Records where reading of the file itself failed, -1 if it did not.  Call this first."""
        self.is_cut = offset >= 0 and code == wire.OVERRUN
        self.add(np.array([offset]), np.array([code]), np.array([self.size]))

    def add_stats(self, lost: int, first: int, code: int) -> None:
        """Records damaged stats of event types or planes: their number, and the place and damage of the first."""
        self.lost_stats += lost
        if lost:
            self._faults.append((first, code))
            self._n_faults += lost

    @property
    def partial(self) -> bool:
        """True if anything is damaged or missing."""
        return bool(self._cuts or self._faults)

    def problems(self, n_events: int, source: str) -> tuple[Problem, ...]:
        """Everything that is wrong with the file."""
        makers = (self._cut_problem, self._damage_problem, self._unnamed_problem, self._times_problem)
        return tuple(problem for problem in (make(n_events, source) for make in makers) if problem)

    def _cut_problem(self, n_events: int, source: str) -> Problem | None:
        if not self._cuts:
            return None
        lost = "what followed"
        if self.unnamed_events:
            lost = f"what followed, such as the names of {counted(self.unnamed_events, 'event')}"
        return Problem(
            "truncated",
            f"the file ends inside the field that starts here, after {self.size:,} bytes",
            path=source,
            offset=max(self._cuts),
            kept=f"{counted(n_events, 'event')} before the cut",
            lost=lost,
            hint=_AGAIN,
        )

    def _damage_problem(self, n_events: int, source: str) -> Problem | None:
        if not self._faults:
            return None
        offset, code = min(self._faults)
        more = f", the first of {self._n_faults:,} damaged places" if self._n_faults > 1 else ""
        lost = [counted(self.lost_events, "event")] if self.lost_events else []
        lost += [counted(self.lost_stats, "stat")] if self.lost_stats else []
        return Problem(
            "damaged",
            f"{_WHY[code]}{more}",
            path=source,
            offset=offset,
            kept=counted(n_events, "event"),
            lost=" and ".join(lost) or "the rest of the line or plane that is damaged",
            hint=_AGAIN,
        )

    def _unnamed_problem(self, n_events: int, source: str) -> Problem | None:
        if not self.unnamed_events or self._cuts:
            return None
        return Problem(
            "unnamed-events",
            f"the file lacks the names of {self.unnamed_events:,} of its {counted(n_events, 'event')}",
            path=source,
            kept="their times and stats",
            lost="what they are: they count as unknown work",
            hint="the program that wrote the file left them out; record again if the names matter",
        )

    def _times_problem(self, n_events: int, source: str) -> Problem | None:
        if not self.bad_times:
            return None
        return Problem(
            "impossible-times",
            f"{self.bad_times:,} times start more than 26 days from the session, or have a negative duration",
            path=source,
            kept=f"all {counted(n_events, 'event')}; affected ones at the start of their line, or with duration 0",
            lost="their true starts or durations",
            hint="the machine's clock jumped or the file is damaged; record again if the times matter",
        )


def unreadable_error(head: bytes, source: str) -> UnreadableError:
    """The error for a file without any plane, from its first bytes."""
    if not head:
        return UnreadableError(
            "the file is empty", code="empty", path=source, offset=0, hint="the capture did not finish; record it again"
        )
    looks = describe_head(head)
    return UnreadableError(
        f"no plane of an XSpace can be read{f'; it looks like {looks}' if looks else ''}",
        path=source,
        offset=0,
        lost="everything",
        hint="check that this is a *.xplane.pb file and that it was copied completely",
    )
