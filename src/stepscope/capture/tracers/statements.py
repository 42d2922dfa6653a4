"""Where in the program's functions a sampled thread was: the statement that runs, and what it calls.

A frame is named by the line that defines its function, so that samples of one function are joined.  Of a function that
takes most of a step, that line says little: the statement that holds its time does.

    $train.py:9 fit @14 next            in `fit`, which is defined in line 9, line 14 runs: a call of `next`

Behind that stands what `describe_flow` says of the statement.
"""

from __future__ import annotations

import dis
from array import array
from itertools import repeat
from types import CodeType

from stepscope.capture.tracers.value_flow import describe_flow
from stepscope.formats.spool.layout import format_statement

_NAMES = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF")
_PARTS = ("LOAD_ATTR", "LOAD_METHOD")


class Statements:
    """The statements of one thread, those that consecutive samples show joined, on the clock.

    Attributes:
        ended: of each that has ended its number, and the ns when it began and ended.
    """

    def __init__(self) -> None:
        self._now: list[int] = []  # outermost first
        self._began = array("q")
        self.ended = array("q")

    def note(self, numbers: list[int], before: int, now: int) -> None:
        """A sample shows these statements, outermost first; `before` is the time of the sample before it."""
        if numbers == self._now:
            return
        common = 0
        for seen, number in zip(self._now, numbers, strict=False):
            if seen != number:
                break
            common += 1
        changed = (before + now) // 2 if self._now else now
        self._end(common, changed)
        self._now = numbers
        self._began.extend(repeat(changed, len(numbers) - common))

    def end(self, now: int) -> None:
        """Nothing more was found from now on."""
        self._end(0, now)
        self._now = []

    def cut(self, now: int) -> None:
        """Those that are open end now, and begin again."""
        open_ = self._now
        self.end(now)
        self._now, self._began = open_, array("q", [now] * len(open_))

    def _end(self, depth: int, now: int) -> None:
        for number, began in zip(self._now[depth:], self._began[depth:], strict=True):
            self.ended.extend((number, began, max(began, now)))
        del self._began[depth:]

    def take(self) -> array[int]:
        """The numbers and times of those that have ended, which are forgotten."""
        taken, self.ended = self.ended, array("q")
        return taken


def statement_name(frame: str, code: CodeType, place: int) -> str:
    """A statement in a frame: its line, the function that is called there, by the name that the program gives it, and
    where its value comes from and goes to.

    Args:
        place: of the instruction that runs, in bytes.
    """
    positions = list(code.co_positions())
    at = positions[place // 2] if 0 <= place // 2 < len(positions) else (None,) * 4
    instructions = list(dis.get_instructions(code))
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    flow = describe_flow(instructions, arguments, place, at)
    return format_statement(frame, at[0] or code.co_firstlineno, _called(instructions, place, at), flow)


def _called(code: list[dis.Instruction], place: int, at: tuple[int | None, ...]) -> str:
    """What the call at a place calls, such as `self.db.execute`; empty where that is no call of a name.

    A frame that waits for a function of Python stands behind its call, in the room that the call has for its own use.
    """
    found, before, running = list[str](), list[str](), ""
    for instruction in code:
        if instruction.offset > place:
            break
        running = instruction.opname
        begins = instruction.positions and (instruction.positions.lineno, instruction.positions.col_offset)
        if None in at or begins != (at[0], at[2]):
            continue
        if running in _NAMES and isinstance(instruction.argval, str):
            found, before = [instruction.argval], []
        elif running in _PARTS:
            found, before = [*found, str(instruction.argval)], []
        elif running.startswith("CALL"):
            found, before = [], found  # what is called next belongs to this result
    return ".".join(before or found) if running.startswith(("CALL", "PRECALL")) else ""
