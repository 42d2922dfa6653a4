"""Where instructions come from: the framework's op, and the line of the program that called it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from stepscope.analysis.hlo.fields import fields_of
from stepscope.analysis.hlo.texts import texts_of
from stepscope.model.arrays import I64, U8
from stepscope.records import dataclass
from stepscope.vocabulary.python import is_of_user

_OP_TYPE, _OP_NAME, _FILE, _LINE, _FRAME = 1, 2, 3, 4, 15
_FILE_NAMES, _FUNCTION_NAMES, _LOCATIONS, _FRAMES = 1, 2, 3, 4
_LOCATION_FILE, _LOCATION_FUNCTION, _LOCATION_LINE, _FRAME_LOCATION, _FRAME_PARENT = 1, 2, 3, 1, 2
_DEEPEST = 256  # frames of a stack; more is a circle


@dataclass(frozen=True)
class InstructionSource:
    """Where an instruction comes from; texts are empty where the program does not say.

    Attributes:
        op_name: path of the op in the framework, such as `jit(step)/layer/dot_general`.
        op_type: its type, as TensorFlow has it.
        line: `file:line` of the innermost call.
        stack: the calls around it, innermost first, each as `file:line function`.
    """

    op_name: str = ""
    op_type: str = ""
    line: str = ""
    stack: tuple[str, ...] = ()

    def users(self) -> Iterator[str]:
        """The frames of the program around it, innermost first."""
        return filter(is_user_frame, self.stack)

    @property
    def place(self) -> str:
        """The innermost frame of the program, else the innermost call: where it was traced."""
        return next(self.users(), self.line)


def is_user_frame(frame: str) -> bool:
    """Whether a frame of a stack, `file:line function`, is of the program and not of a library."""
    return is_of_user(f"${frame}")


@dataclass(frozen=True)
class Sources:
    """The metadata of a program's instructions.

    Attributes:
        buf: uint8 of shape (bytes,), the serialized program.
        starts, stops: int64 of shape (instructions,), where each instruction's metadata lies.
        frames_start, frames_stop: where the table of stack frames lies.
    """

    buf: U8
    starts: I64
    stops: I64
    frames_start: int
    frames_stop: int

    def read(self, rows: list[int]) -> list[InstructionSource]:
        """The sources of some instructions."""
        found = fields_of(self.buf, self.starts[rows], self.stops[rows])
        names, types, files = (texts_of(self.buf, *found.range(number)) for number in (_OP_NAME, _OP_TYPE, _FILE))
        lines, frames = found.scalar(_LINE).tolist(), found.scalar(_FRAME).tolist()
        sources = []
        for at in range(len(rows)):
            stack = self.stack(frames[at])
            line = f"{files[at]}:{lines[at]}" if files[at] else stack[0].split(" ")[0] if stack else ""
            sources.append(InstructionSource(names[at], types[at], line, stack))
        return sources

    def stack(self, frame: int) -> tuple[str, ...]:
        """The calls around a frame, innermost first; numbers of frames start at 1."""
        files, functions, locations, frames = self._frames
        found: list[str] = []
        while 0 < frame <= len(frames) and len(found) < _DEEPEST:
            location, frame = frames[frame - 1]
            if 0 < location <= len(locations):
                file, function, line = locations[location - 1]
                found.append(f"{_nth(files, file)}:{line} {_nth(functions, function)}")
        return tuple(found)

    @cached_property
    def _frames(self) -> tuple[tuple[str, ...], tuple[str, ...], list[tuple[int, ...]], list[tuple[int, ...]]]:
        table = fields_of(self.buf, np.array([self.frames_start]), np.array([self.frames_stop]))
        files, functions = (texts_of(self.buf, *table.ranges(number)[1:]) for number in (_FILE_NAMES, _FUNCTION_NAMES))
        locations = self._numbers(table.ranges(_LOCATIONS), (_LOCATION_FILE, _LOCATION_FUNCTION, _LOCATION_LINE))
        return files, functions, locations, self._numbers(table.ranges(_FRAMES), (_FRAME_LOCATION, _FRAME_PARENT))

    def _numbers(self, ranges: tuple[I64, I64, I64], numbers: tuple[int, ...]) -> list[tuple[int, ...]]:
        found = fields_of(self.buf, *ranges[1:])
        return list(zip(*(found.scalar(number).tolist() for number in numbers), strict=True))


def _nth(texts: tuple[str, ...], number: int) -> str:
    """The text of a number that starts at 1; empty if there is none."""
    return texts[number - 1] if 0 < number <= len(texts) else ""
