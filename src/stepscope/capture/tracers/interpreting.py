"""Whether a sampled thread interprets Python or is in compiled code, told from the instruction that it runs.

A thread is sampled while it does not hold the interpreter.  It lets go of it either in compiled code, such as a product
of NumPy's, which does so of its own accord, or where CPython looks whether others wait: as a function begins, at a jump
back, and after a call.

    RESUME, a jump back             Python: a loop, or many calls
    a call outside of any loop      compiled code: a frame comes by only once, and time passed there
    a call in a loop                either: the call, or the Python around many short ones
    any other instruction           compiled code that let go, such as `a @ b`
"""

from __future__ import annotations

from array import array
from opcode import opmap
from types import CodeType

from stepscope.formats.spool.layout import EITHER, IN_CALL, RUNS_PYTHON

_JUMPS_BACK = frozenset(code for name, code in opmap.items() if "JUMP_BACKWARD" in name)
_BEGINS = frozenset(code for name, code in opmap.items() if name == "RESUME")
_CALLS = frozenset(code for name, code in opmap.items() if name.startswith(("CALL", "PRECALL")))
_LONGER = opmap["EXTENDED_ARG"]
_MOST_PLACES = 20_000
MEANINGS = (RUNS_PYTHON, IN_CALL, EITHER)
_NOTHING = -1


class Instructions:
    """What the instructions of code mean for a sample, each found once."""

    def __init__(self) -> None:
        # By identity: hashing a code object reads each of its instructions.  The object is kept, so its id stays its.
        self._known: dict[tuple[int, int], tuple[CodeType, int]] = {}

    def find(self, code: CodeType, place: int) -> int:
        """What a thread does at a place in code, in bytes: its number among MEANINGS."""
        known = self._known.get((id(code), place))
        if known is None:
            if len(self._known) >= _MOST_PLACES:
                self._known.clear()
            known = self._known[id(code), place] = code, MEANINGS.index(meaning_of(code.co_code, place))
        return known[1]


def meaning_of(instructions: bytes, place: int) -> str:
    """What a sampled thread does whose innermost frame is at a place of its instructions.

    Args:
        instructions: two bytes each: what to do, and a number; place: in bytes.
    """
    if not 0 <= place < len(instructions):
        return EITHER
    now = instructions[place]
    if now in _JUMPS_BACK or now in _BEGINS:
        return RUNS_PYTHON
    if now in _CALLS and any(begin <= place <= end for begin, end in _loops(instructions)):
        return EITHER
    return IN_CALL


def _loops(instructions: bytes) -> list[tuple[int, int]]:
    """From where to where instructions are repeated, in bytes."""
    found, above = list[tuple[int, int]](), 0
    for place in range(0, len(instructions) - 1, 2):
        code, number = instructions[place], instructions[place + 1] | above
        above = number << 8 if code == _LONGER else 0
        if code in _JUMPS_BACK:
            found.append((place + 2 - 2 * number, place))
    return found


class SampledRuns:
    """What samples of one thread found, those that found the same after each other as one range, on the clock.

    Attributes:
        ended: of each range that has ended the number of what was found among MEANINGS, its begin and end.
    """

    def __init__(self) -> None:
        self._now = _NOTHING
        self._since = 0
        self.ended = array("q")

    def note(self, what: int, before: int, now: int) -> None:
        """A sample found this; `before` is the time of the sample before it."""
        if what == self._now:
            return
        changed = (before + now) // 2 if self._now != _NOTHING else now
        self.end(changed)
        self._now, self._since = what, changed

    def end(self, now: int) -> None:
        """Nothing more was found from now on."""
        if self._now != _NOTHING:
            self.ended.extend((self._now, self._since, max(now, self._since)))
        self._now = _NOTHING

    def take(self) -> list[tuple[str, int, int]]:
        """The ranges that have ended, which are forgotten."""
        taken, self.ended = self.ended, array("q")
        return [
            (MEANINGS[what], begin, end) for what, begin, end in zip(taken[::3], taken[1::3], taken[2::3], strict=True)
        ]
