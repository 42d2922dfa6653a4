"""Notes what TensorFlow and JAX trace and what PyTorch compiles while a capture runs, and which argument made it do so
again.

All decide in Python, from the arguments of a call, whether what they made before can be used again.  Their profilers
record how long that takes, and not why it happens.  While a capture runs, a function of each framework that runs once
for each tracing or compilation is watched; a step that compiles nothing costs nothing.
"""

from __future__ import annotations

import importlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any, ClassVar, Protocol

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.patches import Observer, Undo, observe_attribute
from stepscope.capture.report import Suppressed
from stepscope.capture.tracers.base import Clock, Probe, make_chunk
from stepscope.formats.spool.layout import COMPILATIONS_PLANE, Chunk, StatValue
from stepscope.records import dataclass

FIRST, AGAIN, FUNCTION, VARIABLES = "first", "again", "function", "variables"
_MOST_TEXT = 200

Change = tuple[str, str, str]
"""An argument, what it was before, and what it is now, such as `("x", "float32[4,8]", "float32[5,8]")`."""


@dataclass(frozen=True)
class CompileNote:
    """One function that was traced or compiled.

    Attributes:
        function: its name; `place`: file and line, of the function if it is the user's, else of the call.
        begin_ns, end_ns: by the clock of the capture.
        backend_ns: of that, the time of the compiler proper, after tracing.
        why: FIRST; AGAIN, for another argument; FUNCTION, a new function of the same code; VARIABLES, TensorFlow's
            second tracing of a function that made variables in the first.
        changes: the arguments that differ from those before; empty if unknown.
    """

    function: str
    place: str
    begin_ns: int
    end_ns: int
    backend_ns: int
    why: str
    changes: tuple[Change, ...] = ()

    def stats(self) -> dict[str, StatValue]:
        """What the profile keeps of it."""
        return {
            "compiled_place": self.place,
            "compile_reason": self.why,
            "backend_compile_ns": self.backend_ns,
            "changed_arguments": json.dumps(self.changes),
        }


class Watched(Protocol):
    """Watches one framework while a capture runs."""

    remove: Undo
    """Ends the watch."""

    def __init__(self, module: ModuleType, clock: Clock) -> None: ...

    def take(self) -> list[CompileNote]:
        """What was noted since the last call."""


class Tracings(Observer, ABC):
    """Watches a function that traces one of Python, and notes each tracing.

    Args:
        module: that of the framework's compiler.
        clock: that of the capture.

    Attributes:
        traces: the name of the function in the module.
        remove: as for a `Watched`.
    """

    traces: ClassVar[str]

    def __init__(self, module: ModuleType, clock: Clock) -> None:
        self._clock = clock
        self._notes: list[CompileNote] = []
        self.remove = observe_attribute(module, self.traces, self)

    def before(self, trace: object, args: tuple[Any, ...]) -> object:
        """A function is traced; inside of another one, it is part of that, such as the body of a loop."""
        return None if self.is_inside() else (self._clock(), args)

    def after(self, state: tuple[int, tuple[Any, ...]], made: object) -> None:
        """It has been traced."""
        with Suppressed():  # a note is worth no failure
            note = self.describe(*state)
            self._notes += [] if note is None else [note]

    def take(self) -> list[CompileNote]:
        """What was traced since the last call."""
        taken = self._notes[:]
        del self._notes[: len(taken)]
        return taken

    @abstractmethod
    def is_inside(self) -> bool:
        """Whether another function is being traced."""

    @abstractmethod
    def describe(self, begin_ns: int, args: tuple[Any, ...]) -> CompileNote | None:
        """The note of a tracing that began then and has ended, by the arguments of the watched function; None if it is
        not the program's.  May raise: another release of the framework has other arguments."""


class CompilesTracer(Probe):
    """Watches each framework from the moment in which its compiler is imported."""

    def __init__(self) -> None:
        self._clock: Clock = lambda: 0
        self._watched: dict[str, Watched | None] = {}
        self._ended = False

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Starts to watch."""
        self._clock = clock
        self._attach()

    def stop(self) -> None:
        """Ends it; what is noted can still be drained."""
        self._ended = True
        for watched in filter(None, self._watched.values()):
            watched.remove()

    def abandon(self) -> None:
        """Takes back the changes to the frameworks, in a forked process."""
        self.stop()

    def drain(self) -> list[Chunk]:
        """What was compiled since the last call."""
        if not self._ended:
            self._attach()
        notes = {name: watched.take() for name, watched in self._watched.items() if watched is not None}
        return [_make_chunk(name, each) for name, each in notes.items() if each]

    def _attach(self) -> None:
        for name, watch in _FRAMEWORKS.items():
            module = sys.modules.get(name)
            if module is not None and name not in self._watched:
                try:
                    self._watched[name] = _find_watch(watch)(module, self._clock)
                except AttributeError:  # another release of the framework, which compiles elsewhere
                    self._watched[name] = None


_FRAMEWORKS = {
    "tensorflow.python.eager.polymorphic_function.tracing_compilation": "tf_tracings:TensorFlowTracings",
    "torch._dynamo.convert_frame": "dynamo:DynamoCompilations",
    "jax._src.pjit": "jax_tracings:JaxTracings",
}
"""What watches each framework, by the module of its compiler; imported when the framework is there."""


def _find_watch(place: str) -> type[Watched]:
    module, _, name = place.partition(":")
    found: type[Watched] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found


def _make_chunk(framework: str, notes: Sequence[CompileNote]) -> Chunk:
    rows = [(note.function, note.begin_ns, note.end_ns) for note in notes]
    stats = {row: note.stats() for row, note in enumerate(notes)}
    number = list(_FRAMEWORKS).index(framework)
    return make_chunk(COMPILATIONS_PLANE, framework.partition(".")[0], number, "OTHER", rows, stats)


def find_function_code(function: Any) -> CodeType | None:
    """The code of a function below the wrappers of frameworks and functools."""
    for _ in range(16):
        inner = getattr(function, "__original_wrapped__", None) or getattr(function, "__wrapped__", None)
        inner = inner or getattr(function, "func", None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None


def find_changes(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[Change, ...]:
    """The arguments that differ, in the order of those now; one that is missing is the empty text.

    >>> find_changes({"x": "float32[4]", "n": "2"}, {"x": "float32[4]", "n": "3"})
    (('n', '2', '3'),)
    """
    names = dict.fromkeys((*now, *before))
    pairs = ((name, before.get(name, ""), now.get(name, "")) for name in names)
    return tuple((name, cut_text(old), cut_text(new)) for name, old, new in pairs if old != new)


def cut_text(text: str) -> str:
    """At most 200 characters of a text."""
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"
