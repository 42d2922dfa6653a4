"""The columnar trace.  It imports nothing of ours except the exception tree and the kernels."""

from stepscope.model.builder import LineBuilder, TraceBuilder
from stepscope.model.kinds import EventKind, Kind, LineKind, PlaneKind, StatTag, Trait
from stepscope.model.repair import Repair
from stepscope.model.strings import Strings
from stepscope.model.tables import TABLES, Events, EventTypes, Lines, Planes, Stats, Table
from stepscope.model.taking import take_events
from stepscope.model.trace import HostTrace, StatValue

__all__ = [
    "TABLES",
    "EventKind",
    "EventTypes",
    "Events",
    "HostTrace",
    "Kind",
    "LineBuilder",
    "LineKind",
    "Lines",
    "PlaneKind",
    "Planes",
    "Repair",
    "StatTag",
    "StatValue",
    "Stats",
    "Strings",
    "Table",
    "TraceBuilder",
    "Trait",
    "take_events",
]
