"""The one list of views, in the order in which they are shown.  To add a view, declare it and add it here."""

from __future__ import annotations

from stepscope.sql.event_views import EVENTS, KERNELS, LAUNCHES, OPS
from stepscope.sql.other_views import CAUSES, COUNTERS, HOSTS, MEMORY, STEPS, STRINGS, TRACKS
from stepscope.sql.views import View

VIEWS: tuple[View, ...] = (EVENTS, KERNELS, LAUNCHES, OPS, STEPS, CAUSES, MEMORY, COUNTERS, TRACKS, STRINGS, HOSTS)
