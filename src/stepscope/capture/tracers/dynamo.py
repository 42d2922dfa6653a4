"""Notes what `torch.compile` compiles, and which guard failed.

PyTorch keeps the times of its last 64 compilations, each with the guard that failed: `tensor 'x' size mismatch at
index 0. expected 3, actual 4` or `n == 2`.  What the arguments are now is known only while it looks for that guard, so
this is the function that is watched.
"""

from __future__ import annotations

import re
import sys
import time
from types import FrameType
from typing import Any

from stepscope.capture.patches import Observer, observe_attribute
from stepscope.capture.report import Suppressed
from stepscope.capture.tracers.base import Clock
from stepscope.capture.tracers.compiles import AGAIN, FIRST, Change, CompileNote, cut_text
from stepscope.kernels.observe import read_locals

_MISMATCH = re.compile(
    r"tensor '(?P<name>.+?)' (?P<what>.+?) mismatch(?: at index (?P<index>\d+))?\. expected (?P<before>.+?), "
    r"actual (?P<now>.+?)\.?$"
)
_EQUAL = re.compile(r"(?P<name>[^=!<>]+?) == (?P<before>.+)$")
_COMPILE_ID = re.compile(r"^\d+/\d+(?:_\d+)?: ")
_STEP = re.compile(r"(?:^|\.)(?P<field>[A-Za-z_]\w*)|\[(?P<key>'[^']*'|\"[^\"]*\"|\d+)\]")
_PLAIN = (bool, int, float, str, type(None))
_MOST_KEPT = 256  # reasons that wait for their compilation


class DynamoCompilations(Observer):
    """Reads PyTorch's list of compilations, and watches the function that finds why one is needed.

    Args:
        module: `torch._dynamo.convert_frame`.
        clock: that of the capture.

    Attributes:
        remove: as for a `Watched`.
    """

    def __init__(self, module: Any, clock: Clock) -> None:
        self._offset_ns = time.time_ns() - clock()
        self._since_us = time.time_ns() // 1000
        self._taken: set[tuple[str, int]] = set()
        self._changes: dict[str, Change] = {}
        self.remove = observe_attribute(module, "get_and_maybe_log_recompilation_reasons", self)

    def before(self, find: object, args: tuple[Any, ...]) -> object:
        """PyTorch looks for the guards that fail for a frame, its second argument."""
        return args[1] if len(args) > 1 else None

    def after(self, frame: Any, reasons: list[str]) -> None:
        """It has found them."""
        with Suppressed():  # a note is worth no failure
            self._note(reasons, frame)

    def take(self) -> list[CompileNote]:
        """What was compiled since the last call."""
        utils: Any = sys.modules["torch._dynamo.utils"]
        return [note for metrics in utils.get_compilation_metrics() if (note := self._make_note(metrics)) is not None]

    def _note(self, reasons: list[str], frame: Any) -> None:
        if reasons and len(self._changes) < _MOST_KEPT:
            # PyTorch's own kind of frame makes a dict of its own.
            found = parse_reason(
                reasons[0], read_locals(frame) if isinstance(frame, FrameType) else dict(frame.f_locals)
            )
            if found is not None:
                self._changes[reasons[0]] = found

    def _make_note(self, metrics: Any) -> CompileNote | None:
        start_us, key = metrics.start_time_us or 0, (str(metrics.compile_id), int(metrics.start_time_us or 0))
        if start_us < self._since_us or metrics.co_name is None or key in self._taken:
            return None
        self._taken.add(key)
        begin = start_us * 1000 - self._offset_ns
        reason = metrics.recompile_reason
        change = (self._changes.pop(reason, None) or parse_reason(reason, {})) if reason else None
        return CompileNote(
            function=metrics.co_name,
            place=f"{metrics.co_filename}:{metrics.co_firstlineno}",
            begin_ns=begin,
            end_ns=begin + int(metrics.duration_us or 0) * 1000,
            backend_ns=int((metrics.backend_compile_time_s or 0.0) * 1e9),
            why=AGAIN if reason else FIRST,
            changes=(change,) if change else (),
        )


def parse_reason(reason: str, arguments: dict[str, Any]) -> Change | None:
    """The argument of a failed guard, what it was, and what it is now; None for a text without a guard.

    Args:
        reason: as PyTorch writes it.
        arguments: the local variables of the call; without them, sizes are named alone.

    >>> parse_reason("0/1: tensor 'x' size mismatch at index 0. expected 3, actual 4", {})
    ('x', 'size 3 at index 0', 'size 4 at index 0')
    >>> parse_reason("0/1: n == 2    # return x * n", {"n": 3})
    ('n', '2', '3')
    """
    text = _COMPILE_ID.sub("", reason).partition("\n")[0].partition("  #")[0].strip()
    mismatch = _MISMATCH.match(text)
    if mismatch is not None:
        return _describe_mismatch(mismatch, _look_up(mismatch["name"], arguments))
    equal = _EQUAL.match(text)
    if equal is not None:
        name = equal["name"].strip()
        return _short_name(name), cut_text(equal["before"].strip()), cut_text(_look_up_value(name, arguments))
    return (cut_text(text), "", "") if text else None


def _describe_mismatch(found: re.Match[str], tensor: object) -> Change:
    name, what, index = _short_name(found["name"]), found["what"], found["index"]
    shape, dtype = getattr(tensor, "shape", None), str(getattr(tensor, "dtype", "")).removeprefix("torch.")
    if what == "size" and index is not None and shape is not None:
        now = [str(size) for size in shape]
        before = [*now[: int(index)], found["before"], *now[int(index) + 1 :]]
        return name, f"{dtype}[{','.join(before)}]", f"{dtype}[{','.join(now)}]"
    at = f" at index {index}" if index is not None else ""
    return name, cut_text(f"{what} {found['before']}{at}"), cut_text(f"{what} {found['now']}{at}")


def _look_up_value(name: str, arguments: dict[str, Any]) -> str:
    """The value of a plain argument, or the number of elements for `len(name)`; empty if unknown."""
    inner = re.fullmatch(r"len\((.+)\)", name)
    value = _look_up(inner[1] if inner else name, arguments)
    if inner:
        return str(len(value)) if isinstance(value, list | tuple | dict) else ""
    return repr(value) if isinstance(value, _PLAIN) and (value is not None or name in arguments) else ""


def _look_up(name: str, arguments: dict[str, Any]) -> Any:
    """The value of `x`, `L['x']`, `self.rate` or `batch['ids']`; None if it is not found.

    No code of the program runs: attributes are taken from the object's own dictionary.
    """
    value: Any = arguments
    for at, step in enumerate(_STEP.finditer(name.removeprefix("L"))):
        key = step["field"] if step["key"] is None else step["key"].strip("'\"")
        holder = vars(value) if at and step["key"] is None and hasattr(value, "__dict__") else value
        if isinstance(holder, dict):
            value = holder.get(key)
        elif isinstance(holder, list | tuple) and key.isdigit() and int(key) < len(holder):
            value = holder[int(key)]
        else:
            return None
    return None if value is arguments else value


def _short_name(name: str) -> str:
    """The name of a local variable as people write it.

    >>> _short_name("L['x']"), _short_name("self.rate")
    ('x', 'self.rate')
    """
    return re.sub(r"L\[['\"]([^'\"]+)['\"]\]", r"\1", name)
