"""pprof's profile: stacks with calls, host time and device time, as protobuf.

Device work stands below the host's call that launched it, so `go tool pprof -sample_index=device` shows which line of
the program a device worked for.  The field numbers are those of profile.proto.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from stepscope.export.stacks import Frame, Stacks, find_stacks
from stepscope.formats.xspace.encode import delimited_head, varint
from stepscope.model import HostTrace

_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _TEXT, _TIME_NS, _DURATION_NS, _COMMENT, _DEFAULT = (
    1,
    2,
    4,
    5,
    6,
    9,
    10,
    13,
    14,
)
_VALUES = (("calls", "count"), ("host", "nanoseconds"), ("device", "nanoseconds"))


class _Texts:
    """The table of texts; number 0 is the empty one."""

    def __init__(self) -> None:
        self._numbers = {"": 0}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def encode(self) -> bytes:
        return b"".join(_message(_TEXT, text.encode("utf-8", "replace")) for text in self._numbers)


def pieces(traces: Iterable[HostTrace], hosts: int = 1) -> Iterator[bytes]:
    """The file in pieces."""
    texts, first, span_ns, start_ns = _Texts(), 1, 0, None
    for trace in traces:
        if start_ns is None:
            start_ns = trace.start_unix_ns
        begin, end = trace.span_ps()
        span_ns = max(span_ns, (end - begin) // 1000)
        stacks = find_stacks(trace, below_launches=True)
        root = [] if hosts == 1 else [Frame(trace.host, None, None)]
        yield _locations([*stacks.frames, *root], first, texts)
        yield from _samples(stacks, first, first + len(stacks.frames) if root else None)
        first += len(stacks.frames) + len(root)
    yield b"".join(
        _message(_SAMPLE_TYPE, _numbers({1: texts.number(name), 2: texts.number(unit)})) for name, unit in _VALUES
    )
    facts = {_TIME_NS: start_ns or 0, _DURATION_NS: span_ns, _COMMENT: texts.number("written by stepscope")}
    yield _numbers(facts | {_DEFAULT: texts.number("host")}) + texts.encode()


def _locations(frames: Sequence[Frame], first: int, texts: _Texts) -> bytes:
    """A function and a location for each frame, both numbered from `first`."""
    parts = []
    for number, frame in enumerate(frames, first):
        names = {2: texts.number(frame.name), 4: texts.number(frame.file or "")}
        parts.append(_message(_FUNCTION, _numbers({1: number, **names, 5: frame.line or 0})))
        line = _message(4, _numbers({1: number, 2: frame.line or 0}))
        parts.append(_message(_LOCATION, _numbers({1: number}) + line))
    return b"".join(parts)


def _samples(stacks: Stacks, first: int, root: int | None) -> Iterator[bytes]:
    """A sample for each stack that has a time or a call of its own."""
    values = np.stack([stacks.calls, stacks.host_ps // 1000, stacks.device_ps // 1000], axis=1)
    host = [] if root is None else [root]
    for node in np.flatnonzero(values.any(axis=1)).tolist():
        path = b"".join(varint(number) for number in [*(first + frame for frame in stacks.path(node)), *host])
        own = b"".join(map(varint, values[node].tolist()))
        yield _message(_SAMPLE, _message(1, path) + _message(2, own))


def _numbers(fields: dict[int, int]) -> bytes:
    return b"".join(varint(field << 3) + varint(value) for field, value in fields.items() if value)


def _message(field: int, content: bytes) -> bytes:
    return delimited_head(field, len(content)) + content
