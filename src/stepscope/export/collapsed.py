"""Collapsed stacks: a line a stack, its frames from the outside in, and its own time in nanoseconds.

For flamegraph.pl, inferno, Speedscope and whatever else draws flame graphs.  The time of a device stands below its
streams, since it runs beside that of the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from stepscope.export.stacks import Stacks, find_stacks
from stepscope.model import HostTrace

_AT_ONCE = 1 << 14
_SEPARATORS = str.maketrans({";": ":", "\n": " ", "\r": " "})


def pieces(traces: Iterable[HostTrace], hosts: int = 1) -> Iterator[bytes]:
    """The file in pieces."""
    for trace in traces:
        stacks = find_stacks(trace, below_launches=False)
        host = f"{_clean(trace.host)};" if hosts > 1 else ""
        lines: list[str] = []
        for line in _lines(stacks):
            lines.append(host + line)
            if len(lines) == _AT_ONCE:
                yield "".join(lines).encode("utf-8", "replace")
                lines.clear()
        yield "".join(lines).encode("utf-8", "replace")


def _lines(stacks: Stacks) -> Iterator[str]:
    names = [_clean(frame.name) for frame in stacks.frames]
    time_ns = (stacks.host_ps + stacks.device_ps) // 1000
    for node in np.flatnonzero(time_ns).tolist():
        path = [names[frame] for frame in stacks.path(node)]
        yield f"{';'.join(reversed(path))} {time_ns[node]}\n"


def _clean(name: str) -> str:
    """A name without the characters that separate frames and lines."""
    return name.translate(_SEPARATORS).strip() or "(no name)"
