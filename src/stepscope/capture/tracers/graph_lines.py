"""Notes from which line of the program each op of TensorFlow's graphs comes, as TensorFlow keeps it for its messages.

The profile names an op of a graph, such as `dense/MatMul`, and no line.  It is asked for once, after the recording.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.places import is_users_file, path_shown
from stepscope.capture.tracers.base import Clock, Probe, make_chunk
from stepscope.formats.spool.layout import GRAPH_LINES_PLANE, Chunk

_CONTEXT = "tensorflow.python.eager.context"
_OF_ONE_OP = "__wrapped__"  # how the functions begin that TensorFlow makes of single ops
_BY_AUTOGRAPH = "tf__"  # how the functions begin that it makes of the program's
_MOST_NODES = 20_000  # 10 us each


class GraphLines(Probe):
    """Asks TensorFlow for the lines of all functions that it knows when the capture ends."""

    def __init__(self) -> None:
        self._clock: Clock = lambda: 0
        self._ended: int | None = None

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Nothing is recorded until the end."""
        self._clock = clock

    def stop(self) -> None:
        """The recording ends now."""
        self._ended = self._clock()

    def drain(self) -> list[Chunk]:
        """The lines, once the recording has ended."""
        ended, self._ended = self._ended, None
        context = getattr(sys.modules.get(_CONTEXT), "_context", None)
        if ended is None or context is None:
            return []
        found: dict[str, str] = {}
        with suppress(Exception):  # another release keeps them elsewhere, or nowhere
            for node, place in _lines_of_graphs(context):
                found.setdefault(node, place)
        rows = [(f"{node} {place}", ended, ended) for node, place in found.items()]
        return [make_chunk(GRAPH_LINES_PLANE, "graphs", 0, "OTHER", rows)] if rows else []


def _lines_of_graphs(context: Any) -> Iterator[tuple[str, str]]:
    """The nodes of all functions with the line of each, such as `("MatMul", "train.py:9 step")`."""
    left = _MOST_NODES
    for name in context.list_function_names():
        text = name.decode() if isinstance(name, bytes) else name
        if text.startswith(_OF_ONE_OP):
            continue
        known = context.get_graph_debug_info(text)
        stacks = {node: list(known.traces_by_id[at].frame_id) for node, at in known.name_to_trace_id.items()}
        left -= len(stacks)
        if left < 0:
            return
        # What all nodes have in common is who called for the graph to be made, which no op of it comes from.
        columns = zip(*stacks.values(), strict=False)
        shared = sum(1 for _ in takewhile(lambda frames: len({*frames}) == 1, columns))
        for node, frames in stacks.items():
            if (place := _place(known, frames[shared:])) is not None:
                yield node, place


def _place(known: Any, frames: Sequence[int]) -> str | None:
    """The innermost line of the program among some frames; None where all are a library's."""
    for each in reversed(frames):
        frame = known.frames_by_id[each]
        file = known.files[frame.file_index]
        if is_users_file(file):
            return f"{path_shown(file)}:{frame.line} {frame.func.removeprefix(_BY_AUTOGRAPH)}"
    return None
