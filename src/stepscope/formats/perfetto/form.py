"""Perfetto's traces: their names, and how they start."""

from __future__ import annotations

from collections.abc import Iterator, Set

from stepscope.formats.form import NO_STAMP, Companion, Format, NameParts
from stepscope.formats.protobuf import read_varint
from stepscope.vocabulary.patterns import Pattern

_NAME = r"(?P<worker>.*?)(?:\.(?P<stamp>\d+))?(?:\.pt)?(?:\.trace)?\.(?:pftrace|perfetto-trace)(?:\.gz)?"
_NAMED = Pattern(_NAME)
_STAMPED = Pattern(r".*?\.\d+(?:\.pt)?(?:\.trace)?\.pftrace(?:\.gz)?")
_MOST_PACKETS = 8

# The tags with which packets start: numbers (times, sequences, flags), then messages (events, tracks, clocks, state).
_NUMBERS = (3, 8, 10, 13, 41, 42, 58, 79, 87)
_MESSAGES = (2, 5, 6, 7, 11, 12, 33, 36, 43, 44, 45, 50, 52, 53, 59, 60, 89, 133)
_FIRST_TAGS = frozenset((*(number << 3 for number in _NUMBERS), *(number << 3 | 2 for number in _MESSAGES)))
_TAGS_OF_XPLANES = frozenset({0x08, 0x12, 0x1A, 0x22, 0x2A, 0x32})


class PerfettoFormat(Format):
    """A sequence of packets."""

    def looks_like(self, content: bytes) -> bool:
        """True if the content starts with packets, at least one of which an XSpace cannot hold."""
        tags = set(_first_tags(content))
        return bool(tags) and tags <= _FIRST_TAGS and not tags <= _TAGS_OF_XPLANES

    def name_parts(self, basename: str) -> NameParts:
        """The worker, and the stamp that torch.profiler appends to it."""
        found = _NAMED.fullmatch(basename)
        if not found:
            return NameParts(self.host_of(basename))
        return NameParts(found["worker"], (int(found["stamp"]), found["stamp"]) if found["stamp"] else NO_STAMP)

    def classify_companion(self, basename: str, hosts: Set[str]) -> Companion:
        """What torch.profiler writes has a stamp; others are probably exports, since they are saved there."""
        return Companion.OWN if _STAMPED.fullmatch(basename) else Companion.EXPORT


def _first_tags(content: bytes) -> Iterator[int]:
    """The tag of the first field of each packet at the start; -1 for what is no packet."""
    at = 0
    for _ in range(_MOST_PACKETS):
        if at >= len(content):
            return
        length, start = read_varint(content, at + 1)
        if content[at] != 0x0A or (length is None and start < len(content)):
            yield -1
            return
        if length is None or start >= len(content):
            return
        if length:
            tag, _ = read_varint(content, start)
            yield -1 if tag is None else tag
        at = start + length


FORMAT = PerfettoFormat(
    name="perfetto",
    noun="a Perfetto trace",
    summary="*.pftrace and *.perfetto-trace (Perfetto)",
    pattern=_NAME.replace("worker", "host").replace("(?P<stamp>", "(?:"),
    reader="stepscope.formats.perfetto.reader:read",
    hosts_reader="stepscope.formats.perfetto.reader:read_hosts",
    releases_input=True,
    has_spans=True,
)
