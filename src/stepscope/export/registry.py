"""The one list of files for other viewers.  To add one, write a module with `pieces` and add a line here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from stepscope.errors import UsageError
from stepscope.plugins import plugins_of
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.model import HostTrace

    Pieces = Callable[[Iterable[HostTrace], int], Iterator[bytes]]

GROUP = "stepscope.exports"


@dataclass(frozen=True)
class Export:
    """A file format for another viewer.

    Attributes:
        name: as on the command line.
        suffix: the ending of its files; a compressed one adds `.gz`.
        viewer: what opens it, for help texts.
        writer: `module:function`, imported on first use.  It is called with the traces, each of which is released
            before the next is requested, and with their number, and yields the file in pieces.
    """

    name: str
    suffix: str
    viewer: str
    writer: str

    def pieces(self, traces: Iterable[HostTrace], hosts: int) -> Iterator[bytes]:
        """The traces of one session as one file."""
        module, _, function = self.writer.partition(":")
        write: Pieces = getattr(importlib.import_module(module), function)
        return write(traces, hosts)


EXPORTS: tuple[Export, ...] = (
    Export("perfetto", ".perfetto-trace", "ui.perfetto.dev", "stepscope.export.perfetto:pieces"),
    Export("chrome", ".trace.json", "chrome://tracing and most others", "stepscope.export.chrome:pieces"),
    Export("pprof", ".pb", "go tool pprof, Pyroscope, Parca", "stepscope.export.pprof:pieces"),
    Export("collapsed", ".collapsed.txt", "flamegraph.pl, inferno, Speedscope", "stepscope.export.collapsed:pieces"),
)


def all_exports() -> tuple[Export, ...]:
    """The formats of this package and of installed ones."""
    taken = {export.name for export in EXPORTS}
    return (*EXPORTS, *(each for each in plugins_of(GROUP, Export).found if each.name not in taken))


def export_named(name: str) -> Export:
    """The format of that name.  Raises UsageError with the list of formats."""
    known = next((export for export in EXPORTS if export.name == name), None)
    found = known or next((export for export in all_exports() if export.name == name), None)
    if found is None:
        names = ", ".join(export.name for export in all_exports())
        raise UsageError(f"there is no trace format {name!r}", hint=f"choose one of {names}")
    return found
