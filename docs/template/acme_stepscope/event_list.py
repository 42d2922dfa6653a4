"""An export: a line of text for each event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stepscope.export.registry import Export
from stepscope.model import HostTrace

EXPORT = Export("event-list", ".events.txt", "a text editor", "acme_stepscope.event_list:pieces")


def pieces(traces: Iterable[HostTrace], hosts: int) -> Iterator[bytes]:
    """The file in pieces, a host each."""
    for trace in traces:
        names = trace.strings.texts(trace.event_names())
        times = zip(names, trace.events.start_ps.tolist(), trace.events.duration_ps.tolist(), strict=True)
        yield "".join(f"{trace.host}\t{start}\t{duration}\t{name}\n" for name, start, duration in times).encode()
